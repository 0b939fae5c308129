"""Which entries and facts a night's step works on next, and how they are shown. Pure.

The most important come first, so that a night that has to stop has done what matters; within a
batch they stand in the order of their time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from memory.apply import entries_after
from memory.fact_changes import without_rivals
from memory.journal import by_time, one_line
from memory.operations import mark_entry
from memory.records import JournalEntry, Operation, PlanRecord
from memory.tokens import approximate_tokens

Item = TypeVar("Item")


def operations_of(plans: Sequence[PlanRecord], phase: str | None = None) -> list[Operation]:
    """All operations of a night, or of one phase, in order, each once, and without rivals."""
    seen: dict[str, Operation] = {}
    for plan in plans:
        if phase in (None, plan["phase"]):
            for operation in plan["operations"]:
                seen.setdefault(operation["id"], operation)
    return without_rivals(list(seen.values()))


def to_score(
    entries: Mapping[str, JournalEntry],
    plans: Sequence[PlanRecord],
    *,
    size: int,
    tokens: int,
    most: int = 1,
) -> list[list[JournalEntry]]:
    """The next batches to score, `most` of them: still heuristic, not yet tried tonight."""
    mine = [plan for plan in plans if plan["step"] == "score_importance"]
    tried = {one for plan in mine if not comes_again(plan) for one in plan["inputs"]}
    waiting = [
        entry
        for entry in entries.values()
        if entry["consolidation"] == "pending"
        and entry["scoring_method"] == "heuristic"
        and entry["id"] not in tried
    ]
    return _entry_batches(waiting, mine, size, tokens, most)


def to_consolidate(
    entries: Mapping[str, JournalEntry],
    plans: Sequence[PlanRecord],
    *,
    min_importance: int,
    size: int,
    tokens: int,
    most: int = 1,
) -> list[list[JournalEntry]]:
    """The next batches for `consolidate`: loops that go on, then new ones, `most` in all.

    A new batch is of entries that are scored and important enough, and in no loop yet.
    """
    mine = [plan for plan in plans if plan["step"] == "consolidate"]
    last = {tuple(plan["inputs"]): plan for plan in mine}
    going = [ids for ids, plan in last.items() if not plan.get("finished")]
    taken = {one for plan in mine if not comes_again(plan) for one in plan["inputs"]}
    waiting = [
        entry
        for entry in unsettled(entries, plans)
        if entry["scoring_method"] != "heuristic"
        and entry["importance"] >= min_importance
        and entry["id"] not in taken
    ]
    loops = [[entries[one] for one in ids if one in entries] for ids in going][:most]
    new = _entry_batches(waiting, mine, size, tokens, most - len(loops))
    return [*(loop for loop in loops if loop), *new]


def entry_lines(batch: Sequence[JournalEntry], tokens: int) -> str:
    """The batch as a model is shown it, a line an entry; one that alone is over `tokens` is cut."""
    return "\n".join(cut(one_line(entry), tokens) for entry in batch)


def _entry_batches(
    waiting: Sequence[JournalEntry],
    plans: Sequence[PlanRecord],
    size: int,
    tokens: int,
    most: int,
) -> list[list[JournalEntry]]:
    ordered = sorted(waiting, key=lambda one: (-one["importance"], one["timestamp"], one["id"]))
    found = batches(ordered, plans, size=size, tokens=tokens, most=most, shown=one_line)
    return [by_time(batch) for batch in found]


def batches(
    waiting: Sequence[Item],
    plans: Sequence[PlanRecord],
    *,
    size: int,
    tokens: int,
    most: int,
    shown: Callable[[Item], str],
) -> list[list[Item]]:
    """`waiting` in at most `most` batches of at most `size` items and `tokens` as they are shown.

    Each has one item at least. After an overflow batches are half as large as the one that was too
    long.
    """
    halves = [max(1, len(plan["inputs"]) // 2) for plan in plans if plan.get("overflowed")]
    size, found, left = min([size, *halves]), list[list[Item]](), 0
    for item in waiting:
        used = approximate_tokens(cut(shown(item), tokens))
        if not found or len(found[-1]) >= size or left < used:
            if len(found) >= most:
                break
            found.append([])
            left = tokens
        found[-1].append(item)
        left -= used
    return found


def cut(line: str, tokens: int) -> str:
    """`line`, shortened where it alone has more than `tokens`."""
    used = approximate_tokens(line)
    return line if used <= tokens else f"{line[: len(line) * tokens // used]} [...]"


def comes_again(plan: PlanRecord) -> bool:
    """Whether the inputs of a plan were too long together, and come again in halves."""
    return bool(plan.get("overflowed")) and not plan["errors"]


def not_seen(ids: Sequence[str], step: str, plans: Sequence[PlanRecord]) -> list[str]:
    """Those of `ids` that the step has not worked on yet."""
    mine = [plan for plan in plans if plan["step"] == step and not comes_again(plan)]
    seen = {one for plan in mine for one in plan["inputs"]}
    return [one for one in ids if one not in seen]


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
