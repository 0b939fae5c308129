"""Where a tick goes on after a model answer or some of its tools. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langchain_core.messages import AIMessage, AnyMessage

from memory.history import open_calls
from memory.settings import Settings
from memory.state import State
from memory.tick import Loop, PatternState
from tools.calls import Known, what_becomes_of


def routed(
    messages: Sequence[AnyMessage],
    loop: Loop,
    pattern: PatternState,
    tools: Mapping[str, Known],
    settings: Settings,
    state: State,
) -> Loop:
    """`loop` with `next`, and with the calls that sub-agents take, so many at once as are allowed.

    Where too many questions wait already, `use_tools` refuses what would be one more.
    """
    calls = open_calls(messages)
    if not calls:
        return {**loop, "next": "record" if loop["ended"] else "act", "delegating": []}
    first = next(m for m in reversed(messages) if isinstance(m, AIMessage)).tool_calls[0]
    stops = [(call, what_becomes_of(call, first, loop, pattern, tools)) for call in calls]
    done, full = state["delegated"], len(state["parked"]) >= settings.max_questions
    waiting = [str(c["id"]) for c, stop in stops if stop == "delegate" and c["id"] not in done]
    match stops[0][1]:
        case "delegate" if calls[0]["id"] in waiting:
            return {**loop, "next": "delegate", "delegating": waiting[: settings.sub_agent_budget]}
        case "ask" if not full:
            return {**loop, "next": "park", "delegating": []}
        case _:
            return {**loop, "next": "use_tools", "delegating": []}
