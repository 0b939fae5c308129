"""The tool that asks long-term memory."""

from __future__ import annotations

from typing import Annotated

from langchain_core.tools import tool
from pydantic import Field

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
    memories = await recall(
        query,
        scope=scope,
        now=now_of(runtime),
        semantic=resources.semantic,
        store=store_of(runtime),
        settings=settings_of(runtime.context),
        limit=limit,
        include_superseded=include_superseded,
        used_by_agent=True,
        facts_only=asleep,
    )
    # What the scores are made of is for people: it would take more room than the memories.
    shown = [{key: value for key, value in one.items() if key != "parts"} for one in memories]
    return answer(runtime, {"query": query, "memories": shown, "count": len(shown)})
