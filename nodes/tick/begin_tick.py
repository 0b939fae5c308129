"""Open a tick, or resume a tick that waited for a person; or, where it failed, return its event.

A returned event goes back to the inbox, and after three failures it is set aside. An event that is
set aside is journaled: its ticks may have stored facts, and no memory is to be without its source.
"""

from __future__ import annotations

import logging
import os
from typing import Any, Literal, cast

from langchain_core.messages import messages_from_dict
from langchain_core.runnables import RunnableConfig
from langgraph.errors import NodeError
from langgraph.runtime import Runtime
from langgraph.types import Command

from memory import audit, entities, events, records, telemetry
from memory.errors import CircadianError, CircuitOpen, ConfigurationError, StateError
from memory.events import inbox, spending_after_tick
from memory.messages import history_share, marked
from memory.operations import apply_operations
from memory.records import Event, FailureReport, Loop, ParkedTick, add_entry, is_reflection
from memory.runtime import resources_of, scope_of, settings_of, store_of
from memory.settings import Settings
from memory.state import Course, State, checked, fresh_state, kept_problem, report_so_far
from memory.text import encodable, redact, safe
from tools.policy import pattern_of


async def after_begin(state: Course) -> Literal["extract_facts", "confirm", "assemble_context"]:
    """A history that is too long is compacted first; a tick that waited goes on with its answer."""
    loop = state.get("loop")
    if loop is not None and loop["next"] == "confirm":
        return "confirm"
    forced = loop is not None and loop["compaction"] == "forced"
    return "extract_facts" if forced else "assemble_context"


@checked
async def begin_tick(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Start the loop's counters; the tick's number is the one after the last committed tick.

    A session that has no start yet starts here, so that the tick's tools can report it.
    """
    tick = state["tick"] + 1
    waited = [one for one in state["parked"] if one["question"]["id"] == state["resuming"]]
    if waited:
        # After an edit by hand a run may go on from here, past `intake`.
        problem = kept_problem({"parked": state["parked"]})
        if problem is not None:
            raise StateError(problem)
        return _resumed(waited[0], tick, settings_of(runtime.context))
    update: dict[str, Any] = {
        "tick": tick,
        "loop": _begun(state, settings_of(runtime.context)),
        "context": None,
        "exchange": [],
    }
    if state["metrics"]["session_start"] is None:
        start = resources_of(config).clock().isoformat()
        update["metrics"] = {**state["metrics"], "session_start": start}
    return update


def _begun(state: State, settings: Settings) -> Loop:
    share = history_share(state["messages"], state["calibration"], settings.max_context_tokens)
    full = settings.compact_enabled and share >= settings.compact_emergency_threshold
    return {
        "iteration": 0,
        "tools": [],
        "written": [],
        "llm_calls": 0,
        "tokens": 0,
        "reply": None,
        "overflowed": False,
        "compaction": "forced" if full and state["messages"] else "none",
        "next": "act",
        "ended": False,
        "dangerous": None,
        "decision": None,
        "raised": 0,
        "sent": [],
        "delegating": [],
        "prompt": {},
    }


def _resumed(parked: ParkedTick, tick: int, settings: Settings) -> dict[str, Any]:
    """The tick as it was put aside, at the end of the history, and numbered anew.

    Its pattern is composed anew: the settings may have become narrower.
    """
    context_type = parked["context"]["context_type"]
    return {
        "tick": tick,
        "messages": [marked(one, tick=tick) for one in messages_from_dict(parked["messages"])],
        "context": parked["context"],
        "assessment": parked["assessment"],
        "pattern": pattern_of(context_type, parked["assessment"], settings),
        "loop": parked["loop"],
        "exchange": [],
    }


log = logging.getLogger("circadian.tick")

_NO_FAULT = {CircuitOpen.__name__, ConfigurationError.__name__}


def describe(error: BaseException | str) -> str:
    """One line for a person, without secrets. An error not raised on purpose names its type.

    LangGraph keeps an error as its `repr`: that is what a run that goes on after a crash is given.
    """
    text = redact(encodable(" ".join(str(error).split())), os.environ)[:500]
    named = not isinstance(error, CircadianError | str)
    return ": ".join(filter(None, (type(error).__name__ if named else "", text)))


def kind_of(error: BaseException | str) -> str:
    """The name of the error's type."""
    return error.partition("(")[0] if isinstance(error, str) else type(error).__name__


def traced(error: BaseException | str) -> BaseException | None:
    """A bug for the log's traceback; an error raised on purpose is a line that says what is wrong.

    An error of an earlier process is no more than text.
    """
    return None if isinstance(error, CircadianError | str) else error


@checked
async def return_event(
    state: State, error: NodeError, runtime: Runtime[Settings], config: RunnableConfig
) -> Command[Literal["intake"]]:
    """Count the failure. The parent's state is as before the tick: nothing of it is half kept."""
    # The thread of an older version, whose tick cannot be finished, lacks newer keys.
    state = cast(State, {**fresh_state(), **state})
    event, settings = state["event"], settings_of(runtime.context)
    text = describe(error.error)
    log.error("tick failed: %s", safe(text), exc_info=traced(error.error))
    attempts, aside = 0, False
    # Where the service is left alone or set up wrongly, nothing counts against the event.
    kinds = {kind_of(error.error), kind_of(getattr(error.error, "__cause__", ""))}
    tried = kinds.isdisjoint(_NO_FAULT)
    if event is not None and tried:
        await _journal_last(event, state, runtime, config)
        store, scope, most = store_of(runtime), scope_of(config), settings.max_failed_ticks
        attempts, aside = await inbox.give_back(store, scope, event["id"], text, max_attempts=most)
    telemetry.TICK_FAILURES.inc()
    failure: FailureReport = {
        "event_id": event["id"] if event else None,
        "error": text,
        "kind": kind_of(error.error),
        "attempts": attempts,
        "set_aside": aside,
    }
    # A parked tick that is not tried again goes.
    gone = state["resuming"] if aside or event is None else None
    report, errors = report_so_far(state["report"]), state["consecutive_errors"] + tried
    now = resources_of(config).clock()
    stopped = tried and errors >= settings.max_consecutive_errors
    if stopped:
        why = f"{errors} failures in a row, the last: {text}"
        entry = audit.of_stop(why, at=now, tick=state["tick"], who=audit.AGENT)
        await audit.write(store_of(runtime), scope_of(config), [entry])
    paid = getattr(error.error, "tokens", 0)  # of an ended process's error no more than a text
    spending = spending_after_tick(state["spending"], now, tokens=paid, autonomous=event is None)
    update = {
        "spending": spending,
        "report": {**report, "failures": [*report["failures"], failure]},
        "returning": True,
        "event": None,
        "classification": None,
        "resuming": None,
        "parked": [one for one in state["parked"] if one["question"]["id"] != gone],
        "consecutive_errors": errors,
        "emergency_stop": state["emergency_stop"] or stopped,
    }
    return Command(update=update, goto="intake")


async def _journal_last(
    event: Event, state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> None:
    """Journal an event whose failure is its last, before it leaves the inbox.

    In this order a crash between the two leaves the event waiting, and nothing without a source.
    """
    store, scope, settings = store_of(runtime), scope_of(config), settings_of(runtime.context)
    item = await store.aget(scope.namespace(inbox.INBOX), event["id"])
    if (
        item is None
        or item.value["attempts"] + 1 < settings.max_failed_ticks
        or is_reflection(event)
    ):
        return
    (familiar,) = await entities.familiar(store, scope, [event])
    entry = events.entry_in(state, event, settings, familiar)
    entry["tags"] = [*entry["tags"], records.ASIDE]
    await apply_operations(
        [add_entry(entry, "its ticks failed")],
        store=store,
        semantic=resources_of(config).semantic,
        scope=scope,
    )
