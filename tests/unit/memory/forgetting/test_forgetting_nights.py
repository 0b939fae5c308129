"""What a forget leaves of the records of nights."""

from dataclasses import replace
from typing import Any, cast

from memory.forgetting.store_changes import is_touched, operation_after, plans_after, record_after
from memory.records.records import NightRecord, Operation, PlanRecord
from tests.unit.memory.forgetting.test_forgetting_state import known


def plan(key: str, phase: str, inputs: list[str], text: str, **more: Any) -> PlanRecord:
    operation = {
        "id": f"op_{key}",
        "kind": "add_fact",
        "target": f"op_{key}",
        "before": None,
        "after": {"text": text},
        "sources": inputs,
        "reason": "store_memory",
    }
    made = {
        "key": key,
        "order": 0,
        "step": "consolidate",
        "phase": phase,
        "operations": [operation],
        "inputs": inputs,
        "left": inputs,
        "errors": [],
        "exchange": [{"type": "ai", "data": {"content": text}}],
    }
    return cast(PlanRecord, {**made, **more})


PLANS = [
    plan("p1", "compacting", ["event_20260302_z1"], "A parrot lives there."),
    plan("p2", "compacting", ["event_20260302_b1"], "Beans grow."),
    plan("p3", "dreaming", ["event_20260302_b1"], "Beans grow."),
]


def night(ended: str | None, *applied: str) -> NightRecord:
    at = {"id": "n", "started": "2026-03-03T02:00:00+00:00"}
    made = {**at, "pending": ["event_20260302_z1", "event_20260302_b1"], "held": []}
    return cast(NightRecord, {**made, "ended": ended, "applied": list(applied), "errors": []})


def test_an_ended_night_keeps_its_operations_without_their_texts() -> None:
    one = known()
    first, second, third = plans_after(PLANS, night("now"), one)
    assert first is not None
    operation = first["operations"][0]
    assert (operation["id"], operation["kind"], operation["target"]) == (
        "op_p1",
        "add_fact",
        "op_p1",
    )
    assert (operation["after"], operation["sources"]) == (None, [])
    assert (first["inputs"], first["left"], first["exchange"]) == ([], [], [])
    assert second == PLANS[1]
    assert third == {**PLANS[2], "exchange": []}
    assert [*map(is_touched, PLANS, (first, second, third))] == [True, False, False]
    set_out = cast(NightRecord, {**night("now"), "facts": ["op_0f", "op_x"], "stopped": "Zora."})
    record = record_after(set_out, one, touched=True, at="then")
    assert (record["pending"], record["forgotten"]) == (["event_20260302_b1"], "then")
    assert (record["facts"], record["stopped"]) == (["op_x"], "[forgotten]")


def test_a_link_to_an_erased_memory_loses_its_text() -> None:
    one = known()
    link = {"kind": "link", "target": "x", "before": None, "reason": "near", "sources": ["x"]}
    made = cast(Operation, {**link, "id": "l", "after": {"other": "op_0f", "relation": "near"}})
    assert operation_after(made, one)["after"] is None
    other = cast(Operation, {**made, "after": {"other": "y", "relation": "near"}})
    assert operation_after(other, one) == other


def test_an_open_night_thinks_again_about_touched_phases() -> None:
    one = known()
    assert plans_after(PLANS, night(None), one) == [None, None, None]
    first, *rest = plans_after(PLANS, night(None, "compacting"), one)
    assert first is not None
    assert first["operations"][0]["after"] is None
    assert rest == [PLANS[1], None]


def test_a_night_from_before_the_erased_memories_saw_none_of_them() -> None:
    one = known()
    early = cast(NightRecord, {**night("now"), "started": "2026-03-01T02:00:00+00:00"})
    quoted = cast(PlanRecord, {**PLANS[2], "refused": ["it stands on other memories: 'A bird'"]})
    assert plans_after([quoted], early, one) == [quoted]
    (after,) = plans_after([quoted], night("now"), one)
    assert after is not None
    assert (after["refused"], is_touched(quoted, after)) == (["[forgotten]"], False)


def test_an_untouched_night_can_still_be_undone() -> None:
    untouched = {**night("now"), "pending": ["event_20260302_b1"]}
    one = known()
    record = cast(NightRecord, untouched)
    assert record_after(record, one, touched=False, at="then") == untouched


def test_an_entry_id_that_names_the_person_is_hidden() -> None:
    one = known()
    made = {"kind": "mark_entry", "before": {"consolidation": None}, "sources": [], "reason": "r"}
    named, plain = "event_20260302_mail_from_zora", "event_20260302_z1"
    one = replace(one, gone=one.gone | {named})
    targets = []
    for target in (named, plain):
        marked = cast(Operation, {**made, "id": "m", "target": target, "after": {}})
        targets.append(operation_after(marked, one)["target"])
    assert targets == ["[forgotten]", plain]


def operation(id_: str, kind: str, target: str, sources: list[str], after: Any) -> Operation:
    made = {"id": id_, "kind": kind, "target": target, "before": None, "after": after}
    return cast(Operation, {**made, "sources": sources, "reason": "r"})


def test_what_a_preview_made_from_erased_sources_goes_with_the_links_to_it() -> None:
    made = operation("op_new", "add_fact", "op_new", ["z1"], {"text": "Birds live here."})
    near = operation("l", "link", "x", ["x", "op_new"], {"other": "op_new", "reason": "birds"})
    plans = [
        cast(PlanRecord, {**PLANS[1], "operations": [made]}),
        cast(PlanRecord, {**PLANS[2], "operations": [near]}),
    ]
    after = plans_after(plans, night("now"), known())
    assert [one["operations"][0]["after"] for one in after if one] == [None, None]


def test_a_dream_that_saw_an_erased_fact_loses_its_notes_on_other_facts() -> None:
    note = operation(
        "n", "change_fact", "op_b", ["op_b"], {"context": "Beside a bird.", "tags": []}
    )
    mark = operation("m", "settle_fact", "op_b", ["op_b"], {"dreamed": True})
    seen = operation("s", "settle_fact", "op_0f", ["op_0f"], {"dreamed": True})
    one = cast(PlanRecord, {**PLANS[2], "operations": [note, mark, seen]})
    other = cast(PlanRecord, {**PLANS[2], "operations": [note, mark]})
    first, second = plans_after([one, other], night("now"), known())
    assert first is not None
    assert second is not None
    assert [op["after"] for op in first["operations"]] == [None, {"dreamed": True}, None]
    assert second["operations"] == [note, mark]
