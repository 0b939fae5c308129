"""Looking into long-term memory: recall, and a list of all that it holds."""

from __future__ import annotations

from typing import Any

from graph.context import AgentContext
from memory import journal
from memory.analysis import terms
from memory.recall import recall as recall_memories
from memory.records import Fact, JournalEntry, RecallHit


async def recall(
    context: AgentContext, query: str, limit: int = 10, *, include_superseded: bool = False
) -> list[RecallHit]:
    """What long-term memory holds about `query`, best first, each hit with its score parts."""
    return await recall_memories(
        query,
        scope=context.scope,
        now=context.now(),
        semantic=context.semantic,
        store=context.store,
        settings=context.settings,
        limit=limit,
        include_superseded=include_superseded,
    )


async def list_memories(context: AgentContext, query: str | None = None) -> list[dict[str, Any]]:
    """All facts, superseded ones included, and all entries not consolidated yet, newest first.

    A query keeps what has all of its words, in the text or in the names of speaker and entities.
    Each is `{id, kind, text, score, sources, at}` as from recall (`score` is None: nothing is
    ranked), plus the other fields of its record. Nothing counts as an access.

    Raises:
        MemoryStoreError: semantic memory cannot be read.
    """
    facts = await context.semantic.all(context.scope)
    waiting = await journal.pending(context.store, context.scope)
    archives = await journal.archives(context.store, context.scope)
    rows = [*map(_of_fact, facts), *map(_of_entry, waiting), *map(_of_entry, archives)]
    wanted = set(terms(query or ""))
    kept = [row for row in rows if wanted <= _words(row)] if wanted else rows
    return sorted(kept, key=lambda row: (row["at"], row["id"]), reverse=True)


def _words(row: dict[str, Any]) -> set[str]:
    names = " ".join(filter(None, [row["speaker"], *row["entities"]]))
    return {*terms(row["text"]), *terms(names)}


def _of_fact(fact: Fact) -> dict[str, Any]:
    shown = _row(fact["id"], "fact", fact["text"], fact["source_events"], fact["valid_from"])
    counted = {"access_count": 0, "last_access": None}
    return {**shown, **counted, **fact}


def _of_entry(entry: JournalEntry) -> dict[str, Any]:
    shown = _row(entry["id"], "episode", entry["content"], entry["sources"], entry["timestamp"])
    about: dict[str, Any] = {"speaker": entry["source_entity"], "entities": []}
    return {**shown, **about, **entry}


def _row(id_: str, kind: str, text: str, sources: list[str], at: str) -> dict[str, Any]:
    """The fields that every row has; they come first."""
    return {
        "id": id_,
        "kind": kind,
        "text": text,
        "score": None,
        "sources": list(sources),
        "at": at,
    }
