"""Taking a night back: memory as it was before it, unless something was built on it since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graph.nights import find_night, in_words, named, night_report
from memory import night, standing
from memory.errors import ConflictError, InputError
from memory.night import status_of
from memory.night_undo import applied, built_on, finish, inverse, take_back
from memory.records import NightRecord, Operation
from memory.reports import NightReport

if TYPE_CHECKING:
    from graph.handle import AsyncAgent


async def undo_night(agent: AsyncAgent, name: str) -> NightReport:
    """Restore memory as it was before a night: facts, links, profiles, journal marks, insights.

    The conversation that went on since is left as it is. Twice is the same as once.

    Raises:
        InputError: there is no such night, or nothing of it was applied.
        ConflictError: a later night built on it, something that it made was changed since, a
            forget took something out of it, or what was there before is kept no more.
        BusyError: another process holds the agent.
    """
    found = await find_night(agent, name)
    store, scope, semantic = agent.store, agent.scope, agent.resources.semantic
    async with agent._lock:
        await finish(store, semantic, scope)  # one that was broken off, of this night or another
        record = await find_night(agent, found["id"])
        if status_of(record) != "undone":
            plans = await night.plans_of(store, scope, record["id"])
            await _check(agent, record, applied(record, plans))
            at, who = agent.resources.clock(), scope.user
            await take_back(store, semantic, scope, record["id"], at=at, who=who)
    return await night_report(agent, found["id"])


async def _check(agent: AsyncAgent, record: NightRecord, done: Sequence[Operation]) -> None:
    name = record["id"]
    if status_of(record) not in ("complete", "held") or not record["applied"]:
        raise InputError(f"{name} is {in_words(record)}: there is nothing to undo")
    going = await night.unfinished(agent.store, agent.scope)
    if going is not None:
        raise InputError(f"{going['id']} is not ended; `circadian sleep` goes on with it first")
    if record.get("forgotten"):
        raise ConflictError(f"{name} can no longer be undone: a forget took something out of it")
    if record.get("reduced"):
        kept = f"the newest {agent.settings.nights_kept} (nights_kept)"
        raise ConflictError(f"{name} can no longer be undone: of nights only {kept} can be")
    ops = [one["target"] for one in done if one["kind"].endswith("_fact")]
    facts = await agent.resources.semantic.by_op(agent.scope, list(dict.fromkeys(ops)))
    ids = {op: fact["id"] for op, fact in facts.items()}
    if built := built_on(done, await _later(agent, name), ids):
        told = [f"{one} on {await named(agent, on, done)}" for one, on in built.items()]
        first = f"`circadian undo {list(built)[-1]}` comes first"
        raise ConflictError(f"a later night built on {name}: {'; '.join(told)}; {first}")
    changed = await standing.conflicts(
        inverse(done),
        store=agent.store,
        semantic=agent.resources.semantic,
        scope=agent.scope,
    )
    if changed:
        what = await named(agent, changed, done)
        raise ConflictError(f"what {name} made was changed since: {what}")


async def _later(agent: AsyncAgent, name: str) -> list[tuple[str, Sequence[Operation]]]:
    """The nights that were applied after this one, with their operations."""
    records = await night.records(agent.store, agent.scope)
    names = [one["id"] for one in records]
    found: list[tuple[str, Sequence[Operation]]] = []
    for other in records[names.index(name) + 1 :]:
        if other["dry_run"] or status_of(other) in ("undone", "preview"):
            continue
        plans = await night.plans_of(agent.store, agent.scope, other["id"])
        found.append((other["id"], applied(other, plans)))
    return found
