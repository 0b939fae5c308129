"""Session memory."""

from copy import deepcopy
from datetime import UTC, datetime

import pytest

from memory.errors import Refusal
from memory.planning import session_memory as rules
from memory.records.records import SessionMemory

NOW = datetime(2025, 12, 6, 10, 0, tzinfo=UTC)


def memory(facts: int = 0, patterns: int = 0) -> SessionMemory:
    return {
        "key_facts": [f"Room {number} is empty" for number in range(facts)],
        "learned_patterns": [f"Door {number} sticks" for number in range(patterns)],
        "completed_tasks": [{"description": "Open the gate", "timestamp": "2025-12-01"}],
        "last_compacted": None,
    }


def test_a_pattern_goes_to_the_patterns() -> None:
    after, result = rules.add(memory(1, 1), "pattern", " Players prefer concise responses ")
    assert after["learned_patterns"] == ["Door 0 sticks", "Players prefer concise responses"]
    assert after["key_facts"] == ["Room 0 is empty"]
    assert (result["total_facts"], result["total_patterns"]) == (1, 2)


def test_a_known_item_is_not_added_twice() -> None:
    after, result = rules.add(memory(1), "fact", "room 0  IS empty")
    assert after == memory(1)
    assert result["added"] is None
    assert result["message"] == "Already known, not added twice: Room 0 is empty"
    assert result["total_facts"] == 1


def test_a_fact_may_also_be_a_pattern() -> None:
    _, result = rules.add(memory(1), "pattern", "Room 0 is empty")
    assert result["added"] == "Room 0 is empty"


def test_blank_content_is_refused() -> None:
    with pytest.raises(Refusal):
        rules.add(memory(), "fact", "  ")


def test_the_compaction_of_the_page() -> None:
    before = memory(8, 4)
    after, result = rules.compact(
        before,
        ["Alice is level 5 warrior", "Server has 10 active players"],
        ["Players explore before asking for help"],
        "Consolidated 8 facts about players into 2 key facts",
        NOW,
    )
    assert result == {
        "before": {"facts": 8, "patterns": 4},
        "after": {"facts": 2, "patterns": 1},
        "summary": "Consolidated 8 facts about players into 2 key facts",
    }
    assert after == {
        "key_facts": ["Alice is level 5 warrior", "Server has 10 active players"],
        "learned_patterns": ["Players explore before asking for help"],
        "completed_tasks": memory()["completed_tasks"],
        "last_compacted": NOW.isoformat(),
    }
    assert before == memory(8, 4)


def test_compacting_everything_away_is_refused() -> None:
    for standing in (memory(2), memory(1, 1)):
        with pytest.raises(Refusal) as refused:
            rules.compact(standing, [], [" "], "forget", NOW)
        assert refused.value.result()["suggestion"]
    after, _ = rules.compact(memory(), [], [], "nothing there", NOW)
    assert after["last_compacted"] == NOW.isoformat()


def test_a_list_may_become_empty() -> None:
    after, _ = rules.compact(memory(1, 1), ["Room 0 is full"], [], "one left", NOW)
    assert after["learned_patterns"] == []
    after, _ = rules.compact(memory(1), [], [], "Nothing.", NOW)
    assert after["key_facts"] == []


def test_the_guard_checks_every_item_of_a_compaction() -> None:
    before = memory(2, 2)
    kept = deepcopy(before)
    with pytest.raises(Refusal) as refused:
        rules.compact(before, ["The gate is shut"], ["I am patient", "We rest"], "s", NOW)
    assert refused.value.result()["rejected_content"] == ["I am patient", "We rest"]
    assert before == kept


def test_a_compaction_keeps_each_item_once() -> None:
    after, result = rules.compact(
        memory(3), ["Tea is liked", "tea  is liked", "", "Bread is liked"], [], "s", NOW
    )
    assert after["key_facts"] == ["Tea is liked", "Bread is liked"]
    assert result["after"] == {"facts": 2, "patterns": 0}


def test_completed_tasks_are_appended() -> None:
    after = rules.complete(memory(), [{"description": "Tavern", "timestamp": "2025-12-06"}])
    assert [task["description"] for task in after["completed_tasks"]] == ["Open the gate", "Tavern"]


def test_what_others_said_stays_word_for_word_unless_an_owner_compacts() -> None:
    said = {"Room 0 is empty": "Ben", "Room 1 is empty": "Carl"}
    before: SessionMemory = {**memory(2), "said_by": said}
    with pytest.raises(Refusal) as refused:
        rules.compact(before, ["The gate is open"], [], "s", NOW, by="Carl")
    assert refused.value.result()["lost"] == ["Room 0 is empty"]
    kept = ["Room 0 is empty", "The gate is open"]
    after, _ = rules.compact(before, kept, [], "s", NOW, by="Carl")
    assert after["said_by"] == {"Room 0 is empty": "Ben", "The gate is open": "Carl"}
    after, _ = rules.compact(before, ["The gate is open"], [], "s", NOW)
    assert after["key_facts"] == ["The gate is open"]


def test_what_an_owner_told_in_private_is_left_out_where_others_listen() -> None:
    told, _ = rules.add(memory(1), "fact", "Jonas and Lena have parted", private=True)
    told, _ = rules.add(told, "fact", "The gate opens at nine")
    assert told["private"] == ["Jonas and Lena have parted"]
    assert rules.without_private(told)["key_facts"] == ["Room 0 is empty", "The gate opens at nine"]
    # Whoever does not see it cannot drop it.
    seen, _ = rules.compact(told, ["The gate opens at nine"], [], "Less.", NOW)
    assert seen["key_facts"] == ["Jonas and Lena have parted", "The gate opens at nine"]
    assert seen["private"] == ["Jonas and Lena have parted"]
    # In private its rewording stays private, what others knew stays known, and it can go.
    texts = ["Jonas and his friend Lena have parted", "The gate opens at nine", "Lea is ill"]
    again, _ = rules.compact(told, texts, [], "Less.", NOW, private=True)
    assert again["private"] == [texts[0], texts[2]]
    gone, _ = rules.compact(told, texts[1:2], [], "Less.", NOW, private=True)
    assert "private" not in gone
    assert gone["key_facts"] == texts[1:2]


def test_a_corrected_item_leaves_no_name_behind() -> None:
    wrong, right = "Ana pays 500 euros rent.", "Ana pays 600 euros rent."
    told, _ = rules.add(memory(1), "fact", wrong, by="Ben", rests_on=["Mallory"])
    told, _ = rules.add(told, "pattern", right, rests_on=["Mallory"])
    after = rules.corrected(told, {"by": "Ruth", "texts": (wrong, right)}, ["Ruth"])
    assert after["key_facts"] == ["Room 0 is empty", right]
    assert not {"said_by", "origins"} & {*after}
