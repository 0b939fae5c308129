"""SIGTERM ends a server between steps: what a model was asked is heard, the run goes on later."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client

from tests.server.test_server import Thread, said
from tests.server.test_server_approval import Model
from tests.support import launching
from tests.support.launching import asking
from tests.support.openai_server import text
from tests.support.server import Server

LOOKS = asking(("recall_memories", {"query": "the shed"}))
PATIENCE = 20.0
"""Seconds: a server that is told to end is gone long before."""
SOON = 1.5
"""Seconds after which the model answers that was being asked when the server was told to end."""


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Model]:
    with Model() as serving:
        launching.set_up(monkeypatch, tmp_path)
        monkeypatch.setenv("OPENAI_BASE_URL", serving.base_url)
        yield serving
        serving.go.set()


@pytest.fixture
def server(tmp_path: Path, model: Model) -> Iterator[Server]:
    with Server(tmp_path / "server") as running:
        yield running


def begun(server: Server, model: Model) -> str:
    """A run in the background, whose first model call is held back; its thread."""
    model.go.clear()
    with get_sync_client(url=server.url) as client:
        thread = Thread(client)
        given: Any = {"messages": [said("What about the shed?", id="e1")]}
        client.runs.create(thread.id, "agent", input=given)
    assert model.held.wait(30)
    return thread.id


@contextmanager
def asking_while_held(
    server: Server, model: Model, way: str
) -> Iterator[tuple[httpx.Response, str]]:
    """A client's request for a run, whose first model call is held back; and its thread."""
    model.says(LOOKS, text("It stands."))
    model.go.clear()
    with get_sync_client(url=server.url) as client:
        thread = Thread(client).id
    given = {"assistant_id": "agent", "input": {"messages": [said("What of it?", id="e1")]}}
    path = f"{server.url}/threads/{thread}/runs/{way}"
    with httpx.stream("POST", path, json=given, timeout=60) as answer:
        assert model.held.wait(30)
        yield answer, thread


def test_a_waiting_client_gets_its_answer_after_the_restart(server: Server, model: Model) -> None:
    """By the place that it was told, `Location`, as the server's own client asks again."""
    with asking_while_held(server, model, "wait") as (answer, _):
        threading.Timer(SOON, model.go.set).start()
        began = time.monotonic()
        server.terminate()
        assert SOON < time.monotonic() - began < PATIENCE
        with pytest.raises(httpx.RemoteProtocolError):
            answer.read()
    assert len(model.requests) == 1
    server.start()
    again = httpx.get(f"{server.url}{answer.headers['location']}", timeout=60).json()
    assert again["report"]["ticks"][0]["reply"] == "It stands."
    # It was not asked again what it had answered.
    assert len(model.requests) == 2
    assert model.requests[1]["messages"][-1]["role"] == "tool"


@pytest.mark.slow
def test_a_streaming_client_does_not_interrupt_the_step_in_hand(
    server: Server, model: Model
) -> None:
    with asking_while_held(server, model, "stream") as (answer, thread):
        threading.Timer(SOON, model.go.set).start()
        server.terminate(PATIENCE)
        with suppress(httpx.RemoteProtocolError):
            answer.read()
    assert len(model.requests) == 1
    server.start()
    with get_sync_client(url=server.url) as client:
        values = Thread(client, thread).wait_for(lambda values: values.get("tick", 0) == 1)
    assert values["report"]["ticks"][0]["reply"] == "It stands."
    assert len(model.requests) == 2


@pytest.mark.slow
def test_a_step_over_the_time_limit_is_interrupted_and_repeated(
    tmp_path: Path, model: Model
) -> None:
    with Server(tmp_path / "server", CIRCADIAN_STOP_SECONDS="0.5") as server:
        model.says(text("Nobody hears this."), text("It stands."))
        thread = begun(server, model)
        server.terminate(PATIENCE)
        assert any("interrupted in a step" in record["event"] for record in server.records())
        model.go.set()
        server.start()
        with get_sync_client(url=server.url) as client:
            again = Thread(client, thread)
            values = again.wait_for(lambda values: values.get("tick", 0) == 1)
        [tick] = values["report"]["ticks"]
        assert (tick["event_id"], tick["reply"]) == ("e1", "It stands.")
