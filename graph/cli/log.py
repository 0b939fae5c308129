"""`circadian log`: what the agent and its people did, newest last."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from graph.cli.access import opened_without_running
from graph.cli.console import Screen, counted, one_line
from graph.cli.options import Options
from graph.cli.render import day_rule
from memory import audit
from memory.audit import AuditEntry, What
from memory.errors import InputError
from memory.models.words import shortened
from memory.resources import utc_now

SHOWN = 50
"""Entries that are shown where neither a time nor a number is given."""
LONGEST = 200
"""Characters of one thing that is told about an entry; `--json` has all that is kept."""

_ALL = 1_000_000
_AGO = re.compile(r"(\d{1,9})\s*([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_MARK = {
    "ok": ("✓", "green"),
    "error": ("✗", "red"),
    "refused": ("✗", "yellow"),
    "cached": ("✓", "dim"),
}
_HELD = ("‖", "yellow")
"""A night that waits for a person."""
_DID: dict[What, str] = {
    "tool_call": "called",
    "goal_created": "made goal",
    "goal_updated": "changed goal",
    "goal_completed": "completed goal",
    "goal_deleted": "removed goal",
    "fact_corrected": "corrected fact",
    "prompt_changed": "changed the prompt",
    "prompt_rolled_back": "rolled the prompt back",
    "question_asked": "asked about",
    "question_answered": "answered about",
    "emergency_stop": "set the",
    "stop_cleared": "cleared the",
    "fell_asleep": "fell asleep",
    "woke": "woke up",
    "night": "slept",
    "night_approved": "decided to apply",
    "night_discarded": "let go of",
    "undo": "took back",
    "compaction": "compacted into",
}


async def log(options: Options, since: str | None, most: int | None) -> int:
    """Print the audit log."""
    screen = Screen(json=options.json)
    start = moment(since, utc_now()) if since is not None else None
    limit = most or (SHOWN if start is None else _ALL)
    async with opened_without_running(options) as agent:
        found = await audit.read(agent.store, agent.scope, since=start, limit=limit + 1)
    shown = found[-limit:]
    screen.result(shown, log_view(shown))
    if len(found) > limit and not screen.json:
        screen.note(f"the newest {limit}; -n {limit * 4} shows more")
    return 0


def moment(text: str, now: datetime) -> datetime:
    """The time that `--since` names, UTC: ISO 8601, `30m`, `2h`, `3d`, today or yesterday.

    Raises:
        InputError: it names none.
    """
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    word = text.strip().lower()
    try:
        if word in ("today", "yesterday"):
            return midnight - timedelta(days=word == "yesterday")
        if ago := _AGO.fullmatch(word):
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        given = datetime.fromisoformat(text.strip())
        return (given if given.tzinfo else given.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(
            f"--since: {text!r:.80} is no time; give a date or a time (2026-03-02, "
            "2026-03-02T09:00, UTC), 30m, 2h, 3d, today or yesterday"
        ) from None


def log_view(entries: Sequence[AuditEntry]) -> RenderableType:
    """A sentence per entry, under its day."""
    if not entries:
        return Text("Nothing is logged.")
    parts: list[RenderableType] = []
    for _, group in groupby(entries, key=lambda entry: entry["at"][:10]):
        of_day = list(group)
        table = Table.grid(padding=(0, 1))
        for entry in of_day:
            mark, style = _mark(entry)
            time = f"{datetime.fromisoformat(entry['at']):%H:%M:%S}"
            table.add_row(Text(time, style="dim"), Text(mark, style=style), _sentence(entry))
        parts += [day_rule(of_day[0]["at"]), table]
    return Group(*parts)


def _sentence(entry: AuditEntry) -> Text:
    """Who did what to what; then what went wrong, what changed, why, and how long it took."""
    who = "" if entry["who"] == audit.AGENT else "bold"
    did, target = _did(entry), one_line(entry["target"])
    line = Text.assemble((one_line(entry["who"]), who), f" {did}", (f" {target}", "cyan"))
    if entry["outcome"] in ("refused", "cached"):
        line.append(f" · {entry['outcome']}", style=_MARK[entry["outcome"]][1])
    if error := entry["detail"].get("error"):
        line.append(f" · {shortened(one_line(str(error)), LONGEST)}", style="red")
    for part in _more(entry):
        line.append(f" · {shortened(one_line(part), LONGEST)}", style="dim")
    return line


def _mark(entry: AuditEntry) -> tuple[str, str]:
    """Its sign and style. A night failed where a step did: held back or stopped, it did not."""
    detail = entry["detail"]
    if entry["what"] != "night" or "errors" not in detail:
        return _MARK[entry["outcome"]]
    return _MARK["error"] if detail["errors"] else _HELD if _held_back(detail) else _MARK["ok"]


def _held_back(detail: Mapping[str, Any]) -> bool:
    return detail.get("status") == "held"


def _did(entry: AuditEntry) -> str:
    tried = entry["what"] == "night" and entry["detail"].get("status") == "preview"
    return "tried out" if tried else _DID[entry["what"]]


def _more(entry: AuditEntry) -> Iterator[str]:
    """What is worth a look beside it."""
    detail = entry["detail"]
    if entry["what"] in ("goal_updated", "goal_completed"):
        yield ", ".join(_change(key, value) for key, value in detail.items())
    elif "description" in detail:
        yield str(detail["description"])
    elif entry["what"] == "fact_corrected" and "fact" in detail:
        yield f"now {detail['fact']}"
    elif entry["what"] == "night" and "operations" in detail:
        yield from _night(detail)
    elif entry["what"] in ("question_asked", "question_answered") and "id" in detail:
        yield " ".join(str(one) for one in (detail.get("decision"), detail["id"]) if one)
    if entry["why"]:
        yield f"“{entry['why']}”"
    if entry["duration_ms"]:
        yield _took(entry["duration_ms"])
    if entry["tick"]:
        yield f"tick {entry['tick']}"


def _change(key: str, value: Any) -> str:
    """`progress 0 → 50`; the name alone where the values were too long to be kept."""
    whole = isinstance(value, list) and len(value) == 2
    return f"{key} {value[0]} → {value[1]}" if whole else key


def _night(detail: Mapping[str, Any]) -> Iterator[str]:
    changes = counted(sum(detail["operations"].values()), "change")
    yield f"{changes}, none applied" if detail.get("status") == "preview" else changes
    if _held_back(detail):
        yield "held back for you to decide"
    if why := detail.get("stopped"):
        yield f"stopped early: {why}"
    if detail.get("held"):
        yield f"{detail['held']:,} left for the next night"
    yield from map(str, detail.get("errors") or [])


def _took(milliseconds: int) -> str:
    return f"{milliseconds:,} ms" if milliseconds < 1_000 else f"{milliseconds / 1_000:,.1f} s"
