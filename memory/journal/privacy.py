"""What an owner said in private, and who reads an answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from langgraph.store.base import BaseStore

from memory.journal.entries import CONCLUDED, read_many
from memory.records import JournalEntry, Scope
from memory.settings import Audience, Settings


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
    if speaker not in listeners.owners or entry["source_type"] == "observation":
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
