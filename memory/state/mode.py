"""Updates of the whole state: falling asleep, waking, failures, goals edited by hand. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from memory.messages import history_share
from memory.planning import complete, completions, recompute
from memory.records import Loop, ModeChange, Report
from memory.settings import Settings
from memory.state.schema import SleepCause, Slumber, State, WakeCause


def filled(state: State, settings: Settings) -> float:
    """The share of the context that the history fills; 1 or more if it does not fit."""
    return history_share(state["messages"], state["calibration"], settings.max_context_tokens)


def counted_failure(state: State, loop: Loop) -> dict[str, Any]:
    """The state update for a model that gave no usable answer, which is a failure."""
    return {
        "loop": {**loop, "raised": loop["raised"] + 1},
        "consecutive_errors": state["consecutive_errors"] + 1,
    }


def fallen_asleep(state: State, now: datetime, why: SleepCause, reason: str) -> dict[str, Any]:
    """The state update for falling asleep, or for sleeping on for another reason.

    An agent that fell asleep by itself is taken over by its schedule at its hour, so that the end
    of its hours wakes it. A sleep that a person asked for is not: the clock overrules nobody.
    """
    stamp = now.isoformat()
    slumber, awake = state["slumber"], state["mode"] == "awake"
    by_itself = slumber["why"] in ("go_to_sleep", "fatigue")
    taken_over = why == "request" or (why == "schedule" and by_itself)
    after: Slumber = {
        "since": stamp if awake or taken_over else slumber["since"],
        "why": why if awake or taken_over else slumber["why"],
        "last_hour": stamp if why == "schedule" else slumber["last_hour"],
        "rested": slumber["rested"],
    }
    told = awake or (taken_over and slumber["why"] != why)
    changes = [_change(now, "sleep", why, reason)] if told else []
    return {
        "mode": "sleep",
        "phase": "compacting",
        "slumber": after,
        "sleep_wish": None,
        "report": reported(state["report"], changes),
    }


def woken(
    state: State, settings: Settings, now: datetime, why: WakeCause, reason: str
) -> dict[str, Any]:
    """The state update for waking: a new session with new metrics and caches."""
    asleep = state["mode"] == "sleep"
    share = filled(state, settings)
    after: Slumber = {**state["slumber"], "since": None, "why": None}
    changes = [_change(now, "awake", why, reason)] if asleep else []
    return {
        "mode": "awake",
        "phase": None,
        "metrics": {
            "session_start": now.isoformat(),
            "after_tick": state["tick"],
            "total_tool_calls": 0,
            "successful_calls": 0,
            "failed_calls": 0,
        },
        "tool_cache": {},
        "slumber": {**after, "rested": share} if asleep else after,
        "report": reported(state["report"], changes),
    }


def reported(report: Report, changes: list[ModeChange]) -> Report:
    """`report` with these mode changes appended."""
    return {**report, "mode_changes": [*report["mode_changes"], *changes]}


def _change(
    now: datetime, mode: Literal["awake", "sleep"], why: SleepCause | WakeCause, reason: str
) -> ModeChange:
    return {"at": now.isoformat(), "mode": mode, "why": why, "reason": reason}


def rolled_up(state: State, now: datetime) -> dict[str, Any]:
    """The state update that makes goals consistent after an edit by hand."""
    before = state["goals"]
    goals = recompute(before)
    if goals == before:
        return {}
    done = completions(before, goals, now)
    return {"goals": goals, "session_memory": complete(state["session_memory"], done)}
