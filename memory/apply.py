"""Applying operations: the one function that changes long-term memory.

Idempotent and in order. Facts first (each under a unique index of its operation id), then changes
of facts, then everything in the store in one transaction, so that a mark never stands for a fact
that is missing. What goes from the store leaves the indexes before: found and gone at once is
mended by the next try, gone and still found would stay so.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langgraph.store.base import BaseStore, PutOp

from memory import entities, journal, links
from memory.operations import BLANK
from memory.records import Fact, FactDraft, JournalEntry, Operation
from memory.scope import Scope
from memory.semantic import SemanticMemory
from memory.store_access import write_batch

log = logging.getLogger("circadian.memory")

LINKS = links.LINKS
UNDREAMED = "undreamed"
"""Store namespace: operation id of a fact that no night has seen with its neighbours -> {op}."""
REFLECTION = "reflection"
"""Store namespace: `last` -> {at}, when insights were stored last."""


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
    that a phase is done. Twice is the same as once. What somebody changed meanwhile is passed over.
    """
    facts = await _write_facts(operations, semantic, scope)
    await _change_facts(operations, facts, semantic, scope)
    puts = await _entry_puts(operations, store, semantic, scope)
    puts += await links.puts_after(store, scope, operations, facts)
    puts += await entities.puts_after(store, scope, operations)
    puts += [put for one in operations for put in _marks(one, scope)]
    puts += also
    if puts:
        await write_batch(store, puts)
    written = (_written(operation, facts) for operation in operations)
    return [one for one in written if one is not None]


async def _write_facts(
    operations: Sequence[Operation], semantic: SemanticMemory, scope: Scope
) -> dict[str, str]:
    """Write and remove facts; return the ids of all that the operations name, by operation id."""
    gone = {o["target"] for o in operations if o["kind"] == "remove_fact"}
    drafts = [cast(FactDraft, o["after"]) for o in operations if o["kind"] == "add_fact"]
    made = await semantic.add(scope, drafts) if drafts else []
    known = {draft["op"]: fact["id"] for draft, fact in zip(drafts, made, strict=True)}
    # Asked only when needed: a write of entries alone must not fail with the facts' file.
    missing = sorted((_named(operations) | gone) - known.keys())
    elsewhere = await semantic.by_op(scope, missing) if missing else {}
    known |= {op: fact["id"] for op, fact in elsewhere.items()}
    for op in sorted(gone & elsewhere.keys()):
        await semantic.delete(scope, elsewhere[op]["id"])
    return known


def _named(operations: Sequence[Operation]) -> set[str]:
    """The operation ids of the facts that links and changes name."""
    found: set[str] = set()
    for one in operations:
        if one["kind"] in ("link", "unlink"):
            found |= links.fact_ops(one)
        elif one["kind"] == "change_fact":
            values = ((one["before"] or {}).get("superseded_by"), one["after"].get("superseded_by"))
            found |= {one["target"], *(value for value in values if value)}
    return found


async def _change_facts(
    operations: Sequence[Operation],
    facts: Mapping[str, str],
    semantic: SemanticMemory,
    scope: Scope,
) -> None:
    """Change fields of facts that still have the values to be replaced.

    No fact leaves recall for one that is not there, or for itself.
    """
    for operation in operations:
        if operation["kind"] != "change_fact":
            continue
        fact = await semantic.get(scope, facts.get(operation["target"], ""))
        after = _resolved(operation["after"], facts)
        if fact is None or _holds(fact, after):
            continue
        by = after.get("superseded_by")
        lost = by is not None and (by == fact["id"] or await semantic.get(scope, by) is None)
        if lost or not _holds(fact, _resolved(operation["before"], facts)):
            log.warning("passed over, as memory changed meanwhile: %s", operation["id"])
            continue
        await semantic.update(scope, fact["id"], after)


def _resolved(values: Mapping[str, Any], facts: Mapping[str, str]) -> dict[str, Any]:
    """`values` with the fact's id where an operation names what supersedes by its own."""
    by = values.get("superseded_by")
    named = {"superseded_by": facts.get(by, by)} if by else {}
    return {**values, **named}


def _holds(fact: Fact, values: Mapping[str, Any]) -> bool:
    standing = {**BLANK, **fact}
    return all(standing.get(name) == value for name, value in values.items())


async def _entry_puts(
    operations: Sequence[Operation], store: BaseStore, semantic: SemanticMemory, scope: Scope
) -> list[PutOp]:
    """The writes that make the touched journal entries stand, or go, as the operations say."""
    kinds = ("add_entry", "score_entry", "mark_entry", "prune_entry")
    changed = {o["target"] for o in operations if o["kind"] in kinds}
    standing = await journal.read_many(store, scope, changed)
    after = entries_after(standing, operations)
    gone = [entry for id_, entry in standing.items() if id_ not in after]
    if gone:
        await semantic.drop_episodes(scope, [entry["id"] for entry in gone])
    puts = [put for entry in after.values() for put in journal.puts(scope, entry)]
    return puts + [put for entry in gone for put in journal.removals(scope, entry)]


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
        elif operation["kind"] == "prune_entry":
            after.pop(target, None)
    return after


def _added(standing: JournalEntry | None, added: JournalEntry) -> JournalEntry:
    if standing is None or standing["content"] != added["content"]:
        return added
    if journal.ASIDE in standing["tags"]:
        return {**standing, "tags": added["tags"]}
    return standing


def _marks(operation: Operation, scope: Scope) -> list[PutOp]:
    """What is noted beside: which facts wait to be looked at, and when insights were stored."""
    kind, target = operation["kind"], operation["target"]
    if kind == "reflected":
        at = operation["after"]["at"]
        return [PutOp(scope.namespace(REFLECTION), "last", {"at": at} if at else None)]
    if kind == "add_fact":
        return [PutOp(scope.namespace(UNDREAMED), target, {"op": target}, index=False)]
    if kind == "remove_fact" or (kind == "settle_fact" and operation["after"]["dreamed"]):
        return [PutOp(scope.namespace(UNDREAMED), target, None)]
    if kind == "settle_fact":
        return [PutOp(scope.namespace(UNDREAMED), target, {"op": target}, index=False)]
    return []


def _written(operation: Operation, facts: Mapping[str, str]) -> str | None:
    if operation["kind"] == "add_entry":
        return operation["target"]
    return facts.get(operation["id"]) if operation["kind"] == "add_fact" else None
