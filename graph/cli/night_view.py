"""A night for people: what it changed, what is left, and what it cost. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from graph.console import counted, date, day, here, one_line, ruled_table, short_id
from graph.differences import Change, ChangeGroup, NightChanges, Side, differences
from graph.following import STEP_NAMES
from graph.use_cases import NIGHT_STATUS, Labels, NightLine
from memory.records import NightReport, NightStep, compaction_line, extraction_line

MOST_FACTS, MOST = 12, 6
"""Most learned facts, and most changes of another kind, that are shown; others are counted."""

WORDS = {
    "consolidate": ("journal entry", "journal entries"),
    "dream": ("fact to compare", "facts to compare"),
    "consolidate_entities": ("person or thing", "people and things"),
}
"""What a step leaves for the next night, one and several."""


def night_view(
    report: NightReport,
    names: Labels | None = None,
    *,
    everything: bool = False,
    more: str | None = None,
) -> RenderableType:
    """A night's report: its steps, its changes, what is left and why.

    With `everything` lists are shown at full length; `more` is the command that does so.
    """
    if report["id"] is None:
        return Text("Nothing to do tonight: no model was called.")
    known = names or Labels.told_by(report["operations"])
    parts: list[RenderableType] = [_head(report)]
    if report["steps"]:
        parts.append(steps_view(report["steps"]))
    hidden = 0
    for group in differences(NightChanges(report["operations"], known)):
        most = MOST_FACTS if group.key == "learned" else MOST
        shown = group.changes if everything else group.changes[:most]
        hidden += len(group.changes) - len(shown)
        parts += _section(group, shown)
    if hidden:
        how = more or f"circadian night {report['id']} --all"
        parts += [Text(), Text(f"All of it: {how}", style="dim")]
    endings = _endings(report, everything=everything)
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


def nights_view(nights: Sequence[NightLine], year: int | None = None) -> RenderableType:
    """All nights, a line each, oldest first. `year`: goes without saying; None: the newest's."""
    if not nights:
        return Text("There has been no night yet; `circadian sleep` starts one.")
    year = year or here(nights[-1]["started"]).year
    when = f"when ({here(nights[-1]['started']):%Z})"
    table = ruled_table("night", when, "outcome", right=("changes", "calls", "tokens"))
    table.padding = (0, 1, 0, 0)  # narrow, to fit into 80 columns
    for column in table.columns[:2]:
        column.no_wrap = True
    for night in nights:
        table.add_row(
            Text(night["id"], "cyan"),
            f"{date(night['started']).removesuffix(f' {year}')} {here(night['started']):%H:%M}",
            _outcome(night),
            f"{night['operations']:,}",
            f"{night['llm_calls']:,}",
            f"{night['tokens']:,}",
        )
    return table


def _outcome(night: NightLine) -> Text:
    status = night["status"]
    if status in ("complete", "partial"):
        if night["left"]:
            return Text(f"applied, {night['left']:,} left", "yellow")
        whole = night["complete"] and not night["stopped"]
        return Text("applied") if whole else Text(NIGHT_STATUS["partial"], "yellow")
    style = {"held": "yellow", "preview": "cyan", "open": "yellow"}.get(status, "dim")
    return Text(NIGHT_STATUS[status].removeprefix("a ").removeprefix("about "), style)


def _head(report: NightReport) -> Text:
    early = "ended early" if report.get("stopped") else "complete"
    finished = early if report["complete"] else "not complete"
    if left := _left(report):
        finished += f", {sum(left.values()):,} left for the next night"
    status = report.get("status", "complete")
    state = finished if status in ("complete", "partial") else NIGHT_STATUS[status]
    return Text.assemble(
        ("☾ ", "blue"),
        (f"Night of {day(report['started'])}", "bold"),
        (f"  {report['id']}, {state}", "dim"),
    )


def _section(group: ChangeGroup, shown: Sequence[Change]) -> list[RenderableType]:
    rows = Table.grid(padding=(0, 1))
    for change in shown:
        for row in _rows(change):
            rows.add_row(*row)
    if left := len(group.changes) - len(shown):
        rows.add_row("", Text(f"and {left:,} more", style="dim"))
    parts: list[RenderableType] = [Text(), Text(group.title, style="bold")]
    if group.told:
        parts.append(Padding(Text(one_line(group.told), style="dim"), (0, 0, 0, 1)))
    return [*parts, Padding(rows, (0, 0, 0, 1))] if shown else parts


def _rows(change: Change) -> Iterator[tuple[Text, Text]]:
    """A sign and a text for each side; the note follows the last text."""
    before, after, stays = change.before, change.after, change.stays
    note = f" — {one_line(change.note)}" if change.note else ""
    if before:
        text = Text(one_line(before.text), "" if stays else "strike")
        text.append(_origin(before), "not strike dim")
        text.append("" if after else note, "not strike italic dim")
        yield Text("~", "cyan") if stays else Text("-", "red"), text
    if after:
        sign = Text("•" if before is None else "" if stays else "+", "green")
        yield (
            sign,
            Text.assemble(one_line(after.text), (_origin(after), "dim"), (note, "italic dim")),
        )


def _endings(report: NightReport, *, everything: bool) -> list[RenderableType]:
    parts: list[RenderableType] = []
    if "compaction" in report:
        parts.append(Text(compaction_line(report["compaction"])))
        if "extraction" in report:
            parts.append(Text(extraction_line(report["extraction"]), style="dim"))
    if left := _left(report):
        waits = ", ".join(counted(number, *WORDS[step]) for step, number in left.items())
        parts.append(Text(f"Left for the next night: {waits}", style="yellow"))
    if why := report.get("stopped"):
        rest = "the next night takes the rest, the most important first"
        parts.append(Text(f"Stopped early: {one_line(why)}; {rest}", style="yellow"))
    if why := (report.get("gate") or {}).get("held"):
        would = "Would be held back" if report["dry_run"] else "Held back for you to decide"
        parts.append(Text(f"{would}: {one_line(why)}", style="yellow"))
    if refused := report.get("refused"):
        most = None if everything else MOST
        parts += (Text(line, style="dim") for line in _refused(refused, most))
    return [*parts, *(Text.assemble(("! ", "red"), one_line(error)) for error in report["errors"])]


def _left(report: NightReport) -> dict[str, int]:
    """How much of each kind the next night takes up; what is not in WORDS is among the entries."""
    left = {**report.get("left", {}), "consolidate": len(report["held"])}
    return {step: left[step] for step in WORDS if left.get(step)}


def _refused(refused: Sequence[str], most: int | None) -> Iterator[str]:
    yield f"Refused: {counted(len(refused), 'claim of the model', 'claims of the model')}:"
    yield from (f"  {one_line(claim)}" for claim in refused[:most])
    if most is not None and len(refused) > most:
        yield f"  and {len(refused) - most:,} more"


def night_line(report: NightReport | None) -> Text:
    """A night in one line: facts learned, model calls, what is left."""
    if report is None or report["id"] is None:
        return Text("night: nothing to do")
    facts = sum(operation["kind"] == "add_fact" for operation in report["operations"])
    calls = sum(step["llm_calls"] for step in report["steps"])
    line = f"night: {counted(facts, 'fact')} learned, {counted(calls, 'model call')}"
    left = sum(_left(report).values())
    return Text(line + (f", {left:,} left for the next night" if left else ""))


def _origin(side: Side) -> str:
    parts = [one_line(side.speaker)] if side.speaker else []
    parts += [date(side.at)] if side.at else []
    parts += [", ".join(map(short_id, side.sources))] if side.sources else []
    return f" ({', '.join(parts)})" if parts else ""
