"""The gate: measure what a night would remove from memory, then apply its operations."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import night
from memory.night import (
    Changes,
    NightContext,
    below_threshold,
    night_in_hand,
    plan,
    proceed,
    thought_of,
    work_of,
)
from memory.operations import apply, facts_after, facts_named
from memory.recall import IN_PROMPT
from memory.records import Fact, NightRecord, Operation, Probe, last_heir
from memory.settings import Settings
from memory.state import State, checked
from memory.text import shortened

NAMED_BY = 80
"""Characters that a reason shows of the query that would find less."""

TOP = 10
"""The best memories of a recall, which count as found.

Such a memory counts as lost only if prompts no longer have room for it (IN_PROMPT): a day of new
memories moves some from the tenth place to the eleventh, which loses none.
"""


def facts_leaving(operations: Sequence[Operation], holding: Collection[str]) -> set[str]:
    """The facts among `holding` (operation ids) that would be removed or no longer hold."""
    found: set[str] = set()
    for change in operations:
        invalid = change["kind"] == "change_fact" and (change["after"] or {}).get("invalid_at")
        if change["target"] in holding and (invalid or change["kind"] == "remove_fact"):
            found.add(change["target"])
    return found


def heirs_of(operations: Sequence[Operation], facts: Mapping[str, Fact]) -> dict[str, set[str]]:
    """For each source of a superseded fact, the sources of the fact that superseded it.

    `facts`: the stored facts by operation id.
    """
    after, found = facts_after(facts, operations), dict[str, set[str]]()
    for op, fact in facts.items():
        if op in after and fact["invalid_at"] is None:
            heir = last_heir(after[op], after)
            for source in fact["source_events"]:
                found.setdefault(source, set()).update(heir["source_events"])
    return found


def finds(
    probe: Probe,
    sources: Sequence[str],
    heirs: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> bool:
    """Whether a recall whose best memories have these `sources` still finds the probe's memories.

    Finding a fact that superseded one of them (`heirs`) counts, too.
    """
    wanted = {one for found in probe["found"] for one in (found, *heirs.get(found, ()))}
    return bool(wanted & set(sources)) or not wanted


def judged(
    *,
    facts: int,
    leaving: int,
    before: Sequence[bool],
    after: Sequence[bool],
    settings: Settings,
    lost: Sequence[str] = (),
) -> dict[str, Any]:
    """The decision, with what it rests on. `held`: why the night is held back; None: apply it.

    With fewer `facts` (those that hold before dreaming) than `gate_facts`, the share that would
    leave does not count. `lost`: kept questions that find something now and nothing afterwards.
    """
    held = None
    if facts >= settings.gate_facts and leaving > settings.gate_share * facts:
        held = f"{leaving} of {facts} facts would no longer hold"
    elif sum(after) < sum(before):
        held = f"{sum(after)} of {len(before)} kept questions would find their memories, "
        held += f"{sum(before)} do now"
        if lost:
            held += f"; lost for '{shortened(lost[0], NAMED_BY)}'"
    return {
        "facts": facts,
        "leaving": leaving,
        "probes": len(before),
        "found_before": sum(before),
        "found_after": sum(after),
        "held": held,
    }


@checked
async def weigh_night(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Measure what dreaming would change, and hold the night back if that is too much."""
    context = await night_in_hand(state, runtime, config)
    if "gate" not in context.record:
        verdict = await _weighed(context)
        context.record = {**context.record, "gate": verdict}
        if verdict["held"] is not None and not context.record["dry_run"]:
            context.record = {**context.record, "status": "held"}
        await night.keep(context.store, context.scope, context.record)
    return {"night": await proceed(context)}


async def _weighed(context: NightContext) -> dict[str, Any]:
    """How many facts would no longer hold, and whether kept recalls would find less."""
    operations, semantic = context.plans.operations("dreaming"), context.resources.semantic
    named = sorted(facts_named(context.plans.operations()))
    found = await semantic.by_op(context.scope, named)
    stored = {fact["op"]: fact for fact in found.values()}
    holding = {op for op, fact in stored.items() if fact["invalid_at"] is None}
    changes, before, after = Changes.of(operations, stored), list[bool](), list[bool]()
    lost = list[str]()
    if changes.facts:
        heirs = heirs_of(context.plans.operations(), stored)
        for probe in await night.kept_probes(context.store, context.scope):
            before.append(finds(probe, await _sources(context, probe, TOP, None)))
            most = IN_PROMPT if before[-1] else TOP
            after.append(finds(probe, await _sources(context, probe, most, changes), heirs))
            lost += [probe["query"]] if before[-1] and not after[-1] else []
    leaving = len(facts_leaving(operations, holding.difference(context.added_facts())))
    return judged(
        facts=await semantic.count(context.scope, include_superseded=False),
        leaving=leaving,
        before=before,
        after=after,
        settings=context.settings,
        lost=lost,
    )


async def _sources(
    context: NightContext, probe: Probe, most: int, changes: Changes | None
) -> list[str]:
    """The sources of the best `most` that the probe's query finds, with `changes` made."""
    [hits] = await context.recall(probe["query"], limit=most, changes=changes)
    return [source for hit in hits for source in hit["sources"]]


@checked
async def apply_operations(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Apply the phase's operations in order, idempotently, and last the mark.

    Visited when compacting is complete, and when dreaming is.

    A phase that the record marks as applied was applied by a visit whose checkpoint was lost. A
    preview applies nothing; it only marks its own record.
    """
    context = await night_in_hand(state, runtime, config)
    phase, dry = context.record["phase"], context.record["dry_run"]
    again = phase in context.record["applied"]
    lost = phase == "dreaming" and state["phase"] == "compacting" and not dry
    if not again and not lost:
        await _apply(context)
    done = "dreaming" in context.record["applied"]
    return {
        "night": await proceed(context, compaction_done=done),
        **({} if dry else {"phase": "dreaming"}),
    }


async def _apply(context: NightContext) -> None:
    """Apply the operations of the record's phase and, with them, mark it as applied."""
    phase = context.record["phase"]
    if phase == "compacting" and context.record.get("status") != "approved":
        await _settle_unimportant(context)
        context.record = {**context.record, **await work_of(context)}
    marked: NightRecord = {
        **context.record,
        "applied": [*context.record["applied"], phase],
        "phase": "dreaming",
    }
    context.record = marked
    if marked["dry_run"]:
        await night.keep(context.store, context.scope, marked)
        return
    await apply.apply_operations(
        context.plans.operations(phase),
        store=context.store,
        semantic=context.resources.semantic,
        scope=context.scope,
        also=[night.record_put(context.scope, marked)],
    )


async def _settle_unimportant(context: NightContext) -> None:
    """Plan the marks of entries that were scored below the threshold."""
    marks = below_threshold(context.plans, context.settings.min_importance)
    if marks:
        await plan(context, "settle", [one["target"] for one in marks], partial(thought_of, marks))
