"""The audit log: what was done, when, by whom, why, and how it went. Append-only.

Store namespaces (below `(user, thread)`): `audit` day -> {} · `audit/<YYYYMMDD>` key ->
AuditEntry, a day (UTC) each, so that no read scans everything. The `of_` functions are pure: they
tell what happened, without secrets and bounded in size. Nothing here changes or removes an entry.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, cast

from langgraph.store.base import BaseStore, PutOp
from typing_extensions import TypedDict

from memory.models.retry import safe
from memory.records import Goal
from memory.redaction import bounded, redacted
from memory.scope import Scope
from memory.state import AssistantPrompt
from memory.store_access import list_items, write_batch
from memory.tick import CallRecord, Decision, Loop, Question

AUDIT = "audit"
AGENT = "agent"
"""Who did it, where it was the assistant itself."""
STOP = "emergency stop"
MOST_DETAIL = 2_000
"""Characters of an entry's detail, as JSON."""

What = Literal[
    "tool_call",
    "goal_created",
    "goal_updated",
    "goal_completed",
    "goal_deleted",
    "fact_corrected",
    "prompt_changed",
    "prompt_rolled_back",
    "question_asked",
    "question_answered",
    "emergency_stop",
    "stop_cleared",
    "fell_asleep",
    "woke",
    "night",
    "undo",
    "compaction",
]
Outcome = Literal["ok", "error", "refused", "cached"]

log = logging.getLogger("circadian.audit")


class AuditEntry(TypedDict):
    """One thing that happened."""

    id: str
    """`audit_<YYYYMMDD>_<digest>`, of what happened: told twice, it is one entry."""
    at: str
    """ISO 8601, UTC."""
    who: str
    """`agent`, or the id of the person."""
    what: What
    target: str
    """What it was done to: a tool, a goal's id, a version of the prompt, a night's id."""
    why: str | None
    """The reason given; for a tool call the model's own."""
    outcome: Outcome
    detail: dict[str, Any]
    """More about it, JSON, at most MOST_DETAIL characters."""
    duration_ms: int | None
    model: str | None
    tick: int | None
    origin: str | None
    """The id of the event or of the night that it came from; None for the agent's own ticks."""


def of_calls(
    calls: Iterable[CallRecord],
    *,
    at: datetime,
    tick: int | None,
    origin: str | None,
    model: str | None = None,
) -> list[AuditEntry]:
    """A line per tool call, with its arguments and what went wrong."""
    return [
        entry_of(
            at,
            "tool_call",
            call["name"],
            place,
            why=call["reasoning"],
            outcome="error" if not call["ok"] else "cached" if call["cached"] else "ok",
            detail=_told_of(call),
            duration_ms=call["duration_ms"],
            model=model,
            tick=tick,
            origin=origin,
        )
        for place, call in enumerate(calls)
    ]


def of_goals(
    before: Mapping[str, Goal],
    after: Mapping[str, Goal],
    *,
    at: datetime,
    tick: int | None,
    origin: str | None,
    who: str = AGENT,
) -> list[AuditEntry]:
    """A line per goal that came, changed or went; that a subtask came is told of the subtask."""
    lines = []
    for goal_id in [*after, *(one for one in before if one not in after)]:
        what, detail = _goal_change(before.get(goal_id), after.get(goal_id))
        if detail:
            lines.append(
                entry_of(at, what, goal_id, who=who, detail=detail, tick=tick, origin=origin)
            )
    return lines


def of_prompt(
    before: AssistantPrompt, after: AssistantPrompt, *, tick: int | None, origin: str | None
) -> list[AuditEntry]:
    """The assistant's prompt in a new version, whose text may be that of an earlier one."""
    if after["version"] == before["version"]:
        return []
    version = after["versions"][-1]
    earlier = {"", *(one["text"] for one in before["versions"])}
    return [
        entry_of(
            datetime.fromisoformat(version["at"]),
            "prompt_rolled_back" if version["text"] in earlier else "prompt_changed",
            f"version {version['version']}",
            who=version["by"],
            why=version["reason"],
            detail={"from": before["version"], "text": version["text"]},
            tick=tick,
            origin=origin,
        )
    ]


def of_stop(why: str, *, at: datetime, tick: int | None, who: str) -> AuditEntry:
    """The emergency stop is set: by a person, or by failures in a row."""
    return entry_of(at, "emergency_stop", STOP, who=who, why=why, tick=tick)


def of_clear(*, at: datetime, tick: int | None, who: str) -> AuditEntry:
    """A person cleared the emergency stop."""
    return entry_of(at, "stop_cleared", STOP, who=who, tick=tick)


def of_question(question: Question, *, tick: int | None) -> AuditEntry:
    """A person is asked whether a dangerous tool may run."""
    return entry_of(
        datetime.fromisoformat(question["asked_at"]),
        "question_asked",
        question["tool"],
        why=question["reason"],
        detail={key: question[key] for key in ("id", "args", "difference") if question[key]},
        tick=tick,
        origin=question["event_id"],
    )


def of_answer(question: Question, decision: Decision, *, tick: int | None) -> AuditEntry:
    """What a person answered."""
    return entry_of(
        datetime.fromisoformat(decision["at"]),
        "question_answered",
        question["tool"],
        who=decision["by"],
        why=decision["reason"],
        outcome="refused" if decision["decision"] == "refuse" else "ok",
        detail={
            "id": question["id"],
            "decision": decision["decision"],
            "args": question["args"] if decision["args"] is None else decision["args"],
        },
        tick=tick,
        origin=question["event_id"],
    )


def of_compaction(
    archive: str,
    messages: int,
    *,
    at: datetime,
    tick: int | None,
    model: str,
    by: str = "summary",
    error: str | None = None,
) -> AuditEntry:
    """The old part of the history gave way to a text, which the archive holds.

    `by` an extract of its own words, where the model gave no summary: `error` says why.
    """
    detail = {"messages": messages, "by": by} | ({"error": safe(error)} if error else {})
    return entry_of(at, "compaction", archive, detail=detail, model=model, tick=tick)


async def write(
    store: BaseStore,
    scope: Scope,
    entries: Sequence[AuditEntry],
    *,
    visit: int = 0,
    also: Sequence[PutOp] = (),
) -> None:
    """Write `entries` in one batch, and log each. Twice is the same as once.

    `visit` (0..999) orders the writes of one tick where the clock stands still. `also` are store
    writes of the caller that belong to the same transaction.
    """
    puts = [PutOp(scope.namespace(AUDIT), day, {}, index=False) for day in _days(entries)]
    for place, entry in enumerate(entries):
        key = _key(entry, visit, place)
        namespace = scope.namespace(AUDIT, _day(entry["at"]))
        puts.append(PutOp(namespace, key, dict(entry), index=False))
    if puts or also:
        await write_batch(store, [*puts, *also])
    for entry in entries:
        log.info("%s", sentence(entry), extra={"circadian": dict(entry)})


async def read(
    store: BaseStore, scope: Scope, *, since: datetime | None = None, limit: int | None = None
) -> list[AuditEntry]:
    """The newest `limit` entries from `since` on, oldest first. Reads the days it needs only."""
    first = since.astimezone(UTC).isoformat() if since is not None else ""
    found: list[AuditEntry] = []
    for day in await list_items(store, scope.namespace(AUDIT), newest_first=True):
        left = None if limit is None else limit - len(found)
        if left == 0 or day.key < _day(first):
            break
        namespace = scope.namespace(AUDIT, day.key)
        items = await list_items(store, namespace, limit=left, newest_first=True)
        found += [cast(AuditEntry, item.value) for item in items if item.value["at"] >= first]
    return found[::-1]


def visit_of(loop: Loop | None, node: Literal["use_tools", "park", "confirm"]) -> int:
    """Which write of its tick a node makes, 0..999, where the clock does not tell."""
    done = len(loop["tools"]) if loop is not None else 0
    order = ("park", "confirm", "use_tools")
    return min(999, len(order) * done + order.index(node))


def sentence(entry: AuditEntry) -> str:
    """The entry in a line."""
    return f"{entry['who']}: {entry['what']} {entry['target']}: {entry['outcome']}"


def entry_of(at: datetime, what: What, target: str, place: int = 0, **more: Any) -> AuditEntry:
    """An entry; `place` tells it from others of the same moment. What is not given is unknown."""
    told: dict[str, Any] = {
        "at": at.astimezone(UTC).isoformat(),
        "who": AGENT,
        "what": what,
        "target": safe(target),
        "why": None,
        "outcome": "ok",
        "detail": {},
        "duration_ms": None,
        "model": None,
        "tick": None,
        "origin": None,
        **more,
    }
    told["why"] = safe(told["why"]) if told["why"] else None
    told["detail"] = bounded(redacted(told["detail"], os.environ), MOST_DETAIL)
    # Done again, a thing takes another time and is the same thing.
    parts = [place, {key: value for key, value in told.items() if key != "duration_ms"}]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:10]
    return cast(AuditEntry, {"id": f"audit_{_day(told['at'])}_{digest}", **told})


def _told_of(call: CallRecord) -> dict[str, Any]:
    args = {key: value for key, value in call["args"].items() if key != "reasoning"}
    return {"args": args} | ({"error": call["error"]} if call["error"] else {})


def _goal_change(old: Goal | None, new: Goal | None) -> tuple[What, dict[str, Any]]:
    """What happened to a goal, and [before, after] of what changed; empty where nothing did."""
    was, now = cast(dict[str, Any], old or {}), cast(dict[str, Any], new or {})
    if new is None:
        return "goal_deleted", {"description": was["description"]}
    if old is None:
        told = ("description", "priority", "status", "progress", "parent_id")
        return "goal_created", {key: now[key] for key in told}
    fields = [key for key in now if key != "subtask_ids" and was.get(key) != now[key]]
    completed = now["status"] == "completed" != was["status"]
    changed = {key: [was.get(key), now[key]] for key in fields}
    return "goal_completed" if completed else "goal_updated", changed


def _key(entry: AuditEntry, visit: int, place: int) -> str:
    """Sorts by time, then by tick and place in it."""
    at, tick = datetime.fromisoformat(entry["at"]), entry["tick"] or 0
    return f"{at:%H%M%S%f}_{tick:08d}_{visit:03d}_{place:04d}_{entry['id'].rpartition('_')[2]}"


def _days(entries: Iterable[AuditEntry]) -> list[str]:
    return sorted({_day(entry["at"]) for entry in entries})


def _day(at: str) -> str:
    """`YYYYMMDD` of an ISO time."""
    return at[:10].replace("-", "")
