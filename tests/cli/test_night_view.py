"""A night as a person reads it: grouped, old before new, with reasons and who said it."""

from datetime import datetime
from typing import Any, cast, get_args

import pytest

from graph.cli.run_view import night_view, nights_view
from graph.differences import NightChanges, Side, differences, taken_back
from graph.use_cases.nights import Labels, NightLine
from memory.night.relations import Relation, evolve, settle
from memory.records.operations import (
    add_fact,
    link_facts,
    mark_entry,
    prune_entry,
    score_entry,
    supersede_fact,
)
from memory.records.records import NightStatus, Operation
from memory.records.tick import NightReport
from nodes.night.consolidate_entities import consolidated
from nodes.night.reflect import insights
from tests.support.facts import draft
from tests.support.night_answers import attribute_given, described, insight, pair
from tests.support.night_deeds import hit_of
from tests.support.night_memories import NOW, ada, entry, fact, news, noticed, observation
from tests.support.screens import plain

FACTS = {
    "old": fact("old", "The glass arrives on Friday.", speaker="Ben"),
    "new": fact("new", "The glass arrives on Monday.", speaker="Ben"),
    "same": fact("same", "The glass arrives on Monday, he said.", speaker="Ben"),
    "other": fact("other", "Lila eats strawberries.", speaker="Ada"),
}


def related(one: str, other: str, relation: Relation) -> list[Operation]:
    return settle([pair(one, other, relation, "he said so")], FACTS, [one], now=NOW).operations


def report(*operations: Operation, **more: Any) -> NightReport:
    made: dict[str, Any] = {
        "id": "night_20260502_220000",
        "dry_run": False,
        "started": "2026-05-02T22:00:00+00:00",
        "ended": "2026-05-02T22:01:00+00:00",
        "complete": True,
        "held": [],
        "steps": [],
        "operations": list(operations),
        "errors": [],
    }
    return cast(NightReport, made | more)


NAMES = Labels(cast(Any, FACTS), {"e1": cast(Any, entry("e1"))}, {})


def seen(*operations: Operation, everything: bool = False, width: int = 100, **more: Any) -> str:
    found = night_view(report(*operations, **more), NAMES, everything=everything)
    return plain(found, width)


def test_a_superseded_fact_stands_above_the_new_one_with_the_reason() -> None:
    told = seen(*related("new", "old", "supersedes"))
    assert (
        "Changed 1 fact\n"
        " - The glass arrives on Friday. (Ben, 1 Mar 2026)\n"
        " + The glass arrives on Monday. (Ben, 1 Mar 2026) — he said so"
    ) in told
    assert "Joined" not in told


def test_duplicates_are_merged_and_contradictions_and_links_show_both_facts() -> None:
    told = seen(*related("same", "new", "duplicates"))
    assert "Joined 1 pair that says the same\n - The glass arrives on Monday" in told
    assert "\n + The glass" in told
    assert "Changed" not in told
    told = seen(*related("other", "old", "contradicts"), *related("new", "other", "relates"))
    assert "Left open 1 contradiction\n Both are recalled, marked.\n ~ Lila eats" in told
    linked = "~ The glass arrives on Monday. (Ben, 1 Mar 2026)\n   Lila eats strawberries. ("
    assert f"Linked 1 pair of facts\n {linked}" in told


def test_taken_back_is_one_sentence() -> None:
    operations = [
        *(add_fact(cast(Any, draft(str(n), "Ada grows kale.")), "told") for n in (1, 2)),
        *related("new", "old", "supersedes"),
        mark_entry(entry("e1"), "consolidated", "settled"),
    ]
    groups = differences(NightChanges(operations, NAMES))
    assert taken_back(groups) == "Undone: the night had learned 2 facts, changed 1 fact."
    assert taken_back([]) == ""


def test_a_superseding_fact_is_counted_as_learned_and_shown_once() -> None:
    new = {**draft("new", "The glass arrives on Monday."), "speaker": "Ben"}
    more = draft("more", "Ada grows kale.")
    told = seen(
        add_fact(cast(Any, new), "told"),
        add_fact(more, "told"),
        *related("new", "old", "supersedes"),
    )
    assert "Learned 2 facts\n 1 of them is in the changes below.\n • Ada grows kale." in told
    assert told.count("The glass arrives on Monday.") == 1


def test_only_an_entry_that_a_fact_cites_was_made_into_facts() -> None:
    told = seen(
        add_fact({**draft("f", "Ada grows kale."), "source_entries": ["e1"]}, "told"),
        *(mark_entry(entry(f"e{n}"), "consolidated", "settled") for n in (1, 2, 3)),
        mark_entry(entry("e4"), "below_threshold", "importance 2 < 4"),
    )
    assert (
        "Settled\n 1 journal entry made into facts; 2 journal entries with nothing to keep; "
        "1 journal entry not\n important"
    ) in told


def test_what_takes_a_place_stands_apart_from_what_stays_beside() -> None:
    names = Labels(
        {op: {"text": f"fact {op}", "speaker": None, "valid_from": None} for op in "abcd"}
    )
    fact: Any = {"op": "a", "invalid_at": None, "superseded_by": None}
    entry: Any = {"id": "e", "content": "small talk", "sources": []}
    operations = [
        supersede_fact(fact, "b", "2026-03-02T09:00:00+00:00", [], "newer"),
        link_facts("c", "d", "relates", "2026-03-02T09:00:00+00:00", "both say so"),
        supersede_fact(fact | {"op": "c"}, "d", "2026-03-02T09:00:00+00:00", [], ""),
        link_facts("c", "d", "duplicates", "2026-03-02T09:00:00+00:00", "the same"),
        prune_entry(entry, "old"),
    ]
    night = NightChanges(operations, names, {"b": "B"}, ended={"a", "c"})
    groups = {group.key: group for group in differences(night)}
    assert list(groups) == ["changed", "joined", "linked", "faded"]
    changed, linked = groups["changed"].changes[0], groups["linked"].changes[0]
    assert (changed.before, changed.note) == (Side("fact a"), "newer")
    assert changed.after == Side("fact b", id="B")
    assert (groups["changed"].replaced, groups["linked"].replaced) == (True, False)
    assert groups["linked"].title == "Linked 1 pair of facts"
    assert linked.stays
    faded = groups["faded"].changes[0]
    assert faded.before == Side("small talk")
    # Crossed out is what no longer holds: not a twin, and nothing in a night that is not applied.
    assert (changed.gone, linked.gone, faded.gone) == (True, False, True)
    assert not groups["joined"].changes[0].gone
    preview = differences(NightChanges(operations, names, applied=False))
    assert not any(change.gone for group in preview for change in group.changes)


def test_attributes_show_the_replaced_value() -> None:
    before = ada(*(observation(n) for n in range(1, 4)))
    [first] = consolidated(
        news(before, 1), [attribute_given("home", "Likes tea 1.", ["o1"])], now=NOW, prune=False
    ).operations
    held = ada(*(observation(n) for n in range(1, 4)), attributes=first["after"]["attributes"])
    [second] = consolidated(
        news(held, 1), [attribute_given("home", "Likes tea 2.", ["o2", "o3"])], now=NOW, prune=False
    ).operations
    names = Labels({}, {}, {held["id"]: "Ada"})
    told = plain(night_view(report(second), names))
    assert (
        "Changed what is known of people and things\n - Ada, home: Likes tea 1.\n"
        " + Ada, home: Likes tea 2."
    ) in told


def test_each_kind_of_change_has_its_section() -> None:
    one = entry("e1", source_entity="Ada")
    made = insights(
        [insight("Ada is busy.", ["e1"], 8)],
        {"e1": hit_of(one)},
        night="night_1",
        now=datetime.fromisoformat(NOW),
    ).operations
    light = evolve(
        [described("old", "Of the greenhouse.", ["glass"])], FACTS, now=NOW, night="n"
    ).operations
    told = seen(
        *made,
        *light,
        prune_entry(one, "importance <= 3"),
        score_entry(one, 7, "scored"),
        noticed(observation(1)),
    )
    assert "Concluded 1 insight\n • Ada is busy. — from 1 memory" in told
    assert "Let 1 memory fade\n - Ada said something of e1. (Ada, 2 May 2026) — imp" in told
    assert (
        "Scored 1 journal entry\n • Ada said something of e1. (Ada, 2 May 2026) — importance 3 → 7"
        in told
    )
    assert ", saw 1 fact in a new light\n • The glass arrives on Friday. (Ben, 1 Mar" in told
    assert (
        "Changed what is known of people and things\n • Ada: Ada likes tea number 1. (Ben)" in told
    )


def test_a_fact_that_got_only_tags_is_shown_with_those() -> None:
    light = evolve([described("old", "", ["glass"])], FACTS, now=NOW, night="n").operations
    assert "(Ben, 1 Mar 2026) — seen as: [glass]" in seen(*light)


@pytest.mark.parametrize("width", [80, 120])
def test_long_lists_are_cut_and_name_the_command_for_all(width: int) -> None:
    many = [score_entry(entry(f"e{n}", source_entity="Ada"), 7, "scored") for n in range(40)]
    told = seen(*many, width=width)
    assert "Scored 40 journal entries" in told
    assert "and 34 more" in told
    assert "All of it: circadian night night_20260502_220000 --all" in told
    whole = seen(*many, everything=True, width=width)
    assert whole.count("3 → 7") == 40
    assert "--all" not in whole
    assert all(len(line) <= width for line in told.splitlines())


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"status": "preview", "dry_run": True}, "night_20260502_220000, a preview"),
        ({"status": "held", "gate": {"held": "6 of 20"}}, "Held back for you to decide: 6 of 20"),
        (
            {"status": "preview", "dry_run": True, "gate": {"held": "6 of 20"}},
            "Would be held back: 6 of 20",
        ),
        ({"stopped": "9 of 9 calls are used"}, "Stopped early: 9 of 9 calls are used; the next"),
        ({"refused": ["unknown id: x"]}, "Refused: 1 claim of the model:\n  unknown id: x"),
        ({"refused": ["a", "b"]}, "Refused: 2 claims of the model:\n  a\n  b"),
        ({"refused": list("abcdefgh")}, "  f\n  and 2 more"),
        ({"errors": ["dream: no answer"], "complete": False}, "! dream: no answer"),
        ({"status": "undone"}, "night_20260502_220000, undone"),
        ({"held": ["a", "b"]}, "night_20260502_220000, complete, 2 left for the next night"),
        ({"held": ["a"]}, "Left for the next night: 1 journal entry"),
        (
            {"held": ["a"], "left": {"consolidate": 3, "dream": 1, "consolidate_entities": 12}},
            "next night: 1 journal entry, 1 fact to compare, 12 people and things",
        ),
        ({"held": ["a"], "left": {"dream": 2}}, "complete, 3 left for the next night"),
        ({"stopped": "its hours are over"}, "night_20260502_220000, ended early"),
        ({"stopped": "x", "complete": False}, "night_20260502_220000, not complete"),
    ],
)
def test_the_head_says_what_became_of_the_night(more: dict[str, Any], line: str) -> None:
    assert line in seen(**more)


def test_a_night_that_changed_nothing_says_so() -> None:
    assert seen().splitlines()[1:] == ["Nothing in memory had to change."]
    assert "Nothing in memory" not in seen(errors=["dream: no answer"], complete=False)


def test_a_night_with_forgotten_memories_is_shown_without_them() -> None:
    told = add_fact(draft("told", "Beans are tall."), "told")
    gone = [add_fact(draft("gone", "Zora."), "told"), *related("new", "old", "supersedes")]
    bare = [cast(Operation, {**one, "before": None, "after": None}) for one in gone]
    shown = seen(*bare, told)
    assert "Learned 1 fact\n • Beans are tall." in shown
    assert "Changed" not in shown


def test_a_missing_fact_says_so() -> None:
    told = plain(night_view(report(*related("new", "old", "supersedes")), Labels()))
    assert "- (a fact that is gone, old)" in told


def test_a_nights_text_is_cleaned_of_control_characters() -> None:
    evil = draft("evil", "Ada \x1b[2Jgrows\nkale.")
    assert "• Ada [2Jgrows kale." in seen(add_fact(evil, "told"))


def test_the_list_of_nights_has_a_line_per_night_with_its_outcome() -> None:
    line: NightLine = {
        "id": "night_20260502_220000",
        "started": "2026-05-02T22:00:00+00:00",
        "complete": False,
        "status": "complete",
        "dry_run": False,
        "stopped": None,
        "left": 0,
        "operations": 1_234,
        "llm_calls": 5,
        "tokens": 6,
    }
    told = plain(nights_view([line, {**line, "status": "held"}], 2026))
    long: NightLine = {**line, "started": "2026-05-22T22:00:00+00:00", "tokens": 102_348}
    became = [{**long, "status": status} for status in get_args(NightStatus)]
    became += [{**long, "complete": True, "left": 3}, {**long, "complete": True, "stopped": "x"}]
    narrow = plain(nights_view(cast(list[NightLine], became), 2026), width=80).strip()
    assert len(narrow.splitlines()) == 2 + len(became), "each is one line on 80 columns"
    assert "  2 May 22:00  applied in part    1,234      5       6" in told
    assert "  2 May 2026 22:00  applied in part " in plain(nights_view([line], 2027))
    assert "held back" in told
    settled = plain(
        nights_view([{**line, "complete": True}, {**line, "complete": True, "left": 3}], 2026)
    )
    assert [row.split()[4:7] for row in settled.splitlines()[2:]] == [
        ["applied", "1,234", "5"],
        ["applied,", "3", "left"],
    ]
    assert "There has been no night yet" in plain(nights_view([], 2026))
