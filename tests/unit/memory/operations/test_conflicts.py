"""Conflicts that prevent the application of a waiting night, or an undo."""

from datetime import datetime
from pathlib import Path

import pytest

from memory.facts.semantic import SemanticMemory
from memory.night.relations import settle
from memory.night.undo import apply_conflicts, inverse
from memory.records.operations import (
    add_entry,
    add_fact,
    change_fact,
    link,
    link_facts,
    mark_entry,
    prune_entry,
    reflected,
    score_entry,
    settle_fact,
    supersede_fact,
)
from memory.records.records import Fact, Operation
from nodes.night.consolidate_entities import consolidated
from tests.support.facts import draft
from tests.support.night_answers import attribute_given, pair
from tests.support.night_memories import ADA, NOW, Memory, entry, fact, news, noticed, observation

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


async def test_a_corrected_fact_blocks_the_undo(memory: Memory) -> None:
    operations = await night(memory)
    await memory.apply(operations)
    oslo = await memory.fact("oslo")
    await memory.apply(
        [
            add_fact(draft("turin", "Ada lives in Turin."), "corrected"),
            supersede_fact(oslo, "turin", LATER, ["turin"], "corrected"),
        ]
    )
    assert await memory.conflicts(inverse(operations)) == ["oslo"]


async def test_a_recalled_fact_does_not_block_the_undo(memory: Memory) -> None:
    operations = await night(memory)
    await memory.apply(operations)
    oslo = await memory.fact("oslo")
    await memory.semantic.touch(memory.scope, [oslo["id"]], datetime.fromisoformat(LATER))
    assert (await memory.fact("oslo"))["access_count"] == 1
    assert await memory.conflicts(inverse(operations)) == []


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
