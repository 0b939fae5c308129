"""Running tool calls as a tick does: through `execute`, inside a running graph."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphInterrupt
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore

from memory.settings import Settings
from memory.state.schema import State
from tests.support.tool_calls import Bench, tick_state
from tools.execution.execute import Executed, execute


def wanted(name: str, /, **args: Any) -> ToolCall:
    return ToolCall(name=name, args=args, id=f"call-{name}", type="tool_call")


async def executed(
    calls: Sequence[ToolCall],
    tools: Sequence[BaseTool],
    state: State | None = None,
    *,
    seconds: float = 30.0,
    clock: Callable[[], float] = lambda: 0.0,
) -> Executed:
    """What `calls` did in the middle of tick 42. GraphInterrupt where a tool asked a person."""
    done: list[Executed] = []
    given = state or tick_state()

    async def use(state: State, config: RunnableConfig) -> dict[str, Any]:
        done.append(await execute(calls, tools, given, config, seconds=seconds, clock=clock))
        return {}

    builder = StateGraph(State, context_schema=Settings)
    builder.add_node("use", use)
    builder.add_edge(START, "use")
    graph = builder.compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    out = await graph.ainvoke({"mode": "awake"}, Bench().config())
    if asked := out.get("__interrupt__"):
        raise GraphInterrupt(asked)
    return done[0]
