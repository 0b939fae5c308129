"""The gate: measure what the night would take from memory before it is applied."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import night, probes
from memory.dreaming import gate
from memory.night_steps import NightContext, night_in_hand, proceed
from memory.overlay import Changes
from memory.recall import recall
from memory.settings import Settings
from memory.state import State
from memory.state_check import checked


@checked
async def weigh_night(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Measure what dreaming would change, and hold the night back if that is too much."""
    context = await night_in_hand(state, runtime, config)
    if "gate" not in context.record:
        verdict = await _weighed(context)
        context.record = {**context.record, "gate": dict(verdict)}
        if verdict["held"] is not None and not context.record["dry_run"]:
            context.record = {**context.record, "status": "held"}
        await night.keep(context.store, context.scope, context.record)
    return {"night": await proceed(context)}


async def _weighed(context: NightContext) -> gate.Verdict:
    """How many facts would no longer hold, and whether kept recalls would find less."""
    operations = context.plans.operations("dreaming")
    stored = {fact["op"]: fact for fact in await context.resources.semantic.all(context.scope)}
    holding = {op for op, fact in stored.items() if fact["invalid_at"] is None}
    changes, before, after = Changes.of(operations, stored), list[bool](), list[bool]()
    if changes.facts:
        heirs = gate.heirs(context.plans.operations(), stored)
        for probe in await probes.kept(context.store, context.scope):
            before.append(gate.finds(probe, await _sources(context, probe, None)))
            after.append(gate.finds(probe, await _sources(context, probe, changes), heirs))
    leaving = len(gate.leaving(operations, holding))
    return gate.judged(
        facts=len(holding),
        leaving=leaving,
        before=before,
        after=after,
        settings=context.settings,
    )


async def _sources(context: NightContext, probe: gate.Probe, changes: Changes | None) -> list[str]:
    """The sources of what the probe's query finds, with `changes` made."""
    hits = await recall(
        probe["query"],
        scope=context.scope,
        now=datetime.fromisoformat(context.now),
        semantic=context.resources.semantic,
        store=context.store,
        settings=context.settings,
        limit=gate.TOP,
        changes=changes,
    )
    return [source for hit in hits for source in hit["sources"]]
