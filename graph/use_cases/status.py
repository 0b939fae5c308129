"""The agent at a glance, and its own prompt with the versions before."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NotRequired
from urllib.parse import unquote

from typing_extensions import TypedDict

from graph.use_cases.context import AGENT, AgentContext, complete_state
from memory import audit, forgetting, journal, night, transfer
from memory.entities import ENTITIES
from memory.errors import NotFoundError
from memory.events import inbox, next_look, spending_at, why_idle, why_only_events
from memory.messages import is_history, mark_of
from memory.operations import LINKS, begun_corrections
from memory.planning import tree
from memory.prompt import (
    HISTORY,
    TOOLS,
    PromptHealth,
    assembly,
    context_use,
    prompt_health,
    recommended_action,
    registered,
    rolled_back,
)
from memory.records import (
    AssistantPrompt,
    Briefing,
    ContextUse,
    Goal,
    Projects,
    Question,
    Scope,
    SessionMemory,
    thread_id,
)
from memory.runtime import Resources
from memory.settings import Settings
from memory.state import State
from memory.storage import count_items, list_items, namespaces_below
from memory.text import approximate_tokens, calibrated

SAMPLE = 20
"""Facts that are looked for, to tell that facts.db goes with store.db."""


async def prompt_of(context: AgentContext) -> AssistantPrompt:
    """The assistant's own prompt and its versions; takes no lock."""
    return complete_state(await context.values())["assistant_prompt"]


async def rollback(context: AgentContext, version: int) -> AssistantPrompt:
    """Put an earlier version's text in force again, as a new version; 0 is the empty prompt.

    A person does this, so nobody is asked to confirm. A text in force already changes nothing.

    Raises:
        InputError: no such version is kept.
        BusyError: another process holds the agent.
    """
    async with context.lock():
        before = await prompt_of(context)
        now, by = context.now(), context.scope.user
        after = rolled_back(before, version, at=now, by=by)
        if after is not before:
            change = {"assistant_prompt": after}
            await context.graph.aupdate_state(context.config(), change)
            entries = audit.of_prompt(before, after, tick=None, origin=None)
            await audit.write(context.store, context.scope, entries)
    return after


async def briefing(context: AgentContext, reader: str | None = None) -> Briefing | None:
    """What changed, is open, comes up and waits after the newest night; None before the first.

    It holds an owner's private words: no other `reader` gets it. None: an owner reads.
    """
    if reader is not None and reader not in context.owners:
        return None
    state = complete_state(await context.values())
    store, scope, semantic = context.store, context.scope, context.semantic
    return await night.briefing_of(store, semantic, scope, state, context.settings, context.now())


async def new_briefing(context: AgentContext, reader: str | None = None) -> Briefing | None:
    """The briefing, if no chat has shown it yet; from then on it counts as shown."""
    found = await briefing(context, reader)
    if found is None or await night.was_shown(context.store, context.scope, found):
        return None
    await night.mark_shown(context.store, context.scope, found)
    return found


class ContextState(ContextUse):
    """How full the context is, and what to do about it."""

    advice: str


class Holdings(TypedDict):
    """How much is remembered."""

    journal: int
    pending: int
    """Entries for the next night."""
    facts: int
    entities: int
    unembedded: NotRequired[int]
    """Memories without a vector, which recall finds by their words alone; left out if none."""
    links: NotRequired[int]
    """No index counts them; an overview leaves them out."""


class SetAside(TypedDict):
    """An event that failed too often."""

    id: str
    error: str | None


class InboxState(TypedDict):
    """What the inbox holds."""

    waiting: int
    set_aside: list[SetAside]


class SpendingState(TypedDict):
    """What was spent, and the limits."""

    tokens: int
    tokens_per_day: int
    autonomous_ticks: int
    autonomous_ticks_per_hour: int
    over: str | None
    """Which limit is reached."""
    next_look: str | None
    """When `circadian run` looks at the goals again, if nothing happens; None: at once, or it has
    none."""


class Status(TypedDict):
    """The agent at a glance. Tokens are calibrated estimates."""

    mode: str
    phase: str | None
    tick: int
    projects: Projects
    goals: list[Goal]
    """In the order of the tree, each before its subtasks."""
    session_memory: SessionMemory
    context: ContextState
    prompt: PromptHealth
    assistant_prompt: dict[str, int]
    inbox: InboxState
    approvals: list[Question]
    """Questions that wait for a person, oldest first."""
    emergency_stop: bool
    spending: SpendingState
    breakers: dict[str, str]
    """State of each circuit breaker of this process."""
    briefing: NotRequired[Briefing | None]
    memory: Holdings
    cumulative_importance: NotRequired[int]
    """Counted from the whole journal; an overview leaves it out."""


async def status(context: AgentContext) -> Status:
    """The agent at a glance, from its last checkpoint; takes no lock. Raises as `overview`."""
    found = await overview(context)
    ends = await count_items(context.store, context.scope.namespace(LINKS), "linked_to")
    total = await count_items(context.store, context.scope.namespace("journal"))
    entries = await journal.newest(context.store, context.scope, limit=total)
    return {
        **found,
        "memory": {**found["memory"], "links": ends // 2},
        "cumulative_importance": sum(
            entry["importance"] for entry in entries if entry["consolidation"] != "exempt"
        ),
    }


async def overview(context: AgentContext) -> Status:
    """The status as far as it can be told without reading all of the journal and all links.

    Raises:
        StateError: the state breaks a rule, as after a bad edit by hand.
        InputError: one of the user's prompt components or tools cannot be used.
    """
    settings, resources = context.settings, context.resources
    state = complete_state(await context.values())
    newest = await inbox.report_of(context.store, context.scope, state["tick"])
    tools = newest["components"].get(TOOLS) if newest else None
    tokens = prompt_tokens(state, settings, resources, tools=tools)
    use = context_use(tokens, settings.max_context_tokens)
    return {
        "mode": state["mode"],
        "phase": state["phase"],
        "tick": state["tick"],
        "projects": state["projects"],
        "goals": [goal for _, goal in tree(state["goals"])],
        "session_memory": state["session_memory"],
        "context": {**use, "advice": recommended_action(use["percentage"])},
        "prompt": prompt_health(
            tokens,
            {one.key: one.budget(settings) for one in registered(resources.components).values()},
            settings.max_context_tokens,
        ),
        "assistant_prompt": {"version": state["assistant_prompt"]["version"]},
        "memory": await _memory(context),
        "inbox": await _inbox(context, state),
        "approvals": [parked["question"] for parked in state["parked"]],
        "emergency_stop": state["emergency_stop"],
        "spending": _spending(state, settings, resources.clock()),
        "breakers": {
            "model": resources.breakers.model.state,
            "embedder": resources.breakers.embedder.state,
            "memory": resources.breakers.memory.state,
        },
    }


def prompt_tokens(
    state: State, settings: Settings, resources: Resources, *, tools: int | None = None
) -> dict[str, int]:
    """Calibrated tokens of each part of the prompt, in the prompt's order.

    For a tick on an event as it would be now, without the memories that it would recall. `tools`:
    of the schemas in the newest tick, as it counted them; before the first tick they are made.
    """
    # Whoever asks for nothing of the prompt needs no rules of it.
    from tools.policy import CONTEXTS, history, material, select_execution_pattern

    factor = state["calibration"]
    made = material(state, settings, resources, "tick_event", now=resources.clock().isoformat())
    shown = history(state, settings, "tick_event")
    if tools is None:
        from tools.registry import shown_tools, tools_for

        pattern = select_execution_pattern(settings, CONTEXTS["tick_event"])
        schemas = shown_tools(tools_for(CONTEXTS["tick_event"], pattern, resources.tools))
        tools = calibrated(approximate_tokens([], tools=schemas), factor)
    return {
        **{key: made.size(text) for key, text in assembly.blocks(made).items()},
        HISTORY: calibrated(approximate_tokens(shown), factor),
        TOOLS: tools,
    }


def _spending(state: State, settings: Settings, now: datetime) -> SpendingState:
    held = spending_at(state["spending"], now)
    due = None if why_idle(state, settings, now) else next_look(state, settings, now)
    return {
        "tokens": held["tokens"],
        "tokens_per_day": settings.tokens_per_day,
        "autonomous_ticks": held["autonomous_ticks"],
        "autonomous_ticks_per_hour": settings.autonomous_ticks_per_hour,
        "over": why_only_events(state["spending"], settings, now),
        "next_look": due.isoformat() if due else None,
    }


async def _memory(context: AgentContext) -> Holdings:
    store, scope, semantic = context.store, context.scope, context.semantic
    unembedded = await semantic.count_unembedded(scope)
    least = context.settings.min_importance
    pending = await journal.pending(store, scope)
    counts: Holdings = {
        "journal": await count_items(store, scope.namespace("journal")),
        "pending": sum(journal.is_pending(entry, least) for entry in pending),
        "facts": await semantic.count(scope),
        "entities": await count_items(store, scope.namespace(ENTITIES)),
    }
    return {**counts, "unembedded": unembedded} if unembedded else counts


async def _inbox(context: AgentContext, state: State) -> InboxState:
    """Events waiting and set aside. One whose tick the state already contains waits no more."""
    waiting = await inbox.waiting(context.store, context.scope, state["handled"])
    aside = await inbox.set_aside(context.store, context.scope)
    return {
        "waiting": len(waiting),
        "set_aside": [{"id": item["event"]["id"], "error": item["error"]} for item in aside],
    }


class AgentHoldings(TypedDict):
    """One agent, in a list."""

    name: str | None
    """None: it was made before names were kept, or on a server."""
    thread: str
    journal: int
    facts: int
    waiting: int
    """Events in its inbox."""


async def list_agents(context: AgentContext) -> list[AgentHoldings]:
    """The agents of the context's user, by name."""
    user = context.scope.user
    below = await namespaces_below(context.store, context.scope.namespace()[:1])
    threads = sorted({unquote(one[1]) for one in below if len(one) > 1})
    lines = [await _line(context, Scope(user, thread)) for thread in threads]
    return sorted(lines, key=lambda line: (line["name"] is None, line["name"], line["thread"]))


async def _line(context: AgentContext, scope: Scope) -> AgentHoldings:
    named = await list_items(context.store, scope.namespace(AGENT))
    known = {thread_id(scope.user, name): name for name in (context.name, "default") if name}
    name = str(named[0].value["name"]) if named else known.get(scope.thread)
    return {
        "name": name,
        "thread": scope.thread,
        "journal": await count_items(context.store, scope.namespace("journal")),
        "facts": await context.semantic.count(scope),
        "waiting": await count_items(context.store, scope.namespace(inbox.INBOX)),
    }


async def agent_held(context: AgentContext) -> AgentHoldings:
    """What the context's agent holds.

    Raises:
        NotFoundError: there is no such agent.
    """
    for line in await list_agents(context):
        if line["thread"] == context.scope.thread:
            return line
    name = f"{context.name!r:.80}"
    raise NotFoundError(f"there is no agent {name}; `circadian agents` lists all")


async def half_done(context: AgentContext) -> dict[str, str]:
    """What was broken off and is not finished, by name, each with the command that finishes it."""
    store, scope = context.store, context.scope
    found: dict[str, str] = {}
    if left := await forgetting.unfinished(store, scope):
        found["forget"] = left
    if left := await transfer.unfinished(store, scope):
        found["import"] = left
    if begun := await begun_corrections(store, scope):
        found["correction"] = (
            f"a correction of fact {begun[0]['fact']} was broken off: `circadian tick`, or "
            "whatever runs next, finishes it"
        )
    if undo := await night.unfinished_undo(store, scope):
        found["undo"] = f"the undo of {undo['id']} was broken off: `circadian tick` finishes it"
    return found


async def lost_ticks(context: AgentContext) -> list[str]:
    """A sentence if the checkpoints lack the newest ticks that the store knows; else nothing."""
    known = await inbox.reports(context.store, context.scope)
    newest = max((report["tick"] for report in known), default=0)
    here = int((await context.values()).get("tick", 0))
    if newest <= here:
        return []
    return [
        f"the checkpoints end at tick {here}, and the store knows tick {newest}: checkpoints.db is "
        "missing, older or another folder's"
    ]


async def losses(context: AgentContext) -> list[str]:
    """What one part of the memory refers to and another part lacks, as sentences.

    So a file shows that was deleted, or put there from another folder or an older copy.
    """
    store, scope = context.store, context.scope
    found, values = await lost_ticks(context), await context.values()
    if values.get("tick") and not await count_items(store, scope.namespace()):
        found.append("the checkpoints have ticks, and the store has no record: store.db is missing")
    elif not found and (unknown := await _unknown_event(context, values)):
        found.append(
            f"the checkpoints have answered the event {unknown!r:.80}, which the store does not "
            "know: checkpoints.db is newer than store.db, or another folder's"
        )
    entries = await journal.since(store, scope, None)
    made = {one["id"] for one in entries if one["consolidation"] == "consolidated"}
    links = await list_items(store, scope.namespace(LINKS))
    facts = {
        end.key: {
            id_ for id_, one in end.value["relations"].items() if one["relation"] == "made_of"
        }
        for end in links
        if end.key in made
    }
    linked = sorted(set().union(*facts.values()))
    if linked and not await context.semantic.by_id(scope, linked[:SAMPLE]):
        found.append(
            f"{sum(map(bool, facts.values())):,} entries were made into facts, and no such fact is "
            "there, so that a backup alone has them: facts.db is missing, older or another folder's"
        )
    return found


async def _unknown_event(context: AgentContext, values: Mapping[str, Any]) -> str | None:
    """An event that the state has handled and that no inbox of the store ever held, if any.

    An event is in the store before a checkpoint has it, and its mark stays; a forget drops both.
    """
    said = [mark_of(one).get("event") for one in values.get("messages", []) if is_history(one)]
    ids = [*(mark["id"] for mark in values.get("handled", [])), *[one for one in said if one][-1:]]
    store, scope = context.store, context.scope
    known = await inbox.already_handled(store, scope, ids)
    waiting = [*await inbox.waiting(store, scope), *await inbox.set_aside(store, scope)]
    known.update(one["event"]["id"] for one in waiting)
    return next((id_ for id_ in ids if id_ not in known), None)
