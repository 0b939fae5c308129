"""All that long-term memory holds, for a person to look through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memory import journal
from memory.analysis import terms
from memory.records import Fact, JournalEntry

if TYPE_CHECKING:
    from graph.handle import AsyncAgent


async def everything(agent: AsyncAgent, query: str | None = None) -> list[dict[str, Any]]:
    """Every fact, superseded ones too, and the entries that no fact stands for yet, newest first.

    With a query those alone that have all of its words, in the text or in the names of speaker and
    entities. Each is `{id, kind, text, score, sources, at}` as recall gives it (`score` is None:
    nothing is ranked), with the other fields of its record. Nothing counts as an access.

    Raises:
        MemoryStoreError: semantic memory cannot be read.
    """
    facts = await agent.resources.semantic.all(agent.scope)
    waiting = await journal.pending(agent.store, agent.scope)
    archives = await journal.archives(agent.store, agent.scope)
    rows = [*map(_of_fact, facts), *map(_of_entry, waiting), *map(_of_entry, archives)]
    wanted = set(terms(query or ""))
    kept = [row for row in rows if wanted <= _words(row)] if wanted else rows
    return sorted(kept, key=lambda row: (row["at"], row["id"]), reverse=True)


def _words(row: dict[str, Any]) -> set[str]:
    """The index terms that a row is found by."""
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
    """The fields of the contract, first."""
    return {
        "id": id_,
        "kind": kind,
        "text": text,
        "score": None,
        "sources": list(sources),
        "at": at,
    }
