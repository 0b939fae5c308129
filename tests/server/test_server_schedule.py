"""`circadian token` and `circadian schedule`, against a real server with real users."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from time import time
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from graph.server.auth import count_request
from graph.server.settings import Serving
from tests.server.test_server_commands import until_it_closes
from tests.support.commandline import Done, circadian
from tests.support.server import Server

SECRET = "another secret for tests, long enough"
OVERHEARD = {"addressed": False, "at": "2026-03-02T09:00:00+00:00"}
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    running = Server(
        folder,
        CIRCADIAN_TOKEN_SECRET=SECRET,
        CIRCADIAN_REQUESTS_PER_MINUTE="60",
        CIRCADIAN_MEMORIES_PER_USER="40",
    ).start()
    yield running
    running.kill()


@pytest.fixture
def token(capsys: Capture, monkeypatch: Patch) -> str:
    """Ada's, as the command makes it; what a scheduler of hers has in its environment."""
    monkeypatch.setenv("CIRCADIAN_TOKEN_SECRET", SECRET)
    made = circadian(capsys, "token", "ada", "--json").document
    monkeypatch.setenv("CIRCADIAN_TOKEN", made["token"])
    return str(made["token"])


def scheduled(capsys: Capture, server: Server, *args: str) -> Done:
    return circadian(capsys, "schedule", "--url", server.url, *args)


def listed(server: Server, token: str) -> httpx.Response:
    """A small request, on a connection of its own."""
    return httpx.get(f"{server.url}/circadian/agents", headers={"X-Api-Key": token})


def test_schedules_are_installed_once_listed_and_removed(
    capsys: Capture, server: Server, token: str
) -> None:
    args = ("--every", "15", "--at", "03:30", "--zone", "Europe/Berlin")
    for _ in range(2):
        done = scheduled(capsys, server, *args, "--json")
        assert (done.status, done.err) == (0, "")
        found = [(one["request"], one["schedule"], one["time_zone"]) for one in done.document]
        assert found == [
            ("tick", "*/15 * * * *", "Europe/Berlin"),
            ("sleep", "30 3 * * *", "Europe/Berlin"),
        ]
    assert scheduled(capsys, server, "--list", "--json").document == done.document
    assert "falls asleep" in scheduled(capsys, server, "--list").out
    assert len(scheduled(capsys, server, "--remove", "--json").document) == 2
    assert scheduled(capsys, server, "--list").out == "Nothing is scheduled.\n"


def test_a_cron_carries_a_bare_request(capsys: Capture, server: Server, token: str) -> None:
    scheduled(capsys, server, "--every", "0", "--at", "02:00")
    headers = {"Authorization": f"Bearer {token}"}
    found: Any = httpx.post(f"{server.url}/runs/crons/search", json={}, headers=headers).json()
    (cron,) = found
    assert cron["payload"]["input"] == {"request": "sleep"}
    assert cron["user_id"] == "ada"
    scheduled(capsys, server, "--remove")


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("--every", "7"), "do not divide"),
        (("--every", "-1"), "from 0 to"),
        (("--at", "25:00"), "a time such as 02:00"),
        (("--zone", "Mars/Olympus"), "no time zone is called 'Mars/Olympus'"),
        (("--list", "--remove"), "one of them"),
    ],
)
def test_an_invalid_schedule_is_one_clear_line(
    capsys: Capture, server: Server, token: str, args: tuple[str, ...], why: str
) -> None:
    done = scheduled(capsys, server, *args)
    assert (done.status, done.out) == (2, "")
    assert why in done.error


def test_an_error_names_a_server_that_refuses(
    capsys: Capture, server: Server, monkeypatch: Patch
) -> None:
    monkeypatch.delenv("CIRCADIAN_TOKEN", raising=False)
    refused = scheduled(capsys, server)
    assert refused.status == 1
    assert "refuses (401): no token" in refused.error


def test_tokens_need_a_secret_that_is_long_enough_and_a_user(
    capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.delenv("CIRCADIAN_TOKEN_SECRET", raising=False)
    assert "set CIRCADIAN_TOKEN_SECRET" in circadian(capsys, "token", "ada").error
    monkeypatch.setenv("CIRCADIAN_TOKEN_SECRET", "short")
    done = circadian(capsys, "token", "ada")
    assert done.status == 2
    assert "CIRCADIAN_TOKEN_SECRET: Value should have at least 32 characters" in done.error
    monkeypatch.setenv("CIRCADIAN_TOKEN_SECRET", SECRET)
    assert "is not a user" in circadian(capsys, "token", " ").error
    assert circadian(capsys, "token", "ada", "--days", "0").status == 2


def test_limits_of_memories_and_requests_are_errors(
    capsys: Capture, server: Server, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("CIRCADIAN_TOKEN_SECRET", SECRET)
    made = circadian(capsys, "token", "hoarder", "--json").document["token"]
    with httpx.Client(base_url=server.url, headers={"X-Api-Key": made}, timeout=60) as client:
        thread = client.put("/circadian/agents/default").json()["thread_id"]
        events = [
            {"id": f"e{n}", "text": f"Shelf {n} is full.", "sender": "Ada", **OVERHEARD}
            for n in range(40)
        ]
        run: dict[str, Any] = {"assistant_id": "agent", "input": {"events": events}}
        assert client.post(f"/threads/{thread}/runs/wait", json=run).status_code == 200
        full = client.post(f"/threads/{thread}/runs/wait", json=run)
        assert (full.status_code, "memories are kept" in full.text) == (507, True)
        # What is put into the inbox is kept, too.
        posted = client.post("/circadian/agents/default/events", json=events[0])
        assert (posted.status_code, "memories are kept" in posted.text) == (507, True)
    answers = [listed(server, made) for _ in range(60)]
    assert answers[0].status_code == 200
    limit, left = (int(answers[0].headers[f"X-RateLimit-{n}"]) for n in ("Limit", "Remaining"))
    assert (limit, 0 < left < 60) == (60, True)
    assert answers[-1].status_code == 429
    assert answers[-1].headers["X-RateLimit-Remaining"] == "0"
    assert "more than 60 requests a minute" in answers[-1].text
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60
    other = circadian(capsys, "token", "other", "--json").document["token"]
    assert listed(server, other).status_code == 200


def test_commands_on_a_socket_count_as_requests(
    capsys: Capture, server: Server, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("CIRCADIAN_TOKEN_SECRET", SECRET)
    made = circadian(capsys, "token", "talker", "--json").document["token"]
    headers = {"X-Api-Key": made}
    path = f"{server.url}/circadian/agents/default"
    thread = httpx.put(path, headers=headers, timeout=60).json()["thread_id"]
    url = f"ws{server.url.removeprefix('http')}/threads/{thread}/stream/events"
    subscribe = {"method": "subscription.subscribe", "params": {"channels": ["values"]}}
    with connect(url, additional_headers=headers) as opened:
        for number in range(80):
            with suppress(ConnectionClosed):
                opened.send(json.dumps({"id": number, **subscribe}))
        answers = list(until_it_closes(opened))
        assert (opened.close_code, "60 requests a minute" in str(opened.close_reason)) == (
            1008,
            True,
        )
    assert 0 < len(answers) < 60
    assert listed(server, made).status_code == 429


async def test_who_asks_too_often_is_told_when_the_next_request_may_come(
    monkeypatch: Patch,
) -> None:
    serving = Serving(requests_per_minute=1)
    assert [(await count_request("hasty", serving))[0] for _ in range(2)] == [True, False]
    assert 40 < int((await count_request("hasty", serving))[1]["X-RateLimit-Reset"]) <= 60
    later = time() + 20
    monkeypatch.setattr("graph.server.auth.time", lambda: later)
    assert 1 < int((await count_request("hasty", serving))[1]["X-RateLimit-Reset"]) <= 40
