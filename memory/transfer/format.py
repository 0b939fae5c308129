"""A whole memory as JSON Lines: the form of each line, and reading one with validation. Pure.

The first line is the header; then one line per record: the state, the store's records, the facts;
the last line proves that the file is complete. Vectors and index rows are not exported, because an
import makes them again. Mem0's history of changes is not exported.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, NoReturn, TypeAlias

from langchain_core.messages import messages_from_dict
from pydantic import BaseModel, ConfigDict, Discriminator, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from memory.errors import InputError
from memory.events import Deed, approvals
from memory.records import LONGEST_FACT, Fact
from memory.state import at_rest, kept_problem
from memory.storage import FORMS

FORMAT, VERSION = "circadian-memory", 1

NOT_MOVED = frozenset(
    (
        *("unindexed", "indexing", "speakers", "forgetting", "importing"),
        *("tick_reports", "tick_prompts", "agent"),
    )
)
"""Kinds of records that an import makes again, or that concern one installation."""

ASKED_AGAIN = approvals.ANSWERS
"""Not exported, and an import leaves it out: nobody approves a dangerous call by a file."""


class Header(BaseModel):
    """The first line."""

    model_config = ConfigDict(extra="ignore", strict=True)

    format: Literal["circadian-memory"]
    version: int
    agent: str
    """Its name, for people."""
    exported_at: str
    embedder: str | None
    """Embedder of the exporting agent; any other embedder can import the file."""
    counts: dict[str, int]
    """Records by kind when the export began."""


class _Line(BaseModel):
    # Most programs that load this file read no line.
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


class StateLine(_Line):
    """Working memory between two runs; messages as LangChain serialises them."""

    type: Literal["state"]
    values: dict[str, Any]


class ItemLine(_Line):
    """A record of the store."""

    type: Literal["item"]
    namespace: list[Annotated[str, Field(min_length=1)]] = Field(min_length=1)
    """Labels below `(user, thread)`."""
    key: str = Field(min_length=1)
    value: dict[str, Any]


class FactLine(_Line):
    """A fact, current or superseded."""

    type: Literal["fact"]
    fact: Fact


class EndLine(_Line):
    """The last line; a file without it is cut."""

    type: Literal["end"]
    lines: int
    """Records between the header and this line."""


Record: TypeAlias = StateLine | ItemLine | FactLine | EndLine


class _Stop(TypedDict):
    """A request for the emergency stop that no run has taken yet."""

    at: str
    by: str


_FORMS: Mapping[tuple[str, int], Any] = {
    **FORMS,
    ("open_night", 1): FORMS["pending", 1],
    ("deeds", 1): Deed,
    ("controls", 1): _Stop,
}
"""Record types by the first label and the length of their namespace."""


@cache
def _checker(form: Any) -> TypeAdapter[Any]:
    """Checks values of a type; made when it is first needed."""
    return TypeAdapter(form)


def line_of(record: Mapping[str, Any]) -> str:
    """Serialise a record to its line, without the line break; deterministic."""
    return json.dumps(record, ensure_ascii=False, sort_keys=True, allow_nan=False)


def header_of(line: str) -> Header:
    """Parse the first line. Raises InputError for no export, or one of a newer version."""
    try:
        raw = _loaded(line)
        version = raw.get("version") if isinstance(raw, dict) else None
        if isinstance(raw, dict) and raw.get("format") == FORMAT and version != VERSION:
            raise InputError(
                f"line 1: it is of version {version!r:.20}, and this Circadian reads {VERSION}; "
                "update Circadian"
            )
        if not isinstance(raw, dict) or raw.get("format") != FORMAT:
            raise ValueError(f"its first line has no `format` {FORMAT!r}")
        return Header.model_validate(raw)
    except ValidationError as error:
        raise InputError(f"line 1: no export of a memory: {_first(error)}") from None
    except ValueError as error:
        raise InputError(f"line 1: no export of a memory: {error}") from None


def record_of(line: str, number: int) -> Record:
    """Parse a later line. Raises InputError with the line's number if it is invalid."""
    try:
        lines = _checker(Annotated[Record, Discriminator("type")])
        record: Record = lines.validate_python(_loaded(line))
        _check(record)
    except ValidationError as error:
        raise InputError(f"line {number}: {_first(error)}") from None
    except ValueError as error:
        raise InputError(f"line {number}: {error}") from None
    return record


def state_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The state's values from those of a line. Raises ValueError if they are invalid."""
    try:
        messages = messages_from_dict(values.get("messages", []))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"state: a message cannot be read ({type(error).__name__})") from None
    state = at_rest({**values, "messages": messages})
    if values and not state:
        raise ValueError("state: schema_version is missing")
    problem = kept_problem(state)
    if problem:
        raise ValueError(problem.partition(". Mend it")[0])
    return state


def numbered(lines: Iterable[str]) -> Iterable[tuple[int, str]]:
    """The non-blank lines with their numbers, from 1."""
    return ((at, line) for at, line in enumerate(lines, 1) if line.strip())


def _check(record: Record) -> None:
    """Check rules that the type of a line cannot express. Raises ValueError or ValidationError."""
    if isinstance(record, StateLine):
        state_of(record.values)
    elif isinstance(record, FactLine):
        if (length := len(record.fact["text"])) > LONGEST_FACT:
            raise ValueError(f"fact: {length:,} characters, more than {LONGEST_FACT:,}")
    elif isinstance(record, ItemLine):
        if record.namespace[0] in NOT_MOVED:
            raise ValueError(f"records of {record.namespace[0]} are not moved")
        form = _FORMS.get((record.namespace[0], len(record.namespace)))
        if form is not None:
            _checker(form).validate_python(record.value, strict=True)
        _check_place(record)


def _check_place(record: ItemLine) -> None:
    """A record's key is its id, and an entry is in the namespace of its day."""
    kind, key, value = record.namespace[0], record.key, record.value
    if kind in ("journal", "nights", "entities", "pages", "handled") and value.get("id") != key:
        raise ValueError(f"{kind}: the key is {key!r:.80} and the id {value.get('id')!r:.80}")
    if kind == "journal" and key.split("_", 2)[1:2] != record.namespace[1:2]:
        raise ValueError(f"journal: {key!r:.80} is not of the day {record.namespace[1]!r:.20}")


def _loaded(line: str) -> Any:
    """Parse a line as JSON. Raises ValueError if it is none or cannot be encoded."""
    try:
        loaded = json.loads(line, parse_constant=_no_number, parse_int=_storable)
        json.dumps(loaded, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return loaded


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _storable(digits: str) -> int:
    """An integer that the store and the checkpoints can hold."""
    if not -(2**63) <= (number := int(digits)) < 2**63:
        raise ValueError(f"{digits:.30} has more than 64 bits")
    return number


def _first(error: ValidationError) -> str:
    one = error.errors()[0]
    where = ".".join(str(part) for part in one["loc"]) or "record"
    return f"{where}: {one['msg']}"
