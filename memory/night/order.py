"""The order of a night: what each step has left to do, which node comes next, and the budget. Pure.

The most important items come first, so that a night that has to stop early has done what matters.
Within a batch, journal entries stand in the order of their time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC
from functools import partial
from typing import Any, NamedTuple, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from memory.guards import rests_on
from memory.journal import by_time, questions_answered
from memory.messages import Handles, mark_of, prompt_lines
from memory.night.record import Plans
from memory.records import JournalEntry, NightRecord, Operation, PlanRecord, mark_entry
from memory.settings import Settings
from memory.text import approximate_tokens, sentences, shortened

LEAST_CALLS = 8
"""Calls that even the smallest night may make: about one for each step."""

MENDING = 2
"""Calls of each step that mend answers and come on top of the budget."""

PROFILES = 1
"""Calls for the profiles of a small night."""

REFLECTION = 2
"""Calls of a reflection: for its questions, and for the insights that answer them."""

FREE = ("extract_facts", "compact")
"""Steps outside the budget, because a history that is too long must be cut."""

LONGEST_QUESTION = 300
"""Characters of the assistant's question that an entry answers."""

_ASKS = ("?", "\uff1f", "\u061f", "\u037e", '?"', "?)")
"""How a question ends, in several scripts."""


def calls_allowed(entries: int, settings: Settings) -> int:
    """Most model calls for a night over this number of journal entries."""
    return max(LEAST_CALLS, math.floor(settings.night_calls_per_100 * entries / 100))


class Account(NamedTuple):
    """The budget of a night, given what earlier nights spent."""

    calls: int
    """Model calls that the night may make."""
    ahead: int
    """Calls that earlier nights made beyond the share of all entries so far, tonight's included."""


def account(
    earlier: Sequence[NightRecord], pending: Sequence[str], settings: Settings, *, asked: bool
) -> Account:
    """The budget of a night over the journal ids `pending`.

    A small night may spend more than the share of its entries (LEAST_CALLS). Later nights call no
    model until enough entries have come, so that many small nights cost no more than a large one. A
    night that a person asked for (`asked`) does not wait.
    """
    made = sum(
        line["llm_calls"] for one in earlier for line in one["steps"] if line["step"] not in FREE
    )
    entries = {id_ for one in earlier for id_ in one["pending"]}.union(pending)
    left = settings.night_calls_per_100 * len(entries) / 100 - made
    if left < 0 and not asked:
        return Account(0, math.ceil(-left))
    return Account(max(LEAST_CALLS, min(calls_allowed(len(pending), settings), int(left))), 0)


def allowed(record: NightRecord, settings: Settings) -> int:
    """Most model calls of this night."""
    return record.get("calls", calls_allowed(len(record["pending"]), settings))


def used_up(plans: Sequence[PlanRecord], record: NightRecord, settings: Settings) -> str | None:
    """The part of the budget that is used up, as a sentence, or None."""
    counted, calls = _within_budget(plans), _calls_counted(plans)
    if ahead := record.get("ahead"):
        owed = "1 model call" if ahead == 1 else f"{ahead:,} model calls"
        return f"earlier nights made {owed} ahead of new entries (night_calls_per_100)"
    if calls >= (most := allowed(record, settings)):
        mended = sum(plan["llm_calls"] for plan in counted) - calls
        beside = f", beside {mended} that mended answers" if mended else ""
        return f"{calls} of {most} model calls are used{beside} (night_calls_per_100)"
    tokens = sum(plan["tokens"] for plan in counted)
    if settings.night_tokens is not None and tokens >= settings.night_tokens:
        return f"{tokens:,} of {settings.night_tokens:,} tokens are used (night_tokens)"
    minutes = sum(plan["seconds"] for plan in counted) / 60
    if settings.night_minutes is not None and minutes >= settings.night_minutes:
        return f"{minutes:.1f} of {settings.night_minutes:.1f} minutes are over (night_minutes)"
    return None


def _within_budget(plans: Sequence[PlanRecord]) -> list[PlanRecord]:
    return [plan for plan in plans if plan["step"] not in FREE]


def _calls_counted(plans: Sequence[PlanRecord], calls: int = 0, mending: int = 0) -> int:
    """The calls that count towards the budget: all but each step's first MENDING that mend.

    `calls`, `mending`: of an answer of consolidation that no plan has yet.
    """
    mended = Counter(consolidate=mending)
    for plan in _within_budget(plans):
        calls += plan["llm_calls"]
        mended[plan["step"]] += plan.get("mending", 0)
    return calls - sum(min(one, MENDING) for one in mended.values())


def may_ask_again(
    plans: Plans,
    record: NightRecord,
    settings: Settings,
    batch: Collection[JournalEntry],
    *,
    calls: int,
    mending: int,
    facts: int,
    mends: bool,
) -> bool:
    """Whether consolidation may spend another call on a batch. Pure.

    The calls that comparing the new facts, profiles and the batches in line need are kept for them:
    a night that mends every refused fact and compares none leaves outdated facts beside new ones.
    The first MENDING calls that mend something take none of those.

    `calls`, `mending` and `facts` include the answer in hand, which no plan has yet. `mends`:
    whether the other call is to mend something.
    """
    made = _calls_counted(plans, calls, mending)
    mended = mending + sum(plan.get("mending", 0) for plan in plans.of("consolidate"))
    if mends and mended < MENDING:
        return made < allowed(record, settings)
    comparing = math.ceil(facts / settings.dream_batch_size)
    waiting = [one for one in unconsolidated(plans, settings.min_importance) if one not in batch]
    batches = math.ceil(len(waiting) / settings.consolidate_batch_size)
    return made + 1 + batches + comparing + PROFILES <= allowed(record, settings)


def next_step(
    record: NightRecord, plans: Plans, settings: Settings, *, waking: bool, compaction_due: bool
) -> str:
    """The node to visit next. This function alone orders a night.

    A waking event never interrupts compacting; it leaves the rest of dreaming to the next night.
    An approved night, once a preview or held back, is only applied.
    """
    approved = record.get("status") == "approved"
    thinking = not approved and stopped(record, plans, settings) is None
    if "compacting" not in record["applied"]:
        return (_compacting(plans, settings) if thinking else None) or "apply_operations"
    if "dreaming" in record["applied"]:
        return "record_night"
    if approved:
        return "apply_operations"
    if record.get("status") == "held":
        return "record_night"
    if "gate" in record:
        return "apply_operations"
    step = None if waking else _dreaming(record, plans, settings, thinking=thinking)
    if step is None and compaction_due and not waking and not plans.of("compact"):
        return "extract_facts"
    return step or "weigh_night"


def stopped(record: NightRecord, plans: Sequence[PlanRecord], settings: Settings) -> str | None:
    """Why the night calls no model any more, or None. The first reason stays."""
    if why := record.get("stopped"):
        return why
    if model_is_down(plans):
        return "the model gives no usable answer"
    return used_up(plans, record, settings)


def model_is_down(plans: Sequence[PlanRecord]) -> bool:
    """Whether the night gives up: two plans in a row without an answer, or an open breaker."""
    if plans and plans[-1].get("left_alone"):
        return True
    failed = [bool(plan["errors"]) and not plan.get("overflowed") for plan in plans[-2:]]
    return len(failed) == 2 and all(failed)


def _compacting(plans: Plans, settings: Settings) -> str | None:
    if unscored(plans):
        return "score_importance"
    if open_loops(plans) or unconsolidated(plans, settings.min_importance):
        return "consolidate"
    return None


def _dreaming(
    record: NightRecord, plans: Plans, settings: Settings, *, thinking: bool
) -> str | None:
    if thinking and facts_left(record, plans):
        return "dream"
    if not plans.of("prune_links"):
        return "prune_links"
    if thinking and entities_left(record, plans):
        return "consolidate_entities"
    if not plans.of("write_pages"):
        return "write_pages"
    if thinking and record.get("reflect") and _may_reflect(record, plans, settings):
        return "reflect"
    return None if plans.of("prune") else "prune"


def _may_reflect(record: NightRecord, plans: Plans, settings: Settings) -> bool:
    """Whether a reflection goes on, or can pay for its questions and the insights from them."""
    if plans.of("reflect"):
        return not _reflected(plans)
    made = sum(plan["llm_calls"] for plan in _within_budget(plans))
    return made + REFLECTION <= allowed(record, settings)


def _reflected(plans: Plans) -> bool:
    return any(plan.get("finished", True) for plan in plans.of("reflect"))


Item = TypeVar("Item")


def unscored(plans: Plans) -> list[JournalEntry]:
    """The entries to score: their importance is heuristic, and this night has not tried them."""
    tried = _worked_on("score_importance", plans)
    return [
        entry
        for entry in plans.entries.values()
        if entry["consolidation"] == "pending"
        and entry["scoring_method"] == "heuristic"
        and entry["id"] not in tried
    ]


def to_score(
    plans: Plans, *, size: int, tokens: int, owners: Collection[str]
) -> list[JournalEntry]:
    """The next batch to score, see `of_one_kind`; empty when there is none."""
    return _entry_batch(
        of_one_kind(unscored(plans), owners), plans.of("score_importance"), size, tokens
    )


def unconsolidated(plans: Plans, min_importance: int) -> list[JournalEntry]:
    """The entries to consolidate: scored, in no loop yet. A question weighs as its answer does."""
    if min_importance not in plans.unconsolidated:  # asked some times a batch, and slow to find
        taken = _worked_on("consolidate", plans)
        found = [one for one in plans.pending() if one["scoring_method"] != "heuristic"]
        weights = _weights(found, questions_answered(found))
        plans.unconsolidated[min_importance] = [
            one for one in found if weights[one["id"]] >= min_importance and one["id"] not in taken
        ]
    return plans.unconsolidated[min_importance]


def _weights(entries: Sequence[JournalEntry], answered: Mapping[str, str]) -> dict[str, int]:
    weights = {one["id"]: one["importance"] for one in entries}
    for answer, question in answered.items():
        weights[question] = max(weights[question], weights[answer])
    return weights


def open_loops(plans: Plans) -> list[list[JournalEntry]]:
    """The batches whose loop of model answers is not finished."""
    last = {tuple(plan["inputs"]): plan for plan in plans.of("consolidate")}
    unfinished = (ids for ids, plan in last.items() if not plan.get("finished"))
    found = ([plans.entries[id_] for id_ in ids if id_ in plans.entries] for ids in unfinished)
    return [loop for loop in found if loop]


def to_consolidate(
    plans: Plans, *, min_importance: int, size: int, tokens: int, owners: Collection[str]
) -> list[JournalEntry]:
    """The batch of the open loop, or the next new one, see `of_one_kind`; empty without any."""
    if loops := open_loops(plans):
        return loops[0]
    waiting = unconsolidated(plans, min_importance)
    return _entry_batch(of_one_kind(waiting, owners), plans.of("consolidate"), size, tokens)


def of_one_kind(waiting: Sequence[JournalEntry], owners: Collection[str]) -> list[JournalEntry]:
    """The waiting entries that rest on owners' words alone; if there are none, the others.

    A model that sees an owner's words beside a stranger's may confuse the two, and the stranger may
    have told it to. A question and its answer stay together, as words of others if one of them is.
    `owners`: without any, all entries are of one kind.
    """
    if not owners:
        return list(waiting)
    others = {one["id"] for one in waiting if rests_on(one["source_entity"], one, owners)}
    for both in questions_answered(waiting).items():
        others.update(both if others.intersection(both) else ())
    first = [one["id"] in others for one in waiting[:1]]
    return [one for one in waiting if [one["id"] in others] == first]


def facts_left(record: NightRecord, plans: Plans) -> list[str]:
    """The facts (operation ids) that `dream` has not looked at yet."""
    return _not_seen(record.get("facts", []), "dream", plans)


def entities_left(record: NightRecord, plans: Plans) -> list[str]:
    """The entities whose observations are not consolidated yet."""
    return _not_seen(record.get("entities", []), "consolidate_entities", plans)


def items_left(step: str, record: NightRecord, plans: Plans, settings: Settings) -> int:
    """Number of items that `step` has left; 0 for a step that has none."""
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
        case "reflect":
            return int(bool(record.get("reflect")) and not _reflected(plans))
    return 0


def items_done(plans: Sequence[PlanRecord]) -> set[str]:
    """The inputs that these plans have finished."""
    done = (plan for plan in plans if plan.get("finished", True) and not comes_again(plan))
    return {id_ for plan in done for id_ in plan["inputs"]}


def below_threshold(plans: Plans, min_importance: int) -> list[Operation]:
    """Marks for the entries that were scored and are not important enough."""
    pending = by_time(plans.pending())
    weights = _weights(pending, questions_answered(pending))
    return [
        mark_entry(entry, "below_threshold", f"importance {entry['importance']} < {min_importance}")
        for entry in pending
        if entry["scoring_method"] != "heuristic" and weights[entry["id"]] < min_importance
    ]


def entry_lines(
    batch: Sequence[JournalEntry],
    handles: Handles,
    settings: Settings,
    asked: Mapping[str, str] | None = None,
) -> str:
    """The batch as the model sees it, each entry under its number, with the question it answers."""
    lines = list[str]()
    for entry in batch:
        line = prompt_lines.entry_line(entry, handles.of(entry["id"]), settings.zone)
        lines.append(cut(line, settings.night_batch_tokens))
        questions = (asked[id_] for id_ in entry["sources"] if asked and id_ in asked)
        lines += [prompt_lines.asked_line(question) for question in questions]
    return "\n".join(lines)


def questions_before(messages: Sequence[AnyMessage]) -> dict[str, str]:
    """The assistant's last question to the speaker of each event, by event."""
    found, asked = dict[str, str](), ""
    talk: tuple[str | None, Any] = (None, None)
    for message in messages:
        if isinstance(message, AIMessage) and str(message.text).strip():
            ends = (sentences(str(message.text)) or [""])[-1]
            asked = ends if ends.rstrip().endswith(_ASKS) else ""
        elif isinstance(message, HumanMessage):
            mark = mark_of(message)
            before, talk = talk, (message.name, mark.get("channel"))
            if asked and mark.get("event") and talk == before:
                found[str(mark["event"])] = shortened(asked, LONGEST_QUESTION)
            asked = ""
    return found


def next_batch(
    waiting: Sequence[Item],
    plans: Sequence[PlanRecord],
    *,
    size: int,
    tokens: int,
    shown: Callable[[Item], str],
) -> list[Item]:
    """The first of `waiting`: at most `size` items and `tokens` tokens, at least one item.

    Once a batch was too long for the model, the following ones are at most half as large.
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
    """Whether the inputs of a plan were too long together and come again in halves."""
    return bool(plan.get("overflowed")) and not plan["errors"]


def _entry_batch(
    waiting: Sequence[JournalEntry], plans: Sequence[PlanRecord], size: int, tokens: int
) -> list[JournalEntry]:
    answered = questions_answered(waiting)
    weights = _weights(waiting, answered)
    ordered = sorted(
        waiting, key=lambda entry: (-weights[entry["id"]], entry["timestamp"], entry["id"])
    )
    shown = partial(prompt_lines.entry_line, handle="00", zone=UTC)  # about as long as for others
    batch = next_batch(ordered, plans, size=size, tokens=tokens, shown=shown)
    here = {one["id"] for one in batch}
    parted = {question for answer, question in answered.items() if answer not in here}
    # A question waits for a batch that has its answer, too.
    return by_time([one for one in batch if one["id"] not in parted] or batch)


def _not_seen(ids: Sequence[str], step: str, plans: Plans) -> list[str]:
    seen = _worked_on(step, plans)
    return [id_ for id_ in ids if id_ not in seen]


def _worked_on(step: str, plans: Plans) -> set[str]:
    return {id_ for plan in plans.of(step) if not comes_again(plan) for id_ in plan["inputs"]}
