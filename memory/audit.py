"""The audit log: what was done, when, by whom, why, and with what outcome. Append-only.

Store namespaces (below `(user, thread)`): `audit` day -> {} · `audit/<YYYYMMDD>` key ->
AuditEntry, one namespace per day (UTC), so that no read scans everything. The `of_` functions are
pure; their entries contain no secrets and are of bounded size. Nothing changes or removes an entry.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, cast

from langgraph.store.base import BaseStore, PutOp

from memory.records import (
    AssistantPrompt,
    CallRecord,
    Decision,
    Goal,
    Loop,
    ModeChange,
    NightRecord,
    Operation,
    Question,
    Scope,
)
from memory.records import AuditEntry as AuditEntry
from memory.records import Outcome as Outcome
from memory.records import What as What
from memory.storage import count_items, list_items, write_batch
from memory.text import bounded, redacted, safe

AUDIT = "audit"

AGENT = "agent"
"""Value of `who` for the assistant itself."""

STOP = "emergency stop"

MOST_DETAIL = 2_000
"""Most characters of an entry's detail, as JSON."""

CAUSES = {
    "request": "on request",
    "go_to_sleep": "of its own accord",
    "schedule": "at its hour",
    "fatigue": "from fatigue",
    "event": "at a message",
    "answer": "at an answer",
    "hours": "at the end of its hours",
}
"""Causes of a mode change, in words."""

log = logging.getLogger("circadian.audit")


def of_calls(
    calls: Iterable[CallRecord],
    *,
    at: datetime,
    tick: int | None,
    origin: str | None,
    model: str | None = None,
) -> list[AuditEntry]:
    """One entry per tool call, with its arguments and error."""
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
    """One entry per goal created, changed or deleted."""
    lines = []
    for goal_id in dict.fromkeys([*after, *before]):
        what, detail = _goal_change(before.get(goal_id), after.get(goal_id))
        if detail:
            lines.append(
                entry_of(at, what, goal_id, who=who, detail=detail, tick=tick, origin=origin)
            )
    return lines


def of_prompt(
    before: AssistantPrompt, after: AssistantPrompt, *, tick: int | None, origin: str | None
) -> list[AuditEntry]:
    """The assistant's prompt has a new version; an earlier text counts as a rollback."""
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
    """The emergency stop was set, by a person or by failures in a row."""
    return entry_of(at, "emergency_stop", STOP, who=who, why=why, tick=tick)


def of_clear(*, at: datetime, tick: int | None, who: str) -> AuditEntry:
    """A person cleared the emergency stop."""
    return entry_of(at, "stop_cleared", STOP, who=who, tick=tick)


def of_question(question: Question) -> AuditEntry:
    """A person is asked whether a dangerous tool may run."""
    return entry_of(
        datetime.fromisoformat(question["asked_at"]),
        "question_asked",
        question["tool"],
        why=question["reason"],
        detail={key: question[key] for key in ("id", "args", "difference") if question[key]},
        origin=question["event_id"],
    )


def of_answer(question: Question, decision: Decision, *, tick: int | None) -> AuditEntry:
    """A person answered a question."""
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
    by: str,
    error: str | None,
) -> AuditEntry:
    """The old part of the history was replaced, `by` a summary or an extract, kept in `archive`."""
    detail = {"messages": messages, "by": by} | ({"error": safe(error)} if error else {})
    return entry_of(at, "compaction", archive, detail=detail, model=model, tick=tick)


def of_correction(old: str, new: str, *, at: datetime, who: str, origin: str) -> AuditEntry:
    """A fact replaced another. Both are named by id only, so that a forget leaves no text here."""
    return entry_of(at, "fact_corrected", old, who=who, detail={"fact": new}, origin=origin)


def of_night(record: NightRecord, operations: Sequence[Operation], *, model: str) -> AuditEntry:
    """A night ended; counts its operations by kind, and lists its errors."""
    started, ended = record["started"], record["ended"] or record["started"]
    took = datetime.fromisoformat(ended) - datetime.fromisoformat(started)
    return entry_of(
        datetime.fromisoformat(ended),
        "night",
        record["id"],
        outcome="error" if record["errors"] else "ok",
        detail={
            "status": record.get("status"),
            "stopped": record.get("stopped"),
            "operations": dict(Counter(operation["kind"] for operation in operations)),
            "held": len(record["held"]),
            "errors": record["errors"],
            "steps": record["steps"],
        },
        duration_ms=round(took.total_seconds() * 1_000),
        model=model,
        origin=record["id"],
    )


def of_mode_change(change: ModeChange, *, origin: str | None) -> AuditEntry:
    """The agent fell asleep or woke."""
    return entry_of(
        datetime.fromisoformat(change["at"]),
        "fell_asleep" if change["mode"] == "sleep" else "woke",
        CAUSES[change["why"]],
        why=change["reason"],
        detail={"why": change["why"]},
        origin=origin,
    )


def of_decision(
    record: NightRecord,
    what: Literal["night_approved", "night_discarded"],
    *,
    at: datetime,
    who: str,
) -> AuditEntry:
    """A person applied or discarded a preview or a held night."""
    return entry_of(at, what, record["id"], who=who, origin=record["id"])


def of_undo(record: NightRecord, *, at: datetime, who: str) -> AuditEntry:
    """A night was undone."""
    return entry_of(at, "undo", record["id"], who=who, origin=record["id"])


def of_forget(kind: str, counted: Mapping[str, int], *, at: datetime, who: str) -> AuditEntry:
    """A forget took place. Has the kind and the counts, and nothing of the erased words."""
    detail = {name: number for name, number in counted.items() if number}
    return entry_of(at, "forgotten", kind, who=who, detail=detail)


async def write(
    store: BaseStore,
    scope: Scope,
    entries: Sequence[AuditEntry],
    *,
    visit: int = 0,
    also: Sequence[PutOp] = (),
) -> None:
    """Write `entries` in one batch and log each; idempotent.

    `visit` (0..999) orders writes of one tick at one time. `also`: writes of the same transaction.
    """
    days = sorted({_day(entry["at"]) for entry in entries})
    puts = [PutOp(scope.namespace(AUDIT), day, {}, index=False) for day in days]
    for place, entry in enumerate(entries):
        key = _key(entry, visit, place)
        namespace = scope.namespace(AUDIT, _day(entry["at"]))
        puts.append(PutOp(namespace, key, dict(entry), index=False))
    if puts or also:
        await write_batch(store, [*puts, *also])
    for entry in entries:
        log.info("%s", sentence(entry), extra={"circadian": _logged(entry)})


def _logged(entry: AuditEntry) -> dict[str, Any]:
    """What log lines have of an entry: people's words, in reasons and arguments, at DEBUG alone."""
    if log.isEnabledFor(logging.DEBUG):
        return dict(entry)
    return {key: value for key, value in entry.items() if key not in ("why", "detail")}


async def read(
    store: BaseStore,
    scope: Scope,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int | None = None,
) -> list[AuditEntry]:
    """The newest `limit` entries from `since` on, or all before `until`, oldest first."""
    first = since.astimezone(UTC).isoformat() if since is not None else ""
    end = until.astimezone(UTC).isoformat() if until is not None else "9"
    found: list[AuditEntry] = []
    for day in await list_items(store, scope.namespace(AUDIT), newest_first=True):
        left = None if limit is None else limit - len(found)
        if left == 0 or day.key < _day(first):
            break
        if day.key > _day(end):
            continue
        entries = await _of_day(store, scope, day.key, left)
        found += [entry for entry in entries if first <= entry["at"] < end]
    return found[::-1]


async def newest(
    store: BaseStore, scope: Scope, limit: int, offset: int
) -> tuple[list[AuditEntry], int]:
    """`limit` entries after the newest `offset`, newest first, and the number of all."""
    found: list[AuditEntry] = []
    passed = 0
    for day in await list_items(store, scope.namespace(AUDIT), newest_first=True):
        held = await count_items(store, scope.namespace(AUDIT, day.key))
        begin, end = max(0, offset - passed), min(held, offset + limit - passed)
        if begin < end:
            found += (await _of_day(store, scope, day.key, end))[begin:]
        passed += held
    return found, passed


async def of_tick(store: BaseStore, scope: Scope, tick: int) -> list[AuditEntry]:
    """The entries of a tick, oldest first; reads the days from the newest one to the tick's."""
    found: list[AuditEntry] = []
    for day in await list_items(store, scope.namespace(AUDIT), newest_first=True):
        entries = await _of_day(store, scope, day.key)
        found += [entry for entry in entries if entry["tick"] == tick]
        if any(entry["tick"] is not None and entry["tick"] < tick for entry in entries):
            break  # numbers of ticks rise
    return found[::-1]


async def _of_day(
    store: BaseStore, scope: Scope, day: str, limit: int | None = None
) -> list[AuditEntry]:
    items = await list_items(store, scope.namespace(AUDIT, day), limit=limit, newest_first=True)
    return [cast(AuditEntry, item.value) for item in items]


def visit_of(loop: Loop | None, node: Literal["use_tools", "park", "confirm"]) -> int:
    """Order of a node's write within its tick, 0..999, for writes at the same time."""
    done = len(loop["tools"]) if loop is not None else 0
    order = ("park", "confirm", "use_tools")
    return min(999, len(order) * done + order.index(node))


def sentence(entry: AuditEntry) -> str:
    """The entry as one line."""
    return f"{entry['who']}: {entry['what']} {entry['target']}: {entry['outcome']}"


def entry_of(at: datetime, what: What, target: str, place: int = 0, **more: Any) -> AuditEntry:
    """Make an entry; `place` distinguishes entries of one moment. Other fields default to None."""
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
    # A repeated action has another duration and is still the same entry.
    parts = [place, {key: value for key, value in told.items() if key != "duration_ms"}]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:10]
    return cast(AuditEntry, {"id": f"audit_{_day(told['at'])}_{digest}", **told})


def _told_of(call: CallRecord) -> dict[str, Any]:
    args = {key: value for key, value in call["args"].items() if key != "reasoning"}
    return {"args": args} | ({"error": call["error"]} if call["error"] else {})


def _goal_change(old: Goal | None, new: Goal | None) -> tuple[What, dict[str, Any]]:
    """The change of a goal, with [before, after] per field; {} if nothing changed."""
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
    """Sort key: time, then tick and position in it."""
    at, tick = datetime.fromisoformat(entry["at"]), entry["tick"] or 0
    return f"{at:%H%M%S%f}_{tick:08d}_{visit:03d}_{place:04d}_{entry['id'].rpartition('_')[2]}"


def _day(at: str) -> str:
    """`YYYYMMDD` of an ISO time."""
    return at[:10].replace("-", "")
