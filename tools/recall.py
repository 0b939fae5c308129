"""The tool that asks long-term memory."""

from __future__ import annotations

from typing import Annotated

from langchain_core.tools import tool
from pydantic import Field

from memory import probes
from memory.errors import Refusal
from memory.recall import recall
from memory.resources import resources_of, scope_of, settings_of, store_of
from memory.sink import sink_of
from tools.answers import (
    Answer,
    Reasoning,
    Runtime,
    answer,
    now_of,
    refusals_answered,
)

MOST = 100


@tool
@refusals_answered
async def recall_memories(
    query: Annotated[str, Field(description="What to look for, in plain words.")],
    runtime: Runtime,
    limit: Annotated[int, Field(description="At most this many, 1 to 100.")] = 10,
    include_superseded: Annotated[
        bool, Field(description="Also what is no longer held to be true.")
    ] = False,
    reasoning: Reasoning = None,
) -> Answer:
    """Recall long-term memories near a query, best first, each with its sources."""
    if not query.strip():
        raise Refusal("Nothing to look for", "Give a query in plain words.")
    if not 1 <= limit <= MOST:
        raise Refusal(f"Limit {limit} is out of range", f"Give 1 to {MOST}.")
    resources, scope = resources_of(runtime.config), scope_of(runtime.config)
    asleep = sink_of(runtime.config, runtime.store).shown is not None
    settings, now, store = settings_of(runtime.context), now_of(runtime), store_of(runtime)
    memories = await recall(
        query,
        scope=scope,
        now=now,
        semantic=resources.semantic,
        store=store,
        settings=settings,
        limit=limit,
        max_tokens=settings.recall_tokens,
        include_superseded=include_superseded,
        facts_only=asleep,
    )
    if not asleep:  # A night may be a trial, which leaves no trace.
        await probes.note_use(
            query,
            memories,
            store=store,
            semantic=resources.semantic,
            scope=scope,
            now=now,
            settings=settings,
        )
    # The parts of the scores are for people: they would take more room than the memories.
    shown = [{key: value for key, value in one.items() if key != "parts"} for one in memories]
    return answer(runtime, {"query": query, "memories": shown, "count": len(shown)})
