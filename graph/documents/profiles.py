"""People and things as documents: a page of them, and one with what holds now of it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from graph.documents.provenance import (
    Listed,
    MemoryFilter,
    MemoryLine,
    Paging,
    known_profile,
    memory_page,
)
from graph.use_cases import AgentContext, complete_state
from memory import entities, pages
from memory.errors import NotFoundError
from memory.records import Conversation, EntityProfile
from memory.text import name_key

EntityType = Literal["person", "place", "thing", "unknown"]

NEWEST = Paging(limit=20)
"""Of the memories about somebody."""


class PersonLine(BaseModel):
    """Somebody or something in a list."""

    id: str
    name: str
    aliases: list[str]
    entity_type: EntityType
    state: str = Field(description="stranger, acquaintance, friend or close")
    favorability: float = Field(description="0..1")
    interactions: int
    last_at: str | None
    attributes: int
    observations: int
    updated: str


class HeldLine(BaseModel):
    """A line of what holds now."""

    text: str
    attribute: str | None
    at: str
    speaker: str | None
    facts: list[str] = Field(description="Ids of the facts that it stands on.")
    sources: list[str] = Field(description="Ids of the entries and events behind them.")
    disputed: bool


class PersonDetail(BaseModel):
    """A profile, what holds now, and the newest memories about it."""

    profile: EntityProfile
    holds_now: list[HeldLine]
    memories: Listed[MemoryLine]
    conversations: list[Conversation] = Field(description="Open ones.")


async def people_page(
    context: AgentContext,
    query: str = "",
    kind: EntityType | None = None,
    paging: Paging = Paging(),  # noqa: B008
) -> Listed[PersonLine]:
    """A page of profiles by name, those whose name or alias contains `query`."""
    wanted = name_key(query)
    found = [
        profile
        for profile in await entities.everyone(context.store, context.scope)
        if kind in (None, profile["entity_type"])
        and any(wanted in name_key(name) for name in (profile["name"], *profile["aliases"]))
    ]
    found.sort(key=lambda profile: (name_key(profile["name"]), profile["id"]))
    return paging.of([_line(profile) for profile in found])


def _line(profile: EntityProfile) -> PersonLine:
    counted = {kind: len(profile[kind]) for kind in ("attributes", "observations")}
    return PersonLine.model_validate({**profile, **profile["relationship"], **counted})


async def find_profile(context: AgentContext, given: str) -> EntityProfile:
    """One profile, by its id, name or alias. Raises NotFoundError."""
    if (profile := await known_profile(context, given)) is None:
        raise NotFoundError(f"nobody and nothing is known as {given!r:.80}")
    return profile


async def person_detail(context: AgentContext, given: str) -> PersonDetail:
    """One profile with what is known of it, found as by `find_profile`."""
    store, scope = context.store, context.scope
    profile = await find_profile(context, given)
    shown = await pages.shown(store, context.semantic, scope, [profile])
    state = complete_state(await context.values())
    names = {name_key(name) for name in (profile["name"], *profile["aliases"])}
    return PersonDetail(
        profile=profile,
        holds_now=[
            HeldLine.model_validate({**line._asdict(), "facts": line.ids})
            for page in shown
            for line in page.lines
        ],
        memories=await memory_page(context, MemoryFilter(person=profile["id"]), NEWEST),
        conversations=[
            conversation
            for conversation in state["conversations"].values()
            if name_key(conversation["entity"]) in names
        ],
    )
