"""What is done again, after a failure or a crash, is written once."""

from __future__ import annotations

from pathlib import Path

from memory.errors import ModelError
from memory.events.rules import entry_for_event
from memory.journal import entries as journal
from memory.messages.convert import valid_event
from memory.operations.apply import apply_operations
from memory.records.operations import add_entry, mark_entry
from tests.support.agents import entries, opened, said
from tests.support.clock import Clock
from tests.support.scripted import call, calls, scripted


async def test_notes_of_a_tick_that_is_done_again_stand_once_each(
    tmp_path: Path, clock: Clock
) -> None:
    model = scripted(
        call("add_journal_entry", content="The gate is shut."),
        ModelError("the provider is down"),
        calls(
            ("add_journal_entry", {"content": "The gate is shut."}),
            ("add_journal_entry", {"content": "It opens at nine."}),
        ),
        "Noted.",
    )
    async with opened(tmp_path / "data", model, clock) as agent:
        await agent.ainvoke(said("The gate?", id="e1"), raise_on_failure=False)
        clock.advance(minutes=5)
        await agent.ainvoke(None)
        notes = [one["content"] for one in await entries(agent) if one["tags"] != ["event"]]
    assert notes == ["The gate is shut.", "It opens at nine."]


async def test_an_entry_that_a_night_has_settled_is_not_made_pending_again(
    tmp_path: Path, clock: Clock
) -> None:
    event = valid_event({"id": "e1", "at": clock().isoformat(), "sender": "Ada", "text": "Hello"})
    entry = entry_for_event(event, known_entities=[], projects=[])
    added, marked = add_entry(entry, "heard"), mark_entry(entry, "consolidated", "settled")
    async with opened(tmp_path / "data", scripted(), clock) as agent:
        for operations in ([added], [marked], [added]):
            await apply_operations(
                operations,
                store=agent.store,
                semantic=agent.resources.semantic,
                scope=agent.scope,
            )
        assert [one["consolidation"] for one in await entries(agent)] == ["consolidated"]
        assert await journal.pending(agent.store, agent.scope) == []
