"""What the tools of a tick write stands with its source, also when the tick fails in the end."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langgraph.pregel import Pregel
from langgraph.store.memory import InMemoryStore

from memory.errors import MemoryStoreError, ModelError
from memory.events import inbox
from memory.events.rules import entry_for_event
from memory.facts.semantic import SemanticMemory
from memory.journal import entries as journal
from memory.messages.convert import valid_event
from memory.operations.apply import apply_operations
from memory.records.operations import add_entry, mark_entry
from memory.storage.sqlite import CircadianSqliteStore, OpenedFile
from memory.storage.sqlite.saver import SqliteCheckpoints
from tests.support.agents import Opening, entries, said
from tests.support.clock import Clock
from tests.support.scripted import call, scripted
from tests.support.tool_calls import EVENT, SCOPE

BAD = said("The north gate closes at nine.", id="bad")


def stores(*texts: str) -> Any:
    return call("store_memory", facts=[{"text": text} for text in texts])


async def test_a_fact_of_a_tick_that_never_succeeds_has_its_source_in_the_journal(
    opening: Opening,
) -> None:
    steps = [stores("The north gate closes at nine."), ModelError("broken")] * 3
    async with opening(scripted(*steps)) as agent:
        for attempt in range(3):
            assert await entries(agent) == [], attempt
            await agent.ainvoke(BAD, raise_on_failure=False)
        (entry,) = await entries(agent)
        (fact,) = await agent.resources.semantic.all(agent.scope)
        assert len(await inbox.set_aside(agent.store, agent.scope)) == 1
    assert (entry["tags"], entry["sources"]) == (["event", "set_aside"], ["bad"])
    assert fact["source_entries"] == [entry["id"]]


async def test_an_event_answered_after_it_was_set_aside_loses_the_mark(opening: Opening) -> None:
    model = scripted(*[ModelError("broken")] * 3, "Noted.")
    async with opening(model) as agent:
        for _ in range(4):
            await agent.ainvoke(
                said("Hello", id="bad", at="2026-03-02T09:00:00+00:00"), raise_on_failure=False
            )
        (entry,) = await entries(agent)
    assert entry["tags"] == ["event"]


async def test_a_repeated_tick_keeps_the_facts_and_notes_of_both_tries(opening: Opening) -> None:
    model = scripted(
        stores("The gate closes at nine."),
        call("add_journal_entry", content="The gate closes."),
        ModelError("broken"),
        stores("The north gate closes at nine.", "The gate closes at nine."),
        call("add_journal_entry", content="The north gate closes."),
        call("add_journal_entry", content="The gate closes."),
        "Noted.",
    )
    async with opening(model) as agent:
        await agent.ainvoke(
            said("The gate closes at nine. I mean the north gate.", id="e1"), raise_on_failure=False
        )
        await agent.ainvoke(None)
        facts = [one["text"] for one in await agent.resources.semantic.all(agent.scope)]
        notes = [one["content"] for one in await entries(agent) if not one["tags"]]
    assert sorted(facts) == ["The gate closes at nine.", "The north gate closes at nine."]
    assert sorted(notes) == ["The gate closes.", "The north gate closes."]


async def test_an_entry_is_written_while_semantic_memory_cannot_be_used(tmp_path: Path) -> None:
    def refuse() -> Any:
        raise MemoryStoreError("the disk is full")

    store = InMemoryStore()
    unusable = SemanticMemory(refuse, mem0_dir=tmp_path, dimension=8, embeddings=refuse)
    entry = entry_for_event(EVENT)
    operations = [add_entry(entry, "said")]
    await apply_operations(operations, store=store, semantic=unusable, scope=SCOPE)
    assert await journal.read(store, SCOPE, entry["id"]) == entry


async def test_an_entry_that_a_night_has_settled_is_not_made_pending_again(
    opening: Opening, clock: Clock
) -> None:
    event = valid_event({"id": "e1", "at": clock().isoformat(), "sender": "Ada", "text": "Hello"})
    entry = entry_for_event(event)
    added, marked = add_entry(entry, "heard"), mark_entry(entry, "consolidated", "settled")
    async with opening(scripted()) as agent:
        for operations in ([added], [marked], [added]):
            await apply_operations(
                operations, store=agent.store, semantic=agent.resources.semantic, scope=agent.scope
            )
        assert [one["consolidation"] for one in await entries(agent)] == ["consolidated"]
        assert await journal.pending(agent.store, agent.scope) == []


# How often a tick asks its store, its checkpoints and its threads. A limit may only be lowered


COUNTED: dict[type, dict[str, str]] = {
    CircadianSqliteStore: dict.fromkeys(
        ("abatch", "aput_new", "alook", "alist", "acount", "acount_named"), "store"
    ),
    SqliteCheckpoints: {
        "aget_tuple": "load",
        "aput": "checkpoint",
        "aput_writes": "writes",
        "alist": "list",
    },
    OpenedFile: {"_run": "file"},
    ThreadPoolExecutor: {"submit": "thread"},
    Pregel: {"aget_state": "preparing tasks"},
}
LIMITS = {"store": 14, "load": 1, "checkpoint": 1, "file": 6, "thread": 5}
"""Most calls of a tick without tools; `file` and `thread` are hand-offs to another thread."""


async def test_a_tick_makes_few_calls_and_hand_offs(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Counter[str]()

    def counting(owner: type, name: str, what: str) -> None:
        call = getattr(owner, name)

        def counted(*args: Any, **more: Any) -> Any:
            seen[what] += 1
            return call(*args, **more)

        monkeypatch.setattr(owner, name, counted)

    async with opening(scripted(otherwise=lambda *_: "Noted.")) as agent:
        for number in range(3):
            await agent.ainvoke(said(f"Pear tree {number} has blossoms.", sender="Ada"))
        for owner, names in COUNTED.items():
            for name, what in names.items():
                counting(owner, name, what)
        await agent.ainvoke(said("Pear tree 3 has blossoms.", sender="Ada"))
    assert {what: count for what, count in seen.items() if count > LIMITS.get(what, 0)} == {}
