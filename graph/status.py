"""The agent at a glance: what `circadian status` shows, read without holding the agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import SystemMessage
from langgraph.types import StateSnapshot

from graph.handle import AsyncAgent
from memory import inbox, journal, rendering
from memory.apply import LINKS
from memory.errors import StateError
from memory.goals import tree
from memory.settings import Settings
from memory.state import State, fresh_state
from memory.state_check import state_problem
from memory.store_access import count_items, list_items
from memory.tokens import advisory, approximate_tokens, calibrated, utilisation

ENTITIES = "entities"
"""The namespace of entity profiles, below `(user, thread)`."""


async def status(agent: AsyncAgent) -> dict[str, Any]:
    """The agent as JSON; also while a run holds it, as its last checkpoint shows it.

    `mode, phase, tick, projects{active,slots}, goals[], session_memory{},
    context{used,limit,percentage,level}, memory{journal,pending,facts,entities,links},
    inbox{waiting,set_aside:[{id,error}]}, approvals[], cumulative_importance, emergency_stop`
    (design, section 3). Goals stand in the order of the tree, each before its subtasks. Tokens are
    calibrated estimates.

    Raises:
        StateError: the state breaks a rule, as after a bad edit by hand.
    """
    snapshot = await agent.aget_state()
    problem = state_problem(snapshot.values)
    if problem is not None:
        raise StateError(problem)
    # A key with a reducer is empty, not absent, before the first run.
    known = {key: value for key, value in snapshot.values.items() if value or key != "projects"}
    state = cast(State, {**fresh_state(), "messages": [], **known})
    return {
        "mode": state["mode"],
        "phase": state["phase"],
        "tick": state["tick"],
        "projects": state["projects"],
        "goals": [goal for _, goal in tree(state["goals"])],
        "session_memory": state["session_memory"],
        "context": context_use(state, agent.settings),
        "memory": await _memory(agent),
        "inbox": await _inbox(agent, state),
        "approvals": _approvals(snapshot),
        "cumulative_importance": await _cumulative_importance(agent),
        "emergency_stop": state["emergency_stop"],
    }


def context_use(state: State, settings: Settings) -> dict[str, Any]:
    """How full the prompt is: what a tick would show now, but for the memories it will recall."""
    context = state["context"]
    system = context["system"] if context else _standing_prompt(state, settings)
    approximate = approximate_tokens([SystemMessage(system), *state["messages"]])
    used = calibrated(approximate, state["calibration"])
    percentage = utilisation(used, settings.max_context_tokens)
    return {
        "used": used,
        "limit": settings.max_context_tokens,
        "percentage": percentage,
        "level": advisory(percentage)["level"],
    }


def _standing_prompt(state: State, settings: Settings) -> str:
    """The components that do not depend on an event."""
    parts = (
        rendering.system_prompt(settings),
        rendering.character_context(settings, state["projects"], state["session_memory"]),
        rendering.entity_context(state["conversations"]),
        rendering.context_buffer(state["context_buffer"]),
        rendering.goals(state["goals"]),
    )
    return "\n\n".join(part for part in parts if part)


async def _memory(agent: AsyncAgent) -> dict[str, int]:
    store, scope = agent.store, agent.scope
    least = agent.settings.min_importance
    pending = await journal.pending(store, scope)
    ends = await list_items(store, scope.namespace(LINKS))
    return {
        "journal": await count_items(store, scope.namespace("journal")),
        "pending": sum(journal.is_pending(entry, least) for entry in pending),
        "facts": await agent.resources.semantic.count(scope),
        "entities": await count_items(store, scope.namespace(ENTITIES)),
        # A link stands at both of its ends.
        "links": sum(len(end.value["linked_to"]) for end in ends) // 2,
    }


async def _inbox(agent: AsyncAgent, state: State) -> dict[str, Any]:
    """An event whose tick the state already contains does not wait any more."""
    waiting = await inbox.waiting(agent.store, agent.scope, state["handled"])
    aside = await inbox.set_aside(agent.store, agent.scope)
    return {
        "waiting": len(waiting),
        "set_aside": [{"id": item["event"]["id"], "error": item["error"]} for item in aside],
    }


def _approvals(snapshot: StateSnapshot) -> list[Mapping[str, Any]]:
    """The questions that an unfinished run waits for."""
    return [
        {"id": question.id, "question": question.value}
        for task in snapshot.tasks
        for question in task.interrupts
    ]


async def _cumulative_importance(agent: AsyncAgent) -> int:
    """Derived from the journal; what is exempt from consolidation adds nothing (ruling 2)."""
    total = await count_items(agent.store, agent.scope.namespace("journal"))
    entries = await journal.newest(agent.store, agent.scope, limit=total)
    return sum(entry["importance"] for entry in entries if entry["consolidation"] != "exempt")
