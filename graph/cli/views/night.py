"""A night for people: what it learned and changed, what it cost. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from graph.cli.views.changes import Section, sections
from graph.cli.views.console import clock_time, counted, date, day, one_line, ruled_table
from graph.night_names import Names
from graph.nights import NightLine
from memory.compacted import compaction_line, extraction_line
from memory.night_stream import NightEvent
from memory.records import NightStep
from memory.reports import NightReport

MOST_FACTS, MOST = 12, 6
"""Learned facts, and changes of any other kind, that are shown; the rest is counted."""
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
    """A night's report: its steps, its changes, what is left and why.

    Args:
        report: the night.
        names: the names behind the ids in it; default those that its operations tell.
        everything: whether to show lists at full length.
        more: the command that does so.
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
    table = ruled_table("step", right=("done", "left", "calls", "tokens", "seconds"))
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
    table = ruled_table("night", "when", "outcome", right=("changes", "calls", "tokens"))
    table.padding = (0, 1, 0, 0)  # narrow, to fit into 80 columns; the year stands in the id
    for column in table.columns[:2]:
        column.no_wrap = True
    for night in nights:
        table.add_row(
            Text(night["id"], "cyan"),
            f"{date(night['started']).rpartition(' ')[0]} {clock_time(night['started'])}",
            _outcome(night),
            f"{night['operations']:,}",
            f"{night['llm_calls']:,}",
            f"{night['tokens']:,}",
        )
    return table


def _outcome(night: NightLine) -> Text:
    """What became of a night, in a word or two."""
    status = night["status"]
    if status == "complete":
        if night["left"]:
            return Text(f"applied, {night['left']:,} left", "yellow")
        whole = night["complete"] and not night["stopped"]
        return Text("applied") if whole else Text("applied in part", "yellow")
    style = {"held": "yellow", "preview": "cyan", "open": "yellow"}.get(status, "dim")
    return Text(STATUS[status].removeprefix("a ").removeprefix("about "), style)


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
    """The compaction, what is left, what stopped or held the night, what failed."""
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
    return [*parts, *(Text.assemble(("! ", "red"), one_line(error)) for error in report["errors"])]


def _refused(refused: Sequence[str]) -> str:
    """How many claims were refused, how many of them with invented ids, and the first one."""
    claims = counted(len(refused), "claim of the model", "claims of the model")
    unknown = sum("unknown id" in claim or "no evidence among" in claim for claim in refused)
    made_up = f", {unknown:,} of them about ids that it was not shown" if unknown else ""
    return f"Refused: {claims}{made_up}, such as: {one_line(refused[0])}"


def _held(report: Mapping[str, Any] | NightReport) -> Text:
    number, below = len(report["held"]), report["errors"] or report.get("stopped")
    unsettled = f"the model did not settle {'it' if number == 1 else 'them'}"
    why = "see below" if below else unsettled
    entries = counted(number, "journal entry", "journal entries")
    return Text(f"Left for the next night: {entries} ({why})", style="yellow")


def night_line(report: NightReport | None) -> Text:
    """A night in one line: facts learned, model calls, what is left."""
    if report is None or report["id"] is None:
        return Text("night: nothing to do")
    facts = sum(operation["kind"] == "add_fact" for operation in report["operations"])
    calls = sum(step["llm_calls"] for step in report["steps"])
    line = f"night: {counted(facts, 'fact')} learned, {counted(calls, 'model call')}"
    left = len(report["held"])
    return Text(line + (f", {left:,} left for the next night" if left else ""))


def progress(event: NightEvent) -> str:
    """`weigh what happened: 20 of 52, 2 calls`, with the counts that are known."""
    counts = [f"{event['done']:,} of {event['of']:,}"] if event["of"] else []
    counts += [counted(event["llm_calls"], "call")] if event["llm_calls"] else []
    name = STEP_NAMES.get(event["step"], event["step"])
    return f"{name}: {', '.join(counts)}" if counts else name
