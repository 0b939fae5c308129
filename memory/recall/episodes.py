"""Episodes: journal entries as recall finds them, beside the facts.

An entry is written to the store together with a mark that it is not indexed yet. Whoever writes
entries then indexes them: first the rows, then the speakers' names; the mark is removed last. After
a crash, indexing is repeated when an agent is opened, a run begins, or with the next entry.

Store namespaces (below `(user, thread)`): `unindexed` time and id -> {id} · `speakers` name
(`memory.text.words.name_key`) -> {name} · `indexing` `journal` -> {analysis, rows}.
"""

from __future__ import annotations

import logging
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple, cast

from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from memory import journal, records
from memory.errors import CircadianError, MemoryStoreError, ModelError
from memory.facts import Episode, Row, SemanticMemory
from memory.records import JournalEntry, Scope
from memory.storage import list_items, write_batch
from memory.text import ANALYSIS_VERSION, asks, embedded_text, entry_terms, name_key

SPEAKERS, INDEXING, JOURNAL = "speakers", "indexing", "journal"

BATCH = 128
"""Entries indexed, or texts embedded, at once."""

ROWS_VERSION = 4
"""Increase it when `episode_of` changes its results: the whole journal is then indexed again."""

BEFORE = 2
"""Preceding entries of a conversation whose words also find an entry."""

PAUSE = timedelta(hours=1)
"""Silence after which a conversation counts as a new one."""

TAIL = 8
"""Rows read at first to find a session's last entries."""

LONG = 60
"""Words of a text with full substance."""

LETTERS = 6
"""Characters of a word with its blank, on average."""

SHORT = 30
"""Median words of entries up to which they are short turns; from LONG on they are not."""

FEW, MANY = 0.35, 0.6
"""Shares of entries that ask. Up to FEW, questions seldom answer; from MANY on, they may."""

PAIR, GROUP = 2, 4
"""Most speakers of a talk between two people, and fewest speakers of a group's talk."""

ENOUGH = 20
"""Fewest entries that show what kind of talk a memory holds."""

log = logging.getLogger(__name__)


class TalkTraits(NamedTuple):
    """What kind of talk a memory holds, as measured on the entries that a search found."""

    brevity: float
    """0..1: whether turns are short."""
    telling: float
    """0..1: whether questions are rare."""
    private: float = 1.0
    """0..1: whether one person talks, or two: among many, "my" does not say whose."""


class Utterance(NamedTuple):
    """A journal entry as context of a later one."""

    at: str
    id: str
    speaker: str | None
    text: str


async def index_entries(
    store: BaseStore, index: SemanticMemory, scope: Scope, new: Collection[str] = ()
) -> None:
    """Index the marked entries, and embed what waits, with a batch of earlier rows.

    `new`: ids of entries that were just added, which are written with their vectors at once. While
    the embedder fails, they are found by words alone. Raises MemoryStoreError.
    """
    try:
        done = await _index_marked(store, index, scope, new)
        for _ in range(1 + done // BATCH):
            if not await index.embed_waiting(BATCH, scope):
                break
    except ModelError as error:
        await _index_marked(store, index, scope)  # by words
        log.warning("%s; recall goes by words until it answers", error)


async def index_written(
    store: BaseStore, index: SemanticMemory, scope: Scope, new: Collection[str] = ()
) -> None:
    """Index the marked entries after they were written; a failure is logged and the marks stay."""
    with _logged():
        await index_entries(store, index, scope, new)


async def repair(store: BaseStore, index: SemanticMemory, scope: Scope) -> None:
    """Index what a crash, or a lost index, left out; calls no embedder. Failures are logged."""
    with _logged():
        await _index_marked(store, index, scope)


def episode_of(entry: JournalEntry, before: Sequence[Utterance] = ()) -> Episode:
    """An entry as it is indexed, with what was said `before` it, latest first. Pure."""
    speaker, text = entry["source_entity"], entry["content"]
    names = {name for name in (speaker, *(said.speaker for said in before)) if name}
    row: Episode = {
        "kind": "episode",
        "op": entry["id"],
        "data": text,
        "speaker": speaker,
        "entities": [],
        "trust": entry["source_trust"],
        "importance": entry["importance"],
        "valid_from": entry["timestamp"],
        "source_entries": [entry["id"], *(said.id for said in before)],
        "source_events": list(entry["sources"]),
        "session": session_of(entry),
        "embed": embedded_text(text, names),
        "terms": entry_terms(text, speaker, [said.text for said in before]),
    }
    if origins := entry.get("origins"):
        row["origins"] = list(origins)
    if entry["consolidation"] in ("below_threshold", "faded"):
        row["minor"] = True
    if entry["consolidation"] == "faded":
        row["faded"] = True
    return row


def session_of(entry: JournalEntry) -> str:
    """The session of an entry: a day's talk in a channel or, without one, with a person. Pure.

    A note or an archive is a session of its own.
    """
    if entry["source_type"] in ("inference", "compaction"):
        return entry["id"]
    day = entry["timestamp"][:10]
    if entry["channel"] is None and entry["source_type"] == "direct":
        return f"{day} with {entry['source_entity']}"
    return f"{day} on {entry['channel'] or '-'}"


def said_before(entry: JournalEntry, others: Iterable[Utterance]) -> list[Utterance]:
    """The last of `others` before `entry` without a PAUSE between, latest first. Pure."""
    this, before = (entry["timestamp"], entry["id"]), []
    earlier = sorted((one for one in others if (one.at, one.id) < this), reverse=True)
    at = moment(entry["timestamp"])
    for said in earlier[:BEFORE]:
        if at - moment(said.at) > PAUSE:
            break
        before.append(said)
        at = moment(said.at)
    return before


def talk_of(rows: Iterable[Row]) -> TalkTraits:
    """What kind of talk these entries are."""
    said = [row.payload for row in rows if row.payload["kind"] != "fact"]
    texts = [one["data"] for one in said]
    if len(texts) < ENOUGH:
        return TalkTraits(1.0, 1.0)
    words = statistics.median(len(text) / LETTERS for text in texts)
    asking = sum(map(asks, texts)) / len(texts)
    people = len({one["speaker"] for one in said} - {None})
    return TalkTraits(
        _falling(words, SHORT, LONG), _falling(asking, FEW, MANY), _falling(people, PAIR, GROUP)
    )


def _falling(value: float, full: float, none: float) -> float:
    """1 up to `full`, 0 from `none` on, a line between."""
    return min(1.0, max(0.0, (none - value) / (none - full)))


@lru_cache(maxsize=16_384)
def moment(at: str) -> datetime:
    """An ISO 8601 time; UTC where it has no zone."""
    told = datetime.fromisoformat(at)
    return told if told.tzinfo is not None else told.replace(tzinfo=UTC)


@contextmanager
def _logged() -> Iterator[None]:
    try:
        yield
    except CircadianError as error:
        log.warning("new journal entries are not indexed yet, recall misses them: %s", error)


async def _index_marked(
    store: BaseStore, index: SemanticMemory, scope: Scope, new: Collection[str] = ()
) -> int:
    """Index the marked entries; return how many."""
    await _mark_all_once(store, index, scope)
    done = 0
    while marks := await list_items(store, scope.namespace(journal.UNINDEXED), limit=BATCH):
        await _index(store, index, scope, marks, new)
        done += len(marks)
        if len(marks) < BATCH:
            break
    return done


async def _index(
    store: BaseStore, index: SemanticMemory, scope: Scope, marks: list[Item], new: Collection[str]
) -> None:
    """Index the entries of these marks and their speakers' names, and remove the marks."""
    ids = [str(mark.value["id"]) for mark in marks]
    entries = await journal.read_many(store, scope, ids)
    shown = {id_: entry for id_, entry in entries.items() if records.SELF not in entry["tags"]}
    if gone := [id_ for id_ in ids if id_ not in shown]:
        await index.drop_episodes(scope, gone)
    talks = await _talks(index, scope, shown)
    behind = list[str]()
    for talk in talks.values():
        order = [said.id for said in sorted(talk.values())]
        # What was said soon after a new entry, and written before it, has its words.
        behind += [
            id_
            for place, id_ in enumerate(order)
            if id_ not in shown
            and not shown.keys().isdisjoint(order[max(0, place - BEFORE) : place])
        ]
    shown |= await journal.read_many(store, scope, behind)
    rows = [
        episode_of(entry, said_before(entry, talks[session_of(entry)].values()))
        for entry in journal.by_time(shown.values())
    ]
    try:
        vectors = await index.embed([row["embed"] for row in rows if row["op"] in new])
    except MemoryStoreError as error:  # a vector of another length: the store itself is well
        raise ModelError(str(error)) from error
    await index.put_episodes(scope, rows, vectors)
    names = {name for entry in shown.values() if (name := entry["source_entity"])}
    await write_batch(
        store,
        [
            *(
                PutOp(scope.namespace(SPEAKERS), name_key(name), {"name": name})
                for name in sorted(names)
            ),
            *(PutOp(mark.namespace, mark.key, None) for mark in marks),
        ],
    )


async def _talks(
    index: SemanticMemory, scope: Scope, entries: Mapping[str, JournalEntry]
) -> dict[str, dict[str, Utterance]]:
    """For each session, `entries` and what was said shortly before the first of them."""
    talks: dict[str, dict[str, Utterance]] = defaultdict(dict)
    first: dict[str, str] = {}
    for entry in entries.values():
        session, at = session_of(entry), entry["timestamp"]
        first[session] = min(first.get(session, at), at)
    for session, said in await index.run(_said, index, scope, first):
        talks[session][said.id] = said
    for entry in entries.values():
        talks[session_of(entry)][entry["id"]] = Utterance(
            entry["timestamp"], entry["id"], entry["source_entity"], entry["content"]
        )
    return talks


def _said(
    index: SemanticMemory, scope: Scope, first: Mapping[str, str]
) -> list[tuple[str, Utterance]]:
    """The end of each session; all of it where too little precedes `first`. Blocking."""
    by_session: dict[str, list[int]] = defaultdict(list)
    told = list[tuple[str, Utterance]]()
    with index.open_table().reading():
        for place in index.timeline(scope, list(first)):
            by_session[place.session].append(place.seq)
        for session, there in by_session.items():
            said = _read(index, scope, there[-TAIL:])
            # Indexed again, as by a night, it may have fewer in the tail before it than it needs.
            if len(there) > TAIL and sum(one.at < first[session] for one in said) < BEFORE:
                said = _read(index, scope, there)
            told += [(session, one) for one in said]
    return told


def _read(index: SemanticMemory, scope: Scope, there: Sequence[int]) -> list[Utterance]:
    payloads = (row.payload for row in index.numbered(scope, there).values())
    return [
        Utterance(one["valid_from"], one["op"], one["speaker"], one["data"]) for one in payloads
    ]


async def _mark_all_once(store: BaseStore, index: SemanticMemory, scope: Scope) -> None:
    """Mark the whole journal unless a note says that this index has it in the present form.

    A file in place of a lost file has another number. The note comes last: a crash repeats all.
    """
    namespace, number = scope.namespace(INDEXING), await index.file_number()
    current = {"analysis": ANALYSIS_VERSION, "rows": ROWS_VERSION}
    current |= {"file": number} if number else {}
    (note,) = await store.abatch([GetOp(namespace, JOURNAL)])
    if isinstance(note, Item) and note.value == current:
        return
    days = await journal.days(store, scope)
    for day in days:
        space = scope.namespace(JOURNAL, day)
        entries = [cast(JournalEntry, item.value) for item in await list_items(store, space)]
        await write_batch(store, [journal.unindexed(scope, entry) for entry in entries])
    if days:
        await write_batch(store, [PutOp(namespace, JOURNAL, dict(current))])
