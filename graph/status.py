"""The agent at a glance: what `circadian status` shows, read without holding the agent."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from graph.handle import AsyncAgent
from memory import assembly, inbox, journal
from memory.apply import LINKS
from memory.components import registered
from memory.errors import StateError
from memory.goals import tree
from memory.prompt_health import HISTORY, TOOLS, context_use, prompt_health, recommended_action
from memory.resources import Resources
from memory.settings import Settings
from memory.spending import held_at, over
from memory.state import State, fresh_state
from memory.state_check import kept_problem
from memory.store_access import count_items, list_items
from memory.tokens import approximate_tokens, calibrated
from tools.contexts import CONTEXTS
from tools.material import history, material
from tools.pattern import select_execution_pattern
from tools.registry import tools_for

ENTITIES = "entities"
"""The namespace of entity profiles, below `(user, thread)`."""


async def status(agent: AsyncAgent) -> dict[str, Any]:
    """The agent as JSON; also while a run holds it, as its last checkpoint shows it.

    `mode, phase, tick, projects{active,slots}, goals[], session_memory{},
    context{used,limit,percentage,level,advice}, prompt{components[],problems[]},
    assistant_prompt{version}, memory{journal,pending,facts,entities,links,unembedded?},
    inbox{waiting,set_aside:[{id,error}]}, approvals[], cumulative_importance, emergency_stop,
    spending{tokens,tokens_per_day,autonomous_ticks,autonomous_ticks_per_hour,over},
    breakers{model,embedder,memory}` (design, section 3). Breakers are this process's own. Goals
    stand in the order of the tree, each before its subtasks; approvals are the questions that wait
    for a person, oldest first. Tokens are calibrated estimates. `unembedded` is there where
    memories have no vector, and are found by their words alone.

    Raises:
        StateError: the state breaks a rule, as after a bad edit by hand.
        InputError: one of the user's prompt components or tools cannot be used.
    """
    settings, resources = agent.settings, agent.resources
    snapshot = await agent.aget_state()
    problem = kept_problem(snapshot.values)
    if problem is not None:
        raise StateError(problem)
    # A key with a reducer is empty, not absent, before the first run.
    known = {key: value for key, value in snapshot.values.items() if value or key != "projects"}
    state = cast(State, {**fresh_state(), "messages": [], **known})
    tokens = prompt_tokens(state, settings, resources)
    use = context_use(tokens, settings.max_context_tokens)
    return {
        "mode": state["mode"],
        "phase": state["phase"],
        "tick": state["tick"],
        "projects": state["projects"],
        "goals": [goal for _, goal in tree(state["goals"])],
        "session_memory": state["session_memory"],
        "context": {**use, "advice": recommended_action(use["percentage"])},
        "prompt": prompt_health(tokens, _budgets(settings, resources), settings.max_context_tokens),
        "assistant_prompt": {"version": state["assistant_prompt"]["version"]},
        "memory": await _memory(agent),
        "inbox": await _inbox(agent, state),
        "approvals": [parked["question"] for parked in state["parked"]],
        "cumulative_importance": await _cumulative_importance(agent),
        "emergency_stop": state["emergency_stop"],
        "spending": _spending(state, settings, resources.clock()),
        "breakers": {
            "model": resources.breakers.model.state,
            "embedder": resources.breakers.embedder.state,
            "memory": resources.breakers.memory.state,
        },
    }


def prompt_tokens(state: State, settings: Settings, resources: Resources) -> dict[str, int]:
    """What each part of the prompt costs, tokens (calibrated), in the prompt's order.

    As a tick on an event would show it now, but for the memories that it will recall.
    """
    factor = state["calibration"]
    context = state["context"]
    made = material(
        state, settings, resources, "tick_event", now=resources.clock().isoformat(), memories=()
    )
    parts = (
        context["tokens"]
        if context
        else {key: made.size(text) for key, text in assembly.blocks(made).items()}
    )
    shown = history(state, settings, "tick_event")
    pattern = select_execution_pattern(settings, CONTEXTS["tick_event"])
    tools = tools_for(CONTEXTS["tick_event"], pattern, resources.tools)
    return {
        **parts,
        HISTORY: calibrated(approximate_tokens(shown), factor),
        TOOLS: calibrated(approximate_tokens([], tools=tools), factor),
    }


def _budgets(settings: Settings, resources: Resources) -> dict[str, int | None]:
    known = registered(resources.components).values()
    return {one.key: one.budget(settings) for one in known}


def _spending(state: State, settings: Settings, now: datetime) -> dict[str, Any]:
    """Today's tokens and this hour's ticks of its own (UTC), and why only events are answered."""
    held = held_at(state["spending"], now)
    return {
        "tokens": held["tokens"],
        "tokens_per_day": settings.tokens_per_day,
        "autonomous_ticks": held["autonomous_ticks"],
        "autonomous_ticks_per_hour": settings.autonomous_ticks_per_hour,
        "over": over(state["spending"], settings, now),
    }


async def _memory(agent: AsyncAgent) -> dict[str, int]:
    store, scope, semantic = agent.store, agent.scope, agent.resources.semantic
    unembedded = await semantic.count_unembedded(scope)
    least = agent.settings.min_importance
    pending = await journal.pending(store, scope)
    ends = await list_items(store, scope.namespace(LINKS))
    return {
        "journal": await count_items(store, scope.namespace("journal")),
        "pending": sum(journal.is_pending(entry, least) for entry in pending),
        "facts": await semantic.count(scope),
        "entities": await count_items(store, scope.namespace(ENTITIES)),
        # A link stands at both of its ends.
        "links": sum(len(end.value["linked_to"]) for end in ends) // 2,
        **({"unembedded": unembedded} if unembedded else {}),
    }


async def _inbox(agent: AsyncAgent, state: State) -> dict[str, Any]:
    """An event whose tick the state already contains does not wait any more."""
    waiting = await inbox.waiting(agent.store, agent.scope, state["handled"])
    aside = await inbox.set_aside(agent.store, agent.scope)
    return {
        "waiting": len(waiting),
        "set_aside": [{"id": item["event"]["id"], "error": item["error"]} for item in aside],
    }


async def _cumulative_importance(agent: AsyncAgent) -> int:
    """Derived from the journal; what is exempt from consolidation adds nothing (ruling 2)."""
    total = await count_items(agent.store, agent.scope.namespace("journal"))
    entries = await journal.newest(agent.store, agent.scope, limit=total)
    return sum(entry["importance"] for entry in entries if entry["consolidation"] != "exempt")
