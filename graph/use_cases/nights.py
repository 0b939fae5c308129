"""Nights: list them, show one, preview, apply, discard and undo; and the names behind their ids."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import TypedDict

from graph.use_cases import runs
from graph.use_cases.context import AgentContext, first_few, match_id
from memory import audit, entities, journal, night
from memory.audit import of_decision
from memory.errors import CircadianError, ConflictError, InputError, NotFoundError
from memory.journal import links
from memory.night import (
    Plans,
    applied,
    apply_conflicts,
    built_on,
    inverse,
    status_of,
    take_back,
    undo_conflicts,
)
from memory.records import NightRecord, NightReport, NightStatus, Operation, with_values
from memory.text import shortened

QUOTED = 60
"""Most characters of a quoted text."""

NEWEST = "last"
"""Stands for the id of the newest night."""

NIGHT_STATUS: Mapping[NightStatus, str] = {
    "open": "not ended",
    "preview": "a preview",
    "held": "held back",
    "approved": "about to be applied",
    "complete": "applied",
    "partial": "applied in part",
    "undone": "undone",
    "discarded": "discarded",
}
"""A night's status, for a sentence."""


# The names behind the ids of a night's operations


@dataclass
class Labels:
    """Memories by id; facts also by operation id."""

    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """`text`, `speaker` and `valid_from` at least."""
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    profiles: dict[str, str] = field(default_factory=dict)
    """Names of people and things."""

    @classmethod
    def told_by(cls, operations: Sequence[Operation]) -> Labels:
        """Labels from the operations' own values. Pure."""
        found = cls()
        for operation in with_values(operations):
            value = operation["after"] or operation["before"]
            if operation["kind"] in ("add_fact", "remove_fact"):
                found.facts[operation["target"]] = value
            elif operation["kind"] in ("add_entry", "prune_entry"):
                found.entries[operation["target"]] = value
            elif operation["kind"] in ("observe_entity", "add_entity", "remove_entity"):
                found.profiles[operation["target"]] = value["name"]
        return found

    def fact(self, op: str) -> dict[str, Any]:
        """A fact, or a placeholder if it no longer exists."""
        unknown = {"text": f"(a fact that is gone, {op[:8]})", "speaker": None, "valid_from": None}
        return self.facts.get(op) or unknown

    def of(self, id_: str) -> str:
        """A short label for an id of any kind."""
        if id_ in self.facts:
            return f'the fact "{_quoted(self.facts[id_]["text"])}"'
        if id_ in self.entries:
            return f'{id_} "{_quoted(self.entries[id_]["content"])}"'
        if id_ in self.profiles:
            return f"what is known of {self.profiles[id_]}"
        return "insights that were stored" if id_ == "reflection" else id_


async def labels_for(
    context: AgentContext, operations: Sequence[Operation], also: Iterable[str] = ()
) -> Labels:
    """Look up the targets of `operations`, and the ids in `also`."""
    names = Labels.told_by(operations)
    wanted = [*dict.fromkeys([*also, *_named(operations)])]
    store, scope, semantic = context.store, context.scope, context.semantic
    read = await journal.read_many(store, scope, wanted)
    names.entries |= {id_: dict(entry) for id_, entry in read.items() if id_ not in names.entries}
    profiles = await entities.read(store, scope, wanted)
    names.profiles |= {id_: profile["name"] for id_, profile in profiles.items()}
    known = names.entries | names.facts | names.profiles
    left = [id_ for id_ in wanted if id_ not in known]
    facts = await semantic.by_op(scope, left)
    facts |= await semantic.by_id(scope, [id_ for id_ in left if id_ not in facts])
    names.facts |= {id_: dict(fact) for id_, fact in facts.items()}
    return names


def _named(operations: Sequence[Operation]) -> Iterable[str]:
    for operation in with_values(operations):
        yield operation["target"]
        value = operation["after"] or operation["before"]
        if operation["kind"] in ("link", "unlink"):
            yield value["other"]
            yield from links.fact_ops(operation)
        elif operation["kind"] == "change_fact":
            for side in filter(None, (operation["before"], operation["after"])):
                yield from filter(None, [side.get("superseded_by")])
                for name in ("disputed", "depends_on", "doubtful"):
                    yield from side.get(name, ())


def _quoted(text: str) -> str:
    return shortened(" ".join(text.split()), QUOTED)


# Nights


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
    """Journal entries that it could not settle; they wait for the next night."""
    operations: int
    llm_calls: int
    tokens: int


async def list_nights(context: AgentContext) -> list[NightLine]:
    """Every night, oldest first."""
    records = await night.records(context.store, context.scope)
    return [await night_line(context, record) for record in records]


async def night_line(context: AgentContext, record: NightRecord) -> NightLine:
    """A night as a list has it."""
    plans = await night.plans_of(context.store, context.scope, record["id"])
    return {
        "id": record["id"],
        "started": record["started"],
        "complete": record["complete"],
        "status": night.status_told(record),
        "dry_run": record["dry_run"],
        "stopped": record.get("stopped"),
        "left": len(record["held"]),
        "operations": len(plans.operations()),
        "llm_calls": sum(plan["llm_calls"] for plan in plans),
        "tokens": sum(plan["tokens"] for plan in plans),
    }


async def night_report(context: AgentContext, name: str) -> NightReport:
    """One night with its operations. Raises as `find_night`."""
    record = await find_night(context, name)
    return night.report_of(record, await night.plans_of(context.store, context.scope, record["id"]))


async def find_night(context: AgentContext, given: str) -> NightRecord:
    """The night with the id `given`, the only one whose id begins so, or the newest for `last`."""
    wanted = given.strip()
    known = await night.records(context.store, context.scope)
    records = {record["id"]: record for record in known}
    if not known:
        raise NotFoundError("there has been no night yet; `circadian sleep` goes through one")
    if wanted == NEWEST:
        return known[-1]
    if found := match_id(wanted, records, "nights"):
        return records[found]
    raise NotFoundError(f"there is no night {wanted!r:.80}; `circadian nights` lists them")


# Previewing and applying


async def sleep(context: AgentContext, *, dry_run: bool = False) -> NightReport:
    """Go through a night; with `dry_run` apply nothing: memory, state and inbox stay as they are.

    A dry run's model calls are paid for; the same night, applied later, makes none. Without
    `dry_run` this is a run with `request: sleep`, whose own report says more.

    Raises:
        InputError: `dry_run`, and a night is open.
        BusyError: another process holds the agent.
        CircadianError: the emergency stop is set, or a step failed; what was done is kept.
    """
    if not dry_run:
        return of_run(await runs.run(context, {"request": "sleep"}, raise_on_failure=False))
    async with previewing(context) as for_the_night:
        return of_run(await runs.run(for_the_night, raise_on_failure=False))


async def want_preview(context: AgentContext) -> None:
    """Let the next run make a preview, or go on with one. Raises InputError if a night is open."""
    going = await night.unfinished(context.store, context.scope)
    if going is not None and not going["dry_run"]:
        raise _not_ended(going)
    if going is None:
        await night.want_preview(context.store, context.scope)


@asynccontextmanager
async def previewing(context: AgentContext) -> AsyncIterator[AgentContext]:
    """Hold the agent and request a preview; yields the context whose next run makes it."""
    async with context.lock():
        # Requested under the lock, so that no other process's run takes up the request.
        await want_preview(context)
        try:
            yield context.for_a_night()
        finally:
            await night.unwant_preview(context.store, context.scope)


async def apply_night(context: AgentContext, name: str) -> NightReport:
    """Apply a preview, or a night that was held back. No model is called.

    Raises:
        InputError: there is no such night, it is neither, or another night is open.
        ConflictError: what the night is about has changed since, a forget took something out of it,
            or its operations are no longer kept. Nothing is applied then.
        BusyError: another process holds the agent.
    """
    async with applying(context, name) as for_the_night:
        return of_run(await runs.run(for_the_night, raise_on_failure=False))


@asynccontextmanager
async def applying(context: AgentContext, name: str) -> AsyncIterator[AgentContext]:
    """Hold the agent and approve a night; yields the context whose next run applies it."""
    await find_night(context, name)  # a wrong id is told at once, without waiting for the lock
    async with context.held():
        record = await find_night(context, name)
        if status_of(record) != "approved":
            await _check_applicable(context, record)
            await _approve(context, record)
        yield context.for_a_night()


def of_run(output: Mapping[str, Any]) -> NightReport:
    """The night in the output of a run that was for it. Raises CircadianError if there is none."""
    report = output["report"]
    runs.check_failures(report)
    if report["night"] is None:
        raise CircadianError(" ".join(report["notes"]) or "the run ended before the night began")
    found: NightReport = report["night"]
    return found


async def _check_applicable(context: AgentContext, record: NightRecord) -> None:
    name = record["id"]
    if status_of(record) not in ("preview", "held"):
        raise InputError(f"{name} is {NIGHT_STATUS[status_of(record)]}: there is nothing to apply")
    other = await night.unfinished(context.store, context.scope)
    if other is not None and other["id"] != name:
        raise _not_ended(other)
    advice = f"; discard it with `circadian night {name} --discard`, and sleep again"
    if record.get("forgotten"):
        raise ConflictError(f"a forget took something out of {name}{advice}")
    if record.get("reduced"):
        raise ConflictError(f"{name} is too old: its operations are no longer kept{advice}")
    plans = await night.plans_of(context.store, context.scope, name)
    waiting = [
        operation
        for phase in ("compacting", "dreaming")
        if record["dry_run"] or phase not in record["applied"]
        for operation in plans.operations(phase)
    ]
    changed = await apply_conflicts(
        waiting, store=context.store, semantic=context.semantic, scope=context.scope
    )
    if changed:
        what = await _in_words(context, changed, waiting)
        raise ConflictError(f"memory has changed since {name}: {what}{advice}")
    messages = (await context.snapshot()).values.get("messages", [])
    ids = [str(message.id) for message in messages]
    # Applying a preview replaces the messages of its cut by a summary: they must still come first.
    cuts = [plan for plan in plans if plan["step"] == "compact" and plan["operations"]]
    if record["dry_run"] and any(ids[: len(cut["inputs"])] != cut["inputs"] for cut in cuts):
        raise ConflictError(f"the conversation was compacted since {name}{advice}")


async def _approve(context: AgentContext, record: NightRecord) -> None:
    """Mark the night as approved; from then on any run continues it."""
    # A preview has applied nothing: its phases only ran.
    applied_phases = [] if record["dry_run"] else record["applied"]
    approved: NightRecord = {
        **record,
        "status": "approved",
        "dry_run": False,
        "applied": applied_phases,
        "phase": "compacting" if not applied_phases else "dreaming",
        "ended": None,
    }
    entry = of_decision(approved, "night_approved", at=context.now(), who=context.scope.user)
    puts = night.begin_puts(context.scope, approved)
    await audit.write(context.store, context.scope, [entry], also=puts)


async def discard_night(context: AgentContext, name: str) -> NightReport:
    """Discard a preview, or a night that was held back: it is never applied. Idempotent.

    Raises:
        InputError: there is no such night, or it is neither.
        BusyError: another process holds the agent.
    """
    record = await find_night(context, name)
    async with context.lock():
        record = await find_night(context, record["id"])
        if status_of(record) not in ("preview", "held", "discarded"):
            status = NIGHT_STATUS[status_of(record)]
            raise InputError(f"{record['id']} is {status}: it cannot be discarded")
        if status_of(record) != "discarded":
            gone: NightRecord = {**record, "status": "discarded"}
            entry = of_decision(gone, "night_discarded", at=context.now(), who=context.scope.user)
            put = night.record_put(context.scope, gone)
            await audit.write(context.store, context.scope, [entry], also=[put])
    return await night_report(context, record["id"])


# Undoing


async def undo_night(context: AgentContext, name: str) -> NightReport:
    """Restore memory as it was before a night: facts, links, profiles, journal marks, insights.

    The conversation since then is left alone. Idempotent.

    Raises:
        InputError: there is no such night, or nothing of it was applied.
        ConflictError: a later night built on it, something that it made was changed since, a
            forget took something out of it, or what was there before is no longer kept.
        BusyError: another process holds the agent.
    """
    found = await find_night(context, name)
    store, scope, semantic = context.store, context.scope, context.semantic
    async with context.held():  # finishes an interrupted undo, of this night or another
        record = await find_night(context, found["id"])
        if status_of(record) != "undone":
            plans = await night.plans_of(store, scope, record["id"])
            await _check_undoable(context, record, applied(record, plans))
            at, who = context.now(), scope.user
            await take_back(store, semantic, scope, record["id"], at=at, who=who)
    return await night_report(context, found["id"])


async def why_not(
    context: AgentContext, record: NightRecord, plans: Plans, action: str
) -> str | None:
    """Why a night cannot be applied or undone now; None if it can, and for any other action.

    For pages, so without the commands that the errors advise.
    """
    try:
        if action == "undo":
            await _check_undoable(context, record, applied(record, plans))
        elif action == "apply" and status_of(record) != "approved":
            await _check_applicable(context, record)
    except (ConflictError, InputError) as error:
        return error.without_commands
    return None


async def _check_undoable(
    context: AgentContext, record: NightRecord, done: Sequence[Operation]
) -> None:
    name = record["id"]
    if status_of(record) not in ("complete", "held") or not record["applied"]:
        raise InputError(f"{name} is {NIGHT_STATUS[status_of(record)]}: there is nothing to undo")
    going = await night.unfinished(context.store, context.scope)
    if going is not None:
        raise _not_ended(going)
    if record.get("forgotten"):
        raise ConflictError(f"{name} can no longer be undone: a forget took something out of it")
    if record.get("reduced"):
        kept = f"the newest {context.settings.nights_kept} (nights_kept)"
        raise ConflictError(f"{name} can no longer be undone: of nights only {kept} can be")
    targets = [operation["target"] for operation in done if operation["kind"].endswith("_fact")]
    facts = await context.semantic.by_op(context.scope, list(dict.fromkeys(targets)))
    ids = {op: fact["id"] for op, fact in facts.items()}
    records = await night.records(context.store, context.scope)
    names = [record["id"] for record in records]
    later: list[tuple[str, Sequence[Operation]]] = []
    for other in records[names.index(name) + 1 :]:
        if other["dry_run"] or status_of(other) in ("undone", "preview"):
            continue
        plans = await night.plans_of(context.store, context.scope, other["id"])
        later.append((other["id"], applied(other, plans)))
    if built := built_on(done, later, ids):
        on = [f"{other} on {await _in_words(context, what, done)}" for other, what in built.items()]
        advice = f"`circadian undo {list(built)[-1]}` comes first"
        raise ConflictError(f"a later night built on {name}: {'; '.join(on)}; {advice}")
    changed = await undo_conflicts(
        inverse(done), store=context.store, semantic=context.semantic, scope=context.scope
    )
    if changed:
        what = await _in_words(context, changed, done)
        raise ConflictError(f"{name} can no longer be undone: {what} was changed since")


# Wording


def _not_ended(record: NightRecord) -> InputError:
    return InputError(f"{record['id']} is not ended; `circadian sleep` goes on with it first")


async def _in_words(
    context: AgentContext, ids: Sequence[str], operations: Sequence[Operation]
) -> str:
    names = await labels_for(context, with_values(operations), ids)
    return first_few([names.of(id_) for id_ in ids])
