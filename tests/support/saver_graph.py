"""A parent with a subgraph, small enough to be told node by node, and LangGraph's own savers."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import interrupt
from typing_extensions import TypedDict

from memory.installation.folder import DataFolder
from memory.installation.opening import Installation
from memory.storage.sqlite import CircadianSqliteSaver

Graph = CompiledStateGraph[Any, Any, Any, Any]
Durability = Literal["sync", "async", "exit"]
DURABILITIES: list[Durability] = ["sync", "async", "exit"]
Act = Callable[[], Awaitable[str]]


class State(TypedDict, total=False):
    count: int
    answer: str
    blob: str
    listed: list[int]
    kept: list[str]


async def ask() -> str:
    return str(interrupt("may I?"))


async def ask_twice() -> str:
    """Stop and ask, and ask again."""
    return f"{interrupt('may I?')}, {interrupt('really?')}"


async def answer() -> str:
    return "done"


class Story:
    """The graph `intake -> awake(first -> act -> last) -> close`, and the nodes it has run."""

    def __init__(self, act: Act = answer) -> None:
        self.log: list[str] = []
        self.act = act

    async def intake(self, state: State) -> State:
        self.log.append("intake")
        return {"count": state.get("count", 0) + 1}

    async def first(self, state: State) -> State:
        self.log.append("first")
        return {"count": state["count"] + 10}

    async def doing(self, state: State) -> State:
        self.log.append("act")
        return {"answer": await self.act()}

    async def last(self, state: State) -> State:
        self.log.append("last")
        return {"count": state["count"] + 100}

    async def close(self, state: State) -> State:
        self.log.append("close")
        return {}

    def awake(self) -> StateGraph[State]:
        builder = StateGraph(State)
        builder.add_node("first", self.first)
        builder.add_node("act", self.doing)
        builder.add_node("last", self.last)
        builder.add_edge(START, "first")
        builder.add_edge("first", "act")
        builder.add_edge("act", "last")
        builder.add_edge("last", END)
        return builder

    def compile(self, saver: BaseCheckpointSaver[str], *, stateful: bool = False) -> Graph:
        """The graph; `stateful`: its subgraph keeps a thread of its own."""
        builder = StateGraph(State)
        builder.add_node("intake", self.intake)
        builder.add_node("awake", self.awake().compile(checkpointer=True if stateful else None))
        builder.add_node("close", self.close)
        builder.add_edge(START, "intake")
        builder.add_edge("intake", "awake")
        builder.add_edge("awake", "close")
        builder.add_edge("close", END)
        return builder.compile(checkpointer=saver)


def thread(name: str = "t", run_id: str | None = None) -> RunnableConfig:
    """The config of one thread; `run_id` is written to the metadata, as a server does."""
    config: RunnableConfig = {"configurable": {"thread_id": name}}
    if run_id is not None:
        config["metadata"] = {"run_id": run_id}
    return config


@asynccontextmanager
async def stock_saver(home: Installation) -> AsyncIterator[BaseCheckpointSaver[str]]:
    """LangGraph's own saver on what this home keeps; it deletes nothing."""
    if isinstance(home, DataFolder):
        async with AsyncSqliteSaver.from_conn_string(str(home.checkpoints_db)) as saver:
            yield saver
        return
    async with AsyncPostgresSaver.from_conn_string(home.address.conninfo) as shared:
        await shared.setup()
        yield shared


async def pragma(saver: BaseCheckpointSaver[str], name: str) -> Any:
    assert isinstance(saver, CircadianSqliteSaver)
    [[value]] = await saver.file.rows(f"PRAGMA {name}")
    return value
