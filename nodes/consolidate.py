"""Make journal entries into facts, a batch at a time, one model answer a visit (ruling 13)."""

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

from memory import assembly, audit
from memory.models.ask import ask
from memory.models.naming import called
from memory.night_batches import entry_lines, to_consolidate
from memory.night_plans import Plans
from memory.night_view import Job, NightView, Thought
from memory.operations import link, mark_entry
from memory.recall import recall
from memory.records import JournalEntry, Operation, PlanRecord
from memory.resources import Resources, resources_of, scope_of, settings_of, store_of
from memory.settings import Settings
from memory.sink import PlanSink, with_sink
from memory.state import State
from memory.state_check import checked
from memory.tick import AssembledContext
from memory.trust import as_data, as_model_sees
from memory.usage import total
from tools.contexts import CONTEXTS
from tools.execute import Executed, execute
from tools.material import material
from tools.pattern import select_execution_pattern
from tools.registry import tools_for

CONTEXT = CONTEXTS["sleep_consolidate"]


@checked
async def consolidate(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """One turn of the loop over each batch in hand; a loop closes when its entries are settled.

    An entry is marked consolidated when a fact cites it, or when the model said with `noop` that
    nothing in the rest is worth keeping. Everything else stays pending.
    """
    settings = settings_of(runtime.context)
    view = (await NightView.of(state, store_of(runtime), scope_of(config))).set_out_again()

    async def think(batch: list[JournalEntry], turns: list[PlanRecord]) -> Thought:
        return await _turn(state, view, batch, turns, settings, config)

    async def jobs() -> list[Job]:
        found = []
        for batch in to_consolidate(
            view.plans,
            min_importance=settings.min_importance,
            size=settings.consolidate_batch_size,
            tokens=settings.night_batch_tokens,
            most=view.calls_at_once(settings),
        ):
            ids = [entry["id"] for entry in batch]
            turns = [p for p in view.plans if p["step"] == "consolidate" and p["inputs"] == ids]
            found.append(Job(ids, partial(think, batch, turns), len(turns)))
        return found

    return {"night": await view.in_waves("consolidate", jobs, state, settings)}


async def _turn(
    state: State,
    view: NightView,
    batch: list[JournalEntry],
    turns: list[PlanRecord],
    settings: Settings,
    config: RunnableConfig,
) -> Thought:
    """Ask once, run what was asked for, and see whether the batch is settled."""
    resources = resources_of(config)
    pattern = select_execution_pattern(settings, CONTEXT)
    tools = tools_for(CONTEXT, pattern, ())
    exchange = _exchange(turns) or await _opening(state, view, batch, settings, resources)
    answer = await ask(
        resources.chat_model,
        as_model_sees(exchange),
        tools=tools,
        config=config,
        breaker=resources.breakers.model,
    )
    sink = PlanSink({entry["id"]: entry for entry in batch})
    sink.operations += [o for turn in turns for o in turn["operations"]]
    before = len(sink.operations)
    done = await execute(
        answer.message.tool_calls,
        tools,
        _side(state, view, exchange),
        with_sink(config, sink),
        seconds=settings.tool_timeout,
    )
    new = sink.operations[before:]
    cited = _cited([*Plans(turns).operations(), *new])
    last = len(turns) + 1 >= pattern["max_iterations"]
    settled = closes(answer.message, done, batch, cited)
    thought = Thought(
        operations=new,
        usage=total(answer.usage, done.usage),
        exchange=messages_to_dict([*exchange, answer.message, *done.messages]),
        finished=settled is not None or last,
        log=audit.of_calls(
            done.calls,
            at=resources.clock(),
            tick=state["tick"],
            origin=view.record["id"],
            model=called(resources.chat_model),
        ),
    )
    if thought.finished:
        keep = batch if settled == "all" else [e for e in batch if e["id"] in cited]
        thought.operations += _closing(new, turns, keep, view.record["started"])
        thought.left = [entry["id"] for entry in batch if entry not in keep]
    return thought


def closes(
    message: AIMessage, done: Executed, batch: Sequence[JournalEntry], cited: set[str]
) -> str | None:
    """How this answer closes the loop: "all" entries settled, the "cited" ones, or None (goes on).

    A noop settles what no fact cites. An answer without any tool call settles nothing but what is
    cited already: a refusal or chatter must not mark work as done. What a tool refused is shown to
    the model once more.
    """
    names = [call["name"] for call in message.tool_calls]
    if any(not outcome["ok"] for outcome in done.outcomes):
        return None
    if any(json.loads(str(answer.content)).get("rejected") for answer in done.messages):
        return None
    if "noop" in names or all(entry["id"] in cited for entry in batch):
        return "all"
    return "cited" if not names else None


async def _opening(
    state: State,
    view: NightView,
    batch: list[JournalEntry],
    settings: Settings,
    resources: Resources,
) -> list[AnyMessage]:
    """The prompt: the context's own system prompt, related facts, and the batch by id."""
    query = " ".join(entry["content"] for entry in batch)[:2000]
    known = await recall(
        query,
        scope=view.scope,
        now=datetime.fromisoformat(view.record["started"]),
        semantic=resources.semantic,
        store=view.store,
        settings=settings,
        limit=settings.recall_limit,
        facts_only=True,
    )
    made = material(
        state,
        settings,
        resources,
        CONTEXT.context_type,
        now=view.record["started"],
        memories=known,
    )
    lines = entry_lines(batch, settings.night_batch_tokens)
    return [
        SystemMessage(assembly.system_message(assembly.blocks(made))),
        HumanMessage(f"Entries:\n{as_data('entries', lines)}"),
    ]


def _side(state: State, view: NightView, exchange: list[AnyMessage]) -> State:
    """The state as the loop's tools see it: no event in hand, and the night's own time."""
    context: AssembledContext = {
        "context_type": CONTEXT.context_type,
        "now": view.record["started"],
        "system": "",
        "tokens": {},
    }
    return {**state, "event": None, "loop": None, "context": context, "exchange": exchange}


def _exchange(turns: list[PlanRecord]) -> list[AnyMessage]:
    """The loop so far, as the last turn left it."""
    return cast(list[AnyMessage], messages_from_dict(turns[-1]["exchange"])) if turns else []


def _closing(
    new: list[Operation], turns: list[PlanRecord], keep: list[JournalEntry], created: str
) -> list[Operation]:
    """Links journal <-> fact for every fact of the loop, then the marks."""
    facts = [o for o in [*Plans(turns).operations(), *new] if o["kind"] == "add_fact"]
    links = [
        link(entry_id, fact["id"], created, "made from this entry")
        for fact in facts
        for entry_id in fact["after"]["source_entries"]
    ]
    return [*links, *(mark_entry(entry, "consolidated", "settled by the model") for entry in keep)]


def _cited(operations: Sequence[Operation]) -> set[str]:
    facts = [o for o in operations if o["kind"] == "add_fact"]
    return {entry_id for fact in facts for entry_id in fact["after"]["source_entries"]}
