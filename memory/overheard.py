"""What was said around the agent and not to it: journaled, and the newest kept in the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from langgraph.store.base import BaseStore

from memory import entities, journal
from memory.apply import apply_operations
from memory.operations import add_entry
from memory.records import Event
from memory.scope import Scope
from memory.semantic import SemanticMemory
from memory.settings import Settings
from memory.state import State


async def overhear(
    events: Sequence[Event],
    state: State,
    *,
    settings: Settings,
    store: BaseStore,
    semantic: SemanticMemory,
    scope: Scope,
) -> list[Event]:
    """Journal `events`; returns the context buffer with them. No model is called."""
    familiar = await entities.familiar(store, scope, events)
    entries = [
        journal.entry_in(state, event, settings, known)
        for event, known in zip(events, familiar, strict=True)
    ]
    await apply_operations(
        [add_entry(entry, "heard, not addressed") for entry in entries],
        store=store,
        semantic=semantic,
        scope=scope,
    )
    # Without images: the buffer is copied into every checkpoint.
    heard = [cast(Event, {k: v for k, v in e.items() if k != "content"}) for e in events]
    buffer = [*state["context_buffer"], *heard]
    return buffer[max(0, len(buffer) - settings.context_buffer_size) :]
