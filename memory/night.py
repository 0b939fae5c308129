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

from memory.apply import entries_after
from memory.journal import by_time, one_line
from memory.operations import mark_entry, operation_id
from memory.records import JournalEntry, NightRecord, NightStep, Operation, PlanRecord
from memory.reports import NightReport
from memory.scope import Scope
from memory.settings import Settings
from memory.store_access import list_items, write_batch
from memory.tokens import approximate_tokens

NIGHTS, OPEN = "nights", "open_night"
STEPS = ("score_importance", "consolidate", "settle", "extract_facts", "compact")


def new_night(now: datetime, pending: Sequence[str], taken: Sequence[str]) -> NightRecord:
    """A night that sets out at `now` with the journal ids in `pending`."""
    name = f"night_{now:%Y%m%d_%H%M%S}"
    same = sum(1 for other in taken if other.startswith(name))
    return {
        "id": f"{name}_{same + 1}" if same else name,
        "dry_run": False,
        "started": now.isoformat(),
        "ended": None,
        "complete": False,
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


def operations_of(plans: Sequence[PlanRecord], phase: str | None = None) -> list[Operation]:
    """All operations of a night, or of one phase, in order, each once."""
    seen: dict[str, Operation] = {}
    for plan in plans:
        if phase in (None, plan["phase"]):
            for operation in plan["operations"]:
                seen.setdefault(operation["id"], operation)
    return list(seen.values())


def model_is_down(plans: Sequence[PlanRecord]) -> bool:
    """Two steps in a row without a usable answer: no further thinking this night.

    One alone may be the fault of its batch, and must not keep the others from being settled; but
    where the service is left alone, no other batch would be asked about either.
    """
    if plans and plans[-1].get("left_alone"):
        return True
    last = [bool(plan["errors"]) and not plan.get("overflowed") for plan in plans[-2:]]
    return len(last) == 2 and all(last)


def to_score(
    entries: Mapping[str, JournalEntry], plans: Sequence[PlanRecord], *, size: int, tokens: int
) -> list[JournalEntry]:
    """The next batch to score: still heuristic, not yet tried tonight; oldest first."""
    mine = [plan for plan in plans if plan["step"] == "score_importance"]
    tried = {one for plan in mine if not _comes_again(plan) for one in plan["inputs"]}
    waiting = [
        entry
        for entry in by_time(entries.values())
        if entry["consolidation"] == "pending"
        and entry["scoring_method"] == "heuristic"
        and entry["id"] not in tried
    ]
    return _batch(waiting, mine, size, tokens)


def to_consolidate(
    entries: Mapping[str, JournalEntry],
    plans: Sequence[PlanRecord],
    *,
    min_importance: int,
    size: int,
    tokens: int,
) -> list[JournalEntry]:
    """The next batch for `consolidate`: scored, important enough, loop not closed; oldest first."""
    mine = [plan for plan in plans if plan["step"] == "consolidate"]
    done = [plan for plan in mine if plan.get("finished") and not _comes_again(plan)]
    closed = {one for plan in done for one in plan["inputs"]}
    waiting = [
        entry
        for entry in unsettled(entries, plans)
        if entry["scoring_method"] != "heuristic"
        and entry["importance"] >= min_importance
        and entry["id"] not in closed
    ]
    return _batch(waiting, mine, size, tokens)


def entry_lines(batch: Sequence[JournalEntry], tokens: int) -> str:
    """The batch as a model is shown it, a line an entry; one that alone is over `tokens` is cut."""
    return "\n".join(_cut(one_line(entry), tokens) for entry in batch)


def _batch(
    waiting: Sequence[JournalEntry], plans: Sequence[PlanRecord], size: int, tokens: int
) -> list[JournalEntry]:
    """The first entries that are at most `size` and `tokens` together, and at least one.

    After an overflow batches are half as large as the one that was too long.
    """
    halves = [max(1, len(plan["inputs"]) // 2) for plan in plans if plan.get("overflowed")]
    most, batch = min([size, *halves]), list[JournalEntry]()
    left = tokens
    for entry in waiting[:most]:
        left -= approximate_tokens(_cut(one_line(entry), tokens))
        if batch and left < 0:
            break
        batch.append(entry)
    return batch


def _cut(line: str, tokens: int) -> str:
    used = approximate_tokens(line)
    return line if used <= tokens else f"{line[: len(line) * tokens // used]} [...]"


def _comes_again(plan: PlanRecord) -> bool:
    return bool(plan.get("overflowed")) and not plan["errors"]


def below_threshold(
    entries: Mapping[str, JournalEntry], plans: Sequence[PlanRecord], min_importance: int
) -> list[Operation]:
    """Marks for entries that were scored and are not important enough (ruling 12)."""
    return [
        mark_entry(entry, "below_threshold", f"importance {entry['importance']} < {min_importance}")
        for entry in unsettled(entries, plans)
        if entry["scoring_method"] != "heuristic" and entry["importance"] < min_importance
    ]


def unsettled(
    entries: Mapping[str, JournalEntry], plans: Sequence[PlanRecord]
) -> list[JournalEntry]:
    """The night's entries that are still pending, seen through its operations; oldest first."""
    after = entries_after(dict(entries), operations_of(plans, "compacting"))
    return [
        entry
        for entry in by_time(after.values())
        if entry["consolidation"] == "pending" and entry["id"] in entries
    ]


def next_step(
    record: NightRecord,
    entries: Mapping[str, JournalEntry],
    plans: Sequence[PlanRecord],
    settings: Settings,
    *,
    failed: bool,
    waking: bool,
    compaction_due: bool,
) -> str:
    """The node to visit next. The one place that orders a night (design section 2)."""
    if "compacting" not in record["applied"]:
        most = settings.night_batch_tokens
        if not failed and to_score(entries, plans, size=1, tokens=most):
            return "score_importance"
        least = settings.min_importance
        if not failed and to_consolidate(entries, plans, min_importance=least, size=1, tokens=most):
            return "consolidate"
        return "apply_operations"
    if "dreaming" not in record["applied"]:
        if compaction_due and not failed and not waking:
            return "extract_facts"
        return "apply_operations"
    return "record_night"


def step_lines(plans: Sequence[PlanRecord]) -> list[NightStep]:
    """A line per step, in the order of the night, for its report."""
    lines = []
    for step in STEPS:
        mine = [plan for plan in plans if plan["step"] == step]
        if not mine:
            continue
        shown = {one for plan in mine for one in plan["inputs"]}
        left = {one for plan in mine if plan.get("finished", True) for one in plan["left"]}
        lines.append(
            NightStep(
                step=step,
                done=len(shown - left),
                skipped=len(left),
                llm_calls=sum(plan["llm_calls"] for plan in mine),
                tokens=sum(plan["tokens"] for plan in mine),
                seconds=round(sum(plan["seconds"] for plan in mine), 3),
            )
        )
    return lines


def report_of(record: NightRecord, plans: Sequence[PlanRecord]) -> NightReport:
    """The night as `sleep --json` prints it."""
    return {
        "id": record["id"],
        "dry_run": record["dry_run"],
        "started": record["started"],
        "ended": record["ended"],
        "complete": record["complete"],
        "held": record["held"],
        "steps": record["steps"] or step_lines(plans),
        "operations": operations_of(plans),
        "errors": record["errors"],
    }


def empty_report(now: datetime) -> NightReport:
    """A night with nothing to do: no record is kept and no model called."""
    stamp = now.isoformat()
    return {
        "id": None,
        "dry_run": False,
        "started": stamp,
        "ended": stamp,
        "complete": True,
        "held": [],
        "steps": [],
        "operations": [],
        "errors": [],
    }


async def begin(store: BaseStore, scope: Scope, record: NightRecord) -> None:
    """Write a new night's head; from here on any run goes on with it."""
    await write_batch(store, [record_put(scope, record), _pointer(scope, record["id"])])


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
    return [item.key for item in await list_items(store, scope.namespace(NIGHTS))]


async def plans_of(store: BaseStore, scope: Scope, night_id: str) -> list[PlanRecord]:
    """A night's plan records, in order."""
    items = await list_items(store, scope.namespace("night", night_id))
    return sorted((cast(PlanRecord, i.value) for i in items), key=lambda plan: plan["order"])


def plan_put(scope: Scope, night_id: str, plan: PlanRecord) -> PutOp:
    """The write of what a step decided, to join a transaction."""
    namespace = scope.namespace("night", night_id)
    return PutOp(namespace, plan["key"], cast(dict[str, Any], dict(plan)), index=False)


def end_puts(scope: Scope, record: NightRecord) -> list[PutOp]:
    """The writes that end a night and close it, to join a transaction."""
    return [record_put(scope, record), _pointer(scope, None)]


def record_put(scope: Scope, record: NightRecord) -> PutOp:
    """The write of a night's head, to join a transaction."""
    return PutOp(scope.namespace(NIGHTS), record["id"], cast(dict[str, Any], dict(record)))


def _pointer(scope: Scope, night_id: str | None) -> PutOp:
    return PutOp(scope.namespace(OPEN), "open", {"id": night_id} if night_id else None)
