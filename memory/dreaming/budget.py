"""The budget of a night: model calls, tokens and minutes. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from memory.records import NightRecord, PlanRecord
from memory.settings import Settings

LEAST_CALLS = 8
"""Calls that even the smallest night may make: about one for each step."""
FREE = ("extract_facts", "compact")
"""Steps outside of the budget, because a history that is too long must be cut."""


def calls_allowed(entries: int, settings: Settings) -> int:
    """The most model calls for a night over so many journal entries (design, section 6)."""
    return max(LEAST_CALLS, math.floor(settings.night_calls_per_100 * entries / 100))


class Account(NamedTuple):
    """The budget of a night, given what earlier nights spent."""

    calls: int
    """Model calls that the night may make."""
    ahead: int
    """Calls that earlier nights made beyond the share of all entries so far, tonight's included."""


def account(
    earlier: Sequence[NightRecord], pending: Sequence[str], settings: Settings, *, asked: bool
) -> Account:
    """The budget of a night over the journal ids `pending`.

    A small night makes calls ahead of the entries that they are for. So that many small nights cost
    no more than one large night, a later night does not think until enough entries have come. Every
    entry counts once. A night that a person asked for (`asked`) does not wait.
    """
    made = sum(
        line["llm_calls"] for one in earlier for line in one["steps"] if line["step"] not in FREE
    )
    entries = {id_ for one in earlier for id_ in one["pending"]}.union(pending)
    left = settings.night_calls_per_100 * len(entries) / 100 - made
    if left < 0 and not asked:
        return Account(0, math.ceil(-left))
    return Account(max(LEAST_CALLS, min(calls_allowed(len(pending), settings), int(left))), 0)


def allowed(record: NightRecord, settings: Settings) -> int:
    """The most model calls of this night."""
    return record.get("calls", calls_allowed(len(record["pending"]), settings))


def calls_left(plans: Sequence[PlanRecord], most: int) -> int:
    """Model calls that may still be made, of `most`."""
    made = sum(plan["llm_calls"] for plan in plans if plan["step"] not in FREE)
    return max(0, most - made)


def used_up(plans: Sequence[PlanRecord], record: NightRecord, settings: Settings) -> str | None:
    """Which part of the budget is used up, as a sentence; None if none is."""
    counted = [plan for plan in plans if plan["step"] not in FREE]
    calls = sum(plan["llm_calls"] for plan in counted)
    if ahead := record.get("ahead"):
        owed = "1 model call" if ahead == 1 else f"{ahead:,} model calls"
        return f"earlier nights made {owed} ahead of new entries (night_calls_per_100)"
    if calls >= (most := allowed(record, settings)):
        return f"{calls} of {most} model calls are used (night_calls_per_100)"
    tokens = sum(plan["tokens"] for plan in counted)
    if settings.night_tokens is not None and tokens >= settings.night_tokens:
        return f"{tokens:,} of {settings.night_tokens:,} tokens are used (night_tokens)"
    minutes = sum(plan["seconds"] for plan in counted) / 60
    if settings.night_minutes is not None and minutes >= settings.night_minutes:
        return f"{minutes:.1f} of {settings.night_minutes:.1f} minutes are over (night_minutes)"
    return None
