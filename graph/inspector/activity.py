"""Pages of what the agent does and did: today, ticks, nights, the log; and of whom it knows."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Mapping, Sequence, Set
from datetime import datetime
from typing import Any, NamedTuple, get_args

from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from graph.differences import NightChanges, differences
from graph.documents import (
    MemoryFilter,
    MemoryLine,
    Paging,
    PersonDetail,
    find_profile,
    log_page,
    memory_page,
    night_page,
    people_page,
    person_detail,
    tick_detail,
    tick_page,
)
from graph.following import STEP_NAMES
from graph.inspector.memories import day_bounds, find_lines, folded, heard_by, of_line
from graph.inspector.visits import Tell, Visit, day_of
from graph.use_cases import (
    briefing,
    complete_state,
    decide,
    find_night,
    forget,
    labels_for,
    nights,
    overview,
)
from memory import entities, night, pages
from memory.audit import AuditEntry, Outcome, What
from memory.errors import BusyError, NotFoundError
from memory.events import inbox
from memory.forgetting import ForgetTarget
from memory.night import plans_of, records, report_of, status_of
from memory.planning import tree
from memory.records import RISE, NightStatus, compaction_line, extraction_line
from memory.text import name_key, terms

PULSE = 0.25
"""Seconds between two looks at the work while its page is open."""

ANSWERS = {"approve": "Approved", "refuse": "Refused"}

ON_A_PAGE, LOG_LINES = 25, 50

USED_SHARE = 0.6
"""An answer rests on a memory if it has at least this share (0..1) of the memory's words."""


async def today(visit: Visit) -> Response:
    """The agent at a glance."""
    context = visit.context
    now = await overview(context)
    questions = await pages.open_questions(context.store, context.semantic, context.scope)
    state = complete_state((await context.snapshot()).values)
    about = {parked["question"]["id"]: parked["event"] for parked in state["parked"]}
    newest = {status_of(one): one for one in await records(context.store, context.scope)}
    stale = set()
    for kind in ("preview", "held"):
        if kind in newest:
            plans = await plans_of(context.store, context.scope, newest[kind]["id"])
            if await nights.why_not(context, newest[kind], plans, "apply") is not None:
                stale.add(kind)
    return visit.show(
        "today.html",
        newest=newest,
        stale=stale,
        now=now,
        about=about,
        prompt=state["assistant_prompt"],
        goals=tree({goal["id"]: goal for goal in now["goals"]}),
        briefing=await briefing(context),
        disputes=questions.disputes,
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

    visit.host.jobs.start(visit.context.scope, "Work after your answer", go_on)
    return visit.go("progress")


# Work that goes on


async def show_work(visit: Visit) -> Response:
    """What goes on, or how it ended. Without JavaScript the page loads itself again."""
    job = visit.host.jobs.current(visit.context.scope)
    result = visit.url(*job.result) if job and job.result else None
    return visit.show("work.html", job=job, result=result)


async def work_events(visit: Visit) -> Response:
    """The lines of the work as they come, and at its end where to go."""
    job = visit.host.jobs.current(visit.context.scope)

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


# Ticks and the log


async def tick_list(visit: Visit) -> Response:
    """The newest ticks."""
    paging = visit.paging(ON_A_PAGE)
    listed = await tick_page(visit.context, paging)
    heard = await heard_by(visit, listed.items)
    return visit.show_list("ticks", listed.total, paging, ticks=listed.items, heard=heard)


async def one_tick(visit: Visit) -> Response:
    """A tick, and why it said that: its event, the prompt, the steps, the cost."""
    given = visit.named("number")
    if not given.isdecimal() or len(given) > 12:  # Python reads a few thousand digits
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
    words = {*terms(text)}
    return len(words & answer) >= max(2, USED_SHARE * len(words))


async def show_log(visit: Visit) -> Response:
    """What was done, by whom and why, the newest first."""
    paging, day = visit.paging(LOG_LINES), visit.asked("day")
    asked = {name: visit.asked(name) for name in ("what", "who", "outcome", "origin")}
    bounds = [datetime.fromisoformat(at) for at in day_bounds(day, visit)] if day else [None] * 2
    wanted: Any = {name: value or None for name, value in asked.items()}
    wanted["who"] = visit.asked_name("who") or None
    listed = await log_page(visit.context, paging, since=bounds[0], until=bounds[1], **wanted)
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
    ids = (id_ for one in entries for id_ in (one["target"], one["detail"].get("fact")))
    named = {str(id_) for id_ in ids if id_}
    facts = await visit.context.semantic.by_id(visit.context.scope, sorted(named))
    goals = complete_state(await visit.context.values())["goals"]
    known = {id_: goal["description"] for id_, goal in goals.items()}
    return known | {id_: fact["text"] for id_, fact in facts.items()}


# Nights: one as a difference, its preview, application and undo


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
    endings = [compaction_line(report["compaction"])] if "compaction" in report else []
    endings += [extraction_line(report["extraction"])] if "extraction" in report else []
    return visit.show(
        template,
        record=record,
        state=state,
        report=report,
        groups=differences(NightChanges(operations, names, ids, ended, state == "complete")),
        whole=visit.asked("whole") == "1",
        most=MOST_CHANGES,
        endings=endings,
        steps=STEP_NAMES,
        actions=[key for key, why in obstacles.items() if why is None],
        obstacles=obstacles,
        **values,
    )


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
        visit.host.jobs.start(visit.context.scope, "Applying a night", work)
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

    visit.host.jobs.start(visit.context.scope, "A preview of the night", work)
    return visit.go("progress")


PEOPLE_ON_A_PAGE = 60

TYPES = {"person": "People", "place": "Places", "thing": "Things", "unknown": "Others"}

MOST_ENTRIES = 500
"""Newest entries of somebody from which the days of their messages are read."""

WIDTH, HEIGHT = 640, 120


async def people_list(visit: Visit) -> Response:
    """Everybody and everything that is known, by name."""
    paging, query, kind = visit.paging(PEOPLE_ON_A_PAGE), visit.asked("q"), visit.asked("kind")
    kind = kind if kind in TYPES else ""
    listed = await people_page(visit.context, query, kind or None, paging)  # type: ignore[arg-type]
    return visit.show_list(
        "people",
        listed.total,
        paging,
        people=listed.items,
        query=query,
        kind=kind,
        types=TYPES,
        done=visit.asked("done"),
    )


async def one_person(visit: Visit) -> Response:
    """A profile: what holds now, attributes with their sources, talks, favourability."""
    found = await person_detail(visit.context, visit.named("id"))
    semantic, scope = visit.context.semantic, visit.context.scope
    attributes = found.profile["attributes"].values()
    values = [value for one in attributes for value in (one, *one["replaced"])]
    cited = {id_ for value in values for id_ in value["evidence"]}
    facts = await semantic.by_op(scope, sorted(cited))
    ended = {op: fact for op, fact in facts.items() if fact["invalid_at"] is not None}
    now = (await entities.as_of_now(visit.context.store, semantic, scope, [found.profile]))[0]
    return visit.show(
        "person.html",
        found=found,
        profile=found.profile,
        later=await _later(visit, found),
        memories=await folded(visit, map(of_line, found.memories.items)),
        observations={one["id"]: one for one in found.profile["observations"]},
        facts=facts,
        ended_facts=ended,
        now=now,
        instead=await semantic.by_id(scope, [str(one["superseded_by"]) for one in ended.values()]),
        favour=await _favour(visit, found),
    )


async def _later(visit: Visit, found: PersonDetail) -> list[MemoryLine]:
    """Facts about somebody since the last night: it wrote what holds, and could not know them."""
    nights = await night.records(visit.context.store, visit.context.scope)
    ended = [one["started"] for one in nights if night.status_of(one) == "complete"]
    slept, name = max(ended, default=""), name_key(found.profile["name"])
    held = {id_ for line in found.holds_now for id_ in line.facts}
    facts = [one for one in found.memories.items if one.kind == "fact" and one.id not in held]
    facts = [one for one in facts if one.holds and one.at > slept]
    return [one for one in facts if name in map(name_key, one.entities)]


class Favour(NamedTuple):
    """Favourability over time: the days on which it rose, as a line."""

    days: list[tuple[str, float]]
    points: str
    """Of the drawn line."""
    width: int = WIDTH
    height: int = HEIGHT


async def _favour(visit: Visit, found: PersonDetail) -> Favour | None:
    """It rises once on each day with an answered message, so those days tell its course."""
    profile = found.profile
    value = profile["relationship"]["favorability"]
    rises = round(math.log(1 - value) / math.log(1 - RISE)) if 0 < value < 1 else 0
    if not rises:
        return None
    wanted = MemoryFilter(kind="entry", person=profile["id"])
    said = await memory_page(visit.context, wanted, Paging(MOST_ENTRIES))
    senders = {profile["name"], *profile["senders"]}
    days = {day_of(line.at, visit.zone) for line in said.items if line.speaker in senders}
    if last := profile["relationship"]["risen_on"]:
        days = {day for day in days if day <= last} | {last}
    newest = sorted(days)[-rises:]
    course = [
        (day, 1 - (1 - RISE) ** (rises - len(newest) + place))
        for place, day in enumerate(newest, 1)
    ]
    step = WIDTH / max(1, len(course))
    steps = [(0.0, HEIGHT * (1 - course[0][1]))] if course else []
    steps += [((place + 1) * step, HEIGHT * (1 - value)) for place, (_, value) in enumerate(course)]
    return Favour(course, " ".join(f"{x:.1f},{y:.1f}" for x, y in steps))


# Forgetting somebody


async def forget_person_form(visit: Visit) -> Response:
    """What would be forgotten with a person or thing."""
    profile = await find_profile(visit.context, visit.named("id"))
    target, title = ForgetTarget("entity", profile["id"]), f"Looking for all of {profile['name']}"
    found = await visit.would_forget(target, title, "people", profile["id"], "forget")
    if found is None:
        return visit.go("progress")
    would, nights = found
    return visit.show("forget_person.html", profile=profile, would=would, nights=nights)


async def forget_person(visit: Visit) -> Response:
    """Forget a person or thing, with everything that came of it."""
    profile = await find_profile(visit.context, visit.named("id"))
    return visit.forget("Forgetting somebody", forget, profile["id"], "people")
