"""The record and the plans of a night in the store, and its report.

Store namespaces (below `(user, thread)`):
`nights` id -> NightRecord · `night/<id>` plan key -> PlanRecord · `open_night` "open" -> {id},
"preview" -> {} while a preview is asked for · `probes` number -> Probe, a ring of the newest.

A plan records what a step decided about one batch. It is written under a key made from its inputs
before its node returns, so that no model answer is paid for twice. Report, preview, resumption and
undo all read the record and the plans.

A night is tried out on probes before it is applied: would earlier recalls still find their sources?
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, cast, overload

from langgraph.store.base import BaseStore, PutOp

from memory.operations import entries_after
from memory.records import (
    JournalEntry,
    NightRecord,
    NightReport,
    NightStatus,
    NightStep,
    Operation,
    PlanRecord,
    Probe,
    RecallHit,
    Scope,
    operation_id,
    results_of,
)
from memory.storage import list_items, write_batch

NIGHTS, OPEN = "nights", "open_night"

STEPS = (
    "score_importance",
    "consolidate",
    "settle",
    "dream",
    "prune_links",
    "consolidate_entities",
    "write_pages",
    "reflect",
    "prune",
    "extract_facts",
    "compact",
)
"""The steps that make plans, in the order of the night."""


class Plans(Sequence[PlanRecord]):
    """A night's plan records, in order, and what follows from them, found when each is added."""

    def __init__(
        self, plans: Iterable[PlanRecord] = (), entries: Mapping[str, JournalEntry] | None = None
    ) -> None:
        """`entries`: the journal entries that the night began with, by id, as stored."""
        self.entries = entries or {}
        self._plans = list[PlanRecord]()
        self._decided: dict[str | None, dict[str, Operation]] = defaultdict(dict)
        """By phase, and by operation id: of two operations with one id the first counts."""
        self._standing = dict(self.entries)
        self.extend(plans)

    @overload
    def __getitem__(self, place: int) -> PlanRecord: ...
    @overload
    def __getitem__(self, place: slice) -> list[PlanRecord]: ...
    def __getitem__(self, place: int | slice) -> PlanRecord | list[PlanRecord]:
        return self._plans[place]

    def __len__(self) -> int:
        return len(self._plans)

    def __repr__(self) -> str:
        return f"Plans({self._plans!r})"

    def extend(self, plans: Iterable[PlanRecord]) -> None:
        """Add later plans."""
        known = len(self._decided["compacting"])
        for plan in plans:
            self._plans.append(plan)
            for one in plan["operations"]:
                self._decided[None].setdefault(one["id"], one)
                self._decided[plan["phase"]].setdefault(one["id"], one)
        self._standing = entries_after(self._standing, self.operations("compacting")[known:])

    def with_key(self, key: str) -> PlanRecord | None:
        """The plan with this key, if there is one."""
        return next((plan for plan in self._plans if plan["key"] == key), None)

    def of(self, step: str) -> list[PlanRecord]:
        """The plans of one step, in order."""
        return [plan for plan in self._plans if plan["step"] == step]

    def next_order(self) -> int:
        """The position of the next plan in the night, from 0."""
        return max((plan["order"] for plan in self._plans), default=-1) + 1

    def operations(self, phase: str | None = None) -> list[Operation]:
        """All operations, or those of one phase, in order, each once."""
        return list(self._decided[phase].values())

    def pending(self) -> list[JournalEntry]:
        """The night's entries that compacting has not settled, with the changes decided so far."""
        standing = (self._standing[id_] for id_ in self.entries if id_ in self._standing)
        return [entry for entry in standing if entry["consolidation"] == "pending"]


def new_night(
    now: datetime, pending: Sequence[str], taken: Sequence[str], *, dry_run: bool = False
) -> NightRecord:
    """A night that begins at `now` with the journal ids `pending`; `taken`: ids of other nights."""
    name = f"night_{now:%Y%m%d_%H%M%S}"
    same = sum(other.startswith(name) for other in taken)
    return {
        "id": f"{name}_{same + 1}" if same else name,
        "dry_run": dry_run,
        "started": now.isoformat(),
        "ended": None,
        "complete": False,
        "status": "open",
        "stopped": None,
        "held": [],
        "pending": list(pending),
        "phase": "compacting",
        "applied": [],
        "steps": [],
        "errors": [],
    }


def plan_key(night_id: str, step: str, iteration: int, inputs: Sequence[str]) -> str:
    """The key of a plan record: the same inputs in the same night find the same plan."""
    return operation_id("plan", night_id, step, str(iteration), *inputs)


def status_of(record: NightRecord) -> NightStatus:
    """The status of a night. Records of older versions have none."""
    return record.get("status", "complete" if record["ended"] else "open")


def status_told(record: NightRecord) -> NightStatus:
    """The status in reports: an applied night that is not complete is told as `partial`."""
    status = status_of(record)
    return "partial" if status == "complete" and not record["complete"] else status


def step_lines(plans: Plans) -> list[NightStep]:
    """The report's lines: the steps that had anything to do, in the order of the night."""
    lines = ((step, _step_line(step, plans.of(step))) for step in STEPS)
    return [line for step, line in lines if plans.of(step) and (line["done"] or line["skipped"])]


def _step_line(step: str, plans: Sequence[PlanRecord]) -> NightStep:
    inputs = {id_ for plan in plans for id_ in plan["inputs"]}
    left = {id_ for plan in plans if plan.get("finished", True) for id_ in plan["left"]}
    operations = sum(len(plan["operations"]) for plan in plans)
    return NightStep(
        step=step,
        # A step without inputs looks at everything, so its operations are counted.
        done=len(inputs - left) if inputs else operations,
        skipped=len(left),
        llm_calls=sum(plan["llm_calls"] for plan in plans),
        tokens=sum(plan["tokens"] for plan in plans),
        seconds=round(sum(plan["seconds"] for plan in plans), 3),
    )


def report_of(record: NightRecord, plans: Plans) -> NightReport:
    """The night as `sleep --json` prints it."""
    return {
        "id": record["id"],
        "dry_run": record["dry_run"],
        "started": record["started"],
        "ended": record["ended"],
        "complete": record["complete"],
        "held": record["held"],
        "steps": record["steps"] or step_lines(plans),
        "operations": plans.operations(),
        "errors": record["errors"],
        **results_of(plans),
        "status": status_told(record),
        "stopped": record.get("stopped"),
        "left": record.get("left", {}),
        "gate": record.get("gate"),
        "refused": [why for plan in plans for why in plan.get("refused", [])],
    }


def empty_report(now: datetime, *, dry_run: bool = False) -> NightReport:
    """The report of a night with nothing to do: it has no record and called no model."""
    return {
        "id": None,
        "dry_run": dry_run,
        "started": now.isoformat(),
        "ended": now.isoformat(),
        "complete": True,
        "held": [],
        "steps": [],
        "operations": [],
        "errors": [],
    }


async def load(store: BaseStore, scope: Scope, night_id: str) -> NightRecord | None:
    """The record of a night, or None."""
    item = await store.aget(scope.namespace(NIGHTS), night_id)
    return cast(NightRecord, item.value) if item else None


async def records(store: BaseStore, scope: Scope) -> list[NightRecord]:
    """The records of all nights, oldest first."""
    items = await list_items(store, scope.namespace(NIGHTS))
    found = (cast(NightRecord, item.value) for item in items)
    return sorted(found, key=lambda record: (record["started"], len(record["id"]), record["id"]))


async def plans_of(
    store: BaseStore, scope: Scope, night_id: str, entries: Mapping[str, JournalEntry] | None = None
) -> Plans:
    """The plans of a night, in order. `entries`: the journal entries that it began with."""
    items = await list_items(store, scope.namespace("night", night_id))
    plans = sorted((cast(PlanRecord, i.value) for i in items), key=lambda plan: plan["order"])
    return Plans(plans, entries)


async def unfinished(store: BaseStore, scope: Scope) -> NightRecord | None:
    """The night that was begun and not ended, if any."""
    pointer = await store.aget(scope.namespace(OPEN), "open")
    return await load(store, scope, pointer.value["id"]) if pointer else None


async def preview_wanted(store: BaseStore, scope: Scope) -> bool:
    """Whether a preview was requested and has not begun."""
    return await store.aget(scope.namespace(OPEN), "preview") is not None


async def is_due(store: BaseStore, scope: Scope) -> bool:
    """Whether the next run begins a preview or goes on with a night."""
    return await preview_wanted(store, scope) or await unfinished(store, scope) is not None


async def want_preview(store: BaseStore, scope: Scope) -> None:
    """Request a preview, a night that applies nothing, from the next run."""
    await store.aput(scope.namespace(OPEN), "preview", {}, index=False)


async def unwant_preview(store: BaseStore, scope: Scope) -> None:
    """Withdraw the request for a preview."""
    await store.adelete(scope.namespace(OPEN), "preview")


async def keep(store: BaseStore, scope: Scope, record: NightRecord) -> None:
    """Write a night's record."""
    await write_batch(store, [record_put(scope, record)])


def begin_puts(scope: Scope, record: NightRecord) -> list[PutOp]:
    """Writes that make `record` the night that any run goes on with."""
    return [record_put(scope, record), _pointer(scope, record["id"])]


def end_puts(scope: Scope, record: NightRecord) -> list[PutOp]:
    """Writes that end a night: its record, and no night to go on with."""
    return [record_put(scope, record), _pointer(scope, None)]


def record_put(scope: Scope, record: NightRecord) -> PutOp:
    """The write of a night's record."""
    return PutOp(scope.namespace(NIGHTS), record["id"], cast(dict[str, Any], dict(record)))


def plan_put(scope: Scope, night_id: str, plan: PlanRecord) -> PutOp:
    """The write of a plan record."""
    namespace = scope.namespace("night", night_id)
    return PutOp(namespace, plan["key"], cast(dict[str, Any], dict(plan)), index=False)


def _pointer(scope: Scope, night_id: str | None) -> PutOp:
    return PutOp(scope.namespace(OPEN), "open", {"id": night_id} if night_id else None)


async def reduce_old(store: BaseStore, scope: Scope, *, keep: int) -> str | None:
    """Remove memory contents from nights older than the newest `keep` applied ones.

    Ids, kinds and reasons of operations stay; values that an undo needs go. Returns when the oldest
    night began that can be undone; None while all of them can.
    """
    known = await records(store, scope)
    applied = [one for one in known if one["applied"] and not one["dry_run"]]
    if len(applied) <= keep:
        return None
    too_old = known[: known.index(applied[-keep - 1]) + 1]
    for record in too_old:
        if record["ended"] and not record.get("reduced"):
            plans = [_reduced(plan) for plan in await plans_of(store, scope, record["id"])]
            puts = [plan_put(scope, record["id"], plan) for plan in plans]
            await write_batch(store, [*puts, record_put(scope, {**record, "reduced": True})])
    return applied[-max(keep, 1)]["started"]


def _reduced(plan: PlanRecord) -> PlanRecord:
    bare = [cast(Operation, {**one, "before": None, "after": None}) for one in plan["operations"]]
    return {**plan, "operations": bare, "exchange": []}


PROBES = "probes"

PROBED = 3
"""Memories whose sources a probe remembers."""

LONGEST_PROBE = 500
"""Characters of a query that may become a probe."""


async def keep_probe(
    query: str,
    hits: Sequence[RecallHit],
    *,
    store: BaseStore,
    scope: Scope,
    now: datetime,
    most: int,
) -> None:
    """Keep a recall that found something, in the place that its words hash to among `most`."""
    if not hits or most < 1 or len(query) > LONGEST_PROBE:
        return
    place = int.from_bytes(blake2b(query.encode(), digest_size=8).digest()) % most
    found = list(dict.fromkeys(source for hit in hits[:PROBED] for source in hit["sources"]))
    probe: Probe = {"query": query, "found": found, "at": now.isoformat()}
    await store.aput(scope.namespace(PROBES), f"{place:04}", cast(Any, probe), index=False)


async def kept_probes(store: BaseStore, scope: Scope) -> list[Probe]:
    """The probes, in no particular order."""
    items = await list_items(store, scope.namespace(PROBES))
    return [cast(Probe, item.value) for item in items]
