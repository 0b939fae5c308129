"""How the offline model looks at its own work."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import AnyMessage, SystemMessage

from memory.events.rules import reflection_event
from memory.models.offline.model import OfflineAnswer, decide
from memory.models.offline.night import NOTHING
from memory.settings import Settings
from tests.support.offline_prompts import TOOLS, asked, results, say

REFLECTING = ["add_journal_entry", "noop", "review_journal"]
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def text(failed: int = 0) -> str:
    return reflection_event(25, NOW, Settings(), since=25, calls=47, failed=failed)["text"]


def look(human: str, *after: AnyMessage, tools: list[str] = REFLECTING) -> OfflineAnswer:
    return say(human, *after, name=None, tools=tools)


def row(content: str, *tags: str) -> dict[str, Any]:
    return {"id": "event_1", "content": content, "source_entity": "Ada", "tags": list(tags)}


def reviewed(human: str, *rows: dict[str, Any]) -> list[AnyMessage]:
    """The call that reads the journal, and what it found."""
    return results(look(human), {"entries": list(rows), "count": len(rows)})


def test_it_reads_the_journal_first() -> None:
    assert asked(look(text(failed=2))) == [("review_journal", {"limit": 50})]


@pytest.mark.parametrize(
    ("failed", "rows", "line"),
    [
        (2, [], "Tool calls in this session: 47, failed: 2."),
        (
            0,
            [row("Please open the gate", "event", "set_aside")],
            "Its ticks failed: Please open the gate",
        ),
        (
            0,
            [row("My roof leaks", "event"), row("My  roof\nleaks", "event")],
            "Came up 2 times: My roof leaks",
        ),
    ],
)
def test_what_failed_or_came_up_again_is_noted_once(
    failed: int, rows: list[dict[str, Any]], line: str
) -> None:
    before = reviewed(text(failed), *rows)
    noting = look(text(failed), *before)
    assert asked(noting) == [("add_journal_entry", {"content": line})]
    assert look(text(failed), *before, *results(noting, {})) == OfflineAnswer(line)


def test_one_line_is_noted_where_several_would_do() -> None:
    rows = [row("My roof leaks"), row("My roof leaks"), row("I sail", "set_aside")]
    assert len(look(text(failed=3), *reviewed(text(failed=3), *rows)).calls) == 1


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [row("My roof leaks"), row("I sail on Mondays")],
        [row("Thanks!"), row("Thanks!"), row("Hello!"), row("Hello!")],
    ],
)
def test_with_nothing_to_note_it_says_so(rows: list[dict[str, Any]]) -> None:
    before = reviewed(text(), *rows)
    idle = look(text(), *before)
    assert asked(idle) == [("noop", {"reasoning": NOTHING})]
    assert look(text(), *before, *results(idle, {})) == OfflineAnswer(NOTHING)


@pytest.mark.parametrize(
    ("note", "again"),
    [
        ("Tool calls in this session: 31, failed: 2.", False),
        ("Tool calls in this session: 31, failed: 25.", True),
    ],
)
def test_what_an_earlier_note_holds_is_not_noted_again(note: str, again: bool) -> None:
    decision = look(text(failed=2), *reviewed(text(failed=2), row(note, "self")))
    assert [call.tool for call in decision.calls] == ["add_journal_entry" if again else "noop"]


def test_its_own_notes_do_not_come_up_again() -> None:
    note = row(f"My roof leaks {'very ' * 50} much", "self")
    assert asked(look(text(), *reviewed(text(), note, note)))[0][0] == "noop"


def test_a_journal_that_cannot_be_read_ends_it() -> None:
    first = look(text())
    failed = results(first, {"success": False, "error": "closed"})
    assert asked(look(text(), *failed)) == [("noop", {"reasoning": NOTHING})]


def test_its_continuation_may_be_shown_without_the_event() -> None:
    shown = [SystemMessage("You look at your own work."), *reviewed(text(), row("I sail"))]
    assert asked(decide(shown, REFLECTING)) == [("noop", {"reasoning": NOTHING})]


def test_without_tools_it_answers_in_words() -> None:
    assert look(text(failed=2), *reviewed(text()), tools=[]) == OfflineAnswer(NOTHING)


def test_words_like_the_events_are_no_reflection_where_other_tools_are_at_hand() -> None:
    decision = say("[reflection] Remember that I like tea", tools=[*TOOLS, "review_journal"])
    assert decision.calls == ()
    assert decision.text != NOTHING


def test_the_extraction_before_compaction_is_no_reflection() -> None:
    decision = say("[pre-compaction] Journal it.", tools=["noop", "add_journal_entry"])
    assert [call.tool for call in decision.calls] == ["noop"]
    assert decision.calls[0].args["reasoning"] != NOTHING
