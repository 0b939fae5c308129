"""Apply operations: the one function that changes long-term memory.

Applying is idempotent and keeps the order of the operations, in these steps:

1. New facts, each under a unique index of its operation id; then changes of facts.
2. Everything in the store in one transaction, so that no mark stands for a missing fact. A journal
   entry that goes leaves the search index first: an entry without an index entry is mended by the
   next try, an index entry without its journal entry would stay.
3. Facts that go, when nothing names them any more, and last of all the caller's own mark.

Collectors take the operations that tools make: awake they are applied at once, asleep they are
added to a plan.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, cast

from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore, PutOp

from memory import entities, journal, pages, records
from memory.facts import Listing, SemanticMemory
from memory.journal import links
from memory.messages import Handles
from memory.recall import episodes
from memory.records import (
    BLANK,
    REFLECTION,
    Fact,
    FactDraft,
    JournalEntry,
    Operation,
    Scope,
    doubt_fact,
    end_doubts,
    with_values,
)
from memory.runtime import present, resources_of, scope_of
from memory.storage import list_items, write_batch

JOINED = (
    "source_entries",
    "source_events",
    "entities",
    "disputed",
    "depends_on",
    "doubtful",
    "other_words",
)
"""List fields in which order has no meaning."""


def fields_after(
    stored: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The fields to write; {} if the change is made already, None on a conflict.

    It is a conflict if the fields outside JOINED are neither all as before nor all as after.
    """
    now = {name: stored.get(name, BLANK.get(name)) for name in after}
    plain = [name for name in after if name not in JOINED]
    if not any(all(now[name] == one[name] for name in plain) for one in (before, after)):
        return None
    lists = {name: _joined(now[name], before[name], after[name]) for name in after.keys() - plain}
    wanted = {**lists, **{name: after[name] for name in plain}}
    return {name: wanted[name] for name in after if wanted[name] != now[name]}


def _joined(now: Sequence[Any], before: Sequence[Any], after: Sequence[Any]) -> list[Any]:
    kept = [item for item in now if item in after or item not in before]
    return [*kept, *(item for item in after if item not in before and item not in now)]


def facts_after(facts: Mapping[str, Fact], operations: Sequence[Operation]) -> dict[str, Fact]:
    """Facts by operation id after `operations`; `superseded_by` holds an operation id here, too."""
    ops = {fact["id"]: fact["op"] for fact in facts.values()}
    after = {op: _by_op(fact, ops) for op, fact in facts.items()}
    for operation in with_values(operations):
        target = operation["target"]
        if operation["kind"] == "add_fact":
            after.setdefault(target, fact_from(cast(FactDraft, operation["after"])))
        elif operation["kind"] == "remove_fact":
            after.pop(target, None)
        elif operation["kind"] == "change_fact" and target in after:
            changed = fields_after(after[target], operation["before"], operation["after"])
            after[target] = cast(Fact, {**after[target], **(changed or {})})
    return after


def _by_op(fact: Fact, ops: Mapping[str, str]) -> Fact:
    by = fact["superseded_by"]
    return {**fact, "superseded_by": ops.get(by, by)} if by else fact


def fact_from(draft: FactDraft) -> Fact:
    """The fact that a draft becomes."""
    blank = {"invalid_at": None, "superseded_by": None, "access_count": 0, "last_access": None}
    return cast(Fact, {**draft, "id": draft["op"], **blank})


async def dependents_of(
    facts: Iterable[Fact], *, store: BaseStore, semantic: SemanticMemory, scope: Scope
) -> list[Fact]:
    """The stored facts that hold and depend on any of these, found by their links."""
    given = {fact["id"]: fact["op"] for fact in facts}
    ends = await links.read(store, scope, given)
    linked = {other for end in ends.values() for other in end["linked_to"]}
    found = await semantic.by_id(scope, sorted(linked)) if linked else {}
    ops = {*given.values()}
    return [
        fact
        for fact in found.values()
        if fact["invalid_at"] is None and not ops.isdisjoint(fact.get("depends_on", ()))
    ]


async def with_doubts(
    operations: Sequence[Operation],
    falls: Fact,
    *holds: Fact,
    store: BaseStore,
    semantic: SemanticMemory,
    scope: Scope,
) -> list[Operation]:
    """The operations by which a fact `falls`, with the doubts that begin and end by them.

    Facts that depend on it, except `holds`, come into doubt; doubts that it caused by contradicting
    another fact end.
    """
    known = {fact["op"]: fact for fact in (falls, *holds)}
    for _ in range(2):  # What it contradicts, and what contradicts that.
        against = {op for fact in known.values() for op in fact.get("disputed", ())}
        known |= await semantic.by_op(scope, sorted(against - known.keys()))
    dependents = await dependents_of(known.values(), store=store, semantic=semantic, scope=scope)
    sources, reason = operations[0]["sources"], operations[0]["reason"]
    doubted = [
        doubt_fact(fact, falls["op"], sources, reason)
        for fact in dependents
        if falls["op"] in fact["depends_on"] and fact not in holds
    ]
    made = [*operations, *doubted]
    after = facts_after({**known, **{fact["op"]: fact for fact in dependents}}, made)
    return [*made, *end_doubts(after, sources, reason)]


async def cited_ids(
    given: Collection[JournalEntry],
    operations: Sequence[Operation],
    *,
    store: BaseStore,
    semantic: SemanticMemory,
    scope: Scope,
) -> set[str]:
    """Ids among `given` and their events that memory cites once `operations` are applied.

    The result may have ids of other entries and events, too.
    """
    operations, ids = with_values(operations), {one["id"] for one in given}
    ids_and_events = sorted(ids.union(*(one["sources"] for one in given)))
    known = await semantic.facts_listed(scope, Listing({}, citing=ids_and_events))
    known += (await semantic.by_op(scope, sorted(facts_named(operations)))).values()
    stored = {fact["op"]: fact for fact in known}
    facts = facts_after(stored, operations).values()
    profiles = {one["id"]: one for one in await entities.everyone(store, scope)}
    profiles = entities.after(profiles, {}, operations)[0]
    observed = (one for profile in profiles.values() for one in profile["observations"])
    added = (one["after"] for one in operations if one["kind"] == "add_entry")
    fact_ids = {op: fact["id"] for op, fact in stored.items()}
    ends = links.after(await links.read(store, scope, ids), operations, fact_ids)
    return {
        *(one for fact in facts for one in (*fact["source_entries"], *fact["source_events"])),
        *(one for observation in observed for one in observation["sources"]),
        *(one for entry in added for one in entry.get("evidence", ())),
        *(id_ for id_ in ids if id_ in ends and ends[id_]["linked_to"]),
    }


def stands_under(entry: JournalEntry, cited: Collection[str]) -> bool:
    """Whether the entry is cited, or the event that it records."""
    of_event = entry["id"].startswith("event_")
    return entry["id"] in cited or (of_event and any(one in cited for one in entry["sources"]))


log = logging.getLogger("circadian.memory")
LINKS = links.LINKS

UNDREAMED = "undreamed"
"""Store namespace: operation id of a fact that no night has compared yet -> {op}."""


async def undreamed_facts(store: BaseStore, scope: Scope) -> list[str]:
    """Operation ids of the facts that no night has compared with others."""
    return [item.key for item in await list_items(store, scope.namespace(UNDREAMED))]


ON_ENTRIES = ("add_entry", "score_entry", "mark_entry", "prune_entry")
ON_FACTS = ("add_fact", "change_fact", "remove_fact")
_WHEN: tuple[Literal["before", "after"], ...] = ("before", "after")


async def apply_operations(
    operations: Sequence[Operation],
    *,
    store: BaseStore,
    semantic: SemanticMemory,
    scope: Scope,
    also: Sequence[PutOp] = (),
) -> list[str]:
    """Apply `operations`, in order; return the ids of the new memories. Twice is the same as once.

    An operation on something that was changed meanwhile is skipped. `also`: the caller's own
    writes, which mark the work as done: in the last transaction, after facts that go.
    """
    operations = with_values(operations)
    facts = await _write_facts(operations, semantic, scope)
    ids = {op: fact["id"] for op, fact in facts.items()}
    await _change_facts(operations, ids, semantic, scope)
    operations = await _without_cited(operations, store, semantic, scope)
    removed = [one["target"] for one in operations if one["kind"] == "remove_fact"]
    # A fact with another operation id existed before and was said again: it stays.
    gone = [facts[op]["id"] for op in removed if op in facts and facts[op]["op"] == op]
    puts, pruned = await _entry_puts(operations, store, semantic, scope)
    # Nothing is linked to an end that does not exist.
    named = links.named_by([one for one in operations if one["kind"] == "link"], ids)
    added = {one["target"] for one in operations if one["kind"] == "add_entry"}
    named -= added - {*pruned}
    named -= {*ids.values()}
    named -= (await journal.read_many(store, scope, named)).keys() if named else set()
    missing = [one for one in sorted(named) if await semantic.get(scope, one) is None]
    puts += await links.puts_after(store, scope, operations, ids, [*gone, *pruned, *missing])
    puts += await entities.puts_after(store, scope, operations)
    puts += await pages.puts_after(store, scope, operations)
    puts += [put for one in operations for put in _undreamed_puts(one, scope)]
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
    if any(one["kind"] in ON_ENTRIES for one in operations):
        await episodes.index_written(store, semantic, scope, added)
    written = (_new_id(operation, ids) for operation in operations)
    return [one for one in written if one is not None]


async def _write_facts(
    operations: Sequence[Operation], semantic: SemanticMemory, scope: Scope
) -> dict[str, Fact]:
    """Write new facts; return all facts that the operations name, by operation id."""
    drafts = [cast(FactDraft, o["after"]) for o in operations if o["kind"] == "add_fact"]
    made = await semantic.add(scope, drafts) if drafts else []
    known = {draft["op"]: fact for draft, fact in zip(drafts, made, strict=True)}
    # Read only if needed: entries can be written even while the facts' file cannot be read.
    missing = sorted(facts_named(operations) - known.keys())
    return known | (await semantic.by_op(scope, missing) if missing else {})


def facts_named(operations: Sequence[Operation]) -> set[str]:
    """Operation ids of the facts that operations add, change, remove or link, and of heirs."""
    found: set[str] = set()
    for operation in with_values(operations):
        if operation["kind"] in ON_FACTS:
            found.add(operation["target"])
        if operation["kind"] == "change_fact":
            heirs = (operation[when].get("superseded_by") for when in _WHEN)
            found.update(heir for heir in heirs if heir)
        elif operation["kind"] in ("link", "unlink"):
            found |= links.fact_ops(operation)
    return found


async def _change_facts(
    operations: Sequence[Operation],
    facts: Mapping[str, str],
    semantic: SemanticMemory,
    scope: Scope,
) -> None:
    """Change fields of facts that still have the values to be replaced; none is its own heir."""
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
        if changed is None or await _heir_invalid(
            fact, after.get("superseded_by"), semantic, scope
        ):
            log.warning("skipped, as memory changed meanwhile: %s", operation["id"])
            continue
        await semantic.update(scope, fact["id"], changed)


async def _heir_invalid(fact: Fact, by: str | None, semantic: SemanticMemory, scope: Scope) -> bool:
    """Whether the superseding fact (`by`) is missing, is this fact, or was superseded by it."""
    if by is None:
        return False
    heir = await semantic.get(scope, by)
    return heir is None or heir["id"] == fact["id"] or heir["superseded_by"] == fact["id"]


def _resolved(values: Mapping[str, Any], facts: Mapping[str, str]) -> dict[str, Any]:
    """`values` with `superseded_by` as a fact's id in place of an operation id."""
    by = values.get("superseded_by")
    named = {"superseded_by": facts.get(by, by)} if by else {}
    return {**values, **named}


async def _without_cited(
    operations: Sequence[Operation], store: BaseStore, semantic: SemanticMemory, scope: Scope
) -> list[Operation]:
    """The operations, without prunings of entries that memory cites by now."""
    pruned = [one["target"] for one in operations if one["kind"] == "prune_entry"]
    standing = await journal.read_many(store, scope, pruned)
    if not standing:
        return list(operations)
    cited = await cited_ids(
        standing.values(), operations, store=store, semantic=semantic, scope=scope
    )
    kept = {id_ for id_, one in standing.items() if stands_under(one, cited)}
    for id_ in sorted(kept):
        log.warning("skipped, as memory stands on it: %s", id_)
    return [one for one in operations if one["kind"] != "prune_entry" or one["target"] not in kept]


async def _entry_puts(
    operations: Sequence[Operation], store: BaseStore, semantic: SemanticMemory, scope: Scope
) -> tuple[list[PutOp], list[str]]:
    """(writes for the journal entries that change or go, ids of those that go)."""
    changed = {o["target"] for o in operations if o["kind"] in ON_ENTRIES}
    standing = await journal.read_many(store, scope, changed)
    after = entries_after(standing, operations)
    gone = [entry for id_, entry in standing.items() if id_ not in after]
    if gone:
        await semantic.drop_episodes(scope, [entry["id"] for entry in gone])
    puts = [put for entry in after.values() for put in journal.puts(scope, entry)]
    puts += [put for entry in gone for put in journal.removals(scope, entry)]
    return puts, [entry["id"] for entry in gone]


def entries_after(
    entries: dict[str, JournalEntry], operations: Sequence[Operation]
) -> dict[str, JournalEntry]:
    """Entries by id once `operations` are applied, in order. Pure.

    An existing entry is not written again and keeps what a night did with it. An event that comes
    again under the same id with other words replaces the entry. An event that was set aside loses
    that tag when it is acted on after all. An entry that was changed meanwhile stays as it is.
    """
    after = dict(entries)
    for operation in with_values(operations):
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
    if records.ASIDE in standing["tags"]:
        return {**standing, "tags": added["tags"]}
    return standing


def _undreamed_puts(operation: Operation, scope: Scope) -> list[PutOp]:
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
    """The time of the last insights, unless others were stored since."""
    reflections = [reflection for reflection in operations if reflection["kind"] == "reflected"]
    if not reflections:
        return []
    standing = at = await last_reflection(store, scope)
    for reflection in reflections:
        at = reflection["after"]["at"] if at == reflection["before"]["at"] else at
    if at == standing:
        return []
    return [PutOp(scope.namespace(REFLECTION), "last", {"at": at} if at else None)]


async def last_reflection(store: BaseStore, scope: Scope) -> str | None:
    """When insights were last stored, ISO 8601."""
    item = await store.aget(scope.namespace(REFLECTION), "last")
    return cast(str, item.value["at"]) if item else None


def _new_id(operation: Operation, facts: Mapping[str, str]) -> str | None:
    if operation["kind"] == "add_entry":
        return operation["target"]
    return facts.get(operation["id"]) if operation["kind"] == "add_fact" else None


KEY = "circadian_sink"
"""The key of a night step's PlanCollector in `config["configurable"]`."""


class Collector:
    """Takes the operations of tools. Awake, it applies them at once."""

    doubts: dict[str, str] | None = None
    """Operation id -> why the rules rejected its fact, for the model that judges it afterwards;
    None if no model judges.
    """
    shown: Mapping[str, JournalEntry] | None = None
    """Asleep: the entries that the model was shown, by id. Awake: None."""
    looked_up: dict[str, JournalEntry]
    """Asleep: other entries, of facts that the model looked up and cites."""

    def __init__(self, store: BaseStore, semantic: SemanticMemory, scope: Scope) -> None:
        self._store, self._semantic, self._scope = store, semantic, scope
        self.looked_up = {}

    def resolve(self, given: str) -> str:
        """The id that a citation means; the citation itself if it means none that was shown."""
        return given

    def handle(self, id_: str) -> str:
        """An id as the model was shown it."""
        return id_

    async def write(self, operations: Sequence[Operation]) -> list[str]:
        """Take operations; return the ids of the memories that they add."""
        return await apply_operations(
            operations, store=self._store, semantic=self._semantic, scope=self._scope
        )


class PlanCollector(Collector):
    """Asleep, keeps the operations for the plan of the night's step."""

    def __init__(
        self,
        shown: Mapping[str, JournalEntry],
        operations: Sequence[Operation] = (),
        *,
        judged: bool = False,
    ) -> None:
        """`shown`: in the order of the prompt. `operations`: of earlier answers."""
        self.shown = shown
        self.operations = list(operations)
        self._earlier = len(self.operations)
        self.doubts, self.looked_up = {} if judged else None, {}
        self._handles = Handles(shown)

    @property
    def new(self) -> list[Operation]:
        """The operations of this answer."""
        return self.operations[self._earlier :]

    def resolve(self, given: str) -> str:
        """The id of the entry whose number is cited; else the citation itself."""
        return self._handles.resolve(given) or given

    def handle(self, id_: str) -> str:
        """The number under which the model was shown an entry."""
        return self._handles.of(id_)

    async def write(self, operations: Sequence[Operation]) -> list[str]:
        """Keep the operations, each once."""
        known = {operation["id"] for operation in self.operations}
        self.operations += [one for one in operations if one["id"] not in known]
        return [one["target"] for one in operations if one["kind"] in ("add_entry", "add_fact")]


def collector_of(config: RunnableConfig, store: BaseStore | None) -> Collector:
    """The collector of this run or step."""
    given = config.get("configurable", {}).get(KEY)
    if isinstance(given, PlanCollector):
        return given
    return Collector(present(store), resources_of(config).semantic, scope_of(config))


def with_collector(config: RunnableConfig, collector: PlanCollector) -> RunnableConfig:
    """`config` for the tools of a night step."""
    return {**config, "configurable": {**config.get("configurable", {}), KEY: collector}}
