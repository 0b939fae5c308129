"""The goal tree."""

from datetime import UTC, datetime
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.errors import Refusal, StateError
from memory.planning import goals as rules
from memory.planning.goals import Goals, check_decomposable, decompose
from memory.records.records import Goal, GoalStatus, Priority

NOW = datetime(2025, 12, 6, 10, 0, tzinfo=UTC)
PAGE_SUBTASKS = [
    "Design layout",
    "Build structure",
    "Add furniture",
    "Create bartender",
    "Write descriptions",
]


def plus(
    goals: Goals, text: str, parent: str | None = None, *, priority: Priority = "medium"
) -> tuple[Goals, str]:
    where: Any = {"parent_id": parent, "tick": 42, "index": rules.next_index(goals, 0)}
    return rules.add(goals, description=text, priority=priority, now=NOW, **where)


def tavern() -> Goals:
    """A goal with its five subtasks: goal_42_0 and goal_42_1 to goal_42_5."""
    goals, _ = plus({}, "Build a complete tavern", priority="high")
    goals, _ = decompose(goals, "goal_42_0", PAGE_SUBTASKS, tick=42, index=1, now=NOW)
    return goals


def three_levels() -> Goals:
    goals, root = plus({}, "root")
    goals, middle = plus(goals, "middle", root)
    goals, _ = plus(goals, "side", root)
    goals, _ = plus(goals, "leaf", middle)
    goals, _ = plus(goals, "other leaf", middle)
    return goals


def test_a_new_goal_is_as_on_the_page() -> None:
    goals, goal_id = plus({}, "Build a complete tavern", priority="high")
    assert goal_id == "goal_42_0"
    assert goals == {
        "goal_42_0": {
            "id": "goal_42_0",
            "description": "Build a complete tavern",
            "priority": "high",
            "status": "active",
            "progress": 0,
            "created": "2025-12-06T10:00:00+00:00",
            "parent_id": None,
            "subtask_ids": [],
            "auto_generated": False,
        }
    }


def test_the_decomposition_of_the_page() -> None:
    goals = tavern()
    children = [f"goal_42_{index}" for index in range(1, 6)]
    assert goals["goal_42_0"]["subtask_ids"] == children
    assert [goals[one]["description"] for one in children] == PAGE_SUBTASKS
    assert {goals[one]["parent_id"] for one in children} == {"goal_42_0"}
    assert all(goals[one]["auto_generated"] for one in children)
    assert not goals["goal_42_0"]["auto_generated"]
    assert {goals[one]["priority"] for one in children} == {"high"}


Change = tuple[int, GoalStatus | None, int | None]
LEAF, TAVERN, LEVELS = plus({}, "A leaf")[0], tavern(), three_levels()
THREE = decompose(LEAF, "goal_42_0", list("abc"), tick=42, index=1, now=NOW)[0]


def done(*numbers: int, how: GoalStatus = "completed") -> list[Change]:
    return [(number, how, None) for number in numbers]


def changed(goals: Goals, changes: list[Change]) -> Goals:
    for number, status, progress in changes:
        goals = rules.update(goals, f"goal_42_{number}", status, progress)
    return goals


@pytest.mark.parametrize(
    ("goals", "changes", "standing"),
    [
        (TAVERN, done(1, 2), {0: "active 40", 1: "completed 100", 3: "active 0"}),
        (THREE, done(1), {0: "active 33"}),
        (THREE, done(1, 2), {0: "active 67"}),
        (LEVELS, [(3, None, 50)], {1: "active 25", 0: "active 12"}),
        (LEVELS, done(3, 4, 2), dict.fromkeys(range(5), "completed 100")),
        (LEVELS, [*done(3, 4, 2), (3, "active", 20)], {0: "active 80", 1: "active 60"}),
        (LEVELS, [*done(3, 4, 2), (3, "active", 20)], dict.fromkeys((2, 4), "completed 100")),
        (TAVERN, [*done(1), *done(3, 4, 5, how="abandoned")], {0: "active 50"}),
        (TAVERN, [*done(1), *done(3, 4, 5, 2, how="abandoned")], {0: "completed 100"}),
        (TAVERN, [(1, None, 50), *done(2, 3, 4, 5, 1, how="abandoned")], {0: "active 50"}),
        (TAVERN, [*done(2, 3, 4, 5, 1, how="abandoned"), (0, None, 60)], {0: "active 60"}),
        (LEVELS, [*done(3), *done(0, how="abandoned")], {3: "completed 100", 4: "abandoned 0"}),
        (LEVELS, done(0, how="abandoned"), dict.fromkeys(range(5), "abandoned 0")),
        (LEVELS, [*done(0, how="abandoned"), (4, "active", None)], {0: "active 0", 1: "active 0"}),
        (LEAF, [(0, None, 100)], {0: "active 100"}),
        (LEAF, [*done(0), (0, "active", 40)], {0: "active 40"}),
        (LEAF, [(0, None, 60), *done(0), (0, "active", None)], {0: "active 0"}),
        (LEAF, [*done(0), (0, "abandoned", None), (0, "active", None)], {0: "active 0"}),
        (LEAF, [(0, None, 60), (0, "abandoned", None), (0, "active", None)], {0: "active 60"}),
    ],
)
def test_changes_roll_up_and_down(
    goals: Goals, changes: list[Change], standing: dict[int, str]
) -> None:
    after = changed(goals, changes)
    told = {number: after[f"goal_42_{number}"] for number in standing}
    assert {n: f"{one['status']} {one['progress']}" for n, one in told.items()} == standing


@pytest.mark.parametrize(
    ("before", "change", "says"),
    [
        ([], (9, "active", None), "does not exist"),
        ([], (1, None, None), "Nothing to change"),
        ([], (1, None, 101), "out of range"),
        ([], (1, None, -1), "out of range"),
        ([], (1, None, True), "out of range"),
        ([], (0, None, 50), "computed from its subtasks"),
        ([], (0, "active", 50), "computed from its subtasks"),
        ([], (0, "completed", None), "open subtasks"),
        (done(1), (1, None, 40), "is completed"),
        (done(1, 2, 3, 4, 5), (0, "active", None), "because its subtasks are"),
    ],
)
def test_invalid_changes_are_refused_with_a_suggestion(
    before: list[Change], change: Change, says: str
) -> None:
    goals = changed(TAVERN, before)
    with pytest.raises(Refusal, match=says) as refused:
        changed(goals, [change])
    assert refused.value.result()["suggestion"]


def test_a_new_subtask_reopens_a_completed_goal() -> None:
    goals, root = plus({}, "root")
    goals = rules.update(goals, root, "completed", None)
    goals, _ = plus(goals, "one thing more", root)
    assert (goals[root]["status"], goals[root]["progress"]) == ("active", 0)


def test_a_goal_completed_again_is_listed_again_with_its_time() -> None:
    goals, goal_id = plus({}, "A leaf")
    done = rules.update(goals, goal_id, "completed", None)
    again = rules.update(done, goal_id, "active", None)
    later = datetime(2025, 12, 7, tzinfo=UTC)
    assert rules.completions(done, again, later) == []
    assert rules.completions(again, rules.update(again, goal_id, "completed", None), later) == [
        {"description": "A leaf", "timestamp": later.isoformat()}
    ]
    assert rules.completions(done, done, later) == []


def test_an_unknown_goal_is_answered_with_the_open_ones() -> None:
    goals = rules.update(tavern(), "goal_42_2", "completed", None)
    with pytest.raises(Refusal) as refused:
        rules.update(goals, "goal_1_1", "completed", None)
    assert refused.value.result()["available_goals"] == [
        f"goal_42_{index}" for index in (0, 1, 3, 4, 5)
    ]


def test_a_goal_needs_a_text_and_an_existing_parent() -> None:
    with pytest.raises(Refusal, match="description"):
        plus({}, " ")
    with pytest.raises(Refusal, match="does not exist"):
        plus({}, "child", "goal_1_1")
    abandoned = rules.update(tavern(), "goal_42_0", "abandoned", None)
    with pytest.raises(Refusal, match="abandoned"):
        plus(abandoned, "child", "goal_42_0")


@pytest.mark.parametrize("number", [0, 1, 2, 8])
def test_a_decomposition_outside_three_to_seven_is_refused(number: int) -> None:
    goals, goal_id = plus({}, "A goal")
    texts = [f"step {index}" for index in range(number)]
    with pytest.raises(Refusal, match="3-7") as refused:
        decompose(goals, goal_id, [*texts, " "], tick=42, index=1, now=NOW)
    assert refused.value.result()["suggestion"]
    assert list(goals) == [goal_id]


@pytest.mark.parametrize("number", [3, 7])
def test_three_and_seven_subtasks_are_taken(number: int) -> None:
    goals, goal_id = plus({}, "A goal")
    texts = [f"step {index}" for index in range(number)]
    goals, made = decompose(goals, goal_id, texts, tick=43, index=1, now=NOW)
    assert made == [f"goal_43_{index}" for index in range(1, number + 1)]


def test_a_goal_that_is_completed_or_has_open_subtasks_is_not_decomposed() -> None:
    goals, goal_id = plus({}, "A goal")
    with pytest.raises(Refusal, match="completed"):
        check_decomposable(rules.update(goals, goal_id, "completed", None), goal_id)
    with pytest.raises(Refusal, match="open subtasks") as refused:
        check_decomposable(tavern(), "goal_42_0")
    assert len(refused.value.result()["open_subtasks"]) == 5
    goals = tavern()
    for index in range(1, 6):
        goals = rules.update(goals, f"goal_42_{index}", "abandoned", None)
    goals, made = decompose(goals, "goal_42_0", list("abc"), tick=44, index=6, now=NOW)
    assert goals["goal_42_0"]["subtask_ids"][-3:] == made == ["goal_44_6", "goal_44_7", "goal_44_8"]


def test_an_index_is_never_used_again() -> None:
    assert rules.next_index({}, 0) == 0
    assert rules.next_index(tavern(), 6) == 6
    assert rules.next_index({}, 6) == 6
    by_hand = {"goal_1_9": cast(Goal, {"id": "goal_1_9"}), "mine": cast(Goal, {"id": "mine"})}
    assert rules.next_index(by_hand, 6) == 10


def test_only_completed_roots_are_completed_tasks_and_each_once() -> None:
    before = three_levels()
    goals = before
    tasks: list[Any] = []
    for one in ("goal_42_3", "goal_42_4", "goal_42_2", "goal_42_2"):
        after = rules.update(goals, one, "completed", None)
        tasks += rules.completions(goals, after, NOW)
        goals = after
    assert tasks == [{"description": "root", "timestamp": NOW.isoformat()}]
    assert rules.completions({}, goals, NOW) == tasks


def test_changed_gives_only_what_differs() -> None:
    before = tavern()
    after = rules.update(before, "goal_42_1", None, 10)
    assert set(rules.changed(before, after)) == {"goal_42_0", "goal_42_1"}
    assert rules.changed(before, before) == {}


def test_the_tree_is_sorted_by_priority_then_age() -> None:
    goals = three_levels()
    goals, _ = plus(goals, "urgent", priority="high")
    goals, _ = plus(goals, "someday", priority="low")
    for number in range(7, 12):
        goals, _ = plus(goals, f"number {number}")
    shuffled = dict(sorted(goals.items(), key=lambda row: row[1]["description"]))
    rows = [(depth, goal["description"]) for depth, goal in rules.tree(shuffled)]
    assert rows == [
        (0, "urgent"),
        (0, "root"),
        (1, "middle"),
        (2, "leaf"),
        (2, "other leaf"),
        (1, "side"),
        *((0, f"number {number}") for number in range(7, 12)),
        (0, "someday"),
    ]


def edited(goal_id: str, **values: Any) -> Goals:
    goals = three_levels()
    goals[goal_id] = cast(Goal, {**goals[goal_id], **values})
    return goals


def test_an_edit_by_hand_is_rolled_up() -> None:
    goals = rules.recompute(edited("goal_42_3", status="completed"))
    assert goals["goal_42_3"]["progress"] == 100
    assert [goals[f"goal_42_{index}"]["progress"] for index in (1, 0)] == [50, 25]
    goals = rules.recompute(edited("goal_42_0", progress=77, status="completed"))
    assert (goals["goal_42_0"]["status"], goals["goal_42_0"]["progress"]) == ("active", 0)


def test_a_goal_deleted_or_moved_by_hand_changes_its_parents_and_subtasks() -> None:
    goals = rules.recompute({id_: one for id_, one in three_levels().items() if id_ != "goal_42_1"})
    assert goals["goal_42_0"]["subtask_ids"] == ["goal_42_2"]
    assert goals["goal_42_3"]["parent_id"] is goals["goal_42_4"]["parent_id"] is None
    goals = rules.recompute(edited("goal_42_3", parent_id="goal_42_2", progress=80))
    assert goals["goal_42_1"]["subtask_ids"] == ["goal_42_4"]
    assert goals["goal_42_2"]["subtask_ids"] == ["goal_42_3"]
    assert goals["goal_42_0"]["progress"] == 40


@pytest.mark.parametrize(
    "goals",
    [
        edited("goal_42_0", parent_id="goal_42_3"),
        edited("goal_42_2", parent_id="goal_42_2"),
        edited("goal_42_3", progress=101),
        edited("goal_42_3", progress=True),
        edited("goal_42_3", progress=12.5),
        edited("goal_42_3", id="goal_1_1"),
    ],
)
def test_an_edit_that_breaks_the_tree_names_the_key(goals: Goals) -> None:
    with pytest.raises(StateError, match="goals"):
        rules.recompute(goals)


EDIT = st.tuples(
    st.integers(0, 11),
    st.sampled_from([None, "active", "completed", "abandoned"]),
    st.sampled_from([None, 0, 33, 100]),
    st.booleans(),
)


@given(st.lists(EDIT, max_size=25))
def test_after_any_sequence_the_tree_is_consistent(edits: list[Any]) -> None:
    goals: Goals = {}
    for place, status, progress, make in edits:
        ids = [*goals, None]
        chosen = ids[place % len(ids)]
        try:
            if make:
                goals, _ = plus(goals, "a goal", chosen)
            elif chosen is not None:
                goals = rules.update(goals, chosen, status, progress)
        except Refusal:
            continue
        assert rules.recompute(goals) == goals
        for goal in goals.values():
            assert goal["status"] != "completed" or goal["progress"] == 100
            parent = goals[goal["parent_id"]] if goal["parent_id"] else None
            if goal["status"] == "active" and parent is not None:
                assert parent["status"] == "active"
