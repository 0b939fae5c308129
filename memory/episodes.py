"""Episodes: the journal's entries where recall finds them, beside the facts.

An entry is written to the store with a marker that says it is not indexed yet. Whoever recalls
catches up first: rows, then the speakers' names, then the marker goes, so that after a crash at any
point the same is done again and comes out the same.

Store namespaces (below `(user, thread)`): `unindexed` time and id -> {id} ·
`speakers` name (`memory.names.name_key`) -> {name} · `indexing` `journal` -> {analysis}.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, cast

from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from memory import entities, journal
from memory.analysis import ANALYSIS_VERSION, embedded_text, entry_terms
from memory.errors import ModelError
from memory.memory_index import Episode, MemoryIndex
from memory.names import name_key, places
from memory.ranking import moment
from memory.records import JournalEntry
from memory.scope import Scope
from memory.store_access import list_items, write_batch
from memory.vectorstore.table import Place

SPEAKERS, INDEXING, JOURNAL = "speakers", "indexing", "journal"
BATCH = 128
"""Entries indexed, or texts embedded, at once."""
BEFORE = 2
"""Entries of a conversation that an entry is found by beside its own words."""
PAUSE = timedelta(hours=1)
"""After it a conversation begins anew: what was said before is no answer to it."""
TAIL = 8
"""Rows read of a session to find the last entries of it."""
WORDS_OF_NAMES = 60
"""Words of a query in which speakers' names are looked for."""

log = logging.getLogger(__name__)


class Said(NamedTuple):
    """An entry as those after it see it."""

    at: str
    id: str
    speaker: str | None
    text: str


async def catch_up(store: BaseStore, index: MemoryIndex, scope: Scope) -> None:
    """Index the entries that are marked, and embed them with some of what else waits.

    Where the embedder fails, what it did not embed is found by its words, and embedded later.

    Raises:
        MemoryStoreError: the table cannot be read or written.
    """
    await _mark_all_once(store, index, scope)
    done = 0
    while marks := await list_items(store, scope.namespace(journal.UNINDEXED), limit=BATCH):
        await _index(store, index, scope, marks)
        done += len(marks)
    try:
        for _ in range(1 + done // BATCH):
            if not await index.embed_waiting(BATCH, scope):
                break
    except ModelError as error:
        log.warning("%s; recall goes by words until it answers", error)


async def named_speakers(store: BaseStore, scope: Scope, query: str) -> set[str]:
    """The names in `query` that are known: of those who spoke, and of entities with aliases."""
    text = " ".join(query.split()[:WORDS_OF_NAMES])
    keys = list(dict.fromkeys(place.key for place in places(text)))
    found = await store.abatch([GetOp(scope.namespace(SPEAKERS), key) for key in keys])
    spoke = {str(item.value["name"]) for item in found if isinstance(item, Item)}
    return spoke | set(await entities.names_in(store, scope, text))


def episode_of(entry: JournalEntry, before: Sequence[Said] = ()) -> Episode:
    """An entry as it is indexed, by what was said before it, the last first. Pure."""
    speaker, text = entry["source_entity"], entry["content"]
    names = {name for name in (speaker, *(one.speaker for one in before)) if name}
    return {
        "kind": "episode",
        "op": entry["id"],
        "data": text,
        "speaker": speaker,
        "entities": [],
        "trust": entry["source_trust"],
        "importance": entry["importance"],
        "valid_from": entry["timestamp"],
        "source_entries": [entry["id"], *(one.id for one in before)],
        "source_events": list(entry["sources"]),
        "session": session_of(entry),
        "embed": embedded_text(text, names),
        "terms": entry_terms(text, speaker, [one.text for one in before]),
    }


def session_of(entry: JournalEntry) -> str:
    """The day's talk in a channel, or with a person where there is none. Pure.

    A note or an archive is a session by itself.
    """
    if entry["source_type"] in ("inference", "compaction"):
        return entry["id"]
    day = entry["timestamp"][:10]
    if entry["channel"] is None and entry["source_type"] == "direct":
        return f"{day} with {entry['source_entity']}"
    return f"{day} on {entry['channel'] or '-'}"


def said_before(entry: JournalEntry, others: Iterable[Said]) -> list[Said]:
    """The last entries before `entry` among `others`, without a pause between, last first. Pure."""
    this, before = (entry["timestamp"], entry["id"]), []
    earlier = sorted((one for one in others if (one.at, one.id) < this), reverse=True)
    at = moment(entry["timestamp"])
    for one in earlier[:BEFORE]:
        if at - moment(one.at) > PAUSE:
            break
        before.append(one)
        at = moment(one.at)
    return before


async def _index(store: BaseStore, index: MemoryIndex, scope: Scope, marks: Sequence[Item]) -> None:
    """Index the entries of these marks, the speakers' names with them, and take the marks away."""
    ids = [str(mark.value["id"]) for mark in marks]
    entries = await journal.read_many(store, scope, ids)
    shown = {id_: one for id_, one in entries.items() if journal.SELF not in one["tags"]}
    if gone := [id_ for id_ in ids if id_ not in shown]:
        await index.drop_episodes(scope, gone)
    talks = await _talks(index, scope, shown)
    rows = [
        episode_of(entry, said_before(entry, talks[session_of(entry)].values()))
        for entry in journal.by_time(shown.values())
    ]
    await index.put_episodes(scope, rows)
    names = {name for entry in shown.values() if (name := entry["source_entity"])}
    await write_batch(
        store,
        [
            *(
                PutOp(scope.namespace(SPEAKERS), name_key(one), {"name": one})
                for one in sorted(names)
            ),
            *(PutOp(mark.namespace, mark.key, None) for mark in marks),
        ],
    )


async def _talks(
    index: MemoryIndex, scope: Scope, entries: Mapping[str, JournalEntry]
) -> dict[str, dict[str, Said]]:
    """By session, what is said in it as far as `entries` may follow it, those included."""
    talks: dict[str, dict[str, Said]] = defaultdict(dict)
    first: dict[str, str] = {}
    for one in entries.values():
        session = session_of(one)
        first[session] = min(first.get(session, one["timestamp"]), one["timestamp"])
    by_session: dict[str, list[Place]] = defaultdict(list)
    for place in await index.timeline(scope, list(first)):
        by_session[place.session].append(place)
    for session, there in by_session.items():
        tail = await _said(index, scope, there[-TAIL:])
        late = len(there) > TAIL and min(one.at for one in tail) >= first[session]
        for said in await _said(index, scope, there) if late else tail:
            talks[session][said.id] = said
    for entry in entries.values():
        talks[session_of(entry)][entry["id"]] = _said_of(entry)
    return talks


async def _said(index: MemoryIndex, scope: Scope, there: Sequence[Place]) -> list[Said]:
    rows = await index.numbered(scope, [place.seq for place in there])
    return [_said_in(row.payload) for row in rows.values()]


def _said_in(payload: Mapping[str, Any]) -> Said:
    return Said(payload["valid_from"], payload["op"], payload["speaker"], payload["data"])


def _said_of(entry: JournalEntry) -> Said:
    return Said(entry["timestamp"], entry["id"], entry["source_entity"], entry["content"])


async def _mark_all_once(store: BaseStore, index: MemoryIndex, scope: Scope) -> None:
    """Mark the whole journal where it was written before there were marks, or analysed otherwise.

    Done when the note of it is written; until then it is done again.
    """
    namespace, current = scope.namespace(INDEXING), {"analysis": ANALYSIS_VERSION}
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
