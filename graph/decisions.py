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


_WORDS = {"approve": "approved", "edit": "approved with other arguments", "refuse": "refused"}


async def decide(agent: AsyncAgent, question: str, answer: Any) -> Decision:
    """Write an answer down, without running: the next run acts on it before anything else.

    `answer` as `memory.approvals.decision_of` takes it. The first answer holds; given again it is
    the same, and the one that stands is returned.

    Raises:
        InputError: no such question waits, another answer stands already, it is no answer, or its
            arguments do not fit the tool.
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
    if name not in tools and decision["decision"] != "refuse":
        raise InputError(
            f"there is no tool {name!r} here now (an extension that is not named?): {question} "
            "waits on; refuse it, or answer once the tool is there"
        )
    wrong = misfit(tools[name][0], args) if args is not None else None
    if wrong:
        raise InputError(f"the arguments do not fit {name}: {wrong}")
    standing = await keep(agent.store, agent.scope, question, decision)
    if (standing["decision"], standing["args"]) != (decision["decision"], args):
        raise InputError(
            f"{question} was answered before: {_WORDS[standing['decision']]} by {standing['by']} "
            f"at {standing['at']}; that holds"
        )
    return standing
