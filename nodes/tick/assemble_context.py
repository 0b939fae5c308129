"""Assemble what the model is told: the components of the tick's context, in id order."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import entities
from memory.compaction import visible_events
from memory.events import owners_of, set_off_by_owner
from memory.messages import EVENT_KEY, OWNER, marked, message_of, prompt_lines
from memory.prompt import ENTITY_CONTEXT, SEMANTIC_MEMORIES, assembly
from memory.recall import IN_PROMPT, probes, recall
from memory.records import OWN, AssembledContext, EntityProfile, RecallHit
from memory.runtime import Resources, resources_of, scope_of, settings_of, store_of
from memory.settings import Settings
from memory.state import State, checked
from tools.policy import CONTEXTS, context_type_for, material

AUTONOMOUS = (
    f"{prompt_lines.TICK} Nothing is pending. Work on the active goals: take one useful step "
    "with the tools you have and record the progress, or say in one sentence what is needed next."
)


@checked
async def assemble_context(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Render the components and put the event in hand into the history.

    What is rendered here stays byte-identical through the tick's loop, so that a provider's prompt
    cache holds; what the loop adds stands after it, as messages.

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
    made = material(
        state, settings, resources, context_type, now=now, memories=memories, people=people
    )
    parts = assembly.blocks(made)
    assembled: AssembledContext = {
        "context_type": context_type,
        "now": now,
        "system": assembly.system_message(parts),
        "tokens": {key: made.size(text) for key, text in parts.items()},
    }
    return {"context": assembled, "messages": [_message(state, settings, resources)]}


def _message(state: State, settings: Settings, resources: Resources) -> HumanMessage:
    """The human message of the tick; its mark says whether an owner speaks."""
    event, tick = state["event"], state["tick"]
    if event is None:
        own = {EVENT_KEY: {"event": None, "tick": tick}}
        return HumanMessage(AUTONOMOUS, id=f"{OWN}autonomous_{tick}", additional_kwargs=own)
    message = message_of(event, tick=tick)
    owners = owners_of(settings, user=resources.user, served=resources.served)
    by_owner = set_off_by_owner(event, owners=owners, served=resources.served)
    return marked(message, **{OWNER: by_owner})


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
    await probes.note_use(
        query, hits, store=store, semantic=semantic, scope=scope, now=now, settings=settings
    )
    return hits
