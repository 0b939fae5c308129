"""`circadian replay`: how a person follows a replay, and what is printed at its end."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from graph.cli.access import opening, say_model
from graph.cli.console import Screen, clean, clock_time, counted, day, one_line
from graph.cli.following import LOOKING_BACK, follow
from graph.cli.night_view import night_view
from graph.cli.options import Options
from graph.cli.render import day_rule
from graph.cli.replay import Clock, Tally, Watcher, replay
from graph.cli.replay_file import Step, count_lines
from graph.cli.talk import NightWatch, tool_line
from graph.cli.turn import asking, sent_line, still_waiting, what_next
from graph.cli.waiting import telling_waits
from graph.handle import AsyncAgent
from graph.night_names import names_of
from memory.models.seam import model_name
from memory.records import Event
from memory.reports import FailureReport, Report, TickReport

REQUESTED = {"tick": "(works on its goals)", "wake": "(wakes up)"}


async def replay_file(options: Options, path: Path, *, conversation: bool) -> int:
    """Replay a file. Status 1 when something in it failed and did not succeed later."""
    screen = Screen(json=options.json)
    lines = count_lines(path)
    clock = Clock()
    async with opening(options, clock=clock) as agent:
        if screen.json and screen.err.is_terminal:
            say_model(screen, agent)
        model = model_name(agent.resources.chat_model)
        screen.show(Text(f"{path.name}: {counted(lines, 'line')}, model {model}", style="dim"))
        watcher = Conversation(screen) if conversation else Days(screen, lines)
        with watcher:
            tally = await replay(agent, path, clock, Patient(options, screen, watcher))
        tally.questions = len(await asking(agent))
        screen.result(tally.as_json(), _summary(tally))
        return _failed(screen, tally, agent.settings.max_failed_ticks)


class Patient:
    """Runs as another watcher does, and says whom a run waits for."""

    def __init__(self, options: Options, screen: Screen, watcher: Watcher) -> None:
        self._options, self._screen, self._watcher = options, screen, watcher

    async def run(self, agent: AsyncAgent, step: Step, given: dict[str, Any]) -> Report:
        """Run."""
        async with telling_waits(self._options, self._screen):
            return await self._watcher.run(agent, step, given)

    def skip(self, step: Step) -> None:
        """Handled before."""
        self._watcher.skip(step)


class Days:
    """A line for each day and each night; on a terminal with a progress bar below them."""

    def __init__(self, screen: Screen, lines: int) -> None:
        self._screen = screen
        self._today: str | None = None
        self._heard = self._answered = 0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=screen.out,
            transient=True,
            disable=not screen.live,
        )
        self._task = self._progress.add_task("replaying", total=lines)

    def __enter__(self) -> Days:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._close_day()
        self._progress.stop()

    async def run(self, agent: AsyncAgent, step: Step, given: dict[str, Any]) -> Report:
        """Run, and count what the day brought."""
        if step.events and day(step.events[-1]["at"]) != self._today:
            self._close_day()
            self._today = day(step.events[-1]["at"])
        report: Report = (await agent.ainvoke(given))["report"]
        self._heard += len(step.events)
        self._answered += sum(tick["event_id"] is not None for tick in _ticks(report))
        if report["night"] is not None:
            self._close_day()
            self._screen.show(_night_line(report))
        self._progress.advance(self._task, step.lines)
        return report

    def skip(self, step: Step) -> None:
        """Nothing to do but to move the bar."""
        self._progress.advance(self._task, step.lines)

    def _close_day(self) -> None:
        if self._today is not None and self._heard:
            events = counted(self._heard, "event")
            self._screen.show(f"{self._today}: {events}, {self._answered} answered")
        self._today, self._heard, self._answered = None, 0, 0


class Conversation(AbstractContextManager["Conversation"]):
    """What is said, by whom and when, the answers and the tools, and each night's report."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._today: str | None = None
        self._asked: set[str] = set()
        """Questions that were shown."""

    def __exit__(self, *error: object) -> None:
        """Nothing stays open."""

    async def run(self, agent: AsyncAgent, step: Step, given: dict[str, Any]) -> Report:
        """Show the events, run, show the answers."""
        for event in given.get("events", []):
            self._event(event)
        if step.request == "sleep":
            return await self._night(agent, given)
        if step.request:
            self._day(step.at)
            self._screen.show(_line(_time(step.at), Text(), Text(REQUESTED[step.request], "dim")))
        with self._screen.waiting("thinking") if step.events else nullcontext():
            report: Report = (await agent.ainvoke(given))["report"]
        self._answers(report)
        return report

    def skip(self, step: Step) -> None:
        """What was handled before was shown before."""

    def _event(self, event: Event) -> None:
        self._day(event["at"])
        text = Text(one_line(event["text"]), style="" if event["addressed"] else "dim italic")
        who = Text(one_line(event["sender"]), style="cyan" if event["addressed"] else "dim")
        if event["channel"]:
            text.append(f" ({one_line(event['channel'])})", style="dim")
        self._screen.show(_line(_time(event["at"]), who, text))

    def _day(self, at: str | None) -> None:
        if at is not None and day(at) != self._today:
            self._today = day(at)
            self._screen.show("", day_rule(at))

    def _answers(self, report: Report) -> None:
        for tick in report["ticks"]:
            self._tick(tick)
        for ignored in report["ignored"]:
            self._aside(f"(left alone: {ignored['reason']})")
        for question in report["questions"]:
            if question["id"] not in self._asked:
                self._aside(f"({still_waiting([question])})")
            self._asked.add(question["id"])
        for failure in report["failures"]:
            failed = Text(f"failed: {failure['error']}", style="red")
            self._screen.show(_line(Text(), Text(), failed))

    def _tick(self, tick: TickReport) -> None:
        """Tools, what was said to others, the answer. A look at its own work is no answer."""
        if tick["context_type"] in LOOKING_BACK:
            used = ", ".join(outcome["name"] for outcome in tick["tools"])
            return self._aside(f"(looks back at its own work{f': {used}' if used else ''})")
        lines = [*map(tool_line, tick["tools"]), *map(sent_line, tick["sent"])]
        for line in lines:
            self._screen.show(_line(Text(), Text(), line))
        if tick["reply"]:
            reply = Text(clean(tick["reply"]))
            self._screen.show(_line(Text(), Text("Circadian", style="yellow"), reply))
        return None

    def _aside(self, text: str) -> None:
        self._screen.show(_line(Text(), Text(), Text(one_line(text), style="dim")))

    async def _night(self, agent: AsyncAgent, given: dict[str, Any]) -> Report:
        with NightWatch(self._screen) as watch:
            report = await follow(agent, given, watch)
        if report["night"] is not None:
            names = await names_of(agent.context, report["night"]["operations"])
            self._screen.show("", night_view(report["night"], names))
        self._answers(report)
        return report


def _ticks(report: Report) -> list[TickReport]:
    """Those that were not the assistant's look at its own work."""
    return [tick for tick in report["ticks"] if tick["context_type"] not in LOOKING_BACK]


def _line(time: Text, who: Text, text: Text) -> Table:
    """Time, name and text in columns, the text wrapped in its own."""
    row = Table.grid(padding=(0, 1))
    row.add_column(width=5)
    row.add_column(width=10, no_wrap=True, overflow="ellipsis")
    row.add_column()
    row.add_row(time, who, text)
    return row


def _time(at: str | None) -> Text:
    return Text(clock_time(at) if at else "", style="dim")


def _night_line(report: Report) -> Text:
    night = report["night"]
    if night is None or night["id"] is None:
        return Text("night: nothing to do")
    facts = sum(one["kind"] == "add_fact" for one in night["operations"])
    calls = sum(step["llm_calls"] for step in night["steps"])
    line = f"night: {counted(facts, 'fact')} learned, {counted(calls, 'model call')}"
    left = len(night["held"])
    return Text(line + (f", {left:,} left for the next night" if left else ""))


def _summary(tally: Tally) -> Text:
    """The counts; what a replay seldom brings only where there is some."""
    ignored = f"{tally.ignored:,} left alone, " if tally.ignored else ""
    asked = counted(tally.questions, "question waits", "questions wait")
    return Text.assemble(
        (counted(tally.events, "event"), "bold"),
        f": {counted(tally.ticks, 'tick')}, {tally.context_only:,} overheard, {ignored}"
        f"{counted(tally.skipped, 'line')} skipped, {counted(tally.nights, 'night')}",
        f"; {asked} (circadian status)" if tally.questions else "",
    )


def _failed(screen: Screen, tally: Tally, most: int) -> int:
    """A line for each failure; the exit status."""
    for failure in tally.failed.values():
        screen.problem(_failure(failure, most))
    return 1 if tally.failed else 0


def _failure(failure: FailureReport, most: int) -> str:
    if failure["event_id"] is None:
        return failure["error"]
    kept = "kept in the inbox; the replay ended here"
    after = what_next(failure, most) if failure["attempts"] else kept
    return f"{failure['event_id']}: {failure['error']} ({after})"
