"""What a night may spend: model calls, tokens and minutes. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from memory.records import PlanRecord
from memory.settings import Settings

LEAST_CALLS = 8
"""Calls that even the smallest night may make: one of each step."""
FREE = ("extract_facts", "compact")
"""Steps that are outside of the budget: a history that is too long must be cut."""


def calls_allowed(entries: int, settings: Settings) -> int:
    """Model calls of a night that set out with so many journal entries (design, section 6)."""
    return max(LEAST_CALLS, math.floor(settings.night_calls_per_100 * entries / 100))


def calls_left(plans: Sequence[PlanRecord], entries: int, settings: Settings) -> int:
    """Model calls that may still be made."""
    made = sum(plan["llm_calls"] for plan in plans if plan["step"] not in FREE)
    return max(0, calls_allowed(entries, settings) - made)


def used_up(plans: Sequence[PlanRecord], entries: int, settings: Settings) -> str | None:
    """Why the night stops at this step's end; None while there is something left."""
    counted = [plan for plan in plans if plan["step"] not in FREE]
    calls = sum(plan["llm_calls"] for plan in counted)
    if calls >= (most := calls_allowed(entries, settings)):
        return f"{calls} of {most} model calls are used (night_calls_per_100)"
    tokens = sum(plan["tokens"] for plan in counted)
    if settings.night_tokens is not None and tokens >= settings.night_tokens:
        return f"{tokens:,} of {settings.night_tokens:,} tokens are used (night_tokens)"
    minutes = sum(plan["seconds"] for plan in counted) / 60
    if settings.night_minutes is not None and minutes >= settings.night_minutes:
        return f"{minutes:.1f} of {settings.night_minutes:.1f} minutes are over (night_minutes)"
    return None
