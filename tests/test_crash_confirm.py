"""A tick that asks a person, killed at any point: the tool runs once, and never unasked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from graph.handle import AsyncAgent
from memory import approvals, audit, inbox
from memory.store_access import list_items
from memory.tick import ParkedTick
from tests.agents import entries
from tests.crash_worker import START, Job, Point, Points, Run, running
from tests.scripted import logged_calls
from tests.workers import workers

LATER = "2026-03-02T11:00:00+00:00"
MOON = {"id": "e1", "text": "Launch to the moon", "sender": "Ada", "at": START}
MARS = {"id": "e2", "text": "Launch to Mars", "sender": "Ada", "at": START}
PLAN = {"id": "e0", "text": "Plan a launch", "sender": "Ada", "at": START}
AND_NOW = {"id": "e9", "text": "And now?", "sender": "Ada", "at": START}
TO_MARS = {"decision": "edit", "args": {"target": "Mars"}}


@dataclass(frozen=True)
class Story:
    """What a process is told, and what has come of it in the end."""

    inputs: list[Any]
    writes: tuple[int, int]
    """Durable writes: undisturbed, and on a server."""
    events: tuple[str, ...] = ("e1",)
    answer: Any = "yes"
    launched: tuple[str, ...] = ("the moon",)
    said: tuple[str, ...] = ("launched",)
    notes: tuple[str, ...] = ("e1",)
    """The events whose ticks wrote a note before they asked."""
    ticks: int = 1
    calls: int = 2
    asks: list[int] = field(default_factory=lambda: [1])
    """Places of the inputs that answer a question."""


APPROVED = Story([{"events": [MOON]}, {"resume": "yes"}], writes=(59, 57))
EDITED = replace(
    APPROVED,
    inputs=[{"events": [MOON]}, {"resume": TO_MARS}],
    answer=TO_MARS,
    launched=("Mars",),
)
REFUSED = replace(
    APPROVED,
    inputs=[{"events": [MOON]}, {"resume": "no"}],
    answer="no",
    launched=(),
    said=("refused",),
    writes=(55, 53),
)
OWN = Story(
    [{"events": [PLAN]}, {"request": "tick"}, {"resume": "yes"}],
    writes=(86, 86),
    events=("e0",),
    launched=("Venus",),
    said=("It is planned.", "launched"),
    notes=(),
    ticks=2,
    calls=4,
    asks=[2],
)
TWO = Story(
    [{"events": [MOON]}, {"events": [MARS]}, {"decide": [1, "yes"]}, {"decide": [0, "yes"]}],
    writes=(142, 136),
    events=("e1", "e2"),
    launched=("Mars", "the moon"),
    said=("launched", "launched"),
    notes=("e1", "e2"),
    ticks=2,
    calls=4,
    asks=[2, 3],
)
STORIES = {"approved": APPROVED, "edited": EDITED, "refused": REFUSED, "own": OWN, "two": TWO}
NEXT = ["a new message", "no input", "the answer again"]
