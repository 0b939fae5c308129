"""The routes that change what an agent knows, or let it work.

A change is made at once, while no run of the agent is under way; else the answer is 409. Work, such
as a night or the tick that an answer lets go on, is a run of LangGraph Server's: the answer is 202
with its id, and it begins after the runs before it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from io import StringIO
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from graph.documents import Correction
from graph.server.agents import Agent, ServedAgent
from graph.server.auth import why_full
from graph.server.problems import RESPONSES, operation_id
from graph.server.settings import serving
from graph.use_cases import (
    Forgotten,
    applying,
    correct,
    decide,
    find_fact,
    forget,
    forget_agent,
    forget_entry,
    forget_fact,
    nights,
    transfer,
    want_preview,
    withdraw,
)
from memory.records import InboxItem, NightReport
from memory.transfer import line_of

JSON_LINES = "application/jsonl"

LONGEST_TEXT = 100_000
"""Characters of a text in a request."""

router = APIRouter(
    prefix="/circadian/agents/{name}",
    tags=["actions"],
    responses=RESPONSES,
    generate_unique_id_function=operation_id,
)

Line = Annotated[str, Field(max_length=LONGEST_TEXT)]


class Form(BaseModel):
    """A request's body; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class CorrectionForm(Form):
    """What is true in place of a fact."""

    text: Line = Field(description="As the one who says so would say it.")
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
        if len(self.model_fields_set - _missing(self)) != 1:
            raise ValueError("name one of person, fact, entry and agent")
        return self


def _missing(form: ForgetForm) -> set[str]:
    return {name for name, value in form if value is None}


class ApprovalForm(Form):
    """A yes."""

    args: dict[str, Any] | None = Field(None, description="Arguments in place of its own.")


class RefusalForm(Form):
    """A no."""

    reason: Line | None = None


class RunStarted(BaseModel):
    """A run that was begun, or waits for those before it."""

    thread_id: str
    run_id: str


Preview = Annotated[bool, Query(description="Change nothing: count what would go.")]


@router.post("/facts/{id}/correct")
async def correct_fact(agent: Agent, id: str, form: CorrectionForm) -> Correction:
    """Supersede a fact with what is true; the old fact keeps its record."""
    old = await find_fact(agent.context, id)
    new = await correct(agent.context, old["id"], form.text, form.by)
    before = await agent.context.semantic.get(agent.scope, old["id"])
    return {"fact": new, "superseded": before if new["id"] != old["id"] else None}


@router.post("/forget")
async def forget_memory(agent: Agent, form: ForgetForm, preview: Preview = False) -> Forgotten:
    """Erase a person, a fact, an entry or the whole agent, with what came of it.

    It cannot be undone: ask with `preview` first.
    """
    context = agent.context
    if form.fact is not None:
        done = await forget_fact(context, form.fact, dry_run=preview)
    elif form.agent:
        done = await forget_agent(context, dry_run=preview)
    elif form.entry:
        done = await forget_entry(context, form.entry, dry_run=preview)
    else:
        done = await forget(context, form.person or "", dry_run=preview)
    if not preview:
        await (agent.erase_thread() if form.agent else agent.refresh())
    return done


@router.post("/nights/{id}/apply", status_code=202)
async def apply_night(agent: Agent, id: str) -> RunStarted:
    """Apply a preview, or a night that was held back. No model is called."""
    async with applying(agent.context, id):
        pass  # Any run goes on with an approved night.
    return await _run(agent, {})


@router.post("/nights/{id}/undo")
async def undo_night(agent: Agent, id: str) -> NightReport:
    """Restore memory as it was before a night."""
    return await nights.undo_night(agent.context, id)


@router.post("/nights/{id}/discard")
async def discard_night(agent: Agent, id: str) -> NightReport:
    """Discard a preview, or a night that was held back."""
    return await nights.discard_night(agent.context, id)


@router.post("/sleep", status_code=202)
async def sleep(
    agent: Agent,
    dry_run: Annotated[bool, Query(description="Apply nothing: the night is a preview.")] = False,
) -> RunStarted:
    """Go through a night. `GET nights/last` shows it once it has begun."""
    if dry_run:
        await want_preview(agent.context)
    return await _run(agent, {} if dry_run else {"request": "sleep"})


@router.post("/questions/{id}/approve", status_code=202)
async def approve_question(
    agent: Agent,
    id: str,
    form: Annotated[ApprovalForm, Body()] = ApprovalForm(),  # noqa: B008
) -> RunStarted:
    """Let a dangerous tool run; its tick goes on."""
    edited = {"decision": "edit", "args": form.args}
    await decide(agent.context, id, {"decision": "approve"} if form.args is None else edited)
    return await _run(agent, {})


@router.post("/questions/{id}/refuse", status_code=202)
async def refuse_question(
    agent: Agent,
    id: str,
    form: Annotated[RefusalForm, Body()] = RefusalForm(),  # noqa: B008
) -> RunStarted:
    """Answer a question with no; the model is told, and the tick goes on."""
    await decide(agent.context, id, {"decision": "refuse", "reason": form.reason})
    return await _run(agent, {})


@router.delete("/events/{id}")
async def withdraw_event(agent: Agent, id: str) -> InboxItem:
    """Take an event that waits, or was set aside, out of the inbox; returns it."""
    return await withdraw(agent.context, id)


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={200: {"content": {JSON_LINES: {"schema": {"type": "string"}}}}},
)
async def export_memory(agent: Agent) -> StreamingResponse:
    """The agent's whole memory as JSON Lines, for `import`."""
    records = transfer.export_memory(agent.context, name=agent.name, embedder=agent.embedder)
    first = await anext(records)  # An error is answered before the first byte.

    async def lines() -> AsyncIterator[str]:
        yield line_of(first) + "\n"
        async for record in records:
            yield line_of(record) + "\n"

    return StreamingResponse(lines(), media_type=JSON_LINES)


@router.post(
    "/import",
    openapi_extra={
        "requestBody": {"required": True, "content": {JSON_LINES: {"schema": {"type": "string"}}}}
    },
)
async def import_memory(agent: Agent, request: Request) -> transfer.Imported:
    """Take in an exported memory; the agent must be empty."""
    try:
        lines = list(StringIO((await request.body()).decode()))
    except UnicodeDecodeError as error:
        raise HTTPException(400, f"the body is not UTF-8 text: {error}") from error
    if full := await why_full(agent.scope.user, serving(), more=len(lines)):
        raise HTTPException(507, full)
    done = await transfer.import_memory(agent.context, lines)
    await agent.thread()
    await agent.refresh()
    return done


async def _run(agent: ServedAgent, given: dict[str, Any]) -> RunStarted:
    run = await agent.run(given)
    return RunStarted(thread_id=agent.scope.thread, run_id=run)
