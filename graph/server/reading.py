"""The routes that show what an agent knows and did. They take no lock, and count as no access.

Lists are pages with a total; details have stable ids. An answer has an ETag, and a request that
names it in If-None-Match is answered with 304 if nothing changed.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from graph import documents
from graph.documents import (
    EntityType,
    EventLine,
    Listed,
    LogFilter,
    MemoryDetail,
    MemoryFilter,
    MemoryLine,
    MemorySort,
    Paging,
    PersonDetail,
    PersonLine,
    RecalledMemory,
    TickDetail,
)
from graph.server.agents import Agent
from graph.server.problems import RESPONSES, operation_id
from graph.use_cases import NightLine, Status, briefing, nights, status
from memory.audit import AuditEntry
from memory.records import (
    Goal,
    JournalEntry,
    NightReport,
    NightStatus,
    Projects,
    Question,
    TickReport,
)

MOST_RECALLED = 1_000
LONGEST_QUERY = 10_000

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Conditional(APIRoute):
    """A route whose answers have an ETag, made from their bytes."""

    def get_route_handler(self) -> Handler:
        """The handler, which answers 304 to who has the same bytes already."""
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


router = APIRouter(
    prefix="/circadian/agents/{name}",
    tags=["memory"],
    route_class=Conditional,
    responses=RESPONSES,
    generate_unique_id_function=operation_id,
)


def paging(
    limit: Annotated[int, Query(ge=1, le=500, description="Items of a page.")] = 50,
    offset: Annotated[int, Query(ge=0, le=10**9, description="Items to leave out.")] = 0,
) -> Paging:
    """Which page of a list is asked for."""
    return Paging(limit, offset)


Page = Annotated[Paging, Depends(paging)]
Text = Annotated[str, Query(max_length=LONGEST_QUERY)]
When = Annotated[datetime | None, Query(description="ISO 8601; UTC where no zone is named.")]


def memory_filter(
    q: Annotated[Text, Query(description="Words that all must be there.")] = "",
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
    """Which memories are asked for."""
    return MemoryFilter(
        query=q,
        person=person,
        holds=holds,
        since=_utc(since),
        until=_utc(until),
        min_importance=min_importance,
        sort=sort,
    )


Wanted = Annotated[MemoryFilter, Depends(memory_filter)]


def _utc(at: datetime | None) -> str | None:
    if at is None:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC).isoformat()


# What it is doing


@router.get("/status")
async def show_status(agent: Agent) -> Status:
    """The agent at a glance."""
    return {**await status(agent.context), "briefing": await briefing(agent.context)}


@router.get("/goals")
async def list_goals(agent: Agent) -> list[Goal]:
    """The goals in the order of their tree, each before its subtasks."""
    return await documents.goals(agent.context)


@router.get("/projects")
async def list_projects(agent: Agent) -> Projects:
    """The projects by key, and the key of the active one."""
    return await documents.projects(agent.context)


@router.get("/questions")
async def list_questions(agent: Agent) -> list[Question]:
    """The questions that wait for a person, oldest first."""
    return await documents.questions(agent.context)


@router.get("/questions/{id}")
async def show_question(agent: Agent, id: str) -> Question:
    """A question that waits."""
    return await documents.question(agent.context, id)


@router.get("/events")
async def list_events(agent: Agent, page: Page) -> Listed[EventLine]:
    """The inbox: events that wait, oldest first, then those that were set aside."""
    return await documents.event_page(agent.context, page)


# What it knows


@router.get("/memories")
async def list_memories(
    agent: Agent, wanted: Wanted, page: Page, kind: Literal["fact", "entry"] | None = None
) -> Listed[MemoryLine]:
    """Facts, journal entries and insights in one list."""
    return await documents.memory_page(agent.context, replace(wanted, kind=kind), page)


@router.get("/memories/{id}")
async def show_memory(agent: Agent, id: str) -> MemoryDetail:
    """A fact, a journal entry or an insight, with everything that leads to it and away from it."""
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
    return await documents.journal_page(agent.context, day, page)


@router.get("/journal/{id}")
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
    return await documents.recalled(agent.context, q, limit, include_superseded=superseded)


@router.get("/people")
async def list_people(
    agent: Agent,
    page: Page,
    q: Annotated[Text, Query(description="A part of a name or alias.")] = "",
    kind: EntityType | None = None,
) -> Listed[PersonLine]:
    """People, places and things by name."""
    return await documents.people_page(agent.context, q, kind, page)


@router.get("/people/{id}")
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
    at = since if since is None or since.tzinfo else since.replace(tzinfo=UTC)
    return await documents.log_page(
        agent.context, LogFilter(at, what, who, outcome, tick, origin), page
    )
