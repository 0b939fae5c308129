"""The graph with a checkpointer and a store of your own, blocking and asynchronous."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from graph.agent import make_graph


def water(bed: int, litres: int) -> str:
    """Water a bed."""
    return f"bed {bed} has had {litres} litres"


ADA: RunnableConfig = {"configurable": {"thread_id": "ada"}}
OFFLINE: dict[str, Any] = {"model": "offline", "embedder": "offline", "tools": [water]}


def blocking() -> None:
    """Everything but the facts is in memory; each thread is an agent."""
    graph = make_graph(".circadian/facts", **OFFLINE, checkpointer=InMemorySaver(), store=STORE)
    graph.invoke({"messages": "I am allergic to walnuts."}, ADA)
    out = graph.invoke({"messages": "What am I allergic to?"}, ADA, context={"names": ["garden"]})
    print("blocking:", out["messages"][-1].text)
    graph.update_state(ADA, {"goals": {}}, as_node="intake")
    print("checkpoints:", len(list(graph.get_state_history(ADA))) > 1)


async def asynchronous() -> None:
    """The checkpoints are in a file of yours."""
    async with AsyncSqliteSaver.from_conn_string(".circadian/checkpoints.sqlite") as saver:
        graph = make_graph(".circadian/facts", **OFFLINE, checkpointer=saver, store=STORE)
        await graph.ainvoke({"messages": "My name is Ben."}, BEN)
        if (state := await graph.aget_state(BEN)).interrupts:  # a tool that asks first
            await graph.ainvoke(Command(resume="yes"), BEN)
        print("asynchronous: tick", state.values["tick"])


STORE = InMemoryStore()
BEN: RunnableConfig = {"configurable": {"thread_id": "ben"}}
blocking()
asyncio.run(asynchronous())
