"""Nights, from Python and the command line: look at one, try one out, make it so, let it go.

Taking one back stands in `graph.night_undo`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langgraph.types import StateSnapshot
from typing_extensions import TypedDict

from graph.night_names import names_of
from memory import audit, night, night_undo
from memory.audit_nights import of_decision
from memory.changed_since import changed_since
from memory.errors import CircadianError, ConflictError, InputError
from memory.home import HeldLock
from memory.night import status_of
from memory.operations import told
from memory.records import NightRecord, NightStatus, Operation, PlanRecord
from memory.reports import NightReport

if TYPE_CHECKING:
    from graph.handle import AsyncAgent

SHOWN = 3
"""Things that an error names."""
NEWEST = "last"
"""Stands for the id of the newest night."""


class NightLine(TypedDict):
    """A night in a list."""

    id: str
    started: str
    complete: bool
    status: NightStatus
    dry_run: bool
    stopped: str | None
    """Why it ended before everything was done; the next night takes the rest."""
    left: int
    """Journal entries that it could not settle, and that wait for the next night."""
    operations: int
    llm_calls: int
    tokens: int


async def nights(agent: AsyncAgent) -> list[NightLine]:
    """Every night, oldest first."""
    lines: list[NightLine] = []
    for record in await night.records(agent.store, agent.scope):
        plans = await night.plans_of(agent.store, agent.scope, record["id"])
        lines.append(
            {
                "id": record["id"],
                "started": record["started"],
                "complete": record["complete"],
                "status": status_of(record),
                "dry_run": record["dry_run"],
                "stopped": record.get("stopped"),
                "left": len(record["held"]),
                "operations": len(plans.operations()),
                "llm_calls": sum(plan["llm_calls"] for plan in plans),
                "tokens": sum(plan["tokens"] for plan in plans),
            }
        )
    return lines


async def night_report(agent: AsyncAgent, name: str) -> NightReport:
    """One night with each of its operations. Raises InputError as `find_night`."""
    record = await find_night(agent, name)
    return night.report_of(record, await night.plans_of(agent.store, agent.scope, record["id"]))


async def find_night(agent: AsyncAgent, given: str) -> NightRecord:
    """The night with the id `given`, the only one whose id begins so, or the newest for `last`.

    Raises:
        InputError: there is none, or there are several.
    """
    wanted = given.strip().rstrip("…")
    records = await night.records(agent.store, agent.scope)
    if not records:
        raise InputError("there has been no night yet; `circadian sleep` goes through one")
    if wanted == NEWEST:
        return records[-1]
    for one in records:
        if one["id"] == wanted:
            return one
    starts = (wanted, f"night_{wanted}")
    fits = [one for one in records if wanted and one["id"].startswith(starts)]
    if len(fits) == 1:
        return fits[0]
    if fits:
        ids = some([one["id"] for one in fits])
        raise InputError(f"{len(fits)} nights have ids that begin with {wanted}: {ids}")
    raise InputError(f"there is no night {given.strip()!r:.80}; `circadian nights` lists them")


async def preview(agent: AsyncAgent) -> NightReport:
    """Go through a night and apply nothing: memory, state and inbox stay as they are.

    Model calls are paid for; applied later, the same night costs none.

    Raises:
        InputError: a night is open.
        BusyError: another process holds the agent.
        CircadianError: the emergency stop stands, or a step failed.
    """
    async with previewing(agent) as alone:
        return of_run(await alone.ainvoke(None))


@asynccontextmanager
async def previewing(agent: AsyncAgent) -> AsyncIterator[AsyncAgent]:
    """Ask for a preview; the agent whose next run makes it, and does nothing else.

    It holds the lock until it is let go, so that no other process's run takes up what is asked for.
    """
    async with agent._lock:
        going = await night.unfinished(agent.store, agent.scope)
        if going is not None and not going["dry_run"]:
            raise InputError(f"{going['id']} is not ended; `circadian sleep` goes on with it first")
        if going is None:
            await night.want_preview(agent.store, agent.scope)
        try:
            yield for_a_night(agent)
        finally:
            await night.unwant_preview(agent.store, agent.scope)


async def apply_night(agent: AsyncAgent, name: str) -> NightReport:
    """Make a preview, or a night that was held back, so. No model is called.

    One that was killed at its end is ended: memory stood by then, but the history was not cut.

    Raises:
        InputError: there is no such night, it is neither, or another night is open.
        ConflictError: memory has changed since in what it is about, a forget took something out
            of it, or what it would do is kept no more. Nothing is applied then.
        BusyError: another process holds the agent.
    """
    async with applying(agent, name) as alone:
        return of_run(await alone.ainvoke(None))


@asynccontextmanager
async def applying(agent: AsyncAgent, name: str) -> AsyncIterator[AsyncAgent]:
    """Approve a night; the agent whose next run applies it, and does nothing else.

    It holds the lock until it is let go.
    """
    await find_night(agent, name)
    async with agent._lock:
        await night_undo.finish(agent.store, agent.resources.semantic, agent.scope)
        record = await find_night(agent, name)
        if status_of(record) != "approved" and not await broke_off(agent, record):
            await _check_applicable(agent, record)
            await _approve(agent, record)
        yield for_a_night(agent)


async def broke_off(agent: AsyncAgent, record: NightRecord) -> bool:
    """Whether a run wrote a night's end and was killed before it cut the history: the next does.

    Told by the task of the night itself: a report names it in all that its run does afterwards.
    """
    if status_of(record) != "complete":
        return False
    tasks = (await agent.aget_state(subgraphs=True)).tasks
    inside = [task.state for task in tasks if task.name == "sleep"]
    return any(isinstance(one, StateSnapshot) and _night_in(one) == record["id"] for one in inside)


def _night_in(sleep: StateSnapshot) -> str | None:
    """The night that a task of the subgraph has in hand, or has ended."""
    cursor = sleep.values.get("night")
    if cursor is not None or "begin_night" in sleep.next:
        return cursor["id"] if cursor else None
    done = (sleep.values.get("report") or {}).get("night")
    return done["id"] if done else None


def for_a_night(agent: AsyncAgent) -> AsyncAgent:
    """The same agent for runs that go through a night and leave all else that waits alone.

    The agent's lock is to be held: these runs take none.
    """
    alone = replace(agent.resources, night_only=True)
    return type(agent)(agent.graph, agent.store, alone, agent.settings, agent.scope, HeldLock())


def of_run(output: Mapping[str, Any]) -> NightReport:
    """The night of a run that was for it. Raises CircadianError where there is none."""
    report = output["report"]
    if report["failures"]:
        raise CircadianError("; ".join(one["error"] for one in report["failures"]))
    if report["night"] is None:
        raise CircadianError(" ".join(report["notes"]) or "the run ended before the night began")
    found: NightReport = report["night"]
    return found


async def _check_applicable(agent: AsyncAgent, record: NightRecord) -> None:
    name = record["id"]
    if status_of(record) not in ("preview", "held"):
        raise InputError(f"{name} is {in_words(record)}: there is nothing to apply")
    other = await night.unfinished(agent.store, agent.scope)
    if other is not None and other["id"] != name:
        raise InputError(f"{other['id']} is not ended; `circadian sleep` goes on with it first")
    go = f"let it go with `circadian night {name} --discard`, and sleep again"
    if record.get("forgotten"):
        raise ConflictError(f"a forget took something out of {name}: {go}")
    if record.get("reduced"):
        raise ConflictError(f"{name} is too old: what it would do is kept no more; {go}")
    plans = await night.plans_of(agent.store, agent.scope, name)
    waiting = [
        one
        for phase in ("compacting", "dreaming")
        if record["dry_run"] or phase not in record["applied"]
        for one in plans.operations(phase)
    ]
    changed = await changed_since(
        waiting, store=agent.store, semantic=agent.resources.semantic, scope=agent.scope
    )
    if changed:
        what = await named(agent, changed, waiting)
        raise ConflictError(f"memory has changed since {name}: {what}; {go}")
    if await _history_changed(agent, plans, record):
        raise ConflictError(f"the conversation was compacted since {name}; {go}")


async def _history_changed(
    agent: AsyncAgent, plans: Sequence[PlanRecord], record: NightRecord
) -> bool:
    """Whether the messages that a preview would put a summary in place of are there no more."""
    messages = (await agent.aget_state()).values.get("messages", [])
    ids = [str(one.id) for one in messages]
    cuts = [plan for plan in plans if plan["step"] == "compact" and plan["operations"]]
    return record["dry_run"] and any(ids[: len(one["inputs"])] != one["inputs"] for one in cuts)


async def _approve(agent: AsyncAgent, record: NightRecord) -> None:
    """From here on any run goes on with it."""
    applied = [] if record["dry_run"] else record["applied"]
    approved: NightRecord = {
        **record,
        "status": "approved",
        "dry_run": False,
        "applied": applied,
        "phase": "compacting" if not applied else "dreaming",
        "ended": None,
    }
    at, who = agent.resources.clock(), agent.scope.user
    entry = of_decision(approved, "night_approved", at=at, who=who)
    puts = night.begin_puts(agent.scope, approved)
    await audit.write(agent.store, agent.scope, [entry], also=puts)


async def discard_night(agent: AsyncAgent, name: str) -> NightReport:
    """Let a preview, or a night that was held back, go: it is never applied. Twice is as once.

    Raises:
        InputError: there is no such night, or it is neither.
        BusyError: another process holds the agent.
    """
    record = await find_night(agent, name)
    async with agent._lock:
        record = await find_night(agent, record["id"])
        if status_of(record) not in ("preview", "held", "discarded"):
            raise InputError(f"{record['id']} is {in_words(record)}: it cannot be discarded")
        if status_of(record) != "discarded":
            gone: NightRecord = {**record, "status": "discarded"}
            at, who = agent.resources.clock(), agent.scope.user
            entry = of_decision(gone, "night_discarded", at=at, who=who)
            put = night.record_put(agent.scope, gone)
            await audit.write(agent.store, agent.scope, [entry], also=[put])
    return await night_report(agent, record["id"])


async def named(agent: AsyncAgent, ids: Sequence[str], operations: Sequence[Operation]) -> str:
    """What these ids stand for, in words."""
    names = await names_of(agent, told(operations), ids)
    return some([names.of(one) for one in ids])


def in_words(record: NightRecord) -> str:
    """What has become of a night, for a sentence."""
    words: Mapping[NightStatus, str] = {
        "open": "not ended",
        "complete": "applied",
        "undone": "undone",
        "discarded": "discarded",
        "approved": "about to be applied",
        "preview": "a preview, of which nothing was applied",
        "held": "held back",
    }
    return words[status_of(record)]


def some(things: Sequence[str]) -> str:
    """The first few, and how many there are."""
    more = f" and {len(things) - SHOWN} more" if len(things) > SHOWN else ""
    return ", ".join(things[:SHOWN]) + more
