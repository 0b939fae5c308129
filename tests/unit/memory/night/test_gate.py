"""The gate: which nights wait for a person."""

import importlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from memory.records.operations import add_fact, change_fact, supersede_fact
from memory.records.records import Fact, Operation, Probe
from memory.settings import Settings
from nodes.night.weigh_night import facts_leaving, finds, heirs_of, judged
from tests.support.facts import draft
from tests.support.night_memories import NOW, fact

weigh_night = importlib.import_module("nodes.night.weigh_night")


def ended(op: str) -> Operation:
    return change_fact(fact(op), {"invalid_at": NOW, "superseded_by": "new"}, [op], "moved")


def removed(op: str) -> Operation:
    return {**add_fact(draft(op, "x"), "undo"), "kind": "remove_fact"}


def test_ended_and_removed_facts_leave_and_count_once() -> None:
    operations: list[Operation] = [ended("a"), removed("b"), {**ended("a"), "id": "again"}]
    assert facts_leaving(operations, {"a", "b", "c"}) == {"a", "b"}


def test_invalid_new_and_otherwise_changed_facts_do_not_leave() -> None:
    described = change_fact(fact("c"), {"context": "Of beans."}, ["c"], "seen", place="context")
    back = change_fact(
        fact("d", invalid_at=NOW, superseded_by="x"), {"invalid_at": None}, ["d"], "undo"
    )
    operations = [ended("gone"), described, back, add_fact(draft("new", "x"), "told")]
    assert facts_leaving(operations, {"c", "d"}) == set()


LOST = "1 of 2 kept questions would find their memories, 2 do now"


@pytest.mark.parametrize(
    ("facts", "leaving", "before", "after", "held"),
    [
        (20, 5, [], [], None),
        (20, 6, [], [], "6 of 20 facts would no longer hold"),
        (19, 19, [], [], None),
        (100, 25, [], [], None),
        (100, 26, [], [], "26 of 100 facts would no longer hold"),
        (0, 0, [], [], None),
        (3, 0, [True, True], [True, False], LOST),
        (3, 0, [True, False], [False, True], None),
        (3, 0, [False, False], [False, False], None),
        (3, 0, [True], [True], None),
    ],
)
def test_more_than_a_quarter_of_twenty_facts_or_any_lost_probe_holds_the_night(
    facts: int, leaving: int, before: list[bool], after: list[bool], held: str | None
) -> None:
    given: Any = {"facts": facts, "leaving": leaving, "before": before, "after": after}
    verdict = judged(**given, settings=Settings())
    assert verdict["held"] == held
    counted = (verdict["facts"], verdict["leaving"], verdict["probes"])
    assert counted == (facts, leaving, len(before))
    assert (verdict["found_before"], verdict["found_after"]) == (sum(before), sum(after))


@pytest.mark.parametrize(
    ("found", "sources", "does"),
    [
        (["e1", "e2"], ["e9", "e2"], True),
        (["e1"], ["e9"], False),
        (["e1"], [], False),
        ([], [], True),
    ],
)
def test_a_probe_succeeds_if_one_of_its_sources_is_found(
    found: list[str], sources: list[str], does: bool
) -> None:
    probe: Probe = {"query": "beans?", "found": found, "at": NOW}
    assert finds(probe, sources) is does


def test_finding_the_successor_counts_for_a_probe() -> None:
    probe: Probe = {"query": "Where does Ada live?", "found": ["e1"], "at": NOW}
    assert finds(probe, ["e2"], {"e1": {"e2", "e3"}}) is True
    assert finds(probe, ["e9"], {"e1": {"e2"}, "e9": {"e1"}}) is False


def test_the_heir_is_the_last_fact_of_the_chain() -> None:
    facts = {op: fact(op) for op in ("a", "b", "c", "d", "e")}
    facts["e"] = fact("e", invalid_at=NOW, superseded_by="id-d")
    operations = [
        supersede_fact(facts["a"], "b", NOW, [], "moved"),
        supersede_fact(facts["b"], "new", NOW, [], "moved again"),
        add_fact(draft("new", "Ada lives in Turin."), "told"),
    ]
    found = heirs_of(operations, facts)
    assert (found["event_a"], found["event_b"]) == ({"event_new"}, {"event_new"})
    assert (found["event_c"], "event_e" in found) == ({"event_c"}, False)


@pytest.mark.parametrize(("place", "held"), [(11, False), (30, False), (31, True)])
async def test_a_memory_is_lost_where_a_prompt_has_no_room_for_it(
    monkeypatch: pytest.MonkeyPatch, place: int, held: bool
) -> None:
    async def hits(context: Any, probe: Probe, most: int, changes: Any) -> list[str]:
        return ["e1"] if changes is None or most >= place else []

    async def kept(*given: Any) -> list[Probe]:
        return [{"query": "beans?", "found": ["e1"], "at": NOW}]

    async def by_op(scope: Any, ops: Sequence[str]) -> dict[str, Fact]:
        return {op: fact(op) for op in ops if op == "a"}

    async def count(scope: Any, *, include_superseded: bool) -> int:
        return 1

    fallen = supersede_fact(fact("a"), "b", NOW, [], "moved")
    plans = SimpleNamespace(operations=lambda *phase: [fallen])
    resources = SimpleNamespace(semantic=SimpleNamespace(by_op=by_op, count=count))
    context: Any = SimpleNamespace(plans=plans, resources=resources, store=None, scope=None)
    context.settings, context.added_facts = Settings(), set
    monkeypatch.setattr(weigh_night, "_sources", hits)
    monkeypatch.setattr(weigh_night.night, "kept_probes", kept)
    verdict = await weigh_night._weighed(context)
    assert (verdict["held"] is not None) is held
