"""Pages of what the agent did: its ticks, each with why it went so, and the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import get_args

from starlette.responses import Response

from graph.documents import LogFilter, Paging, log_page, tick_detail, tick_page
from graph.inspector.memories import day_bounds, find_lines, heard_by
from graph.inspector.visits import Visit
from memory.audit import Outcome, What
from memory.errors import NotFoundError

ON_A_PAGE, LOG_LINES = 25, 50


async def tick_list(visit: Visit) -> Response:
    """The newest ticks."""
    page = visit.page_number()
    listed = await tick_page(visit.context, Paging(ON_A_PAGE, (page - 1) * ON_A_PAGE))
    return visit.show(
        "ticks.html",
        ticks=listed.items,
        page=page,
        pages=max(1, -(-listed.total // ON_A_PAGE)),
        address=lambda number: visit.url("ticks", page=number),
    )


async def one_tick(visit: Visit) -> Response:
    """Why it said that: what set the tick off, what it was shown, how it went on, what it cost."""
    given = visit.named("number")
    if not given.isdecimal():
        raise NotFoundError(f"a tick has a number, not {given!r:.40}")
    found = await tick_detail(visit.context, int(given))
    report = found.report
    return visit.show(
        "tick.html",
        tick=report,
        log=found.log,
        prompt=found.prompt,
        heard=(await heard_by(visit, [report])).get(report["tick"]),
        written=await find_lines(visit, report["written"]),
        shown=await find_lines(visit, report.get("shown", [])),
        largest=max(report["components"].values(), default=1),
    )


async def show_log(visit: Visit) -> Response:
    """What was done, by whom and why, the newest first."""
    page, day = visit.page_number(), visit.asked("day")
    asked = {name: visit.asked(name) for name in ("what", "who", "outcome")}
    bounds = [datetime.fromisoformat(at) for at in day_bounds(day, visit)] if day else [None] * 2
    wanted = LogFilter(
        since=bounds[0],
        until=bounds[1],
        what=asked["what"] or None,
        who=asked["who"] or None,
        outcome=asked["outcome"] or None,
    )
    listed = await log_page(visit.context, wanted, Paging(LOG_LINES, (page - 1) * LOG_LINES))
    return visit.show(
        "log.html",
        entries=listed.items,
        total=listed.total,
        asked=asked,
        day_asked=day,
        kinds=get_args(What),
        outcomes=get_args(Outcome),
        page=page,
        pages=max(1, -(-listed.total // LOG_LINES)),
        address=lambda number: visit.url("log", **asked, day=day, page=number),
    )
