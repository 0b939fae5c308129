"""Undo: inverse operations restore memory, unless a later night or somebody changed it since."""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from langgraph.store.base import PutOp

from memory.errors import MemoryStoreError
from memory.facts.semantic import SemanticMemory
from memory.night.relations import settle
from memory.night.undo import apply_conflicts, built_on, inverse
from memory.operations import apply
from memory.records.operations import (
    add_entry,
    add_fact,
    change_fact,
    link,
    link_facts,
    link_memories,
    mark_entry,
    prune_entry,
    reflected,
    score_entry,
    settle_fact,
    supersede_fact,
    unlink,
)
from memory.records.records import Fact, Operation
from nodes.night.consolidate_entities import consolidated
from tests.support.facts import draft
from tests.support.night_answers import attribute_given, pair
from tests.support.night_deeds import AT, DEEDS, Night, before_a_night
from tests.support.night_memories import (
    ADA,
    NOW,
    Memory,
    ada,
    entry,
    fact,
    news,
    noticed,
    observation,
)

TEA = observation(9, "Ada likes tea.")
TOLD = ("kind", "target", "before", "after", "sources")


def each_kind() -> list[Operation]:
    facts = {"one": fact("one"), "other": fact("other", "Ada grows peas.")}
    profile = ada(*(observation(n) for n in range(1, 6)))
    likes = [attribute_given("drink", "Likes tea.", ["o1"])]
    made = consolidated(news(profile), likes, now=NOW, prune=True).operations
    return [
        add_entry(entry("event_20260502_new"), "told"),
        score_entry(entry("event_20260502_e0"), 7, "scored"),
        mark_entry(entry("event_20260502_e0"), "consolidated", "settled"),
        prune_entry(entry("event_20260502_e1"), "old"),
        add_fact(draft("new", "Ada grows kale."), "told"),
        *settle([pair("one", "other", "duplicates", "same")], facts, ["one"], now=NOW).operations,
        settle_fact("one", "seen"),
        unlink("id-one", "gone", {"relation": "relates", "reason": "", "created": AT}, "gone"),
        noticed(TEA),
        *made,
        reflected(None, NOW),
    ]


def told(operations: list[Operation]) -> list[dict[str, Any]]:
    return [{key: value for key, value in one.items() if key in TOLD} for one in operations]


def test_the_inverse_of_the_inverse_is_the_operation_in_effect() -> None:
    assert told(inverse(inverse(each_kind()))) == told(each_kind())


def test_the_inverse_is_in_reverse_order_with_its_own_ids() -> None:
    operations = each_kind()
    taken = inverse(operations)
    assert [one["target"] for one in taken] == [one["target"] for one in reversed(operations)]
    assert not {one["id"] for one in taken} & {one["id"] for one in operations}
    assert taken == inverse(operations)


def test_meetings_and_cuts_have_no_inverse() -> None:
    cut: Operation = {**settle_fact("x", "cut"), "kind": "compact"}
    met: Operation = {**noticed(TEA), "kind": "meet_entity"}
    assert inverse([cut, met]) == []


@given(DEEDS)
def test_applying_is_idempotent_and_undo_restores_memory(
    semantic: SemanticMemory, deeds: list[tuple[str, int, int]]
) -> None:
    async def live() -> None:
        memory = await before_a_night(semantic)
        stood = await memory.everything()
        night = Night(await semantic.all(memory.scope))
        for deed in deeds:
            night.do(*deed)
        await memory.apply(night.made)
        once = await memory.everything()
        await memory.apply(night.made)
        assert await memory.everything() == once
        back = inverse(night.made)
        assert await memory.conflicts(back) == []
        for _ in range(2):
            await memory.apply(back)
            assert await memory.everything() == stood

    asyncio.run(live())


WHOLE_NIGHT = [
    *[("add", 0, 0), ("add", 1, 0), ("link", 1, 3), ("relate", 3, 0), ("relate", 1, 4)],
    *[
        ("settle", 0, 0),
        ("notice", 1, 1),
        ("consolidate", 2, 0),
        ("reflect", 2, 0),
        ("prune", 3, 0),
    ],
]


@pytest.mark.parametrize(
    ("place", "nth"), [("update", 1), ("update", 2), ("delete", 1), ("delete", 2)]
)
async def test_an_interrupted_undo_is_finished_by_the_next_try(
    semantic: SemanticMemory, monkeypatch: pytest.MonkeyPatch, place: str, nth: int
) -> None:
    memory = await before_a_night(semantic)
    stood = await memory.everything()
    night = Night(await semantic.all(memory.scope))
    for deed in WHOLE_NIGHT:
        night.do(*deed)
    await memory.apply(night.made)
    left, does = nth, getattr(SemanticMemory, place)

    async def breaks(*args: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            raise MemoryStoreError("the disk is full")
        return await does(*args)

    with monkeypatch.context() as patched:
        patched.setattr(SemanticMemory, place, breaks)
        with pytest.raises(MemoryStoreError):
            await memory.apply(inverse(night.made))
    assert await memory.everything() != stood
    await memory.apply(inverse(night.made))
    assert await memory.everything() == stood


async def test_the_mark_is_written_after_facts_are_removed(
    semantic: SemanticMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(*args: Any) -> None:
        raise MemoryStoreError("the disk is full")

    memory = await before_a_night(semantic)
    added = [add_fact(draft("n0", "Ada grows kale."), "told")]
    await memory.apply(added)
    mark = PutOp(("nights",), "night_1", {"status": "undone"})
    with monkeypatch.context() as patched:
        patched.setattr(SemanticMemory, "delete", breaks)
        with pytest.raises(MemoryStoreError):
            await apply.apply_operations(
                inverse(added),
                store=memory.store,
                semantic=semantic,
                scope=memory.scope,
                also=[mark],
            )
    assert await memory.store.aget(("nights",), "night_1") is None


async def test_an_undo_keeps_a_fact_that_existed_before(semantic: SemanticMemory) -> None:
    memory = await before_a_night(semantic)
    standing = await memory.fact("f0")
    sources = {key: standing[key] for key in ("source_entries", "source_events")}
    again = [add_fact(draft("again", standing["text"], **sources), "told")]
    await memory.apply(again)
    assert (await memory.fact("again"))["id"] == standing["id"]
    await memory.apply(inverse(again))
    assert await memory.fact("f0") == standing


async def test_an_undo_removes_a_profile_made_by_the_night(semantic: SemanticMemory) -> None:
    memory = Memory.new(semantic, "heard")
    empty = await memory.everything()
    night = [noticed(TEA, aliases=["Addie"]), noticed(observation(8))]
    await memory.apply(night)
    assert await memory.ada() is not None
    await memory.apply(inverse(night))
    assert await memory.ada() is None
    assert await memory.everything() == empty


FIRST = [
    add_fact(draft("new", "Ada grows kale."), "told"),
    link("event_20260502_e0", "new", NOW, "made"),
    settle_fact("new", "seen"),
    reflected(None, NOW),
]


@pytest.mark.parametrize(
    ("later", "on"),
    [
        (supersede_fact(fact("new"), "other", NOW, ["other"], "moved"), ["new"]),
        (supersede_fact(fact("other"), "new", NOW, ["new", "other"], "moved"), ["new"]),
        (link_facts("other", "new", "relates", NOW, "both"), ["new"]),
        (link_memories("insight_1_x", "id-new", NOW, "evidence"), ["id-new"]),
        (
            add_entry(entry("insight_1_x", evidence=["id-new"]), "insight from 1 memories"),
            ["id-new"],
        ),
        (prune_entry(entry("event_20260502_e0"), "old"), ["event_20260502_e0"]),
        (score_entry(entry("event_20260502_e0"), 7, "scored"), ["event_20260502_e0"]),
    ],
)
def test_changing_linking_or_citing_is_building_on(later: Operation, on: list[str]) -> None:
    assert built_on(FIRST, [("night_2", [later])], {"new": "id-new"}) == {"night_2": on}


def test_unrelated_work_is_no_building_on() -> None:
    later = [
        add_fact(draft("third", "Ben keeps bees."), "told"),
        link("event_20260503_e1", "third", NOW, "made"),
        settle_fact("new", "seen"),
        reflected(NOW, "2026-05-04T02:00:00+00:00"),
    ]
    assert built_on(FIRST, [("night_2", later), ("night_3", [])], {"new": "id-new"}) == {}


def test_each_later_night_is_listed_with_the_ids_it_built_on() -> None:
    related = link_facts("new", "other", "relates", NOW, "both")
    scored = score_entry(entry("event_20260502_e0"), 7, "scored")
    later = [("night_2", [related]), ("night_3", [scored, related])]
    assert built_on(FIRST, later, {}) == {
        "night_2": ["new"],
        "night_3": ["event_20260502_e0", "new"],
    }


# Conflicts that prevent an undo, or the application of a waiting night.

E0, E1 = "event_20260402_e0", "event_20260402_e1"
LATER = "2026-05-04T02:00:00+00:00"


@pytest.fixture
async def memory(semantic: SemanticMemory, tmp_path: Path) -> Memory:
    made = Memory.new(semantic, tmp_path.name)
    drafts = [draft("beans", "Ada grows beans."), draft("bergen", "Ada lives in Bergen.")]
    await made.hold(drafts, [entry(E0), entry(E1)])
    await made.apply([noticed(observation(n)) for n in range(1, 6)])
    return made


async def night(memory: Memory) -> list[Operation]:
    profile, bergen = await memory.ada(), await memory.fact("bergen")
    assert profile is not None
    likes = [attribute_given("drink", "Likes tea.", ["o1"])]
    made = consolidated(news(profile), likes, now=NOW, prune=True).operations
    scored = entry(E0, importance=7, scoring_method="llm")
    return [
        score_entry(entry(E0), 7, "scored"),
        add_fact(draft("oslo", "Ada lives in Oslo."), "told"),
        link(E0, "oslo", NOW, "made"),
        mark_entry(scored, "consolidated", "settled"),
        supersede_fact(bergen, "oslo", NOW, ["oslo"], "moved"),
        settle_fact("oslo", "seen"),
        *made,
        reflected(None, NOW),
        prune_entry(entry(E1), "old"),
    ]


async def test_untouched_targets_do_not_conflict(memory: Memory) -> None:
    operations = await night(memory)
    assert await memory.conflicts(operations) == []
    await memory.apply(operations)
    assert await memory.conflicts(operations) == []
    assert await memory.conflicts(inverse(operations)) == []


async def test_checking_for_conflicts_changes_nothing(memory: Memory) -> None:
    before = await memory.everything()
    await memory.conflicts(await night(memory))
    assert await memory.everything() == before


@pytest.mark.parametrize(
    ("meanwhile", "named"),
    [
        (score_entry(entry(E0), 3, "by another night"), [E0]),
        (mark_entry(entry(E0), "below_threshold", "by another night"), [E0]),
        (prune_entry(entry(E0), "by another night"), [E0]),
        (mark_entry(entry(E1), "consolidated", "by another night"), [E1]),
        (supersede_fact(fact("bergen"), "beans", LATER, [], "by a correction"), ["bergen"]),
        (add_entry(entry(E1, content="Other words."), "said again"), [E1]),
        (prune_entry(entry(E1), "by another night"), []),
        (noticed(observation(9)), []),
    ],
)
async def test_targets_changed_meanwhile_are_named_once(
    memory: Memory, meanwhile: Operation, named: list[str]
) -> None:
    operations = await night(memory)
    await memory.apply([meanwhile])
    assert await memory.conflicts(operations) == named


async def test_a_missing_fact_is_named(memory: Memory) -> None:
    operations = await night(memory)
    await memory.semantic.delete(memory.scope, (await memory.fact("bergen"))["id"])
    assert await memory.conflicts(operations) == ["bergen"]


async def test_a_changed_entry_is_not_pruned(memory: Memory) -> None:
    settled = entry(E1, consolidation="consolidated")
    await memory.apply([mark_entry(entry(E1), "consolidated", "by another night")])
    await memory.apply([prune_entry(entry(E1), "old")])
    assert await memory.entry(E1) == settled


async def test_a_changed_attribute_conflicts(memory: Memory) -> None:
    operations = await night(memory)
    await memory.apply([noticed(observation(9))])
    profile = await memory.ada()
    assert profile is not None
    other = [attribute_given("drink", "Likes cocoa.", ["o9"])]
    await memory.apply(consolidated(news(profile), other, now=LATER, prune=False).operations)
    assert await memory.conflicts(operations) == [ADA]


async def test_added_sources_do_not_conflict(memory: Memory) -> None:
    beans, bergen = await memory.fact("beans"), await memory.fact("bergen")
    claim = [pair("beans", "bergen", "duplicates", "same")]
    shown: dict[str, Fact] = {
        "beans": {**beans, "speaker": "Ada"},
        "bergen": {**bergen, "speaker": "Ada"},
    }
    operations = settle(claim, shown, ["beans"], now=NOW).operations
    more = {"source_events": [*beans["source_events"], "e9"]}
    await memory.apply([change_fact(beans, more, ["e9"], "said again")])
    assert await memory.conflicts(operations) == []
    await memory.apply(operations)
    kept = await memory.fact("beans")
    assert kept["source_events"] == ["event_beans", "e9", "event_bergen"]


async def test_a_corrected_fact_blocks_the_undo_and_a_recalled_one_does_not(memory: Memory) -> None:
    operations = await night(memory)
    await memory.apply(operations)
    oslo = await memory.fact("oslo")
    await memory.semantic.touch(memory.scope, [oslo["id"]], datetime.fromisoformat(LATER))
    oslo = await memory.fact("oslo")
    assert oslo["access_count"] == 1
    assert await memory.conflicts(inverse(operations)) == []
    turin = add_fact(draft("turin", "Ada lives in Turin."), "corrected")
    await memory.apply([turin, supersede_fact(oslo, "turin", LATER, ["turin"], "corrected")])
    assert await memory.conflicts(inverse(operations)) == ["oslo"]


async def test_a_changed_insight_blocks_the_undo(memory: Memory) -> None:
    insight = entry("insight_20260503_a", consolidation="exempt")
    operations = [add_entry(insight, "insight")]
    await memory.apply(operations)
    assert await memory.conflicts(inverse(operations)) == []
    await memory.apply([score_entry(insight, 9, "by hand")])
    assert await memory.conflicts(inverse(operations)) == ["insight_20260503_a"]


async def test_an_undo_keeps_the_count_of_later_insights(memory: Memory) -> None:
    await memory.apply([reflected(None, NOW)])
    await memory.apply([reflected(NOW, LATER)])
    await memory.apply(inverse([reflected(None, NOW)]))
    item = await memory.store.aget(memory.scope.namespace("reflection"), "last")
    assert item is not None
    assert item.value == {"at": LATER}


LINKED = link_facts("beans", "bergen", "relates", NOW, "one house")


@pytest.mark.parametrize(
    ("planned", "meanwhile", "named"),
    [
        (reflected(None, NOW), reflected(None, LATER), ["reflection"]),
        (LINKED, supersede_fact(fact("bergen"), "beans", LATER, [], "moved"), ["bergen"]),
        (LINKED, score_entry(entry(E0), 3, "by another night"), []),
        (settle_fact("beans", "seen"), score_entry(entry(E0), 3, "by another night"), ["beans"]),
        (add_entry(entry(E0), "told"), score_entry(entry(E1), 3, "by another night"), [E0]),
    ],
    ids=["insights", "a link's end fell", "nothing", "compared already", "made already"],
)
async def test_a_waiting_night_is_out_of_date_once_memory_has_what_it_would_change(
    memory: Memory, planned: Operation, meanwhile: Operation, named: list[str]
) -> None:
    await memory.apply([meanwhile])
    store, semantic, scope = memory.store, memory.semantic, memory.scope
    assert await apply_conflicts([planned], store=store, semantic=semantic, scope=scope) == named
