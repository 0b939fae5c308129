"""The session memory tools: facts and patterns that stand in every prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from langchain_core.tools import tool
from pydantic import Field

from memory import session_memory as rules
from memory.errors import Refusal
from memory.owners import owners_of, set_off_by_owner
from memory.reflection import is_reflection
from memory.resources import resources_of, settings_of
from memory.session_memory import MemoryType
from memory.sink import sink_of
from tools.answers import (
    Answer,
    Reasoning,
    Runtime,
    answer,
    event_of,
    now_of,
    refusals_answered,
)
from tools.grounds import (
    RECALLED,
    WHERE_FROM,
    grounds,
    heard_from_others,
    in_sight,
    shown,
)


@tool
@refusals_answered
async def add_session_memory(
    memory_type: Annotated[
        MemoryType, Field(description="fact: about the world or a person; pattern: a behaviour.")
    ],
    content: Annotated[str, Field(description="One sentence in the third person.")],
    runtime: Runtime,
    reasoning: Reasoning = None,
) -> Answer:
    """Remember a fact or pattern for good, about the world, people or events; never about you."""
    _check([content], runtime)
    after, result = rules.add(
        runtime.state["session_memory"], memory_type, content, by=_stranger(runtime)
    )
    return answer(runtime, result, session_memory=after)


@tool
@refusals_answered
async def compact_session_memory(
    new_facts: Annotated[list[str], Field(description="All facts that are to stay.")],
    new_patterns: Annotated[list[str], Field(description="All patterns that are to stay.")],
    summary: Annotated[str, Field(description="What was consolidated, in one sentence.")],
    runtime: Runtime,
    reasoning: Reasoning = None,
) -> Answer:
    """Replace the facts and patterns of session memory by fewer, consolidated ones."""
    _check([*new_facts, *new_patterns], runtime)
    after, result = rules.compact(
        runtime.state["session_memory"],
        new_facts,
        new_patterns,
        summary,
        now_of(runtime),
        by=_stranger(runtime),
    )
    return answer(runtime, result, session_memory=after)


def _stranger(runtime: Runtime) -> str | None:
    """Who set the tick off, where that is no owner; None: an owner, or nobody."""
    event, resources = event_of(runtime), resources_of(runtime.config)
    settings = settings_of(runtime.context)
    owners = owners_of(settings, user=resources.user, served=resources.served)
    if event is None or is_reflection(event):
        return None
    by_owner = set_off_by_owner(event, owners=owners, served=resources.served)
    return None if by_owner else event["sender"]


def _check(texts: Sequence[str], runtime: Runtime) -> None:
    """Raise a Refusal for what was recalled, or is a rule or an echo: it is no news."""
    memory, event = runtime.state["session_memory"], event_of(runtime)
    standing = [*memory["key_facts"], *memory["learned_patterns"]]
    entries = in_sight(
        runtime, settings_of(runtime.context), sink_of(runtime.config, runtime.store)
    )
    said, beside = [*grounds(entries), *standing], shown(runtime)
    if event is not None:
        beside.own += heard_from_others(event["sender"], runtime)
    for text in texts:
        if beside.recalls(text, said) or beside.returns(text, said):
            raise Refusal(RECALLED, WHERE_FROM, rejected_content=text)
