"""The plans of a night: the same in whatever portions they come, and each read once."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from memory.night.order import below_threshold, unconsolidated
from memory.night.record import Plans, new_night, plans_of
from memory.night.steps import NightContext, Thought
from memory.night.steps import plan as make_plan
from memory.operations.apply import entries_after
from memory.records.operations import add_fact, change_fact, mark_entry, score_entry, settle_fact
from memory.records.records import JournalEntry, Operation, PlanRecord, Scope
from memory.settings import Settings
from tests.support.facts import draft
from tests.support.night_memories import entry, fact

ENTRIES = {one["id"]: one for one in (entry("j1"), entry("j2"), entry("j3"))}
OLD = fact("old", importance=3)


def plan(order: int, phase: str, *operations: Operation) -> PlanRecord:
    made: dict[str, Any] = {"key": f"k{order}", "order": order, "step": "dream", "phase": phase}
    made["operations"] = list(operations)
    return cast(PlanRecord, made)


def one_of(place: int) -> Operation:
    first = next(iter(ENTRIES.values()))
    return [
        score_entry(first, 9, "vital"),
        mark_entry(first, "consolidated", "told"),
        mark_entry(ENTRIES["j2"], "below_threshold", "small"),
        add_fact(draft("new", "Ada sells beans."), "told"),
        change_fact(OLD, {"importance": 5}, [], "first", place="a"),
        change_fact(OLD, {"importance": 7}, [], "second", place="b"),
        settle_fact("old", "seen"),
    ][place]


@given(
    st.lists(
        st.tuples(st.sampled_from(["compacting", "dreaming"]), st.lists(st.integers(0, 6))),
        max_size=8,
    ),
    st.integers(0, 8),
)
def test_plans_added_one_by_one_equal_plans_added_at_once(
    given_: Sequence[tuple[str, list[int]]], cut: int
) -> None:
    records = [plan(n, phase, *map(one_of, of)) for n, (phase, of) in enumerate(given_)]
    whole, grown = Plans(records, ENTRIES), Plans(records[:cut], ENTRIES)
    for record in records[cut:]:
        grown.extend([record])
    assert list(grown) == list(whole) == records
    assert grown.pending() == whole.pending()
    for phase in (None, "compacting", "dreaming"):
        assert list(grown.operations(phase)) == list(whole.operations(phase))
        ids = [one["id"] for one in whole.operations(phase)]
        assert len(ids) == len(set(ids))


def test_an_entry_waits_until_a_plan_has_it() -> None:
    plans = Plans([plan(0, "compacting", one_of(0))], ENTRIES)
    assert [one["id"] for one in unconsolidated(plans, 1)] == ["j1"]
    plans.extend([plan(1, "compacting", one_of(1))])
    assert unconsolidated(plans, 1) == []


def test_operations_of_dreaming_settle_no_entry() -> None:
    done = mark_entry(ENTRIES["j2"], "consolidated", "told")
    assert "j2" in {one["id"] for one in Plans([plan(0, "dreaming", done)], ENTRIES).pending()}
    assert {one["id"] for one in Plans([plan(0, "compacting", done)], ENTRIES).pending()} == {
        "j1",
        "j3",
    }


def test_pending_entries_show_their_new_score() -> None:
    plans = Plans([plan(0, "compacting", one_of(0))], ENTRIES)
    assert {one["id"]: one["importance"] for one in plans.pending()}["j1"] == 9


def test_an_operation_counts_once() -> None:
    plans = Plans([plan(0, "dreaming", one_of(4), one_of(5)), plan(1, "dreaming", one_of(4))])
    assert list(plans.operations()) == [one_of(4), one_of(5)]


def test_each_plan_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read, of = list[int](), entries_after

    def counted(entries: dict[str, JournalEntry], operations: Sequence[Operation]) -> Any:
        read.append(len(operations))
        return of(entries, operations)

    monkeypatch.setattr("memory.night.record.entries_after", counted)
    plans = Plans((), ENTRIES)
    for order, (id_, one) in enumerate(ENTRIES.items()):
        plans.extend([plan(order, "compacting", mark_entry(one, "consolidated", "told"))])
        assert id_ not in {one["id"] for one in plans.pending()}
        assert len(plans.operations()) == order + 1
    assert sum(read) == len(ENTRIES)


@pytest.mark.parametrize(("channel", "settled"), [("room", []), (None, ["q"])])
def test_a_question_is_settled_with_its_answer(channel: str | None, settled: list[str]) -> None:
    """Without a channel nobody answers: each writes to the assistant alone."""
    scored: dict[str, Any] = {"scoring_method": "llm", "channel": channel}
    asked = entry("q", content="Do we move it to Monday?", importance=2, **scored)
    later = {"timestamp": "2026-05-02T09:01:00+00:00", "source_entity": "Ben"}
    answer = entry("r", content="Yes, Monday.", importance=9, **scored, **later)
    plans = Plans((), {"q": asked, "r": answer})
    assert [one["target"] for one in below_threshold(plans, 4)] == settled


async def test_a_plan_with_the_same_inputs_is_not_thought_out_again() -> None:
    thought = list[str]()

    async def think() -> Thought:
        thought.append("once")
        return Thought()

    context = NightContext(
        state=cast(Any, {}),
        config={},
        settings=Settings(),
        resources=cast(Any, None),
        store=InMemoryStore(),
        scope=Scope("local", "thread"),
        record=new_night(datetime(2026, 5, 3, tzinfo=UTC), [], []),
        plans=Plans(),
    )
    first = await make_plan(context, "reflect", ["j1"], think)
    assert await make_plan(context, "reflect", ["j1"], think) == first
    assert len(thought) == 1
    second = await make_plan(context, "reflect", ["j1"], think, iteration=1)
    assert (len(thought), second["order"], second["key"] != first["key"]) == (2, 1, True)
    stored = await plans_of(context.store, context.scope, context.record["id"])
    assert list(stored) == [first, second]
