"""Pages of what the agent did: its ticks, each with why it went so, and the audit log."""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import datetime
from typing import get_args

from starlette.responses import Response

from graph.documents import LogFilter, goals, log_page, tick_detail, tick_page
from graph.inspector.memories import day_bounds, find_lines, folded, heard_by
from graph.inspector.visits import Visit
from memory.audit import AuditEntry, Outcome, What
from memory.errors import NotFoundError
from memory.text import terms

ON_A_PAGE, LOG_LINES = 25, 50

MOST_WORDS = 0.6
"""Share of a memory's words that an answer has if it rests on it."""


async def tick_list(visit: Visit) -> Response:
    """The newest ticks."""
    paging = visit.paging(ON_A_PAGE)
    listed = await tick_page(visit.context, paging)
    heard = await heard_by(visit, listed.items)
    return visit.show_list("ticks", listed.total, paging, ticks=listed.items, heard=heard)


async def one_tick(visit: Visit) -> Response:
    """Why it said that: what set the tick off, what it was shown, how it went on, what it cost."""
    given = visit.named("number")
    if not given.isdecimal():
        raise NotFoundError(f"a tick has a number, not {given!r:.40}")
    found = await tick_detail(visit.context, int(given))
    report = found.report
    shown = await find_lines(visit.context, report.get("shown", []))
    answer = {*terms(report["reply"] or "")}
    return visit.show(
        "tick.html",
        tick=report,
        log=found.log,
        words=await _words(visit, found.log),
        prompt=found.prompt,
        heard=(await heard_by(visit, [report])).get(report["tick"]),
        written=await folded(visit, await find_lines(visit.context, report["written"])),
        shown=await folded(
            visit, (one._replace(in_answer=_is_in(answer, one.text)) for one in shown)
        ),
        gone=len(report.get("shown", [])) - len(shown),
        largest=max(report["components"].values(), default=1),
    )


def _is_in(answer: Set[str], text: str) -> bool:
    """Whether an answer has most words of a memory."""
    words = {*terms(text)}
    return len(words & answer) >= max(2, MOST_WORDS * len(words))


async def show_log(visit: Visit) -> Response:
    """What was done, by whom and why, the newest first."""
    paging, day = visit.paging(LOG_LINES), visit.asked("day")
    asked = {name: visit.asked(name) for name in ("what", "who", "outcome", "origin")}
    bounds = [datetime.fromisoformat(at) for at in day_bounds(day, visit)] if day else [None] * 2
    wanted = LogFilter(
        since=bounds[0],
        until=bounds[1],
        what=asked["what"] or None,
        who=visit.asked_name("who") or None,
        outcome=asked["outcome"] or None,
        origin=asked["origin"] or None,
    )
    listed = await log_page(visit.context, wanted, paging)
    return visit.show_list(
        "log",
        listed.total,
        paging,
        entries=listed.items,
        words=await _words(visit, listed.items),
        asked=asked,
        day_asked=day,
        kinds=get_args(What),
        outcomes=get_args(Outcome),
    )


async def _words(visit: Visit, entries: Sequence[AuditEntry]) -> dict[str, str]:
    """The words of facts and goals that the log names, by id, as far as they are kept."""
    ids = (id_ for one in entries for id_ in (one["target"], one["detail"].get("fact")))
    named = {str(id_) for id_ in ids if id_}
    facts = await visit.context.semantic.by_id(visit.context.scope, sorted(named))
    known = {goal["id"]: goal["description"] for goal in await goals(visit.context)}
    return known | {id_: fact["text"] for id_, fact in facts.items()}
