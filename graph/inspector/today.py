"""Pages of what goes on: today, the answer to a question, and the work that a page started."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from graph.inspector.jobs import Tell
from graph.inspector.visits import Visit
from graph.use_cases import briefing, complete_state, decide, overview
from memory import pages
from memory.errors import BusyError
from memory.events import inbox
from memory.night import records, status_of
from memory.planning import tree

PULSE = 0.25
"""Seconds between two looks at the work while its page is open."""

ANSWERS = {"approve": "Approved", "refuse": "Refused"}


async def today(visit: Visit) -> Response:
    """The agent at a glance."""
    context = visit.context
    now = await overview(context)
    goals = {goal["id"]: goal for goal in now["goals"]}
    disputes = await pages.open_disputes(context.store, context.semantic, context.scope)
    state = complete_state((await context.snapshot()).values)
    about = {parked["question"]["id"]: parked["event"] for parked in state["parked"]}
    nights = await records(context.store, context.scope)
    return visit.show(
        "today.html",
        newest={status_of(one): one for one in nights},
        now=now,
        about=about,
        prompt=state["assistant_prompt"],
        goals=tree(goals),
        briefing=await briefing(context),
        disputes=disputes,
        aside=await inbox.set_aside(context.store, context.scope),
        model=visit.host.model(),
        done=visit.asked("done"),
    )


async def answer(visit: Visit) -> Response:
    """Keep a person's answer to a question, and let the agent go on with its tick."""
    question, given = visit.named("id"), visit.named("answer")
    if given not in ANSWERS:
        raise HTTPException(404, "A question is approved or refused.")
    form = await visit.form()
    context = visit.context
    decision: dict[str, Any] = {"decision": given}
    if given == "refuse" and (reason := form.get("reason", "").strip()):
        decision["reason"] = reason
    await decide(context, question, decision)

    async def go_on(tell: Tell) -> tuple[str, ...]:
        tell(f"{ANSWERS[given]}: your answer is kept.")
        try:
            tell("The agent goes on with the work that waited.")
            tick = await visit.host.go_on(visit)
        except BusyError as error:
            tell(f"{error}. It acts on your answer in its next run.")
            return ("today",)
        return ("today",) if tick is None else ("ticks", str(tick))

    visit.host.jobs.start(visit.owner, "The agent goes on after your answer", go_on)
    return visit.go("progress")


# Work that goes on


async def show_work(visit: Visit) -> Response:
    """What goes on, or how it ended. Without JavaScript the page loads itself again."""
    job = visit.host.jobs.current(visit.owner)
    result = visit.url(*job.result) if job and job.result else None
    return visit.show("work.html", job=job, result=result)


async def work_events(visit: Visit) -> Response:
    """The lines of the work as they come, and at its end where to go."""
    job = visit.host.jobs.current(visit.owner)

    async def events() -> AsyncIterator[str]:
        shown: list[str] | None = None
        while job is not None and (job.lines != shown or not job.ended):
            if job.lines != shown:
                shown = job.lines
                yield f"event: lines\ndata: {json.dumps(shown)}\n\n"
            else:
                yield ": alive\n\n"
            await asyncio.sleep(PULSE)
        yield f"event: end\ndata: {json.dumps(visit.url('progress'))}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")
