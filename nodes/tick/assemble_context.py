"""Assemble what the model is told: what stays the same, and what stands before the event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import entities, pages
from memory.compaction import visible_events
from memory.events import owners_of, set_off_by_owner
from memory.messages import (
    AUDIENCE,
    EVENT_KEY,
    OWNER,
    as_data,
    mark_of,
    marked,
    message_of,
    one_line,
    prompt_lines,
)
from memory.prompt import ENTITY_CONTEXT, PAGES, SEMANTIC_MEMORIES, Material, assembly
from memory.recall import IN_PROMPT, probes, recall
from memory.records import (
    OWN,
    AssembledContext,
    EntityProfile,
    Event,
    RecallHit,
    is_reflection,
)
from memory.runtime import Resources, resources_of, scope_of, settings_of, store_of
from memory.settings import Audience, Settings
from memory.state import State, checked
from memory.text import shortened, shown_time
from tools.policy import CONTEXTS, context_type_for, material

RECENT_CALLS = 30
"""Tool calls that a look at its own work shows."""

MOST_PAGES = 3
"""People whose pages a prompt shows, the nearest."""

MOST_DISPUTES = 3
"""Open contradictions that an owner's prompt shows, the newest."""

LONGEST_CALL = 200
"""Characters of a failed call's answer."""


@checked
async def assemble_context(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Render the components and put the event in hand into the history.

    What is rendered here stays byte-identical through the tick's loop, so that a provider's prompt
    cache holds; what the loop adds stands after it, as messages. The system message stays so from
    tick to tick. What changes goes in front of the event, and the history does not keep it.

    Raises:
        InputError: one of the user's components clashes with another, or cannot be rendered.
    """
    settings, resources = settings_of(runtime.context), resources_of(config)
    context_type = context_type_for(state["event"])
    now = resources.clock().isoformat()
    memories: list[RecallHit] = []
    people: list[EntityProfile] = []
    shown = CONTEXTS[context_type].enabled_components
    if SEMANTIC_MEMORIES in shown:
        memories = await _recalled(state, runtime, config, settings)
    if ENTITY_CONTEXT in shown:
        people = await entities.in_conversation(
            store_of(runtime), scope_of(config), state["event"], state["conversations"]
        )
    by_owner = _is_by_owner(state["event"], settings, resources)
    held = await _pages(state, runtime, config, people) if PAGES in shown else []
    disputes = await _disputes(runtime, config, settings) if PAGES in shown and by_owner else []
    made = material(
        state,
        settings,
        resources,
        context_type,
        now=now,
        memories=beside(memories, held),
        people=[without_lines(profile, held) for profile in people],
        pages=[*(pages.text_of(page, settings.zone) for page in held), *disputes],
    )
    same, changing = assembly.parted(made)
    recent = _recent_work(state) if is_reflection(state["event"]) else {}
    front = assembly.front(made, {**changing, **recent})
    assembled: AssembledContext = {
        "context_type": context_type,
        "now": now,
        "system": assembly.system_message(same),
        "front": front,
        "after": assembly.after(made),
        "tokens": _sizes(made, [same, {**changing, **recent}]),
        "recalled": {hit["id"]: hit["text"] for hit in memories if hit["kind"] == "fact"},
    }
    message = _message(state, settings, now, by_owner=by_owner)
    return {"context": assembled, "messages": [message]}


def _is_by_owner(event: Event | None, settings: Settings, resources: Resources) -> bool:
    """Whether an owner set off the tick; nobody sets off one of its own."""
    owners = owners_of(settings, user=resources.user, served=resources.served)
    return event is not None and set_off_by_owner(event, owners=owners, served=resources.served)


async def _pages(
    state: State,
    runtime: Runtime[Settings],
    config: RunnableConfig,
    people: Sequence[EntityProfile],
) -> list[pages.ShownPage]:
    """What holds now of the nearest people and of the active project."""
    semantic, active = resources_of(config).semantic, state["projects"]["active"]
    near = people[:MOST_PAGES]
    return await pages.shown(store_of(runtime), semantic, scope_of(config), near, active)


async def _disputes(
    runtime: Runtime[Settings], config: RunnableConfig, settings: Settings
) -> list[str]:
    """The open contradictions, which an owner may settle, as one text; none without any."""
    store, semantic = store_of(runtime), resources_of(config).semantic
    found = await pages.open_disputes(store, semantic, scope_of(config))
    shown = found[:MOST_DISPUTES]
    return [pages.disputes_text(shown, settings.zone)] if shown else []


def beside(memories: Sequence[RecallHit], shown: Sequence[pages.ShownPage]) -> list[RecallHit]:
    """The memories without those that a page says already: its facts, and their only sources."""
    lines = [line for page in shown for line in page.lines]
    facts = {id_ for line in lines for id_ in line.ids}
    sources = {source for line in lines for source in line.sources}
    return [
        hit
        for hit in memories
        if hit["id"] not in facts
        and not (hit["kind"] == "episode" and {hit["id"], *hit["sources"]} <= sources)
    ]


def without_lines(profile: EntityProfile, shown: Sequence[pages.ShownPage]) -> EntityProfile:
    """The profile without the attributes that its page shows."""
    told = {line.attribute for page in shown if page.id == profile["id"] for line in page.lines}
    kept = {name: one for name, one in profile["attributes"].items() if name not in told}
    return {**profile, "attributes": kept}


def _sizes(made: Material, parts: Sequence[Mapping[str, str]]) -> dict[str, int]:
    """Tokens by component key, in id order."""
    sizes = {one.key: 0 for one in made.shown}
    for key, text in (row for part in parts for row in part.items()):
        sizes[key] = sizes.get(key, 0) + made.size(text)
    return {key: size for key, size in sizes.items() if size}


def _recent_work(state: State) -> dict[str, str]:
    """For a look at its own work: the newest tool calls and how they ended, as a block."""
    answers = [one for one in state["messages"] if isinstance(one, ToolMessage)][-RECENT_CALLS:]
    lines = [
        f"- tick {mark_of(one).get('tick', '?')}, {one.name}: "
        + (shortened(one_line(str(one.text)), LONGEST_CALL) if one.status == "error" else "done")
        for one in answers
    ]
    told = "Your newest tool calls, oldest first:\n" + "\n".join(lines)
    return {"recent_work": as_data("recent_work", told)} if lines else {}


def _message(state: State, settings: Settings, now: str, *, by_owner: bool) -> HumanMessage:
    """The human message of the tick; its mark says whether an owner speaks, and who reads."""
    event, tick = state["event"], state["tick"]
    if event is None:
        own = {EVENT_KEY: {"event": None, "tick": tick}}
        text = f"{prompt_lines.TICK} {shown_time(now, settings.zone)}"
        return HumanMessage(text, id=f"{OWN}autonomous_{tick}", additional_kwargs=own)
    message = message_of(event, tick=tick)
    return marked(message, **{OWNER: by_owner, AUDIENCE: _audience(event, by_owner, settings)})


def _audience(event: Event, by_owner: bool, settings: Settings) -> Audience:
    """Who reads the answer: as set for the channel, else by whether an owner writes."""
    default: Audience = "private" if by_owner else "public"
    return settings.channel_privacy.get(event["channel"] or "", default)


async def _recalled(
    state: State, runtime: Runtime[Settings], config: RunnableConfig, settings: Settings
) -> list[RecallHit]:
    """Memories near the event, or near the active goals where there is none."""
    event = state["event"]
    active = (g["description"] for g in state["goals"].values() if g["status"] == "active")
    query = event["text"] if event else " ".join(active)
    if not query.strip():
        return []
    resources, scope = resources_of(config), scope_of(config)
    semantic, store, now = resources.semantic, store_of(runtime), resources.clock()
    hits = await recall(
        query,
        scope=scope,
        now=now,
        semantic=semantic,
        store=store,
        settings=settings,
        limit=IN_PROMPT,
        max_tokens=settings.recall_tokens,
        visible=visible_events(state["messages"]),
    )
    await probes.keep(query, hits, store=store, scope=scope, now=now, most=settings.probes_kept)
    return hits
