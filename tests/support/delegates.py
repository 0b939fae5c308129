"""An assistant that delegates, without the tick around it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.store.memory import InMemoryStore

from graph.awake import delegate
from memory import runtime as resources
from memory.facts.semantic import SemanticMemory
from memory.models.breaker import Breakers
from memory.records.tick import DelegateResult
from memory.runtime import Resources
from memory.settings import Settings
from memory.state.schema import State
from nodes.delegate.brief_delegate import fan_out
from tests.support.tool_calls import NOW, THREAD, Shelf, tick_state


async def ask(state: State) -> dict[str, Any]:
    """Stands for the nodes before: the state holds the model's answer already."""
    return {}


def parent() -> Any:
    """A graph that delegates as a tick does, with a saver as strict as the product's."""
    builder = StateGraph(State, context_schema=Settings)
    builder.add_node(ask)
    builder.add_node("delegate", delegate)
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", fan_out, ["delegate"])
    builder.add_edge("delegate", END)
    serde = JsonPlusSerializer(allowed_msgpack_modules=None)
    return builder.compile(checkpointer=InMemorySaver(serde=serde), store=InMemoryStore())


@dataclass
class Requesting:
    """An assistant whose newest answer delegates these tasks; all of them are due."""

    asked: Sequence[Any]
    """Tasks, or the arguments of a call."""
    model: Any
    settings: Settings = field(default_factory=Settings)
    tools: tuple[BaseTool, ...] = ()
    changes: dict[str, Any] = field(default_factory=dict)
    breakers: Breakers = field(default_factory=Breakers.of)
    graph: Any = field(default_factory=parent)

    @property
    def state(self) -> State:
        """Its state; the calls are c0, c1, ..."""
        wanted = [
            {
                "name": "delegate_task",
                "args": one if isinstance(one, dict) else {"task": one},
                "id": f"c{at}",
            }
            for at, one in enumerate(self.asked)
        ]
        said = HumanMessage("Which wood?", name="Alice", id="m1")
        state = tick_state(messages=[said, AIMessage("", tool_calls=wanted, id="m2")])
        loop = {**cast(Any, state["loop"]), "delegating": [one["id"] for one in wanted]}
        return cast(State, {**state, "loop": loop, **self.changes})

    @property
    def run(self) -> dict[str, Any]:
        """How the parent is run."""
        given = Resources(
            chat_model=self.model,
            semantic=cast(SemanticMemory, Shelf()),
            clock=lambda: NOW,
            tools=self.tools,
            breakers=self.breakers,
        )
        config: RunnableConfig = {"configurable": {"thread_id": THREAD, resources.KEY: given}}
        return {"config": config, "context": self.settings}

    async def results(self) -> dict[str, DelegateResult]:
        """What came back, by call."""
        after = await self.graph.ainvoke(self.state, **self.run)
        return cast(dict[str, DelegateResult], after["delegated"])

    async def told(self) -> dict[str, Any]:
        """The content of the one result."""
        (result,) = (await self.results()).values()
        return content(result)


def content(result: DelegateResult) -> dict[str, Any]:
    return cast(dict[str, Any], json.loads(result["content"]))
