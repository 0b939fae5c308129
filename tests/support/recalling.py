"""Memories to recall: what was overheard and learnt, and a memory that is asked."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast

from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from memory.errors import ModelError
from memory.events.rules import entry_for_event
from memory.facts.semantic import SemanticMemory
from memory.facts.table import Row, scope_filters
from memory.journal import entries as journal
from memory.operations import apply
from memory.recall.episodes import index_entries
from memory.recall.recall import recall
from memory.records.records import Fact, JournalEntry, RecallHit
from memory.settings import Settings
from memory.storage.access import list_items
from tests.support import night_memories
from tests.support.facts import ANA, WordEmbeddings, draft

NOW = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)
START = datetime(2026, 3, 5, 10, 0, tzinfo=UTC)


class Failing(WordEmbeddings):
    """Embeds nothing while it is down; keeps the calls made to it."""

    down = True

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        if self.down:
            raise ModelError("the embedder is down")
        return self.embed_documents(texts)

    async def aembed_query(self, text: str) -> list[float]:
        if self.down:
            raise ModelError("the embedder is down")
        return self.embed_query(text)


def entry(
    text: str, *, minutes: float = 0, speaker: str | None = "Ana", **changes: Any
) -> JournalEntry:
    at, first = START + timedelta(minutes=minutes), text.split()[0]
    heard = {
        "timestamp": at.isoformat(),
        "content": text,
        "source_type": "observation",
        "source_trust": 0.8,
        "source_entity": speaker,
        "sources": [f"e-{first}"],
    }
    return night_memories.entry(f"event_{at:%Y%m%d}_{first}", **{**heard, **changes})


async def write(store: InMemoryStore, *entries: JournalEntry) -> None:
    await store.abatch([put for one in entries for put in journal.puts(ANA, one)])


def rows(memory: SemanticMemory, **filters: object) -> list[Row]:
    return memory.open_table().select({**scope_filters(ANA), **filters})


async def marks(store: InMemoryStore) -> list[str]:
    found = await list_items(store, ANA.namespace(journal.UNINDEXED))
    return [str(item.value["id"]) for item in found]


class Asking:
    def __init__(self, memory: SemanticMemory, store: InMemoryStore) -> None:
        self.memory, self.store = memory, store

    async def hear(self, text: str, speaker: str = "Ben", **changes: Any) -> JournalEntry:
        """Journal what was overheard, a minute after the last."""
        known = await journal.newest(self.store, ANA)
        at = NOW - timedelta(hours=3) + timedelta(minutes=len(known))
        event = {"id": f"v{len(known)}", "at": at.isoformat(), "sender": speaker, "text": text}
        entry = entry_for_event(
            cast(Any, {"channel": None, "addressed": False, **event}),
            known_entities=[],
            projects=[],
        )
        entry = cast(JournalEntry, {**entry, **changes})
        await write(self.store, entry)
        await index_entries(self.store, self.memory, ANA)
        return entry

    async def learn(self, text: str, **changes: Any) -> Fact:
        [fact] = await self.memory.add(ANA, [draft(text, text, **changes)])
        return fact

    async def ask(self, query: str, **options: Any) -> list[RecallHit]:
        """Recall as a person does, unless told otherwise."""
        given: dict[str, Any] = {"limit": 10, "settings": Settings()}
        [hits] = await recall(
            [query],
            scope=options.pop("scope", ANA),
            now=NOW,
            semantic=self.memory,
            store=self.store,
            **{**given, **options},
        )
        return hits

    async def texts(self, query: str, **options: Any) -> list[str]:
        return [hit["text"] for hit in await self.ask(query, **options)]


async def fell(asking: Asking, fact: Fact, by: Fact | None) -> None:
    """A fact ends, superseded by another if there is one."""
    gone = {"invalid_at": NOW.isoformat(), "superseded_by": by["id"] if by else None}
    await asking.memory.update(ANA, fact["id"], gone)


async def link(asking: Asking, *ends: str, relation: str = "") -> None:
    for one, other in (ends, ends[::-1]):
        namespace = ANA.namespace(apply.LINKS)
        item = await asking.store.aget(namespace, one)
        linked = item.value["linked_to"] if item else []
        how = {other: {"relation": relation}} if relation else {}
        value = {"linked_to": [*linked, other], "created": NOW.isoformat(), "relations": how}
        await asking.store.abatch([PutOp(namespace, one, value)])
