"""The assistant's own prompt as a person reads it, and going back to an earlier version of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from memory import audit
from memory.assistant_prompt import rolled_back
from memory.errors import StateError
from memory.state import AssistantPrompt, fresh_state
from memory.state_check import kept_problem

if TYPE_CHECKING:
    from graph.handle import AsyncAgent


async def prompt_of(agent: AsyncAgent) -> AssistantPrompt:
    """The assistant's own prompt and its versions; also while a run holds the agent.

    Raises:
        StateError: the state breaks a rule, as after a bad edit by hand.
    """
    return _prompt((await agent.aget_state()).values)


async def rollback(agent: AsyncAgent, version: int) -> AssistantPrompt:
    """Put an earlier version's text in force again, as a new version; 0 is the empty prompt.

    A person's act: nobody is asked. Where that text is in force already, nothing changes.

    Raises:
        InputError: no such version is kept.
        BusyError: another process holds the agent.
    """
    async with agent._lock:
        bound = agent.config()
        before = _prompt((await agent.graph.aget_state(bound)).values)
        now, by = agent.resources.clock(), agent.scope.user
        after = rolled_back(before, version, at=now, by=by)
        if after is not before:
            await agent.graph.aupdate_state(bound, {"assistant_prompt": after})
            entries = audit.of_prompt(before, after, tick=None, origin=None)
            await audit.write(agent.store, agent.scope, entries)
    return after


def _prompt(values: Mapping[str, Any]) -> AssistantPrompt:
    if problem := kept_problem(values):
        raise StateError(problem)
    prompt: AssistantPrompt = values.get("assistant_prompt", fresh_state()["assistant_prompt"])
    return prompt
