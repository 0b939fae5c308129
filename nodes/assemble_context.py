"""Assemble what the model is told: the components of the tick's context, in id order."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import components, rendering
from memory.chat import MARK, message_of
from memory.episodes import episodes
from memory.recall import recall
from memory.records import RecallHit
from memory.resources import resources_of, scope_of, settings_of, store_of
from memory.settings import Settings
from memory.state import State
from memory.state_check import checked
from memory.tick import AssembledContext
from memory.tokens import approximate_tokens, calibrated
from tools.contexts import CONTEXTS, ContextConfig

AUTONOMOUS = (
    "[autonomous tick] Nothing is pending. Work on the active goals: take one useful step with the "
    "tools you have and record the progress, or say in one sentence what is needed next."
)


@checked
async def assemble_context(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Render the components and put the event in hand into the history.

    What is rendered here stays byte-identical through the tick's loop, so that a provider's prompt
    cache holds; what the loop adds stands after it, as messages.
    """
    settings = settings_of(runtime.context)
    context = CONTEXTS["tick_event" if state["event"] else "tick_autonomous"]
    message = _message(state)
    memories = await _recalled(state, runtime, config, settings)
    parts = _bounded(state, settings, context, memories)
    assembled: AssembledContext = {
        "context_type": context.context_type,
        "now": resources_of(config).clock().isoformat(),
        "system": "\n\n".join(parts.values()),
        "tokens": {key: _size(text, state) for key, text in parts.items()},
    }
    return {"context": assembled, "messages": [message]}


def _message(state: State) -> HumanMessage:
    if state["event"] is not None:
        return message_of(state["event"], tick=state["tick"])
    mark = {MARK: {"event": None, "tick": state["tick"]}}
    return HumanMessage(AUTONOMOUS, id=f"autonomous_{state['tick']}", additional_kwargs=mark)


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
    return await recall(
        query,
        scope=scope,
        now=resources.clock(),
        semantic=resources.semantic,
        episodes=await episodes(store_of(runtime), scope, everything=False),
        limit=settings.recall_limit,
    )


def _bounded(
    state: State, settings: Settings, context: ContextConfig, memories: list[RecallHit]
) -> dict[str, str]:
    """The components; where they fill more than half of the context, their budgets are smaller.

    What has no budget, the system prompt and the persona, is the user's own setting.
    """
    parts = _parts(state, settings, context, memories)
    room = settings.max_context_tokens // 2
    if _size("".join(parts.values()), state) <= room:
        return parts
    own = _size(rendering.system_prompt(settings) + settings.persona, state)
    return _parts(state, rendering.within(settings, room - own), context, memories)


def _size(text: str, state: State) -> int:
    return calibrated(approximate_tokens(text), state["calibration"])


def _parts(
    state: State, settings: Settings, context: ContextConfig, memories: list[RecallHit]
) -> dict[str, str]:
    """The rendered components by key, in id order; an empty one is left out."""
    override = context.get_component_content_override("system_prompt")
    calibration = state["calibration"]
    texts = {
        components.SYSTEM_PROMPT: rendering.system_prompt(settings, override),
        components.CHARACTER_CONTEXT: rendering.character_context(
            settings, state["projects"], state["session_memory"], calibration
        ),
        components.ENTITY_CONTEXT: rendering.entity_context(
            state["conversations"], settings, calibration
        ),
        components.SEMANTIC_MEMORIES: rendering.semantic_memories(
            memories, tokens=settings.recall_tokens, calibration=calibration
        ),
        components.CONTEXT_BUFFER: rendering.context_buffer(
            state["context_buffer"], settings, calibration
        ),
        components.GOALS: rendering.goals(state["goals"], settings, calibration),
    }
    return {
        components.COMPONENTS[number].key: rendering.block(
            components.COMPONENTS[number].key, texts[number]
        )
        for number in sorted(context.enabled_components)
        if texts.get(number)
    }
