"""Pages of nights: the list, one night as a difference, its preview, application and undo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from graph.documents import NightChanges, differences, night_page
from graph.following import STEP_NAMES
from graph.inspector.jobs import Tell
from graph.inspector.visits import Visit
from graph.use_cases import find_night, labels_for, nights
from memory.night import plans_of, report_of, status_of
from memory.records import NightReport, NightStatus, compaction_line, extraction_line

ON_A_PAGE = 25

MOST_CHANGES = 50
"""Changes of a kind that a night's page shows at first."""

OPEN_TO: Mapping[NightStatus, tuple[str, ...]] = {
    "preview": ("apply", "discard"),
    "held": ("apply", "discard"),
    "approved": ("apply",),
    "complete": ("undo",),
}
"""What can be done with a night of this status."""


async def night_list(visit: Visit) -> Response:
    """All nights, the newest first."""
    paging = visit.paging(ON_A_PAGE)
    listed = await night_page(visit.context, paging=paging)
    return visit.show_list("nights", listed.total, paging, nights=listed.items)


async def one_night(visit: Visit) -> Response:
    """One night: what it changed, its steps and cost, what it refused."""
    return await _night(visit, "night.html", done=visit.asked("done"))


async def night_action_form(visit: Visit) -> Response:
    """What an action would do with a night."""
    return await _night(visit, "night_action.html", name=_action(visit))


async def _night(visit: Visit, template: str, **values: Any) -> Response:
    context = visit.context
    record = await find_night(context, visit.named("id"))
    plans = await plans_of(context.store, context.scope, record["id"])
    report = report_of(record, plans)
    operations = report["operations"]
    names = await labels_for(context, operations)
    facts = await context.semantic.by_op(context.scope, list(names.facts))
    ids = {op: fact["id"] for op, fact in facts.items()}
    ended = {op for op, fact in facts.items() if fact["invalid_at"] is not None}
    state = status_of(record)
    possible = OPEN_TO.get(state, ())
    obstacles = {key: await nights.why_not(context, record, plans, key) for key in possible}
    return visit.show(
        template,
        record=record,
        state=state,
        report=report,
        groups=differences(NightChanges(operations, names, ids, ended, state == "complete")),
        whole=visit.asked("whole") == "1",
        most=MOST_CHANGES,
        endings=_endings(report),
        steps=STEP_NAMES,
        actions=[key for key, why in obstacles.items() if why is None],
        obstacles=obstacles,
        **values,
    )


def _endings(report: NightReport) -> list[str]:
    lines = [compaction_line(report["compaction"])] if "compaction" in report else []
    return lines + ([extraction_line(report["extraction"])] if "extraction" in report else [])


def _action(visit: Visit) -> str:
    name = visit.named("action")
    if name not in ("apply", "undo", "discard"):
        raise HTTPException(404, "A night can be applied, undone or discarded.")
    return name


async def night_action(visit: Visit) -> Response:
    """Carry an action out."""
    name = _action(visit)
    night = (await find_night(visit.context, visit.named("id")))["id"]

    async def work(tell: Tell) -> tuple[str, ...]:
        await visit.host.apply(visit, night, tell)
        return ("nights", night)

    if name == "apply":
        visit.host.jobs.start(visit.owner, "Applying a night", work)
        return visit.go("progress")
    done = nights.undo_night if name == "undo" else nights.discard_night
    await done(visit.context, night)
    return visit.go("nights", night, done=name)


# A preview


async def preview_form(visit: Visit) -> Response:
    """What a preview would do, and with which model."""
    return visit.show("preview.html", model=visit.host.model())


async def start_preview(visit: Visit) -> Response:
    """Start a preview; its page shows how far it is."""

    async def work(tell: Tell) -> tuple[str, ...]:
        tell("looking for what is new")
        night = await visit.host.preview(visit, tell)
        if night is None:
            tell("Nothing to do tonight: no model was called.")
            return ("nights",)
        return ("nights", night)

    visit.host.jobs.start(visit.owner, "A preview of the night", work)
    return visit.go("progress")
