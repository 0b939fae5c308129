"""Applying operations: the one function that changes long-term memory.

Idempotent and in order. Facts first (each under a unique index of its operation id), then
everything in the store in one transaction, so that a mark never stands for a fact that is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from langgraph.store.base import BaseStore, GetOp, PutOp

from memory import journal
from memory.records import FactDraft, JournalEntry, Operation
from memory.scope import Scope
from memory.semantic import SemanticMemory
from memory.store_access import write_batch

LINKS = "links"


async def apply_operations(
    operations: Sequence[Operation],
    *,
    store: BaseStore,
    semantic: SemanticMemory,
    scope: Scope,
    also: Sequence[PutOp] = (),
) -> list[str]:
    """Make `operations` so; return the ids of what was written, in order.

    `also` are store writes of the caller that belong to the same transaction, such as the mark
    that a phase is done. Twice is the same as once.
    """
    facts = await _write_facts(operations, semantic, scope)
    entries = await _entries_after(operations, store, scope)
    puts = [put for entry in entries.values() for put in journal.puts(scope, entry)]
    puts += await _link_puts(operations, facts, store, scope)
    puts += also
    if puts:
        await write_batch(store, puts)
    written = (_written(operation, facts) for operation in operations)
    return [one for one in written if one is not None]


async def _write_facts(
    operations: Sequence[Operation], semantic: SemanticMemory, scope: Scope
) -> dict[str, str]:
    """Write every fact; return fact ids by operation id."""
    drafts = [cast(FactDraft, o["after"]) for o in operations if o["kind"] == "add_fact"]
    facts = await semantic.add(scope, drafts) if drafts else []
    known = {fact["op"]: fact["id"] for fact in facts}
    linked = {o["after"]["fact_op"] for o in operations if o["kind"] == "link"}
    missing = sorted(linked - known.keys())
    # Asked only when needed: a write of entries alone must not fail with the facts' file.
    elsewhere = await semantic.by_op(scope, missing) if missing else {}
    return known | {op: fact["id"] for op, fact in elsewhere.items()}


async def _entries_after(
    operations: Sequence[Operation], store: BaseStore, scope: Scope
) -> dict[str, JournalEntry]:
    """The journal entries that the operations touch, as they are to stand."""
    changed = [o for o in operations if o["kind"] in ("add_entry", "score_entry", "mark_entry")]
    entries = await journal.read_many(store, scope, {o["target"] for o in changed})
    return entries_after(entries, operations)


def entries_after(
    entries: dict[str, JournalEntry], operations: Sequence[Operation]
) -> dict[str, JournalEntry]:
    """The overlay: entries as they stand once `operations` are applied, in order.

    An entry that stands is not written again: the same write twice is one entry, and what a night
    did with it stays. An event that comes again under its id with other words counts as it says
    now; one that had been set aside loses that tag when it is acted on after all.
    """
    after = dict(entries)
    for operation in operations:
        target = operation["target"]
        if operation["kind"] == "add_entry":
            added = cast(JournalEntry, operation["after"])
            after[target] = _added(after.get(target), added)
        elif operation["kind"] in ("score_entry", "mark_entry") and target in after:
            after[target] = cast(JournalEntry, {**after[target], **operation["after"]})
    return after


def _added(standing: JournalEntry | None, added: JournalEntry) -> JournalEntry:
    if standing is None or standing["content"] != added["content"]:
        return added
    if journal.ASIDE in standing["tags"]:
        return {**standing, "tags": added["tags"]}
    return standing


async def _link_puts(
    operations: Sequence[Operation], facts: dict[str, str], store: BaseStore, scope: Scope
) -> list[PutOp]:
    """Both directions of every link, joined to the links that stand (data-flow-03, section 3.2)."""
    ends: dict[str, dict[str, Any]] = {}
    for operation in operations:
        if operation["kind"] == "link":
            entry_id, fact_id = operation["target"], facts[operation["after"]["fact_op"]]
            for one, other in ((entry_id, fact_id), (fact_id, entry_id)):
                end = ends.setdefault(
                    one, {"linked_to": [], "created": operation["after"]["created"]}
                )
                end["linked_to"].append(other)
    namespace = scope.namespace(LINKS)
    standing = await store.abatch([GetOp(namespace, one) for one in ends])
    for (_, end), item in zip(ends.items(), standing, strict=True):
        old = cast(Any, item).value if item is not None else {"linked_to": [], **end}
        end["created"] = old["created"]
        end["linked_to"] = sorted({*old["linked_to"], *end["linked_to"]})
    return [PutOp(namespace, one, end) for one, end in ends.items()]


def _written(operation: Operation, facts: dict[str, str]) -> str | None:
    if operation["kind"] == "add_entry":
        return operation["target"]
    return facts.get(operation["id"]) if operation["kind"] == "add_fact" else None
