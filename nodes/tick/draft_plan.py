"""Draft a plan: the large goal in hand is broken down into steps before it is worked on."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.messages.tool import tool_call

from memory.messages import marked
from memory.planning import in_hand
from memory.records import OWN_PREFIX
from memory.state import State, checked, held
from tools.builtin import planning


@checked
async def draft_plan(state: State) -> dict[str, Any]:
    """Call `decompose_goal` on the goal in hand, as the model would (plan_execute).

    It is carried out like any other call and counts as no iteration. Where it fails the model sees
    why, and the tick goes on without a plan.
    """
    loop, goal, tick = held(state["loop"]), in_hand(state["goals"]), state["tick"]
    assert goal is not None
    ask = tool_call(
        name=planning.decompose_goal.name,
        args={"goal_id": goal["id"], "reasoning": "A plan first: this goal takes several steps."},
        id=f"call_plan_{tick}",
    )
    message = AIMessage("", id=f"{OWN_PREFIX}plan_{tick}", tool_calls=[ask])
    return {"messages": [marked(message, tick=tick)], "loop": {**loop, "next": "use_tools"}}
