"""The replay file: JSON Lines, each line an event or a request, read strictly.

An event is `{"id", "at", "sender", "text", "channel"?, "addressed"?}`, a request
`{"request": "sleep" | "wake" | "tick", "at"?}`. Empty lines are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from memory.errors import InputError
from memory.messages import in_utc, valid_event
from memory.records import Event, operation_id

MOST_AT_ONCE = 200
"""Events per run, so that a long stretch of overheard talk shows progress."""


_EVENT_KEYS = {"id", "at", "sender", "text", "channel", "addressed"}


class RequestLine(BaseModel):
    """A line that is a request."""

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
    """The id of a request among what was handled."""
    lines: int = 1
    """Lines of the file that the step covers."""

    @property
    def ids(self) -> list[str]:
        """The ids of the step among what was handled."""
        return [event["id"] for event in self.events] or [self.marker]


def steps(path: Path) -> Iterator[Step]:
    """The steps of a file, in order. Overheard events join the addressed event after them.

    Raises:
        InputError: at the first malformed line, after the steps before it were yielded.
    """
    heard: list[Event] = []
    anchor, requests = f"file {path.name}", 0
    try:
        for found in _lines(path):
            if isinstance(found, RequestLine):
                yield from _together(heard)
                requests += 1
                yield _request(found, anchor, requests)
                continue
            anchor, requests = found["id"], 0
            heard.append(found)
            if found["addressed"] or len(heard) >= MOST_AT_ONCE:
                yield from _together(heard)
    except InputError:
        yield from _together(heard)
        raise
    yield from _together(heard)


def count_lines(path: Path) -> int:
    """The number of lines that are not empty. Raises InputError if the file cannot be read."""
    return sum(1 for _ in _raw_lines(path))


def _together(heard: list[Event]) -> Iterator[Step]:
    """Yield the events gathered so far as one step, if any, and empty the list."""
    if heard:
        step = Step(events=tuple(heard), lines=len(heard))
        heard.clear()
        yield step


def _request(line: RequestLine, anchor: str, position: int) -> Step:
    """The step of a request, whose id comes from the request, its time and its place.

    The place counts from the last event, not from the start of the file: lines mended or added
    before it must not make it a new request.
    """
    marker = "replay:" + operation_id("replay", line.request, line.at or "", anchor, str(position))
    return Step(request=line.request, at=line.at, marker=marker)


def _lines(path: Path) -> Iterator[Event | RequestLine]:
    for number, raw in _raw_lines(path):
        try:
            yield _line(raw)
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from None


def _line(raw: bytes) -> Event | RequestLine:
    try:
        value: Any = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"not JSON: {error}") from None
    if isinstance(value, dict) and "request" in value:
        return _valid_request(value)
    if isinstance(value, dict) and (unknown := sorted(value.keys() - _EVENT_KEYS)):
        raise InputError(f"unknown key {unknown[0]!r}; known are {', '.join(sorted(_EVENT_KEYS))}")
    return valid_event(value)


def _valid_request(value: dict[str, Any]) -> RequestLine:
    try:
        return RequestLine.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"request: {where}: {first['msg']}") from None


def _raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not empty, with their numbers, from 1."""
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                if raw.strip():
                    yield number, raw
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
