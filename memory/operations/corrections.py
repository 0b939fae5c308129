"""Corrections of facts by people: what each changes, and how an interrupted one is finished.

Store namespace (below `(user, thread)`): `correcting` operation id -> BegunCorrection, from before
its first change to after its last.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, cast

from langgraph.store.base import BaseStore, PutOp
from typing_extensions import TypedDict

from memory import audit
from memory.facts import SemanticMemory
from memory.journal import TRUST
from memory.operations.apply import apply_operations, with_doubts
from memory.planning import corrected
from memory.records import (
    Fact,
    FactDraft,
    JournalEntry,
    Operation,
    Scope,
    SessionMemory,
    add_entry,
    add_fact,
    link,
    operation_id,
    supersede_fact,
)
from memory.storage import list_items, write_batch
from memory.text import regex, says

CORRECTING = "correcting"

IMPORTANCE = 7
"""Least importance of a correction: somebody took the trouble to make it."""


class BegunCorrection(TypedDict):
    """What one correction does; the same at every try."""

    op: str
    fact: str
    """The id of the fact that it supersedes."""
    by: str
    at: str
    operations: list[Operation]
    texts: tuple[str, str]
    """What the fact said, and what is true."""


def correction_id(old: Fact, said: str, who: str) -> str:
    """The operation id of a correction."""
    return operation_id("correction", old["id"], who, said)


async def begin_correction(
    old: Fact,
    said: str,
    who: str,
    at: str,
    *,
    store: BaseStore,
    semantic: SemanticMemory,
    scope: Scope,
) -> BegunCorrection:
    """Decide and store what a correction does; changes nothing yet."""
    op = correction_id(old, said, who)
    operations = await with_doubts(
        _operations(old, said, who, op, at), old, store=store, semantic=semantic, scope=scope
    )
    begun: BegunCorrection = {
        "op": op,
        "fact": old["id"],
        "by": who,
        "at": at,
        "operations": operations,
        "texts": (old["text"], said),
    }
    value = cast(dict[str, Any], dict(begun))
    await write_batch(store, [PutOp(scope.namespace(CORRECTING), op, value, index=False)])
    return begun


async def carry_out(
    begun: BegunCorrection, *, store: BaseStore, semantic: SemanticMemory, scope: Scope
) -> Fact:
    """Apply a correction, or the rest of an interrupted one; return the new fact. Idempotent."""
    op = begun["op"]
    await apply_operations(begun["operations"], store=store, semantic=semantic, scope=scope)
    new = (await semantic.by_op(scope, [op]))[op]
    # Time and origin of the first try, so that a repeated correction is one line of the log.
    at, origin = datetime.fromisoformat(new["created"]), new["source_events"][0]
    line = audit.of_correction(begun["fact"], new["id"], at=at, who=begun["by"], origin=origin)
    done = PutOp(scope.namespace(CORRECTING), op, None)
    await audit.write(store, scope, [line], also=[done])
    return new


async def finish_corrections(
    memory: SessionMemory,
    owners: Collection[str],
    *,
    store: BaseStore,
    semantic: SemanticMemory,
    scope: Scope,
) -> SessionMemory:
    """Finish interrupted corrections; return session memory. The caller holds the agent's lock."""
    for begun in await begun_corrections(store, scope):
        memory = corrected(memory, begun, owners)
        await carry_out(begun, store=store, semantic=semantic, scope=scope)
    return memory


async def begun_corrections(store: BaseStore, scope: Scope) -> list[BegunCorrection]:
    """Corrections that are under way or were interrupted."""
    items = await list_items(store, scope.namespace(CORRECTING))
    return [cast(BegunCorrection, item.value) for item in items]


def _operations(old: Fact, said: str, who: str, op: str, at: str) -> list[Operation]:
    """The operations of a correction; the same at every try, as `at` is the time of the first."""
    entry = _entry(old, said, who, op, at)
    draft: FactDraft = {
        "op": op,
        "text": said,
        "source_entries": [entry["id"]],
        "source_events": entry["sources"],
        "speaker": who,
        "entities": _about(old, said),
        "trust": entry["source_trust"],
        "importance": entry["importance"],
        "created": at,
        "valid_from": at,
    }
    reason = f"corrected by {who}"
    return [
        add_entry(entry, reason),
        add_fact(draft, reason),
        supersede_fact(old, op, at, [entry["id"], *entry["sources"]], reason),
        link(entry["id"], op, at, reason),
    ]


def _about(old: Fact, said: str) -> list[str]:
    """Whom and what the new fact is about: names of the old text give way to those of the new."""
    kept = [one for one in old["entities"] if says(said, one) or not says(old["text"], one)]
    if len(kept) == len(old["entities"]):
        return kept
    new = (one for one in _NAME.findall(said) if not says(old["text"], one))
    return list(dict.fromkeys([*kept, *new]))


_NAME = regex(r"(?<=[\w,;] )[^\W\d_a-z][\w-]+")
"""A word with a capital letter that begins no sentence."""


def _entry(old: Fact, said: str, who: str, op: str, at: str) -> JournalEntry:
    """The correction as a journal entry that is already consolidated."""
    return {
        "id": f"correction_{datetime.fromisoformat(at):%Y%m%d}_{op[:16]}",
        "timestamp": at,
        "content": f"Correction: {said}",
        "source_type": "direct",
        "source_trust": TRUST["direct"],
        "source_entity": who,
        "importance": max(old["importance"], IMPORTANCE),
        "scoring_method": "manual",
        "tags": ["correction"],
        "related_projects": [],
        "sources": [f"correction_{op[:16]}"],
        "channel": None,
        "consolidation": "consolidated",
    }
