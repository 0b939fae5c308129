"""A run for people: words and tools as they come, questions, and what a tick or a night cost.

Of a night also what it changed and what is left.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from graph.console import (
    FIRST_WORDS,
    Screen,
    Words,
    clean,
    context_meter,
    counted,
    date,
    day,
    day_rule,
    here,
    moment,
    one_line,
    ruled_table,
    short_id,
    shown_zone,
    visible,
)
from graph.differences import Change, ChangeGroup, NightChanges, Side, differences
from graph.following import LOOKING_BACK, STEP_NAMES, Listener, progress
from graph.use_cases import NIGHT_STATUS, Labels, NightLine
from memory.audit import CAUSES
from memory.night import NightEvent
from memory.records import (
    FailureReport,
    ModeChange,
    NightReport,
    NightStep,
    Question,
    SentMessage,
    TickReport,
    ToolOutcome,
    compaction_line,
    extraction_line,
)
from memory.text import shortened

CLEAR = "`circadian clear-stop` clears the stop"


class ProgressScreen(Listener):
    """A spinner that names the current work, below the finished steps of a night.

    It clears itself at the end; without a terminal it shows nothing.
    """

    def __init__(self, screen: Screen, doing: str) -> None:
        self._screen = screen
        self._steps: dict[str, NightEvent] = {}
        self._spinner = Spinner("dots", style="dim")
        self._live: Live | None = None
        self._doing = doing

    def __enter__(self) -> Self:
        self._wait(self._doing)
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def on_night(self, event: NightEvent) -> None:
        """Show the step that goes on, and each that has ended."""
        self._steps[event["step"]] = event
        self._wait(progress(event))

    def _wait(self, text: str) -> None:
        if not self._screen.live:
            return
        self._spinner.update(text=Text(clean(text), style="dim"))
        over = [event for event in self._steps.values() if event["event"] == "end"]
        ended = (Text.assemble(("✓ ", "green"), (progress(event), "dim")) for event in over)
        shown = Group(*ended, self._spinner)
        if self._live is None:
            out = self._screen.out
            self._live = Live(shown, console=out, transient=True, refresh_per_second=12.5)
            self._live.start()
        else:
            self._live.update(shown)

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
        self._live = None


class Talk(ProgressScreen):
    """A progress screen that also prints the words of an answer, and a line for each tool."""

    def __init__(self, screen: Screen, doing: str) -> None:
        super().__init__(screen, doing)
        self._message: str | None = None
        """The id of the answer that is being printed."""
        self._words: Words | None = None

    def __exit__(self, *error: object) -> None:
        self._stop()
        self._end_line()

    def on_words(self, text: str, message_id: str) -> None:
        """Print words of an answer; another answer begins on a new line."""
        if self._screen.json:
            return
        self._stop()
        if self._message != message_id:
            self._end_line()
        self._message = message_id
        self._words = self._words or Words(self._screen)
        self._words.add(text)

    def on_work(self, tools: list[str]) -> None:
        """Name the current work."""
        self._end_line()
        self._wait(", ".join(tools))

    def on_outcomes(self, outcomes: list[ToolOutcome]) -> None:
        """A line for each tool."""
        for outcome in outcomes:
            self._screen.show(tool_line(outcome))
        self._wait("thinking")

    def on_night(self, event: NightEvent) -> None:
        """Name the step; before the first words it is an unfinished night's."""
        which = "first the unfinished night" if self._message is None else "asleep"
        self._end_line()
        self._wait(f"{which}: {progress(event)}")

    def _end_line(self) -> None:
        if self._words is not None:
            self._words.end()
        self._words = None


class Transcript:
    """Who said what and when, in columns, under a rule for each day."""

    def __init__(self, screen: Screen) -> None:
        self._screen, self._zone = screen, shown_zone()
        self._today: str | None = None

    def day(self, at: datetime) -> None:
        """Print a heading for a new day, if `at` is on another day."""
        moment = at.astimezone(self._zone)
        if moment.date().isoformat() != self._today:
            self._today = moment.date().isoformat()
            self._screen.show("", day_rule(moment))

    def row(self, who: Text, what: RenderableType, *, at: datetime | None = None) -> None:
        """Time, name and text; the text is wrapped in its own column."""
        if at is not None:
            self.day(at)
        row = Table.grid(padding=(0, 1))
        row.add_column(width=5)
        row.add_column(width=10, no_wrap=True, overflow="ellipsis")
        row.add_column()
        time = f"{at.astimezone(self._zone):%H:%M}" if at else ""
        row.add_row(Text(time, style="dim"), who, what)
        self._screen.show(row)

    def aside(self, text: str) -> None:
        """A dim remark of the program's own."""
        self.row(Text(), Text(one_line(text), style="dim"))

    def event(self, event: Mapping[str, Any], at: datetime) -> None:
        """A message; an overheard one is dim."""
        heard = event.get("addressed", True)
        text = Text(one_line(event["text"]), style="" if heard else "dim italic")
        if event["channel"]:
            text.append(f" ({one_line(event['channel'])})", style="dim")
        self.row(Text(one_line(event["sender"]), style="cyan" if heard else "dim"), text, at=at)

    def tick(self, tick: TickReport, at: datetime | None = None) -> None:
        """The tools, the messages to others, and the answer, unless it reviews its own work."""
        for line in [*map(tool_line, tick["tools"]), *map(sent_line, tick["sent"])]:
            self.row(Text(), line, at=at)
            at = None
        if tick["reply"] and tick["context_type"] not in LOOKING_BACK:
            self.row(Text("Circadian", style="yellow"), Text(clean(tick["reply"])), at=at)


def tool_line(outcome: ToolOutcome) -> Text:
    """`✓ add_goal`, or `✗ add_goal (failed)`."""
    mark, style = ("✓", "green") if outcome["ok"] else ("✗", "red")
    failed = "" if outcome["ok"] else " (failed)"
    return Text.assemble((f"  {mark} ", style), (clean(outcome["name"]) + failed, "dim"))


def sent_line(sent: SentMessage) -> Text:
    """`→ Ben (#kitchen): text`."""
    channel = sent["channel"]
    place = f" (#{one_line(channel).removeprefix('#')})" if channel else ""
    to, text = one_line(sent["to"]), clean(sent["text"])
    return Text.assemble(("→ ", "cyan"), (to, "bold"), (place, "dim"), ": ", text)


def mode_line(change: ModeChange) -> Text:
    """`falls asleep at its hour · its hour has come (02:00 UTC, 4 h)`."""
    did, style = ("falls asleep", "blue") if change["mode"] == "sleep" else ("wakes", "yellow")
    line = Text.assemble((did, style), f" {CAUSES[change['why']]}")
    return line.append(f" · {one_line(change['reason'])}", style="dim")


def cost_line(tick: TickReport) -> str:
    """`tick 3 · 2 calls · 1,200 tokens`."""
    calls, tokens = counted(tick["llm_calls"], "call"), counted(tick["tokens"], "token")
    return f"tick {tick['tick']} · {calls} · {tokens}"


def footer(tick: TickReport, context: Mapping[str, Any]) -> Text:
    """The cost of a tick, and how full the context is now."""
    meter = context_meter(context, width=10)
    return Text.assemble((f"{cost_line(tick)} · context ", "dim"), meter)


def what_next(failure: FailureReport, most: int) -> str:
    """The fate of an event after a failed tick, with `most` attempts allowed."""
    if failure["event_id"] is None:
        return "that tick is dropped"
    if failure["set_aside"]:
        return f"set aside after {failure['attempts']} attempts"
    if not failure["attempts"]:
        return "kept in the inbox"
    return f"kept in the inbox, attempt {failure['attempts']} of {most}"


def stop_line(why: str) -> str:
    """Why the emergency stop is set, without the last failure, and how to clear it."""
    reason = why.partition(", the last: ")[0]
    return f"emergency stop{f' ({reason})' if reason else ''}: {CLEAR}"


LONGEST_VALUE, MOST_LINES = 10_000, 200
"""Characters and lines of one argument that are shown."""

SHORT_VALUE = 60
"""Characters of an argument that are shown beside a difference."""

_DIFF_STYLE = {"+": "green", "-": "red", "@": "cyan"}

_SAID = {
    "approve": ("approved", "green"),
    "edit": ("approved", "green"),
    "refuse": ("refused", "yellow"),
}


def question_view(question: Question) -> RenderableType:
    """The tool, its arguments, what it would change, why and for whom."""
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim", no_wrap=True)
    rows.add_column()
    difference = question["difference"]
    for name, value in arguments(question).items():
        rows.add_row(one_line(name), _value(value, short=difference is not None))
    if difference:
        rows.add_row("change", _difference(difference))
    if question["reason"]:
        rows.add_row("why", Text(one_line(question["reason"])))
    if others := question.get("rests_on"):
        rows.add_row("rests on", Text(whose_words(others), style="yellow"))
    who = one_line(question["sender"]) if question["sender"] else "its own goals"
    rows.add_row("for", Text(f"{who}, {moment(question['asked_at'])}"))
    tool = (one_line(question["tool"]), "bold")
    head = Text.assemble(("? ", "bold yellow"), "It wants to run ", tool, ":")
    return Group(head, Padding(rows, (0, 0, 0, 2)))


def whose_words(people: Sequence[str]) -> str:
    """People other than owners, on whose words something rests."""
    return f"words of {', '.join(map(one_line, people))}"


def answer_line(question: Question, answer: Mapping[str, Any]) -> Text:
    """`approved launch(target='the moon')`."""
    said, style = _SAID[answer["decision"]]
    args = answer["args"] if answer["decision"] == "edit" else arguments(question)
    told = ", ".join(f"{name}={value!r}" for name, value in args.items())
    what = f"{question['tool']}({told})"
    return Text.assemble((f"{said} ", style), (shortened(visible(what), SHORT_VALUE), "dim"))


def still_waiting(questions: Sequence[Question]) -> str:
    """One line: questions wait, and how to find them."""
    if len(questions) == 1:
        question = questions[0]
        what = shortened(one_line(question["what"]), 2 * FIRST_WORDS)
        return f"a question waits: {what} (approve or refuse {question['id']})"
    ids = ", ".join(question["id"] for question in questions)
    return f"{len(questions)} questions wait: {ids} (status shows them)"


def arguments(question: Question) -> dict[str, Any]:
    """The arguments without the model's reasoning, which is shown on its own."""
    return {key: value for key, value in question["args"].items() if key != "reasoning"}


def _value(value: Any, *, short: bool) -> Text:
    """An argument with its control characters visible; a very long one is cut, and says so."""
    text = visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    if short:
        return Text(shortened(text, SHORT_VALUE))
    seen = "\n".join(text.split("\n")[:MOST_LINES])[:LONGEST_VALUE]
    left = len(text) - len(seen)
    more = f"\n… {left:,} more characters (circadian status --json has all)" if left else ""
    return Text.assemble(seen, (more, "yellow"))


def _difference(text: str) -> Text:
    """A unified diff in colours. It is never cut: a person decides on it."""
    shown = Text()
    for number, line in enumerate(visible(text).split("\n")):
        heading = line.startswith(("--- ", "+++ ")) and number < 2
        style = "dim" if heading else _DIFF_STYLE.get(line[:1], "")
        shown.append(line, style).append("\n")
    shown.rstrip()
    return shown


MOST_LEARNED, MOST_CHANGES = 12, 6
"""Most learned facts, and most changes of another kind, that are shown; others are counted."""

LEFT_WORDS = {
    "consolidate": ("journal entry", "journal entries"),
    "dream": ("fact to compare", "facts to compare"),
    "consolidate_entities": ("person or thing", "people and things"),
    "reflect": ("reflection", "reflections"),
}
"""What a step leaves for the next night, one and several."""

_OUTCOMES = {**NIGHT_STATUS, "preview": "preview", "approved": "to be applied"}
"""A night's status, for a cell of a table."""


def night_view(
    report: NightReport,
    names: Labels,
    *,
    everything: bool = False,
    more: str | None = None,
) -> RenderableType:
    """A night's report: its steps, its changes, what is left and why.

    With `everything` lists are shown at full length; `more` is the command that does so.
    """
    if report["id"] is None:
        return Text("Nothing to do tonight: no model was called.")
    parts: list[RenderableType] = [_head(report)]
    if report["steps"]:
        parts.append(steps_view(report["steps"]))
    hidden = 0
    for group in differences(NightChanges(report["operations"], names)):
        most = MOST_LEARNED if group.key == "learned" else MOST_CHANGES
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


def nights_view(nights: Sequence[NightLine], year: int) -> RenderableType:
    """All nights, a line each, oldest first. `year`, this one, is left out of dates."""
    if not nights:
        return Text("There has been no night yet; `circadian sleep` starts one.")
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
    return Text(_OUTCOMES[status], style)


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
    if group.note:
        parts.append(Padding(Text(one_line(group.note), style="dim"), (0, 0, 0, 1)))
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
        waits = ", ".join(counted(number, *LEFT_WORDS[step]) for step, number in left.items())
        parts.append(Text(f"Left for the next night: {waits}", style="yellow"))
    if why := report.get("stopped"):
        rest = "the next night takes the rest, the most important first"
        parts.append(Text(f"Stopped early: {one_line(why)}; {rest}", style="yellow"))
    if why := (report.get("gate") or {}).get("held"):
        would = "Would be held back" if report["dry_run"] else "Held back for you to decide"
        parts.append(Text(f"{would}: {one_line(why)}", style="yellow"))
    if refused := report.get("refused"):
        most = None if everything else MOST_CHANGES
        parts += (Text(line, style="dim") for line in _refused(refused, most))
    return [*parts, *(Text.assemble(("! ", "red"), one_line(error)) for error in report["errors"])]


def _left(report: NightReport) -> dict[str, int]:
    """How much of each kind the next night takes up. Other steps leave entries: `held` counts."""
    left = {**report.get("left", {}), "consolidate": len(report["held"])}
    return {step: left[step] for step in LEFT_WORDS if left.get(step)}


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
