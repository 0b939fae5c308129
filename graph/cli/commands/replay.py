"""`circadian replay` and `demo`: files of events and requests, each handled once, on their clock.

An event is a line `{"id", "at", "sender", "text", "channel"?, "addressed"?}`, a request a line
`{"request": "sleep" | "wake" | "tick", "at"?}`. Empty lines are skipped. A second replay skips what
was handled before: events by their id, requests by a mark that is kept once the request was carried
out. A kill between a request and its mark repeats that one request.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator
from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text
from typer import Argument, Exit, Option

from graph.api import AsyncAgent
from graph.cli.access import NO_LANGUAGE_MODEL, Session, reading, running, unanswered
from graph.cli.commands.status import serve_inspector
from graph.cli.exits import INTERRUPTED
from graph.cli.program import Options, command
from graph.cli.run_view import (
    ProgressScreen,
    Transcript,
    night_line,
    night_view,
    still_waiting,
    what_next,
)
from graph.cli.status_view import goals_view, projects_view
from graph.console import Screen, counted, date, day, one_line
from graph.documents import recalled_memory
from graph.following import LOOKING_BACK, Listener
from graph.use_cases import Status, labels_for, status
from memory.errors import CircadianError, FolderError, InputError, explained
from memory.events import inbox
from memory.messages import in_utc, valid_event
from memory.models import choose_model, is_offline, model_name
from memory.records import (
    Event,
    FailureReport,
    HandledMark,
    ParkedTick,
    RecallHit,
    Report,
    TickReport,
    operation_id,
)
from memory.runtime import utc_now
from memory.telemetry import model_use

MOST_AT_ONCE = 200
"""Most events per run, so that long stretches of unaddressed events show progress."""

REQUESTED = {"tick": "(works on its goals)", "wake": "(wakes up)"}
_EVENT_KEYS = {"id", "at", "sender", "text", "channel", "addressed"}


class RequestLine(BaseModel):
    """A request, as a line of the file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    request: Literal["sleep", "wake", "tick"]
    at: str | None = None

    @field_validator("at")
    @classmethod
    def _utc(cls, value: str | None) -> str | None:
        return None if value is None else in_utc(value)


@dataclass(frozen=True)
class Step:
    """The input of one run: a request, or events of which at most the last is addressed."""

    events: tuple[Event, ...] = ()
    request: Literal["sleep", "wake", "tick"] | None = None
    at: str | None = None
    """The time of a request (UTC)."""
    marker: str = ""
    """The id under which a request counts as handled."""
    lines: int = 1
    """Lines of the file that the step covers."""

    @property
    def ids(self) -> list[str]:
        """The ids under which the step counts as handled."""
        return [event["id"] for event in self.events] or [self.marker]


def steps(path: Path) -> Iterator[Step]:
    """The steps of a file, in order. Overheard events join the addressed event after them.

    Raises:
        InputError: at the first malformed line.
    """
    heard: list[Event] = []
    anchor, requests = f"file {path.name}", 0
    for found in _lines(path):
        if isinstance(found, RequestLine):
            yield from _together(heard)
            requests += 1
            # Numbered from the last event, so that correcting an earlier line changes no id.
            id_ = operation_id("replay", found.request, found.at or "", anchor, str(requests))
            yield Step(request=found.request, at=found.at, marker=f"replay:{id_}")
            continue
        anchor, requests = found["id"], 0
        heard.append(found)
        if found["addressed"] or len(heard) >= MOST_AT_ONCE:
            yield from _together(heard)
    yield from _together(heard)


def _together(heard: list[Event]) -> Iterator[Step]:
    """Yield the events gathered so far as one step, if any, and empty the list."""
    if heard:
        step = Step(events=tuple(heard), lines=len(heard))
        heard.clear()
        yield step


def _lines(path: Path) -> Iterator[Event | RequestLine]:
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                try:
                    if raw.strip():
                        yield _line(raw)
                except InputError as error:
                    raise InputError(f"{path}:{number}: {error}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def _line(raw: bytes) -> Event | RequestLine:
    try:
        value: Any = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"not JSON: {error}") from None
    if isinstance(value, dict) and "request" in value:
        try:
            return RequestLine.model_validate(value)
        except ValidationError as error:
            raise InputError(explained(error.errors())[0]) from None
    if isinstance(value, dict) and (unknown := sorted(value.keys() - _EVENT_KEYS)):
        raise InputError(f"unknown key {unknown[0]!r}; known are {', '.join(sorted(_EVENT_KEYS))}")
    return valid_event(value)


# The command


@command()
async def replay(
    options: Options,
    file: Annotated[Path, Argument(metavar="FILE.jsonl")],
    conversation: Annotated[
        bool, Option("--conversation", help="Print the conversation as it goes.")
    ] = False,
    check: Annotated[bool, Option("--check", help="Check the file; play nothing.")] = False,
) -> int:
    """Replay a file of events and requests.

    The whole file is checked first. Events handled before are skipped; the clock is that of the
    file.
    """
    all_steps = list(steps(file))
    lines = sum(step.lines for step in all_steps)
    events = sum(len(step.events) for step in all_steps)
    if check:
        told = {"lines": lines, "events": events, "requests": lines - events}
        kinds = f"{counted(events, 'event')}, {counted(lines - events, 'request')}"
        Screen(json=options.json).result(told, Text(f"{one_line(file.name)} is valid: {kinds}."))
        return 0
    clock = Clock()
    async with running(options, clock=clock, announce=False) as session:
        _, screen, agent = session
        if screen.json and screen.err.is_terminal:
            session.say_model()
        model = model_name(agent.resources.chat_model)
        screen.show(Text(f"{file.name}: {counted(lines, 'line')}, model {model}", style="dim"))
        if conversation:
            tally = await play(agent, all_steps, clock, ConversationPlayer(session))
        else:
            with screen.progress() as progress:
                tally = await play(agent, all_steps, clock, Player(session), progress)
        tally.questions = len(await unanswered(agent))
        screen.result(tally.as_json(), _summary(tally))
        for failure in tally.failed.values():
            screen.problem(_failure(failure, agent.settings.max_failed_ticks))
    return int(bool(tally.failed))


class Clock:
    """The clock of a replay: the latest `at` so far; before the first one, the wall clock."""

    def __init__(self) -> None:
        self._latest: datetime | None = None

    def __call__(self) -> datetime:
        """The time (UTC)."""
        return self._latest or utc_now()

    def reach(self, times: Iterable[str]) -> None:
        """Advance to the latest of `times` (UTC). The clock never runs backwards."""
        for time in times:
            moment = datetime.fromisoformat(time)
            self._latest = max(moment, self._latest or moment)


@dataclass
class Tally:
    """The counts of a replay."""

    events: int = 0
    skipped: int = 0
    """Events and requests that had been handled before."""
    ticks: int = 0
    context_only: int = 0
    ignored: int = 0
    questions: int = 0
    """Questions that wait for a person at the end."""
    nights: int = 0
    llm_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    failed: dict[str, FailureReport] = field(default_factory=dict)
    """Events that have failed and not succeeded since, by id; "" stands for a night."""

    def add(self, report: Report) -> None:
        """Count a run. An event that failed and then succeeded is no failure any more."""
        self.ticks += len(report["ticks"])
        self.context_only += len(report["context_only"])
        self.ignored += len(report["ignored"])
        night = report["night"]
        self.nights += night is not None and night["id"] is not None
        for failure in report["failures"]:
            self.failed[failure["event_id"] or ""] = failure
        for tick in report["ticks"]:
            if tick["event_id"]:
                self.failed.pop(tick["event_id"], None)
        if night is not None:
            self.failed.pop("", None)

    def as_json(self) -> dict[str, Any]:
        """The counts, and `failures`, a list."""
        counts = asdict(self)
        del counts["failed"]
        return {**counts, "failures": list(self.failed.values())}


class Player:
    """Runs the agent on a step, and shows the nights."""

    def __init__(self, session: Session) -> None:
        self._session, self._screen = session, session.screen

    async def run(self, step: Step, given: dict[str, Any]) -> Report:
        """Run the agent on `given`, the new part of `step`."""
        report = await self._session.follow(given, Listener())
        if report["night"] is not None:
            self._screen.show(night_line(report["night"]))
        return report


async def play(
    agent: AsyncAgent,
    all_steps: Sequence[Step],
    clock: Clock,
    player: Player,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> Tally:
    """Play a whole file. `clock` must be the agent's own."""
    tally, before = Tally(), model_use()
    events = sum(len(step.events) for step in all_steps)
    marks = {mark["id"] for mark in (await agent.context.values()).get("handled", [])}
    for step in all_steps:
        clock.reach([*(event["at"] for event in step.events), *([step.at] if step.at else [])])
        handled = marks | await inbox.already_handled(agent.store, agent.scope, step.ids)
        fresh = [id_ for id_ in step.ids if id_ not in handled]
        tally.events += len(step.events)
        tally.skipped += len(step.ids) - len(fresh)
        progress("replaying", tally.events, events)
        if not fresh:
            continue
        own = [event for event in step.events if event["id"] in fresh]
        given = {"request": step.request} if step.request else {"events": own}
        report = await player.run(step, given)
        tally.add(report)
        if step.request and not report["failures"]:
            mark = HandledMark(id=step.marker, tick=0, at=clock().isoformat())
            await inbox.settle(agent.store, agent.scope, [mark])
        waiting = await _unreported(agent, step, fresh, report)
        tally.failed |= {failure["event_id"] or "": failure for failure in waiting}
        # A failure without an attempt: a circuit breaker is open, and every tick would fail, too.
        if waiting or any(one["event_id"] and not one["attempts"] for one in report["failures"]):
            break
    used = (now - then for now, then in zip(model_use(), before, strict=True))
    tally.llm_calls, tally.input_tokens, tally.output_tokens = used
    return tally


async def _unreported(
    agent: AsyncAgent, step: Step, fresh: Sequence[str], report: Report
) -> list[FailureReport]:
    told = {*report["context_only"], *report["skipped"]}
    for some in (report["ticks"], report["failures"], report["ignored"], report["questions"]):
        told |= {str(record["event_id"]) for record in some}
    untold = [id_ for id_ in fresh if step.events and id_ not in told]
    if untold:
        parked: list[ParkedTick] = (await agent.context.values()).get("parked", [])
        asked = {tick["question"]["event_id"] for tick in parked}
        untold = [id_ for id_ in untold if id_ not in asked]
    why = " ".join(report["notes"]) or "the run ended before it was taken"
    return [{"event_id": id_, "error": why, "attempts": 0, "set_aside": False} for id_ in untold]


class ConversationPlayer(Player):
    """Each message, answer, tool and night as it comes."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._rows = Transcript(self._screen)
        self._asked: set[str] = set()
        """Questions that were shown."""

    async def run(self, step: Step, given: dict[str, Any]) -> Report:
        """Show the events, run, show the answers."""
        for event in given.get("events", []):
            self._rows.event(event, datetime.fromisoformat(event["at"]))
        if step.request and step.request != "sleep":
            at = datetime.fromisoformat(step.at) if step.at else None
            self._rows.row(Text(), Text(REQUESTED[step.request], "dim"), at=at)
        doing = "falling asleep" if step.request == "sleep" else "thinking"
        with ProgressScreen(self._screen, doing) as progress:
            report = await self._session.follow(given, progress)
        if step.request == "sleep" and report["night"] is not None:
            context = self._session.agent.context
            names = await labels_for(context, report["night"]["operations"])
            self._screen.show("", night_view(report["night"], names))
        for note in report["notes"] if step.request == "tick" and not report["ticks"] else ():
            self._rows.aside(f"({note})")
        self._answers(report)
        return report

    def _answers(self, report: Report) -> None:
        for tick in report["ticks"]:
            self._tick(tick)
        for ignored in report["ignored"]:
            self._rows.aside(f"(left alone: {ignored['reason']})")
        for question in report["questions"]:
            if question["id"] not in self._asked:
                self._rows.aside(f"({still_waiting([question])})")
            self._asked.add(question["id"])
        for failure in report["failures"]:
            self._rows.row(Text(), Text(f"failed: {failure['error']}", style="red"))

    def _tick(self, tick: TickReport) -> None:
        if tick["context_type"] not in LOOKING_BACK:
            self._rows.tick(tick)
            return
        used = ", ".join(outcome["name"] for outcome in tick["tools"])
        self._rows.aside(f"(looks back at its own work{f': {used}' if used else ''})")


def _summary(tally: Tally) -> Text:
    read, written = f"{tally.input_tokens:,}", f"{tally.output_tokens:,}"
    ignored = f"{tally.ignored:,} left alone, " if tally.ignored else ""
    asked = counted(tally.questions, "question waits", "questions wait")
    calls = counted(tally.llm_calls, "model call")
    return Text.assemble(
        (f"{calls}: {read} tokens read, {written} written\n", "dim"),
        (counted(tally.events, "event"), "bold"),
        f": {counted(tally.ticks, 'tick')}, {tally.context_only:,} overheard, {ignored}"
        f"{counted(tally.skipped, 'line')} skipped, {counted(tally.nights, 'night')}",
        f"; {asked} (circadian status)" if tally.questions else "",
    )


def _failure(failure: FailureReport, most: int) -> str:
    if failure["event_id"] is None:
        return failure["error"]
    kept = "kept in the inbox; the replay ended here"
    after = what_next(failure, most) if failure["attempts"] else kept
    return f"{failure['event_id']}: {failure['error']} ({after})"


# The demo: the story in `graph/cli/story`, each part played in a process of its own
#
# The code does not know the story. What it shows at the end comes from the agent: the memory that
# it recalls for the last question, and its projects and goals.


ROOT = Path(__file__).resolve().parents[3]
STORY = Path(__file__).resolve().parents[1] / "story"


@dataclass(frozen=True)
class Ending:
    """The last question of the story, the answer, and the memory behind it."""

    question: Event
    reply: str
    hit: RecallHit
    source_event: Event
    """The event of the first day that the recalled memory came from."""


@command()
async def demo(
    options: Options,
    inspect: Annotated[
        bool, Option("--inspect", help="Then show its memory in the browser.")
    ] = False,
) -> int:
    """Play the built-in story: three days, two nights, a restart."""
    if inspect and options.json:
        raise InputError("--inspect ends in the browser, --json in a document: leave one out")
    screen = Screen(json=options.json)
    if not (parts := sorted(STORY.glob("*.jsonl"))):
        raise InputError(
            f"the story is missing: no .jsonl file in {STORY}; install Circadian again"
        )
    fresh = _fresh_folder(options.data)
    options = replace(options, data=fresh, folder=fresh)
    files = await asyncio.to_thread(_working_folder, options, fresh)
    if is_offline(choose_model(options.model, offline=options.deployment.offline)):
        screen.note(NO_LANGUAGE_MODEL)
    processes: list[int] = []
    states: list[Status] = []
    for part in parts:
        if processes:
            told = f"process {processes[-1]} has ended; a new one goes on from what is on disk"
            rule = Rule(Text(told, style="bold magenta"), style="magenta", characters="═")
            screen.show("", rule)
        processes.append(await _play_part(options, part, files))
        async with reading(options) as (_, _, agent):
            states.append(await status(agent.context))
    events = [event for part in parts for step in steps(part) for event in step.events]
    ending = await _ending(options, events)
    screen.result(
        _document(options, processes, states, ending),
        "",
        _heading("Recalled"),
        _recalled_view(ending),
        "",
        _heading("Survived the restart"),
        projects_view(states[-1]["projects"]),
        goals_view(states[-1]["goals"]),
        "",
    )
    screen.line(f"To look around: {_circadian()} chat --data {options.folder}")
    if states[-1]["approvals"]:
        screen.line("One call waits for your approval. To let the agent write the file:")
        approve = f"{_circadian()} approve --data {options.folder}"
        screen.line(f"  CIRCADIAN_FOLDER={files} {approve}")
    if inspect:
        await serve_inspector(options, files=files)
    return 0


def _circadian() -> str:
    if shutil.which("circadian"):
        return "circadian"
    return os.path.relpath(Path(sys.executable).with_name("circadian"))


def _fresh_folder(given: Path | None) -> Path:
    if given is None:
        return Path(tempfile.mkdtemp(prefix="circadian-demo-"))
    if given.exists() and (not given.is_dir() or any(given.iterdir())):
        raise FolderError(f"{given} is not an empty folder; the demo needs a new or empty one")
    return given


def _working_folder(options: Options, data: Path) -> Path:
    if named := options.deployment.folder:
        return named
    files = data.with_name(f"{data.name}-files")
    files.mkdir(parents=True, exist_ok=True)
    return files


async def _play_part(options: Options, part: Path, files: Path) -> int:
    """Replay one part in a new process, with `files` as working folder; returns its id.

    The process has a group of its own, so that Ctrl-C reaches it only once, from here.
    """
    shared = {
        "--data": str(options.folder),
        "--agent": options.agent,
        "--model": options.model,
        "--embedder": options.embedder,
        "--config": str(options.config.absolute()) if options.config else None,
    }
    given = [word for name, value in shared.items() if value for word in (name, value)]
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "graph.cli", "replay", str(part), *given),
        "--json" if options.json else "--conversation",
        stdout=asyncio.subprocess.DEVNULL if options.json else None,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "CIRCADIAN_FOLDER": str(files)},
        process_group=0,
    )
    try:
        status = await process.wait()
    except asyncio.CancelledError:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        if await process.wait() == INTERRUPTED:
            raise Exit(INTERRUPTED) from None  # the part has said so
        raise
    if status:
        raise CircadianError(f"{part.name} was not played to its end; see above")
    return process.pid


async def _ending(options: Options, events: Sequence[Event]) -> Ending:
    """The last question, its answer, and a memory of the story's first day recalled for it."""
    question = [event for event in events if event["addressed"]][-1]
    first_day = {event["id"]: event for event in events if day(event["at"]) == day(events[0]["at"])}
    async with reading(options) as (_, _, agent):
        messages = (await agent.aget_state()).values["messages"]
        hits = await agent.recall(question["text"])
    for hit in hits:
        told = [first_day[source] for source in hit["sources"] if source in first_day]
        if told:
            return Ending(question, str(messages[-1].text), hit, told[0])
    raise CircadianError("nothing of the first day was recalled for the last question")


def _document(
    options: Options, processes: list[int], states: Sequence[Status], ending: Ending
) -> dict[str, Any]:
    source = ending.source_event
    return {
        "data": str(options.folder),
        "processes": processes,
        "question": ending.question["text"],
        "reply": ending.reply,
        "recalled": recalled_memory(ending.hit),
        "told": {k: source[k] for k in ("id", "at", "sender", "text", "channel")},
        "before_restart": states[0],
        "after": states[-1],
    }


def _recalled_view(ending: Ending) -> RenderableType:
    question, event = ending.question, ending.source_event
    place = f", {event['channel']}" if event["channel"] else ""
    asked = f"{question['text']}  ({question['sender']}, {date(question['at'])})"
    source = f"event {event['id']}, told by {event['sender']} on {date(event['at'])}{place}"
    rows = Table.grid(padding=(0, 2))
    rows.add_row(Text("Asked", "bold"), one_line(asked))
    rows.add_row(Text("Recalled", "bold"), one_line(ending.hit["text"]))
    rows.add_row(Text("Source", "bold"), Text(one_line(source), style="green"))
    return rows


def _heading(text: str) -> Rule:
    return Rule(Text(text, style="bold"), align="left", style="dim")
