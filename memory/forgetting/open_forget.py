"""A forget in progress: what a second attempt needs after a crash.

Store namespace (below `(user, thread)`): `forgetting` "open" -> Begun, from before the first change
until the store is changed; "residue" -> {at}, from then until free pages and logs are clean.
Neither is there once a forget has ended.
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
    """Whom to forget, and the ids that a second look would not find once facts and state are
    changed.
    """

    entity: str
    """As it was given."""
    events: list[str]
    """Ids of erased events that are not in the journal."""
    memories: list[str]
    """Ids of erased entries and facts, and the facts' operation ids."""
    informed: list[int | None]
    """Ticks of the conversation whose tools returned an erased memory."""


async def begun(store: BaseStore, scope: Scope) -> Begun | None:
    """The forget that was interrupted before the store was changed, if any."""
    item = await store.aget(scope.namespace(FORGETTING), OPEN)
    return cast(Begun, item.value) if item else None


async def begin(store: BaseStore, scope: Scope, what: Begun, also: Sequence[PutOp]) -> None:
    """Record a forget before anything is changed; `also`: writes of the same transaction."""
    put = PutOp(scope.namespace(FORGETTING), OPEN, cast(dict[str, Any], dict(what)))
    await write_batch(store, [put, *also])


def changed_puts(scope: Scope, at: str) -> list[PutOp]:
    """Writes for the transaction that changes the store: only the files are left to clean."""
    here = scope.namespace(FORGETTING)
    return [PutOp(here, OPEN, None), PutOp(here, RESIDUE, {"at": at})]


async def has_residue(store: BaseStore, scope: Scope) -> bool:
    """Whether a forget was interrupted before the files were clean."""
    return await store.aget(scope.namespace(FORGETTING), RESIDUE) is not None


async def unfinished(store: BaseStore, scope: Scope) -> str | None:
    """How to finish an interrupted forget; None if there is none."""
    if (earlier := await begun(store, scope)) is not None:
        return f"a forget was broken off: `circadian forget {earlier['entity']!r} --yes` ends it"
    if await has_residue(store, scope):
        return "a forget was broken off before its bytes were gone: forget again to clean the files"
    return None


async def ended(store: BaseStore, scope: Scope) -> None:
    """Record that the files are clean."""
    await store.adelete(scope.namespace(FORGETTING), RESIDUE)
