"""A whole memory as JSON Lines, and into an empty agent: checked as a whole, written in batches.

The first line is the header; then one line per record: the state, the store's records, the facts;
the last line proves that the file is complete. Vectors and index rows are not exported, because an
import makes them again. Mem0's history of changes is not exported.

A tick that runs meanwhile is in the export as a whole or not at all: the inbox is read before the
state, and an event that the state does not contain yet stays in the inbox. The journal is read
before the facts made from it. An event handled twice because of this is still one entry.

Store namespace (below `(user, thread)`): `importing` "file" -> Importing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, NoReturn, TypeAlias, cast

from langchain_core.messages import messages_from_dict, messages_to_dict
from langchain_core.utils.iter import batch_iterate
from langgraph.store.base import BaseStore, Item, PutOp
from pydantic import BaseModel, ConfigDict, Discriminator, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from memory import forgetting, journal
from memory.errors import InputError, explained
from memory.events import approvals, inbox
from memory.facts import SemanticMemory, metadata_of, scope_filters
from memory.records import LONGEST_FACT, Fact, Scope
from memory.state import at_rest, kept_problem
from memory.storage import FORMS, count_items, list_items, namespaces_below, shelves, write_batch

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


class AgentMemory(NamedTuple):
    """Where a memory is read from."""

    store: BaseStore
    semantic: SemanticMemory
    scope: Scope


class Taken(NamedTuple):
    """The waiting events, and the state, which is read after them."""

    waiting: list[Item]
    aside: list[Item]
    values: dict[str, Any]


async def waiting_in(source: AgentMemory) -> tuple[list[Item], list[Item]]:
    """Events that wait or are set aside, to be read before the state. Raises InputError."""
    store, scope = source.store, source.scope
    if left := await forgetting.unfinished(store, scope):
        raise InputError(left)
    waiting = await list_items(store, scope.namespace(inbox.INBOX))
    return waiting, await list_items(store, scope.namespace(inbox.SET_ASIDE))


async def header(
    source: AgentMemory, *, agent: str, embedder: str | None, at: str
) -> dict[str, Any]:
    """The first line: where the memory is from, and how much there was when the export began."""
    counts: dict[str, int] = {"facts": await source.semantic.count(source.scope)}
    for namespace in await namespaces_below(source.store, source.scope.namespace()):
        kind = namespace[2] if len(namespace) > 2 else ""
        if kind and kind not in (*NOT_MOVED, ASKED_AGAIN):
            prefix = source.scope.namespace(kind)
            counts[kind] = await count_items(source.store, prefix)
    return {
        "format": FORMAT,
        "version": VERSION,
        "agent": agent,
        "exported_at": at,
        "embedder": embedder,
        "counts": counts,
    }


async def records(source: AgentMemory, taken: Taken) -> AsyncIterator[dict[str, Any]]:
    """All lines after the header."""
    number = 0
    async for record in _records(source, taken):
        number += 1
        yield record
    yield {"type": "end", "lines": number}


def line_of(record: Mapping[str, Any]) -> str:
    """Serialise a record to its line, without the line break; deterministic."""
    return json.dumps(record, ensure_ascii=False, sort_keys=True, allow_nan=False)


async def _records(source: AgentMemory, taken: Taken) -> AsyncIterator[dict[str, Any]]:
    values = at_rest(taken.values)
    if values:
        messages, marks = messages_to_dict(values.get("messages", [])), values.get("handled", [])
        done = await inbox.already_handled(source.store, source.scope, [m["id"] for m in marks])
        left = [mark for mark in marks if mark["id"] not in done]
        yield {"type": "state", "values": {**values, "messages": messages, "handled": left}}
    aside = {item.key for item in taken.aside}
    done = await _contained(source, values, [item.key for item in taken.waiting])
    for item in taken.waiting:
        if item.key not in aside | done:
            yield _item(("inbox",), item)
    for item in taken.aside:
        yield _item(("set_aside",), item)
    tick = int(values.get("tick", 0))
    async for shelf in shelves(source.store, source.scope):
        kind = shelf.labels[0] if shelf.labels else ""
        if kind in (*NOT_MOVED, ASKED_AGAIN, inbox.INBOX, inbox.SET_ASIDE):
            continue
        for item in shelf.items:
            # A tick that the state does not contain has handled nothing.
            if kind != inbox.HANDLED or item.value["tick"] <= tick:
                yield _item(shelf.labels, item)
    for fact in await source.semantic.all(source.scope):
        yield {"type": "fact", "fact": fact}


async def _contained(
    source: AgentMemory, values: Mapping[str, Any], ids: Sequence[str]
) -> set[str]:
    marks = {mark["id"] for mark in values.get("handled", [])}
    namespace, tick = source.scope.namespace(inbox.HANDLED), int(values.get("tick", 0))
    for id_ in ids:
        item = await source.store.aget(namespace, id_)
        if item is not None and item.value["tick"] <= tick:
            marks.add(id_)
    return marks


def _item(labels: Sequence[str], item: Item) -> dict[str, Any]:
    return {"type": "item", "namespace": list(labels), "key": item.key, "value": item.value}


# Reading one line; pure


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
    ("deeds", 1): approvals.Deed,
    ("controls", 1): _Stop,
}
"""Record types by the first label and the length of their namespace."""


@cache
def _checker(form: Any) -> TypeAdapter[Any]:
    """Checks values of a type; made when it is first needed."""
    return TypeAdapter(form)


def check_header(line: str) -> None:
    """Raise InputError unless the first line is that of an export, and of this version."""
    try:
        header = _loaded(line)
    except ValueError as error:
        raise InputError(f"line 1: no export of a memory: {error}") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(
            f"line 1: no export of a memory: its first line has no `format` {FORMAT!r}"
        )
    if (version := header.get("version")) != VERSION:
        raise InputError(
            f"line 1: it is of version {version!r:.20}, and this Circadian reads {VERSION}; update "
            "Circadian"
        )


def record_of(line: str, number: int) -> Record:
    """Parse a later line. Raises InputError with the line's number if it is invalid."""
    try:
        lines = _checker(Annotated[Record, Discriminator("type")])
        record: Record = lines.validate_python(_loaded(line))
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
    except ValidationError as error:
        wrong = explained(error.errors(), "record")[0]
        raise InputError(f"line {number}: {wrong}") from None
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


# Writing what was read


IMPORTING, FILE = "importing", "file"

BATCH = 500
"""Records written in one transaction."""

BROKEN_OFF = (
    "an import into this agent was interrupted, and it holds only a part of the file: import the "
    "same file again (`circadian import FILE`), which finishes it"
)

NOT_EMPTY = "the agent is not empty: import into another one (--agent NAME), which is made by it"


class Importing(TypedDict):
    """The file that is being imported, or was."""

    digest: str
    """sha256 of its lines."""
    done: bool


class Checked(NamedTuple):
    """A file in which every line was read and none is wrong."""

    digest: str
    counts: dict[str, int]
    """Records by kind."""
    facts: list[str]
    """Ids."""
    state: dict[str, Any]
    """The state's values as they are in its line; {} without such a line."""


def check(lines: Iterable[str]) -> Checked:
    """Read every line, and write nothing."""
    digest, counts = hashlib.sha256(), dict[str, int]()
    facts: dict[str, None] = {}
    state: dict[str, Any] = {}
    end: EndLine | None = None
    headed = False
    for number, line in numbered(lines):
        digest.update(line.strip().encode(errors="replace") + b"\n")
        if not headed:
            check_header(line)
            headed = True
            continue
        if end is not None:
            raise InputError(f"line {number}: it follows the last line")
        record = record_of(line, number)
        if isinstance(record, EndLine):
            end = record
            continue
        if isinstance(record, StateLine) and state:
            raise InputError(f"line {number}: a second state")
        if isinstance(record, FactLine):
            id_ = record.fact["id"]
            if id_ in facts:
                raise InputError(f"line {number}: the fact {id_} is in an earlier line, too")
            facts[id_] = None
        state = record.values if isinstance(record, StateLine) else state
        kind = record.namespace[0] if isinstance(record, ItemLine) else record.type
        counts[kind] = counts.get(kind, 0) + 1
    if not headed:
        raise InputError("line 1: the file is empty")
    if end is None or end.lines != sum(counts.values()):
        raise InputError("the file is cut: its last line is missing, or lines before it are")
    return Checked(digest.hexdigest(), counts, list(facts), state)


async def begun(store: BaseStore, scope: Scope, digest: str) -> bool | None:
    """Whether this file was imported here: None if not, False if that was broken off.

    Raises InputError: the import of another file was broken off.
    """
    item = await store.aget(scope.namespace(IMPORTING), FILE)
    same = item is not None and item.value["digest"] == digest
    if item is not None and not item.value["done"] and not same:
        raise InputError(BROKEN_OFF)
    return bool(item.value["done"]) if item is not None and same else None


async def check_whole(store: BaseStore, scope: Scope) -> None:
    """Raise InputError for an agent with a part of an import."""
    if left := await unfinished(store, scope):
        raise InputError(left)


async def unfinished(store: BaseStore, scope: Scope) -> str | None:
    """How to finish an interrupted import; None if there is none."""
    item = await store.aget(scope.namespace(IMPORTING), FILE)
    return None if item is None or item.value["done"] else BROKEN_OFF


async def check_target(
    store: BaseStore, semantic: SemanticMemory, scope: Scope, facts: Sequence[str]
) -> None:
    """Raise InputError if the agent is not empty, or another agent here has one of the facts."""
    if await namespaces_below(store, scope.namespace()) or await semantic.count(scope):
        raise InputError(NOT_EMPTY)
    for some in batch_iterate(BATCH, facts):
        if await semantic.run(lambda ids: semantic.open_table().select({"id": ids}), some):
            raise InputError(
                "another agent in this data folder or database has the same facts: import the "
                "file into another data folder (--data DIR)"
            )


async def mark(store: BaseStore, scope: Scope, digest: str, *, done: bool) -> None:
    """Record which file is being imported, or was."""
    value: Importing = {"digest": digest, "done": done}
    put = PutOp(scope.namespace(IMPORTING), FILE, cast(dict[str, Any], dict(value)))
    await write_batch(store, [put])


async def write(
    lines: Iterable[str],
    target: AgentMemory,
    *,
    on_batch: Callable[[int], object] = lambda written: None,
) -> None:
    """Write all records but the state, as far as they are not there; tell `on_batch` how many."""
    written = 0
    rest = (pair for at, pair in enumerate(numbered(lines)) if at)
    for batch in batch_iterate(BATCH, rest):
        records = [record_of(line, number) for number, line in batch]
        puts = [p for one in records if isinstance(one, ItemLine) for p in _puts(target.scope, one)]
        facts = [one.fact for one in records if isinstance(one, FactLine)]
        if puts:
            await write_batch(target.store, puts)
        if facts:
            standing = await target.semantic.by_id(target.scope, [one["id"] for one in facts])
            new = [one for one in facts if one["id"] not in standing]
            await target.semantic.run(_insert, target.semantic, target.scope, new)
        written += sum(not isinstance(one, EndLine) for one in records)
        on_batch(written)


def _puts(scope: Scope, line: ItemLine) -> list[PutOp]:
    if line.namespace[0] == ASKED_AGAIN:
        return []
    puts = [PutOp(scope.namespace(*line.namespace), line.key, line.value, index=False)]
    if line.namespace[0] == "journal":
        puts.append(journal.unindexed(scope, cast(Any, line.value)))
    return puts


def _insert(semantic: SemanticMemory, scope: Scope, facts: Sequence[Fact]) -> None:
    table = semantic.open_table()
    with table.transaction():
        semantic.all_embedded.discard(scope)
        for fact in facts:
            payload = {
                **scope_filters(scope),
                **metadata_of(fact),
                "kind": "fact",
                "data": fact["text"],
                "hash": hashlib.md5(fact["text"].encode(), usedforsecurity=False).hexdigest(),
                "role": "user",
                "updated_at": fact["created"],
            }
            table.insert(fact["id"], None, payload)
            if (last := fact.get("last_access")) is not None:
                for _ in range(fact.get("access_count", 0)):
                    table.touch([fact["id"]], datetime.fromisoformat(last))
