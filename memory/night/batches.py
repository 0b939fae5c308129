"""What each step of a night still has to do, and the next batch of it. Pure.

The most important items come first, so that a night that has to stop early has done what matters.
Within a batch, journal entries stand in the order of their time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from memory.journal import by_time
from memory.messages import prompt_lines
from memory.night.plans import Plans
from memory.records import JournalEntry, NightRecord, Operation, PlanRecord, mark_entry
from memory.settings import Settings
from memory.text import approximate_tokens

Item = TypeVar("Item")


def unscored(plans: Plans) -> list[JournalEntry]:
    """The entries to score: importance still heuristic, not tried tonight."""
    tried = _worked_on("score_importance", plans)
    return [
        entry
        for entry in plans.entries.values()
        if entry["consolidation"] == "pending"
        and entry["scoring_method"] == "heuristic"
        and entry["id"] not in tried
    ]


def to_score(plans: Plans, *, size: int, tokens: int) -> list[JournalEntry]:
    """The next batch to score; empty when there is none."""
    return _entry_batch(unscored(plans), plans.of("score_importance"), size, tokens)


def unconsolidated(plans: Plans, min_importance: int) -> list[JournalEntry]:
    """The entries to consolidate: scored, important enough, and in no loop yet."""
    taken = _worked_on("consolidate", plans)
    return [
        entry
        for entry in plans.pending()
        if entry["scoring_method"] != "heuristic"
        and entry["importance"] >= min_importance
        and entry["id"] not in taken
    ]


def open_loops(plans: Plans) -> list[list[JournalEntry]]:
    """The batches whose loop of model answers `consolidate` has not finished."""
    last = {tuple(plan["inputs"]): plan for plan in plans.of("consolidate")}
    unfinished = (ids for ids, plan in last.items() if not plan.get("finished"))
    found = ([plans.entries[id_] for id_ in ids if id_ in plans.entries] for ids in unfinished)
    return [loop for loop in found if loop]


def to_consolidate(
    plans: Plans, *, min_importance: int, size: int, tokens: int
) -> list[JournalEntry]:
    """The batch whose loop is open, or the next new one; empty when there is none."""
    if loops := open_loops(plans):
        return loops[0]
    waiting = unconsolidated(plans, min_importance)
    return _entry_batch(waiting, plans.of("consolidate"), size, tokens)


def facts_left(record: NightRecord, plans: Plans) -> list[str]:
    """The facts (operation ids) that `dream` has not looked at yet."""
    return _not_seen(record.get("facts", []), "dream", plans)


def entities_left(record: NightRecord, plans: Plans) -> list[str]:
    """The entities whose observations are not consolidated yet."""
    return _not_seen(record.get("entities", []), "consolidate_entities", plans)


def items_left(step: str, record: NightRecord, plans: Plans, settings: Settings) -> int:
    """How many items `step` still has to do; 0 for a step that looks at everything at once."""
    match step:
        case "score_importance":
            return len(unscored(plans))
        case "consolidate":
            in_loops = sum(len(loop) for loop in open_loops(plans))
            return in_loops + len(unconsolidated(plans, settings.min_importance))
        case "dream":
            return len(facts_left(record, plans))
        case "consolidate_entities":
            return len(entities_left(record, plans))
    return 0


def items_done(plans: Sequence[PlanRecord]) -> set[str]:
    """The inputs that these plans are finished with."""
    done = (plan for plan in plans if plan.get("finished", True) and not comes_again(plan))
    return {id_ for plan in done for id_ in plan["inputs"]}


def below_threshold(plans: Plans, min_importance: int) -> list[Operation]:
    """Marks for the entries that were scored and are not important enough (ruling 12)."""
    return [
        mark_entry(entry, "below_threshold", f"importance {entry['importance']} < {min_importance}")
        for entry in by_time(plans.pending())
        if entry["scoring_method"] != "heuristic" and entry["importance"] < min_importance
    ]


def entry_lines(batch: Sequence[JournalEntry], tokens: int) -> str:
    """The batch as the model sees it, a line an entry; an entry longer than `tokens` is cut."""
    return "\n".join(cut(prompt_lines.entry_line(entry), tokens) for entry in batch)


def next_batch(
    waiting: Sequence[Item],
    plans: Sequence[PlanRecord],
    *,
    size: int,
    tokens: int,
    shown: Callable[[Item], str],
) -> list[Item]:
    """The first of `waiting`: at most `size` items and `tokens` tokens, but at least one item.

    `shown` gives an item's text in the prompt. `plans` are those of the step so far: once a batch
    was too long for the model, the following ones are at most half as large.
    """
    halves = [max(1, len(plan["inputs"]) // 2) for plan in plans if plan.get("overflowed")]
    batch, left = list[Item](), tokens
    for item in waiting[: min([size, *halves])]:
        used = approximate_tokens(cut(shown(item), tokens))
        if batch and left < used:
            break
        batch.append(item)
        left -= used
    return batch


def cut(line: str, tokens: int) -> str:
    """`line`, shortened if it is longer than `tokens`."""
    used = approximate_tokens(line)
    return line if used <= tokens else f"{line[: len(line) * tokens // used]} [...]"


def comes_again(plan: PlanRecord) -> bool:
    """Whether the inputs of a plan were too long together, and come again in halves."""
    return bool(plan.get("overflowed")) and not plan["errors"]


def _entry_batch(
    waiting: Sequence[JournalEntry], plans: Sequence[PlanRecord], size: int, tokens: int
) -> list[JournalEntry]:
    ordered = sorted(
        waiting, key=lambda entry: (-entry["importance"], entry["timestamp"], entry["id"])
    )
    line = prompt_lines.entry_line
    return by_time(next_batch(ordered, plans, size=size, tokens=tokens, shown=line))


def _not_seen(ids: Sequence[str], step: str, plans: Plans) -> list[str]:
    seen = _worked_on(step, plans)
    return [id_ for id_ in ids if id_ not in seen]


def _worked_on(step: str, plans: Plans) -> set[str]:
    """The inputs that a step has had, except those that come again."""
    return {id_ for plan in plans.of(step) if not comes_again(plan) for id_ in plan["inputs"]}
