"""The journal tools and the recall tool."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage

from memory.events.rules import reflection_event
from memory.journal import entries as journal
from memory.operations.apply import PlanCollector
from memory.records.records import JournalEntry
from memory.settings import Settings
from memory.state.schema import State
from tests.support.tool_calls import NOW, SCOPE, Bench, night, tick_state
from tools.evidence import ShownTexts


async def entries(bench: Bench) -> list[JournalEntry]:
    return await journal.newest(bench.store, SCOPE, limit=50)


async def test_an_entry_with_importance_is_scored_by_hand_and_cites_the_event() -> None:
    bench = Bench()
    called = await bench.call(
        "add_journal_entry",
        content="Alice is allergic to nuts",
        importance=9,
        tags=["health"],
        source_entity="Alice",
    )
    (entry,) = await entries(bench)
    assert called.result["entry_id"] == entry["id"]
    assert (entry["importance"], entry["scoring_method"]) == (9, "manual")
    assert (entry["tags"], entry["source_entity"]) == (["health"], "Alice")
    assert (entry["sources"], entry["timestamp"]) == (["message-1"], NOW.isoformat())
    assert called.message.artifact == {"written": [entry["id"]]}


async def test_an_entry_without_importance_is_scored_heuristically() -> None:
    called = await Bench().call("add_journal_entry", content="The quest began")
    assert (called.result["importance"], called.result["scoring_method"]) == (3, "heuristic")


async def test_an_entry_has_one_id_for_each_place_in_a_tick() -> None:
    bench = Bench()
    await bench.call("add_journal_entry", content="The gate is shut")
    await bench.call("add_journal_entry", content="The mill is old")
    assert len(await entries(bench)) == 2
    again = Bench(store=bench.store)
    await again.call("add_journal_entry", content="The gate is shut")
    await again.call("add_journal_entry", content="The mill is old")
    assert len(await entries(bench)) == 2
    later = Bench(store=bench.store, state=tick_state(tick=43, event=None))
    await later.call("add_journal_entry", content="The gate is shut")
    assert len(await entries(bench)) == 3


async def test_a_repeated_call_reports_the_entry_as_it_was_stored() -> None:
    bench = Bench()
    first = await bench.call("add_journal_entry", content="The gate is shut", importance=8)
    again = Bench(store=bench.store)
    second = await again.call("add_journal_entry", content="The gate is shut", importance=3)
    assert second.result == first.result


async def test_autonomous_ticks_and_nights_share_no_entry() -> None:
    operations = []
    for tick, now in ((42, "2025-12-06T03:00:00+00:00"), (42, "2025-12-06T04:00:00+00:00")):
        state = tick_state(event=None, loop=None, tick=tick, messages=heard("m1"))
        assert state["context"] is not None
        state["context"]["now"] = now
        asleep = Bench(state=state, plan=PlanCollector({}))
        await asleep.call("add_journal_entry", content="The gate is shut")
        assert asleep.plan is not None
        operations += asleep.plan.operations
    assert len({operation["target"] for operation in operations}) == 2


def heard(*events: str) -> list[HumanMessage]:
    return [
        HumanMessage("text", id=event, additional_kwargs={"circadian": {"event": event, "tick": 1}})
        for event in events
    ]


def extracting(*messages: HumanMessage, **changes: Any) -> State:
    """The state in an emergency's extraction, which runs beside the tick's own loop."""
    state = tick_state(messages=list(messages), **changes)
    assert state["loop"] is not None
    state["loop"]["compaction"] = "forced"
    return state


async def test_an_extraction_cites_the_events_it_saw_those_nearest_in_words_first() -> None:
    tea, nuts = heard("m0", "m1")
    tea.content, nuts.content = "Tea is fine", "Nuts kill"
    bench = Bench(state=extracting(tea, nuts))
    await bench.call("add_journal_entry", content="Nuts are dangerous to Alice")
    (entry,) = await entries(bench)
    assert entry["sources"] == ["m1", "m0"]
    assert entry["timestamp"] == NOW.isoformat()


async def test_an_extraction_and_its_tick_share_no_id() -> None:
    messages = heard("message-1")
    answer = ToolMessage("{}", tool_call_id="1", name="add_journal_entry")
    first = Bench(state=extracting(*messages))
    second = Bench(store=first.store, state=extracting(*messages, exchange=[answer]))
    own = Bench(store=first.store)
    for bench, content in ((first, "The gate"), (second, "The mill"), (own, "The gate")):
        await bench.call("add_journal_entry", content=content)
    found = await entries(first)
    assert len(found) == 3
    assert {tuple(entry["sources"]) for entry in found} == {("message-1",)}


async def test_review_reads_the_newest_first_by_words_and_tags() -> None:
    bench = Bench(settings=Settings(time_zone="Europe/Vienna"))
    await bench.call("add_journal_entry", content="The gate is shut", tags=["town"])
    await bench.call("add_journal_entry", content="The mill is old", tags=["land"])
    found = await bench.call("review_journal", query="gate mill", limit=5)
    assert found.result["count"] == 2
    assert set(found.result["entries"][0]) == {
        "id",
        "timestamp",
        "content",
        "source_entity",
        "importance",
        "tags",
    }
    assert found.result["entries"][0]["timestamp"] == "Sat 2025-12-06 15:30"
    tagged = await bench.call("review_journal", tags=["land"])
    assert [row["content"] for row in tagged.result["entries"]] == ["The mill is old"]
    assert (await bench.call("review_journal", query="bridge")).result["entries"] == []


def reflecting(context_type: str = "reflection") -> State:
    look = reflection_event(41, NOW, Settings(), since=25, calls=3, failed=1)
    state = tick_state(event=look)
    assert state["context"] is not None
    state["context"]["context_type"] = context_type
    return state


@pytest.mark.parametrize("context_type", ["reflection", "reflection_cont"])
@pytest.mark.parametrize("tags", [None, ["strategy"], ["self", "strategy"]])
async def test_entries_of_a_reflection_are_tagged_self_and_never_become_facts(
    context_type: str, tags: list[str] | None
) -> None:
    bench = Bench(state=reflecting(context_type))
    await bench.call("add_journal_entry", content="Shorter answers work", importance=9, tags=tags)
    (entry,) = await entries(bench)
    assert sorted(entry["tags"]) == sorted({*(tags or []), "self"})
    assert (entry["consolidation"], entry["sources"]) == ("exempt", ["~reflection_41"])
    assert not journal.is_pending(entry, 1)


async def test_only_a_reflection_is_shown_the_notes_of_reflections() -> None:
    look = Bench(state=reflecting())
    await look.call("add_journal_entry", content="Shorter answers work")
    tick = Bench(store=look.store)
    await tick.call("add_journal_entry", content="The gate is shut")
    again = Bench(store=look.store, state=reflecting("reflection_cont"))
    found = await again.call("review_journal")
    assert {row["content"] for row in found.result["entries"]} == {
        "Shorter answers work",
        "The gate is shut",
    }
    assert (await again.call("review_journal", tags=["self"])).result["count"] == 1
    asleep = Bench(store=look.store, plan=PlanCollector({}))
    for other in (tick, asleep):
        shown = await other.call("review_journal")
        assert [row["content"] for row in shown.result["entries"]] == ["The gate is shut"]
        assert (await other.call("review_journal", tags=["self"])).result["count"] == 0


async def test_entries_of_a_night_join_the_plan_with_ids_of_their_own() -> None:
    bench = night()
    for content in ("The gate is shut", "The mill is old"):
        await bench.call("add_journal_entry", content=content)
    state = tick_state(event=None, loop=None, messages=heard("m1", "m2", "m3"))
    extraction = Bench(state=state, plan=PlanCollector({}))
    await extraction.call("add_journal_entry", content="The mill is old")
    assert bench.plan is not None
    assert extraction.plan is not None
    operations = [*bench.plan.operations, *extraction.plan.operations]
    assert len({operation["target"] for operation in operations}) == 3
    assert [one["after"]["sources"] for one in operations] == [["m1", "m2", "m3"]] * 3
    assert await entries(bench) == []


def test_text_that_a_tool_returned_is_not_taken_for_what_people_said() -> None:
    shown = ShownTexts(returned=["The bakery on Hill Street opens at seven on Sundays."])
    assert shown.returns("The bakery on Hill Street opens at seven.", ["Ana: look it up"])
