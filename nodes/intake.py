"""Take in what is new, lease what is pending, decide what this run does next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, cast

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from memory import approvals, arrivals, audit, emergency, inbox, night
from memory.classification import classify
from memory.overheard import overhear
from memory.owners import owners_of
from memory.records import Event
from memory.reflection import is_reflection
from memory.reports import Report
from memory.resources import (
    Resources,
    resources_of,
    resumed_report,
    scope_of,
    settings_of,
    store_of,
)
from memory.scope import Scope
from memory.session import rolled_up, woken
from memory.settings import Settings
from memory.spending import over
from memory.state import REDUCED_KEYS, HandledMark, Request, State, fresh_state
from memory.state_check import checked, kept_problem, report_so_far
from memory.tick import Classification, ParkedTick


def next_turn(state: State) -> Literal["awake", "sleep", "refuse", "__end__"]:
    """The way out of `intake`."""
    match state.get("turn", "rest"):
        case "tick":
            return "awake"
        case "night":
            return "sleep"
        case "refuse":
            return "refuse"
        case _:
            return "__end__"


@checked
async def intake(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Write new input to the inbox, validate the state found, choose a tick, a night or rest.

    A state that breaks a rule, as after a bad edit by hand, leads to `refuse`; the input is kept.

    Raises:
        InputError: the input is malformed. None of its events was taken; its messages stand in the
            thread, where the next run takes them.
    """
    first = not state.get("returning")
    desk = _Desk(state, runtime, config, first)
    sound = kept_problem(state) is None
    if sound:
        # First, so that an id that was handled in the run before is known as handled.
        await desk.settle()
    if first:
        await desk.take_in()
    if not sound:
        desk.set(turn="refuse")  # which is to find what is wrong as it is
        return desk.update
    desk.recompute_goals()
    if desk.take_request() == "clear_stop":
        await emergency.forget_stop(desk.store, desk.scope)
    await desk.take_stop()
    await desk.decide()
    await audit.write(desk.store, desk.scope, desk.log)
    return desk.update


class _Desk:
    """One visit of `intake`: the state as it becomes, and the update that makes it so."""

    def __init__(
        self, state: State, runtime: Runtime[Settings], config: RunnableConfig, first: bool
    ) -> None:
        # LangGraph begins a key with a reducer as {}: not yet a value of ours.
        missing = {
            key: value
            for key, value in fresh_state().items()
            if key not in state or (key in REDUCED_KEYS and state.get(key) == {})
        }
        self.update: dict[str, Any] = dict(missing)
        self.state = cast(State, {**state, **missing})
        self.first = first
        self.settings = settings_of(runtime.context)
        self.resources: Resources = resources_of(config)
        self.config = config
        self.scope: Scope = scope_of(config)
        self.store: BaseStore = store_of(runtime)
        self.now: datetime = self.resources.clock()
        self.owners = owners_of(
            self.settings, user=self.resources.user, served=self.resources.served
        )
        self.log: list[audit.AuditEntry] = []
        self.given = False
        """Whether this run was given anything at all."""
        self.resumed: Report | None = resumed_report(config) if first else None
        """What was done just now, for an earlier run: this run's report goes on with it."""
        self.set(resuming=None)  # left by a run that ended with a question
        self.set(report=report_so_far(self.resumed if first else self.state["report"]))

    def set(self, **values: Any) -> None:
        """Change the state and remember the change."""
        self.update.update(values)
        self.state = cast(State, {**self.state, **values})

    @property
    def place(self) -> dict[str, Any]:
        """Where and when, for the audit log."""
        return {"at": self.now, "tick": self.state["tick"], "who": self.resources.user}

    def note(self, **more: Any) -> None:
        """Add to the lists of the report."""
        merged = {
            key: [*cast(Any, self.state["report"])[key], *value] for key, value in more.items()
        }
        self.set(report={**self.state["report"], **merged})

    async def take_in(self) -> None:
        """New input goes to the inbox before anything is done with it."""
        run_id = self.config.get("metadata", {}).get("run_id")
        arrived = await arrivals.take_in(
            self.state,
            store=self.store,
            scope=self.scope,
            owner=self.owners[0],
            now=self.now,
            run_id=str(run_id) if run_id is not None else None,
        )
        self.given = arrived.given
        done = {tick["event_id"] for tick in self.state["report"]["ticks"]} | {
            *self.state["report"]["context_only"]
        }
        self.note(skipped=[one for one in arrived.skipped if one not in done], notes=arrived.notes)
        if arrived.messages:
            self.update["messages"] = arrived.messages

    def recompute_goals(self) -> None:
        """An edit by hand is rolled up like an update (ruling 10)."""
        before = self.state["goals"]
        self.set(**rolled_up(self.state, self.now))
        self.log += audit.of_goals(before, self.state["goals"], **self.place, origin=None)

    def take_request(self) -> Request | None:
        """Carry out the run's request, as far as it is not a night or a tick."""
        request = self.state.get("request") if self.first else None
        self.given = self.given or request is not None
        if request == "sleep" and not self.state["emergency_stop"]:
            self.set(mode="sleep", phase="compacting")
        elif request == "wake":
            self.set(**woken(self.now))
        elif request == "stop":
            self.set(emergency_stop=True)
            self.log.append(audit.of_stop("a person asked for it", **self.place))
        elif request == "clear_stop":
            self.set(emergency_stop=False, consecutive_errors=0)
            self.note(notes=["The emergency stop is cleared."])
            self.log.append(audit.of_clear(**self.place))
        self.autonomous = request == "tick" or not (self.given or self.resumed)
        self.sleep_asked = request == "sleep"
        return request

    async def take_stop(self) -> None:
        """A stop that was asked for meanwhile, also by another process (`memory.emergency`)."""
        if self.state["emergency_stop"]:
            return
        by = await emergency.stop_asked_by(self.store, self.scope)
        if by is not None:
            self.set(emergency_stop=True)
            self.log.append(audit.of_stop("a person asked for it", **{**self.place, "who": by}))

    async def settle(self) -> None:
        """Take events out of the inbox whose ticks are in a checkpoint that is on disk.

        At the start of a run the state was read from disk. Later in it that holds only where
        every checkpoint is awaited; on a server the marks wait for the next run.
        """
        if not (self.first or self.resources.synced):
            return
        marks = self.state["handled"]
        if marks:
            await inbox.settle(self.store, self.scope, marks)
            self.set(handled=[])
        if self.first and self.state["emergency_stop"]:
            await emergency.forget_stop(self.store, self.scope)
        if marks or self.first:
            await approvals.tidy(self.store, self.scope, self.state["parked"], marks)

    async def decide(self) -> None:
        """Choose, in this order: an answer, a night, an event, the goals, a question, or rest."""
        if self.state["emergency_stop"]:
            waits = await inbox.waiting(self.store, self.scope, self.state["handled"])
            self.note(notes=[f"Emergency stop: {len(waits)} event(s) wait until it is cleared."])
            return self.rest()
        if self.resources.night_only:
            failed, due = self._night_failed(), await night.is_due(self.store, self.scope)
            return self.set(turn="night", event=None) if due and not failed else self.rest()
        # Also before a night: it is to know what was heard by then.
        event = await self._next_event()
        answered = await approvals.answers(self.store, self.scope, self._parked())
        for parked in self._parked():
            if parked["question"]["id"] in answered:
                return self._resume(parked)
        if await self._night_due():
            return self.set(turn="night", event=None)
        if event is not None:
            if self.state["mode"] == "sleep":
                self.set(**woken(self.now))
            return self.set(turn="tick", event=event)
        # While a tick on the goals waits for a person, another would ask the same again.
        goals_wait = any(one["event"] is None for one in self.state["parked"])
        if self.first and self.autonomous and not goals_wait and self._autonomous():
            return self.set(turn="tick", event=None, classification=None)
        if self._parked() and self.state["mode"] == "awake":
            return self._resume(self._parked()[0])
        return self.rest()

    def _parked(self) -> list[ParkedTick]:
        """The ticks that wait for a person, but for those that failed in this run."""
        failed = {failure["event_id"] for failure in self.state["report"]["failures"]}
        parked = self.state["parked"]
        return [one for one in parked if not one["event"] or one["event"]["id"] not in failed]

    def _resume(self, parked: ParkedTick) -> None:
        """Go on with a tick that waited: with its answer, or to ask again."""
        asked = self.state["report"]["questions"]
        if parked["question"] not in asked:
            self.note(questions=[parked["question"]])
        self.set(
            turn="tick",
            event=parked["event"],
            classification=parked["classification"],
            resuming=parked["question"]["id"],
        )

    def rest(self) -> None:
        """Nothing more in this run."""
        self.set(turn="rest", event=None, classification=None)

    def _night_failed(self) -> bool:
        return any(one["event_id"] is None for one in self.state["report"]["failures"])

    async def _night_due(self) -> bool:
        """An unfinished night goes on whatever the input; after a preview, what was asked for."""
        if self._night_failed():
            return False
        if (done := self.state["report"]["night"]) is not None:
            return done["dry_run"] and self.state["phase"] == "compacting"
        return (self.first and self.sleep_asked) or await night.is_going(self.store, self.scope)

    def _autonomous(self) -> bool:
        """Whether to work on the goals; if not, the report says why."""
        why = None
        if not self.settings.enabled:
            why = "Switched off (setting enabled): nothing is done."
        elif self.state["mode"] == "sleep":
            why = "Asleep. A message or `wake` wakes the agent."
        elif all(goal["status"] != "active" for goal in self.state["goals"].values()):
            why = "Nothing is pending and no goal is active."
        else:
            why = over(self.state["spending"], self.settings, self.now)
        if why is not None:
            self.note(notes=[why])
        return why is None

    async def _next_event(self) -> Event | None:
        """The oldest event to act on, people's first; the others are taken as context or ignored.

        The assistant's own look at its work waits asleep, and where too much was spent.
        """
        failed = {failure["event_id"] for failure in self.state["report"]["failures"]}
        parked = {one["event"]["id"] for one in self.state["parked"] if one["event"]}
        items = await inbox.waiting(self.store, self.scope, self.state["handled"])
        events = [item["event"] for item in items if item["event"]["id"] not in failed | parked]
        judged = [
            (one, classify(one, settings=self.settings, owners=self.owners)) for one in events
        ]
        await self._take_as_context([one for one, c in judged if c["verdict"] == "context"])
        self._ignore([(one, c) for one, c in judged if c["verdict"] == "ignore"])
        acted = [(one, c) for one, c in judged if c["verdict"] == "act"]
        people = [pair for pair in acted if not is_reflection(pair[0])]
        own = [pair for pair in acted if is_reflection(pair[0])]
        if self.state["mode"] == "sleep" or over(self.state["spending"], self.settings, self.now):
            own = []
        if not (ready := [*people, *own]):
            return None
        self.set(classification=ready[0][1])
        return ready[0][0]

    def _ignore(self, judged: Sequence[tuple[Event, Classification]]) -> None:
        """Leave events alone, and say so. Nothing of them is journaled."""
        self._mark([event for event, _ in judged])
        self.note(
            ignored=[
                {"event_id": e["id"], "rule": c["rule"], "reason": c["reason"]} for e, c in judged
            ]
        )

    def _mark(self, events: Sequence[Event]) -> None:
        stamp, tick = self.now.isoformat(), self.state["tick"]
        marks = [HandledMark(id=event["id"], tick=tick, at=stamp) for event in events]
        self.set(handled=[*self.state["handled"], *marks])

    async def _take_as_context(self, events: Sequence[Event]) -> None:
        """Journal unaddressed events and keep the newest in the prompt. No model is called."""
        if not events:
            return
        buffer = await overhear(
            events,
            self.state,
            settings=self.settings,
            store=self.store,
            semantic=self.resources.semantic,
            scope=self.scope,
        )
        self.set(context_buffer=buffer)
        self._mark(events)
        self.note(context_only=[event["id"] for event in events])
