"""Records of nights, without what is a forgotten person's. Pure.

A night that was ended keeps its operations as a list of what was done; those on what is erased lose
their text. One that is not ended thinks anew about a phase that is not applied and is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from memory.forgetting.erasure import Erasure
from memory.forgetting.scrubbing import FORGOTTEN, Level
from memory.records import NightRecord, Operation, PlanRecord

_REWRITTEN = ("content", "tags", "related_projects", "sources")
"""What of an entry can be other than it was."""
_WORDS = ("context", "value", "text", "content", "reason", "question")
"""Fields in which the model wrote, be it a single word."""
_SET_OUT_WITH = ("facts", "entities")
_TOLD = ("stopped", "gate")


def plans_after(
    plans: Sequence[PlanRecord], record: NightRecord | None, erasure: Erasure, gone: frozenset[str]
) -> list[PlanRecord | None]:
    """A night's plans as they stay, in order; None where one is dropped. `gone`: ids erased."""
    after = [plan_after(plan, erasure, gone) for plan in plans]
    touched = [new != old for new, old in zip(after, plans, strict=True)]
    if record is None or record["ended"] is not None:
        return list(after)
    waiting = [plan["phase"] not in record["applied"] for plan in plans]
    anew = any(t and w for t, w in zip(touched, waiting, strict=True))
    return [None if anew and waits else plan for plan, waits in zip(after, waiting, strict=True)]


def plan_after(plan: PlanRecord, erasure: Erasure, gone: frozenset[str]) -> PlanRecord:
    """One plan. Its loop's messages go where they hold anything of the person's."""
    # Nobody knows which of the memories shown a dream is of.
    mixed = plan["phase"] == "dreaming" or not gone.isdisjoint(plan["inputs"])
    level: Level = "mixed" if mixed else "unknown"
    exchange = texts_after(plan["exchange"], erasure, level)
    same = exchange == plan["exchange"] and gone.isdisjoint(plan["inputs"])
    after: Any = {
        **plan,
        "operations": [operation_after(one, erasure, gone, level) for one in plan["operations"]],
        "inputs": [one for one in plan["inputs"] if one not in gone],
        "left": [one for one in plan["left"] if one not in gone],
        "errors": texts_after(plan["errors"], erasure, level),
        "exchange": plan["exchange"] if same else [],
    }
    if "refused" in plan:
        after["refused"] = texts_after(plan["refused"], erasure, level)
    return cast(PlanRecord, after)


def operation_after(
    operation: Operation, erasure: Erasure, gone: frozenset[str], level: Level = "unknown"
) -> Operation:
    """One operation: without its text where it was on, or made of, what is erased."""
    target, sources = operation["target"], operation["sources"]
    stripped: Any = {
        **operation,
        "target": erasure.scrubber.value(target, "label"),
        "before": None,
        "after": None,
        "sources": [],
        "reason": FORGOTTEN,
    }
    ends = [*_values(operation["before"]), *_values(operation["after"])]
    if not (gone | erasure.profiles).isdisjoint((target, *ends)):
        return cast(Operation, stripped)
    if not gone.isdisjoint(sources):
        level = "mixed"
        if operation["kind"] in ("add_fact", "link", "observe_entity"):
            return cast(Operation, stripped)
    after, entry = operation["after"], erasure.entries.get(target)
    if operation["kind"] == "add_entry" and entry is not None:
        after = {**after, **{key: cast(Any, entry)[key] for key in _REWRITTEN}}
    scrubbed: Any = {
        **operation,
        "before": texts_after(operation["before"], erasure, level),
        "after": texts_after(after, erasure, level),
        "sources": [one for one in sources if one not in gone],
        "reason": texts_after({"reason": operation["reason"]}, erasure, level)["reason"],
    }
    return cast(Operation, scrubbed)


def texts_after(value: Any, erasure: Erasure, level: Level) -> Any:
    """A value (JSON) of which the model wrote the texts, be they of one word; tags may go."""
    return erasure.scrubber.value(_single_words(value, erasure, level), level)


def _single_words(value: Any, erasure: Erasure, level: Level) -> Any:
    scrub = erasure.scrubber.text
    if isinstance(value, list):
        return [_single_words(one, erasure, level) for one in value]
    if not isinstance(value, dict):
        return value
    found = {key: _single_words(one, erasure, level) for key, one in value.items()}
    for key, one in found.items():
        if key in _WORDS and isinstance(one, str) and one and " " not in one:
            found[key] = scrub(one, level) or FORGOTTEN
        elif key == "tags" and isinstance(one, list):
            found[key] = [tag for tag in one if scrub(str(tag), level) == tag]
    return found


def record_after(
    record: NightRecord, erasure: Erasure, gone: frozenset[str], *, touched: bool, at: str
) -> NightRecord:
    """The night's head. `touched`: one of its plans changed. It can then no longer be undone."""
    scrub = erasure.scrubber.value
    after: Any = {
        **record,
        **{key: scrub(cast(Any, record)[key], "unknown") for key in _TOLD if key in record},
        **{
            key: [one for one in cast(Any, record)[key] if one not in gone | erasure.profiles]
            for key in _SET_OUT_WITH
            if key in record
        },
        "held": [one for one in record["held"] if one not in gone],
        "pending": [one for one in record["pending"] if one not in gone],
        "errors": scrub(record["errors"], "unknown"),
    }
    return cast(NightRecord, {**after, "forgotten": at}) if touched or after != record else record


def _values(value: Any) -> list[str]:
    """The texts that stand directly in a record, among them the ids of what it is about."""
    return (
        [one for one in value.values() if isinstance(one, str)] if isinstance(value, dict) else []
    )
