"""A whole memory as JSON Lines: the form of each line, and reading one with care. Pure.

The first line is the header; then a line a record: the state, the store's records, the facts; the
last line says that it is whole. Vectors are not in it: they are made again, and so is what finds
the journal's entries. Mem0's history of changes stays behind.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NoReturn, TypeAlias

from langchain_core.messages import messages_from_dict
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from memory.approvals import Deed
from memory.at_rest import at_rest
from memory.audit import AuditEntry
from memory.errors import InputError
from memory.profiles import EntityProfile
from memory.records import Fact, InboxItem, JournalEntry, NightRecord, PlanRecord
from memory.state import HandledMark
from memory.state_check import kept_problem
from memory.tick import Decision

FORMAT, VERSION = "circadian-memory", 1
NOT_MOVED = frozenset(("unindexed", "indexing", "speakers", "forgetting", "importing"))
"""Kinds of records that are made again, or are about one home."""


class Header(BaseModel):
    """The first line."""

    model_config = ConfigDict(extra="ignore", strict=True)

    format: Literal["circadian-memory"]
    version: int
    agent: str
    """Its name, for people."""
    exported_at: str
    embedder: str | None
    """Whose vectors it had; another may take it in."""
    counts: dict[str, int]
    """Records by kind when the export began."""


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class StateLine(_Line):
    """Working memory, between two runs; its messages as LangChain writes them."""

    type: Literal["state"]
    values: dict[str, Any]


class ItemLine(_Line):
    """A record of the store."""

    type: Literal["item"]
    namespace: list[Annotated[str, Field(min_length=1)]] = Field(min_length=1)
    """Below the agent's own."""
    key: str = Field(min_length=1)
    value: dict[str, Any]


class FactLine(_Line):
    """A fact, superseded ones too."""

    type: Literal["fact"]
    fact: Fact


class EndLine(_Line):
    """The last line: without it a file is cut."""

    type: Literal["end"]
    lines: int
    """Records between the header and this line."""


Record: TypeAlias = StateLine | ItemLine | FactLine | EndLine


class _Id(TypedDict):
    id: str


class _Link(TypedDict):
    linked_to: list[str]
    created: str


_RECORD: TypeAdapter[Record] = TypeAdapter(Annotated[Record, Field(discriminator="type")])
_FORMS: Mapping[tuple[str, int], TypeAdapter[Any]] = {
    ("journal", 2): TypeAdapter(JournalEntry),
    ("pending", 1): TypeAdapter(_Id),
    ("archives", 1): TypeAdapter(_Id),
    ("links", 1): TypeAdapter(_Link),
    ("inbox", 1): TypeAdapter(InboxItem),
    ("set_aside", 1): TypeAdapter(InboxItem),
    ("handled", 1): TypeAdapter(HandledMark),
    ("nights", 1): TypeAdapter(NightRecord),
    ("night", 2): TypeAdapter(PlanRecord),
    ("open_night", 1): TypeAdapter(_Id),
    ("audit", 2): TypeAdapter(AuditEntry),
    ("answers", 1): TypeAdapter(Decision),
    ("deeds", 1): TypeAdapter(Deed),
    ("entities", 1): TypeAdapter(EntityProfile),
    ("entity_names", 1): TypeAdapter(_Id),
}
"""What the records of a namespace are, by its first label and its length."""


def line_of(record: Mapping[str, Any]) -> str:
    """A record as its line, without the line break; the same record gives the same line."""
    return json.dumps(record, ensure_ascii=False, sort_keys=True, allow_nan=False)


def header_of(line: str) -> Header:
    """The first line. Raises InputError where it is no export, or a newer version's."""
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
    """A later line. Raises InputError with its number where it breaks its form."""
    try:
        record = _RECORD.validate_python(_loaded(line))
        _check(record)
    except ValidationError as error:
        raise InputError(f"line {number}: {_first(error)}") from None
    except ValueError as error:
        raise InputError(f"line {number}: {error}") from None
    return record


def state_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a thread, from a line's. Raises ValueError where they break a rule."""
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


def renamed(value: Any, ids: Mapping[str, str]) -> Any:
    """`value` (JSON) with other ids in the place of those in `ids`, wherever one stands alone."""
    if isinstance(value, str):
        return ids.get(value, value)
    if isinstance(value, Mapping):
        return {ids.get(key, key): renamed(one, ids) for key, one in value.items()}
    if isinstance(value, list):
        return [renamed(one, ids) for one in value]
    return value


def numbered(lines: Iterable[str]) -> Iterable[tuple[int, str]]:
    """The lines that are not blank, with their numbers from 1."""
    return ((at, line) for at, line in enumerate(lines, 1) if line.strip())


def _check(record: Record) -> None:
    """What the form of a line does not say. Raises ValueError or ValidationError."""
    if isinstance(record, StateLine):
        state_of(record.values)
    elif isinstance(record, ItemLine):
        form = _FORMS.get((record.namespace[0], len(record.namespace)))
        if form is not None:
            form.validate_python(record.value, strict=True)
        if record.namespace[0] in NOT_MOVED:
            raise ValueError(f"records of {record.namespace[0]} are not moved")
        _check_place(record)


def _check_place(record: ItemLine) -> None:
    """A record stands under its own id, and an entry in the day that its id names."""
    kind, key, value = record.namespace[0], record.key, record.value
    if kind in ("journal", "nights", "entities", "handled") and value.get("id") != key:
        raise ValueError(f"{kind}: the key is {key!r:.80} and the id {value.get('id')!r:.80}")
    if kind == "journal" and key.split("_", 2)[1:2] != record.namespace[1:2]:
        raise ValueError(f"journal: {key!r:.80} is not of the day {record.namespace[1]!r:.20}")


def _loaded(line: str) -> Any:
    """The JSON of a line. Raises ValueError where it is none, or cannot be written."""
    loaded = json.loads(line, parse_constant=_no_number)
    json.dumps(loaded, ensure_ascii=False).encode()
    return loaded


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _first(error: ValidationError) -> str:
    """The first thing that is wrong."""
    one = error.errors()[0]
    where = ".".join(str(part) for part in one["loc"]) or "record"
    return f"{where}: {one['msg']}"
