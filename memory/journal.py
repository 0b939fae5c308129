"""The journal: episodes, in one namespace per day, so that no read scans everything.

Store namespaces (below `(user, thread)`):
`journal/<YYYYMMDD>` entry id -> JournalEntry · `pending` time and id -> {id}, entries that a night
still has to settle · `archives` the same for archives of compactions · `unindexed` the same for
entries that recall does not find yet. An id contains its day, which leads to the entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import count
from typing import cast

from langgraph.store.base import BaseStore, GetOp, PutOp

from memory.classification import source_type_of
from memory.importance import TRUST, heuristic_importance, mentions, names_project
from memory.operations import operation_id
from memory.profiles import NOBODY, Familiar
from memory.records import Event, JournalEntry, SourceType
from memory.scope import Scope
from memory.settings import Settings
from memory.state import State
from memory.store_access import list_items

PENDING, ARCHIVES, UNINDEXED = "pending", "archives", "unindexed"
ASIDE = "set_aside"
"""Tag of an event whose ticks all failed; tools may have written memories based on it."""
SELF = "self"
"""Tag of notes on the assistant's own work; never made into facts, recalled or counted."""
OURS = frozenset({"event", ASIDE, "compaction", "synthesis", "insight"})
"""Tags that say what made an entry; tools cannot set them."""
CONCLUDED: frozenset[SourceType] = frozenset({"inference", "compaction"})
"""Source types of entries in the assistant's words."""
WORD = re.compile(r"\w+")
_DEFAULTS = Settings()


def entry_for_event(
    event: Event,
    *,
    known_entities: Iterable[str],
    projects: Iterable[str],
    settings: Settings = _DEFAULTS,
    sender_bonus: int = 0,
) -> JournalEntry:
    """Entry of an event that was acted on or taken as context; needs no model call."""
    source = source_type_of(event, settings)
    text = event["text"]
    return {
        "id": _entry_id("event", event["at"], event["id"]),
        "timestamp": event["at"],
        "content": text,
        "source_type": source,
        "source_trust": TRUST[source],
        "source_entity": event["sender"],
        "importance": heuristic_importance(
            text,
            direct=event["addressed"],
            mentioned=mentions(text),
            known_entities=[name for name in known_entities if name != event["sender"]],
            sender_bonus=sender_bonus,
        ),
        "scoring_method": "heuristic",
        "tags": ["event"],
        "related_projects": [key for key in projects if names_project(text, key)],
        "sources": [event["id"]],
        "channel": event["channel"],
        "consolidation": "pending",
    }


def entry_in(
    state: State, event: Event, settings: Settings = _DEFAULTS, familiar: Familiar = NOBODY
) -> JournalEntry:
    """Entry of an event, given the people and projects in state and profiles."""
    return entry_for_event(
        event,
        known_entities=[*known_entities(state), *familiar.names],
        projects=state["projects"]["slots"],
        settings=settings,
        sender_bonus=familiar.bonus,
    )


def known_entities(state: State) -> list[str]:
    """The people in open conversations."""
    return [conversation["entity"] for conversation in state["conversations"].values()]


def entry_by_tool(
    *,
    content: str,
    importance: int | None,
    tags: Sequence[str],
    source_entity: str | None,
    trust: float,
    source_events: Sequence[str],
    origin: str,
    position: int,
    now: datetime,
    known_entities: Iterable[str],
) -> JournalEntry:
    """Entry that `add_journal_entry` writes; its id derives from `origin` and `position`.

    Args:
        content: the text.
        importance: 1..10; None: by the heuristic.
        tags: the tags.
        source_entity: whose word the entry rests on.
        trust: trust of its source (0..1); a conclusion is not trusted more than its source.
        source_events: ids of its source events.
        origin: the tick or night that writes it.
        position: counts the entries of one origin.
        now: the time.
        known_entities: names that count towards importance.
    """
    stamp = now.isoformat()
    made_by = operation_id("journal", origin, str(position), *source_events)
    return {
        "id": _entry_id("note", stamp, made_by[:16]),
        "timestamp": stamp,
        "content": content,
        "source_type": "inference",
        "source_trust": min(TRUST["inference"], trust),
        "source_entity": source_entity,
        "importance": importance
        if importance is not None
        else heuristic_importance(
            content, direct=False, mentioned=False, known_entities=list(known_entities)
        ),
        "scoring_method": "manual" if importance is not None else "heuristic",
        "tags": list(tags),
        "related_projects": [],
        "sources": list(source_events),
        "channel": None,
        "consolidation": "exempt" if SELF in tags else "pending",
    }


def archive_entry(summary: str, *, sources: Sequence[str], now: datetime) -> JournalEntry:
    """Archive of a compaction (data-flow-01, section 1); recalled as it is, no facts are made."""
    return {
        "id": f"compact_{now:%Y%m%d_%H%M%S}",
        "timestamp": now.isoformat(),
        "content": f"[CONTEXT SYNTHESIS]\n{summary}",
        "source_type": "compaction",
        "source_trust": TRUST["compaction"],
        "source_entity": None,
        "importance": 7,
        "scoring_method": "manual",
        "tags": ["compaction", "synthesis"],
        "related_projects": [],
        "sources": list(sources),
        "channel": None,
        "consolidation": "exempt",
    }


def is_pending(entry: JournalEntry, min_importance: int) -> bool:
    """Whether a night still has to score it, or to make facts of it."""
    if entry["consolidation"] != "pending":
        return False
    return entry["scoring_method"] == "heuristic" or entry["importance"] >= min_importance


def counts(entry: JournalEntry) -> bool:
    """Whether an entry's importance counts towards the next reflection."""
    return entry["consolidation"] != "exempt"


def by_time(entries: Iterable[JournalEntry]) -> list[JournalEntry]:
    """Sort oldest first, ties by id."""
    return sorted(entries, key=lambda entry: (entry["timestamp"], entry["id"]))


def one_line(entry: JournalEntry) -> str:
    """The entry as a model sees it: `[id] time speaker: text`."""
    text, who = (
        " ".join(entry["content"].split()),
        " ".join((entry["source_entity"] or "-").split()),
    )
    return f"[{entry['id']}] {entry['timestamp'][:16]} {who}: {text}"


def puts(scope: Scope, entry: JournalEntry) -> list[PutOp]:
    """Store writes that save `entry`, list or unlist it as pending, and mark it as unindexed."""
    here, at = {"id": entry["id"]}, f"{entry['timestamp']} {entry['id']}"
    waits = here if entry["consolidation"] == "pending" else None
    writes = [
        PutOp(day_of(scope, entry["id"]), entry["id"], cast(dict[str, object], dict(entry))),
        PutOp(scope.namespace(PENDING), at, waits),
        unindexed(scope, entry),
    ]
    if entry["source_type"] == "compaction":
        writes.append(PutOp(scope.namespace(ARCHIVES), at, here))
    return writes


def unindexed(scope: Scope, entry: JournalEntry) -> PutOp:
    """Mark `entry` as not indexed in its current form (`memory.episodes`)."""
    at = f"{entry['timestamp']} {entry['id']}"
    return PutOp(scope.namespace(UNINDEXED), at, {"id": entry["id"]})


def removals(scope: Scope, entry: JournalEntry) -> list[PutOp]:
    """Store writes that remove `entry` from the journal and from every list."""
    at = f"{entry['timestamp']} {entry['id']}"
    places = [(day_of(scope, entry["id"]), entry["id"])]
    places += [(scope.namespace(one), at) for one in (PENDING, ARCHIVES, UNINDEXED)]
    return [PutOp(namespace, key, None) for namespace, key in places]


def day_of(scope: Scope, entry_id: str) -> tuple[str, ...]:
    """Namespace of the day in an entry id."""
    return scope.namespace("journal", entry_id.split("_", 2)[1])


async def read(store: BaseStore, scope: Scope, entry_id: str) -> JournalEntry | None:
    """Read one entry; None if there is none."""
    return (await read_many(store, scope, [entry_id])).get(entry_id)


async def read_many(
    store: BaseStore, scope: Scope, entry_ids: Iterable[str]
) -> dict[str, JournalEntry]:
    """Read the existing entries among `entry_ids`, by id."""
    ids = [entry_id for entry_id in entry_ids if entry_id.count("_") >= 2]
    if not ids:
        return {}
    found = await store.abatch([GetOp(day_of(scope, entry_id), entry_id) for entry_id in ids])
    return {
        entry_id: cast(JournalEntry, item.value)
        for entry_id, item in zip(ids, found, strict=True)
        if item is not None and not isinstance(item, list)
    }


async def pending(store: BaseStore, scope: Scope) -> list[JournalEntry]:
    """Entries that a night still has to settle, oldest first."""
    return await _listed(store, scope.namespace(PENDING), scope)


async def archives(store: BaseStore, scope: Scope) -> list[JournalEntry]:
    """Archives of compactions, oldest first."""
    return await _listed(store, scope.namespace(ARCHIVES), scope)


async def _listed(store: BaseStore, namespace: tuple[str, ...], scope: Scope) -> list[JournalEntry]:
    waiting = await list_items(store, namespace)
    found = await read_many(store, scope, [item.value["id"] for item in waiting])
    return by_time(found.values())


def archive_tries(entry: JournalEntry) -> Iterator[JournalEntry]:
    """The archive under its own id, then with numbered ids, in case of archives of one moment."""
    yield entry
    for number in count(2):
        yield {**entry, "id": f"{entry['id']}_{number}"}


async def first_free(store: BaseStore, scope: Scope, tries: Iterator[JournalEntry]) -> JournalEntry:
    """The first of `tries` whose id is free, or the stored entry with the same id and content.

    So a repeated write makes one entry. `tries` must be endless.
    """
    while True:
        wanted = next(tries)
        standing = await read(store, scope, wanted["id"])
        if standing is None:
            return wanted
        if standing["content"] == wanted["content"]:
            return standing


async def newest(
    store: BaseStore,
    scope: Scope,
    *,
    query: str | None = None,
    tags: Sequence[str] | None = None,
    limit: int = 10,
    include_self: bool = True,
) -> list[JournalEntry]:
    """Entries, newest first, that share a word with `query` and have any of `tags`."""
    words = set(WORD.findall(query.lower())) if query else None
    hits: list[JournalEntry] = []
    for day in await days(store, scope):
        items = await list_items(store, scope.namespace("journal", day))
        entries = by_time(cast(JournalEntry, item.value) for item in items)
        hits += [e for e in reversed(entries) if _matches(e, words, tags, include_self)]
        if len(hits) >= limit:
            break
    return hits[:limit]


async def days(store: BaseStore, scope: Scope) -> list[str]:
    """Days with entries (`YYYYMMDD`), newest first."""
    prefix = scope.namespace("journal")
    spaces = await store.alist_namespaces(prefix=prefix, limit=100_000)
    return sorted((space[-1] for space in spaces), reverse=True)


def _matches(
    entry: JournalEntry, words: set[str] | None, tags: Sequence[str] | None, include_self: bool
) -> bool:
    if not include_self and SELF in entry["tags"]:
        return False
    if tags and not set(tags) & set(entry["tags"]):
        return False
    return words is None or bool(words & set(WORD.findall(entry["content"].lower())))


def _entry_id(kind: str, timestamp: str, rest: str) -> str:
    day = timestamp[:10].replace("-", "")
    return f"{kind}_{day}_{rest}"
