"""Taking a night back: memory as it was before it, unless something was built on it since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from langgraph.store.base import PutOp

from graph.nights import find_night, in_words, named, night_report
from memory import apply, audit, night, standing
from memory.audit_nights import of_undo
from memory.compaction import SUMMARIES, kept_keys
from memory.dreaming.undo import built_on, inverse
from memory.errors import ConflictError, InputError
from memory.night import status_of
from memory.night_plans import Plans
from memory.records import NightRecord, Operation, PlanRecord
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
    async with agent._lock:
        record = await find_night(agent, found["id"])
        if status_of(record) != "undone":
            plans = await night.plans_of(agent.store, agent.scope, record["id"])
            await _take_back(agent, record, plans)
    return await night_report(agent, found["id"])


async def _take_back(agent: AsyncAgent, record: NightRecord, plans: Plans) -> None:
    done = _applied(record, plans)
    await _check(agent, record, done)
    undone: NightRecord = {**record, "status": "undone"}
    puts = _summaries(agent, record["id"], plans)
    puts.append(night.record_put(agent.scope, undone))
    await apply.apply_operations(
        inverse(done),
        store=agent.store,
        semantic=agent.resources.semantic,
        scope=agent.scope,
        also=puts,
    )
    entry = of_undo(undone, at=agent.resources.clock(), who=agent.scope.user)
    await audit.write(agent.store, agent.scope, [entry])


def _applied(record: NightRecord, plans: Plans) -> list[Operation]:
    return [one for phase in record["applied"] for one in plans.operations(phase)]


def _summaries(agent: AsyncAgent, night_id: str, plans: Sequence[PlanRecord]) -> list[PutOp]:
    """Without what the night's compaction had kept."""
    cuts = [plan["inputs"] for plan in plans if plan["step"] == "compact"]
    namespace = agent.scope.namespace(SUMMARIES)
    return [
        PutOp(namespace, key, None) for ids in cuts for key in kept_keys(night_id, ids).values()
    ]


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
        found.append((other["id"], _applied(other, plans)))
    return found
