"""Task assessment by visible rules, without a model: class, complexity, recommended mode. Pure.

The class of a task, and not its complexity, recommends fewer steps, because a short text ("Build a
tavern") is often a large task. The table by complexity serves assessments by a model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Literal, TypeAlias

from memory.records import Assessment, EventClass, Goal, Priority
from memory.text import (
    CRITICAL_AT,
    WARNING_AT,
    approximate_tokens,
    is_small_talk,
    sentences,
    spoken_words,
)

_BUILDING = frozenset({"spawn", "create", "build", "destroy"})
_GOALS = frozenset({"goal", "goals", "task", "tasks", "complete"})
_ASKING = "what what's who who's whom whose where where's when when's which why how how's"
_VERBS = "is are am was were do does did has have had"

_SUBJECTS = """
    i you he she it we they the a an this that these those there my your his her our their
    anybody anyone anything somebody someone something everybody everyone everything
"""

_PROPOSING = re.compile(r"(?:what|how) about\b|what if\b|why (?:not|don't)\b")

_REQUESTING = """
    please can could would will let's let remember remind note add make write set send save record
    update change start switch delegate plan store keep
"""

_QUESTION = re.compile(
    rf"(?:{'|'.join(_ASKING.split())}|(?:{'|'.join(_VERBS.split())}) "
    rf"(?:{'|'.join(_SUBJECTS.split())}))(?: |$)"
)

_REQUEST_WORDS = frozenset(_REQUESTING.split())

_LONGEST_QUESTION = 30
"""Words; a longer text is more than a question."""


def event_class_of(text: str, names: Collection[str] = ()) -> tuple[EventClass, str]:
    """The class of a text, by the first rule that fits, and why. `names`: the assistant's."""
    called = {name.casefold() for name in names}
    for event_class, rule in _RULES:
        if (why := rule(text, called)) is not None:
            return event_class, why
    return "unknown", "nothing shows what it asks for"


def _communication(text: str, names: Collection[str]) -> str | None:
    """Chit-chat that asks nothing: no question, and no mere yes, which may answer one."""
    return "greeting, thanks or small talk only" if is_small_talk(text, names) else None


def _query(text: str, names: Collection[str]) -> str | None:
    """Only questions, with or without small talk; no statement, proposal or request."""
    parts = [part for part in sentences(text) if not is_small_talk(part, names)]
    said = spoken_words(text)
    if not parts or len(said) > _LONGEST_QUESTION or _REQUEST_WORDS.intersection(said):
        return None
    return "it only asks a question" if all(map(_is_question, parts)) else None


_RULES: tuple[tuple[EventClass, Callable[[str, Collection[str]], str | None]], ...] = (
    ("communication", _communication),
    ("building", lambda text, _: _says(text, _BUILDING)),
    ("goal_action", lambda text, _: _says(text, _GOALS)),
    ("query", _query),
)


def _says(text: str, keywords: Collection[str]) -> str | None:
    found = next((word for word in spoken_words(text) if word in keywords), None)
    return f"it says '{found}'" if found else None


def _is_question(sentence: str) -> bool:
    """Whether it ends and begins as an English question ("was" is also a German word)."""
    said = " ".join(spoken_words(sentence))
    if not sentence.rstrip("\"') ").endswith("?") or _PROPOSING.match(said):
        return False
    return _QUESTION.match(said) is not None


Kind: TypeAlias = Literal["event", "goal", "reflection"]
"""Whether the text is an event's, describes the goal in hand, or starts a reflection."""

Mode: TypeAlias = Literal["single_action", "react_loop", "plan_execute"]

Steps: TypeAlias = tuple[Mode | None, int | None]
"""Recommended mode and iterations; None leaves them to the settings."""

MOST_COMPLEX = 5

BY_SCORE: Mapping[int, Steps] = {
    1: ("single_action", 1),
    2: ("single_action", 1),
    3: ("react_loop", 3),
    4: ("react_loop", 5),
    5: (None, None),
}
"""Recommendation by a complexity that a model has judged."""

_BY_CLASS: Mapping[EventClass, Steps] = {
    "communication": ("single_action", 1),
    "building": ("react_loop", None),
    "query": ("react_loop", 2),
    "goal_action": ("react_loop", None),
    "unknown": (None, None),
}

_LENGTHS = (20, 60)
"""Tokens; each limit exceeded adds 1 to the complexity."""

_PARTS = (2, 4)
"""Parts; each number reached adds 1 to the complexity."""

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
    """Assess a tick: class and complexity of its text, and signals from the state.

    `percentage`: how full the context is. `recent_errors`: failures in a row. `names`: the
    assistant's. `plannable`: whether the goal in hand may be decomposed first.
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
    """The complexity of a text (1..5), and what was counted.

    It is 1, plus 1 for each of: more than 20 tokens; more than 60; two parts or more; four or more;
    a word for several steps, such as "plan". "And" and punctuation separate parts.
    """
    tokens = approximate_tokens(text)
    pieces = [piece for one in sentences(text) for piece in _APART.split(one)]
    parts = sum(_WORD.search(piece) is not None for piece in pieces)
    several = next((word for word in spoken_words(text) if word in _MULTI_STEP), None)
    points = sum(tokens > length for length in _LENGTHS)
    points += sum(parts >= number for number in _PARTS) + (several is not None)
    counted = f"{tokens} tokens, {parts} {'part' if parts == 1 else 'parts'}"
    return min(1 + points, MOST_COMPLEX), counted + (f", '{several}'" if several else "")


def _class_of(text: str, kind: Kind, names: Collection[str]) -> tuple[EventClass, str]:
    match kind:
        case "goal":
            return "goal_action", "a goal is in hand"
        case "reflection":
            return "unknown", "a review of its own work"
        case _:
            return event_class_of(text, names)


def _pressure(percentage: float) -> Literal["normal", "high", "critical"]:
    if percentage >= CRITICAL_AT:
        return "critical"
    return "high" if percentage >= WARNING_AT else "normal"


def _urgency(goals: Mapping[str, Goal]) -> Priority:
    found = {goal["priority"] for goal in goals.values() if goal["status"] == "active"}
    if "high" in found:
        return "high"
    return "medium" if "medium" in found else "low"
