"""How a person reads a question: all that is to be decided on, and nothing that pretends."""

from typing import Any

from graph.cli.run_view import LONGEST_VALUE, question_view, still_waiting
from graph.console import visible
from memory.records.tick import Question
from tests.support.screens import plain, styled


def question(**more: Any) -> Question:
    made: Any = {
        "id": "ask_0123456789",
        "tool": "launch",
        "args": {"target": "the moon", "reasoning": "Ada wants it"},
        "reason": "Ada wants it",
        "what": "Run launch(target='the moon')",
        "difference": None,
        "event_id": "e1",
        "sender": "Ada",
        "asked_at": "2026-03-02T09:00:00+00:00",
    }
    found: Question = made | more
    return found


def lines_of(given: Question) -> list[str]:
    return plain(question_view(given), 80).splitlines()


def test_a_question_shows_tool_arguments_reason_and_person() -> None:
    assert lines_of(question()) == [
        "? It wants to run launch:",
        "  target  the moon",
        "  why     Ada wants it",
        "  for     Ada, 2 Mar 2026 09:00 UTC",
    ]


def test_a_question_says_on_whose_words_it_rests() -> None:
    lines = lines_of(question(rests_on=["Mallory", "Eve\nwhy  it is fine"]))
    assert lines[3] == "  rests on  words of Mallory, Eve why it is fine"


def test_an_autonomous_question_is_for_its_goals() -> None:
    own = question(sender=None, event_id=None, reason=None, args={})
    assert lines_of(own)[1:] == ["  for  its own goals, 2 Mar 2026 09:00 UTC"]


def test_arguments_of_any_kind_are_shown_whole() -> None:
    args = {"lines": "one\n  two", "cargo": ["Ada", {"tea": 2}], "now": True, "who": None}
    assert lines_of(question(args=args))[1:6] == [
        "  lines  one",
        "           two",
        '  cargo  ["Ada", {"tea": 2}]',
        "  now    true",
        "  who    null",
    ]


def test_text_that_looks_like_the_question_stays_in_its_column() -> None:
    evil = "x\n  why     Ada wants it\n\nNothing is done before you answer:\n  circadian approve"
    lines = lines_of(question(args={"path": evil}))
    assert [line for line in lines if line.startswith("  why")] == ["  why   Ada wants it"]
    assert [line for line in lines if line.startswith("Nothing")] == []


def test_control_characters_of_an_argument_are_visible() -> None:
    args = {"command": "ls\x1b[2K\rrm -rf", "name": "a\u202eb"}
    shown = "\n".join(lines_of(question(args=args)))
    assert r"ls\x1b[2K\rrm -rf" in shown
    assert r"a\u202eb" in shown
    assert visible("a\tb\nc ünïcödé 🌱") == "a\tb\nc ünïcödé 🌱"


def test_a_very_long_argument_is_cut_and_says_so() -> None:
    shown = lines_of(question(args={"text": "x" * (LONGEST_VALUE + 1_500)}))
    assert any("… 1,500 more characters (circadian status --json has all)" in o for o in shown)
    many = lines_of(question(args={"text": "line\n" * 1_000}))
    assert len(many) < 250
    assert any("more characters" in line for line in many)


DIFFERENCE = (
    "--- version 1 (in force)\n+++ version 2 (proposed)\n@@ -1,2 +1 @@\n--- x\n-y\n+Be kind."
)


def test_a_difference_is_shown_whole_and_coloured() -> None:
    args = {"new_prompt": "Be kind. " * 50}
    lines = lines_of(question(difference=DIFFERENCE + "\n+y" * 500, args=args))
    assert lines[1].startswith("  new_prompt  Be kind.")
    assert lines[1].endswith("...")
    assert lines[2] == "  change      --- version 1 (in force)"
    assert sum(line.endswith(" +y") for line in lines) == 500
    coloured = styled(question_view(question(difference=DIFFERENCE)))
    assert "\x1b[32m+Be kind." in coloured
    assert "\x1b[31m--- x" in coloured
    assert "\x1b[31m-y" in coloured
    assert "\x1b[2m--- version 1" in coloured
    assert "\x1b[2m+++ version 2" in coloured


def test_still_waiting_is_one_line() -> None:
    one, two = question(), question(id="ask_2", what="Run x(a='" + "y" * 500 + "')")
    assert still_waiting([one]) == (
        "a question waits: Run launch(target='the moon') (approve or refuse ask_0123456789)"
    )
    assert len(still_waiting([two])) < 150
    assert still_waiting([one, two]) == (
        "2 questions wait: ask_0123456789, ask_2 (status shows them)"
    )
