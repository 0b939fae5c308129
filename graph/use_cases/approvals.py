"""Approvals: a person's answer to the question whether a dangerous tool may run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig

from graph.use_cases.context import AgentContext
from graph.use_cases.runs import run
from memory.errors import InputError, NotFoundError
from memory.events import approvals
from memory.records import Decision

_WORDS = {"approve": "approved", "edit": "approved with other arguments", "refuse": "refused"}


async def approve(
    context: AgentContext,
    /,
    question: str,
    args: Mapping[str, Any] | None = None,
    config: RunnableConfig | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Let the dangerous tool of a question run, with `args` in place of its own if given.

    The answer is stored first; then the tick goes on. Returns as `ainvoke`.

    Raises:
        InputError: no such question waits, or the arguments do not fit the tool.
    """
    decision = {"decision": "approve"} if args is None else {"decision": "edit", "args": args}
    await decide(context, question, decision)
    return await run(context, None, config, **options)


async def refuse(
    context: AgentContext,
    /,
    question: str,
    reason: str | None = None,
    config: RunnableConfig | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Answer a question with no; the model is told, and the tick goes on. See `approve`."""
    await decide(context, question, {"decision": "refuse", "reason": reason})
    return await run(context, None, config, **options)


async def decide(context: AgentContext, question: str, answer: Any) -> Decision:
    """Store an answer; the next run acts on it first. Returns the answer that holds.

    The first answer holds; the same answer again changes nothing.

    Raises:
        InputError: no such question waits, another answer was given before, `answer` is malformed,
            or its arguments do not fit the tool.
    """
    from tools.execution import misfit
    from tools.registry import BUILT_IN, checked_tools

    parked = (await context.values()).get("parked", [])
    waiting = {item["question"]["id"]: item["question"] for item in parked}
    if question not in waiting:
        ids = ", ".join(waiting) or "none"
        raise NotFoundError(f"no question {question!r:.80} waits for an answer; waiting: {ids}")
    decision = approvals.decision_of(answer, by=context.scope.user, at=context.now())
    if isinstance(decision, str):
        raise InputError(decision)
    name, args = waiting[question]["tool"], decision["args"]
    tools = {**BUILT_IN, **checked_tools(context.resources.tools)}
    if name not in tools and decision["decision"] != "refuse":
        raise InputError(
            f"there is no tool {name!r} here now (an extension that is not named?): {question} "
            "waits on; refuse it, or answer once the tool is there"
        )
    wrong = misfit(tools[name][0], args) if args is not None else None
    if wrong:
        raise InputError(f"the arguments do not fit {name}: {wrong}")
    standing = await approvals.keep(context.store, context.scope, question, decision)
    if (standing["decision"], standing["args"]) != (decision["decision"], args):
        raise InputError(
            f"{question} was answered before: {_WORDS[standing['decision']]} by {standing['by']} "
            f"at {standing['at']}; that holds"
        )
    return standing
