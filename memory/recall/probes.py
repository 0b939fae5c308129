"""What the agent recalled for its own use: probes for a night's trial, and accesses of facts.

A night is tried out on probes before it is applied: would earlier recalls still find their sources?

Store namespace (below `(user, thread)`): `probes` number -> Probe, a ring of the newest.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, cast

from langgraph.store.base import BaseStore

from memory.facts import SemanticMemory
from memory.records import Probe, RecallHit, Scope
from memory.settings import Settings
from memory.storage import list_items

PROBES = "probes"


BEST = 3
"""Memories whose sources a probe remembers."""


LONGEST = 500
"""Characters of a query that may become a probe."""


async def note_use(
    query: str,
    hits: Sequence[RecallHit],
    *,
    store: BaseStore,
    semantic: SemanticMemory,
    scope: Scope,
    now: datetime,
    settings: Settings,
) -> None:
    """Note that the agent uses these hits: keep a probe, and count an access of each fact."""
    await _keep(store, scope, query, hits, now=now, most=settings.probes_kept)
    facts = [hit["id"] for hit in hits if hit["kind"] == "fact"]
    if facts:
        await semantic.touch(scope, facts, now)


async def kept(store: BaseStore, scope: Scope) -> list[Probe]:
    """The probes, in no particular order."""
    items = await list_items(store, scope.namespace(PROBES))
    return [cast(Probe, item.value) for item in items]


async def _keep(
    store: BaseStore,
    scope: Scope,
    query: str,
    hits: Sequence[RecallHit],
    *,
    now: datetime,
    most: int,
) -> None:
    """Keep a recall that found something, in the place that its words hash to among `most`."""
    if not hits or most < 1 or len(query) > LONGEST:
        return
    place = int.from_bytes(blake2b(query.encode(), digest_size=8).digest()) % most
    found = list(dict.fromkeys(source for hit in hits[:BEST] for source in hit["sources"]))
    probe: Probe = {"query": query, "found": found, "at": now.isoformat()}
    value = cast(dict[str, Any], probe)
    await store.aput(scope.namespace(PROBES), f"{place:04}", value, index=False)
