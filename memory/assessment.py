"""Task assessment without a model: what a task is taken for, by visible rules. Pure.

Original-system, section 17. Fewer steps are recommended by class and not by score (a departure): a
short text ("Build a tavern") is often no small task. The scores' own table is for a model's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Literal, TypeAlias

from memory.event_class import event_class_of, words
from memory.models.words import sentences
from memory.records import Goal, Priority
from memory.tick import Assessment, EventClass
from memory.tokens import CRITICAL_AT, WARNING_AT, approximate_tokens

Kind: TypeAlias = Literal["event", "goal", "reflection"]
"""An event's text, the description of the goal in hand, or a look at the assistant's own work."""
Mode: TypeAlias = Literal["single_action", "react_loop", "plan_execute"]
Steps: TypeAlias = tuple[Mode | None, int | None]
"""A recommended mode and number of iterations; None: as many as are allowed."""

MOST_COMPLEX = 5
BY_SCORE: Mapping[int, Steps] = {
    1: ("single_action", 1),
    2: ("single_action", 1),
    3: ("react_loop", 3),
    4: ("react_loop", 5),
    5: (None, None),
}
"""What a complexity recommends that a model has judged."""

_BY_CLASS: Mapping[EventClass, Steps] = {
    "communication": ("single_action", 1),
    "building": ("react_loop", None),
    "observation": ("single_action", 1),
    "movement": ("single_action", 1),
    "query": ("react_loop", 2),
    "goal_action": ("react_loop", None),
    "unknown": (None, None),
}
_LENGTHS = (20, 60)
"""Tokens: beyond each, a text is one more complex."""
_PARTS = (2, 4)
"""Parts: from each on, a text is one more complex."""
_APART = re.compile(r"[,;\u3001\u3002\uff0c\uff1b]|\b(?:and|then)\b", re.IGNORECASE)
_WORD = re.compile(r"\w")
_SEVERAL_STEPS = """
    plan organise organize arrange prepare design develop research construct renovate migrate
    project campaign programme program festival phases stages steps
"""
_MULTI_STEP = frozenset(_SEVERAL_STEPS.split())


def assess(
    text: str | None,
    *,
    kind: Kind,
    goals: Mapping[str, Goal],
    percentage: float,
    recent_errors: int,
    names: Collection[str] = (),
    plannable: bool = False,
) -> Assessment:
    """Assess a text by its class and complexity; measure what else bears on the tick.

    Args:
        text: None where there is none.
        kind: What the text is.
        goals: All goals by id.
        percentage: Of the context limit that the prompt fills.
        recent_errors: Failures in a row.
        names: What the assistant is called.
        plannable: Whether the goal in hand may be broken down into steps first.
    """
    event_class, why = _class_of(text or "", kind, names)
    complexity, counted = complexity_of(text or "")
    mode, iterations = _BY_CLASS[event_class]
    if plannable and complexity == MOST_COMPLEX:
        mode = "plan_execute"
    pressure = _pressure(percentage)
    reasons = [
        f"Taken for {event_class}: {why}",
        f"complexity {complexity} of {MOST_COMPLEX} ({counted})",
        *([f"the context is {percentage:g} % full"] if pressure != "normal" else []),
        *([f"{recent_errors} failures in a row"] if recent_errors > 1 else []),
    ]
    return {
        "by": "heuristic",
        "event_class": event_class,
        "complexity": complexity,
        "recommended_mode": mode,
        "recommended_iterations": iterations,
        "recommend_confirm_dangerous": event_class == "building",
        "reasoning": "; ".join(reasons) + ".",
        "signals": {
            "token_pressure": pressure,
            "recent_errors": recent_errors,
            "event_class": event_class,
            "goal_urgency": _urgency(goals),
        },
    }


def complexity_of(text: str) -> tuple[int, str]:
    """(1..5, what was counted): 1, and one more for each of these.

    More than 20 tokens; more than 60; two parts or more; four or more; a word such as "plan" that
    stands for several steps. Parts are lines, sentences, and what commas, semicolons, "and" and
    "then" set apart.
    """
    tokens = approximate_tokens(text)
    pieces = [piece for one in sentences(text) for piece in _APART.split(one)]
    parts = sum(_WORD.search(piece) is not None for piece in pieces)
    several = next((word for word in words(text) if word in _MULTI_STEP), None)
    points = sum(tokens > length for length in _LENGTHS)
    points += sum(parts >= number for number in _PARTS) + (several is not None)
    counted = f"{tokens} tokens, {parts} {'part' if parts == 1 else 'parts'}"
    return min(1 + points, MOST_COMPLEX), counted + (f", '{several}'" if several else "")


def _class_of(text: str, kind: Kind, names: Collection[str]) -> tuple[EventClass, str]:
    match kind:
        case "goal":
            return "goal_action", "a goal is in hand"
        case "reflection":
            return "unknown", "a look at its own work"
        case _:
            return event_class_of(text, names)


def _pressure(percentage: float) -> Literal["normal", "high", "critical"]:
    """Ruling 6: one pair of thresholds."""
    if percentage >= CRITICAL_AT:
        return "critical"
    return "high" if percentage >= WARNING_AT else "normal"


def _urgency(goals: Mapping[str, Goal]) -> Priority:
    """The highest priority among the open goals; low where there is none."""
    found = {goal["priority"] for goal in goals.values() if goal["status"] == "active"}
    if "high" in found:
        return "high"
    return "medium" if "medium" in found else "low"
