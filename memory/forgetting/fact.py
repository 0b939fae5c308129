"""What stands on one fact, apart from what Mem0 and the table of memories keep of it."""

from __future__ import annotations

from langgraph.store.base import BaseStore

from memory import apply, night
from memory.forgetting.erasure import Erasure
from memory.forgetting.names import Names
from memory.forgetting.resemblance import Resemblance
from memory.forgetting.rows import Context
from memory.forgetting.scrubbing import Scrubber
from memory.forgetting.store_changes import StoreChanges, store_changes
from memory.records import Fact
from memory.scope import Scope

KINDS = frozenset((apply.LINKS, "night", night.NIGHTS))


async def fact_changes(store: BaseStore, scope: Scope, fact: Fact, at: str) -> StoreChanges:
    """Its links go, and its text from the operation of the night that made it."""
    nobody: frozenset[str] = frozenset()
    names = Names([])
    scrubber = Scrubber(names, Resemblance([]))
    erasure = Erasure(names, scrubber, nobody, nobody, nobody, {}, {}, {fact["id"]: fact})
    context = Context(erasure, erasure.gone, nobody, at)
    return await store_changes(store, scope, context, KINDS)
