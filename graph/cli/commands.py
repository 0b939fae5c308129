"""What the commands on one agent do. Each returns the exit status."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from graph.cli.access import must_be_made, opened_without_running, opening, say_model, say_unknown
from graph.cli.approvals import answered, chosen, edit, refusal, show_question
from graph.cli.console import Screen, counted, one_line
from graph.cli.following import LOOKING_BACK, follow
from graph.cli.held import held_line
from graph.cli.night_view import night_view
from graph.cli.nights import show as show_night
from graph.cli.options import Options
from graph.cli.render import status_view
from graph.cli.talk import NightWatch
from graph.cli.turn import asking, converse, mode_line, sent_line, shown, stop_line, why_stopped
from graph.cli.waiting import telling_waits
from graph.handle import AsyncAgent
from graph.status import status
from memory import inbox
from memory.errors import CircadianError, InputError
from memory.reports import Report, TickReport
from memory.state import Request


def message_of(text: str) -> str:
    """`text`; for `-` what standard input holds. Blocking, so that Ctrl-C ends the reading."""
    if text != "-":
        return text
    try:
        return sys.stdin.read().removesuffix("\n")
    except UnicodeDecodeError:
        raise InputError("standard input is not UTF-8 text") from None


async def send(options: Options, text: str, sender: str | None, channel: str | None) -> int:
    """Send a message; print the reply as it comes, the tools, and what the tick cost."""
    if not text.strip():
        raise InputError("the message is empty")
    screen = Screen(json=options.json)
    async with opening(options) as agent:
        say_model(screen, agent)
        turn = await converse(options, agent, screen, event_of(text, sender, channel))
        if turn.parked is not None:
            show_question(options, screen, turn.parked["question"])
        return turn.status


def event_of(text: str, sender: str | None = None, channel: str | None = None) -> dict[str, Any]:
    """A message as an event with an id of its own; whoever is not named is the owner."""
    event: dict[str, Any] = {"id": str(uuid.uuid4()), "text": text, "channel": channel}
    return event | ({"sender": sender} if sender is not None else {})


async def approve(options: Options, question: str | None, args: str | None) -> int:
    """Let the tool of a question run, with other arguments where there are any; show the rest."""
    answer = {"decision": "approve"} if args is None else edit(args)
    return await _answer(options, question, answer)


async def refuse(options: Options, question: str | None, reason: str | None) -> int:
    """Answer a question with no; show the rest of its tick."""
    return await _answer(options, question, refusal(reason))


async def _answer(options: Options, question: str | None, answer: Mapping[str, Any]) -> int:
    await must_be_made(options)
    screen = Screen(json=options.json)
    async with opening(options) as agent:
        wanted = await chosen(agent, question)
        say_model(screen, agent)
        return (await answered(options, agent, screen, wanted, answer)).status


async def request(options: Options, what: Request) -> int:
    """Carry out a request: a tick, waking, the emergency stop."""
    screen = Screen(json=options.json)
    async with opening(options) as agent:
        if what == "tick":
            say_model(screen, agent)
        report = await shown(options, agent, screen, {"request": what})
        now = await status(agent.context)
        mode = {"mode": now["mode"], "phase": now["phase"]}
        screen.result({**mode, "report": report}, *_done(report, now))
        await _show_questions(options, agent, screen, report)
        if now["emergency_stop"] and report["ticks"]:
            screen.problem(stop_line(await why_stopped(agent) or ""))
            return 1
        return _failed(screen, report)


async def sleep(options: Options, *, everything: bool = False) -> int:
    """Go through a night and print its report; `everything`: with lists at full length."""
    screen = Screen(json=options.json)
    async with opening(options) as agent:
        say_model(screen, agent)
        return await go_to_sleep(options, agent, screen, everything=everything)


async def go_to_sleep(
    options: Options, agent: AsyncAgent, screen: Screen, *, everything: bool = False
) -> int:
    """One night, with its progress while it runs. Status 1 when it is not complete."""
    with NightWatch(screen) as watch:
        async with telling_waits(options, screen):
            report = await follow(agent, {"request": "sleep"}, watch)
    if report["night"] is None:
        raise CircadianError(_why_no_night(report))
    await show_night(options, screen, agent, report["night"], everything=everything)
    woken = [tick for tick in report["ticks"] if tick["context_type"] not in LOOKING_BACK]
    if woken:
        waited = counted(len(woken), "message")
        screen.show(f"Then {waited} that waited woke the agent and got an answer.")
    await _show_questions(options, agent, screen, report)
    if held := held_line(options, report["night"]):
        screen.problem(held)
    return _failed(screen, report) or int(not report["night"]["complete"])


async def show_status(options: Options, *, verbose: bool) -> int:
    """Print the agent at a glance; `verbose`: with each part of the prompt."""
    screen = Screen(json=options.json)
    async with opened_without_running(options) as agent:
        await say_unknown(screen, agent, options.agent)
        await print_status(options, agent, screen, verbose=verbose)
    return 0


async def print_status(
    options: Options, agent: AsyncAgent, screen: Screen, *, verbose: bool = False
) -> None:
    """The agent at a glance."""
    now, aside = await status(agent.context), await inbox.set_aside(agent.store, agent.scope)
    stop = await why_stopped(agent) if now["emergency_stop"] else None
    screen.result(now, status_view(now, options.agent, aside, stop=stop, verbose=verbose))


async def retry(options: Options, event_id: str | None) -> int:
    """Put what was set aside, all or one, back into the inbox."""
    screen = Screen(json=options.json)
    async with opened_without_running(options) as agent:
        ids = await inbox.retry(agent.store, agent.scope, event_id)
    lines = [Text(f"back in the inbox: {one_line(one)}") for one in ids]
    screen.result({"retried": ids}, *(lines or [Text("Nothing is set aside.")]))
    return 0


def _why_no_night(report: Report) -> str:
    if report["failures"]:
        errors = "; ".join(dict.fromkeys(failure["error"] for failure in report["failures"]))
        return f"{errors}; what was done is kept, and the next run goes on from there"
    return " ".join(report["notes"]) or "the run ended before the night began"


def _done(report: Report, now: dict[str, Any]) -> list[RenderableType]:
    """What a request did, for people."""
    lines: list[RenderableType] = [Text(note) for note in report["notes"]]
    lines += [mode_line(change) for change in report["mode_changes"] if change["why"] != "request"]
    for tick in report["ticks"]:
        lines += [*map(sent_line, tick["sent"]), _tick_line(tick)]
    if report["night"] is not None:
        lines.append(night_view(report["night"]))
    stopped = ", emergency stop" if now["emergency_stop"] else ""
    phase = f", {now['phase']}" if now["phase"] else ""
    return [*lines, Text(f"{now['mode']}{phase}{stopped}")]


def _tick_line(tick: TickReport) -> Text:
    calls, tokens = counted(tick["llm_calls"], "call"), counted(tick["tokens"], "token")
    about = " · looked back at its own work" if tick["context_type"] in LOOKING_BACK else ""
    return Text(f"tick {tick['tick']} · {calls} · {tokens}{about}", style="dim")


async def _show_questions(
    options: Options, agent: AsyncAgent, screen: Screen, report: Report
) -> None:
    """The questions that the run ended with."""
    for question in (one["question"] for one in await asking(agent)):
        if question in report["questions"]:
            show_question(options, screen, question)


def _failed(screen: Screen, report: Report) -> int:
    """One line for what failed; the exit status."""
    if not report["failures"]:
        return 0
    screen.problem("; ".join(failure["error"] for failure in report["failures"]))
    return 1
