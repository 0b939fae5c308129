"""One run for a person: shown while it goes on, then what became of the tick that it was for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from graph.cli.console import FIRST_WORDS, Screen, clean, context_meter, counted, one_line
from graph.cli.following import follow
from graph.cli.options import Options
from graph.cli.talk import Silent, Talk, tool_line
from graph.cli.waiting import telling_waits
from graph.handle import AsyncAgent
from graph.status import status
from memory import approvals, audit, inbox
from memory.audit_nights import CAUSES
from memory.errors import BusyError
from memory.models.words import shortened
from memory.reports import FailureReport, ModeChange, Report, TickReport, empty_report
from memory.tick import ParkedTick, Question, SentMessage

CLEAR = "`circadian clear-stop` clears the stop"

_NEWEST = 50
"""Entries of the audit log among which the stop that stands is looked for."""


class Turn(NamedTuple):
    """What became of one message, or of the answer to one question."""

    report: Report
    tick: TickReport | None
    """Its tick; None: it failed, or waits."""
    parked: ParkedTick | None
    """Its tick as far as it is done, where a person is asked first."""
    waiting: list[Question]
    """All questions that nobody has answered yet, oldest first."""
    context: dict[str, Any]
    """How full the context is now."""
    stop: str | None
    """Why the emergency stop stands; None: it does not."""

    @property
    def status(self) -> int:
        """The exit status: a question is no failure."""
        lost = self.tick is None and self.parked is None
        return int(lost or self.stop is not None)


async def converse(
    options: Options, agent: AsyncAgent, screen: Screen, event: Mapping[str, Any]
) -> Turn:
    """One message and its answer. A question is left to the caller to show.

    Raises:
        BusyError: another process holds the agent; the message is kept.
    """
    try:
        report = await shown(options, agent, screen, {"events": [event]})
    except BusyError as error:
        raise BusyError(f"{error}; the message is kept in the inbox") from error
    await _tell_others(agent, screen, report, event["id"])
    turn = await turn_of(agent, report, event["id"])
    most = agent.settings.max_failed_ticks
    tell(screen, turn, why_not(turn, event["id"], most, "The message is kept in the inbox"))
    return turn


async def shown(
    options: Options,
    agent: AsyncAgent,
    screen: Screen,
    given: Mapping[str, Any],
    doing: str = "thinking",
) -> Report:
    """Run, showing words and tools as they come, and whom the run waits for."""
    talk = Silent() if screen.json else Talk(screen, doing)
    try:
        async with telling_waits(options, screen):
            return await follow(agent, given, talk)
    finally:
        if isinstance(talk, Talk):
            talk.end()


async def turn_of(agent: AsyncAgent, report: Report, event_id: str | None) -> Turn:
    """What a run made of the event; None: of the goals."""
    parked = await asking(agent)
    mine = [one for one in parked if one["question"]["event_id"] == event_id]
    now = await status(agent.context)
    return Turn(
        report=report,
        tick=await _tick_of(agent, report, event_id),
        parked=mine[0] if mine else None,
        waiting=[one["question"] for one in parked],
        context=now["context"],
        stop=(await why_stopped(agent) or "") if now["emergency_stop"] else None,
    )


async def asking(agent: AsyncAgent) -> list[ParkedTick]:
    """The ticks whose questions nobody has answered yet, oldest first."""
    parked: list[ParkedTick] = (await agent.aget_state()).values.get("parked", [])
    given = await approvals.answers(agent.store, agent.scope, parked)
    return [one for one in parked if one["question"]["id"] not in given]


async def why_stopped(agent: AsyncAgent) -> str | None:
    """Why, by whom and when the emergency stop was set, from the log; None: it does not say."""
    newest = await audit.read(agent.store, agent.scope, limit=_NEWEST)
    stops = [entry for entry in newest if entry["what"] == "emergency_stop"]
    return stops[-1]["why"] if stops else None


def tell(screen: Screen, turn: Turn, problem: str) -> None:
    """Print what became of it; `problem` where there is no tick and no question."""
    if turn.tick is None and turn.parked is None:
        screen.problem(problem)
        return
    screen.result(_document(turn), *_views(turn))
    if turn.stop is not None:
        screen.problem(stop_line(turn.stop))
    mine = turn.parked["question"]["id"] if turn.parked else None
    others = [one for one in turn.waiting if one["id"] != mine]
    if others and not screen.json:
        screen.note(still_waiting(others))


def still_waiting(questions: Sequence[Question]) -> str:
    """That questions wait, and how to get at them, in a line."""
    if len(questions) == 1:
        question = questions[0]
        what = shortened(one_line(question["what"]), 2 * FIRST_WORDS)
        return f"a question waits: {what} (approve or refuse {question['id']})"
    ids = ", ".join(one["id"] for one in questions)
    return f"{len(questions)} questions wait: {ids} (status shows them)"


def stop_line(why: str) -> str:
    """That the emergency stop stands, and how to clear it; a failure is told beside it."""
    reason = why.partition(", the last: ")[0]
    return f"emergency stop{f' ({reason})' if reason else ''}: {CLEAR}"


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


def what_next(failure: FailureReport, most: int) -> str:
    """What becomes of an event whose tick failed."""
    if failure["event_id"] is None:
        return "that tick is dropped"
    if failure["set_aside"]:
        return f"set aside after {failure['attempts']} attempts"
    if not failure["attempts"]:
        return "kept in the inbox"
    return f"kept in the inbox, attempt {failure['attempts']} of {most}"


def why_not(turn: Turn, event_id: str | None, most: int, kept: str) -> str:
    """Why there is no answer, and what happens next. `kept`: what is kept, in a sentence."""
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


async def _tick_of(agent: AsyncAgent, report: Report, event_id: str | None) -> TickReport | None:
    """The tick on the event. One that another run took, as while this one waited, is looked up."""
    found = [tick for tick in report["ticks"] if tick["event_id"] == event_id]
    if found or event_id is None:
        return found[-1] if found else None
    handled = (await agent.aget_state()).values.get("handled", [])
    waiting = await inbox.waiting(agent.store, agent.scope, handled)
    aside = await inbox.set_aside(agent.store, agent.scope)
    if event_id in {item["event"]["id"] for item in [*waiting, *aside]}:
        return None
    async for snapshot in agent.aget_state_history():
        earlier: Report = snapshot.values.get("report", empty_report())
        found = [tick for tick in earlier["ticks"] if tick["event_id"] == event_id]
        if found:
            return found[-1]
    return None


def _document(turn: Turn) -> dict[str, Any]:
    """The tick as `send --json` prints it; of one that waits, as far as it is done."""
    tick, parked = turn.tick, turn.parked
    if tick is not None:
        done: dict[str, Any] = {**tick}
    else:
        assert parked is not None
        context = parked["context"]["context_type"]
        told = {"reply": "", "tick": None, "context_type": context, "pattern": parked["pattern"]}
        done = {**parked["loop"], **told}
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
    }


def _views(turn: Turn) -> list[RenderableType]:
    """What is left to show of a tick: its words and tools were shown as they came."""
    tick = turn.tick
    if tick is None:
        return []
    parts: list[RenderableType] = []
    if tick not in turn.report["ticks"]:
        parts += map(tool_line, tick["tools"])
        parts += [Text(clean(tick["reply"]))] if tick["reply"] else []
    slept = [one for one in turn.report["mode_changes"] if one["mode"] == "sleep"]
    parts += [*map(sent_line, tick["sent"]), *map(mode_line, slept)]
    return [*parts, _footer(tick, turn.context)]


def _footer(tick: TickReport, context: dict[str, Any]) -> Text:
    """What the tick cost, and how full the context is now."""
    calls, tokens = counted(tick["llm_calls"], "call"), counted(tick["tokens"], "token")
    return Text.assemble(
        (f"tick {tick['tick']} · {calls} · {tokens} · context ", "dim"),
        context_meter(context, width=10),
    )


async def _tell_others(agent: AsyncAgent, screen: Screen, report: Report, event_id: str) -> None:
    """A line for each failure of the run that is not this message's."""
    others = [one for one in report["failures"] if one["event_id"] != event_id]
    if not others:
        return
    rows = await inbox.waiting(agent.store, agent.scope)
    rows += await inbox.set_aside(agent.store, agent.scope)
    texts = {row["event"]["id"]: row["event"]["text"] for row in rows}
    for one in others:
        screen.note(_other(one, texts, agent.settings.max_failed_ticks))


def _other(failure: FailureReport, texts: Mapping[str, str], most: int) -> str:
    known = failure["event_id"]
    if known is None:
        return failure["error"]
    words = f' "{shortened(texts[known], FIRST_WORDS)}"' if known in texts else ""
    return f"{known}{words}: {failure['error']} ({what_next(failure, most)})"
