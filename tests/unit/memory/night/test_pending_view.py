"""Memory as a night sees it: the same whether its operations are applied already or not."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memory.facts.semantic import SemanticMemory
from memory.facts.table import Row
from memory.night.pending_view import Changes, PendingFacts, profiles_after
from memory.night.relations import settle
from memory.operations.apply import facts_after, fields_after
from memory.records.operations import add_fact, change_entity, change_fact, supersede_fact
from memory.records.records import Fact, Operation
from tests.support.facts import draft
from tests.support.night_answers import pair
from tests.support.night_memories import ADA, NOW, Memory, ada, fact, noticed, observation

LATER = "2026-05-02T08:00:00+00:00"


@pytest.fixture
def memory(semantic: SemanticMemory, tmp_path: Path) -> Memory:
    return Memory.new(semantic, tmp_path.name)


def seen(facts: Sequence[Fact]) -> list[dict[str, Any]]:
    """A fact without the fields that depend on whether it is stored."""
    hidden = ("id", "superseded_by", "access_count", "last_access")
    return [{key: one for key, one in fact.items() if key not in hidden} for fact in facts]


def test_facts_are_added_changed_and_removed_in_order() -> None:
    old = fact("old")
    operations = [
        add_fact(draft("new", "Ada grows peas."), "told"),
        supersede_fact(old, "new", NOW, ["new"], "changed"),
        {**add_fact(draft("gone", "x"), "undo"), "kind": "remove_fact"},
    ]
    after = facts_after({"old": old, "gone": fact("gone")}, operations)  # type: ignore[arg-type] # parts
    assert list(after) == ["old", "new"]
    assert (after["old"]["invalid_at"], after["old"]["superseded_by"]) == (NOW, "new")
    assert (after["new"]["id"], after["new"]["invalid_at"]) == ("new", None)


def test_an_existing_fact_is_not_added_again() -> None:
    after = facts_after({"old": fact("old", "Ada grows beans.")}, [add_fact(draft("old", "x"), "")])
    assert after["old"]["text"] == "Ada grows beans."


def test_superseding_facts_are_named_by_operation_id() -> None:
    stored = {"old": fact("old", invalid_at=NOW, superseded_by="id-new"), "new": fact("new")}
    assert facts_after(stored, [])["old"]["superseded_by"] == "new"


def test_a_forgotten_operation_changes_nothing() -> None:
    bare: Operation = {**add_fact(draft("new", "x"), "told"), "before": None, "after": None}
    assert facts_after({"old": fact("old")}, [bare]) == {"old": fact("old")}
    assert profiles_after({ADA: ada()}, [{**bare, "kind": "change_entity", "target": ADA}]) == {
        ADA: ada()
    }


@pytest.mark.parametrize(
    ("standing", "written"),
    [({"importance": 5}, {"importance": 8}), ({"importance": 8}, {}), ({"importance": 3}, None)],
    ids=["as it was", "as it is to be", "changed meanwhile"],
)
def test_a_field_is_replaced_only_if_it_is_unchanged(
    standing: dict[str, Any], written: dict[str, Any] | None
) -> None:
    assert fields_after(standing, {"importance": 5}, {"importance": 8}) == written


def test_the_fields_of_a_change_are_replaced_together_or_not_at_all() -> None:
    before = {"importance": 5, "scoring_method": "heuristic"}
    after = {"importance": 8, "scoring_method": "llm"}
    assert fields_after({"importance": 5, "scoring_method": "llm"}, before, after) is None
    assert fields_after(dict(before), before, after) == after


def test_lists_are_merged_with_additions_made_meanwhile() -> None:
    before, after = {"source_events": ["e1"]}, {"source_events": ["e1", "e2"]}
    standing = {"source_events": ["e1", "e9"]}
    assert fields_after(standing, before, after) == {"source_events": ["e1", "e9", "e2"]}
    assert fields_after({"source_events": ["e1", "e9", "e2"]}, before, after) == {}
    assert fields_after({"source_events": ["e1", "e2", "e9"]}, after, before) == {
        "source_events": ["e1", "e9"]
    }


async def test_two_facts_never_supersede_each_other(memory: Memory) -> None:
    a, b = await memory.hold([draft("a", "Ada grows beans."), draft("b", "Ada grows peas.")])
    await memory.apply(
        [supersede_fact(a, "b", NOW, [], "one"), supersede_fact(b, "a", NOW, [], "other")]
    )
    assert (await memory.fact("a"))["superseded_by"] == b["id"]
    assert (await memory.fact("b"))["invalid_at"] is None


async def test_the_sources_of_all_duplicates_are_kept(memory: Memory) -> None:
    drafts = [
        draft("a", "Ada grows beans."),
        draft("b", "Ada grows beans!", importance=9),
        draft("c", "Ada grows beans, too.", importance=7),
    ]
    a, b, c = await memory.hold(drafts)
    batches = [
        settle(
            [pair("a", other["op"], "duplicates", "same")],
            {"a": a, other["op"]: other},
            ["a", other["op"]],
            now=NOW,
        ).operations
        for other in (b, c)
    ]
    operations = [*batches[0], *batches[1]]
    assert len({one["id"] for one in operations}) == len(operations)
    seen_first = await memory.through(operations).facts(["a", "b", "c"])
    await memory.apply(operations)
    kept = await memory.fact("a")
    assert kept["source_events"] == ["event_a", "event_b", "event_c"]
    assert kept["invalid_at"] is None
    assert seen_first["a"]["source_events"] == kept["source_events"]
    assert [(await memory.fact(op))["superseded_by"] for op in ("b", "c")] == [a["id"]] * 2


def test_profiles_show_pending_observations_and_attributes() -> None:
    standing = ada(observation(1))
    operations = [
        noticed(observation(2)),
        change_entity(
            standing,
            {"home": {"value": "Oslo", "evidence": ["o1"], "at": NOW, "replaced": []}},
            ["o1"],
            [],
            ["e1"],
            "one observation",
        ),
    ]
    profile = profiles_after({ADA: standing}, operations)[ADA]
    assert [(o["id"], o["consolidated"]) for o in profile["observations"]] == [
        ("o1", True),
        ("o2", False),
    ]
    assert profile["attributes"]["home"]["value"] == "Oslo"


async def test_profiles_are_read_through_the_operations(memory: Memory) -> None:
    await memory.apply([noticed(observation(1))])
    overlay = memory.through([noticed(observation(2))])
    assert [len(one["observations"]) for one in (await overlay.everyone()).values()] == [2]
    assert list(await overlay.profiles([ADA, "entity_nobody"])) == [ADA]


STANDING = [
    draft("beans", "Ada grows beans on plot 7.", speaker="Ada", entities=["Ada"]),
    draft("bergen", "Ada lives in Bergen by the harbour.", speaker="Ada", entities=["Ada"]),
    draft("boat", "Ben keeps a boat in the harbour of Bergen.", speaker="Ben", entities=["Ben"]),
    draft("cake", "The bakery sells cake on Sundays.", valid_from="2026-01-01T08:00:00+00:00"),
]
NEW = [
    draft("oslo", "Ada lives in Oslo now.", speaker="Ada", entities=["Ada"], valid_from=LATER),
    draft("peas", "Ada grows peas on plot 7.", speaker="Ada", entities=["Ada"], valid_from=LATER),
    draft("ferry", "The ferry to Oslo leaves the harbour at nine.", valid_from=LATER),
]


async def dreamt(memory: Memory) -> list[Operation]:
    stored = {one["op"]: one for one in await memory.hold(STANDING)}
    added = [add_fact(one, "made from this entry") for one in NEW]
    facts = facts_after(stored, added)
    claims = [
        pair("oslo", "bergen", "supersedes", "she lives there now"),
        pair("peas", "beans", "contradicts", "one plot"),
    ]
    operations = settle(claims, facts, ["oslo", "peas", "ferry"], now=NOW).operations
    context = change_fact(facts["ferry"], {"context": "Of ships.", "tags": ["ferry"]}, [], "seen")
    return [*added, *operations, context]


async def test_a_night_sees_the_same_facts_whether_it_is_applied_or_not(memory: Memory) -> None:
    operations = await dreamt(memory)
    ops = [one["op"] for one in (*STANDING, *NEW)]
    overlay = memory.through(operations)
    before, held = await overlay.facts(ops), await overlay.holding()
    await memory.apply(operations)
    overlay = memory.through(operations)
    after = await overlay.facts(ops)
    assert list(before) == list(after) == ops
    assert seen(list(before.values())) == seen(list(after.values()))
    holding = await overlay.holding()
    assert sorted(held) == sorted(holding) == sorted(set(ops) - {"bergen"})
    stored = await memory.through([]).facts(ops)
    assert seen(list(stored.values())) == seen(list(after.values()))


async def test_a_night_sees_the_same_neighbours_whether_it_is_applied_or_not(
    memory: Memory,
) -> None:
    operations = await dreamt(memory)
    ops = [one["op"] for one in (*STANDING, *NEW)]
    told: list[list[list[str]]] = []
    for _ in range(2):
        overlay = memory.through(operations)
        facts = await overlay.facts(ops)
        near = [*(await overlay.neighbours([facts[op] for op in ops], 3)).values()]
        told.append([[one["op"] for one in some] for some in near])
        await memory.apply(operations)
    assert told[0] == told[1]
    near_of = dict(zip(ops, told[0], strict=True))
    assert near_of["peas"][0] == "beans"
    assert "bergen" not in {one for some in told[0] for one in some}
    assert all(op not in near for op, near in near_of.items())


def test_pending_facts_are_found_by_meaning_and_by_words() -> None:
    told = [fact("a", "Ada grows beans."), fact("b", "Ada grows beans and kale."), fact("c", "X.")]
    vectors = [np.array(one, dtype=np.float32) for one in ([1, 0], [0.6, 0.8], [0, 1])]
    new = PendingFacts(told, vectors)
    near = new.near(np.array([1, 0], dtype=np.float32), 2)
    assert [(one["op"], round(score, 3)) for one, score in near] == [("a", 1.0), ("b", 0.6)]
    found = new.keywords("Kale and beans", 5)
    assert [(one["op"], score) for one, score in found] == [("b", 2.0), ("a", 1.0)]
    assert len(new.keywords("Ada grows", 1)) == 1
    assert PendingFacts([], []).near(np.array([1, 0], dtype=np.float32), 2) == []


async def test_nearness_in_time_alone_makes_no_neighbour(memory: Memory) -> None:
    facts = await memory.hold([draft("a", "Beans."), draft("b", "Wolves.")])
    assert await memory.through([]).neighbours(facts[:1], 5) == {"a": []}


async def test_neighbours_are_the_nearest_within_the_limit(memory: Memory) -> None:
    drafts = [draft(f"f{n}", f"Ada grows {'beans ' * (n + 1)}on plot {n}.") for n in range(9)]
    facts = await memory.hold([*drafts, draft("f9", "Ada grows beans on plot 0.", speaker="Ben")])
    near = (await memory.through([]).neighbours(facts[:1], 3))["f0"]
    assert len(near) == 3
    assert near[0]["op"] == "f9"


@pytest.mark.parametrize("listed", [["Ada", "Denmark"], ["Ada"]], ids=str)
async def test_a_plan_is_near_what_ends_it_though_only_its_words_name_its_subject(
    memory: Memory, listed: list[str]
) -> None:
    plan = "In August Ada's family drives to Denmark; the ferry is booked for the 3rd."
    said = ["Ada sails.", "Ada sings.", "Ada reads.", "Ada paints.", "Ada cycles."]
    drafts = [draft(f"f{n}", text, speaker="Ada", entities=["Ada"]) for n, text in enumerate(said)]
    drafts.append(draft("plan", plan, speaker="Ada", entities=[]))
    off = "Ada has dropped Denmark and cancelled the ferry."
    facts = await memory.hold([*drafts, draft("off", off, speaker="Ada", entities=listed)])
    near = (await memory.through([]).neighbours(facts[-1:], 3))["off"]
    assert near[0]["op"] == "plan"


async def test_a_repeated_fact_is_found_by_both_operation_ids(memory: Memory) -> None:
    await memory.hold([draft("first", "Ada grows beans.", source_entries=["x"], source_events=[])])
    again = draft("again", "Ada grows beans.", source_entries=["x"], source_events=[])
    operations = [add_fact(again, "told")]
    await memory.apply(operations)
    overlay = memory.through(operations)
    assert {op: one["op"] for op, one in (await overlay.facts(["first", "again"])).items()} == {
        "first": "first",
        "again": "first",
    }
    assert list(await overlay.holding()) == ["first"]


def row(op: str, **payload: Any) -> tuple[Row, float]:
    made = {"data": "x", "invalid_at": None, "source_events": [], "source_entries": [], **payload}
    return Row(1, f"id-{op}", made), 0.5


def test_a_recall_sees_pending_changes_and_removals() -> None:
    stored = {op: fact(op) for op in ("a", "b", "c")}
    gone: Operation = {**add_fact(draft("c", "x"), "undo"), "kind": "remove_fact"}
    operations = [supersede_fact(stored["a"], "b", NOW, [], "moved"), gone]
    changes = Changes.of(operations, stored)
    assert set(changes.facts) == {"id-a", "id-c"}
    found = changes.seen([row("a"), row("b"), row("c"), row("episode")])
    assert [(one.id, one.payload["invalid_at"]) for one, _ in found] == [
        ("id-a", NOW),
        ("id-b", None),
        ("id-episode", None),
    ]


def test_a_fact_superseded_earlier_is_no_change() -> None:
    stored = {"a": fact("a", invalid_at=NOW, superseded_by="id-b"), "b": fact("b")}
    assert Changes.of([], stored).facts == {}
