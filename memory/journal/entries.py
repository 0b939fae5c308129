"""The journal: episodes, in one namespace per day, so that no read scans everything.

An entry gets its importance and trust when it is written, without a model call. Last come the rules
of privacy: what an owner said in private, and who reads an answer.

Store namespaces (below `(user, thread)`): `journal/<YYYYMMDD>` entry id -> JournalEntry · `pending`
time and id -> {id}, entries that a night still has to settle · `archives` the same for archives of
compactions · `unindexed` the same for entries that recall does not find yet. An id contains its
day, which leads to the entry.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count
from types import MappingProxyType
from typing import NamedTuple, cast

from langgraph.store.base import BaseStore, GetOp, PutOp

from memory.records import (
    ASIDE,
    SELF,
    Event,
    JournalEntry,
    Scope,
    SourceType,
    is_reflection,
    operation_id,
)
from memory.settings import Audience, Settings
from memory.state import State
from memory.storage import count_items, list_items
from memory.text import asks, regex

SYSTEM = "system"
"""Sender or channel of events that no person caused: notices, sensors, the world itself."""

_NAME_ENDS = r"(?![\w@]|[-.]\w)"
"""End of a mentioned name; `@circadian-2` and `@circadian@example.org` are other names."""


def source_type_of(event: Event, settings: Settings) -> SourceType:
    """The source type of an event's words, which decides their trust (`TRUST`).

    Words to the assistant are direct; overheard words are an observation; words of the assistant
    and of other assistants are inference; what no person said is environmental. Settings for rooms
    and senders decide what is acted on, and change no trust.
    """
    sender = event["sender"]
    if is_reflection(event) or names_assistant(sender, settings) or sender in settings.assistants:
        return "inference"
    if SYSTEM in (_folded(sender), _folded(event["channel"] or "")):
        return "environmental"
    spoken_to = event["addressed"] or mentions_assistant(event["text"], settings)
    return "direct" if spoken_to else "observation"


def mentions_assistant(text: str, settings: Settings) -> bool:
    """Whether `text` has `@` and one of the assistant's names as whole words, in any case."""
    words = [re.escape(word) for word in map(_folded, settings.names)]
    names = "|".join(word for word in words if word)
    return bool(names) and bool(re.search(f"{AT}(?:{names}){_NAME_ENDS}", _folded(text)))


def names_assistant(sender: str, settings: Settings) -> bool:
    """Whether a sender has one of the assistant's names."""
    return _folded(sender) in map(_folded, settings.names)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold()).strip()


TRUST: Mapping[SourceType, float] = {
    "direct": 0.9,
    "observation": 0.8,
    "inference": 0.6,
    "compaction": 0.6,
    "environmental": 0.3,
}
"""Trust by source type, 0..1."""

_BASE, _DIRECT, _MENTION = 2, 3, 2
_HIGHEST_BONUS = 2
_HIGHEST = 10
_WORD = regex(r"\w+")

AT = r"(?<![\w@/.+-])@"
"""The `@` of a mention, not of an e-mail address or a link."""

_MENTIONED = regex(rf"{AT}\w")
_BEFORE = r"(?<!\w)(?<!\w['\u2019-])"
_AFTER = r"(?!\w|-\w|['\u2019](?!s\b)\w)"
_GOAL_WORDS = frozenset({"goal", "goals"})
_QUEST_WORDS = frozenset({"quest", "quests", "task", "tasks"})


def heuristic_importance(
    text: str,
    *,
    direct: bool,
    mentioned: bool,
    known_entities: Collection[str],
    sender_bonus: int = 0,
) -> int:
    """Importance 1..10.

    2, +3 for a direct message, +2 for a mention, which a room has, +1 for each kind of keyword
    (goal; quest or task; the name of a known entity), + the sender's bonus (0..2).
    """
    words = _WORD.findall(text.casefold())
    found = frozenset(words)
    spoken = f" {' '.join(words)} "
    names = (" ".join(_WORD.findall(name.casefold())) for name in known_entities)
    named = any(name and f" {name} " in spoken for name in names)
    score = _BASE + min(max(sender_bonus, 0), _HIGHEST_BONUS)
    score += bool(found & _GOAL_WORDS) + bool(found & _QUEST_WORDS) + named
    score += _DIRECT * direct + _MENTION * mentioned
    return min(score, _HIGHEST)


def mentions(text: str) -> bool:
    """Whether `text` mentions anybody (`@name`). An e-mail address is not a mention."""
    return _MENTIONED.search(text) is not None


def names_project(text: str, key: str) -> bool:
    """Whether a project's key occurs in `text` as whole words; spaces, `_` and `-` are equal."""
    words = [re.escape(word) for word in re.split(r"[\s_-]+", key) if word]
    if not words:
        return False
    spelled = r"[\s_-]+".join(words)
    return re.search(f"{_BEFORE}{spelled}{_AFTER}", text, re.IGNORECASE) is not None


PENDING, ARCHIVES, UNINDEXED = "pending", "archives", "unindexed"

SYNTHESIS = "[CONTEXT SYNTHESIS]\n"
"""How the content of an archive begins."""

OURS = frozenset({"event", ASIDE, "compaction", "synthesis", "insight"})
"""Tags for the origin of an entry; tools cannot set them."""

CONCLUDED: frozenset[SourceType] = frozenset({"inference", "compaction"})
"""Source types of entries in the assistant's words."""


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

    `importance` None: by the heuristic, to which `known_entities` count. `source_entity`: whose
    word it rests on. `trust`: of its source; a conclusion is not trusted more than that.
    """
    stamp = now.isoformat()
    made_by = operation_id("journal", origin, str(position), *source_events)
    return {
        "id": entry_id_of("note", stamp, made_by[:16]),
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
    """Archive of a compaction; recalled as it is, no facts are made."""
    return {
        "id": f"compact_{now:%Y%m%d_%H%M%S}",
        "timestamp": now.isoformat(),
        "content": f"{SYNTHESIS}{summary}",
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


LONGEST_ANSWER = 12
"""Words of an entry that may say nothing without the question just before it."""


def questions_answered(entries: Iterable[JournalEntry]) -> dict[str, str]:
    """The id of the question of somebody else that an entry answers, by the entry's id."""
    found, last = dict[str, str](), dict[str | None, JournalEntry]()
    for entry in by_time(one for one in entries if one["source_type"] not in CONCLUDED):
        # Without a channel people write to the assistant alone, and read nobody else.
        before = last.get(entry["channel"]) if entry["channel"] else None
        if (
            before is not None
            and before["source_entity"] != entry["source_entity"]
            and asks(before["content"])
            and len(entry["content"].split()) <= LONGEST_ANSWER
        ):
            found[entry["id"]] = before["id"]
        last[entry["channel"]] = entry
    return found


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
    """Store write that marks `entry` as not indexed in its current form."""
    at = f"{entry['timestamp']} {entry['id']}"
    return PutOp(scope.namespace(UNINDEXED), at, {"id": entry["id"]})


def removals(scope: Scope, entry: JournalEntry) -> list[PutOp]:
    """Store writes that remove `entry` from the journal and from every list."""
    at = f"{entry['timestamp']} {entry['id']}"
    places = [(day_of(scope, entry["id"]), entry["id"])]
    places += [(scope.namespace(label), at) for label in (PENDING, ARCHIVES, UNINDEXED)]
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
    waiting = await list_items(store, scope.namespace(PENDING))
    found = await read_many(store, scope, [item.value["id"] for item in waiting])
    return by_time(found.values())


def archive_tries(entry: JournalEntry) -> Iterator[JournalEntry]:
    """The archive under its own id, then with numbered ids, in case of archives of one moment."""
    yield entry
    for number in count(2):
        yield {**entry, "id": f"{entry['id']}_{number}"}


async def first_free(store: BaseStore, scope: Scope, tries: Iterator[JournalEntry]) -> JournalEntry:
    """The first of the endless `tries` that is free, or stored with the same content."""
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
    hidden: Callable[[JournalEntry], bool] = lambda _: False,
) -> list[JournalEntry]:
    """Entries not hidden, newest first, that share a word with `query` and have any of `tags`."""
    words = set(_WORD.findall(query.lower())) if query else None
    hits: list[JournalEntry] = []
    for day in await days(store, scope):
        items = await list_items(store, scope.namespace("journal", day))
        entries = by_time(cast(JournalEntry, item.value) for item in items)
        hits += [
            e
            for e in reversed(entries)
            if (not tags or set(tags) & set(e["tags"]))
            and (words is None or words & set(_WORD.findall(e["content"].lower())))
            and not hidden(e)
        ]
        if len(hits) >= limit:
            break
    return hits[:limit]


async def days(store: BaseStore, scope: Scope) -> list[str]:
    """Days with entries (`YYYYMMDD`), newest first."""
    prefix = scope.namespace("journal")
    spaces = await store.alist_namespaces(prefix=prefix, limit=100_000)
    return sorted((space[-1] for space in spaces), reverse=True)


async def on(store: BaseStore, scope: Scope, day: str) -> list[JournalEntry]:
    """Entries of a day (`YYYYMMDD`), newest first."""
    return by_time(await _of_days(store, scope, [day]))[::-1]


async def count_on(store: BaseStore, scope: Scope, day: str) -> int:
    """The number of entries of a day (`YYYYMMDD`)."""
    return await count_items(store, scope.namespace("journal", day))


def entry_id_of(kind: str, timestamp: str, rest: str) -> str:
    """`<kind>_<YYYYMMDD>_<rest>`."""
    return f"{kind}_{_day(timestamp)}_{rest}"


async def since(store: BaseStore, scope: Scope, after: str | None) -> list[JournalEntry]:
    """Entries later than `after` (ISO 8601; None: all), oldest first."""
    wanted = [day for day in await days(store, scope) if after is None or day >= _day(after)]
    found = await _of_days(store, scope, wanted)
    return by_time(entry for entry in found if after is None or entry["timestamp"] > after)


async def _of_days(store: BaseStore, scope: Scope, wanted: Iterable[str]) -> list[JournalEntry]:
    return [
        cast(JournalEntry, item.value)
        for day in wanted
        for item in await list_items(store, scope.namespace("journal", day))
    ]


def _day(timestamp: str) -> str:
    return timestamp[:10].replace("-", "")


class Told(NamedTuple):
    """A memory, by its speaker and its sources."""

    speaker: str | None
    sources: Sequence[str]
    """Journal ids; others are passed over."""


def audience_of(
    channel: str | None, at: str, shared: Mapping[str, str], *, by_owner: bool, settings: Settings
) -> Audience:
    """Who reads what is said there at a time: as set for the channel, else who writes there.

    `shared`: channel -> since when others than owners write there.
    """
    since = shared.get(channel or "")
    alone = by_owner and (since is None or at < since)
    return settings.channel_privacy.get(channel or "", "private" if alone else "public")


class Listeners(NamedTuple):
    """Who reads an answer, and where."""

    audience: Audience
    channel: str | None
    owners: Collection[str]
    shared: Mapping[str, str] = MappingProxyType({})
    """Channels on which others than owners write, and since when."""


def is_private(entry: JournalEntry, listeners: Listeners, settings: Settings) -> bool:
    """Whether these listeners are not to know it: an owner said it to the assistant in private.

    So is what the assistant concluded by itself; not what others or the listeners' channel heard.
    """
    if listeners.audience == "private":
        return False
    speaker, channel = entry["source_entity"], entry["channel"]
    if speaker is None:
        return entry["source_type"] in CONCLUDED
    in_a_room = entry["source_type"] == "observation" and channel is not None
    if speaker not in listeners.owners or in_a_room:
        return False
    heard = channel is not None and channel == listeners.channel
    at, shared = entry["timestamp"], listeners.shared
    told = audience_of(channel, at, shared, by_owner=True, settings=settings)
    return not heard and told == "private"


async def private_ones(
    store: BaseStore,
    scope: Scope,
    told: Sequence[Told],
    *,
    listeners: Listeners,
    settings: Settings,
) -> list[bool]:
    """Whether each of the memories has a source that these listeners are not to know.

    Where no source is in the journal any more, an owner's words count as private. One read.
    """
    if listeners.audience == "private":
        return [False] * len(told)
    ids = dict.fromkeys(id_ for one in told for id_ in one.sources)
    entries = await read_many(store, scope, list(ids))
    private = {id_: is_private(entry, listeners, settings) for id_, entry in entries.items()}

    def judged(one: Told) -> bool:
        known = [private[id_] for id_ in one.sources if id_ in private]
        return any(known) if known else one.speaker in listeners.owners

    return [judged(one) for one in told]
