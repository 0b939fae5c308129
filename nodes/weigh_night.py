"""The gate: see what the night would take from memory, before it is made so."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import night, probes
from memory.dreaming import gate
from memory.night_view import NightView
from memory.overlay import Changes
from memory.recall import recall
from memory.resources import Resources, resources_of, scope_of, settings_of, store_of
from memory.settings import Settings
from memory.state import State
from memory.state_check import checked


@checked
async def weigh_night(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Measure what dreaming would change, and hold the night back where that is too much."""
    settings, resources = settings_of(runtime.context), resources_of(config)
    view = await NightView.of(state, store_of(runtime), scope_of(config))
    if "gate" not in view.record:
        verdict = await _weighed(view, resources, settings)
        held = verdict["held"] is not None
        view.record = {**view.record, "gate": dict(verdict)}
        if held and not view.record["dry_run"]:
            view.record = {**view.record, "status": "held"}
        await night.keep(view.store, view.scope, view.record)
    return {"night": await view.onward(state, settings)}


async def _weighed(view: NightView, resources: Resources, settings: Settings) -> gate.Verdict:
    """What would no longer hold, and whether kept recalls would still find what they found."""
    operations = view.plans.operations("dreaming")
    stored = {fact["op"]: fact for fact in await resources.semantic.all(view.scope)}
    holding = {op for op, fact in stored.items() if fact["invalid_at"] is None}
    gone = gate.leaving(operations, holding)
    changes = Changes.of(operations, stored)
    before, after = list[bool](), list[bool]()
    heirs = gate.heirs(view.plans.operations(), stored)
    for probe in await probes.kept(view.store, view.scope) if changes.facts else []:
        for found, seen in ((before, None), (after, changes)):
            hits = await recall(
                probe["query"],
                scope=view.scope,
                now=datetime.fromisoformat(view.record["started"]),
                semantic=resources.semantic,
                store=view.store,
                settings=settings,
                limit=gate.TOP,
                changes=seen,
            )
            sources = [one for hit in hits for one in hit["sources"]]
            found.append(gate.finds(probe, sources, heirs if seen else {}))
    return gate.judged(
        facts=len(holding), leaving=len(gone), before=before, after=after, settings=settings
    )
