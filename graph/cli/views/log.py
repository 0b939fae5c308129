"""The audit log for people. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from graph.cli.views.console import counted, day_rule, one_line
from memory import audit
from memory.audit import AuditEntry, What
from memory.text import shortened

LONGEST = 200
"""Characters that are shown of one detail; `--json` has all of it."""


_MARK = {
    "ok": ("✓", "green"),
    "error": ("✗", "red"),
    "refused": ("✗", "yellow"),
    "cached": ("✓", "dim"),
}


_HELD = ("‖", "yellow")
"""The mark of a night that waits for a person."""


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
    """Who did what; then what went wrong, what changed, why, and how long it took."""
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
    """The sign and its style. A night that was held back or stopped early did not fail."""
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
    """Details worth showing."""
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
        yield " ".join(filter(None, (detail.get("decision"), detail["id"])))
    if entry["why"]:
        yield f"“{entry['why']}”"
    if entry["duration_ms"]:
        yield _took(entry["duration_ms"])
    if entry["tick"]:
        yield f"tick {entry['tick']}"


def _change(key: str, value: Any) -> str:
    """`progress 0 → 50`, or the name alone if the values were too long to be kept."""
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
