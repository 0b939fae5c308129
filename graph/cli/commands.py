"""What the commands on one agent do. Each returns the exit status."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Mapping
from typing import Any, cast

from rich.console import RenderableType
from rich.text import Text

from graph.cli.access import opened_without_running, opening
from graph.cli.console import FIRST_WORDS, Screen, context_meter, counted, one_line
from graph.cli.following import follow
from graph.cli.options import Options
from graph.cli.render import night_view, recall_view, status_view
from graph.cli.talk import NightWatch, Silent, Talk
from graph.cli.waiting import telling_waits
from graph.handle import AsyncAgent
from graph.status import status
from memory import inbox
from memory.errors import BusyError, CircadianError, InputError
from memory.models.offline import OfflineChatModel
from memory.models.words import shortened
from memory.records import RecallHit
from memory.reports import FailureReport, Report, TickReport, empty_report
from memory.state import Request
from memory.store_access import count_items

RECALL_KEYS = ("id", "kind", "text", "score", "sources", "at")
OFFLINE = (
    "model: offline (embedded rules, not a language model). "
    "For a real one set OPENAI_API_KEY or give --model."
)


def say_model(screen: Screen, agent: AsyncAgent) -> None:
    """Say it when no language model is at work."""
    if isinstance(agent.resources.chat_model, OfflineChatModel):
        screen.note(OFFLINE)


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
        return await converse(options, agent, screen, event_of(text, sender, channel))


def event_of(text: str, sender: str | None = None, channel: str | None = None) -> dict[str, Any]:
    """A message as an event with an id of its own; whoever is not named is the owner."""
    event: dict[str, Any] = {"id": str(uuid.uuid4()), "text": text, "channel": channel}
    return event | ({"sender": sender} if sender is not None else {})


async def converse(
    options: Options, agent: AsyncAgent, screen: Screen, event: dict[str, Any]
) -> int:
    """One message and its answer.

    Raises:
        BusyError: another process holds the agent; the message is kept.
    """
    try:
        report = await _shown(options, agent, screen, {"events": [event]})
    except BusyError as error:
        raise BusyError(f"{error}; the message is kept in the inbox") from error
    await _tell_others(agent, screen, report, event["id"])
    tick = await _tick_of(agent, report, event["id"])
    if tick is None:
        screen.problem(_unanswered(report, event["id"], agent.settings.max_failed_ticks))
        return 1
    screen.result(_sent(tick), _footer(tick, (await status(agent))["context"]))
    return 0


async def request(options: Options, what: Request) -> int:
    """Carry out a request: a tick, waking, the emergency stop."""
    screen = Screen(json=options.json)
    async with opening(options) as agent:
        if what == "tick":
            say_model(screen, agent)
        report = await _shown(options, agent, screen, {"request": what})
        now = await status(agent)
        mode = {"mode": now["mode"], "phase": now["phase"]}
        screen.result({**mode, "report": report}, *_done(report, now))
        return _failed(screen, report)


async def sleep(options: Options) -> int:
    """Go through a night and print its report."""
    screen = Screen(json=options.json)
    async with opening(options) as agent:
        say_model(screen, agent)
        return await go_to_sleep(options, agent, screen)


async def go_to_sleep(options: Options, agent: AsyncAgent, screen: Screen) -> int:
    """One night, with its progress while it runs. Status 1 when it is not complete."""
    with NightWatch(screen, agent) as watch:
        async with telling_waits(options, screen):
            report = await follow(agent, {"request": "sleep"}, watch)
    if report["night"] is None:
        raise CircadianError(_why_no_night(report))
    screen.result(report["night"], night_view(report["night"]))
    if report["ticks"]:
        waited = counted(len(report["ticks"]), "message")
        screen.show(f"Then {waited} that waited woke the agent and got an answer.")
    return _failed(screen, report) or int(not report["night"]["complete"])


async def show_status(options: Options) -> int:
    """Print the agent at a glance."""
    screen = Screen(json=options.json)
    async with opened_without_running(options) as agent:
        await _say_unknown(screen, agent, options.agent)
        await print_status(options, agent, screen)
    return 0


async def print_status(options: Options, agent: AsyncAgent, screen: Screen) -> None:
    """The agent at a glance."""
    now, aside = await status(agent), await inbox.set_aside(agent.store, agent.scope)
    screen.result(now, status_view(now, options.agent, aside))


async def show_recall(options: Options, query: str, limit: int) -> int:
    """Print what long-term memory holds about a question."""
    screen = Screen(json=options.json)
    async with opened_without_running(options) as agent:
        await _say_unknown(screen, agent, options.agent)
        hits = await agent.recall(query, limit)
    screen.result([recalled(hit) for hit in hits], recall_view(hits))
    return 0


async def retry(options: Options, event_id: str | None) -> int:
    """Put what was set aside, all or one, back into the inbox."""
    screen = Screen(json=options.json)
    async with opened_without_running(options) as agent:
        ids = await inbox.retry(agent.store, agent.scope, event_id)
    lines = [Text(f"back in the inbox: {one_line(one)}") for one in ids]
    screen.result({"retried": ids}, *(lines or [Text("Nothing is set aside.")]))
    return 0


def recalled(hit: RecallHit) -> dict[str, Any]:
    """A memory as `recall --json` prints it."""
    return {key: value for key, value in hit.items() if key in RECALL_KEYS}


async def _shown(
    options: Options, agent: AsyncAgent, screen: Screen, given: Mapping[str, Any]
) -> Report:
    """Run, showing words and tools as they come, and whom the run waits for."""
    talk = Silent() if screen.json else Talk(screen)
    try:
        async with telling_waits(options, screen):
            return await follow(agent, given, talk)
    finally:
        if isinstance(talk, Talk):
            talk.end()


async def _say_unknown(screen: Screen, agent: AsyncAgent, name: str) -> None:
    """Say it when the folder has agents, and this one is not among them."""
    mine = agent.scope.namespace()
    if (await agent.aget_state()).values or await count_items(agent.store, mine):
        return
    if await count_items(agent.store, mine[:1]):
        screen.note(f"no agent {name} here yet")


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


async def _tick_of(agent: AsyncAgent, report: Report, event_id: str) -> TickReport | None:
    """The tick on the event. One that another run took, as while this one waited, is looked up."""
    for tick in report["ticks"]:
        if tick["event_id"] == event_id:
            return tick
    if event_id in report["skipped"]:
        async for snapshot in agent.aget_state_history():
            earlier = snapshot.values.get("report", empty_report())["ticks"]
            found = [tick for tick in earlier if tick["event_id"] == event_id]
            if found:
                return cast(TickReport, found[-1])
    return None


def _sent(tick: TickReport) -> dict[str, Any]:
    """The tick as `send --json` prints it."""
    pattern: dict[str, Any] = dict(tick["pattern"])
    return {
        "reply": tick["reply"],
        "tick": tick["tick"],
        "context_type": tick["context_type"],
        "pattern": {key: pattern[key] for key in ("mode", "max_iterations", "source_layers")},
        "tools": tick["tools"],
        "llm_calls": tick["llm_calls"],
        "tokens": tick["tokens"],
    }


def _footer(tick: TickReport, context: dict[str, Any]) -> Text:
    """What the tick cost, and how full the context is now."""
    calls, tokens = counted(tick["llm_calls"], "call"), counted(tick["tokens"], "token")
    return Text.assemble(
        (f"tick {tick['tick']} · {calls} · {tokens} · context ", "dim"),
        context_meter(context, width=10),
    )


def _unanswered(report: Report, event_id: str, most: int) -> str:
    """Why there is no reply, and what happens next."""
    for failure in report["failures"]:
        if failure["event_id"] == event_id:
            return f"{failure['error']} ({what_next(failure, most)})"
    why = " ".join(report["notes"]) or "the run ended before its turn."
    return f"{why} The message is kept in the inbox"


def what_next(failure: FailureReport, most: int) -> str:
    """What becomes of an event whose tick failed."""
    if failure["set_aside"]:
        return f"set aside after {failure['attempts']} attempts"
    return f"kept in the inbox, attempt {failure['attempts']} of {most}"


def _why_no_night(report: Report) -> str:
    if report["failures"]:
        errors = "; ".join(dict.fromkeys(failure["error"] for failure in report["failures"]))
        return f"{errors}; what was done is kept, and the next run goes on from there"
    return " ".join(report["notes"]) or "the run ended before the night began"


def _done(report: Report, now: dict[str, Any]) -> list[RenderableType]:
    """What a request did, for people."""
    lines: list[RenderableType] = [Text(note) for note in report["notes"]]
    for tick in report["ticks"]:
        calls, tokens = counted(tick["llm_calls"], "call"), counted(tick["tokens"], "token")
        lines.append(Text(f"tick {tick['tick']} · {calls} · {tokens}", style="dim"))
    if report["night"] is not None:
        lines.append(night_view(report["night"]))
    stopped = ", emergency stop" if now["emergency_stop"] else ""
    phase = f", {now['phase']}" if now["phase"] else ""
    return [*lines, Text(f"{now['mode']}{phase}{stopped}")]


def _failed(screen: Screen, report: Report) -> int:
    """One line for what failed; the exit status."""
    if not report["failures"]:
        return 0
    screen.problem("; ".join(failure["error"] for failure in report["failures"]))
    return 1
