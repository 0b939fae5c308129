"""A server as its operator sees it: counters that move, parts that are down, a clean stop."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client
from prometheus_client.parser import text_string_to_metric_families

from tests.server.test_server import Thread
from tests.support import launching
from tests.support.openai_server import OpenAIServer, error, text, tool_call
from tests.support.postgres import Postgres
from tests.support.server import Server
from tests.support.visiting import text_of

HEARD = "My sister Nina lives in Lisbon with her dog Rex"
ASKED = "What do you remember about my sister?"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose counters only these tests move."""
    with Server(tmp_path_factory.mktemp("watched")) as running:
        yield running


def counted(server: Server, path: str = "/circadian/metrics") -> dict[str, float]:
    """The server's own counters, summed over what labels they have; `name:label` for each."""
    found: dict[str, float] = {}
    exposed = httpx.get(f"{server.url}{path}", timeout=30)
    form = "text/plain; version=0.0.4" if path.startswith("/circadian") else "text/plain"
    assert exposed.headers["content-type"].startswith(form)
    for family in text_string_to_metric_families(exposed.text):
        for one in family.samples:
            if one.name.startswith("circadian") and "bucket" not in one.name:
                name = one.name.removeprefix("circadian_")
                label = next(iter(one.labels.values()), None)
                found[name] = found.get(name, 0.0) + one.value
                if label is not None:
                    found[f"{name}:{label}"] = one.value
    return found


def test_counters_follow_ticks_and_nights(server: Server) -> None:
    with get_sync_client(url=server.url) as client:
        thread = Thread(client)
        before = counted(server)
        thread.run(HEARD, "Hello", ASKED)
        day = counted(server)
        assert thread.run(request="sleep")["report"]["night"]["complete"]
        night = counted(server)
    moved = {name: day[name] - before.get(name, 0.0) for name in day}
    assert moved["ticks_total"] == 3
    assert moved["model_calls_total:answered"] >= 4
    assert moved["tokens_total"] > 1_000
    assert moved["tool_calls_total:ok"] >= 1
    assert moved["recall_seconds_count"] >= 3
    assert 0 < moved["recall_seconds_sum"] < 30
    assert (moved["tick_seconds_count"], moved["model_call_seconds_count"] >= 4) == (3, True)
    assert moved["tick_seconds_sum"] > 0
    assert moved["tokens_total:input"] > moved["tokens_total:output"] > 0
    assert moved.get("nights_total", 0.0) == 0
    assert (day["night_seconds_count"], night["night_seconds_count"]) == (0, 1)
    assert night["nights_total:complete"] == 1
    assert night["night_operations_total"] >= 3
    assert night["model_calls_total:answered"] > day["model_calls_total:answered"]
    assert night["ticks_total"] == day["ticks_total"]
    assert {night[f"service_up:{name}"] for name in ("store", "memory", "model", "embedder")} == {1}


def test_failures_and_questions_that_wait_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launching.set_up(monkeypatch, tmp_path)
    broken = (tool_call("explode", {}), text("It broke."), error(400))
    asking = (launching.LAUNCH, launching.LAUNCH, text("It flies."))
    with OpenAIServer(*broken, *asking) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        with Server(tmp_path / "server") as server:
            with get_sync_client(url=server.url) as client:
                thread = Thread(client)
                thread.run("Blow it up")
                thread.run("And again")
                found = counted(server)
                thread = Thread(client)
                thread.run("Launch it")
                thread.run("Launch another")
                assert counted(server)["questions_waiting"] == 2
                client.runs.wait(thread.id, "agent", command={"resume": {"decision": "approve"}})
            assert counted(server, "/metrics")["questions_waiting"] == 1
    assert found["tool_calls_total:failed"] == 1
    assert (found["model_calls_total:answered"], found["ticks_total"]) == (2, 1)
    assert found["model_calls_total:failed"] >= 1
    assert found["tick_failures_total"] >= 1


def test_waiting_events_are_counted_until_their_tick(server: Server) -> None:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        thread = client.put("/circadian/agents/default").json()["thread_id"]
        event = {"id": "e1", "sender": "Ada", "text": "Hello"}
        client.post("/circadian/agents/default/events", json=event)
        for path in ("/metrics", "/circadian/metrics"):
            found = counted(server, path)
            assert (found["events_waiting"], found["oldest_event_seconds"] > 0) == (1, True), path
        run = {"assistant_id": "agent", "input": {"request": "tick"}}
        assert client.post(f"/threads/{thread}/runs/wait", json=run).status_code == 200
    found = counted(server, "/metrics")
    assert (found["events_waiting"], found["oldest_event_seconds"]) == (0, 0)


def test_refused_requests_are_counted(tmp_path: Path) -> None:
    # Cold: this one server imports everything, as an operator's does.
    with Server(tmp_path / "server", cold=True, CIRCADIAN_REQUESTS_PER_MINUTE="2") as server:
        for _ in range(4):
            httpx.get(f"{server.url}/circadian/agents", timeout=30)
        forged = {"X-Forwarded-For": "circadian"}
        answer = httpx.get(f"{server.url}/circadian/agents", headers=forged, timeout=30)
        assert answer.status_code == 429
        assert answer.headers["content-type"] == "application/problem+json"
        page = httpx.get(f"{server.url}/circadian/inspect/default/today", timeout=30)
        assert (page.status_code, "The limit is reached" in text_of(page.text)) == (429, True)
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert httpx.get(f"{server.url}/circadian/ready", timeout=30).json() == {"ready": True}


def health(server: Server) -> tuple[int, dict[str, Any]]:
    answer = httpx.get(f"{server.url}/circadian/health", timeout=30)
    return answer.status_code, answer.json()


def test_health_names_a_database_that_is_down_until_it_is_back(
    tmp_path: Path, own_postgres: Postgres
) -> None:
    with Server(tmp_path / "server", CIRCADIAN_DATABASE_URL=own_postgres.database()) as server:
        status, told = health(server)
        assert (status, told["ok"]) == (200, True)
        assert httpx.get(f"{server.url}/circadian/ready", timeout=30).status_code == 200
        own_postgres.stop()
        status, told = health(server)
        assert (status, told["ok"]) == (503, False)
        down = {name for name, part in told["parts"].items() if not part["ok"]}
        assert down == {"store", "memory"}
        assert all(told["parts"][name]["detail"] for name in down)
        assert httpx.get(f"{server.url}/ok").status_code == 200
        ready = httpx.get(f"{server.url}/circadian/ready", timeout=30)
        assert (ready.status_code, ready.json()) == (503, {"ready": False})
        found = counted(server)
        assert (found["service_up:store"], found["service_up:model"]) == (0, 1)
        assert math.isnan(found["events_waiting"])
        own_postgres.start()
        status, told = health(server)
        assert (status, told["ok"]) == (200, True), told
