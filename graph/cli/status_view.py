"""The agent at a glance, and its audit log. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from graph.cli.run_view import whose_words
from graph.console import (
    FIRST_WORDS,
    LEVEL_STYLE,
    bar,
    context_meter,
    counted,
    day,
    day_rule,
    here,
    moment,
    one_line,
    ruled_table,
)
from graph.use_cases import COUNTED
from memory import audit
from memory.audit import AuditEntry, What
from memory.night import lines_of
from memory.prompt import ComponentHealth, PromptHealth
from memory.records import Briefing, Goal, InboxItem, Question
from memory.text import shortened

LONGEST_DETAIL = 200
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
    "night_discarded": "discarded",
    "undo": "undid",
    "compaction": "compacted into",
    "forgotten": "forgot",
}

LONGEST_QUESTION = 160
"""Characters of a question that are shown."""

LARGEST = 3
"""Parts of the prompt that are named on its one line."""

_PROJECT_MARK = {"active": "●", "paused": "○", "completed": "✓"}
_GOAL_STYLE = {"active": "cyan", "completed": "green", "abandoned": "dim"}


def status_view(
    status: Mapping[str, Any],
    agent: str,
    aside: Sequence[InboxItem],
    *,
    stop: str | None = None,
    verbose: bool = False,
) -> RenderableType:
    """The agent at a glance, from its status; `stop`: why the emergency stop is set."""
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="bold")
    rows.add_column()
    if stop is not None:
        rows.add_row("Stopped", Text(one_line(stop), style="red"))
    if status["approvals"]:
        rows.add_row("Asks", _questions(status["approvals"]))
    if status.get("briefing"):
        rows.add_row("Briefing", briefing_view(status["briefing"]))
    rows.add_row("Context", _context(status["context"]))
    own = status["assistant_prompt"]["version"]
    rows.add_row("Prompt", prompt_gauge(status["prompt"], own, verbose=verbose))
    if status["projects"]["slots"]:
        rows.add_row("Projects", projects_view(status["projects"]))
    if status["goals"]:
        rows.add_row("Goals", goals_view(status["goals"]))
    if remembered := _session_memory(status["session_memory"]):
        rows.add_row("Session", _bullets(remembered))
    rows.add_row("Memory", _memory(status))
    asked = sum(question["event_id"] is not None for question in status["approvals"])
    rows.add_row("Inbox", _inbox(status["inbox"]["waiting"], asked, aside))
    rows.add_row("Spent", spending_gauge(status["spending"]))
    told = {"open": "left alone after too many failures", "half_open": "to be tried again"}
    breakers = status["breakers"].items()
    if lines := [f"{name}: {told[state]}" for name, state in breakers if state in told]:
        rows.add_row("Services", Text("\n".join(lines), style="yellow"))
    return Group(_headline(status, agent), rows)


def briefing_view(briefing: Briefing) -> RenderableType:
    """The morning briefing: a heading and its lines for each part."""
    parts: list[RenderableType] = [
        Text.assemble(("Since the night of ", "dim"), (day(briefing["at"]), "dim"))
    ]
    for heading, lines in lines_of(briefing):
        parts += [Text(heading, "bold"), _bullets(lines, "cyan")]
    if briefing["questions"]:
        parts.append(Text("Say which one is true, and it is settled.", "dim"))
    return Group(*parts)


def projects_view(projects: Mapping[str, Any]) -> RenderableType:
    """The active project first, then the others in the order of their creation."""
    slots, active = projects["slots"], projects["active"]
    rows = Table.grid(padding=(0, 1))
    for key in sorted(slots, key=lambda key: key != active):
        slot = slots[key]
        mark = Text(_PROJECT_MARK[slot["status"]], style="cyan" if key == active else "dim")
        style = "bold" if key == active else ""
        name = Text.assemble((one_line(key), style), (f" ({slot['status']})", "dim"))
        rows.add_row(mark, name, Text(one_line(slot["summary"]), style="dim"))
    return rows


def goals_view(goals: Sequence[Goal]) -> RenderableType:
    """The tree of goals with their progress; `goals` holds each goal before its subtasks."""
    root = Tree("", hide_root=True, guide_style="dim")
    branches: dict[str, Tree] = {}
    for goal in goals:
        above = branches.get(goal["parent_id"] or "", root)
        branches[goal["id"]] = above.add(_goal(goal))
    return root


def prompt_gauge(prompt: PromptHealth, own_version: int, *, verbose: bool) -> RenderableType:
    """The largest parts of the prompt on one line; all parts if `verbose` or a problem is known."""
    parts = [part for part in prompt["components"] if part["tokens"]]
    largest = sorted(parts, key=lambda part: part["tokens"], reverse=True)[:LARGEST]
    named = ", ".join(f"{one_line(part['key'])} {part['tokens']:,}" for part in largest)
    line = Text.assemble(f"{named} tokens", (", ..." if len(parts) > LARGEST else "", "dim"))
    if own_version:
        line.append(f" · its own guidelines in version {own_version}", "dim")
    if not (verbose or prompt["problems"]):
        return line
    problems = [Text(one_line(problem), style="yellow") for problem in prompt["problems"]]
    return Group(line, *problems, _parts(parts))


def spending_gauge(spending: Mapping[str, Any]) -> RenderableType:
    """Today's tokens and this hour's autonomous ticks, with their limits."""
    line = Text(
        f"{spending['tokens']:,} of {spending['tokens_per_day']:,} tokens today · "
        f"{spending['autonomous_ticks']:,} of {spending['autonomous_ticks_per_hour']:,} "
        "ticks of its own this hour"
    )
    if spending["over"] is not None:
        return Group(line, Text(one_line(spending["over"]), style="yellow"))
    if spending["next_look"] is None:
        return line
    told = f"next look at the goals {moment(spending['next_look'])}, or when something happens"
    return Group(line, Text(told, style="dim"))


def _parts(parts: list[ComponentHealth]) -> Table:
    table = ruled_table("part", right=("tokens", "share", "budget"))
    for part in parts:
        budget = "-" if part["budget"] is None else f"{part['budget']:,}"
        style = "yellow" if part["at_budget"] else ""
        row = (one_line(part["key"]), f"{part['tokens']:,}", f"{part['share']:g} %", budget)
        table.add_row(*row, style=style)
    return table


def _headline(status: Mapping[str, Any], agent: str) -> Text:
    mode = status["mode"] + (f", {status['phase']}" if status["phase"] else "")
    style = "yellow" if status["mode"] == "awake" else "blue"
    line = Text.assemble(
        (one_line(agent), "bold"), "  ", (mode, style), ("  tick ", "dim"), str(status["tick"])
    )
    if status["emergency_stop"]:
        line.append("  EMERGENCY STOP (circadian clear-stop)", style="bold red")
    return line


def _context(context: Mapping[str, Any]) -> Text:
    meter = context_meter(context)
    if context["level"] == "normal":
        return meter
    return meter.append(f"\n{context['advice']}", LEVEL_STYLE[context["level"]])


def _questions(questions: Sequence[Question]) -> RenderableType:
    parts: list[RenderableType] = []
    for question in questions:
        who = one_line(question["sender"]) if question["sender"] else "its own goals"
        told = one_line(" ".join(filter(None, (question["what"], question.get("difference")))))
        others = question.get("rests_on")
        parts += [
            Text(shortened(told, LONGEST_QUESTION)),
            *([Text(f"rests on {whose_words(others)}", style="yellow")] if others else ()),
            Text(f"{question['id']}, for {who}, {moment(question['asked_at'])}", style="dim"),
        ]
    return Group(*parts, Text("circadian approve ID, or circadian refuse ID", style="dim"))


def _goal(goal: Goal) -> Text:
    style = _GOAL_STYLE[goal["status"]]
    gone = " strike" if goal["status"] == "abandoned" else ""
    return Text.assemble(
        bar(goal["progress"], style, width=10),
        f" {goal['progress']:>3} % ",
        (one_line(goal["description"]), f"default{gone}"),
        (f"  {goal['priority']}, {goal['status']}, {goal['id']}", "dim"),
    )


def _session_memory(memory: Mapping[str, Any]) -> list[str]:
    said = memory.get("said_by", {})
    texts = [*memory["key_facts"], *memory["learned_patterns"]]
    told = [f"{text} ({said[text]} said)" if text in said else text for text in texts]
    return [*told, *(f"done: {task['description']}" for task in memory["completed_tasks"])]


def _memory(status: Mapping[str, Any]) -> Text:
    memory = status["memory"]
    line = Text.assemble(
        f"{counted(memory['journal'], 'journal entry', 'journal entries')} ",
        (f"({memory['pending']:,} for the next night)", "dim"),
        f" · {counted(memory['facts'], 'fact')} · {counted(memory['links'], 'link')}",
    )
    if memory["entities"]:
        line.append(f" · {counted(memory['entities'], 'entity', 'entities')}")
    line.append(
        f" · importance since the last reflection {status['cumulative_importance']:,}", "dim"
    )
    if waiting := memory.get("unembedded", 0):
        waits = counted(waiting, "memory waits", "memories wait")
        line.append(f"\n{waits} for a vector, found by words until `circadian reindex`", "yellow")
    return line


def _inbox(waiting: int, asked: int, aside: Sequence[InboxItem]) -> RenderableType:
    line = Text(f"{waiting:,} waiting" if waiting else "empty")
    if waiting and asked:
        line.append(f", {asked:,} of them for an answer", "dim")
    lines = [line]
    for item in aside:
        event, words = item["event"], shortened(item["event"]["text"], FIRST_WORDS)
        told = f'set aside: {event["id"]}, {event["sender"]} "{words}": {item["error"]}'
        lines.append(Text(one_line(told), style="red"))
    if aside:
        them = "it" if len(aside) == 1 else "them"
        lines.append(Text(f"circadian retry puts {them} back", style="dim"))
    return Group(*lines)


def _bullets(lines: Iterable[str], style: str = "dim") -> RenderableType:
    rows = Table.grid(padding=(0, 1))
    for line in lines:
        rows.add_row(Text("•", style), Text(one_line(line)))
    return rows


# The audit log


def log_view(entries: Sequence[AuditEntry]) -> RenderableType:
    """A sentence per entry, under its day."""
    if not entries:
        return Text("Nothing is logged.")
    parts: list[RenderableType] = []
    for _, group in groupby(entries, key=lambda entry: here(entry["at"]).date()):
        of_day = list(group)
        table = Table.grid(padding=(0, 1))
        for entry in of_day:
            mark, style = _mark(entry)
            time = f"{here(entry['at']):%H:%M:%S}"
            table.add_row(Text(time, style="dim"), Text(mark, style=style), _sentence(entry))
        parts += [day_rule(here(of_day[0]["at"])), table]
    return Group(*parts)


def _sentence(entry: AuditEntry) -> Text:
    """Who did what; then what went wrong, what changed, why, and how long it took."""
    who = "" if entry["who"] == audit.AGENT else "bold"
    tried = entry["what"] == "night" and entry["detail"].get("status") == "preview"
    did, target = "tried out" if tried else _DID[entry["what"]], one_line(entry["target"])
    line = Text.assemble((one_line(entry["who"]), who), f" {did}", (f" {target}", "cyan"))
    if entry["outcome"] in ("refused", "cached"):
        line.append(f" · {entry['outcome']}", style=_MARK[entry["outcome"]][1])
    if error := entry["detail"].get("error"):
        line.append(f" · {shortened(one_line(str(error)), LONGEST_DETAIL)}", style="red")
    for part in _more(entry):
        line.append(f" · {shortened(one_line(part), LONGEST_DETAIL)}", style="dim")
    return line


def _mark(entry: AuditEntry) -> tuple[str, str]:
    """The sign and its style. A night that was held back or stopped early did not fail."""
    detail = entry["detail"]
    if entry["what"] != "night" or "errors" not in detail:
        return _MARK[entry["outcome"]]
    return _MARK["error"] if detail["errors"] else _HELD if _held_back(detail) else _MARK["ok"]


def _held_back(detail: Mapping[str, Any]) -> bool:
    return detail.get("status") == "held"


def _more(entry: AuditEntry) -> Iterator[str]:
    yield from _told(entry["what"], entry["detail"])
    if entry["why"]:
        yield f"“{entry['why']}”"
    if entry["duration_ms"]:
        took = entry["duration_ms"]
        yield f"{took:,} ms" if took < 1_000 else f"{took / 1_000:,.1f} s"
    if entry["tick"]:
        yield f"tick {entry['tick']}"


def _told(what: What, detail: Mapping[str, Any]) -> Iterator[str]:
    if what in ("goal_updated", "goal_completed"):
        yield ", ".join(_change(key, value) for key, value in detail.items())
    elif "description" in detail:
        yield str(detail["description"])
    elif what == "fact_corrected" and "fact" in detail:
        yield f"now {detail['fact']}"
    elif what == "forgotten":
        kinds = ((detail[kind], forms) for kind, forms in COUNTED.items() if kind in detail)
        yield ", ".join(f"{counted(n, one, many)} {more}".strip() for n, (one, many, more) in kinds)
    elif what == "night" and "operations" in detail:
        yield from _night(detail)
    elif what in ("question_asked", "question_answered") and "id" in detail:
        yield " ".join(filter(None, (detail.get("decision"), detail["id"])))


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
