"""What an agent does and did: goals, ticks, nights, waiting events, questions, the audit log."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel

from graph.documents.provenance import Listed, Paging
from graph.use_cases import AgentContext, NightLine, nights
from memory import audit, night
from memory.audit import AuditEntry
from memory.errors import NotFoundError
from memory.events import inbox
from memory.records import NightStatus, Report, TickPrompt, TickReport, empty_report


class TickDetail(BaseModel):
    """A tick: its report, and its entries in the audit log."""

    report: TickReport
    log: list[AuditEntry]
    prompt: TickPrompt | None = None
    """What the model was shown; None if it is not kept."""


async def night_page(
    context: AgentContext,
    status: NightStatus | None = None,
    paging: Paging = Paging(),  # noqa: B008
) -> Listed[NightLine]:
    """A page of the nights, newest first."""
    records = await night.records(context.store, context.scope)
    page = paging.of([one for one in records[::-1] if status in (None, night.status_told(one))])
    # A night's plans are read for the nights of this page alone.
    lines = [await nights.night_line(context, record) for record in page.items]
    return paging.listed(lines, page.total)


async def tick_page(context: AgentContext, paging: Paging = Paging()) -> Listed[TickReport]:  # noqa: B008
    """A page of the ticks whose reports are kept, newest first."""
    kept = await inbox.reports(context.store, context.scope)
    found = {report["tick"]: report for report in [*kept, *await _last_ticks(context)]}
    return paging.of([found[number] for number in sorted(found, reverse=True)])


async def tick_detail(context: AgentContext, number: int) -> TickDetail:
    """One tick. Raises NotFoundError if its report is no longer kept."""
    store, scope = context.store, context.scope
    report = await inbox.report_of(store, scope, number)
    if report is None:
        report = {made["tick"]: made for made in await _last_ticks(context)}.get(number)
    if report is None:
        raise NotFoundError(f"there is no tick {number}, or its report is no longer kept")
    return TickDetail(
        report=report,
        # A tick that was parked before has entries under this number, too.
        log=[
            entry
            for entry in await audit.of_tick(store, scope, number)
            if entry["origin"] == report["event_id"]
        ],
        prompt=await inbox.prompt_of(store, scope, number),
    )


async def _last_ticks(context: AgentContext) -> list[TickReport]:
    """The ticks of the last run, whose reports a server keeps only at the next run."""
    report: Report = (await context.values()).get("report") or empty_report()
    return report["ticks"]


async def log_page(
    context: AgentContext,
    paging: Paging = Paging(),  # noqa: B008
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    **fields: str | int | None,
) -> Listed[AuditEntry]:
    """A page of the audit log, newest first: what has these fields, None for any; without `until`.

    The field `origin` is the id of an event or a night.
    """
    asked = {name: value for name, value in fields.items() if value is not None}
    if not (asked or since or until):
        newest, total = await audit.newest(context.store, context.scope, *paging)
        return paging.listed(newest, total)
    found = await audit.read(context.store, context.scope, since=since, until=until)
    return paging.of([entry for entry in found[::-1] if asked.items() <= entry.items()])
