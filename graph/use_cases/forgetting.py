"""Forgetting a person, or what a fact or an entry says: everything that memory holds of it.

The order makes a crash harmless. First, what to delete is decided and stored. Then facts go, then
working memory, then the store's records in one transaction, which also closes the decision. Last,
free pages and logs are cleaned, down to the bytes. A second forget of the same continues the first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from difflib import get_close_matches
from typing import Any, NamedTuple

from langgraph.store.base import PutOp
from typing_extensions import TypedDict

from graph.use_cases.context import AgentContext, match_id, meant
from graph.use_cases.memories import find_entry, find_fact
from memory import audit, entities, forgetting, journal, night
from memory.errors import InputError, MemoryStoreError, NotFoundError
from memory.events import inbox
from memory.facts import scope_filters
from memory.forgetting import (
    Begun,
    ErasedMemory,
    ForgetContext,
    ForgetTarget,
    Selection,
    counts,
    dropped,
    examples,
    find,
    informed_ticks,
    memories,
    state_after,
    store_changes,
)
from memory.recall import index_entries
from memory.records import NightRecord
from memory.storage import count_items, shelves, write_batch
from memory.text import name_key

COUNTED = {
    "events": ("event", "events", ""),
    "journal": ("journal entry", "journal entries", ""),
    "journal_rewritten": ("journal entry", "journal entries", "that lose these words"),
    "facts": ("fact", "facts", ""),
    "messages": ("message", "messages", "of the conversation"),
    "messages_rewritten": ("message", "messages", "that lose these words"),
    "goals": ("goal", "goals", "whose text goes"),
    "projects": ("project", "projects", "whose text goes"),
    "session_memory": ("line", "lines", "of session memory"),
    "conversations": ("open conversation", "open conversations", ""),
    "overheard": ("event", "events", "said around the agent"),
    "questions": ("question", "questions", "waiting for an answer"),
    "prompt_versions": ("version", "versions", "of the assistant's prompt"),
    "profiles": ("profile", "profiles", "removed or changed"),
    "links": ("place", "places", "where a link leads to it"),
    "inbox": ("event", "events", "waiting or set aside"),
    "nights": ("night", "nights", "that can no longer be undone or applied"),
    "audit": ("line", "lines", "of the log, whose text goes"),
    "answers": ("answer or approved call", "answers and approved calls", ""),
    "prompts": ("kept prompt", "kept prompts", "of ticks, all there are"),
    "pages": ("page", "pages", "of what holds now"),
    "recalls": ("kept search", "kept searches", "of the agent, all there are"),
    "summaries": ("summary", "summaries", "of the conversation, to be made anew"),
    "undreamed": ("fact", "facts", "that nights still had to compare"),
    "other": ("other record", "other records", ""),
}
"""The counts of a forget in words: singular, plural, qualification."""

KIND = {"entity": "a person or thing", "fact": "a fact", "entry": "a journal entry"}
"""What was forgotten, as the log says it, by the kind of the target."""

AROUND_IDS = " []()#\u2026"
LEAST_ID, NEAR = 8, 3
"""Fewest characters of an id, so that no name is taken for one; most names offered for a name."""

Step = Callable[[str], object]
"""Called with the name of the step that comes next."""


class Forgotten(TypedDict):
    """The outcome of a forget, or with `dry_run` its preview."""

    entity: str
    """A name as given by the caller, or the id of the fact or the entry."""
    names: list[str]
    """The names that were searched for."""
    dry_run: bool
    counts: dict[str, int]
    """Deleted and rewritten records by kind."""
    examples: list[str]
    """Beginnings of some texts that would be deleted; empty once they are."""
    memories: list[ErasedMemory]
    """Every fact and entry that would go or change; empty once they are gone."""


class Plan(NamedTuple):
    """Everything that a forget changes."""

    found: Selection
    values: dict[str, Any]
    """The state before."""
    after: dict[str, Any]
    rules: ForgetContext
    puts: list[PutOp]
    """The changes of the store."""
    before: dict[str, int]
    """Counts of the interrupted forget that this forget continues: part of it may be done."""

    @property
    def counts(self) -> dict[str, int]:
        """Deleted and rewritten records by kind."""
        found = counts(self.found.erasure, self.values, self.after, self.puts)
        return {name: max(number, self.before.get(name, 0)) for name, number in found.items()}


async def forget(
    context: AgentContext, entity: str, *, dry_run: bool = False, on_step: Step | None = None
) -> Forgotten:
    """Erase a person, a thing or a journal entry, and everything derived from it.

    The agent is held, as by a run; a dry run takes no lock.

    Args:
        entity: a name, an alias, or the id of a sender, a profile or a journal entry. An entry
            goes with its event and what was made from it; no name is searched for.
        dry_run: decide and count; change nothing.
        on_step: called with the name of each step, for a person who waits.

    Raises:
        InputError: memory knows nobody of that name.
        BusyError: another process holds the agent.
        MemoryStoreError: a file cannot be cleaned, as when another process reads it. The deletions
            hold; forget again to clean the file.
    """
    name = " ".join(entity.split())
    if not name:
        raise InputError("whom to forget? the name is empty")
    return await _forget(context, await meant_by(context, name), dry_run, on_step)


async def meant_by(context: AgentContext, name: str) -> ForgetTarget:
    """The person or thing called `name`, else the fact or entry whose id is or begins with it."""
    bare = name.strip(AROUND_IDS)
    if len(bare) < LEAST_ID or not any(map(str.isdigit, bare)):
        return ForgetTarget("entity", name)
    entries = await journal.since(context.store, context.scope, None)
    names = {name_key(entry["source_entity"] or "") for entry in entries}
    for who in await entities.everyone(context.store, context.scope):
        names |= {*map(name_key, (who["name"], *who["aliases"], *who["senders"]))}
    if name_key(name) in names:
        return ForgetTarget("entity", name)
    facts = [one["id"] for one in await context.semantic.all(context.scope)]
    found = match_id(bare, [*facts, *(one["id"] for one in entries)], "memories")
    if found is None:
        return ForgetTarget("entity", name)
    return ForgetTarget("fact" if found in facts else "entry", found)


async def forget_fact(
    context: AgentContext, fact_id: str, *, dry_run: bool = False, on_step: Step | None = None
) -> Forgotten:
    """Erase what a fact says: the fact, the same in other texts, its sources, what came of it.

    A source that another fact needs loses only the sentence; any other source goes whole.
    Arguments as `forget`; `fact_id` may be an unambiguous beginning.

    Raises:
        InputError: no such fact, or several ids begin so.
        BusyError: another process holds the agent.
    """
    return await _forget(context, ForgetTarget("fact", fact_id), dry_run, on_step)


async def forget_entry(
    context: AgentContext, entry_id: str, *, dry_run: bool = False, on_step: Step | None = None
) -> Forgotten:
    """Erase a journal entry with its event and what came of it, and the same in other texts.

    Arguments and errors as `forget_fact`.
    """
    return await _forget(context, ForgetTarget("entry", entry_id), dry_run, on_step)


async def would_forget(
    context: AgentContext, wanted: ForgetTarget
) -> tuple[Forgotten, list[NightRecord]]:
    """What a forget would change, and the nights that it keeps from being undone or applied."""
    wanted = await _resolved(context, wanted)
    plan = await _plan(context, wanted, None)
    lost = [
        record
        for record in plan.rules.nights.values()
        if record is not None
        and night.status_of(record) in ("preview", "held", "complete")
        and not (record.get("forgotten") or record.get("reduced"))
    ]
    return _outcome(wanted, plan, dry_run=True), sorted(lost, key=lambda one: one["started"])


async def _forget(
    context: AgentContext, wanted: ForgetTarget, dry_run: bool, on_step: Step | None
) -> Forgotten:
    tell = on_step or (lambda step: None)
    if dry_run:
        return (await would_forget(context, wanted))[0]
    async with context.held():  # finishes an interrupted undo while what it restores is there
        finished = await _finish_earlier(context, wanted, tell)
        tell("looking for what goes")
        await _settle_inbox(context)
        try:
            wanted = await _resolved(context, wanted)
        except InputError:
            if finished:
                return _empty_outcome(wanted.name)
            raise
        plan = await _plan(context, wanted, None, required=not finished)
        if any(plan.counts.values()):
            await _carry_out(context, wanted, plan, tell)
        return _outcome(wanted, plan, dry_run=False)


async def forget_begun(context: AgentContext) -> None:
    """Erase the memory that the tool `forget_memory` marked. The caller holds the agent."""
    earlier, residue = await forgetting.left_over(context.store, context.scope)
    if earlier is None and not residue:
        return
    if earlier and earlier.get("kind", "entity") == "entity":
        return  # An interrupted forget of a person waits until somebody asks for it again.
    try:
        await _finish_earlier(context, ForgetTarget("entity", ""), lambda step: None)
    except MemoryStoreError as error:
        logging.getLogger("circadian").warning("%s; the next run tries again", error)


async def forget_agent(context: AgentContext, *, dry_run: bool = False) -> Forgotten:
    """Erase everything of this agent: facts, records, checkpoints. A dry run changes nothing.

    Idempotent: after an interruption, forget it again.
    """
    store, scope, semantic = context.store, context.scope, context.semantic
    counted = {
        "facts": await semantic.count(scope),
        "journal": await count_items(store, scope.namespace("journal")),
        "profiles": await count_items(store, scope.namespace(entities.ENTITIES)),
    }
    other = await count_items(store, scope.namespace()) - counted["journal"] - counted["profiles"]
    outcome = _empty_outcome(scope.thread, dry_run) | {"counts": {**counted, "other": other}}
    if not dry_run:
        async with context.lock():
            await context.saver.adelete_thread(scope.thread)
            await forgetting.erase_memories(semantic, scope_filters(scope))
            async for shelf in shelves(store, scope):
                puts = [PutOp(shelf.namespace, item.key, None) for item in shelf.items]
                await write_batch(store, puts)
            await forgetting.clean(store, forgetting.STORE_TABLES)
            await forgetting.clean(context.saver, forgetting.SAVER_TABLES)
    return outcome


async def _resolved(context: AgentContext, wanted: ForgetTarget) -> ForgetTarget:
    if wanted.kind == "fact":
        return wanted._replace(name=(await find_fact(context, wanted.name))["id"])
    if wanted.kind == "entry":
        return wanted._replace(name=await find_entry(context, wanted.name))
    return wanted


async def _finish_earlier(context: AgentContext, wanted: ForgetTarget, tell: Step) -> bool:
    """Finish an interrupted forget. True if it is, or may be, the forget that is wanted now."""
    store, scope = context.store, context.scope
    earlier, residue = await forgetting.left_over(store, scope)
    if earlier is not None:
        tell("going on with a forget that was broken off")
        await _settle_inbox(context)
        before = ForgetTarget(earlier.get("kind", "entity"), earlier["entity"])
        plan = await _plan(context, before, earlier, required=False)
        await _carry_out(context, before, plan, tell)
        if before.kind == "entity":
            return wanted.kind == "entity" and name_key(before.name) == name_key(wanted.name)
        # `meant_by` takes an id for a name once its memory is erased.
        may_be_id = wanted.kind in (before.kind, "entity")
        return may_be_id and bool(meant(wanted.name.strip(AROUND_IDS), [before.name], "memories"))
    if residue:
        tell("cleaning the files")
        await _clean(context)
        return True
    return False


async def _settle_inbox(context: AgentContext) -> None:
    marks = (await context.snapshot()).values.get("handled")
    if marks:
        await inbox.settle(context.store, context.scope, marks)


async def _plan(
    context: AgentContext,
    wanted: ForgetTarget,
    earlier: Begun | None,
    *,
    required: bool = True,
) -> Plan:
    """Decide everything. If `required`, raises InputError if nothing would change."""
    store, scope, semantic = context.store, context.scope, context.semantic
    values = dict((await context.snapshot()).values)
    found = await find(
        wanted,
        store=store,
        semantic=semantic,
        scope=scope,
        values=values,
        owner=context.owner,
        earlier=earlier,
    )
    erasure = found.erasure
    after = state_after(values, erasure, found.handled)
    messages, staying = values.get("messages", []), {one.id for one in after.get("messages", [])}
    cut = frozenset(str(message.id) for message in messages if message.id not in staying)
    questions = frozenset(parked["question"]["id"] for parked in dropped(values, erasure))
    informed = informed_ticks(messages, erasure).union(earlier["informed"] if earlier else ())
    at = context.now().isoformat()
    rules = ForgetContext(erasure, questions, at, messages=cut, informed=frozenset(informed))
    before = earlier.get("counts", {}) if earlier else {}
    plan = Plan(found, values, after, rules, await store_changes(store, scope, rules), before)
    if required and not any(plan.counts.values()):
        near = await names_like(context, wanted.name)
        hint = f"; there is {', '.join(map(repr, near))}" if near else ""
        raise NotFoundError(
            f"nothing is known of {wanted.name!r:.80}: no profile, no sender, and no text names it"
            f"{hint}"
        )
    return plan


async def names_like(context: AgentContext, name: str) -> list[str]:
    """Names of other people and things that share a word with `name`, or are spelt nearly so."""
    profiles = await entities.everyone(context.store, context.scope)
    names = {name_key(one): one for who in profiles for one in (who["name"], *who["aliases"])}
    wanted = name_key(name)
    names.pop(wanted, None)
    shared = [key for key in names if {*key.split()} & {*wanted.split()}]
    close = get_close_matches(wanted, names, NEAR)
    return [names[key] for key in dict.fromkeys([*shared, *close])][:NEAR]


async def _carry_out(context: AgentContext, wanted: ForgetTarget, plan: Plan, tell: Step) -> None:
    store, scope, semantic = context.store, context.scope, context.semantic
    found, erasure = plan.found, plan.found.erasure
    begun: Begun = {
        "entity": wanted.name,
        "kind": wanted.kind,
        "said": found.said,
        "events": sorted(erasure.events),
        "memories": sorted(erasure.memories),
        "informed": list(plan.rules.informed),
        "counts": plan.counts,
    }
    rows = await semantic.run(forgetting.rows_that_hold, semantic, scope, erasure)
    # Stored before any deletion, so that after a crash these entries are indexed again.
    stale = [
        journal.unindexed(scope, entry)
        for entry in erasure.entries.values()
        if entry and entry["id"] in rows.stale
    ]
    await forgetting.begin(store, scope, begun, stale)
    tell(f"facts: {len(erasure.facts)}")
    await forgetting.erase(semantic, scope, erasure.facts, rows.gone)
    staying = [fact for fact in found.facts if fact["id"] not in erasure.facts]
    await forgetting.mend(semantic, scope, staying, erasure)
    tell("working memory")
    await _rewrite_state(context, plan.after)
    tell(f"journal and records: {len(plan.puts)}")
    at, who = datetime.fromisoformat(plan.rules.at), erasure.scrubber.label(scope.user)
    line = audit.of_forget(KIND[wanted.kind], plan.counts, at=at, who=who)
    closing = forgetting.changed_puts(scope, plan.rules.at)
    await audit.write(store, scope, [line], also=[*plan.puts, *closing])
    tell("cleaning the files")
    await _clean(context)


async def _rewrite_state(context: AgentContext, after: dict[str, Any]) -> None:
    """Leave a single checkpoint, and no pending writes or checkpoints of subgraphs.

    This drops an unfinished run too, which starts again from the inbox.
    """
    saver, thread = context.saver, context.scope.thread
    if not after:
        await saver.adelete_thread(thread)
        return
    await context.replace_state(after)
    await saver.aprune([thread], strategy="keep_latest")


async def _clean(context: AgentContext) -> None:
    """Index the entries that stay again, and remove the bytes of deleted memories from the disk."""
    await index_entries(context.store, context.semantic, context.scope)
    await context.semantic.scrub()
    await forgetting.clean(context.saver, forgetting.SAVER_TABLES)
    await forgetting.clean(context.store, forgetting.STORE_TABLES)
    await forgetting.ended(context.store, context.scope)


def _outcome(wanted: ForgetTarget, plan: Plan, *, dry_run: bool) -> Forgotten:
    erasure = plan.found.erasure
    return {
        "entity": wanted.name,
        "names": list(erasure.names.shown),
        "dry_run": dry_run,
        "counts": plan.counts,
        "examples": examples(erasure) if dry_run else [],
        "memories": memories(erasure) if dry_run else [],
    }


def _empty_outcome(name: str, dry_run: bool = False) -> Forgotten:
    """An outcome without texts and counts, such as after an interrupted forget was finished."""
    return Forgotten(entity=name, names=[], dry_run=dry_run, counts={}, examples=[], memories=[])
