"""A night: its record, its plan records, and the rule for what comes next.

Store namespaces (below `(user, thread)`):
`nights` id -> NightRecord · `night/<id>` plan key -> PlanRecord · `open_night` "open" -> {id}.
What a step decided is written under a key made from its inputs before its node returns, so that no
model answer is paid for twice. A report, a resumption and a dry run are readings of this record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from langgraph.store.base import BaseStore, PutOp

from memory.compacted import results_of
from memory.dreaming import budget
from memory.night_batches import loops, not_seen, unconsolidated, unscored
from memory.night_plans import Plans
from memory.operations import operation_id
from memory.records import JournalEntry, NightRecord, NightStatus, NightStep, PlanRecord
from memory.reports import NightReport
from memory.scope import Scope
from memory.settings import Settings
from memory.store_access import list_items, write_batch

NIGHTS, OPEN = "nights", "open_night"
STEPS = (
    "score_importance",
    "consolidate",
    "settle",
    "dream",
    "prune_links",
    "consolidate_entities",
    "reflect",
    "prune",
    "extract_facts",
    "compact",
)


def new_night(
    now: datetime, pending: Sequence[str], taken: Sequence[str], *, dry_run: bool = False
) -> NightRecord:
    """A night that sets out at `now` with the journal ids in `pending`."""
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


def model_is_down(plans: Sequence[PlanRecord]) -> bool:
    """Two steps in a row without a usable answer: no further thinking this night.

    One alone may be the fault of its batch, and must not keep the others from being settled; but
    where the service is left alone, no other batch would be asked about either.
    """
    if plans and plans[-1].get("left_alone"):
        return True
    last = [bool(plan["errors"]) and not plan.get("overflowed") for plan in plans[-2:]]
    return len(last) == 2 and all(last)


def next_step(
    record: NightRecord,
    plans: Plans,
    settings: Settings,
    *,
    waking: bool,
    compaction_due: bool,
) -> str:
    """The node to visit next. The one place that orders a night (design section 2).

    A waking event never interrupts compacting, and leaves the rest of dreaming to the next night.
    What a preview or a held night decided is only applied.
    """
    decided = record.get("status") == "approved"
    thinking = not decided and stopped(record, plans, settings) is None
    if "compacting" not in record["applied"]:
        return (_compacting(plans, settings) if thinking else None) or "apply_operations"
    if "dreaming" in record["applied"]:
        return "record_night"
    if decided:
        return "apply_operations"
    if record.get("status") == "held":
        return "record_night"
    if "gate" in record:
        return "apply_operations"
    step = None if waking else _dreaming(record, plans, settings, thinking=thinking)
    if step is None and compaction_due and not waking and not _compacted(plans):
        return "extract_facts"
    return step or "weigh_night"


def _compacted(plans: Sequence[PlanRecord]) -> bool:
    """Whether the history was cut, or would not be."""
    return any(plan["step"] == "compact" for plan in plans)


def _compacting(plans: Plans, settings: Settings) -> str | None:
    if unscored(plans):
        return "score_importance"
    if loops(plans) or unconsolidated(plans, settings.min_importance):
        return "consolidate"
    return None


def _dreaming(
    record: NightRecord, plans: Sequence[PlanRecord], settings: Settings, *, thinking: bool
) -> str | None:
    done = {plan["step"] for plan in plans}
    if thinking and facts_left(record, plans):
        return "dream"
    if "prune_links" not in done:
        return "prune_links"
    if thinking and entities_left(record, plans):
        return "consolidate_entities"
    if thinking and record.get("reflect") and not reflected(plans):
        return "reflect"
    return None if "prune" in done else "prune"


def facts_left(record: NightRecord, plans: Sequence[PlanRecord]) -> list[str]:
    """The facts (operation ids) that `dream` has not looked at yet."""
    return not_seen(record.get("facts", []), "dream", plans)


def entities_left(record: NightRecord, plans: Sequence[PlanRecord]) -> list[str]:
    """The entities whose observations are not consolidated yet."""
    return not_seen(record.get("entities", []), "consolidate_entities", plans)


def reflected(plans: Sequence[PlanRecord]) -> bool:
    """Whether the night's reflection is over."""
    return any(plan["step"] == "reflect" and plan.get("finished", True) for plan in plans)


def stopped(record: NightRecord, plans: Sequence[PlanRecord], settings: Settings) -> str | None:
    """Why no step that asks a model is begun any more; None while the night goes on.

    Once it stopped it stays so: steps without a model come after, and the plans look well again.
    """
    if why := record.get("stopped"):
        return why
    if model_is_down(plans):
        return "the model gives no usable answer"
    return budget.used_up(plans, record, settings)


def left_over(record: NightRecord, plans: Plans, settings: Settings) -> bool:
    """Whether there is work that a night which stopped, or was called away, leaves to the next."""
    compacting = "compacting" not in record["applied"] or _compacting(plans, settings)
    dreams = facts_left(record, plans) or entities_left(record, plans)
    pruned = any(plan["step"] == "prune" for plan in plans)
    rest = (record.get("reflect") and not reflected(plans)) or not pruned
    return bool(compacting or dreams or rest)


def step_lines(plans: Sequence[PlanRecord]) -> list[NightStep]:
    """A line per step that had anything to do, in the order of the night, for its report."""
    lines = []
    for step in STEPS:
        mine = [plan for plan in plans if plan["step"] == step]
        shown = {one for plan in mine for one in plan["inputs"]}
        left = {one for plan in mine if plan.get("finished", True) for one in plan["left"]}
        # A step that looks at everything counts what it changes.
        done = len(shown - left) if shown else sum(len(plan["operations"]) for plan in mine)
        if not shown and not done:
            continue
        lines.append(
            NightStep(
                step=step,
                done=done,
                skipped=len(left),
                llm_calls=sum(plan["llm_calls"] for plan in mine),
                tokens=sum(plan["tokens"] for plan in mine),
                seconds=round(sum(plan["seconds"] for plan in mine), 3),
            )
        )
    return lines


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
        "operations": list(plans.operations()),
        "errors": record["errors"],
        **results_of(plans),
        "status": status_of(record),
        "stopped": record.get("stopped"),
        "gate": record.get("gate"),
        "refused": [one for plan in plans for one in plan.get("refused", [])],
    }


def status_of(record: NightRecord) -> NightStatus:
    """What has become of a night."""
    return record.get("status", "complete" if record["ended"] else "open")


def empty_report(now: datetime, *, dry_run: bool = False) -> NightReport:
    """A night with nothing to do: no record is kept and no model called."""
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


async def keep(store: BaseStore, scope: Scope, record: NightRecord) -> None:
    """Write a night's head."""
    await write_batch(store, [record_put(scope, record)])


def begin_puts(scope: Scope, record: NightRecord) -> list[PutOp]:
    """The writes of a night's head with which any run goes on with it, to join a transaction."""
    return [record_put(scope, record), _pointer(scope, record["id"])]


async def want_preview(store: BaseStore, scope: Scope) -> None:
    """Ask the next run for a night that applies nothing."""
    await store.aput(scope.namespace(OPEN), "preview", {}, index=False)


async def preview_wanted(store: BaseStore, scope: Scope) -> bool:
    """Whether a night that applies nothing was asked for, and is not begun."""
    return await store.aget(scope.namespace(OPEN), "preview") is not None


async def is_due(store: BaseStore, scope: Scope) -> bool:
    """Whether a preview was asked for, or a night is to be gone on with."""
    return await preview_wanted(store, scope) or await is_going(store, scope)


async def is_going(store: BaseStore, scope: Scope) -> bool:
    """Whether a night was begun and not ended."""
    return await unfinished(store, scope) is not None


async def unwant_preview(store: BaseStore, scope: Scope) -> None:
    """It is begun, or there is nothing to do."""
    await store.adelete(scope.namespace(OPEN), "preview")


async def unfinished(store: BaseStore, scope: Scope) -> NightRecord | None:
    """The night that was begun and not ended, if any."""
    pointer = await store.aget(scope.namespace(OPEN), "open")
    return await load(store, scope, pointer.value["id"]) if pointer else None


async def load(store: BaseStore, scope: Scope, night_id: str) -> NightRecord | None:
    """A night's head, or None."""
    item = await store.aget(scope.namespace(NIGHTS), night_id)
    return cast(NightRecord, item.value) if item else None


async def all_ids(store: BaseStore, scope: Scope) -> list[str]:
    """The ids of all nights, oldest first."""
    return [record["id"] for record in await records(store, scope)]


async def records(store: BaseStore, scope: Scope) -> list[NightRecord]:
    """Every night's head, oldest first."""
    items = await list_items(store, scope.namespace(NIGHTS))
    found = (cast(NightRecord, item.value) for item in items)
    return sorted(found, key=lambda one: (one["started"], len(one["id"]), one["id"]))


async def plans_of(
    store: BaseStore,
    scope: Scope,
    night_id: str,
    entries: Mapping[str, JournalEntry] | None = None,
) -> Plans:
    """A night's plan records, in order; `entries`: those it set out with, where they are asked."""
    items = await list_items(store, scope.namespace("night", night_id))
    plans = sorted((cast(PlanRecord, i.value) for i in items), key=lambda plan: plan["order"])
    return Plans(plans, entries)


def plan_put(scope: Scope, night_id: str, plan: PlanRecord) -> PutOp:
    """The write of what a step decided, to join a transaction."""
    namespace = scope.namespace("night", night_id)
    return PutOp(namespace, plan["key"], cast(dict[str, Any], dict(plan)), index=False)


def end_puts(scope: Scope, record: NightRecord) -> list[PutOp]:
    """The writes that end a night and close it, to join a transaction."""
    return [record_put(scope, record), _pointer(scope, None)]


def record_put(scope: Scope, record: NightRecord) -> PutOp:
    """The write of a night's head."""
    return PutOp(scope.namespace(NIGHTS), record["id"], cast(dict[str, Any], dict(record)))


def _pointer(scope: Scope, night_id: str | None) -> PutOp:
    return PutOp(scope.namespace(OPEN), "open", {"id": night_id} if night_id else None)
