"""Forgetting a person, or one fact: everything that memory holds of them, down to the bytes.

The order makes a crash harmless: what goes is decided and written down first; facts, then working
memory, then the store in one transaction, which closes the decision; last the free pages and logs.
A second forget of the same name goes on with the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Overwrite
from typing_extensions import TypedDict

from graph.corrections import find_fact
from memory import inbox, journal, night_undo
from memory.episodes import catch_up
from memory.errors import InputError
from memory.forgetting import found_rows, open_forget, residue
from memory.forgetting.open_forget import Begun
from memory.forgetting.person import Person, counts, examples, find
from memory.forgetting.store_changes import Context, StoreChanges, fact_changes, store_changes
from memory.forgetting.working import dropped, informed_ticks, state_after
from memory.names import name_key
from memory.state import REDUCED_KEYS
from memory.store_access import write_batch

if TYPE_CHECKING:
    from graph.handle import AsyncAgent

Step = Callable[[str], object]
"""Is told what is done next."""


class Forgotten(TypedDict):
    """What a forget did, or with `dry_run` what it would do."""

    entity: str
    """As it was given."""
    names: list[str]
    """By which the person was looked for."""
    dry_run: bool
    counts: dict[str, int]
    """What goes, and what is written anew, by kind."""
    examples: list[str]
    """The beginnings of some texts that go; empty once they are gone."""


class Plan(NamedTuple):
    """All that a forget changes."""

    person: Person
    values: dict[str, Any]
    """The state as it was."""
    after: dict[str, Any]
    context: Context
    store: StoreChanges
    rows: found_rows.Found

    @property
    def counts(self) -> dict[str, int]:
        """What goes and what is written anew, by kind."""
        return counts(self.person.erasure, self.values, self.after, self.store)


async def forget(
    agent: AsyncAgent, entity: str, *, dry_run: bool = False, on_step: Step | None = None
) -> Forgotten:
    """Erase a person, or a thing, and everything derived from them, in this agent's memory.

    Args:
        agent: an open agent; it is held meanwhile, as by a run. A dry run holds nothing.
        entity: a name, an alias, or the id of a sender or of a profile.
        dry_run: decide and count, and change nothing.
        on_step: is told what is done next, for a person who waits.

    Raises:
        InputError: memory knows nobody of that name.
        BusyError: another process holds the agent.
        MemoryStoreError: a file cannot be cleaned, as where another process reads it. What was
            deleted is deleted; forget again.
    """
    wanted = " ".join(entity.split())
    if not wanted:
        raise InputError("whom to forget? the name is empty")
    tell = on_step or (lambda step: None)
    if dry_run:
        return _told(wanted, await _plan(agent, wanted, None), dry_run=True)
    async with agent._lock:
        finished = await _finish_earlier(agent, wanted, tell)
        tell("looking for what is theirs")
        await _settle(agent)
        plan = await _plan(agent, wanted, None, required=not finished)
        if any(plan.counts.values()):
            await _carry_out(agent, wanted, plan, tell)
        return _told(wanted, plan, dry_run=False)


async def forget_fact(agent: AsyncAgent, fact_id: str) -> Forgotten:
    """Erase one fact and what stands on it: links, vector, history, pointers of other facts to it.

    What it was made from stays. A night that made it can no longer be undone.

    Raises:
        InputError: no such fact, or several ids begin so.
        BusyError: another process holds the agent.
    """
    async with agent._lock:
        store, scope, semantic = agent.store, agent.scope, agent.resources.semantic
        finished = await _finish_earlier(agent, fact_id, lambda step: None)
        try:
            fact = await find_fact(agent, fact_id)
        except InputError:
            if finished:
                return _of_fact(fact_id, {})
            raise
        at = agent.resources.clock().isoformat()
        for other in await semantic.all(scope):
            if other["superseded_by"] == fact["id"]:
                cleared = {"superseded_by": None, "invalid_at": None}
                await semantic.update(scope, other["id"], cleared)
        changes = await fact_changes(store, scope, fact, at)
        await write_batch(store, [*changes.puts, *open_forget.changed_puts(scope, at)])
        await found_rows.erase(semantic, scope, {fact["id"]: fact}, [])
        await _clean(agent)
    removed = changes.removed + changes.rewritten
    return _of_fact(
        fact["id"], {"facts": 1, "links": removed["links"], "nights": removed["nights"]}
    )


async def _finish_earlier(agent: AsyncAgent, wanted: str, tell: Step) -> bool:
    """Finish what an earlier forget left undone; whether that may have been this very one.

    An undo that was broken off comes first: it needs what is about to be forgotten.
    """
    store, scope = agent.store, agent.scope
    await night_undo.finish(store, agent.resources.semantic, scope)
    earlier = await open_forget.begun(store, scope)
    if earlier is not None:
        tell("going on with a forget that was broken off")
        await _settle(agent)
        plan = await _plan(agent, earlier["entity"], earlier, required=False)
        await _carry_out(agent, earlier["entity"], plan, tell)
        return name_key(earlier["entity"]) == name_key(wanted)
    if await open_forget.has_residue(store, scope):
        tell("cleaning the files")
        await _clean(agent)
        return True
    return False


async def _settle(agent: AsyncAgent) -> None:
    """Take out of the inbox what the state contains, as a run does when it begins."""
    marks = (await agent.aget_state()).values.get("handled")
    if marks:
        await inbox.settle(agent.store, agent.scope, marks)


async def _plan(
    agent: AsyncAgent, entity: str, earlier: Begun | None, *, required: bool = True
) -> Plan:
    """Decide everything. Raises InputError where nothing is known and it is `required`."""
    store, scope, semantic = agent.store, agent.scope, agent.resources.semantic
    values = dict((await agent.aget_state()).values)
    person = await find(
        entity,
        store=store,
        semantic=semantic,
        scope=scope,
        values=values,
        owner=agent._owner(),
        earlier=earlier,
    )
    erasure = person.erasure
    rows = await found_rows.rows_that_hold(semantic, scope, erasure)
    after = state_after(values, erasure, person.handled)
    left = {one.id for one in after.get("messages", [])}
    cut = frozenset(str(one.id) for one in values.get("messages", []) if one.id not in left)
    questions = frozenset(one["question"]["id"] for one in dropped(values, erasure))
    at = agent.resources.clock().isoformat()
    informed = informed_ticks(values.get("messages", []), erasure)
    informed = informed.union(earlier["informed"] if earlier else ())
    context = Context(erasure, questions, at, messages=cut, informed=frozenset(informed))
    plan = Plan(person, values, after, context, await store_changes(store, scope, context), rows)
    if required and not any(plan.counts.values()):
        raise InputError(
            f"nothing is known of {entity!r:.80}: no profile, no sender, and no text names it"
        )
    return plan


async def _carry_out(agent: AsyncAgent, entity: str, plan: Plan, tell: Step) -> None:
    """Make it so. Each part done twice is the same as done once."""
    store, scope, semantic = agent.store, agent.scope, agent.resources.semantic
    person, erasure = plan.person, plan.person.erasure
    what: Begun = {
        "entity": entity,
        "events": person.unjournaled,
        "memories": sorted(erasure.memories),
        "informed": list(plan.context.informed),
    }
    # First of all: whatever happens, what stays is found again.
    again = [one for one in erasure.entries.values() if one and one["id"] in plan.rows.stale]
    await open_forget.begin(store, scope, what, [journal.unindexed(scope, one) for one in again])
    tell(f"facts: {len(erasure.facts)}")
    await found_rows.erase(semantic, scope, erasure.facts, plan.rows.gone)
    staying = [one for one in person.facts if one["id"] not in erasure.facts]
    await found_rows.mend(semantic, scope, staying, erasure)
    tell("working memory")
    await _rewrite_state(agent, plan.after)
    tell(f"journal and records: {len(plan.store.puts)}")
    closing = open_forget.changed_puts(scope, plan.context.at)
    await write_batch(store, [*plan.store.puts, *closing])
    tell("cleaning the files")
    await _clean(agent)


async def _rewrite_state(agent: AsyncAgent, after: dict[str, Any]) -> None:
    """One checkpoint with what is left, and no other: no earlier one, no write, no subgraph's.

    What a run left unfinished is dropped with them, and done again from the inbox.
    """
    saver, thread = _saver(agent), agent.scope.thread
    if not after:
        await saver.adelete_thread(thread)
        return
    whole = {key: Overwrite(one) if key in REDUCED_KEYS else one for key, one in after.items()}
    await agent.graph.aupdate_state(agent.config(), whole, as_node="intake")
    await saver.aprune([thread], strategy="keep_latest")


def _saver(agent: AsyncAgent) -> BaseCheckpointSaver[Any]:
    return cast(BaseCheckpointSaver[Any], agent.graph.checkpointer)


async def _clean(agent: AsyncAgent) -> None:
    """Leave nothing on the disk of what is deleted; entries that stay are found by what stays."""
    await catch_up(agent.store, agent.resources.semantic, agent.scope)
    await agent.resources.semantic.scrub()
    await residue.clean(_saver(agent), residue.SAVER_TABLES)
    await residue.clean(agent.store, residue.STORE_TABLES)
    await open_forget.ended(agent.store, agent.scope)


def _told(entity: str, plan: Plan, *, dry_run: bool) -> Forgotten:
    erasure = plan.person.erasure
    return {
        "entity": entity,
        "names": erasure.names.shown,
        "dry_run": dry_run,
        "counts": plan.counts,
        "examples": examples(erasure) if dry_run else [],
    }


def _of_fact(fact_id: str, counted: dict[str, int]) -> Forgotten:
    return {
        "entity": fact_id,
        "names": [],
        "dry_run": False,
        "counts": counted,
        "examples": [],
    }
