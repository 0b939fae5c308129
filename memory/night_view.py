"""A night as its steps see it: the record, the plans so far, and the entries it set out with."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langgraph.store.base import BaseStore

from memory import audit, inbox, journal, night
from memory.audit import AuditEntry
from memory.classification import wakes
from memory.compaction import history_share
from memory.errors import CircuitOpen, ContextOverflow, ModelError
from memory.owners import owners_of
from memory.records import JournalEntry, NightRecord, Operation, PlanRecord, Usage
from memory.scope import Scope
from memory.settings import Settings
from memory.state import NightCursor, State


@dataclass
class Thought:
    """What one visit of a step decided."""

    operations: list[Operation] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    """Inputs that it could not settle: they stay pending."""
    errors: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=lambda: Usage(llm_calls=0, tokens=0))
    exchange: list[dict[str, Any]] = field(default_factory=list)
    finished: bool = True
    overflowed: bool = False
    left_alone: bool = False
    log: list[AuditEntry] = field(default_factory=list)
    """What its tools did."""


@dataclass
class NightView:
    """One night, read from the store; what a step decides is written back before it ends."""

    store: BaseStore
    scope: Scope
    record: NightRecord
    plans: list[PlanRecord]
    entries: dict[str, JournalEntry]
    """As they stood when the night set out."""

    @classmethod
    async def load(cls, store: BaseStore, scope: Scope, record: NightRecord) -> NightView:
        """Read a night."""
        plans = await night.plans_of(store, scope, record["id"])
        entries = await journal.read_many(store, scope, record["pending"])
        return cls(store, scope, record, plans, entries)

    @classmethod
    async def of(cls, state: State, store: BaseStore, scope: Scope) -> NightView:
        """Read the night that the state has in hand."""
        cursor = state.get("night")
        record = await night.load(store, scope, cursor["id"]) if cursor and cursor["id"] else None
        if record is None:
            raise LookupError("no night is in hand")
        return await cls.load(store, scope, record)

    async def plan(
        self,
        step: str,
        inputs: Sequence[str],
        think: Callable[[], Awaitable[Thought]],
        *,
        iteration: int = 0,
    ) -> PlanRecord:
        """What `step` decides about `inputs`: the kept plan, else a new one, written at once, and
        with it what the audit log tells of it.

        A model that gives no usable answer is a plan too: everything is left, the error is kept.
        Inputs that are too long together are left without an error: they come again in halves.
        """
        key = night.plan_key(self.record["id"], step, iteration, inputs)
        for kept in self.plans:
            if kept["key"] == key:
                return kept
        began = time.perf_counter()
        try:
            thought = await think()
        except ContextOverflow as error:
            halves = len(inputs) > 1 and iteration == 0
            told = [] if halves else [f"{step}: {error}"]
            thought = Thought(left=list(inputs), errors=told, overflowed=True)
        except ModelError as error:
            alone = isinstance(error, CircuitOpen)
            told = [f"{step}: {error}"]
            thought = Thought(left=list(inputs), errors=told, left_alone=alone)
        plan: PlanRecord = {
            "key": key,
            "order": len(self.plans),
            "step": step,
            "phase": self.record["phase"],
            "operations": thought.operations,
            "inputs": list(inputs),
            "left": thought.left,
            "errors": thought.errors,
            "llm_calls": thought.usage["llm_calls"],
            "tokens": thought.usage["tokens"],
            "seconds": time.perf_counter() - began,
            "exchange": thought.exchange,
            "finished": thought.finished,
            "overflowed": thought.overflowed,
            "left_alone": thought.left_alone,
        }
        kept_too = [night.plan_put(self.scope, self.record["id"], plan)]
        visit = len(self.plans)
        await audit.write(self.store, self.scope, thought.log, visit=visit, also=kept_too)
        self.plans.append(plan)
        return plan

    async def onward(
        self, state: State, settings: Settings, *, compaction_done: bool = False
    ) -> NightCursor:
        """The cursor after a step: what comes next."""
        due = not compaction_done and compaction_due(state, settings)
        following = night.next_step(
            self.record,
            self.entries,
            self.plans,
            settings,
            failed=night.model_is_down(self.plans),
            waking=await self._waking(state, settings),
            compaction_due=due,
        )
        return {"id": self.record["id"], "next": following}

    async def _waking(self, state: State, settings: Settings) -> bool:
        """A waking event is one to act on, or `request: wake` (ruling 18)."""
        if state["mode"] == "awake":
            return True
        items = await inbox.waiting(self.store, self.scope, state["handled"])
        owners = owners_of(settings, user=self.scope.user, served=False)
        return any(wakes(item["event"], settings=settings, owners=owners) for item in items)


def compaction_due(state: State, settings: Settings) -> bool:
    """Whether the history alone is over the night's threshold and longer than the window."""
    messages = state["messages"]
    if not settings.compact_enabled or len(messages) <= settings.compact_preserve_window:
        return False
    share = history_share(messages, state["calibration"], settings.max_context_tokens)
    return share >= settings.compact_sleep_threshold
