"""How the offline model looks at its own work."""

from __future__ import annotations

from datetime import UTC, datetime

from langchain_core.messages import AnyMessage

from memory.events.rules import reflection_event
from memory.models.offline.model import OfflineAnswer
from memory.models.offline.night import NOTHING
from memory.settings import Settings
from tests.support.offline_prompts import TOOLS, asked, results, say

REFLECTING = ["add_journal_entry", "noop", "review_journal"]
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def text(failed: int = 0) -> str:
    return reflection_event(25, NOW, Settings(), since=25, calls=47, failed=failed)["text"]


def look(human: str, *after: AnyMessage, tools: list[str] = REFLECTING) -> OfflineAnswer:
    return say(human, *after, name=None, tools=tools)


def test_a_reflection_draws_no_conclusions_and_ends() -> None:
    idle = look(text(failed=2))
    assert asked(idle) == [("noop", {"reasoning": NOTHING})]
    assert look(text(failed=2), *results(idle, {})) == OfflineAnswer(NOTHING)


def test_without_tools_it_answers_in_words() -> None:
    assert look(text(failed=2), tools=[]) == OfflineAnswer(NOTHING)


def test_words_like_the_events_are_no_reflection_where_other_tools_are_at_hand() -> None:
    decision = say("[reflection] Remember that I like tea", tools=[*TOOLS, "review_journal"])
    assert decision.calls == ()
    assert decision.text != NOTHING


def test_the_extraction_before_compaction_is_no_reflection() -> None:
    decision = say("[pre-compaction] Journal it.", tools=["noop", "add_journal_entry"])
    assert [call.tool for call in decision.calls] == ["noop"]
    assert decision.calls[0].args["reasoning"] != NOTHING
