"""What `circadian run` tells as it goes on: for a person, or a JSON line a thing that happened."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, cast
from zoneinfo import ZoneInfo

from rich.console import RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from graph.cli.console import Screen, clean, counted, one_line
from graph.cli.following import LOOKING_BACK
from graph.cli.night_view import STEP_NAMES, night_view
from graph.cli.render import day_rule
from graph.cli.talk import tool_line
from graph.cli.turn import mode_line, sent_line, still_waiting, what_next
from memory.reports import FailureReport, ModeChange, NightReport, Report, TickReport, empty_report
from memory.settings import Settings
from memory.state import Mode
from memory.tick import Question
from memory.turns import ASLEEP, NO_GOAL

News = tuple[str, Any]
"""(what happened, its record)."""
_LISTS = {
    "context_only": "overheard",
    "ignored": "ignored",
    "ticks": "tick",
    "questions": "question",
    "failures": "failure",
    "mode_changes": "mode",
    "notes": "note",
}
"""Lists of the report, in the order in which what is new of them is told."""


class Told:
    """What of a run was told so far; gives what is new."""

    def __init__(self) -> None:
        self._report = empty_report()

    def news(self, part: Mapping[str, Any]) -> Iterator[News]:
        """What a part of the stream brings."""
        if part["type"] != "updates":
            return
        for node, update in part["data"].items():
            if part["ns"] and part["ns"][0].startswith("sleep:") and len(part["ns"]) == 1:
                yield "step", node
            elif not part["ns"] and isinstance(update, Mapping):
                yield from self._of_report(update.get("report"))
                event, takes = update.get("event"), update.get("turn") == "tick"
                if node == "intake" and takes and event and not update.get("resuming"):
                    yield "event", event

    def _of_report(self, report: Report | None) -> Iterator[News]:
        if report is None:
            return
        before, self._report = self._report, report
        for key, what in _LISTS.items():
            told, now = cast(Any, before)[key], cast(Any, report)[key]
            yield from ((what, one) for one in now[len(told) :] if one not in (ASLEEP, NO_GOAL))
        if report["night"] is not None and before["night"] is None:
            yield "night", report["night"]


class Lines(AbstractContextManager["Lines"]):
    """One JSON object a line: `{"at", "what", ...}`."""

    def __init__(self, screen: Screen, clock: Callable[[], datetime]) -> None:
        self._screen, self._clock = screen, clock
        self._told = Told()
        self._last: News | None = None

    def __exit__(self, *error: object) -> None:
        """Nothing stays open."""

    def started(self, agent: str, model: str, when: str) -> None:
        """The first line."""
        self.say("started", agent=agent, model=model, when=when)

    def ending(self) -> None:
        """It was told to end."""
        self.say("ending")

    def ended(self, *, at_once: bool) -> None:
        """The last line."""
        self.say("ended", at_once=at_once)

    def begins(self) -> None:
        """A run sets out."""
        self._told = Told()

    async def part(self, part: dict[str, Any]) -> None:
        """A line for each thing that is new."""
        for what, record in self._told.news(part):
            self._tell(what, record)

    def rests(self, why: str, mode: Mode) -> None:
        """Told once."""
        self._once("resting", {"mode": mode, "why": why})

    def failed(self, error: str) -> None:
        """Told once."""
        self._once("trouble", {"error": error})

    def say(self, what: str, **more: Any) -> None:
        """Write a line."""
        self._last = None
        self._write(what, more)

    def _tell(self, what: str, record: Any) -> None:
        self._last = (what, record) if what == "note" and self._last == (what, record) else None
        match what:
            case "mode":
                slept = record["mode"] == "sleep"
                self.say("fell_asleep" if slept else "woke", why=record["why"], **_reason(record))
            case "night":
                self.say("night", **_night(record))
            case "note" | "overheard" | "step":
                key = {"note": "text", "overheard": "event_id", "step": "step"}[what]
                self.say(what, **{key: record})
            case "event":
                kept = ("id", "sender", "channel", "text")
                self.say("event", **{key: record[key] for key in kept})
            case "tick":
                self.say("tick", **{key: record[key] for key in _OF_TICK})
            case _:
                self.say(what, **record)

    def _once(self, what: str, more: dict[str, Any]) -> None:
        if self._last != (what, more):
            self._write(what, more)
        self._last = (what, more)

    def _write(self, what: str, more: Mapping[str, Any]) -> None:
        line = {"at": self._clock().isoformat(), "what": what, **more}
        self._screen.out.file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._screen.out.file.flush()


_OF_TICK = ("tick", "event_id", "context_type", "reply", "tools", "sent", "llm_calls", "tokens")


def _reason(change: ModeChange) -> dict[str, str]:
    return {"reason": change["reason"]}


def _night(report: NightReport) -> dict[str, Any]:
    """The night without each of its operations: `circadian night ID` has them."""
    return {
        **{key: report[key] for key in ("id", "complete", "steps", "errors")},
        "operations": len(report["operations"]),
        "held": len(report["held"]),
    }


class Watch:
    """For a person: a line for what is said and done, and at the foot what goes on just now."""

    def __init__(self, screen: Screen, settings: Settings, clock: Callable[[], datetime]) -> None:
        self._screen, self._settings, self._clock = screen, settings, clock
        self._told = Told()
        self._today: str | None = None
        self._said: str | None = None
        """The note or error that was told last: it is not told again and again."""
        self._foot = Live(console=screen.out, auto_refresh=False, transient=True)

    def __enter__(self) -> Watch:
        if self._screen.live:
            self._foot.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._foot.stop()

    def started(self, agent: str, model: str, when: str) -> None:
        """What runs, and when."""
        # Of the offline model a note has said what it is.
        name = one_line(model).partition(" (")[0]
        head = Text.assemble(("Circadian", "bold"), f" runs as {one_line(agent)}, model {name}")
        self._screen.show(head, Text(f"{when}. Ctrl-C ends it.", style="dim"))

    def ending(self) -> None:
        """It was told to end."""
        self._aside("ending when the step at hand is finished; once more ends it at once")

    def ended(self, *, at_once: bool) -> None:
        """It has."""
        how = "stopped at once" if at_once else "ended"
        self._aside(f"{how}; whatever is left waits for the next run")

    def begins(self) -> None:
        """A run sets out."""
        self._told = Told()

    async def part(self, part: dict[str, Any]) -> None:
        """Lines for what is new; at the foot which step is at work."""
        news = list(self._told.news(part))
        for what, record in news:
            self._tell(what, record)
        if overheard := sum(what == "overheard" for what, _ in news):
            self._aside(f"overheard {counted(overheard, 'message')}")
        if part["type"] == "updates" and part["ns"] and part["ns"][0].startswith("awake:"):
            self.now("thinking")

    def rests(self, why: str, mode: Mode) -> None:
        """At the foot; but what a person has to do something about is said above it too."""
        if "circadian" in why:
            self._once(why)
        else:
            self._said = None
        said = why.removeprefix("Asleep. ").rstrip(".")
        self.now(f"{'asleep' if mode == 'sleep' else mode} · {said[0].lower()}{said[1:]}")

    def failed(self, error: str) -> None:
        """Said once, however often it comes again."""
        self._once(error, "red")
        self.now("trying again")

    def now(self, text: str) -> None:
        """What goes on just now."""
        if self._screen.live:
            self._foot.update(Text(f"  {clean(text)}", style="dim"), refresh=True)

    def _tell(self, what: str, record: Any) -> None:
        tell: dict[str, Callable[[Any], None]] = {
            "event": self._event,
            "tick": self._tick,
            "mode": self._mode,
            "night": self._night,
            "question": lambda one: self._aside(still_waiting([cast(Question, one)])),
            "failure": self._failure,
            "ignored": lambda one: self._aside(f"left alone: {one['reason']}"),
            "note": self._once,
            "step": self._step,
        }
        if what in tell:
            tell[what](record)
        if what not in ("note", "step", "failure"):
            self._said = None

    def _step(self, node: str) -> None:
        """A step of a night has ended."""
        self.now(f"asleep · {STEP_NAMES.get(node, node.replace('_', ' '))}")

    def _event(self, event: Mapping[str, Any]) -> None:
        text = Text(one_line(event["text"]))
        if event["channel"]:
            text.append(f" ({one_line(event['channel'])})", style="dim")
        self._row(Text(one_line(event["sender"]), style="cyan"), text, at=self._clock())
        self.now("thinking")

    def _tick(self, tick: TickReport) -> None:
        """Tools, what was said to others, the answer; a look at its own work is no answer."""
        at = self._clock() if tick["event_id"] is None else None
        for line in [*map(tool_line, tick["tools"]), *map(sent_line, tick["sent"])]:
            self._row(Text(), line, at=at)
            at = None
        if tick["context_type"] in LOOKING_BACK:
            self._aside("looked back at its own work")
        elif tick["reply"]:
            self._row(Text("Circadian", style="yellow"), Text(clean(tick["reply"])), at=at)
        calls, tokens = counted(tick["llm_calls"], "call"), counted(tick["tokens"], "token")
        self._aside(f"tick {tick['tick']} · {calls} · {tokens}")

    def _mode(self, change: ModeChange) -> None:
        self._row(Text(), mode_line(change), at=datetime.fromisoformat(change["at"]))

    def _night(self, report: NightReport) -> None:
        if report["id"] is not None:  # a note says so where there was nothing to do
            self._screen.show("", night_view(report), "")

    def _failure(self, failure: FailureReport) -> None:
        told = what_next(failure, self._settings.max_failed_ticks)
        kept = told if failure["event_id"] else "it goes on from there"
        self._once(f"{failure['error']} ({kept})", "red")

    def _once(self, text: str, style: str = "dim") -> None:
        if text != self._said:
            self._row(Text(), Text(one_line(text), style=style), at=self._clock())
        self._said = text

    def _aside(self, text: str) -> None:
        self._row(Text(), Text(one_line(text), style="dim"))

    def _row(self, who: Text, what: RenderableType, *, at: datetime | None = None) -> None:
        """Time, name and text in columns, the text wrapped in its own; a rule for a new day."""
        time = Text()
        if at is not None:
            local = at.astimezone(ZoneInfo(self._settings.time_zone))
            time = Text(f"{local:%H:%M}", style="dim")
            if local.date().isoformat() != self._today:
                self._today = local.date().isoformat()
                self._screen.show("", day_rule(local.isoformat()))
        row = Table.grid(padding=(0, 1))
        row.add_column(width=5)
        row.add_column(width=10, no_wrap=True, overflow="ellipsis")
        row.add_column()
        row.add_row(time, who, what)
        self._screen.show(row)
