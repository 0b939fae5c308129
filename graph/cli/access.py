"""Opening the agent for a command, telling a person what the command waits for, and one run.

A run is on one message, one answer to a question or one night, and shows what became of it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from graph.api import AsyncAgent, open_agent
from graph.cli.program import Options
from graph.cli.run_view import (
    CLEAR,
    ProgressScreen,
    Talk,
    answer_line,
    footer,
    mode_line,
    night_view,
    question_view,
    sent_line,
    still_waiting,
    stop_line,
    tool_line,
    what_next,
)
from graph.console import Screen, clean, counted
from graph.following import LOOKING_BACK, Listener, follow
from graph.use_cases import AgentContext, decide, labels_for, list_agents, status, tick_of
from memory import audit
from memory.errors import (
    MOST,
    BusyError,
    CircadianError,
    ConfigurationError,
    FolderError,
    InputError,
)
from memory.events import approvals
from memory.installation import Installation, database_url, is_made, open_installation
from memory.models import OFFLINE, is_offline
from memory.records import (
    LOCAL_USER,
    NightReport,
    ParkedTick,
    Question,
    Report,
    TickReport,
    thread_id,
)
from memory.runtime import utc_now
from memory.storage import count_items

NO_LANGUAGE_MODEL = (
    "model: offline (embedded rules, not a language model). "
    "For a real one set OPENAI_API_KEY or give --model."
)

NEARLY = 0.8
"""Similarity (0..1) from which a name counts as a misspelling of another."""

PATIENCE = 1.0
"""Seconds before a command says whom it waits for."""


class Session(NamedTuple):
    """One command on an open agent."""

    options: Options
    screen: Screen
    agent: AsyncAgent

    def say_model(self) -> None:
        """Say so when no language model is at work."""
        if is_offline(self.agent.resources.chat_model):
            self.screen.note(NO_LANGUAGE_MODEL)

    async def follow(self, given: Mapping[str, Any], listener: Listener) -> Report:
        """Run the agent, and note which process the run waits for."""
        async with self.waiting("the message is in the inbox; " if given.get("events") else ""):
            return await follow(self.agent.context, given, listener)

    @asynccontextmanager
    async def waiting(self, kept: str = "") -> AsyncIterator[None]:
        """Note, once, which process holds the agent while the block waits for it."""
        if self.screen.json and not self.screen.err.is_terminal:
            yield
            return
        task = asyncio.create_task(self._say_holder(kept))
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _say_holder(self, kept: str) -> None:
        await asyncio.sleep(PATIENCE)
        with suppress(CircadianError):  # the run itself reports what is wrong
            home = await asyncio.to_thread(home_as_recorded, self.options)
            try:
                found = await holder(home, self.options.agent)
            finally:
                await asyncio.to_thread(home.close)
            if found not in (None, f"process {os.getpid()} (circadian)"):
                limit = f"up to {self.options.deployment.lock_timeout:g} s"
                self.screen.note(f"{kept}waiting for {found}, {limit}")


@asynccontextmanager
async def running(
    options: Options,
    *,
    clock: Callable[[], datetime] = utc_now,
    announce: bool = True,
    new: bool = True,
) -> AsyncIterator[Session]:
    """Open the agent to run it. `announce`: note that no language model is at work, if so.

    `new`: make an agent of this name if there is none; otherwise that is an InputError.
    """
    if options.is_named and not new:
        await must_be_made(options)
    async with opening(options, clock=clock) as agent:
        session = Session(options, Screen(json=options.json), agent)
        if new:
            await confirm_new_name(session)
        elif not await (_is_made if options.is_named else _is_known)(agent):
            raise await no_agent(session)
        if announce:
            session.say_model()
        yield session


@asynccontextmanager
async def reading(options: Options, *, announce: bool = True) -> AsyncIterator[Session]:
    """Open the agent without running it: waits for nobody, needs no model, makes no data folder.

    `announce`: note that the agent is not there, if the folder has others. With a name it is an
    InputError, since the empty answer would pass for that agent's own.
    """
    await must_be_made(options)
    screen = Screen(json=options.json)
    async with opening(replace(options, model=OFFLINE), mcp=False) as agent:
        session = Session(options, screen, agent)
        if announce and not await _is_known(agent):
            if options.is_named:
                raise await no_agent(session)
            screen.note(f"no agent {options.agent} here yet")
        yield session


def opening(
    options: Options, *, clock: Callable[[], datetime] = utc_now, mcp: bool = True
) -> open_agent:
    """The agent that `options` name, ready to be opened. Opening makes a missing data folder."""
    named = (options.data, options.agent, options.model, options.embedder)
    return open_agent(*named, options.configuration, clock=clock, mcp=mcp)


async def must_be_made(options: Options) -> None:
    """Raise FolderError if there is no data folder, or the database is empty."""
    deployment = options.deployment
    if await asyncio.to_thread(is_made, deployment, options.data):
        return
    if database_url(deployment, options.data) is not None:
        raise FolderError("the database holds nothing of Circadian yet; `circadian send` begins")
    raise FolderError(f"no data folder at {options.folder}; `circadian send` makes one")


async def confirm_new_name(session: Session) -> None:
    """Ask before making an agent whose name is nearly that of another. Without a terminal, note it.

    Raises:
        InputError: the person says no, or `--json` leaves nobody to ask.
    """
    options, screen, agent = session
    if not options.is_named or await _is_known(agent):
        return
    others = [line["name"] for line in await list_agents(agent.context) if line["name"]]
    close = get_close_matches(options.agent, others, 1, NEARLY)
    if not close:
        return
    problem = f"there is no agent {options.agent!r:.80} here; there is {close[0]!r:.80}"
    if options.json:
        raise InputError(f"{problem}; a command without --json makes a new one")
    if not sys.stdin.isatty():
        screen.note(f"{problem}; a new one is made")
    else:
        said = await _typed(f"{problem}. Make a new one? [y/N] ")
        if said.strip().lower() not in ("y", "yes"):
            raise InputError("no agent was made")


async def _typed(prompt: str) -> str:
    """A line from the terminal; empty at its end. No thread waits in `input`, deaf to Ctrl-C."""
    sys.stdout.write(prompt)
    sys.stdout.flush()
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin)
    return sys.stdin.readline()


async def no_agent(session: Session) -> InputError:
    """That the agent is not there, and which are."""
    names = [line["name"] for line in await list_agents(session.agent.context) if line["name"]]
    some = f" ({', '.join(name[:80] for name in names[:MOST])})" if names else ""
    ways = f"`circadian agents` lists those that are{some}, and `circadian send` makes one"
    return InputError(f"there is no agent {session.options.agent!r:.80} here; {ways}")


async def must_be_here(session: Session) -> None:
    """Raise InputError if the agent is not there."""
    if not await _is_made(session.agent):
        raise await no_agent(session)


async def _is_made(agent: AsyncAgent) -> bool:
    made = await agent.context.values() or await count_items(agent.store, agent.scope.namespace())
    return bool(made)


async def _is_known(agent: AsyncAgent) -> bool:
    mine = agent.scope.namespace()
    return await _is_made(agent) or not await count_items(agent.store, mine[:1])


def home_as_recorded(options: Options) -> Installation:
    """The data folder or database, open, with the embedder recorded there. Blocking."""
    undecided = options.deployment.model_copy(update={"embedder": None, "offline": False})
    return open_installation(undecided, data=options.data)


async def holder(home: Installation, agent: str) -> str | None:
    """The process that holds the agent's lock, as the lock names it; None if the lock is free."""
    try:
        async with home.agent_lock(thread_id(LOCAL_USER, agent), timeout=0):
            return None
    except BusyError as error:
        return str(error).partition(" in use by ")[2].partition(": wait")[0]


def standard_input() -> str:
    """The text on standard input. Raises InputError unless it is UTF-8."""
    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        raise InputError("standard input is not UTF-8 text") from None


_NEWEST = 50
"""Entries of the audit log that are searched for the emergency stop."""


class Turn(NamedTuple):
    """The outcome of one message, or of the answer to one question."""

    report: Report
    tick: TickReport | None
    """Its tick; None if the tick failed, or is parked."""
    parked: ParkedTick | None
    """Its tick as far as it got, if a person has to answer first."""
    waiting: list[Question]
    """All unanswered questions, oldest first."""
    context: Mapping[str, Any]
    """How full the context is now."""
    stop: str | None
    """Why the emergency stop is set; None if it is not."""

    @property
    def status(self) -> int:
        """The exit status. A question is no failure."""
        lost = self.tick is None and self.parked is None
        return int(lost or self.stop is not None)


def event_of(text: str, sender: str | None = None, channel: str | None = None) -> dict[str, Any]:
    """A message as an event with an id of its own; without a sender it is the owner's."""
    event: dict[str, Any] = {"id": str(uuid.uuid4()), "text": text, "channel": channel}
    return event | ({"sender": sender} if sender is not None else {})


async def converse(session: Session, event: Mapping[str, Any]) -> Turn:
    """Send one message and print its answer. A question is left to the caller to show."""
    try:
        report = await talked(session, {"events": [event]})
    except BusyError as error:
        raise BusyError(f"{error}; the message is kept in the inbox") from error
    _note_other_failures(session, report, event["id"])
    return await _concluded(session, report, event["id"], "The message is kept in the inbox")


async def answered(session: Session, question: Question, answer: Mapping[str, Any]) -> Turn:
    """Keep the answer to a question, then go on with its tick and print that."""
    await decide(session.agent.context, question["id"], dict(answer))
    session.screen.show(answer_line(question, answer))
    doing = "thinking" if answer["decision"] == "refuse" else question["tool"]
    try:
        report = await talked(session, {}, doing)
    except BusyError as error:
        raise BusyError(f"{error}; the answer is kept, and the next run acts on it") from error
    return await _concluded(session, report, question["event_id"], "The answer is kept")


async def talked(session: Session, given: Mapping[str, Any], doing: str = "thinking") -> Report:
    """Run, showing words and tools as they come."""
    with Talk(session.screen, doing) as talk:
        return await session.follow(given, talk)


async def unanswered(agent: AsyncAgent) -> list[ParkedTick]:
    """The ticks with an unanswered question, oldest first."""
    parked: list[ParkedTick] = (await agent.context.values()).get("parked", [])
    given = await approvals.answers(agent.store, agent.scope, parked)
    return [tick for tick in parked if tick["question"]["id"] not in given]


async def why_stopped(agent: AsyncAgent) -> str | None:
    """Why, by whom and when the emergency stop was set; None if the log does not say."""
    newest = await audit.read(agent.store, agent.scope, limit=_NEWEST)
    stops = [entry for entry in newest if entry["what"] == "emergency_stop"]
    return stops[-1]["why"] if stops else None


def show_question(session: Session, question: Question) -> None:
    """Print the question and the commands that answer it."""
    screen = session.screen
    screen.show("", question_view(question), "Nothing is done before you answer:")
    for name in ("approve", "refuse"):
        line = session.options.command_line(name, question["id"], with_model=True)
        screen.line(f"  {line}")


async def _concluded(session: Session, report: Report, event_id: str | None, kept: str) -> Turn:
    """Print what became of the event, or of the goals if it is None; `kept` says what is kept."""
    agent, screen = session.agent, session.screen
    turn = await _turn_of(agent, report, event_id)
    if turn.tick is None and turn.parked is None:
        screen.problem(_why_no_answer(turn, event_id, agent.settings.max_failed_ticks, kept))
        return turn
    screen.result(_document(turn), *_views(turn))
    if turn.stop is not None:
        screen.problem(stop_line(turn.stop))
    mine = turn.parked["question"]["id"] if turn.parked else None
    others = [question for question in turn.waiting if question["id"] != mine]
    if others and not screen.json:
        screen.note(still_waiting(others))
    return turn


async def _turn_of(agent: AsyncAgent, report: Report, event_id: str | None) -> Turn:
    parked = await unanswered(agent)
    mine = [tick for tick in parked if tick["question"]["event_id"] == event_id]
    now = await status(agent.context)
    tick = next((one for one in reversed(report["ticks"]) if one["event_id"] == event_id), None)
    if tick is None and event_id is not None:  # another process's run may have the event
        tick = await tick_of(agent.context, event_id)
    return Turn(
        report=report,
        tick=tick,
        parked=mine[0] if mine else None,
        waiting=[tick["question"] for tick in parked],
        context=now["context"],
        stop=(await why_stopped(agent) or "") if now["emergency_stop"] else None,
    )


def _why_no_answer(turn: Turn, event_id: str | None, most: int, kept: str) -> str:
    stopped = "" if turn.stop is None else f"; {stop_line(turn.stop)}"
    for ignored in turn.report["ignored"]:
        if ignored["event_id"] == event_id:
            return f"the message is left alone: {ignored['reason']}"
    for failure in turn.report["failures"]:
        if failure["event_id"] == event_id:
            return f"{failure['error']} ({what_next(failure, most)}){stopped}"
    why = " ".join(turn.report["notes"]) or "the run ended before its turn."
    clear = "" if turn.stop is None else f"; {CLEAR}"
    return f"{why} {kept}{clear}"


def _document(turn: Turn) -> dict[str, Any]:
    """The tick as `send --json` prints it; a parked tick as far as it got."""
    done: Mapping[str, Any]
    if turn.tick is not None:
        done = turn.tick
    else:
        parked = turn.parked
        assert parked is not None
        done = {
            **parked["loop"],
            "reply": "",
            "tick": None,
            "context_type": parked["context"]["context_type"],
            "pattern": parked["pattern"],
            "event_id": parked["question"]["event_id"],
        }
    pattern = done["pattern"]
    return {
        "reply": done["reply"],
        "tick": done["tick"],
        "context_type": done["context_type"],
        "pattern": {key: pattern[key] for key in ("mode", "max_iterations", "source_layers")},
        "tools": done["tools"],
        "llm_calls": done["llm_calls"],
        "tokens": done["tokens"],
        "sent": done["sent"],
        "approvals": turn.waiting,
        "event": done["event_id"],
    }


def _views(turn: Turn) -> list[RenderableType]:
    """The parts still to be shown: words and tools of this run's ticks were shown as they came."""
    tick = turn.tick
    if tick is None:
        return []
    parts: list[RenderableType] = []
    if tick not in turn.report["ticks"]:
        parts += map(tool_line, tick["tools"])
        parts += [Text(clean(tick["reply"]))] if tick["reply"] else []
    slept = [change for change in turn.report["mode_changes"] if change["mode"] == "sleep"]
    parts += [*map(sent_line, tick["sent"]), *map(mode_line, slept)]
    return [*parts, footer(tick, turn.context)]


def _note_other_failures(session: Session, report: Report, event_id: str) -> None:
    """Note each failure of the run that is about another event, but for what stopped this one."""
    answered = any(tick["event_id"] == event_id for tick in report["ticks"])
    most = session.agent.settings.max_failed_ticks
    for failure in report["failures"]:
        stopped_both = not answered and failure.get("kind") == ConfigurationError.__name__
        if stopped_both or failure["event_id"] == event_id:
            continue
        event = f"{failure['event_id']}: " if failure["event_id"] else ""
        session.screen.note(f"{event}{failure['error']} ({what_next(failure, most)})")


# A run of several ticks, and a night


async def show_questions(session: Session, report: Report) -> None:
    """Print the questions that a run ended with."""
    for parked in await unanswered(session.agent):
        if parked["question"] in report["questions"]:
            show_question(session, parked["question"])


def report_failures(session: Session, report: Report) -> int:
    """Print one line on all that failed in a run; returns the exit status."""
    if not report["failures"]:
        return 0
    errors = dict.fromkeys(failure["error"] for failure in report["failures"])
    session.screen.problem("; ".join(errors))
    return 1


async def go_to_sleep(session: Session, *, everything: bool = False) -> int:
    """Go through a night; returns status 1 if it is not complete."""
    async with session.waiting():
        report = await watched(session.screen, session.agent.context, {"request": "sleep"})
    found = report["night"]
    if found is None:
        raise CircadianError(_why_no_night(report))
    await show_night(session, found, everything=everything)
    answered = [tick for tick in report["ticks"] if tick["context_type"] not in LOOKING_BACK]
    if answered:
        waited = counted(len(answered), "message")
        session.screen.show(f"Then {waited} that waited woke the agent and got an answer.")
    await show_questions(session, report)
    if held := _held_line(session.options, found):
        session.screen.problem(held)
    return report_failures(session, report) or int(not found["complete"])


async def watched(screen: Screen, context: AgentContext, given: Mapping[str, Any]) -> Report:
    """Run, showing the steps of a night as they come."""
    with ProgressScreen(screen, "falling asleep") as progress:
        return await follow(context, given, progress)


async def show_night(session: Session, report: NightReport, *, everything: bool) -> None:
    """Print a night, with the names behind its ids."""
    names = await labels_for(session.agent.context, report["operations"])
    more = session.options.command_line("night", report["id"] or "", "--all")
    session.screen.result(report, night_view(report, names, everything=everything, more=more))


def _held_line(options: Options, report: NightReport) -> str | None:
    if report.get("status") != "held" or report["id"] is None:
        return None
    why = (report.get("gate") or {}).get("held") or "it would change much"
    apply, discard = both_ways(options, report["id"])
    return f"{report['id']} is held back: {why}; `{apply}` applies it, `{discard}` discards it"


def both_ways(options: Options, night_id: str) -> tuple[str, str]:
    """The commands that apply a night and that let go of it."""
    apply = options.command_line("sleep", "--apply", night_id)
    return apply, options.command_line("night", night_id, "--discard")


def _why_no_night(report: Report) -> str:
    if report["failures"]:
        errors = "; ".join(dict.fromkeys(failure["error"] for failure in report["failures"]))
        return f"{errors}; what was done is kept, and the next run goes on from there"
    return " ".join(report["notes"]) or "the run ended before the night began"
