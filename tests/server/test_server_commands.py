"""An agent made by its name, before its first run: by commands, by A2A and over a socket."""

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.server.test_server_auth import SAID, http, token
from tests.support.server import Server, until

ADA, BEN = "alma", "bruno"  # the server is shared, and other tests count what theirs have


def fresh(client: httpx.Client, name: str) -> str:
    return str(client.put(f"/circadian/agents/{name}").json()["thread_id"])


def started(number: int = 1) -> dict[str, Any]:
    given = {"messages": [{"role": "user", "content": SAID}]}
    params = {"assistant_id": "agent", "input": given}
    return {"jsonrpc": "2.0", "id": number, "method": "run.start", "params": params}


def ticks(server: Server, user: str, thread: str) -> int:
    with get_sync_client(url=server.url, api_key=token(user)) as api:
        runs = partial(api.runs.list, thread)
        going = ("pending", "running")
        until(lambda: not any(run["status"] in going for run in runs()), runs)
        values: Any = api.threads.get_state(thread)["values"]
        return int(values.get("tick", 0))


def test_a_command_runs_it_for_its_user_alone(token_server: Server) -> None:
    with http(token_server, ADA) as ada, http(token_server, BEN) as ben:
        thread = fresh(ada, "commanded")
        assert ben.post(f"/threads/{thread}/commands", json=started()).json()["type"] == "error"
        assert ticks(token_server, ADA, thread) == 0
        assert ada.post(f"/threads/{thread}/commands", json=started()).json()["type"] == "success"
    assert ticks(token_server, ADA, thread) == 1


def test_another_agent_asks_it_by_a2a(token_server: Server) -> None:
    with http(token_server, ADA) as ada, http(token_server, BEN) as ben:
        thread = fresh(ada, "asked")
        [assistant] = ada.post("/assistants/search", json={}).json()
        parts = [{"kind": "text", "text": "Hello"}]
        message = {"role": "user", "messageId": "m", "contextId": thread, "parts": parts}
        ask = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
        path = f"/a2a/{assistant['assistant_id']}"
        assert "error" in ben.post(path, json=ask).json()
        answer = ada.post(path, json=ask).json()
    assert answer["result"]["contextId"] == thread
    assert ticks(token_server, ADA, thread) == 1


def socket(server: Server, user: str | None, thread: str) -> ClientConnection:
    headers = {"Authorization": f"Bearer {token(user)}"} if user else {}
    url = f"ws{server.url.removeprefix('http')}/threads/{thread}/stream/events"
    return connect(url, additional_headers=headers)


def until_it_closes(opened: ClientConnection) -> Iterator[str]:
    """What is said before the server ends it."""
    with suppress(ConnectionClosed):
        while True:
            yield str(opened.recv(timeout=10))


def test_a_socket_is_its_users_alone(token_server: Server) -> None:
    with http(token_server, ADA) as ada:
        thread = fresh(ada, "heard")
    with pytest.raises(InvalidStatus), socket(token_server, None, thread):
        pass
    with socket(token_server, BEN, thread) as bens:
        with suppress(ConnectionClosed):  # the server may hang up first
            bens.send(json.dumps(started()))
        assert "walnuts" not in "".join(until_it_closes(bens))
    subscribe = {"method": "subscription.subscribe", "params": {"channels": ["values"]}}
    with socket(token_server, ADA, thread) as adas:
        adas.send(json.dumps({"id": 1, **subscribe}))
        adas.send(json.dumps(started(2)))
        while "walnuts" not in str(adas.recv(timeout=30)):
            pass
    assert ticks(token_server, ADA, thread) == 1
