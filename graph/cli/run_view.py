"""A run for people: words and tools as they come, questions, and what a tick cost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
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
    day_rule,
    moment,
    one_line,
    shown_zone,
    visible,
)
from graph.following import LOOKING_BACK, Listener, progress
from memory.audit import CAUSES
from memory.night import NightEvent
from memory.records import FailureReport, ModeChange, Question, SentMessage, TickReport, ToolOutcome
from memory.text import shortened

CLEAR = "`circadian clear-stop` clears the stop"


class ProgressScreen(Listener):
    """A spinner that names the current work, below the finished steps of a night.

    Nothing stays on the screen; without a terminal nothing is shown.
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
        self._still()

    def night(self, event: NightEvent) -> None:
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

    def _still(self) -> None:
        if self._live is not None:
            self._live.stop()
        self._live = None


class Talk(ProgressScreen):
    """A progress screen that also prints the words of an answer, and a line for each tool."""

    def __init__(self, screen: Screen, doing: str = "thinking") -> None:
        super().__init__(screen, doing)
        self._message: str | None = None
        """The id of the answer that is being printed."""
        self._words: Words | None = None

    def __exit__(self, *error: object) -> None:
        self._still()
        self._end_line()

    def words(self, text: str, message_id: str) -> None:
        """Print words of an answer; another answer begins on a new line."""
        if self._screen.json:
            return
        self._still()
        if self._message != message_id:
            self._end_line()
        self._message = message_id
        self._words = self._words or Words(self._screen)
        self._words.add(text)

    def asked(self, tools: list[str]) -> None:
        """Name the current work."""
        self._end_line()
        self._wait(", ".join(tools))

    def used(self, outcomes: list[ToolOutcome]) -> None:
        """A line for each tool."""
        for outcome in outcomes:
            self._screen.show(tool_line(outcome))
        self._wait("thinking")

    def night(self, event: NightEvent) -> None:
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

    def __init__(self, screen: Screen, zone: tzinfo | None = None) -> None:
        """`zone`: in which times are shown; default `shown_zone`."""
        self._screen = screen
        self._zone = zone or shown_zone()
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


LONGEST, MOST_LINES = 10_000, 200
"""Characters and lines of one argument that are shown."""

SHORT = 60
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
    who = one_line(question["sender"]) if question["sender"] else "its own goals"
    rows.add_row("for", Text(f"{who}, {moment(question['asked_at'])}"))
    tool = (one_line(question["tool"]), "bold")
    head = Text.assemble(("? ", "bold yellow"), "It wants to run ", tool, ":")
    return Group(head, Padding(rows, (0, 0, 0, 2)))


def answer_line(question: Question, answer: Mapping[str, Any]) -> Text:
    """`approved launch(target='the moon')`."""
    said, style = _SAID[answer["decision"]]
    args = answer["args"] if answer["decision"] == "edit" else arguments(question)
    told = ", ".join(f"{name}={value!r}" for name, value in args.items())
    what = f"{question['tool']}({told})"
    return Text.assemble((f"{said} ", style), (shortened(visible(what), SHORT), "dim"))


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
        return Text(shortened(text, SHORT))
    seen = "\n".join(text.split("\n")[:MOST_LINES])[:LONGEST]
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
