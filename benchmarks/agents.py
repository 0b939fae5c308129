"""The agents that are compared: Circadian, and `create_agent` in three ways."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    nullcontext,
)
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest, dynamic_prompt
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Durability

from benchmarks.models import OneToolModel
from benchmarks.tables import CIRCADIAN
from graph.agent import open_agent
from graph.persistence import open_saver
from memory.facts.semantic import settle_mem0
from memory.installation import DataFolder
from memory.models import DIMENSION, OFFLINE, HashingEmbeddings

if TYPE_CHECKING:
    from mem0.memory.main import Memory

STOCK = "create_agent"
WITH_MEM0 = "with Mem0"
SAME_SAVER = "on our saver"
SYSTEMS = {
    CIRCADIAN: "default settings; the two tools and its built-in ones; stores each step before "
    "the next begins; compacts the history at compact_emergency_threshold",
    STOCK: "only the two tools, on an unchanged AsyncSqliteSaver; stores each step while the next "
    "one runs",
    WITH_MEM0: "create_agent, which does the same job with an unchanged Mem0: before each tick it "
    "searches its memory, shows the model what it finds, and afterwards adds what was said",
    SAME_SAVER: "create_agent on Circadian's checkpointer; stores each step before the next begins",
}
"""Name -> description."""


@tool
def look_up(subject: str) -> str:
    """Look a subject up in the encyclopaedia."""
    return f"{subject}: twelve pages, first printed in 1911 and revised twice since then."


@tool
def convert(amount: float, unit: str) -> str:
    """Convert an amount of a unit to the metric system."""
    return f"{amount} {unit} in the metric system"


TOOLS: list[BaseTool] = [look_up, convert]
ASKED = "You are a helpful assistant."
FOUND = 10
"""Memories that Mem0 is asked for."""


@dataclass(frozen=True)
class System:
    """An open agent to be measured."""

    name: str
    model: OneToolModel
    tick: Callable[[str, Durability], Awaitable[Any]]
    """Sends a message to the agent and waits for its answer."""
    durability: Durability
    """How it stores its steps while it is measured."""
    bounded: bool
    """Whether its checkpoint file holds only the newest steps."""
    checkpoints: Path
    """The checkpoint file. Everything else that the agent keeps is in the same folder."""


def opening(name: str, folder: Path) -> AbstractAsyncContextManager[System]:
    """The agent `name` of SYSTEMS, to be opened in the new folder `folder`."""
    folder.mkdir(parents=True)
    path = folder / "checkpoints.db"
    if name == CIRCADIAN:
        return _circadian(path)
    if name == SAME_SAVER:
        home = DataFolder(folder, OFFLINE, DIMENSION, HashingEmbeddings)
        return _create_agent(name, path, open_saver(home), bounded=True)
    stock = AsyncSqliteSaver.from_conn_string(str(path))
    if name == WITH_MEM0:
        return _create_agent(name, path, stock, memory=path.with_name("mem0"))
    return _create_agent(name, path, stock)


@asynccontextmanager
async def _circadian(path: Path) -> AsyncIterator[System]:
    model = OneToolModel(tool=look_up.name)
    async with open_agent(path.parent, model=model, embedder="offline", tools=TOOLS) as agent:

        async def tick(text: str, durability: Durability) -> None:
            said = {"text": text, "sender": "Ada"}
            await agent.ainvoke({"events": [said]}, durability=durability)

        yield System(CIRCADIAN, model, tick, "sync", True, path)


@asynccontextmanager
async def _create_agent(
    name: str,
    path: Path,
    opening: AbstractAsyncContextManager[BaseCheckpointSaver[str]],
    *,
    bounded: bool = False,
    memory: Path | None = None,
) -> AsyncIterator[System]:
    model = OneToolModel(tool=look_up.name)
    config: RunnableConfig = {"configurable": {"thread_id": "benchmark"}}
    async with opening as saver:
        with nullcontext() if memory is None else _mem0(memory) as remembered:
            notes = Notes(remembered)
            middleware = [] if remembered is None else [dynamic_prompt(notes.prompt)]
            agent = create_agent(
                model, TOOLS, system_prompt=ASKED, middleware=middleware, checkpointer=saver
            )

            async def tick(text: str, durability: Durability) -> None:
                await notes.recall(text)
                await agent.ainvoke(
                    {"messages": [HumanMessage(text, name="Ada")]}, config, durability=durability
                )
                await notes.learn(text)

            yield System(name, model, tick, "sync" if bounded else "async", bounded, path)


class Notes:
    """What an agent remembers with Mem0, and nothing without it."""

    def __init__(self, memory: Memory | None) -> None:
        self._memory = memory
        self._found: list[str] = []

    async def recall(self, text: str) -> None:
        """Search for what is said next."""
        if self._memory is not None:
            from benchmarks import mem0_own

            found = await asyncio.to_thread(mem0_own.search, self._memory, text, FOUND)
            self._found = [one["memory"] for one in found]

    def prompt(self, request: ModelRequest[Any]) -> str:
        """The system message."""
        return "\n- ".join([f"{ASKED} You remember:", *self._found])

    async def learn(self, text: str) -> None:
        """Keep what was said."""
        if self._memory is not None:
            from benchmarks import mem0_own

            await asyncio.to_thread(mem0_own.add, self._memory, text)


def _mem0(folder: Path) -> AbstractContextManager[Memory]:
    settle_mem0(folder)
    from benchmarks import mem0_own

    return mem0_own.opened(folder, HashingEmbeddings(), DIMENSION)
