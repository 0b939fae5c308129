"""Printing: rich on a terminal, plain text otherwise, JSON on request; and the log on stderr.

Results go to stdout, notes for people to stderr. Text from people and models is cleaned of control
characters first: it must not steer a terminal.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from memory.errors import InputError
from memory.settings import Deployment
from memory.text import known_zone, local, machine_zone, redact, redacted, regex

PLAIN_WIDTH = 100
"""Columns of output that has no width, because it is not a terminal."""

BAR = 20

FIRST_WORDS = 40
"""Characters of a quotation."""

_CONTROL = regex(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_UUID = regex(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WORDS = regex(r"\s+|\S+")
LEVEL_STYLE = {"normal": "green", "warning": "yellow", "critical": "red"}


class Screen:
    """The output of one command."""

    def __init__(self, *, json: bool) -> None:
        self.json = json
        self.out = Console(highlight=False, markup=False, emoji=False)
        self.err = Console(stderr=True, highlight=False, markup=False, emoji=False)
        if not self.out.is_terminal:
            self.out.width = PLAIN_WIDTH

    @property
    def live(self) -> bool:
        """Whether spinners and bars may move: on a terminal, without `--json`."""
        return self.out.is_terminal and not self.json

    def show(self, *parts: RenderableType) -> None:
        """Print for people; with `--json` print nothing."""
        for part in () if self.json else parts:
            if self.out.is_terminal:
                self.out.print(part)
            else:
                with self.out.capture() as printed:
                    self.out.print(part)
                lines = (line.rstrip() for line in printed.get().splitlines())
                self.out.file.write("\n".join(lines) + "\n")
                self.out.file.flush()

    def result(self, value: Any, *parts: RenderableType) -> None:
        """Print `value` with `--json`, as the one document; else `parts`."""
        if self.json:
            self.out.file.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")
            self.out.file.flush()
        self.show(*parts)

    def line(self, text: str) -> None:
        """A line to be copied: it is never wrapped."""
        if not self.json:
            self.out.print(Text(clean(text), style="dim"), soft_wrap=True)

    def note(self, text: str) -> None:
        """A line on stderr for people.

        If stdout is a terminal, too, the line goes there, because stdout keeps it off the spinners.
        """
        where = self.out if self.live and self.err.is_terminal else self.err
        where.print(Text(one_line(text), style="dim"), soft_wrap=not where.is_terminal)

    def problem(self, text: str) -> None:
        """Print a line on stderr that says why a command failed."""
        self.err.print(Text.assemble(("circadian: ", "red"), one_line(text)), soft_wrap=True)

    @contextmanager
    def progress(self) -> Iterator[Callable[[str, int, int | None], None]]:
        """A bar, if bars may move; yields the function that updates it.

        Its arguments: the work in words, how much is done, and the total, None while unknown.
        """
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        bar = Progress(
            *columns, TimeRemainingColumn(), console=self.out, transient=True, disable=not self.live
        )
        with bar:
            task = bar.add_task("", total=None)
            yield lambda what, done, of: bar.update(
                task, description=what, completed=done, total=of
            )


class Words:
    """A reply that is printed as it comes, wrapped between words on a terminal.

    The last word is held back while it grows: only its end tells which line it fits on.
    """

    def __init__(self, screen: Screen) -> None:
        self._out = screen.out
        self._width = screen.out.width if screen.out.is_terminal else None
        self._column = 0
        self._held = ""

    def add(self, text: str) -> None:
        """Print the new words except the last one."""
        parts = _WORDS.findall(self._held + clean(text))
        self._held = "" if not parts or parts[-1].isspace() else parts.pop()
        for part in parts:
            self._put(part)

    def end(self) -> None:
        """Print the last word and end the line."""
        self._put(self._held)
        self._out.print(Text(""))

    def _put(self, part: str) -> None:
        length = cell_len(part)
        if self._width and self._column + length > self._width:
            self._out.print(Text(""))
            self._column = 0
            part = "" if part.isspace() and "\n" not in part else part
        self._out.print(Text(part), end="", soft_wrap=True)
        broken = part.rpartition("\n")
        self._column = cell_len(broken[2]) + (0 if broken[1] else self._column)


def clean(text: str) -> str:
    """`text` without control characters, line breaks and tabs excepted."""
    return _CONTROL.sub("", text)


def visible(text: str) -> str:
    r"""`text` with control characters written out, such as `\x1b`."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """`text` without control characters, on one line."""
    return " ".join(clean(text).split())


def short_id(event_id: str) -> str:
    """An event's id for people: a uuid is cut to its beginning."""
    return f"{event_id[:8]}…" if _UUID.fullmatch(event_id) else one_line(event_id)


def bar(percentage: float, style: str, width: int = BAR) -> Text:
    """A meter of `width` columns; more than 100 % fills it."""
    full = round(min(max(percentage, 0.0), 100.0) / 100 * width)
    return Text.assemble(("█" * full, style), ("░" * (width - full), "dim"))


def context_meter(context: Mapping[str, Any], width: int = BAR) -> Text:
    """How full the context is: a bar, tokens, percent and level."""
    style = LEVEL_STYLE[context["level"]]
    return Text.assemble(
        bar(context["percentage"], style, width),
        f" {context['percentage']:g} % ",
        (f"({context['used']:,} of {context['limit']:,} tokens, {context['level']})", "dim"),
    )


_zone: ContextVar[str | None] = ContextVar("_zone", default=None)


@contextmanager
def times_in(name: str | None) -> Iterator[None]:
    """Within this block, people see times in the zone `name`; None: in the machine's zone."""
    token = _zone.set(name)
    try:
        yield
    finally:
        _zone.reset(token)


def shown_zone() -> tzinfo:
    """The zone in which people are shown times."""
    name = _zone.get()
    return machine_zone() if name is None else known_zone(name)


def day(at: str) -> str:
    """A date for people: `Saturday 2 May 2026`."""
    return f"{here(at):%A} {date(at)}"


def date(at: str) -> str:
    """A date for people, short: `2 May 2026`."""
    moment = here(at)
    return f"{moment.day} {moment:%b %Y}"


def here(at: str) -> datetime:
    """A stored time, which is UTC, in the zone that people see."""
    return local(at, shown_zone())


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 fact`, `2 facts`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def moment(at: str) -> str:
    """A date and time: `2 May 2026 08:15 CEST`."""
    return f"{date(at)} {here(at):%H:%M %Z}"


def day_rule(at: datetime) -> Rule:
    """A line across the screen with a date and the zone of the times below the line."""
    named = f"{at:%A} {at.day} {at:%b %Y}"
    return Rule(Text.assemble((named, "bold"), (f" ({at:%Z})", "dim")), align="left", style="dim")


def ruled_table(*left: str, right: Sequence[str] = ()) -> Table:
    """A table with a line under its heads: columns aligned left, then columns aligned right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", show_edge=False)
    for name in left:
        table.add_column(name)
    for name in right:
        table.add_column(name, justify="right")
    return table


# The log: level and format by environment variable, and no secret in any line


LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
FORMATS = ("text", "json")

_REPORTED_ANYWAY = ("circadian.tick", "circadian.night")
"""Loggers of failures that every command reports anyway; they log only at INFO or below."""


def log_as(deployment: Deployment) -> None:
    """Log to stderr as CIRCADIAN_LOG_LEVEL and CIRCADIAN_LOG_FORMAT say.

    The level is that of this project; other libraries log from WARNING up.
    """
    level, form = deployment.log_level.upper(), deployment.log_format.lower()
    if level not in LEVELS:
        raise InputError(f"CIRCADIAN_LOG_LEVEL is {level!r}; known are {', '.join(LEVELS)}")
    if form not in FORMATS:
        raise InputError(f"CIRCADIAN_LOG_FORMAT is {form!r}; known are {', '.join(FORMATS)}")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLogFormatter() if form == "json" else TextLogFormatter())
    if LEVELS.index(level) > LEVELS.index("INFO"):
        handler.addFilter(lambda record: record.name not in _REPORTED_ANYWAY)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("circadian").setLevel(level)
    logging.getLogger("memory").setLevel(level)


class TextLogFormatter(logging.Formatter):
    """A line for people: time, level, logger, message, fields; then the traceback, if any."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%d %H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line with those fields that are short and not part of the message."""
        said = re.split(r"[\s:,]+", record.getMessage())
        shown = ((name, _field(value)) for name, value in fields_of(record).items())
        fields = " ".join(f"{name}={text}" for name, text in shown if text and text not in said)
        return super().formatMessage(record) + (f" [{fields}]" if fields else "")

    def format(self, record: logging.LogRecord) -> str:
        """The record without secrets: redacted here, not in a filter, to cover tracebacks."""
        return redact(super().format(record), os.environ)


class JsonLogFormatter(logging.Formatter):
    """One JSON object per line: at, level, logger, message; fields and error if there are any."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON, without secrets."""
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": redact(record.getMessage(), os.environ),
        }
        if fields := fields_of(record):
            line["fields"] = redacted(fields, os.environ)
        if record.exc_info:
            line["error"] = redact(self.formatException(record.exc_info), os.environ)
        return json.dumps(line, ensure_ascii=False)


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of a record, given as `extra={"circadian": {...}}`."""
    given = getattr(record, "circadian", None)
    return dict(given) if isinstance(given, Mapping) else {}


def _field(value: Any) -> str:
    if value is None or isinstance(value, Mapping | list):
        return ""
    text = " ".join(str(value).split())
    return json.dumps(text, ensure_ascii=False) if " " in text else text
