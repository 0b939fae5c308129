"""Make journal entries into facts, batch by batch, in a loop of model answers (ruling 13)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    messages_from_dict,
    messages_to_dict,
)
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory.messages import as_model_sees, prompt_lines
from memory.models import ask, total
from memory.night import (
    Job,
    NightContext,
    Plans,
    Thought,
    entry_lines,
    night_in_hand,
    plan_batches,
    to_consolidate,
)
from memory.operations import PlanCollector, with_collector
from memory.prompt import assembly
from memory.recall import recall
from memory.records import AssembledContext, JournalEntry, Operation, PlanRecord, link, mark_entry
from memory.settings import Settings
from memory.state import State, checked
from tools.execution import Executed, execute
from tools.policy import CONTEXTS, material, select_execution_pattern
from tools.registry import tools_for

CONTEXT = CONTEXTS["sleep_consolidate"]


@checked
async def consolidate(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Go on with the loop over the batch in hand, or begin the next one.

    An entry is marked consolidated when a fact cites it, or when the model said with `noop` that
    nothing in the rest is worth keeping. Everything else stays pending.
    """
    context = await night_in_hand(state, runtime, config)
    settings = context.settings

    async def next_jobs() -> list[Job]:
        batch = to_consolidate(
            context.plans,
            min_importance=settings.min_importance,
            size=settings.consolidate_batch_size,
            tokens=settings.night_batch_tokens,
        )
        ids = [entry["id"] for entry in batch]
        turns = [plan for plan in context.plans.of("consolidate") if plan["inputs"] == ids]
        return [Job(ids, partial(_turn, context, batch, turns), len(turns))] if batch else []

    return {"night": await plan_batches(context, "consolidate", next_jobs)}


async def _turn(
    context: NightContext, batch: list[JournalEntry], turns: list[PlanRecord]
) -> Thought:
    """Ask once, run the tools that were called, and see whether the batch is settled."""
    pattern = select_execution_pattern(context.settings, CONTEXT)
    tools = tools_for(CONTEXT, pattern, ())
    exchange = _exchange(turns) or await _opening(context, batch)
    resources = context.resources
    answer = await ask(
        resources.chat_model,
        as_model_sees(exchange),
        tools=tools,
        config=context.config,
        breaker=resources.breakers.model,
    )
    earlier = Plans(turns).operations()
    collector = PlanCollector({entry["id"]: entry for entry in batch}, earlier)
    done = await execute(
        answer.message.tool_calls,
        tools,
        _side(context, exchange),
        with_collector(context.config, collector),
        seconds=context.settings.tool_timeout,
    )
    cited = _cited(collector.operations)
    settled = closes(answer.message, done, batch, cited)
    last = len(turns) + 1 >= pattern["max_iterations"]
    thought = Thought(
        operations=collector.operations[len(earlier) :],
        usage=total(answer.usage, done.usage),
        exchange=messages_to_dict([*exchange, answer.message, *done.messages]),
        finished=settled is not None or last,
        log=context.calls_logged(done.calls),
    )
    if thought.finished:
        keep = batch if settled == "all" else [entry for entry in batch if entry["id"] in cited]
        thought.operations += _closing(collector.operations, keep, context.now)
        thought.left = [entry["id"] for entry in batch if entry not in keep]
    return thought


def closes(
    message: AIMessage, done: Executed, batch: Sequence[JournalEntry], cited: set[str]
) -> str | None:
    """How this answer closes the loop: "all" entries settled, only the "cited" ones, or None.

    With None the loop goes on, as after a call that a tool refused. `noop` settles the entries
    that no fact cites. An answer without any tool call settles only entries cited already: a
    refusal or chatter must not mark work as done.
    """
    names = [call["name"] for call in message.tool_calls]
    if any(not outcome["ok"] for outcome in done.outcomes):
        return None
    if any(json.loads(str(answer.content)).get("rejected") for answer in done.messages):
        return None
    if "noop" in names or all(entry["id"] in cited for entry in batch):
        return "all"
    return "cited" if not names else None


async def _opening(context: NightContext, batch: list[JournalEntry]) -> list[AnyMessage]:
    """The prompt: the context's own system prompt, related facts, and the batch by id."""
    settings = context.settings
    query = " ".join(entry["content"] for entry in batch)[:2000]
    known = await recall(
        query,
        scope=context.scope,
        now=datetime.fromisoformat(context.now),
        semantic=context.resources.semantic,
        store=context.store,
        settings=settings,
        limit=settings.recall_limit,
        facts_only=True,
    )
    made = material(
        context.state,
        settings,
        context.resources,
        CONTEXT.context_type,
        now=context.now,
        memories=known,
    )
    lines = entry_lines(batch, settings.night_batch_tokens)
    return [
        SystemMessage(assembly.system_message(assembly.blocks(made))),
        HumanMessage(prompt_lines.entries_message(lines)),
    ]


def _side(context: NightContext, exchange: list[AnyMessage]) -> State:
    """The state as the loop's tools see it: no event in hand, and the night's own time."""
    assembled: AssembledContext = {
        "context_type": CONTEXT.context_type,
        "now": context.now,
        "system": "",
        "tokens": {},
    }
    return {
        **context.state,
        "event": None,
        "loop": None,
        "context": assembled,
        "exchange": exchange,
    }


def _exchange(turns: list[PlanRecord]) -> list[AnyMessage]:
    """The loop so far, as the last turn left it."""
    return cast(list[AnyMessage], messages_from_dict(turns[-1]["exchange"])) if turns else []


def _closing(
    operations: Sequence[Operation], keep: list[JournalEntry], created: str
) -> list[Operation]:
    """Links from every fact of the loop to its entries, then the marks of the settled entries."""
    links = [
        link(entry_id, fact["id"], created, "made from this entry")
        for fact in _facts(operations)
        for entry_id in fact["after"]["source_entries"]
    ]
    return [*links, *(mark_entry(entry, "consolidated", "settled by the model") for entry in keep)]


def _cited(operations: Sequence[Operation]) -> set[str]:
    return {id_ for fact in _facts(operations) for id_ in fact["after"]["source_entries"]}


def _facts(operations: Sequence[Operation]) -> list[Operation]:
    return [operation for operation in operations if operation["kind"] == "add_fact"]
