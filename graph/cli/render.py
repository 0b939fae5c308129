"""The status as a person likes to read it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from graph.cli.console import (
    FIRST_WORDS,
    LEVEL_STYLE,
    bar,
    clock_time,
    context_meter,
    counted,
    date,
    day,
    one_line,
)
from graph.cli.gauges import breakers_gauge, prompt_gauge, spending_gauge
from memory.models.words import shortened
from memory.records import Goal, InboxItem
from memory.tick import Question

LONGEST_ASK = 160
"""Characters of what a question would do."""

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
    """`circadian status` for people.

    `aside`: the events that are set aside; `stop`: why the emergency stop was set; `verbose`: with
    each part of the prompt.
    """
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="bold")
    rows.add_column()
    if stop is not None:
        rows.add_row("Stopped", Text(one_line(stop), style="red"))
    if status["approvals"]:
        rows.add_row("Asks", _asks(status["approvals"]))
    rows.add_row("Context", _context(status["context"]))
    own = status["assistant_prompt"]["version"]
    rows.add_row("Prompt", prompt_gauge(status["prompt"], own, verbose=verbose))
    if status["projects"]["slots"]:
        rows.add_row("Projects", projects_view(status["projects"]))
    if status["goals"]:
        rows.add_row("Goals", goals_view(status["goals"]))
    remembered = _session_memory(status["session_memory"])
    if remembered:
        rows.add_row("Session", _bullets(remembered))
    rows.add_row("Memory", _memory(status))
    asked = sum(one["event_id"] is not None for one in status["approvals"])
    rows.add_row("Inbox", _inbox(status["inbox"]["waiting"], asked, aside))
    rows.add_row("Spent", spending_gauge(status["spending"]))
    if left_alone := breakers_gauge(status["breakers"]):
        rows.add_row("Services", left_alone)
    return Group(_headline(status, agent), rows)


def projects_view(projects: Mapping[str, Any]) -> RenderableType:
    """The active project first, then the others as they were made."""
    slots, active = projects["slots"], projects["active"]
    rows = Table.grid(padding=(0, 1))
    for key in sorted(slots, key=lambda one: one != active):
        slot = slots[key]
        style = "bold" if key == active else ""
        mark = Text(_PROJECT_MARK[slot["status"]], style="cyan" if key == active else "dim")
        name = Text.assemble((one_line(key), style), (f" ({slot['status']})", "dim"))
        rows.add_row(mark, name, Text(one_line(slot["summary"]), style="dim"))
    return rows


def goals_view(goals: Sequence[Goal]) -> RenderableType:
    """The goal tree with a progress bar each. `goals` holds each goal before its subtasks."""
    root = Tree("", hide_root=True, guide_style="dim")
    branches: dict[str, Tree] = {}
    for goal in goals:
        above = branches.get(goal["parent_id"] or "", root)
        branches[goal["id"]] = above.add(_goal(goal))
    return root


def day_rule(at: str) -> Rule:
    """A line across the screen with a date."""
    return Rule(Text(day(at), style="bold"), align="left", style="dim")


def _headline(status: Mapping[str, Any], agent: str) -> Text:
    mode = status["mode"] + (f", {status['phase']}" if status["phase"] else "")
    style = "yellow" if status["mode"] == "awake" else "blue"
    line = Text.assemble(
        (one_line(agent), "bold"), "  ", (mode, style), ("  tick ", "dim"), str(status["tick"])
    )
    if status["emergency_stop"]:
        line.append("  EMERGENCY STOP (circadian clear-stop)", style="bold red")
    return line


def _context(context: dict[str, Any]) -> Text:
    meter = context_meter(context)
    if context["level"] == "normal":
        return meter
    return meter.append(f"\n{context['advice']}", LEVEL_STYLE[context["level"]])


def _asks(questions: Sequence[Question]) -> RenderableType:
    """What waits for a person, and how it is answered."""
    parts: list[RenderableType] = []
    for question in questions:
        who = one_line(question["sender"]) if question["sender"] else "its own goals"
        asked = f"{date(question['asked_at'])} {clock_time(question['asked_at'])}"
        parts += [
            Text(shortened(one_line(question["what"]), LONGEST_ASK)),
            Text(f"{question['id']}, for {who}, {asked}", style="dim"),
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
    done = [f"done: {task['description']}" for task in memory["completed_tasks"]]
    return [*memory["key_facts"], *memory["learned_patterns"], *done]


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
    lines += [Text(_set_aside(one), style="red") for one in aside]
    if aside:
        them = "it" if len(aside) == 1 else "them"
        lines.append(Text(f"circadian retry puts {them} back", style="dim"))
    return Group(*lines)


def _set_aside(item: InboxItem) -> str:
    event = item["event"]
    words = shortened(event["text"], FIRST_WORDS)
    return one_line(f'set aside: {event["id"]}, {event["sender"]} "{words}": {item["error"]}')


def _bullets(lines: Iterable[str]) -> RenderableType:
    rows = Table.grid(padding=(0, 1))
    for line in lines:
        rows.add_row(Text("•", style="dim"), Text(one_line(line)))
    return rows
