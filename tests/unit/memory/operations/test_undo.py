"""Undo: the inverse operations restore memory, unless a later night built on the night."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from langgraph.store.base import PutOp

from memory.errors import MemoryStoreError
from memory.facts.semantic import SemanticMemory
from memory.night.relations import settle
from memory.night.undo import built_on, inverse
from memory.operations import apply
from memory.records.operations import (
    add_entry,
    add_fact,
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
from memory.records.records import Operation
from nodes.night.consolidate_entities import consolidated
from tests.support.facts import draft
from tests.support.night_answers import attribute_given, pair
from tests.support.night_deeds import AT, DEEDS, Night, before_a_night
from tests.support.night_memories import NOW, Memory, ada, entry, fact, news, noticed, observation

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
