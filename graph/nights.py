"""Nights, from Python and the command line: look at one, try one out, make it so, take it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langgraph.store.base import PutOp
from typing_extensions import TypedDict

from memory import apply, audit, night, standing
from memory.audit_nights import of_undo
from memory.dreaming.undo import built_on, inverse
from memory.errors import InputError
from memory.night_batches import operations_of
from memory.records import NightRecord, NightStatus, Operation
from memory.reports import NightReport

if TYPE_CHECKING:
    from graph.handle import AsyncAgent

SHOWN = 5
"""Ids that an error names."""


class NightLine(TypedDict):
    """A night in a list."""

    id: str
    started: str
    complete: bool
    status: NightStatus
    dry_run: bool
    operations: int
    llm_calls: int
    tokens: int


async def nights(agent: AsyncAgent) -> list[NightLine]:
    """Every night, oldest first."""
    lines: list[NightLine] = []
    for name in await night.all_ids(agent.store, agent.scope):
        record = await _known(agent, name)
        plans = await night.plans_of(agent.store, agent.scope, name)
        lines.append(
            {
                "id": name,
                "started": record["started"],
                "complete": record["complete"],
                "status": status_of(record),
                "dry_run": record["dry_run"],
                "operations": len(operations_of(plans)),
                "llm_calls": sum(plan["llm_calls"] for plan in plans),
                "tokens": sum(plan["tokens"] for plan in plans),
            }
        )
    return lines


async def night_report(agent: AsyncAgent, name: str) -> NightReport:
    """One night with each of its operations. Raises InputError where there is none of that id."""
    record = await _known(agent, name)
    return night.report_of(record, await night.plans_of(agent.store, agent.scope, name))


def status_of(record: NightRecord) -> NightStatus:
    """What has become of a night."""
    return record.get("status", "complete" if record["ended"] else "open")


async def preview(agent: AsyncAgent) -> dict[str, Any]:
    """Go through a night and apply nothing; the run's output, with the night in its report.

    Model calls are paid for; made so later, the same night costs none.

    Raises:
        InputError: a night is open.
        BusyError: another process holds the agent.
    """
    standing_open = await night.unfinished(agent.store, agent.scope)
    if standing_open is not None:
        raise InputError(f"{standing_open['id']} is not ended: `circadian sleep` goes on with it")
    await night.want_preview(agent.store, agent.scope)
    return await agent.ainvoke(None)


async def apply_night(agent: AsyncAgent, name: str) -> dict[str, Any]:
    """Make a preview, or a night that was held back, so; the run's output.

    Raises:
        InputError: it is neither, another night is open, or memory has changed since in what it
            is about; nothing is applied then.
        BusyError: another process holds the agent.
    """
    record = await _known(agent, name)
    if status_of(record) not in ("preview", "held", "approved"):
        raise InputError(f"{name} is {_words(record)}: there is nothing to apply")
    other = await night.unfinished(agent.store, agent.scope)
    if other is not None and other["id"] != name:
        raise InputError(f"{other['id']} is not ended: `circadian sleep` goes on with it first")
    if status_of(record) != "approved":
        async with agent._lock:
            await _approve(agent, record)
    return await agent.ainvoke(None)


async def _approve(agent: AsyncAgent, record: NightRecord) -> None:
    if record.get("forgotten"):
        raise InputError(
            f"{record['id']} can no longer be applied: a forget took something out of it; let it "
            f"go with `circadian night {record['id']} --discard`, and sleep again"
        )
    plans = await night.plans_of(agent.store, agent.scope, record["id"])
    waiting = [
        one
        for phase in ("compacting", "dreaming")
        if record["dry_run"] or phase not in record["applied"]
        for one in operations_of(plans, phase)
    ]
    changed = await standing.conflicts(
        waiting,
        store=agent.store,
        semantic=agent.resources.semantic,
        scope=agent.scope,
    )
    if changed:
        raise InputError(
            f"memory has changed since {record['id']}: {_some(changed)}; let it go with "
            f"`circadian night {record['id']} --discard`, and sleep again"
        )
    applied = [] if record["dry_run"] else record["applied"]
    approved: NightRecord = {
        **record,
        "status": "approved",
        "dry_run": False,
        "applied": applied,
        "phase": "compacting" if not applied else "dreaming",
        "ended": None,
    }
    await night.begin(agent.store, agent.scope, approved)


async def discard(agent: AsyncAgent, name: str) -> NightRecord:
    """Let a preview, or a night that was held back, go: it is never applied.

    Raises:
        InputError: it is neither.
    """
    record = await _known(agent, name)
    if status_of(record) == "discarded":
        return record
    if status_of(record) not in ("preview", "held"):
        raise InputError(f"{name} is {_words(record)}: it cannot be discarded")
    gone: NightRecord = {**record, "status": "discarded"}
    await night.keep(agent.store, agent.scope, gone)
    return gone


async def undo(agent: AsyncAgent, name: str) -> NightRecord:
    """Restore memory as it was before a night: facts, links, profiles, journal marks, insights.

    The conversation that went on since is left as it is. Twice is the same as once.

    Raises:
        InputError: it was not applied, a later night built on it, something of it was changed
            since, or what it would take is no longer kept.
        BusyError: another process holds the agent.
    """
    async with agent._lock:
        record = await _known(agent, name)
        if status_of(record) == "undone":
            return record
        plans = await night.plans_of(agent.store, agent.scope, name)
        done = [one for phase in record["applied"] for one in operations_of(plans, phase)]
        await _check_undo(agent, record, done)
        undone: NightRecord = {**record, "status": "undone"}
        puts: list[PutOp] = [night.record_put(agent.scope, undone)]
        await apply.apply_operations(
            inverse(done),
            store=agent.store,
            semantic=agent.resources.semantic,
            scope=agent.scope,
            also=puts,
        )
        entry = of_undo(undone, at=agent.resources.clock(), who=agent.scope.user)
        await audit.write(agent.store, agent.scope, [entry])
    return undone


async def _check_undo(agent: AsyncAgent, record: NightRecord, done: Sequence[Operation]) -> None:
    name = record["id"]
    if status_of(record) not in ("complete", "held") or not record["applied"]:
        raise InputError(f"{name} is {_words(record)}: there is nothing to undo")
    if record.get("forgotten"):
        raise InputError(f"{name} can no longer be undone: a forget took something out of it")
    if record.get("reduced"):
        raise InputError(f"{name} can no longer be undone: what it would take is kept no more")
    ops = [one["target"] for one in done if one["kind"].endswith("_fact")]
    facts = await agent.resources.semantic.by_op(agent.scope, list(dict.fromkeys(ops)))
    ids = {op: fact["id"] for op, fact in facts.items()}
    if built := built_on(done, await _later(agent, name), ids):
        told = "; ".join(f"{one} on {_some(ids)}" for one, ids in built.items())
        raise InputError(f"a later night built on {name}: {told}; undo that first")
    changed = await standing.conflicts(
        inverse(done),
        store=agent.store,
        semantic=agent.resources.semantic,
        scope=agent.scope,
    )
    if changed:
        raise InputError(f"what {name} made was changed since: {_some(changed)}")


async def _later(agent: AsyncAgent, name: str) -> list[tuple[str, Sequence[Operation]]]:
    """The nights that were applied after this one, with their operations."""
    names = await night.all_ids(agent.store, agent.scope)
    found: list[tuple[str, Sequence[Operation]]] = []
    for other in names[names.index(name) + 1 :]:
        record = await _known(agent, other)
        if record["dry_run"] or status_of(record) in ("undone", "discarded", "preview"):
            continue
        plans = await night.plans_of(agent.store, agent.scope, other)
        applied = [one for phase in record["applied"] for one in operations_of(plans, phase)]
        found.append((other, applied))
    return found


async def _known(agent: AsyncAgent, name: str) -> NightRecord:
    record = await night.load(agent.store, agent.scope, name)
    if record is None:
        raise InputError(f"there is no night {name!r}: `circadian nights` lists them")
    return record


def _words(record: NightRecord) -> str:
    words: Mapping[NightStatus, str] = {
        "open": "not ended",
        "complete": "applied",
        "undone": "undone",
        "discarded": "discarded",
        "approved": "about to be applied",
        "preview": "a preview",
        "held": "held back",
    }
    return words[status_of(record)]


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return ", ".join(ids[:SHOWN]) + more
