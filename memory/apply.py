"""Applying operations: the one function that changes long-term memory.

Idempotent and in order. Facts first (each under a unique index of its operation id), then changes
of facts, then everything in the store in one transaction, so that a mark never stands for a fact
that is missing. Facts that go are the last, when nothing names them any more, and the mark of the
caller comes behind them. What goes from the store leaves the indexes before: found and gone at once
is mended by the next try, gone and still found would stay so.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, cast

from langgraph.store.base import BaseStore, PutOp

from memory import citations, entities, episodes, journal, links
from memory.fact_changes import fields_after, without_circles
from memory.operations import told
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
_ON_ENTRIES = ("add_entry", "score_entry", "mark_entry", "prune_entry")
_WHEN: tuple[Literal["before", "after"], ...] = ("before", "after")


async def apply_operations(
    operations: Sequence[Operation],
    *,
    store: BaseStore,
    semantic: SemanticMemory,
    scope: Scope,
    also: Sequence[PutOp] = (),
) -> list[str]:
    """Make `operations` so; return the ids of what was written, in order.

    `also` are store writes of the caller that say that it is done, such as the mark of a phase: in
    the same transaction as all else in the store or, where facts go, after them. Twice is the same
    as once. What somebody changed meanwhile is passed over.
    """
    operations = without_circles(told(operations))
    facts = await _write_facts(operations, semantic, scope)
    ids = {op: fact["id"] for op, fact in facts.items()}
    await _change_facts(operations, ids, semantic, scope)
    operations = await _without_cited(operations, store, semantic, scope)
    gone = _gone(operations, facts)
    puts, pruned = await _entry_puts(operations, store, semantic, scope)
    missing = await _missing(operations, ids, pruned, semantic, scope, store)
    puts += await links.puts_after(store, scope, operations, ids, [*gone, *pruned, *missing])
    puts += await entities.puts_after(store, scope, operations)
    puts += [put for one in operations for put in _marks(one, scope)]
    puts += await _reflections(operations, store, scope)
    if gone:
        if puts:
            await write_batch(store, puts)
        for fact_id in gone:
            await semantic.delete(scope, fact_id)
        puts = []
    puts += also
    if puts:
        await write_batch(store, puts)
    if any(one["kind"] in _ON_ENTRIES for one in operations):
        await episodes.index_written(store, semantic, scope)
    written = (_written(operation, ids) for operation in operations)
    return [one for one in written if one is not None]


async def _write_facts(
    operations: Sequence[Operation], semantic: SemanticMemory, scope: Scope
) -> dict[str, Fact]:
    """Write new facts; return all that the operations name, by operation id."""
    drafts = [cast(FactDraft, o["after"]) for o in operations if o["kind"] == "add_fact"]
    made = await semantic.add(scope, drafts) if drafts else []
    known = {draft["op"]: fact for draft, fact in zip(drafts, made, strict=True)}
    # Asked only when needed: a write of entries alone must not fail with the facts' file.
    missing = sorted(_named(operations) - known.keys())
    return known | (await semantic.by_op(scope, missing) if missing else {})


def _named(operations: Sequence[Operation]) -> set[str]:
    """The operation ids of the facts that links, changes and removals name."""
    found: set[str] = set()
    for one in operations:
        if one["kind"] in ("link", "unlink"):
            found |= links.fact_ops(one)
        elif one["kind"] == "change_fact":
            values = (one["before"].get("superseded_by"), one["after"].get("superseded_by"))
            found |= {one["target"], *(value for value in values if value)}
        elif one["kind"] == "remove_fact":
            found.add(one["target"])
    return found


def _gone(operations: Sequence[Operation], facts: Mapping[str, Fact]) -> list[str]:
    """The ids of the facts to remove; one that stood before, and was only said again, stays."""
    ops = [one["target"] for one in operations if one["kind"] == "remove_fact"]
    return [facts[op]["id"] for op in ops if op in facts and facts[op]["op"] == op]


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
        if fact is None:
            continue
        before, after = (_resolved(operation[when], facts) for when in _WHEN)
        changed = fields_after(fact, before, after)
        if changed == {}:
            continue
        by = after.get("superseded_by")
        lost = by is not None and (by == fact["id"] or await semantic.get(scope, by) is None)
        if lost or changed is None:
            log.warning("passed over, as memory changed meanwhile: %s", operation["id"])
            continue
        await semantic.update(scope, fact["id"], changed)


def _resolved(values: Mapping[str, Any], facts: Mapping[str, str]) -> dict[str, Any]:
    """`values` with the fact's id where an operation names what supersedes by its own."""
    by = values.get("superseded_by")
    named = {"superseded_by": facts.get(by, by)} if by else {}
    return {**values, **named}


async def _without_cited(
    operations: Sequence[Operation], store: BaseStore, semantic: SemanticMemory, scope: Scope
) -> list[Operation]:
    """All but those that would take an entry away on which something was founded meanwhile."""
    pruned = [one["target"] for one in operations if one["kind"] == "prune_entry"]
    standing = await journal.read_many(store, scope, pruned)
    if not standing:
        return list(operations)
    cited = await citations.cited(standing, operations, store=store, semantic=semantic, scope=scope)
    kept = {id_ for id_, one in standing.items() if citations.stands_under(one, cited)}
    for id_ in sorted(kept):
        log.warning("passed over, as memory stands on it: %s", id_)
    return [one for one in operations if one["kind"] != "prune_entry" or one["target"] not in kept]


async def _entry_puts(
    operations: Sequence[Operation], store: BaseStore, semantic: SemanticMemory, scope: Scope
) -> tuple[list[PutOp], list[str]]:
    """The writes that make the touched journal entries stand, or go, and the ids of those that go.

    An entry that is gone already is among them, for what else is to go with it.
    """
    changed = {o["target"] for o in operations if o["kind"] in _ON_ENTRIES}
    standing = await journal.read_many(store, scope, changed)
    after = entries_after(standing, operations)
    gone = [entry for id_, entry in standing.items() if id_ not in after]
    if gone:
        await semantic.drop_episodes(scope, [entry["id"] for entry in gone])
    puts = [put for entry in after.values() for put in journal.puts(scope, entry)]
    puts += [put for entry in gone for put in journal.removals(scope, entry)]
    return puts, [entry["id"] for entry in gone]


async def _missing(
    operations: Sequence[Operation],
    facts: Mapping[str, str],
    pruned: Collection[str],
    semantic: SemanticMemory,
    scope: Scope,
    store: BaseStore,
) -> list[str]:
    """The ends of new links that do not exist: nothing is linked to them.

    `facts`: ids of facts that exist; `pruned`: ids of entries that are about to go.
    """
    made = [one for one in operations if one["kind"] == "link"]
    added = {one["target"] for one in operations if one["kind"] == "add_entry"} - {*pruned}
    asked = links.named_by(made, facts) - {*facts.values()} - added
    entries = await journal.read_many(store, scope, asked) if asked else {}
    left = sorted(asked - entries.keys())
    return [one for one in left if await semantic.get(scope, one) is None]


def entries_after(
    entries: dict[str, JournalEntry], operations: Sequence[Operation]
) -> dict[str, JournalEntry]:
    """The overlay: entries as they stand once `operations` are applied, in order.

    An entry that stands is not written again: the same write twice is one entry, and what a night
    did with it stays. An event that comes again under its id with other words counts as it says
    now; one that had been set aside loses that tag when it is acted on after all. An entry that is
    not as the operation expects it was changed meanwhile, and stays.
    """
    after = dict(entries)
    for operation in told(operations):
        target = operation["target"]
        if operation["kind"] == "add_entry":
            added = cast(JournalEntry, operation["after"])
            after[target] = _added(after.get(target), added)
        elif operation["kind"] in ("score_entry", "mark_entry") and target in after:
            changed = fields_after(after[target], operation["before"], operation["after"])
            after[target] = cast(JournalEntry, {**after[target], **(changed or {})})
        elif operation["kind"] == "prune_entry" and after.get(target) == operation["before"]:
            after.pop(target, None)
    return after


def _added(standing: JournalEntry | None, added: JournalEntry) -> JournalEntry:
    if standing is None or standing["content"] != added["content"]:
        return added
    if journal.ASIDE in standing["tags"]:
        return {**standing, "tags": added["tags"]}
    return standing


def _marks(operation: Operation, scope: Scope) -> list[PutOp]:
    """What is noted beside: which facts wait to be looked at with their neighbours."""
    kind, target = operation["kind"], operation["target"]
    settled = kind == "settle_fact" and operation["after"]["dreamed"]
    if kind == "remove_fact" or settled:
        return [PutOp(scope.namespace(UNDREAMED), target, None)]
    if kind in ("add_fact", "settle_fact"):
        return [PutOp(scope.namespace(UNDREAMED), target, {"op": target}, index=False)]
    return []


async def _reflections(
    operations: Sequence[Operation], store: BaseStore, scope: Scope
) -> list[PutOp]:
    """When insights were stored last, unless others were stored since."""
    mine = [one for one in operations if one["kind"] == "reflected"]
    if not mine:
        return []
    item = await store.aget(scope.namespace(REFLECTION), "last")
    standing = at = item.value["at"] if item else None
    for one in mine:
        at = one["after"]["at"] if at == one["before"]["at"] else at
    if at == standing:
        return []
    return [PutOp(scope.namespace(REFLECTION), "last", {"at": at} if at else None)]


def _written(operation: Operation, facts: Mapping[str, str]) -> str | None:
    if operation["kind"] == "add_entry":
        return operation["target"]
    return facts.get(operation["id"]) if operation["kind"] == "add_fact" else None
