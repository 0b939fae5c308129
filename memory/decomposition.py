"""Decomposition of a goal into 3-7 subtasks (architecture-self-management, section 2). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from memory.errors import Refusal
from memory.goals import Goals, add, known, open_subtasks
from memory.records import Goal

FEWEST_SUBTASKS, MOST_SUBTASKS = 3, 7


def decompose(
    goals: Mapping[str, Goal],
    goal_id: str,
    descriptions: Sequence[str],
    *,
    tick: int,
    index: int,
    now: datetime,
) -> tuple[Goals, list[str]]:
    """Add 3-7 subtasks to a goal, with indices from `index` on; return all goals, and new ids.

    Raises:
        Refusal: `check_decomposable` refuses, or the number of subtasks is outside 3-7.
    """
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
