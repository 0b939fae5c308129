"""Erasing a user reaches what the server's own list of threads does not name."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
from langgraph_sdk.client import LangGraphClient

from graph.agent import open_agents
from graph.server.accounts import erase_user
from memory.models.offline.model import OfflineChatModel
from memory.runtime import Process, process_now
from tests.server.test_server_auth import http
from tests.support.agents import said
from tests.support.server import Server

SECRET = "Quetzalcoatl"


class Nothing:
    """A server that knows of no thread, no schedule and no assistant."""

    async def search(self, **asked: Any) -> list[Any]:
        return []


CLIENT = cast(
    LangGraphClient, SimpleNamespace(crons=Nothing(), threads=Nothing(), assistants=Nothing())
)


async def test_erasing_includes_checkpoints_of_threads_unknown_to_a_server(tmp_path: Path) -> None:
    async with open_agents(tmp_path, model=OfflineChatModel(), embedder="offline") as agents:
        adas, bens = (agents.agent("default", user=user) for user in ("ada@example.org", "ben"))
        await adas.ainvoke(said(f"My parrot is called {SECRET}"))
        await bens.ainvoke(said("My cat is called Miso"))
        saver: Any = adas.graph.checkpointer
        process = Process(agents.home, adas.resources, adas.store, saver)
        counted = await erase_user("ada@example.org", CLIENT, process)
        assert (counted["threads"], counted["records"] > 0) == (0, True)
        assert (await adas.aget_state()).values == {}
        assert (await bens.aget_state()).values["tick"] == 1
    assert holding(tmp_path) == []
    assert process_now.cache_info().currsize == 0  # else a later test would find this one's


def test_nobody_elses_threads_are_erased_on_a_server_without_tokens(server: Server) -> None:
    with httpx.Client(base_url=server.url) as local:
        made = local.put("/circadian/agents/kept").json()
        kept = local.post("/assistants", json={"graph_id": "agent", "name": "kept"}).json()
        erased = local.delete("/circadian/users/nobody").json()["erased"]
        assert (set(erased.values()), made["thread_id"] in local.get("/circadian/agents").text) == (
            {0},
            True,
        )
        assert local.delete(f"/assistants/{kept['assistant_id']}").status_code < 300


def test_two_erasures_at_once_and_runs_beside_them_leave_nothing_half_done(
    token_server: Server,
) -> None:
    """A run may also end by itself before it is cancelled."""
    with http(token_server, "zoe") as zoe:

        def ask(number: int) -> httpx.Response:
            if number % 3 == 2:
                return zoe.delete("/circadian/me")
            thread = zoe.put(f"/circadian/agents/{number}").json()["thread_id"]
            given = {"messages": [{"role": "user", "content": f"{SECRET} {number}"}]}
            body = {"assistant_id": "agent", "input": given}
            return zoe.post(f"/threads/{thread}/runs/wait", json=body)

        for _ in range(3):
            with ThreadPoolExecutor(12) as pool:
                answers = list(pool.map(ask, range(12)))
            assert {one.status_code for one in answers} <= {200, 404, 409}
        assert zoe.delete("/circadian/me").status_code == 200
        assert zoe.post("/store/namespaces", json={}).json() == {"namespaces": []}
        assert zoe.get("/circadian/agents").json() == []
    assert holding(token_server.data) == []


def holding(folder: Path) -> list[Path]:
    files = [one for one in folder.rglob("*") if one.is_file()]
    return [one for one in files if SECRET.encode() in one.read_bytes()]
