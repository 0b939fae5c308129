"""A night as a person likes to read it: what it learned and changed, what it cost. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from graph.cli.console import clock_time, counted, date, day, one_line
from graph.cli.night_changes import Section, sections
from graph.night_names import Names
from graph.nights import NightLine
from memory.compacted import compaction_line, extraction_line
from memory.records import NightStep
from memory.reports import NightReport

MOST_FACTS, MOST = 12, 6
"""Facts learned that are shown, and changes of any other kind; the rest is counted."""
STEP_NAMES = {
    "score_importance": "weigh what happened",
    "consolidate": "make it into facts",
    "settle": "settle the unimportant",
    "dream": "compare with what is known",
    "prune_links": "look for loose links",
    "consolidate_entities": "people and things",
    "reflect": "reflect",
    "prune": "forget the unimportant",
    "extract_facts": "save facts from the history",
    "compact": "compact the history",
    "weigh_night": "weigh what would change",
    "apply_operations": "write it down",
    "record_night": "end the night",
}
STATUS = {
    "preview": "a preview",
    "held": "held back",
    "undone": "undone",
    "discarded": "discarded",
    "approved": "about to be applied",
    "open": "not ended",
}


def night_view(
    report: NightReport,
    names: Names | None = None,
    *,
    everything: bool = False,
    more: str | None = None,
) -> RenderableType:
    """A night's report: its steps, what it changes, what is left and why.

    `names`: what the ids in it stand for, where more is known than it tells itself; `more`: the
    command that shows lists at full length.
    """
    if report["id"] is None:
        return Text("Nothing to do tonight: no model was called.")
    known = names or Names.told_by(report["operations"])
    parts: list[RenderableType] = [_head(report)]
    if report["steps"]:
        parts.append(steps_view(report["steps"]))
    hidden = 0
    for section in sections(report["operations"], known):
        most = MOST_FACTS if section.title.startswith("Learned") else MOST * section.lines
        shown = section.rows if everything else section.rows[:most]
        hidden += len(section.rows) - len(shown)
        parts += _section(section, shown)
    if hidden:
        how = more or f"circadian night {report['id']} --all"
        parts += [Text(), Text(f"All of it: {how}", style="dim")]
    endings = _endings(report)
    if len(parts) == 1 and not endings:
        parts.append(Text("Nothing in memory had to change."))
    return Group(*parts, *([Text(), *endings] if endings else []))


def steps_view(steps: Sequence[NightStep]) -> Table:
    """The steps of a night, a line each."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", show_edge=False)
    table.add_column("step")
    for name in ("done", "left", "calls", "tokens", "seconds"):
        table.add_column(name, justify="right")
    for step in steps:
        table.add_row(
            STEP_NAMES.get(step["step"], step["step"]),
            f"{step['done']:,}",
            f"{step['skipped']:,}",
            f"{step['llm_calls']:,}",
            f"{step['tokens']:,}",
            f"{step['seconds']:.1f}",
        )
    return table


def nights_view(nights: Sequence[NightLine]) -> RenderableType:
    """All nights, a line each, oldest first."""
    if not nights:
        return Text("There has been no night yet; `circadian sleep` goes through one.")
    # Close together, so that a line fits into 80 columns; the year stands in the id.
    near = (0, 1, 0, 0)
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, padding=near, header_style="dim", show_edge=False
    )
    table.add_column("night", no_wrap=True)
    table.add_column("when", no_wrap=True)
    table.add_column("outcome")
    for name in ("changes", "calls", "tokens"):
        table.add_column(name, justify="right")
    for one in nights:
        table.add_row(
            Text(one["id"], "cyan"),
            f"{date(one['started']).rpartition(' ')[0]} {clock_time(one['started'])}",
            became(one),
            f"{one['operations']:,}",
            f"{one['llm_calls']:,}",
            f"{one['tokens']:,}",
        )
    return table


def became(one: NightLine) -> Text:
    """What became of a night, in a word or two."""
    if one["status"] == "complete":
        if one["left"]:
            return Text(f"applied, {one['left']:,} left", "yellow")
        whole = one["complete"] and not one["stopped"]
        return Text("applied") if whole else Text("applied in part", "yellow")
    style = {"held": "yellow", "preview": "cyan", "open": "yellow"}.get(one["status"], "dim")
    return Text(STATUS[one["status"]].removeprefix("a ").removeprefix("about "), style)


def _head(report: NightReport) -> Text:
    early = "ended early" if report.get("stopped") else "complete"
    finished = early if report["complete"] else "not complete"
    if left := len(report["held"]):
        finished += f", {left:,} left for the next night"
    state = STATUS.get(report.get("status", ""), finished)
    return Text.assemble(
        ("☾ ", "blue"),
        (f"Night of {day(report['started'])}", "bold"),
        (f"  {report['id']}, {state}", "dim"),
    )


def _section(section: Section, shown: Sequence[Any]) -> list[RenderableType]:
    rows = Table.grid(padding=(0, 1))
    rows.add_column(no_wrap=True, justify="right")
    rows.add_column()
    for row in shown:
        rows.add_row(row.sign, row.text)
    left = (len(section.rows) - len(shown)) // section.lines
    if left:
        rows.add_row("", Text(f"and {left:,} more", style="dim"))
    return [Text(), Text(section.title, style="bold"), Padding(rows, (0, 0, 0, 1))]


def _endings(report: NightReport) -> list[RenderableType]:
    """The conversation, the gate, what stopped it, what is left, what failed."""
    parts: list[RenderableType] = []
    if "compaction" in report:
        parts.append(Text(compaction_line(report["compaction"])))
        if "extraction" in report:
            parts.append(Text(extraction_line(report["extraction"]), style="dim"))
    if report["held"]:
        parts.append(_held(report))
    if why := report.get("stopped"):
        rest = "the next night takes the rest, the most important first"
        parts.append(Text(f"Stopped early: {one_line(why)}; {rest}", style="yellow"))
    if why := (report.get("gate") or {}).get("held"):
        would = "Would be held back" if report["dry_run"] else "Held back for you to decide"
        parts.append(Text(f"{would}: {one_line(why)}", style="yellow"))
    if refused := report.get("refused"):
        parts.append(Text(_refused(refused), style="dim"))
    return [*parts, *(Text.assemble(("! ", "red"), one_line(one)) for one in report["errors"])]


def _refused(refused: Sequence[str]) -> str:
    """How many claims came to nothing, and how many of them were about what nobody showed it."""
    claims = counted(len(refused), "claim of the model", "claims of the model")
    unknown = sum("unknown id" in one or "no evidence among" in one for one in refused)
    made_up = f", {unknown:,} of them about ids that it was not shown" if unknown else ""
    return f"Refused: {claims}{made_up}, such as: {one_line(refused[0])}"


def _held(report: Mapping[str, Any] | NightReport) -> Text:
    number, below = len(report["held"]), report["errors"] or report.get("stopped")
    unsettled = f"the model did not settle {'it' if number == 1 else 'them'}"
    why = "see below" if below else unsettled
    entries = counted(number, "journal entry", "journal entries")
    return Text(f"Left for the next night: {entries} ({why})", style="yellow")
