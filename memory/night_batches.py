"""Which entries and facts a night's step works on next, and how they are shown. Pure.

The most important come first, so that a night that has to stop has done what matters; within a
batch they stand in the order of their time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from memory.journal import by_time, one_line
from memory.night_plans import Plans
from memory.operations import mark_entry
from memory.records import JournalEntry, Operation, PlanRecord
from memory.tokens import approximate_tokens

Item = TypeVar("Item")


def unscored(plans: Plans) -> list[JournalEntry]:
    """The entries to score: still heuristic, not yet tried tonight."""
    tried = _worked_on("score_importance", plans)
    return [
        entry
        for entry in plans.entries.values()
        if entry["consolidation"] == "pending"
        and entry["scoring_method"] == "heuristic"
        and entry["id"] not in tried
    ]


def to_score(plans: Plans, *, size: int, tokens: int, most: int = 1) -> list[list[JournalEntry]]:
    """The next batches to score, `most` of them."""
    return _entry_batches(unscored(plans), _of("score_importance", plans), size, tokens, most)


def unconsolidated(plans: Plans, min_importance: int) -> list[JournalEntry]:
    """The entries to consolidate that are in no loop yet: scored, and important enough."""
    taken = _worked_on("consolidate", plans)
    return [
        entry
        for entry in plans.pending()
        if entry["scoring_method"] != "heuristic"
        and entry["importance"] >= min_importance
        and entry["id"] not in taken
    ]


def loops(plans: Plans) -> list[list[JournalEntry]]:
    """The batches that `consolidate` goes on with: their last turn has not settled them."""
    last = {tuple(plan["inputs"]): plan for plan in _of("consolidate", plans)}
    going = (ids for ids, plan in last.items() if not plan.get("finished"))
    found = ([plans.entries[one] for one in ids if one in plans.entries] for ids in going)
    return [loop for loop in found if loop]


def to_consolidate(
    plans: Plans, *, min_importance: int, size: int, tokens: int, most: int = 1
) -> list[list[JournalEntry]]:
    """The next batches for `consolidate`: loops that go on, then new ones, `most` in all."""
    going = loops(plans)[:most]
    waiting = unconsolidated(plans, min_importance)
    left = most - len(going)
    return [*going, *_entry_batches(waiting, _of("consolidate", plans), size, tokens, left)]


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
    seen = _worked_on(step, plans)
    return [one for one in ids if one not in seen]


def below_threshold(plans: Plans, min_importance: int) -> list[Operation]:
    """Marks for entries that were scored and are not important enough (ruling 12)."""
    return [
        mark_entry(entry, "below_threshold", f"importance {entry['importance']} < {min_importance}")
        for entry in by_time(plans.pending())
        if entry["scoring_method"] != "heuristic" and entry["importance"] < min_importance
    ]


def _of(step: str, plans: Sequence[PlanRecord]) -> list[PlanRecord]:
    return [plan for plan in plans if plan["step"] == step]


def _worked_on(step: str, plans: Sequence[PlanRecord]) -> set[str]:
    """What a step had before it, but for what comes again."""
    mine = (plan for plan in _of(step, plans) if not comes_again(plan))
    return {one for plan in mine for one in plan["inputs"]}
