"""Close a tick: journal its event, note who was answered, report what was done."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, cast

from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, GetOp, PutOp
from langgraph.types import Overwrite

from memory import audit, entities, events, journal, telemetry
from memory.events import due, inbox, owners_of, reflection_event, set_off_by_owner
from memory.journal import source_type_of
from memory.messages import of_tick, text_only
from memory.operations import apply_operations
from memory.prompt import context_use, recommended_action
from memory.recall import episodes
from memory.records import (
    Conversation,
    Event,
    HandledMark,
    Operation,
    Scope,
    TickPrompt,
    TickReport,
    add_entry,
    is_reflection,
    link,
    meet_entity,
)
from memory.runtime import Resources, resources_of, scope_of, settings_of, store_of
from memory.settings import Settings
from memory.state import State, checked, held
from memory.storage import read_ahead, write_batch
from memory.text import STOP_WORDS, hide, secret_values, terms
from tools.builtin import facts, notes
from tools.policy import context_type_for

_redacted = lru_cache(maxsize=16)(hide)
"""Redacts a system message, once, because it is long and the same from tick to tick."""

OPEN_CONVERSATIONS = 50
"""Working memory is bounded: the state is copied into every checkpoint."""


@checked
async def record(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Journal the event (no model call), mark it handled, and hand the state back to the parent.

    The mark is part of the state: the event leaves the inbox only once a checkpoint holds it.
    """
    event, settings = state["event"], settings_of(runtime.context)
    now, reflected = resources_of(config).clock(), is_reflection(event)
    written = await _journal(event, state, runtime, config)
    tick = _reported(state, settings, written, now)
    await _credit(state, tick["reply"], config, now)
    ticks = [*state["report"]["ticks"], tick]
    waiting = [one for one in state["report"]["questions"] if one["id"] != tick.get("question")]
    alone = event is None or reflected
    acted = state["loop"] is not None and state["loop"]["dangerous"] is not None
    spending = events.spending_after_tick(
        state["spending"], now, tokens=tick["tokens"], autonomous=alone, acted=acted
    )
    update: dict[str, Any] = {
        "report": {**state["report"], "ticks": ticks, "questions": waiting},
        "spending": spending,
        "parked": [one for one in state["parked"] if one["question"]["id"] != state["resuming"]],
        **_failures(state, settings),
    }
    telemetry.TICKS.labels(tick["context_type"]).inc()
    telemetry.TICK_SECONDS.labels(tick["context_type"]).observe(tick["duration_ms"] / 1000)
    if event is not None:
        mark = HandledMark(id=event["id"], tick=state["tick"], at=now.isoformat())
        update["handled"] = [*state["handled"], mark]
    if reflected:
        # Its findings are in the journal; a reflection is no part of the conversation.
        own = of_tick(state["messages"], state["tick"])
        update["messages"] = [RemoveMessage(id=str(message.id)) for message in own]
    elif event is not None:
        update["conversations"] = _conversations(state["conversations"], event)
        if "content" in event:
            # The model saw the images in its tick, and checkpoints would copy them.
            told = [one for one in state["messages"] if one.id == event["id"]]
            update["messages"] = [text_only(one) for one in told if isinstance(one, HumanMessage)]
    if update.get("emergency_stop"):
        why = f"{state['consecutive_errors']} failures in a row"
        entry = audit.of_stop(why, at=now, tick=state["tick"], who=audit.AGENT)
        await audit.write(store_of(runtime), scope_of(config), [entry])
    elif (
        due(state["tick"], state["last_reflection"], settings.reflection_interval, event=event)
        and events.why_only_events(spending, settings, now) is None
    ):
        await _set_off_reflection(state, settings, now, store_of(runtime), scope_of(config))
        update["last_reflection"] = state["tick"]
    return {**update, **handed_back(cast(State, {**state, **update}))}


def _prompt(state: State, settings: Settings, config: RunnableConfig) -> list[PutOp]:
    """Writes that keep the prompt, for the page that shows why the model said something."""
    context, most = state["context"], inbox.most_prompts(settings, resources_of(config).user)
    if not most or context is None:
        return []
    secrets = secret_values(os.environ)
    prompt = TickPrompt(
        tick=state["tick"],
        at=context["now"],
        system=_redacted(context["system"], secrets),
        front=hide(context.get("front", ""), secrets),
        messages=len(state["messages"]) - len(of_tick(state["messages"], state["tick"])),
    )
    return inbox.puts_prompt(scope_of(config), prompt, most=most)


async def _set_off_reflection(
    state: State, settings: Settings, now: datetime, store: BaseStore, scope: Scope
) -> None:
    metrics = state["metrics"]
    event = reflection_event(
        state["tick"],
        now,
        settings,
        since=state["tick"] - state["last_reflection"],
        calls=metrics["total_tool_calls"],
        failed=metrics["failed_calls"],
    )
    await inbox.post(store, scope, [event], now=now)


def _reported(state: State, settings: Settings, written: list[str], now: datetime) -> TickReport:
    event, context, loop = state["event"], held(state["context"]), held(state["loop"])
    pattern, assessment = held(state["pattern"]), held(state["assessment"])
    components = {**context["tokens"], **loop["prompt"]}
    use = context_use(components, settings.max_context_tokens)
    took = now - datetime.fromisoformat(context["now"])
    own = of_tick(state["messages"], state["tick"])
    said = [message for message in own if isinstance(message, AIMessage)]
    recalled = (hit["id"] for hit in facts.hits_in(own))
    report: TickReport = {
        "tick": state["tick"],
        "event_id": event["id"] if event else None,
        "context_type": context_type_for(event),
        "pattern": pattern,
        "tools": loop["tools"],
        "llm_calls": loop["llm_calls"],
        "tokens": loop["tokens"],
        "reply": loop["reply"] or (str(said[-1].text).strip() if said else ""),
        "written": [*written, *loop["written"]],
        "shown": list(dict.fromkeys([*context.get("shown", []), *recalled])),
        "classification": state["classification"],
        "assessment": assessment,
        "context": use,
        "advice": recommended_action(use["percentage"]),
        "components": components,
        "sent": loop["sent"],
        "duration_ms": max(0, round(took.total_seconds() * 1000)),
    }
    if state["resuming"]:
        report["question"] = state["resuming"]
    if loop.get("truncated"):
        report["truncated"] = True
    if "extracted" in loop:
        report["extraction"] = loop["extracted"]
    if "compacted" in loop:
        report["compaction"] = loop["compacted"]
    return report


def _failures(state: State, settings: Settings) -> dict[str, Any]:
    """Failures in a row: a tick without one ends the row, and too many stop the agent.

    `intake` reports the stop, and then takes no more events.
    """
    loop = held(state["loop"])
    if loop["raised"] == 0:
        return {"consecutive_errors": 0}
    if state["consecutive_errors"] >= settings.max_consecutive_errors:
        return {"emergency_stop": True}
    return {}


async def _journal(
    event: Event | None, state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> list[str]:
    """Journal the event, and keep the prompt in the same batch; return the ids of new entries.

    A tick that reaches its end has answered, so its sender counts as met.
    """
    store, scope, settings = store_of(runtime), scope_of(config), settings_of(runtime.context)
    kept = _prompt(state, settings, config)
    if event is None or is_reflection(event):
        if kept:
            await write_batch(store, kept)
        return []
    # The sender is looked up to journal the event, and to note who was met.
    labels, id_ = (entities.NAMES, episodes.INDEXING, journal.UNINDEXED), events.entry_id(event)
    profiles, senders = scope.namespace(entities.ENTITIES), entities.ids_of([event["sender"]])
    gets = [GetOp(journal.day_of(scope, id_), id_), *(GetOp(profiles, one) for one in senders)]
    store = await read_ahead(store, [scope.namespace(label) for label in labels], gets)
    (familiar,) = await entities.familiar(store, scope, [event])
    entry = events.entry_in(state, event, settings, familiar)
    operations = [add_entry(entry, "said to the agent")]
    if source_type_of(event, settings) == "direct":
        operations.append(_meeting(event, familiar.sender, settings, resources_of(config)))
    semantic = resources_of(config).semantic
    written = state["loop"]["written"] if state["loop"] else []
    # Recall shows a fact in place of its entry by this link, which needs both.
    operations += [
        link(source, fact["op"], fact["created"], "made from this entry")
        for fact in (await semantic.by_id(scope, written) if written else {}).values()
        for source in fact["source_entries"]
    ]
    return await apply_operations(
        operations, store=store, semantic=semantic, scope=scope, also=kept
    )


def _meeting(event: Event, sender: str, settings: Settings, resources: Resources) -> Operation:
    """The operation that notes an answered sender and new names; of non-owners full names only."""
    owners = owners_of(settings, user=resources.user, served=resources.served)
    owner = set_off_by_owner(event, owners=owners, served=resources.served)
    given = entities.names_given(event["text"], event["sender"])
    names = [name for name, adds in given.items() if adds or owner]
    now = resources.clock().isoformat()
    return meet_entity(sender, event, now=now, reason="answered", names=names, owner=owner)


async def _credit(state: State, reply: str, config: RunnableConfig, now: datetime) -> None:
    """Count an access of each recalled fact that the answer used; the others gain nothing."""
    event, own = state["event"], of_tick(state["messages"], state["tick"])
    context = held(state["context"])
    brought_up = {hit["id"]: hit["text"] for hit in facts.hits_in(own) if hit["kind"] == "fact"}
    shown = {**context.get("recalled", {}), **brought_up}
    asked = event["text"] if event is not None else ""
    calls = [call for one in own if isinstance(one, AIMessage) for call in one.tool_calls]
    asking = (facts.recall_memories.name, notes.review_journal.name)
    wrote = " ".join(str(call["args"]) for call in calls if call["name"] not in asking)
    if used := facts_used(shown, f"{reply} {wrote}", asked=asked):
        await resources_of(config).semantic.touch(scope_of(config), used, now)


def _conversations(standing: dict[str, Conversation], event: Event) -> dict[str, Conversation]:
    key = f"{event['sender']} @ {event['channel']}" if event["channel"] else event["sender"]
    mine: Conversation = {
        "entity": event["sender"],
        "channel": event["channel"],
        "last_event": event["id"],
        "last_at": event["at"],
        "pending_actions": [],
    }
    others = sorted(
        (item for item in standing.items() if item[0] != key), key=lambda item: item[1]["last_at"]
    )
    return dict([*others[max(0, len(others) + 1 - OPEN_CONVERSATIONS) :], (key, mine)])


SHORT_ID = 8
"""First characters of an id, by which a prompt may name a fact."""

RARE = 4
"""A term is rare if it stands in at most two of the facts shown, or in one of this many."""

SHORTEST_TERM = 3
"""Letters of a term that can tell one fact from another; digits can at any length."""


def facts_used(shown: Mapping[str, str], answer: str, *, asked: str) -> list[str]:
    """The ids of the facts (`shown`) that the answer used, in the order shown. Pure.

    A fact that was only shown does not count: what recall brings up by mistake would rank ever
    higher. A fact is used if the `answer`, with what the tick wrote, cites it, or has a term of it
    that is rare among the facts shown and missing in the question (`asked`).
    """
    mine = {id_: set(terms(text)) - STOP_WORDS for id_, text in shown.items()}
    common = Counter(term for told in mine.values() for term in told)
    most = max(2, len(shown) // RARE)
    said = set(terms(answer)) - set(terms(asked))
    said = {one for one in said if common[one] <= most and _tells(one)}
    return [id_ for id_, told in mine.items() if told & said or id_[:SHORT_ID] in answer]


def _tells(term: str) -> bool:
    return len(term) >= SHORTEST_TERM or not term.isascii() or term.isdigit()


@checked
async def hand_back(state: State) -> dict[str, Any]:
    """End a parked tick or a night; `record` hands back a tick itself, which saves a step."""
    return handed_back(state)


def handed_back(state: State) -> dict[str, Any]:
    """The update that overwrites the parent's reducer keys and clears what only a subgraph needs.

    The parent merges a subgraph's whole final value, so that whatever the subgraph deleted from a
    key with a reducer would come back. `returned` does the same for the messages.
    """
    return {
        "projects": Overwrite({"__overwrite__": state["projects"]}),
        "goals": Overwrite({"__overwrite__": state["goals"]}),
        "conversations": Overwrite({"__overwrite__": state["conversations"]}),
        "delegated": Overwrite({"__overwrite__": {}}),
        "returning": True,
        "event": None,
        "classification": None,
        "resuming": None,
        "context": None,
        "assessment": None,
        "pattern": None,
        "loop": None,
        "exchange": [],
    }
