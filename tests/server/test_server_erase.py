"""Erasing a user reaches what the server's own list of threads does not name."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from langgraph_sdk.client import LangGraphClient

from graph.agent import open_agents
from graph.server.app import erase_user
from memory.models.offline.model import OfflineChatModel
from memory.runtime import Process
from tests.support.agents import said

SECRET = "Quetzalcoatl"


class Nothing:
    """A server that knows of no thread, no schedule and no assistant."""

    async def search(self, **asked: Any) -> list[Any]:
        return []


CLIENT = cast(
    LangGraphClient, SimpleNamespace(crons=Nothing(), threads=Nothing(), assistants=Nothing())
)


async def test_erasing_includes_checkpoints_of_threads_unknown_to_the_server(
    tmp_path: Path,
) -> None:
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


def holding(folder: Path) -> list[Path]:
    """The files that still contain the secret."""
    files = [one for one in folder.rglob("*") if one.is_file()]
    return [one for one in files if SECRET.encode() in one.read_bytes()]
