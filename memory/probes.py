"""Recalls of the agent's own that are kept: a night is tried out on them before it is applied.

Store namespace (below `(user, thread)`): `probes` number -> Probe, a ring of the newest.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, cast

from langgraph.store.base import BaseStore

from memory.dreaming.gate import Probe
from memory.records import RecallHit
from memory.scope import Scope
from memory.store_access import list_items

PROBES = "probes"
BEST = 3
"""Memories whose sources a probe remembers."""
LONGEST = 500
"""Characters of a query that is worth keeping."""


async def keep(
    store: BaseStore,
    scope: Scope,
    query: str,
    hits: Sequence[RecallHit],
    *,
    now: datetime,
    most: int,
) -> None:
    """Keep a recall that found something, in the place that its words fall to among `most`."""
    if not hits or most < 1 or len(query) > LONGEST:
        return
    place = int.from_bytes(blake2b(query.encode(), digest_size=8).digest()) % most
    found = list(dict.fromkeys(one for hit in hits[:BEST] for one in hit["sources"]))
    probe: Probe = {"query": query, "found": found, "at": now.isoformat()}
    value = cast(dict[str, Any], probe)
    await store.aput(scope.namespace(PROBES), f"{place:04}", value, index=False)


async def kept(store: BaseStore, scope: Scope) -> list[Probe]:
    """The probes that are kept."""
    items = await list_items(store, scope.namespace(PROBES))
    return [cast(Probe, item.value) for item in items]
