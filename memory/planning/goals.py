"""Goals: a tree whose progress is computed from its leaves. Pure.

A change that the rules do not allow raises Refusal. `parent_id` defines the tree; `subtask_ids`
orders siblings. A goal can be decomposed into 3-7 subtasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias, cast

from memory.errors import Refusal, StateError
from memory.records import CompletedTask, Goal, GoalStatus, Marks, Priority

Goals: TypeAlias = dict[str, Goal]
FEWEST_SUBTASKS, MOST_SUBTASKS = 3, 7
_ORDER: Mapping[Priority, int] = {"high": 0, "medium": 1, "low": 2}


def add(
    goals: Mapping[str, Goal],
    *,
    description: str,
    priority: Priority,
    parent_id: str | None,
    tick: int,
    index: int,
    now: datetime,
    auto_generated: bool = False,
    marks: Marks | None = None,
) -> tuple[Goals, str]:
    """Add a goal `goal_{tick}_{index}`, index from `next_index`; return all goals and its id."""
    goal_id = f"goal_{tick}_{index}"
    if not description.strip():
        raise Refusal("A goal needs a description", "Say in one sentence what is to be reached.")
    after: Goals = dict(goals)
    if parent_id is not None:
        parent = known(goals, parent_id)
        for above in (parent, *_ancestors(goals, parent_id)):
            if above["status"] == "abandoned":
                named = f"Goal {above['id']} is abandoned"
                raise Refusal(named, "Reopen it with status='active' first.")
        after[parent_id] = {**parent, "subtask_ids": [*parent["subtask_ids"], goal_id]}
    after[goal_id] = {
        "id": goal_id,
        "description": description.strip(),
        "priority": priority,
        "status": "active",
        "progress": 0,
        "created": now.isoformat(),
        "parent_id": parent_id,
        "subtask_ids": [],
        "auto_generated": auto_generated,
    }
    if marks:
        public_lines = lines_of(description).intersection(marks.get("public", ()))
        after[goal_id] = {**after[goal_id], **marks, "public": sorted(public_lines)}
    return _rolled_up(after, goal_id), goal_id


def reword(goals: Mapping[str, Goal], goal_id: str, description: str, marks: Marks) -> Goals:
    """Give a goal another text, such as a new day. `marks`: of the text; the goal's `by` stays."""
    goal = known(goals, goal_id)
    if not description.strip():
        raise Refusal("A goal needs a description", "Say in one sentence what is to be reached.")
    rests = {key: value for key, value in marks.items() if key != "by"}
    return {**goals, goal_id: cast(Goal, {**goal, **rests, "description": description.strip()})}


def is_public(marks: Marks, text: str) -> bool:
    """Whether others than owners may know this text; a text without marks is private."""
    return lines_of(text) <= {*marks["public"]} if "public" in marks else "by" in marks


def lines_of(text: str) -> set[str]:
    """The lines of a text, stripped, without blank lines."""
    return {line.strip() for line in text.splitlines() if line.strip()}


def public_part(goals: Mapping[str, Goal]) -> Goals:
    """The goals that others than owners may know; subtasks of a hidden goal become roots."""
    shown = {id_: goal for id_, goal in goals.items() if is_public(goal, goal["description"])}
    return {
        id_: {
            **goal,
            "parent_id": goal["parent_id"] if goal["parent_id"] in shown else None,
            "subtask_ids": [one for one in goal["subtask_ids"] if one in shown],
        }
        for id_, goal in shown.items()
    }


def update(
    goals: Mapping[str, Goal], goal_id: str, status: GoalStatus | None, progress: int | None
) -> Goals:
    """Give a goal a new status, a new progress (0..100), or both; return all goals.

    Completing sets 100. Reopening a goal at 100 sets 0 unless a progress is given, because its
    earlier progress is unknown. Reopening a subtask reopens its ancestors. Abandoning a goal
    abandons its open subtasks.
    """
    goal = known(goals, goal_id)
    _check_change(goals, goal, status, progress)
    after: Goals = dict(goals)
    if status == "completed":
        progress = 100
    elif status == "active" and goal["status"] != "active" and goal["progress"] == 100:
        progress = progress or 0
    after[goal_id] = {
        **goal,
        "status": status or goal["status"],
        "progress": goal["progress"] if progress is None else progress,
    }
    if status == "active":
        for ancestor in _ancestors(goals, goal_id):
            after[ancestor["id"]] = {**ancestor, "status": "active"}
    elif status == "abandoned":
        for other in _descendants(goals, goal_id):
            if other["status"] == "active":
                after[other["id"]] = {**other, "status": "abandoned"}
        below = {other["id"] for other in _descendants(goals, goal_id)}
        for _, other in reversed(tree(after)):
            if other["id"] in below:
                after[other["id"]] = _rolled(after, after[other["id"]])
    return _rolled_up(after, goal_id)


def recompute(goals: Mapping[str, Goal]) -> Goals:
    """Make goals consistent after an edit by hand: tree, completed leaves at 100, rollup.

    A goal without its parent becomes a root. Raises StateError for what cannot be mended.
    """
    after: Goals = {}
    for key, goal in goals.items():
        if goal["id"] != key:
            raise StateError(f"goals: the goal under {key!r} has the id {goal['id']!r}")
        if not _percentage(goal["progress"]):
            raise StateError(f"goals: progress of {key} is {goal['progress']}; it must be 0 to 100")
        parent_id = goal["parent_id"] if goal["parent_id"] in goals else None
        progress = 100 if goal["status"] == "completed" else goal["progress"]
        after[key] = {**goal, "parent_id": parent_id, "progress": progress}
    for key, goal in after.items():
        after[key] = {**goal, "subtask_ids": [child["id"] for child in _children(after, key)]}
    for _, goal in reversed(tree(after)):
        after[goal["id"]] = _rolled(after, after[goal["id"]])
    return after


def completions(
    before: Mapping[str, Goal], after: Mapping[str, Goal], now: datetime
) -> list[CompletedTask]:
    """The root goals completed between `before` and `after`; one completed again counts again."""
    return [
        {"description": goal["description"], "timestamp": now.isoformat()}
        for goal_id, goal in changed(before, after).items()
        if goal["parent_id"] is None
        and goal["status"] == "completed"
        and (goal_id not in before or before[goal_id]["status"] != "completed")
    ]


def changed(before: Mapping[str, Goal], after: Mapping[str, Goal]) -> Goals:
    """The goals of `after` that are new or changed."""
    return {goal_id: goal for goal_id, goal in after.items() if before.get(goal_id) != goal}


def tree(goals: Mapping[str, Goal]) -> list[tuple[int, Goal]]:
    """All goals with their depth (roots 0), each before its subtasks, by priority, then age.

    Raises StateError: goals form a cycle.
    """
    roots = [goal for goal in goals.values() if goal["parent_id"] not in goals]
    roots.sort(key=lambda goal: (_ORDER[goal["priority"]], _age(goal)))
    rows: list[tuple[int, Goal]] = []
    waiting = [(0, goal) for goal in reversed(roots)]
    while waiting:
        depth, goal = waiting.pop()
        rows.append((depth, goal))
        waiting += [(depth + 1, child) for child in reversed(_children(goals, goal["id"]))]
    if len(rows) < len(goals):
        lost = ", ".join(sorted(goals.keys() - {goal["id"] for _, goal in rows}))
        raise StateError(f"goals: parent_id leads in a circle at {lost}")
    return rows


def in_hand(goals: Mapping[str, Goal]) -> Goal | None:
    """The goal to work on: active, no open subtasks, highest priority, first in the tree."""
    leaves = [
        goal
        for _, goal in tree(goals)
        if goal["status"] == "active"
        and not open_subtasks(goals, goal["id"])
        and all(above["status"] == "active" for above in _ancestors(goals, goal["id"]))
    ]
    return min(leaves, key=lambda goal: _ORDER[goal["priority"]], default=None)


def next_index(goals: Mapping[str, Goal], counter: int) -> int:
    """Index of the next goal: the agent's counter, or past the ids made by hand."""
    return max([counter, *(_index(goal_id) + 1 for goal_id in goals)])


def known(goals: Mapping[str, Goal], goal_id: str) -> Goal:
    """The goal with this id. Raises Refusal, which lists the open goals."""
    if goal_id not in goals:
        raise Refusal(
            f"Goal does not exist: '{goal_id}'",
            "Choose one of available_goals, or make it with add_goal.",
            available_goals=[g["id"] for _, g in tree(goals) if g["status"] == "active"],
        )
    return goals[goal_id]


def open_subtasks(goals: Mapping[str, Goal], goal_id: str) -> list[str]:
    """Ids of the goal's active subtasks."""
    return [child["id"] for child in _children(goals, goal_id) if child["status"] == "active"]


def _check_change(
    goals: Mapping[str, Goal], goal: Goal, status: GoalStatus | None, progress: int | None
) -> None:
    if status is None and progress is None:
        raise Refusal("Nothing to change", "Give a description, status or progress.")
    if progress is not None and not _percentage(progress):
        raise Refusal(f"Progress {progress} is out of range", "Give a percentage from 0 to 100.")
    if progress is not None and _counted(goals, goal):
        raise Refusal(
            f"Progress of {goal['id']} is computed from its subtasks",
            "Update its subtasks; their mean is its progress.",
            subtasks=goal["subtask_ids"],
        )
    if status == "completed" and (still_open := open_subtasks(goals, goal["id"])):
        raise Refusal(
            f"Goal {goal['id']} has open subtasks",
            "Complete or abandon them; then it is completed by itself.",
            open_subtasks=still_open,
        )
    if status == "active" and goal["status"] == "completed" and _counted(goals, goal):
        raise Refusal(
            f"Goal {goal['id']} is completed because its subtasks are",
            "Reopen one of them, or add one; then it is open again.",
            subtasks=goal["subtask_ids"],
        )
    if status is None and goal["status"] == "completed" and progress != 100:
        raise Refusal(
            f"Goal {goal['id']} is completed",
            "Give status='active' with the progress to reopen it.",
        )


def _percentage(progress: object) -> bool:
    return type(progress) is int and 0 <= progress <= 100


def _rolled_up(goals: Goals, goal_id: str) -> Goals:
    after = dict(goals)
    for goal in [goals[goal_id], *_ancestors(goals, goal_id)]:
        after[goal["id"]] = _rolled(after, after[goal["id"]])
    return after


def _rolled(goals: Mapping[str, Goal], goal: Goal) -> Goal:
    """Compute a goal from its subtasks that are not abandoned: their mean; completed if all are."""
    counted = _counted(goals, goal)
    if not counted:
        return goal
    status = goal["status"]
    if status != "abandoned":
        all_done = all(subtask["status"] == "completed" for subtask in counted)
        status = "completed" if all_done else "active"
    progress = round(sum(subtask["progress"] for subtask in counted) / len(counted))
    return {**goal, "status": status, "progress": progress}


def _counted(goals: Mapping[str, Goal], goal: Goal) -> list[Goal]:
    """Subtasks that count towards progress; without any the goal keeps its own."""
    subtasks = [goals[id_] for id_ in goal["subtask_ids"] if id_ in goals]
    return [subtask for subtask in subtasks if subtask["status"] != "abandoned"]


def _children(goals: Mapping[str, Goal], goal_id: str) -> list[Goal]:
    listed = {id_: place for place, id_ in enumerate(goals[goal_id]["subtask_ids"])}
    mine = [goal for goal in goals.values() if goal["parent_id"] == goal_id]
    return sorted(mine, key=lambda goal: (listed.get(goal["id"], len(listed)), _age(goal)))


def _ancestors(goals: Mapping[str, Goal], goal_id: str) -> Iterator[Goal]:
    above = goals[goal_id]["parent_id"]
    while above is not None and above in goals:
        yield goals[above]
        above = goals[above]["parent_id"]


def _descendants(goals: Mapping[str, Goal], goal_id: str) -> Iterator[Goal]:
    for child in _children(goals, goal_id):
        yield child
        yield from _descendants(goals, child["id"])


def _age(goal: Goal) -> tuple[str, int]:
    return goal["created"], _index(goal["id"])


def _index(goal_id: str) -> int:
    """Index in an id; -1 in an id made by hand without one."""
    index = goal_id.rpartition("_")[2]
    return int(index) if index.isdecimal() else -1


def decompose(
    goals: Mapping[str, Goal],
    goal_id: str,
    descriptions: Sequence[str],
    *,
    tick: int,
    index: int,
    now: datetime,
    marks: Marks | None = None,
) -> tuple[Goals, list[str]]:
    """Add 3-7 subtasks to a goal, with indices from `index` on; return all goals, and new ids."""
    parent = check_decomposable(goals, goal_id)
    texts = [text.strip() for text in descriptions if text.strip()]
    if not FEWEST_SUBTASKS <= len(texts) <= MOST_SUBTASKS:
        raise Refusal(
            f"A goal is decomposed into 3-7 subtasks, not {len(texts)}",
            "Call decompose_goal again, or add the subtasks with add_goal and parent_id.",
        )
    after, made = dict(goals), []
    for offset, text in enumerate(texts):
        after, child = add(
            after,
            description=text,
            priority=parent["priority"],
            parent_id=goal_id,
            tick=tick,
            index=index + offset,
            now=now,
            auto_generated=True,
            marks=marks,
        )
        made.append(child)
    return after, made


def check_decomposable(goals: Mapping[str, Goal], goal_id: str) -> Goal:
    """Return the goal if it is active and has no open subtasks; raise Refusal otherwise."""
    goal = known(goals, goal_id)
    if goal["status"] != "active":
        raise Refusal(
            f"Goal {goal_id} is {goal['status']}",
            "Reopen it with update_goal(status='active'), or decompose another goal.",
        )
    if still_open := open_subtasks(goals, goal_id):
        raise Refusal(
            f"Goal {goal_id} has open subtasks",
            "Complete or abandon them first, or decompose one of them.",
            open_subtasks=still_open,
        )
    return goal
