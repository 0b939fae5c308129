"""What the steps of a night share: the current night, plans, the next step, and progress events.

A step reads the night, decides about one batch after the other (`plan`), and says where the night
goes on (`proceed`). A plan is written before the next batch is begun.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeGuard, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.store.base import BaseStore
from pydantic import BaseModel
from typing_extensions import TypedDict

from memory import audit, journal, telemetry
from memory.audit import AuditEntry
from memory.errors import CircuitOpen, ConfigurationError, ContextOverflow, ModelError
from memory.events import inbox, owners_of, parked_events, wakes, why_dreaming_ends
from memory.messages import history_share
from memory.models import in_vain, total
from memory.night import record as night
from memory.night.order import items_done, items_left, next_step, stopped
from memory.night.pending_view import Changes, PendingView
from memory.night.record import Plans
from memory.operations import apply
from memory.recall import recall
from memory.records import (
    CallRecord,
    JournalEntry,
    NightRecord,
    Operation,
    PlanRecord,
    RecallHit,
    Scope,
    Usage,
)
from memory.runtime import Resources, resources_of, scope_of, settings_of, store_of
from memory.settings import Settings
from memory.state import NightCursor, State
from memory.telemetry import called

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.runtime import Runtime

ITEMS_A_BATCH = 62
"""A visit to a step plans one batch, and one more per this many entries or entities of the night.
Every visit reads the whole night, so a long night must not have more visits than a short one."""

NAMED_BY = 160
"""Characters of a text that a report says was refused."""

Form = TypeVar("Form", bound=BaseModel)


@dataclass
class Thought:
    """What a step decided about one batch."""

    operations: list[Operation] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    """Inputs that stay pending."""
    errors: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=lambda: Usage(llm_calls=0, tokens=0))
    exchange: list[dict[str, Any]] = field(default_factory=list)
    """The messages of a loop so far, serialised."""
    finished: bool = True
    """False while a loop over the same inputs goes on."""
    overflowed: bool = False
    """The batch was longer than the model takes."""
    left_alone: bool = False
    """The circuit breaker is open, or key, name or address are wrong; no answer can come."""
    refused: list[str] = field(default_factory=list)
    """Why parts of the model's answer were not used."""
    log: list[AuditEntry] = field(default_factory=list)
    """Tool calls, for the audit log."""
    result: dict[str, Any] = field(default_factory=dict)
    """Further results for the report."""


@dataclass(frozen=True)
class Asked(Generic[Form]):
    """The answers to a prompt and to what was amiss in the first of them."""

    answers: list[Form]
    usage: Usage
    refused: Sequence[str] = ()
    """Why there is no second answer although the model was asked."""


Think = Callable[[], Awaitable[Thought]]


async def thought_of(operations: Sequence[Operation] = ()) -> Thought:
    """A decision that takes no model."""
    return Thought(operations=[*operations])


class Job(NamedTuple):
    """One batch of a step."""

    inputs: Sequence[str]
    """The ids that it is about."""
    think: Think
    iteration: int = 0
    """In a loop over the same inputs: number of earlier answers."""


@dataclass
class NightContext:
    """The current night, for one visit to one of its steps."""

    state: State
    config: RunnableConfig
    settings: Settings
    resources: Resources
    store: BaseStore
    scope: Scope
    record: NightRecord
    plans: Plans
    tell: Callable[[NightEvent], None] = lambda _: None
    """Sends a progress event to the stream of the run."""
    step: str | None = None
    """The step of the last progress event."""
    mending: int = field(default=0, init=False)
    """Model calls about the batch in hand that mended an earlier answer."""
    _pending_view: PendingView | None = field(default=None, init=False)

    @property
    def now(self) -> str:
        """The time of the whole night, ISO 8601."""
        return self.record["started"]

    @property
    def owners(self) -> tuple[str, ...]:
        """The ids of the owners."""
        user, served = self.resources.user, self.resources.served
        return owners_of(self.settings, user=user, served=served)

    async def ask(self, messages: Sequence[BaseMessage], form: type[Form]) -> tuple[Form, Usage]:
        """Ask the model for an answer of this form. Raises ModelError."""
        answer, usage = await self.resources.ask_for(messages, form, self.settings, self.config)
        self.mending += usage["llm_calls"] - 1  # the others mend its form
        return answer, usage

    async def ask_again(
        self, messages: Sequence[BaseMessage], form: type[Form], amiss: Callable[[Form], str | None]
    ) -> Asked[Form]:
        """Ask for an answer of this form, and once more if parts of it cannot be used.

        `amiss` gives what the model is told; None if all can be used. The second answer has only
        the mended parts, so the first counts even if the second fails. Raises ModelError.
        """
        first, usage = await self.ask(messages, form)
        problem = amiss(first)
        if problem is None:
            return Asked([first], usage)
        more = [AIMessage(first.model_dump_json()), HumanMessage(problem)]
        try:
            second, spent = await self.ask([*messages, *more], form)
        except ModelError as error:
            why = f"asked again in vain: {error}"
            return Asked([first], total(usage, in_vain(error)), [why])
        self.mending += 1
        return Asked([first, second], total(usage, spent))

    async def recall(
        self, *queries: str, limit: int, changes: Changes | None = None, facts_only: bool = False
    ) -> list[list[RecallHit]]:
        """The memories about each query at the time of the night, with `changes` made."""
        return await recall(
            queries,
            scope=self.scope,
            now=datetime.fromisoformat(self.now),
            semantic=self.resources.semantic,
            store=self.store,
            settings=self.settings,
            limit=limit,
            max_tokens=self.settings.recall_tokens if facts_only else None,  # for a prompt
            heard=facts_only,
            changes=changes,
            facts_only=facts_only,
        )

    def calls_logged(self, calls: Iterable[CallRecord]) -> list[AuditEntry]:
        """Lines of the audit log for tool calls of this night."""
        return audit.of_calls(
            calls,
            at=self.resources.clock(),
            tick=None,
            origin=self.record["id"],
            model=called(self.resources.chat_model),
        )

    def pending_view(self) -> PendingView:
        """Memory with all operations of the night so far."""
        if self._pending_view is None:
            self._pending_view = PendingView(self.store, self.resources.semantic, self.scope)
        return self._pending_view.follow(self.plans.operations())

    def entries_after(self, entries: Iterable[JournalEntry]) -> list[JournalEntry]:
        """Journal entries with all operations of the night so far."""
        standing = {entry["id"]: entry for entry in entries}
        return list(apply.entries_after(standing, self.plans.operations()).values())

    def added_facts(self) -> list[str]:
        """Operation ids of the facts that the night adds."""
        return [one["target"] for one in self.plans.operations() if one["kind"] == "add_fact"]


async def night_in_hand(
    state: State, runtime: Runtime[Settings], config: RunnableConfig, *, entries: bool = False
) -> NightContext:
    """Read the night that the state points to. Raises LookupError without one.

    `entries`: also the journal entries that it began with, which compacting always reads.
    """
    cursor = state.get("night")
    known = cursor and cursor["id"]
    record = await night.load(store_of(runtime), scope_of(config), known) if known else None
    if cursor is None or record is None:
        raise LookupError("no night is in hand")
    return await in_context(state, runtime, config, record, step=cursor["next"], entries=entries)


async def in_context(
    state: State,
    runtime: Runtime[Settings],
    config: RunnableConfig,
    record: NightRecord,
    *,
    step: str | None = None,
    entries: bool = False,
) -> NightContext:
    """The context of a night whose record was read already; `entries`: see `night_in_hand`."""
    settings, resources = settings_of(runtime.context), resources_of(config)
    store, scope = store_of(runtime), scope_of(config)
    wanted = record["pending"] if entries or "compacting" not in record["applied"] else []
    found = await journal.read_many(store, scope, wanted) if wanted else {}
    plans = await night.plans_of(store, scope, record["id"], found)
    tell = runtime.stream_writer
    return NightContext(state, config, settings, resources, store, scope, record, plans, tell, step)


async def plan_batches(
    context: NightContext, step: str, next_jobs: Callable[[], Awaitable[Sequence[Job]]]
) -> NightCursor:
    """Plan one batch of `step` after the other; returns the cursor to the next step.

    `next_jobs` gives the next batch, considering all plans so far. After each batch `proceed`
    checks the budget, the model's health and messages that wake, as after a visit.
    """
    items = max(len(context.record["pending"]), len(context.record.get("entities", [])))
    for _ in range(1 + items // ITEMS_A_BATCH):
        for job in await next_jobs():
            await plan(context, step, job.inputs, job.think, iteration=job.iteration)
        cursor = await proceed(context)
        if cursor["next"] != step:
            break
    return cursor


async def plan(
    context: NightContext, step: str, inputs: Sequence[str], think: Think, *, iteration: int = 0
) -> PlanRecord:
    """Plan what `step` does with `inputs`; write plan and audit lines in one transaction.

    An existing plan for the same inputs is returned as it is. Without a usable answer of the model
    all inputs are left and the plan keeps the error. Inputs that were too long together are left
    without an error and come again in halves.
    """
    _tell_step(context, step)
    key = night.plan_key(context.record["id"], step, iteration, inputs)
    if kept := context.plans.with_key(key):
        return kept
    began, context.mending = time.perf_counter(), 0
    thought = await _thought(context, step, inputs, iteration, think)
    made: PlanRecord = {
        "key": key,
        "order": context.plans.next_order(),
        "step": step,
        "phase": context.record["phase"],
        "operations": thought.operations,
        "inputs": list(inputs),
        "left": thought.left,
        "errors": thought.errors,
        "llm_calls": thought.usage["llm_calls"],
        "tokens": thought.usage["tokens"],
        "seconds": time.perf_counter() - began,
        "exchange": thought.exchange,
        "mending": context.mending,
        "finished": thought.finished,
        "overflowed": thought.overflowed,
        "left_alone": thought.left_alone,
        "refused": thought.refused,
        "result": thought.result,
    }
    put = night.plan_put(context.scope, context.record["id"], made)
    await audit.write(context.store, context.scope, thought.log, visit=made["order"], also=[put])
    context.plans.extend([made])
    tell_progress(context, step, "progress")
    return made


async def _thought(
    context: NightContext, step: str, inputs: Sequence[str], iteration: int, think: Think
) -> Thought:
    """The result of `think`; a failure of the model leaves all inputs."""
    try:
        with telemetry.night_step(step, context.record["id"]):
            return await think()
    except ContextOverflow as error:
        halves = len(inputs) > 1 and iteration == 0
        errors = [] if halves else [f"{step}: {error}"]
        lost = in_vain(error)
        return Thought(left=list(inputs), errors=errors, overflowed=True, usage=lost)
    except ModelError as error:
        alone, lost = isinstance(error, CircuitOpen | ConfigurationError), in_vain(error)
        errors = [f"{step}: {error}"]
        return Thought(left=list(inputs), errors=errors, left_alone=alone, usage=lost)


async def proceed(context: NightContext, *, compaction_done: bool = False) -> NightCursor:
    """The cursor to the next step. If the night is cut short, the record keeps the reason."""
    record, settings = context.record, context.settings
    away = await _called_away(context)
    following = next_step(
        record,
        context.plans,
        settings,
        waking=away is not None,
        compaction_due=not compaction_done and compaction_due(context.state, settings),
    )
    # Only dreaming can be cut short, and the gate comes next.
    cut = away if following == "weigh_night" else None
    why = stopped(record, context.plans, settings) or cut
    if why and not record.get("stopped") and night.status_of(record) == "open":
        context.record = {**record, "stopped": why}
        await night.keep(context.store, context.scope, context.record)
    _tell_step(context, following)
    return {"id": record["id"], "next": following}


async def _called_away(context: NightContext) -> str | None:
    """Why dreaming is cut short: a waking event or request or the end of its hours.

    Compacting is never cut short, nor is a preview, which does not put the agent to sleep. The
    event of a parked tick stays in the inbox until a person answers, and cuts nothing short.
    """
    record, settings = context.record, context.settings
    dreaming = "compacting" in record["applied"] and "gate" not in record
    if record["dry_run"] or not dreaming:
        return None
    if why := why_dreaming_ends(context.state, settings, context.resources.clock()):
        return why
    items = await inbox.waiting(context.store, context.scope, context.state["handled"])
    owners = owners_of(settings, user=context.scope.user, served=False)
    parked = parked_events(context.state)
    waits = any(
        item["event"]["id"] not in parked and wakes(item["event"], settings=settings, owners=owners)
        for item in items
    )
    return "a message waits" if waits else None


def _tell_step(context: NightContext, step: str) -> None:
    """Send progress events: the last step is over, and `step` begins."""
    if step in (context.step, "settle"):  # settling is part of applying
        return
    if context.step is not None:
        tell_progress(context, context.step, "end")
    tell_progress(context, step, "begin")
    context.step = step


def compaction_due(state: State, settings: Settings) -> bool:
    """Whether the history alone is over the night's threshold and longer than the window."""
    messages = state["messages"]
    if not settings.compact_enabled or len(messages) <= settings.compact_preserve_window:
        return False
    share = history_share(messages, state["calibration"], settings.max_context_tokens)
    return share >= settings.compact_sleep_threshold


NIGHT = "night"
Progress = Literal["begin", "progress", "end"]


class NightEvent(TypedDict):
    """The progress of a night, as a custom event of the graph's stream. It is not stored."""

    type: Literal["night"]
    night: str
    dry_run: bool
    step: str
    """The node's name."""
    event: Progress
    done: int
    """Entries, facts or entities that the step has finished."""
    of: int
    """All items of the step, `done` included; 0 for a step without batches."""
    operations: int
    """Operations that the step planned so far."""
    llm_calls: int
    tokens: int


def is_night_event(given: Any) -> TypeGuard[NightEvent]:
    """Whether a custom event is a NightEvent: tools may send their own."""
    return isinstance(given, Mapping) and given.get("type") == NIGHT and "step" in given


def tell_progress(context: NightContext, step: str, event: Progress) -> None:
    """Send a progress event of a step."""
    record, mine = context.record, context.plans.of(step)
    done = len(items_done(mine))
    told: NightEvent = {
        "type": "night",
        "night": record["id"],
        "dry_run": record["dry_run"],
        "step": step,
        "event": event,
        "done": done,
        "of": done + items_left(step, record, context.plans, context.settings),
        "operations": sum(len(plan["operations"]) for plan in mine),
        "llm_calls": sum(plan["llm_calls"] for plan in mine),
        "tokens": sum(plan["tokens"] for plan in mine),
    }
    context.tell(told)
