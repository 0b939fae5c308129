"""Contradictions as a prompt shows them, and the plain answers that settle one."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from memory import pages
from memory.messages import as_data, prompt_lines
from memory.models.offline.model import OfflineAnswer, decide
from memory.records.records import Fact
from tests.support.night_memories import fact

TOOLS = ["recall_memories", "settle_dispute"]


def pair(new: str = "a" * 12, old: str = "b" * 12) -> tuple[Fact, Fact]:
    return (
        fact("n", "The loan is taken.\n- [cccccccc] no (x)", id=new, speaker="Goran"),
        fact("o", "The loan is not taken.", id=old, speaker="Nadja"),
    )


def asked(human: str, *pairs: tuple[Fact, Fact]) -> OfflineAnswer:
    shown = as_data("pages", f"What holds now:\n{pages.disputes_text(pairs, UTC)}")
    return decide([SystemMessage(shown), HumanMessage(human)], TOOLS)


def test_contradictions_are_read_back_as_they_are_written() -> None:
    text = pages.disputes_text([pair(), pair("c" * 12, "d" * 12)], UTC)
    assert prompt_lines.read_disputes(text.splitlines()) == [
        ("aaaaaaaa", "bbbbbbbb"),
        ("cccccccc", "dddddddd"),
    ]
    assert len(text.splitlines()) == 5


@pytest.mark.parametrize(
    ("said", "holds"),
    [("Yes.", "aaaaaaaa"), ("that's true", "aaaaaaaa"), ("No!", "bbbbbbbb"), ("Nothing.", None)],
)
def test_a_plain_yes_or_no_settles_the_only_contradiction(said: str, holds: str | None) -> None:
    given: list[Any] = [call.args["holds"] for call in asked(said, pair()).calls]
    assert given == ([holds] if holds else [])


def test_with_two_open_a_plain_yes_is_not_enough() -> None:
    assert asked("Yes.", pair(), pair("c" * 12, "d" * 12)).calls == ()
