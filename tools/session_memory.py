"""The session memory tools: facts and patterns that stand in every prompt."""

from __future__ import annotations

from typing import Annotated

from langchain_core.tools import tool
from pydantic import Field

from memory import session_memory as rules
from memory.session_memory import MemoryType
from tools.answers import Answer, Reasoning, Runtime, answer, now_of, refusals_answered


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
    after, result = rules.add(runtime.state["session_memory"], memory_type, content)
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
    after, result = rules.compact(
        runtime.state["session_memory"], new_facts, new_patterns, summary, now_of(runtime)
    )
    return answer(runtime, result, session_memory=after)
