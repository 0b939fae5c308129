"""What a prompt shows: its history, and the material for `memory.assembly` to put together."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AnyMessage

from memory.assembly import Material
from memory.components import CONVERSATION_HISTORY
from memory.history import of_tick
from memory.owners import owners_of
from memory.profiles import EntityProfile
from memory.records import RecallHit
from memory.rendering import recent
from memory.resources import Resources
from memory.settings import Settings
from memory.state import State
from tools.contexts import CONTEXTS, GUIDED_CONTEXTS


def history(state: State, settings: Settings, context_type: str) -> list[AnyMessage]:
    """The messages that a prompt of `context_type` shows: the newest of the history.

    Where it shows none, what belongs to the tick in hand.
    """
    if CONVERSATION_HISTORY not in CONTEXTS[context_type].enabled_components:
        return of_tick(state["messages"], state["tick"])
    tokens = settings.conversation_history_tokens
    return recent(state["messages"], tokens, state["calibration"])


def material(
    state: State,
    settings: Settings,
    resources: Resources,
    context_type: str,
    *,
    now: str,
    memories: Sequence[RecallHit] = (),
    people: Sequence[EntityProfile] = (),
) -> Material:
    """What the prompt of `context_type` is made from. `now`: the tick's time, ISO 8601."""
    context = CONTEXTS[context_type]
    return Material(
        state=state,
        settings=settings,
        context_type=context_type,
        enabled=context.enabled_components,
        override=context.get_component_content_override,
        limit=context.token_budget or settings.max_context_tokens,
        now=now,
        owners=owners_of(settings, user=resources.user, served=resources.served),
        memories=memories,
        people=people,
        guidelines=state["assistant_prompt"]["text"] if context_type in GUIDED_CONTEXTS else "",
        extra=resources.components,
    )
