"""A person's answer to a question about a dangerous tool, from Python and the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memory.approvals import decision_of, keep
from memory.errors import InputError
from memory.tick import Decision
from tools.calls import misfit
from tools.registry import BUILT_IN, checked_tools

if TYPE_CHECKING:
    from graph.handle import AsyncAgent


async def decide(agent: AsyncAgent, question: str, answer: Any) -> Decision:
    """Write an answer down, without running: the next run acts on it before anything else.

    `answer` as `memory.approvals.decision_of` takes it.

    Raises:
        InputError: no such question waits, it is no answer, or its arguments do not fit the tool.
    """
    parked = (await agent.aget_state()).values.get("parked", [])
    waiting = {one["question"]["id"]: one["question"] for one in parked}
    if question not in waiting:
        ids = ", ".join(waiting) or "none"
        raise InputError(f"no question {question!r:.80} waits for an answer; waiting: {ids}")
    decision = decision_of(answer, by=agent.scope.user, at=agent.resources.clock())
    if isinstance(decision, str):
        raise InputError(decision)
    name, args = waiting[question]["tool"], decision["args"]
    tools = {**BUILT_IN, **checked_tools(agent.resources.tools)}
    wrong = misfit(tools[name][0], args) if args is not None and name in tools else None
    if wrong:
        raise InputError(f"the arguments do not fit {name}: {wrong}")
    await keep(agent.store, agent.scope, question, decision)
    return decision
