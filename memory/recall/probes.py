"""What the agent recalled for its own use: probes for a night's trial, and the facts it used.

A night is tried out on probes before it is applied: would earlier recalls still find their sources?

Store namespace (below `(user, thread)`): `probes` number -> Probe, a ring of the newest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, cast

from langgraph.store.base import BaseStore

from memory.records import Probe, RecallHit, Scope
from memory.storage import list_items
from memory.text import STOP_WORDS, terms

PROBES = "probes"

BEST = 3
"""Memories whose sources a probe remembers."""

LONGEST = 500
"""Characters of a query that may become a probe."""


async def keep(
    query: str,
    hits: Sequence[RecallHit],
    *,
    store: BaseStore,
    scope: Scope,
    now: datetime,
    most: int,
) -> None:
    """Keep a recall that found something, in the place that its words hash to among `most`."""
    if not hits or most < 1 or len(query) > LONGEST:
        return
    place = int.from_bytes(blake2b(query.encode(), digest_size=8).digest()) % most
    found = list(dict.fromkeys(source for hit in hits[:BEST] for source in hit["sources"]))
    probe: Probe = {"query": query, "found": found, "at": now.isoformat()}
    await store.aput(scope.namespace(PROBES), f"{place:04}", cast(Any, probe), index=False)


async def kept(store: BaseStore, scope: Scope) -> list[Probe]:
    """The probes, in no particular order."""
    items = await list_items(store, scope.namespace(PROBES))
    return [cast(Probe, item.value) for item in items]


SHORT_ID = 8
"""First characters of an id, by which a prompt may name a fact."""

RARE = 4
"""A term is rare if it stands in at most two of the facts shown, or in one of this many."""

SHORTEST = 3
"""Letters of a term that can tell one fact from another; digits can at any length."""


def used(shown: Mapping[str, str], answer: str, *, asked: str) -> list[str]:
    """The ids of the facts (`shown`) that the answer used, in the order shown. Pure.

    A fact that was only shown does not count: what recall brings up by mistake would rank ever
    higher. A fact is used if the `answer`, with what the tick wrote, cites it, or has a term of it
    that is rare among the facts shown and missing in the question (`asked`).
    """
    mine = {id_: set(terms(text)) - STOP_WORDS for id_, text in shown.items()}
    common = Counter(term for told in mine.values() for term in told)
    most = max(2, len(shown) // RARE)
    said = set(terms(answer)) - set(terms(asked))
    said = {one for one in said if common[one] <= most and _tells(one)}
    return [id_ for id_, told in mine.items() if told & said or id_[:SHORT_ID] in answer]


def _tells(term: str) -> bool:
    return len(term) >= SHORTEST or not term.isascii() or term.isdigit()
