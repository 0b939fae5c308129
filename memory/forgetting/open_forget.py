"""A forget on its way: what it needs to go on with, where it was broken off.

Store namespace (below `(user, thread)`): `forgetting` "open" -> Begun, from before anything is
changed until the store is; "residue" -> {at}, from then until nothing erased is left in free pages
and logs. Neither is there once a forget has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from langgraph.store.base import BaseStore, PutOp
from typing_extensions import TypedDict

from memory.scope import Scope
from memory.store_access import write_batch

FORGETTING, OPEN, RESIDUE = "forgetting", "open", "residue"


class Begun(TypedDict):
    """Whom, and what of it no second look would find once the state is scrubbed."""

    entity: str
    """As it was given."""
    events: list[str]
    """Ids of erased events that are not in the journal."""
    texts: list[str]
    """What they said."""


async def begun(store: BaseStore, scope: Scope) -> Begun | None:
    """The forget that was broken off before the store was changed; None: there is none."""
    item = await store.aget(scope.namespace(FORGETTING), OPEN)
    return cast(Begun, item.value) if item else None


async def begin(store: BaseStore, scope: Scope, what: Begun, also: Sequence[PutOp]) -> None:
    """Remember a forget before anything is changed."""
    put = PutOp(scope.namespace(FORGETTING), OPEN, cast(dict[str, Any], dict(what)))
    await write_batch(store, [put, *also])


def changed_puts(scope: Scope, at: str) -> list[PutOp]:
    """The store is changed in the same transaction; the bytes are still to be cleaned."""
    here = scope.namespace(FORGETTING)
    return [PutOp(here, OPEN, None), PutOp(here, RESIDUE, {"at": at})]


async def has_residue(store: BaseStore, scope: Scope) -> bool:
    """Whether a forget was broken off before the bytes were clean."""
    return await store.aget(scope.namespace(FORGETTING), RESIDUE) is not None


async def unfinished(store: BaseStore, scope: Scope) -> str | None:
    """How to finish a forget that was broken off; None: there is none."""
    if (earlier := await begun(store, scope)) is not None:
        return f"a forget was broken off: `circadian forget {earlier['entity']!r} --yes` ends it"
    if await has_residue(store, scope):
        return "a forget was broken off before its bytes were gone: forget again to clean the files"
    return None


async def ended(store: BaseStore, scope: Scope) -> None:
    """The bytes are clean."""
    await store.adelete(scope.namespace(FORGETTING), RESIDUE)
