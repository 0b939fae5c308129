"""The assistant's own prompt: reading it, and rolling back to an earlier version."""

from __future__ import annotations

from graph.context import AgentContext, complete_state
from memory import audit
from memory.assistant_prompt import rolled_back
from memory.state import AssistantPrompt


async def prompt_of(context: AgentContext) -> AssistantPrompt:
    """The assistant's own prompt and its versions; takes no lock.

    Raises:
        StateError: the state breaks a rule, as after a bad edit by hand.
    """
    return complete_state((await context.snapshot()).values)["assistant_prompt"]


async def rollback(context: AgentContext, version: int) -> AssistantPrompt:
    """Put an earlier version's text in force again, as a new version; 0 is the empty prompt.

    A person does this, so nobody is asked to confirm. A text in force already changes nothing.

    Raises:
        InputError: no such version is kept.
        BusyError: another process holds the agent.
    """
    async with context.lock:
        before = await prompt_of(context)
        now, by = context.now(), context.scope.user
        after = rolled_back(before, version, at=now, by=by)
        if after is not before:
            change = {"assistant_prompt": after}
            await context.graph.aupdate_state(context.config(), change)
            entries = audit.of_prompt(before, after, tick=None, origin=None)
            await audit.write(context.store, context.scope, entries)
    return after
