"""The routes of one agent: what it knows and did, what changes that, and what lets it work.

Reading takes no lock, and counts as no access. Lists are pages with a total; details have stable
ids. An answer has an ETag, and a request that names it in If-None-Match is answered with 304 if
nothing changed.

A change is made at once, while no run of the agent is under way; else the answer is 409. Work, such
as a night or a tick that goes on after an approval, is a run of LangGraph Server: the answer is 202
with the run's id, and the run begins after those before it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from io import StringIO
from typing import Annotated, Any, Literal

from fastapi import Body, Depends, Query, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

from graph import documents, use_cases
from graph.documents import (
    Correction,
    EntityType,
    Listed,
    MemoryDetail,
    MemoryFilter,
    MemoryKind,
    MemoryLine,
    MemorySort,
    Paging,
    PersonDetail,
    PersonLine,
    RecalledMemory,
    TickDetail,
)
from graph.server.accounts import memories_in, memories_left
from graph.server.agents import Agent, ServedAgent
from graph.server.problems import Handler, StrictRoute, api_router
from graph.server.settings import FULL
from graph.use_cases import Forgotten, Imported, NightLine, Status, nights
from memory import journal
from memory.audit import AuditEntry
from memory.errors import NotFoundError
from memory.events import inbox
from memory.planning import tree
from memory.records import (
    Goal,
    InboxItem,
    JournalEntry,
    NightReport,
    NightStatus,
    Projects,
    Question,
    TickReport,
)
from memory.runtime import process_now
from memory.state import State
from memory.transfer import line_of

MOST_RECALLED = 1_000
LONGEST_QUERY = 10_000

LONGEST_TEXT = 100_000
"""Characters of a text in a request."""

JSON_LINES = "application/jsonl"


class Conditional(StrictRoute):
    """A route whose answers have an ETag, made from their bytes."""

    def get_route_handler(self) -> Handler:
        """The handler, which answers 304 if the client has the same bytes already."""
        handle = super().get_route_handler()

        async def conditional(request: Request) -> Response:
            answer = await handle(request)
            if answer.status_code != 200 or not isinstance(answer.body, bytes):
                return answer
            tag = f'"{blake2b(answer.body, digest_size=16).hexdigest()}"'
            headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
            known = [one.strip() for one in request.headers.get("if-none-match", "").split(",")]
            if tag in (one.removeprefix("W/") for one in known) or known == ["*"]:
                return Response(status_code=304, headers=headers)
            answer.headers.update(headers)
            return answer

        return conditional


AGENT = "/circadian/agents/{name}"
router = api_router(prefix=AGENT, tags=["memory"], route_class=Conditional)
changing = api_router(prefix=AGENT, tags=["actions"])


def paging(
    limit: Annotated[int, Query(ge=1, le=500, description="Items of a page.")] = 50,
    offset: Annotated[int, Query(ge=0, le=10**9, description="Items to skip.")] = 0,
) -> Paging:
    """The wanted page of a list."""
    return Paging(limit, offset)


Page = Annotated[Paging, Depends(paging)]
Text = Annotated[str, Query(max_length=LONGEST_QUERY)]


def _in_utc(at: datetime) -> datetime:
    try:
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        raise ValueError("in UTC it is outside the years 1 to 9999") from None


Instant = Annotated[datetime, AfterValidator(_in_utc)]
When = Annotated[Instant | None, Query(description="ISO 8601; UTC where no zone is named.")]


def memory_filter(
    q: Annotated[Text, Query(description="Words that a memory must have, all of them.")] = "",
    person: Annotated[
        Text | None, Query(description="Name, alias or id: who said it, or whom it is about.")
    ] = None,
    holds: Annotated[
        bool | None, Query(description="Only what holds, or only what was superseded.")
    ] = None,
    since: When = None,
    until: When = None,
    min_importance: Annotated[int | None, Query(ge=1, le=10)] = None,
    sort: MemorySort = "newest",
) -> MemoryFilter:
    """The filter of the wanted memories."""
    return MemoryFilter(
        query=q,
        person=person,
        holds=holds,
        since=since.isoformat() if since else None,
        until=until.isoformat() if until else None,
        min_importance=min_importance,
        sort=sort,
    )


Wanted = Annotated[MemoryFilter, Depends(memory_filter)]


# What it is doing


@router.get("/status")
async def show_status(agent: Agent) -> Status:
    """The agent at a glance."""
    return {
        **await use_cases.status(agent.context),
        "briefing": await use_cases.briefing(agent.context),
    }


@router.get("/goals")
async def list_goals(agent: Agent) -> list[Goal]:
    """The goals in the order of their tree, each before its subtasks."""
    return [goal for _, goal in tree((await _state(agent))["goals"])]


@router.get("/projects")
async def list_projects(agent: Agent) -> Projects:
    """The projects by key, and the key of the active one."""
    return (await _state(agent))["projects"]


@router.get("/questions")
async def list_questions(agent: Agent) -> list[Question]:
    """The questions that wait for a person, oldest first."""
    return [parked["question"] for parked in (await _state(agent))["parked"]]


@router.get("/questions/{id}")
async def show_question(agent: Agent, id: str) -> Question:
    """A question that waits."""
    for question in await list_questions(agent):
        if question["id"] == id:
            return question
    raise NotFoundError(f"no question {id!r:.80} waits for an answer")


class EventLine(BaseModel):
    """An event in the inbox."""

    item: InboxItem
    set_aside: bool = Field(description="Its ticks failed too often; it waits for `retry`.")


@router.get("/events")
async def list_events(agent: Agent, page: Page) -> Listed[EventLine]:
    """The inbox: events that wait, oldest first, then those that were set aside."""
    store, scope = agent.context.store, agent.context.scope
    waiting = await inbox.waiting(store, scope, (await _state(agent))["handled"])
    lines = [EventLine(item=item, set_aside=False) for item in waiting]
    aside = [EventLine(item=item, set_aside=True) for item in await inbox.set_aside(store, scope)]
    return page.of([*lines, *aside])


async def _state(agent: ServedAgent) -> State:
    return use_cases.complete_state(await agent.context.values())


# What it knows


@router.get("/memories")
async def list_memories(
    agent: Agent, wanted: Wanted, page: Page, kind: MemoryKind | None = None
) -> Listed[MemoryLine]:
    """Facts, journal entries and insights in one list."""
    return await documents.memory_page(agent.context, replace(wanted, kind=kind), page)


@router.get("/memories/{id:path}")
async def show_memory(agent: Agent, id: str) -> MemoryDetail:
    """A fact, a journal entry or an insight, with its sources, links and successors."""
    return await documents.memory_detail(agent.context, id)


@router.get("/facts")
async def list_facts(agent: Agent, wanted: Wanted, page: Page) -> Listed[MemoryLine]:
    """Facts, those that no longer hold included."""
    return await documents.memory_page(agent.context, replace(wanted, kind="fact"), page)


@router.get("/facts/{id}")
async def show_fact(agent: Agent, id: str) -> MemoryDetail:
    """A fact with the words that it comes from, what it replaced and what replaced it."""
    return await documents.fact_detail(agent.context, id)


@router.get("/journal")
async def list_journal(
    agent: Agent,
    page: Page,
    day: Annotated[str | None, Query(pattern=r"^\d{8}$", description="YYYYMMDD, UTC.")] = None,
) -> Listed[JournalEntry]:
    """The journal, newest first."""
    store, scope = agent.context.store, agent.context.scope
    found: list[JournalEntry] = []
    total = 0
    # Days that are not on the page are only counted.
    for each in [day] if day is not None else await journal.days(store, scope):
        count = await journal.count_on(store, scope, each)
        if total + count > page.offset and total < page.offset + page.limit:
            start = max(0, page.offset - total)
            wanted = page.limit - len(found)
            found += (await journal.on(store, scope, each))[start : start + wanted]
        total += count
    return page.listed(found, total)


@router.get("/journal/{id:path}")
async def show_entry(agent: Agent, id: str) -> MemoryDetail:
    """A journal entry with the facts that were made from it."""
    return await documents.entry_detail(agent.context, id)


@router.get("/recall")
async def recall_memories(
    agent: Agent,
    q: Annotated[Text, Query(min_length=1, description="What to look for.")],
    limit: Annotated[int, Query(ge=1, le=MOST_RECALLED)] = 10,
    superseded: Annotated[bool, Query(description="Also what no longer holds.")] = False,
) -> list[RecalledMemory]:
    """What fits a query, best first, with the parts of each score."""
    hits = await use_cases.recall(agent.context, q, limit, include_superseded=superseded)
    return [documents.recalled_memory(hit, explain=True) for hit in hits]


@router.get("/people")
async def list_people(
    agent: Agent,
    page: Page,
    q: Annotated[Text, Query(description="A part of a name or alias.")] = "",
    kind: EntityType | None = None,
) -> Listed[PersonLine]:
    """People, places and things by name."""
    return await documents.people_page(agent.context, q, kind, page)


@router.get("/people/{id:path}")
async def show_person(agent: Agent, id: str) -> PersonDetail:
    """Somebody or something by id, name or alias, with what holds now."""
    return await documents.person_detail(agent.context, id)


# What it did


@router.get("/nights")
async def list_nights(
    agent: Agent, page: Page, status: NightStatus | None = None
) -> Listed[NightLine]:
    """The nights, newest first."""
    return await documents.night_page(agent.context, status, page)


@router.get("/nights/{id}")
async def show_night(agent: Agent, id: str) -> NightReport:
    """A night with its steps and operations. `last` is the newest."""
    return await nights.night_report(agent.context, id)


@router.get("/ticks")
async def list_ticks(agent: Agent, page: Page) -> Listed[TickReport]:
    """The newest ticks, newest first."""
    return await documents.tick_page(agent.context, page)


@router.get("/ticks/{number}")
async def show_tick(agent: Agent, number: int) -> TickDetail:
    """A tick with its entries in the audit log."""
    return await documents.tick_detail(agent.context, number)


@router.get("/log")
async def show_log(
    agent: Agent,
    page: Page,
    since: When = None,
    what: str | None = None,
    who: str | None = None,
    outcome: Literal["ok", "error", "refused", "cached"] | None = None,
    tick: int | None = None,
    origin: str | None = None,
) -> Listed[AuditEntry]:
    """The audit log, newest first."""
    fields: Any = {"what": what, "who": who, "outcome": outcome, "tick": tick, "origin": origin}
    return await documents.log_page(agent.context, page, since=since, **fields)


# Changes of the agent, and its work


Line = Annotated[str, Field(max_length=LONGEST_TEXT)]


class Form(BaseModel):
    """A request's body; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class CorrectionForm(Form):
    """What is true in place of a fact."""

    text: Line = Field(description="What is true, in the words of `by`.")
    by: Line | None = Field(None, description="Who says so; by default the owner.")


class ForgetForm(Form):
    """What to forget: one of these."""

    person: Line | None = Field(None, description="A person or thing: name, alias or id.")
    fact: Line | None = Field(None, description="A fact's id.")
    entry: Line | None = Field(None, description="A journal entry's id; what came of it goes too.")
    agent: Literal[True] | None = Field(None, description="Everything that this agent knows.")

    @model_validator(mode="after")
    def names_one_thing(self) -> ForgetForm:
        """Refuse a form that names nothing, or several things."""
        if sum(value is not None for _, value in self) != 1:
            raise ValueError("name one of person, fact, entry and agent")
        return self


class ApprovalForm(Form):
    """A yes."""

    args: dict[str, Any] | None = Field(None, description="Arguments in place of the call's.")


class RefusalForm(Form):
    """A no."""

    reason: Line | None = None


class RunStarted(BaseModel):
    """A run that has begun, or waits for earlier runs."""

    thread_id: str
    run_id: str


Preview = Annotated[bool, Query(description="Change nothing: count what would go.")]


@changing.post("/facts/{id}/correct")
async def correct_fact(agent: Agent, id: str, form: CorrectionForm) -> Correction:
    """Supersede a fact with what is true; the old fact keeps its record."""
    return await documents.corrected(agent.context, id, form.text, form.by)


@changing.post("/forget")
async def forget_memory(agent: Agent, form: ForgetForm, preview: Preview = False) -> Forgotten:
    """Erase a person, a fact, an entry or the whole agent, with what came of it.

    It cannot be undone: ask with `preview` first.
    """
    context = agent.context
    if form.fact is not None:
        done = await use_cases.forget_fact(context, form.fact, dry_run=preview)
    elif form.agent:
        done = await use_cases.forget_agent(context, dry_run=preview)
    elif form.entry:
        done = await use_cases.forget_entry(context, form.entry, dry_run=preview)
    else:
        done = await use_cases.forget(context, form.person or "", dry_run=preview)
    if not preview:
        await (agent.erase_thread() if form.agent else agent.refresh())
    return done


@changing.post("/nights/{id}/apply", status_code=202)
async def apply_night(agent: Agent, id: str) -> RunStarted:
    """Apply a preview, or a night that was held back. No model is called."""
    async with use_cases.applying(agent.context, id):
        pass  # Any run goes on with an approved night.
    return await _run(agent, {})


@changing.post("/nights/{id}/undo")
async def undo_night(agent: Agent, id: str) -> NightReport:
    """Restore memory as it was before a night."""
    return await nights.undo_night(agent.context, id)


@changing.post("/nights/{id}/discard")
async def discard_night(agent: Agent, id: str) -> NightReport:
    """Discard a preview, or a night that was held back."""
    return await nights.discard_night(agent.context, id)


@changing.post("/sleep", status_code=202)
async def sleep(
    agent: Agent,
    dry_run: Annotated[bool, Query(description="Apply nothing: the night is a preview.")] = False,
) -> RunStarted:
    """Go through a night. `GET nights/last` shows it once it has begun."""
    if dry_run:
        await use_cases.want_preview(agent.context)
    return await _run(agent, {} if dry_run else {"request": "sleep"})


@changing.post("/questions/{id}/approve", status_code=202)
async def approve_question(
    agent: Agent,
    id: str,
    form: Annotated[ApprovalForm, Body()] = ApprovalForm(),  # noqa: B008
) -> RunStarted:
    """Let a dangerous tool run; its tick goes on."""
    approved, edited = {"decision": "approve"}, {"decision": "edit", "args": form.args}
    await use_cases.decide(agent.context, id, approved if form.args is None else edited)
    return await _run(agent, {})


@changing.post("/questions/{id}/refuse", status_code=202)
async def refuse_question(
    agent: Agent,
    id: str,
    form: Annotated[RefusalForm, Body()] = RefusalForm(),  # noqa: B008
) -> RunStarted:
    """Answer a question with no; the model is told, and the tick goes on."""
    await use_cases.decide(agent.context, id, {"decision": "refuse", "reason": form.reason})
    return await _run(agent, {})


@changing.delete("/events/{id:path}")
async def withdraw_event(agent: Agent, id: str) -> InboxItem:
    """Take an event that waits, or was set aside, out of the inbox; returns it."""
    return await use_cases.withdraw(agent.context, id)


@changing.get(
    "/export",
    response_class=StreamingResponse,
    responses={200: {"content": {JSON_LINES: {"schema": {"type": "string"}}}}},
)
async def export_memory(agent: Agent) -> StreamingResponse:
    """The agent's whole memory as JSON Lines, for `import`."""
    embedder = process_now().home.embedder
    records = use_cases.export_memory(agent.context, name=agent.name, embedder=embedder)
    first = await anext(records)  # An error is answered before the first byte.

    async def lines() -> AsyncIterator[str]:
        yield line_of(first) + "\n"
        async for record in records:
            yield line_of(record) + "\n"

    return StreamingResponse(lines(), media_type=JSON_LINES)


@changing.post(
    "/import",
    openapi_extra={
        "requestBody": {"required": True, "content": {JSON_LINES: {"schema": {"type": "string"}}}}
    },
)
async def import_memory(agent: Agent, request: Request) -> Imported:
    """Take in an exported memory; the agent must be empty."""
    try:
        lines = list(StringIO((await request.body()).decode()))
    except UnicodeDecodeError as error:
        raise HTTPException(400, f"the body is not UTF-8 text: {error}") from error
    left = await memories_left(agent.scope.user)

    def admit(counts: Mapping[str, int]) -> None:
        if (brought := memories_in(counts)) > left.events:
            raise HTTPException(FULL, f"the file has {brought:,} memories; {left.why}")

    done = await use_cases.import_memory(agent.context, lines, admit=admit)
    await agent.thread()
    await agent.refresh(at_rest="intake")
    return done


async def _run(agent: ServedAgent, given: dict[str, Any]) -> RunStarted:
    run = await agent.run(given)
    return RunStarted(thread_id=agent.scope.thread, run_id=run)
