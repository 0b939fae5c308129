"""The briefing after a night: short, in order, and in plain words."""

from datetime import UTC, date
from typing import Any, cast

import pytest

from memory.night.briefing import changed, deadlines, doubt, lines_of, question, waiting, within
from memory.records import Briefing, OpenQuestion
from memory.records.operations import add_fact, link_facts, supersede_fact
from memory.records.records import Fact, NightRecord
from tests.support.night_memories import NOW, fact

TODAY = date(2026, 5, 3)


def told(**parts: Any) -> Briefing:
    made: Any = {"night": "n", "at": NOW, "changed": [], "questions": [], "deadlines": []}
    return cast(Briefing, {**made, "waiting": [], **parts})


def test_what_changed_is_counted_and_the_new_value_stands_before_the_old() -> None:
    old, new = fact("o", "The rent is 1,700 euros."), fact("n", "The rent is 1,900 euros.")
    mine = fact("m", "I moved to Oslo.", importance=1)
    same = fact("s", "Rent: 1,900 euros.")
    operations = [
        *(add_fact(one, "x") for one in (new, mine, same)),
        supersede_fact(old, "n", NOW, [], "x"),
        link_facts("n", "s", "duplicates", NOW, "x"),
        supersede_fact(same, "n", NOW, [], "x"),
    ]
    after: list[Fact] = [{**old, "invalid_at": NOW}, new, mine, {**same, "invalid_at": NOW}]
    assert changed(operations, {one["op"]: one for one in after}) == [
        "3 new facts, 1 outdated.",
        "The rent is 1,900 euros. (before: The rent is 1,700 euros.)",
        "Ada: I moved to Oslo.",
    ]
    assert changed([], {}) == []


def test_the_weightiest_changes_go_first_and_each_new_fact_is_told_once() -> None:
    was = {
        "a": fact("a", "Ruth has applied for a job.", importance=8),
        "b": fact("b", "Ruth is invited to an interview.", importance=9),
        "c": fact("c", "The meeting is on 14 June 2026.", importance=7),
        "d": fact("d", "Oskar brings 12 chairs.", importance=6),
    }
    now = {  # those noted awake have the importance that everything has at first
        "1": fact("1", "Oskar brings 8 chairs.", importance=5),
        "2": fact("2", "The meeting is on 19 June 2026.", importance=5),
        "3": fact("3", "Ruth got the job.", importance=9),
    }
    ended = {"a": "3", "b": "3", "c": "2", "d": "1"}
    operations = [supersede_fact(was[op], by, NOW, [], "x") for op, by in ended.items()]
    assert changed(operations, {**was, **now})[1:] == [
        "Ruth got the job. (before: Ruth has applied for a job.)",
        "The meeting is on 19 June 2026. (before: The meeting is on 14 June 2026.)",
        "Oskar brings 8 chairs. (before: Oskar brings 12 chairs.)",
    ]


@pytest.mark.parametrize(
    ("known", "since", "text", "told"),
    [
        # Within one night the oven comes on Friday, on Monday, on Friday after all.
        (False, None, "", "On Friday after all. (before: On Monday.)"),
        (True, None, "", "On Friday after all. (before: On Friday.)"),
        (True, "corrected", "On Sunday.", "On Sunday. (before: On Friday.)"),
        (True, "corrected", "On Friday.", None),
        (True, "taken back", "", None),
    ],
)
def test_what_was_replaced_in_its_turn_is_told_as_what_holds_now(
    known: bool, since: str | None, text: str, told: str | None
) -> None:
    a, b = fact("a", "On Friday."), fact("b", "On Monday.", valid_from=NOW)
    c, later = fact("c", "On Friday after all."), fact("d", text)
    operations = [
        *(add_fact(one, "x") for one in ((b, c) if known else (a, b, c))),
        supersede_fact(a, "b", NOW, [], "x"),
        supersede_fact(b, "c", NOW, [], "x"),
    ]
    gone = {"invalid_at": NOW}
    ended: list[Any] = [{**a, **gone, "superseded_by": "b"}, {**b, **gone, "superseded_by": "c"}]
    last: Any = {**c, **gone, "superseded_by": later["id"]} if since else c
    facts = {one["op"]: one for one in (*ended, last, *([later] if text else []))}
    lines = [told] if told else []
    assert changed(operations, facts)[1:] == lines


def test_what_an_owner_said_is_no_news_to_them() -> None:
    facts = {
        "a": fact("a", "Ada chairs the club.", speaker="Ada", importance=9),
        "b": fact("b", "The roof leaks.", speaker="Ben", importance=3),
    }
    operations = [add_fact(one, "x") for one in facts.values()]
    assert changed(operations, facts, ["Ada"])[1:] == ["The roof leaks.", "Ada chairs the club."]


def test_a_contradiction_is_a_question() -> None:
    new = fact("n", "The loan is taken.", speaker="Goran")
    assert question(new, fact("o", "Ada says there is no loan."))["text"] == (
        'Goran says: "The loan is taken." True? Ada says there is no loan.'
    )
    nobody = fact("o", "There is no loan.", speaker=None)
    assert question(new, nobody)["text"].endswith('True? It is noted: "There is no loan."')


def test_a_fact_in_doubt_is_a_question() -> None:
    budget = fact("b", "The budget is 900 euros.", speaker="Goran")
    asked = doubt(budget, fact("r", "The rent is 700 euros."))
    assert asked["text"] == (
        'Goran says: "The budget is 900 euros." Still so? '
        "It rests on what changed: The rent is 700 euros."
    )
    assert asked["facts"] == [budget["id"], fact("r", "")["id"]]


def test_dates_of_the_next_days_are_named_the_nearest_first() -> None:
    lease = fact("l", "The lease ends on 7 May 2026.")
    goals = ["Pay by 4 May 2026", "Plant in June 2026", "Late since 2 May 2026", "On 20 May 2026"]
    assert deadlines([(date(2026, 5, 7), lease)], goals, TODAY, UTC) == [
        "Tomorrow: Pay by 4 May 2026",
        "Thu 2026-05-07: The lease ends on 7 May 2026.",
    ]


def test_what_says_the_same_of_a_day_is_told_once() -> None:
    day, later = date(2026, 5, 7), "2026-05-02T09:00:00+00:00"
    old = fact("a", "The scroll is due on 7 May 2026.")
    rehearsal = fact("b", "Hana rehearses on 7 May 2026 at noon.")
    again = fact("c", "Hana rehearses in Porto on 7 May 2026 at noon.", valid_from=later)
    dated = [(day, old), (day, rehearsal), (day, again)]
    assert deadlines(dated, ["Carve the scroll by 7 May 2026"], TODAY, UTC) == [
        "Thu 2026-05-07: Carve the scroll by 7 May 2026",
        "Thu 2026-05-07: Hana rehearses in Porto on 7 May 2026 at noon.",
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Die Miete ist am Donnerstag, 7. Mai 2026 fällig.", "Zahnarzt: Donnerstag, 7. Mai 2026."),
        ("El alquiler vence el jueves 7 de mayo de 2026.", "Dentista: jueves 7 de mayo de 2026."),
        ("Le loyer est dû le jeudi 7 mai 2026.", "Dentiste : jeudi 7 mai 2026."),
    ],
)
def test_two_things_of_one_day_are_told_in_other_languages_too(one: str, other: str) -> None:
    dated = [(date(2026, 5, 7), fact(op, text)) for op, text in (("a", one), ("b", other))]
    assert len(deadlines(dated, [], TODAY, UTC)) == 2
    assert deadlines([], [one], TODAY, UTC) == [f"Thu 2026-05-07: {one}"]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("Hana cannot come on 5 May 2026; she comes on 7 May 2026 instead.", [7]),
        ("Hana kommt nicht am 5.5.2026, sondern am 7.5.2026.", [7]),
        ("Hana cannot come on 5 May 2026.", [5]),
        ("Hana comes on 5 May 2026 and on 7 May 2026.", [5, 7]),
    ],
)
def test_a_day_that_is_denied_for_another_is_not_coming_up(text: str, days: list[int]) -> None:
    named = [day for day in (5, 7) if f"{day} May" in text or f"{day}.5." in text]
    dated = [(date(2026, 5, day), fact("h", text)) for day in named]
    told = [line.partition(":")[0][-2:] for line in deadlines(dated, [], TODAY, UTC)]
    assert told == [f"{day:02}" for day in days]


def test_what_waits_is_counted_with_the_command_that_shows_it() -> None:
    held: Any = {"id": "n", "status": "held", "ended": NOW}
    records: list[NightRecord] = [held]
    assert waiting(records, approvals=1, aside=0, left=2) == [
        "1 question about a tool (circadian status)",
        "1 night held back (circadian nights)",
        "2 journal entries left for the next night",
    ]


def test_a_briefing_has_at_most_150_words_and_questions_go_first() -> None:
    long = " ".join(["word"] * 30)
    asked: OpenQuestion = {"text": long, "facts": ["a", "b"]}
    full = told(
        changed=[long] * 9, questions=[asked] * 9, deadlines=[long] * 9, waiting=["two words"] * 9
    )
    kept = within(full)
    words = " ".join(f"{heading} {' '.join(lines)}" for heading, lines in lines_of(kept)).split()
    assert len(words) <= 150
    assert len(kept["questions"]) == 2
    assert kept["waiting"][-1] == f"{len(full['questions']) - 2} more to settle, once these are"
    assert kept["deadlines"]
    assert lines_of(told()) == []
