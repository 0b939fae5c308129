"""BEAM's chats: read as conversations, and what is counted beside evidence recall."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import beam, locomo
from benchmarks.conversations import Question, questions, spoken


def chat() -> dict[str, Any]:
    """A chat in BEAM's form, made up."""
    said = [
        ("user", "2024-03-15T09:00:00+00:00", "My harp lessons are on Mondays."),
        ("assistant", "2024-03-15T09:01:00+00:00", "You could practise your harp on Sundays."),
        ("user", "2024-03-20T18:00:00+00:00", "My harp lessons moved to Thursdays."),
    ]
    return {
        "chat": 1,
        "messages": [
            {"id": number, "role": role, "at": at, "text": text}
            for number, (role, at, text) in enumerate(said)
        ],
        "questions": [
            {"category": "knowledge_update", "text": "When are my harp lessons?", "gold": [0, 2]},
            {"category": "advice", "text": "When could I practise?", "gold": [1]},
        ],
    }


def test_a_days_messages_are_a_session_and_the_users_can_be_read_alone() -> None:
    whole = beam.conversation_of(chat(), user_only=False)
    assert list(spoken(whole)) == ["D1:0", "D1:1", "D2:2"]
    alone = beam.conversation_of(chat(), user_only=True)
    assert list(spoken(alone)) == ["D1:0", "D2:2"]
    assert [one.gold for one in questions(alone)] == [["D1:0", "D2:2"]]
    assert [one.gold for one in questions(whole)] == [["D1:0", "D2:2"], ["D1:1"]]


def test_the_newest_of_updated_values_should_stand_first() -> None:
    asked = Question("", locomo.UPDATED, ["D1:0", "D2:2"])
    assert locomo.newest_first(asked, ["D2:2", "D1:0"]) == 1.0
    assert locomo.newest_first(asked, ["D1:0", "D2:2"]) == 0.0
    assert locomo.newest_first(asked, ["D2:2"]) == 1.0
    assert locomo.newest_first(asked, []) == 0.0


def test_a_prompt_holds_as_many_lines_as_its_tokens() -> None:
    turns = {f"D1:{number}": "word " * 500 for number in range(40)}
    first, last = Question("", 1, ["D1:0"]), Question("", 1, ["D1:39"])
    assert locomo.in_prompt(first, list(turns), turns) == 1.0
    assert locomo.in_prompt(last, list(turns), turns) == 0.0


def test_chats_are_lived_through_and_questioned(tmp_path: Path) -> None:
    data, out = tmp_path / "chats.json", tmp_path / "out.json"
    data.write_text(json.dumps([chat()]))
    said = ["--data", str(data), "--embedder", "offline", "--json", str(out)]
    assert beam.main(said) == 0
    found = json.loads(out.read_text())
    assert set(found) == {"user's messages", "all messages"}
    for rows in found.values():
        assert [row["system"] for row in rows] == [
            *("Circadian", "Circadian, offline", "dense, offline"),
            *("BM25 + dense, offline", "BM25"),
        ]
        for row in rows:
            assert row["recall"]["turn@10"]["all"] == 1.0
            assert locomo.NEWEST in row["recall"]


def test_a_file_of_another_form_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "chats.json"
    data.write_text('[{"chat": 1}]')
    assert beam.main(["--data", str(data)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "no list of chats" in line
