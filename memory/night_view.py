"""A night as its steps see it: the record, the plans so far, and the entries it set out with."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from langgraph.config import get_config
from langgraph.store.base import BaseStore

from memory import apply, audit, inbox, journal, night, night_stream, tracing
from memory.audit import AuditEntry
from memory.classification import wakes
from memory.compaction import history_share
from memory.dreaming import budget
from memory.errors import CircuitOpen, ContextOverflow, ModelError
from memory.night_plans import Plans
from memory.overlay import Changes, Overlay
from memory.owners import owners_of
from memory.records import JournalEntry, NightRecord, Operation, PlanRecord, Usage
from memory.resources import resources_of
from memory.schedule import called_away
from memory.scope import Scope
from memory.semantic import SemanticMemory
from memory.settings import Settings
from memory.state import NightCursor, State
from memory.usage import in_vain

ENTRIES_A_WAVE = 125
"""A visit to a step has a wave of batches for each so many of the night's entries or
entities, and one more."""


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
    refused: list[str] = field(default_factory=list)
    """What of the model's answer came to nothing, and why."""
    log: list[AuditEntry] = field(default_factory=list)
    """What its tools did."""
    result: dict[str, Any] = field(default_factory=dict)
    """What the step reports of itself beside its operations."""


class Job(NamedTuple):
    """One batch of a step."""

    inputs: Sequence[str]
    """The ids that it works on."""
    think: Callable[[], Awaitable[Thought]]
    iteration: int = 0
    """Of a loop over the same inputs."""


@dataclass
class NightView:
    """One night, read from the store; what a step decides is written back before it ends."""

    store: BaseStore
    scope: Scope
    record: NightRecord
    plans: Plans
    """With the entries as they stood when the night set out."""
    aside: list[PlanRecord] = field(default_factory=list)
    """What is thought out of batches side by side that were broken off; see `set_out_again`."""
    step: str | None = None
    """The one in hand, as far as it was told to who listens."""
    _overlay: Overlay | None = field(default=None, init=False)

    @classmethod
    async def load(cls, store: BaseStore, scope: Scope, record: NightRecord) -> NightView:
        """Read a night."""
        entries = await journal.read_many(store, scope, record["pending"])
        return cls(store, scope, record, await night.plans_of(store, scope, record["id"], entries))

    @classmethod
    async def of(cls, state: State, store: BaseStore, scope: Scope) -> NightView:
        """Read the night that the state has in hand."""
        cursor = state.get("night")
        record = await night.load(store, scope, cursor["id"]) if cursor and cursor["id"] else None
        if record is None:
            raise LookupError("no night is in hand")
        view = await cls.load(store, scope, record)
        view.step = cursor["next"] if cursor else None
        return view

    def set_out_again(self) -> NightView:
        """The night as the batches saw it that were thought out side by side and broken off.

        The rest of them shall see the same, and be the same: what is thought out stands aside.
        """
        newest = max(self.plans, key=lambda plan: plan["order"], default=None)
        wave = newest.get("wave") if newest else None
        mine = [plan for plan in self.plans if wave and plan.get("wave") == wave]
        if not wave or len(mine) == wave[1]:
            return self
        before = (plan for plan in self.plans if plan not in mine)
        return replace(self, plans=Plans(before, self.plans.entries), aside=mine)

    async def plan(
        self,
        step: str,
        inputs: Sequence[str],
        think: Callable[[], Awaitable[Thought]],
        *,
        iteration: int = 0,
    ) -> PlanRecord:
        """What `step` decides about `inputs`; see `plan_all`."""
        return (await self.plan_all(step, [Job(inputs, think, iteration)]))[0]

    async def plan_all(self, step: str, jobs: Sequence[Job]) -> list[PlanRecord]:
        """What `step` decides in each of `jobs`, side by side; in their order.

        A plan that is kept is not thought out again. A new one is written at once, and with it what
        the audit log tells of it; where one job breaks, the others are finished first.
        A model that gives no usable answer is a plan too: everything is left, the error is kept.
        Inputs that are too long together are left without an error: they come again in halves.
        """
        self._at(step)
        keys = [night.plan_key(self.record["id"], step, job.iteration, job.inputs) for job in jobs]
        if any(plan["key"] not in keys for plan in self.aside):
            return await self._plan_rest(step, jobs)
        kept = {plan["key"]: plan for plan in (*self.plans, *self.aside)}
        first = max((plan["order"] for plan in self.plans), default=-1) + 1
        wave, so_far = [first, len(jobs)], [*self.aside]
        made = await asyncio.gather(
            *(
                self._thought_out(step, job, key, first + place, wave, so_far)
                for place, (job, key) in enumerate(zip(jobs, keys, strict=True))
                if key not in kept
            ),
            return_exceptions=True,
        )
        new = [one for one in made if not isinstance(one, BaseException)]
        self.plans.extend(sorted([*self.aside, *new], key=lambda plan: plan["order"]))
        self.aside = []
        for one in made:
            if isinstance(one, BaseException):
                raise one
        kept |= {plan["key"]: plan for plan in new}
        return [kept[key] for key in keys]

    async def _plan_rest(self, step: str, jobs: Sequence[Job]) -> list[PlanRecord]:
        """Batches are cut otherwise now: what is thought out counts, and nothing of it again."""
        done = {one for plan in self.aside for one in plan["inputs"]}
        self.plans.extend(self.aside)
        self.aside = []
        return await self.plan_all(step, [job for job in jobs if done.isdisjoint(job.inputs)])

    async def in_waves(
        self,
        step: str,
        jobs: Callable[[], Awaitable[Sequence[Job]]],
        state: State,
        settings: Settings,
    ) -> NightCursor:
        """Let `step` think about wave after wave of `jobs`; the cursor to where the night goes on.

        A night's visits all read it anew: they must not be the more the longer it is. Between waves
        the budget, the model's state and who wants to wake it are looked at, as between visits.
        """
        length = max(len(self.record["pending"]), len(self.record.get("entities", [])))
        for _ in range(1 + length // ENTRIES_A_WAVE):
            await self.plan_all(step, await jobs())
            cursor = await self.onward(state, settings)
            if cursor["next"] != step:
                break
        return cursor

    def overlay(self, semantic: SemanticMemory) -> Overlay:
        """Memory as it stands with everything that the night decided so far."""
        if self._overlay is None:
            self._overlay = Overlay(self.store, semantic, self.scope)
        self._overlay.follow(self.plans.operations())
        return self._overlay

    async def untold(self, semantic: SemanticMemory) -> Changes:
        """Memory without the facts that the night itself adds, its entries weighed as by now.

        For what is recalled within a night: those facts are stored in the night itself and not in
        its preview, and both are to find the same. The entries they were made of say it, too.
        """
        added = await semantic.by_op(self.scope, self.added_facts())
        hidden = {fact["id"]: None for op, fact in added.items() if fact["op"] == op}
        scored = self.entries_after(self.plans.entries.values())
        return Changes(hidden, {entry["id"]: entry["importance"] for entry in scored})

    def entries_after(self, entries: Iterable[JournalEntry]) -> list[JournalEntry]:
        """Journal entries as they stand with everything that the night decided so far."""
        standing = {entry["id"]: entry for entry in entries}
        return list(apply.entries_after(standing, self.plans.operations()).values())

    def added_facts(self) -> list[str]:
        """Operation ids of the facts that the night adds."""
        return [one["target"] for one in self.plans.operations() if one["kind"] == "add_fact"]

    def cited(self) -> set[str]:
        """What the facts and entries stand on that the night adds."""
        added = (one for one in self.plans.operations() if one["kind"].startswith("add_"))
        return {
            one
            for operation in added
            for one in (*operation["sources"], *(operation["after"] or {}).get("evidence", []))
        }

    def calls_at_once(self, settings: Settings) -> int:
        """How many batches may be asked about now: as many as are set, within the budget."""
        left = budget.calls_left(self.plans, budget.allowed(self.record, settings))
        return max(1, min(settings.night_parallel, left))

    async def _thought_out(
        self,
        step: str,
        job: Job,
        key: str,
        order: int,
        wave: list[int],
        so_far: list[PlanRecord],
    ) -> PlanRecord:
        """The plan of one job, written and told; `so_far`: those of the jobs side by side."""
        inputs, began = job.inputs, time.perf_counter()
        try:
            with tracing.night_step(step, self.record["id"]):
                thought = await job.think()
        except ContextOverflow as error:
            halves = len(inputs) > 1 and job.iteration == 0
            errors = [] if halves else [f"{step}: {error}"]
            lost = in_vain(error)
            thought = Thought(left=list(inputs), errors=errors, overflowed=True, usage=lost)
        except ModelError as error:
            alone = isinstance(error, CircuitOpen)
            errors = [f"{step}: {error}"]
            lost = in_vain(error)
            thought = Thought(left=list(inputs), errors=errors, left_alone=alone, usage=lost)
        plan: PlanRecord = {
            "key": key,
            "order": order,
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
            "refused": thought.refused,
            "result": thought.result,
            "wave": wave,
        }
        kept_too = [night.plan_put(self.scope, self.record["id"], plan)]
        await audit.write(self.store, self.scope, thought.log, visit=order, also=kept_too)
        so_far.append(plan)
        night_stream.tell(self.record, self.plans, step, "progress", also=so_far)
        return plan

    async def onward(
        self, state: State, settings: Settings, *, compaction_done: bool = False
    ) -> NightCursor:
        """The cursor after a step: what comes next. Where something is cut, the record says why."""
        due = not compaction_done and compaction_due(state, settings)
        away = await self._called_away(state, settings)
        following = night.next_step(
            self.record,
            self.plans,
            settings,
            waking=away is not None,
            compaction_due=due,
        )
        # Compacting is finished whoever calls; it is dreaming that is cut, and the gate comes then.
        cut = away if following == "weigh_night" else None
        await self._stop(night.stopped(self.record, self.plans, settings) or cut)
        self._at(following)
        return {"id": self.record["id"], "next": following}

    async def _stop(self, why: str | None) -> None:
        """Keep why it stopped, where that is new; a night that was approved is thought out."""
        if not why or self.record.get("stopped") or night.status_of(self.record) != "open":
            return
        self.record = {**self.record, "stopped": why}
        await night.keep(self.store, self.scope, self.record)

    def _at(self, step: str) -> None:
        """Tell who listens that a step begins, and that the one before it is over."""
        if step in (self.step, "settle"):  # a part of applying, and no step of its own
            return
        if self.step is not None:
            night_stream.tell(self.record, self.plans, self.step, "end")
        night_stream.tell(self.record, self.plans, step, "begin")
        self.step = step

    async def _called_away(self, state: State, settings: Settings) -> str | None:
        """Why dreaming is cut: an event to act on, `request: wake` (ruling 18), its hours' end.

        A preview leaves the agent awake or asleep, as it is, and nothing that waits ends it early.
        """
        if self.record["dry_run"]:
            return None
        if why := called_away(state, settings, resources_of(get_config()).clock()):
            return why
        items = await inbox.waiting(self.store, self.scope, state["handled"])
        owners = owners_of(settings, user=self.scope.user, served=False)
        waits = any(wakes(item["event"], settings=settings, owners=owners) for item in items)
        return "a message waits" if waits else None


def compaction_due(state: State, settings: Settings) -> bool:
    """Whether the history alone is over the night's threshold and longer than the window."""
    messages = state["messages"]
    if not settings.compact_enabled or len(messages) <= settings.compact_preserve_window:
        return False
    share = history_share(messages, state["calibration"], settings.max_context_tokens)
    return share >= settings.compact_sleep_threshold
