"""Take in what is new, lease what is pending, decide what this run does next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, cast

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from memory import arrivals, inbox, journal, night
from memory.apply import apply_operations
from memory.chat import owner_of
from memory.goals import completions, recompute
from memory.operations import add_entry
from memory.records import Event, InboxItem
from memory.reports import Report, empty_report
from memory.resources import KEY, Resources, resources_of, scope_of, settings_of, store_of
from memory.scope import Scope
from memory.session_memory import complete
from memory.settings import Settings
from memory.state import REDUCED_KEYS, HandledMark, State, fresh_state
from memory.state_check import checked, state_problem

RESUMED = "circadian_resumed"
"""Where `config["configurable"]` carries the report of an unfinished run that was just finished."""


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
    # What is decided anew here is not kept from before, right or wrong.
    anew = ("turn", "report") if first else ("turn",)
    sound = state_problem({k: v for k, v in state.items() if k not in anew}) is None
    if sound:
        # First, so that an id that was handled in the run before is known as handled.
        await desk.settle()
    if first:
        await desk.take_in()
    if not sound:
        # Nothing of what is wrong is put right here: `refuse` is to find it.
        desk.set(turn="refuse")
        return desk.update
    desk.recompute_goals()
    desk.take_request()
    await desk.decide()
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
        self.given = False
        """Whether this run was given anything at all."""
        self.resumed: Report | None = _resumed(config) if first else None
        """What was done just now, for an earlier run: this run's report goes on with it."""
        if first:
            self.set(report=self.resumed or empty_report())

    def set(self, **values: Any) -> None:
        """Change the state and remember the change."""
        self.update.update(values)
        self.state = cast(State, {**self.state, **values})

    @property
    def report(self) -> Report:
        return self.state["report"]

    def note(self, **more: Any) -> None:
        """Add to the lists of the report."""
        merged = {key: [*cast(Any, self.report)[key], *value] for key, value in more.items()}
        self.set(report={**self.report, **merged})

    async def take_in(self) -> None:
        """New input goes to the inbox before anything is done with it."""
        run_id = self.config.get("metadata", {}).get("run_id")
        arrived = await arrivals.take_in(
            self.state,
            store=self.store,
            scope=self.scope,
            owner=owner_of(self.settings, self.resources.user),
            now=self.now,
            run_id=str(run_id) if run_id is not None else None,
        )
        self.given = arrived.given
        done = {tick["event_id"] for tick in self.report["ticks"]} | {*self.report["context_only"]}
        self.note(skipped=[one for one in arrived.skipped if one not in done], notes=arrived.notes)
        if arrived.messages:
            self.update["messages"] = arrived.messages

    def recompute_goals(self) -> None:
        """An edit by hand is rolled up like an update (ruling 10)."""
        before = self.state["goals"]
        goals = recompute(before)
        if goals != before:
            done = completions(before, goals, self.now)
            self.set(goals=goals, session_memory=complete(self.state["session_memory"], done))

    def take_request(self) -> None:
        """Carry out the run's request, as far as it is not a night or a tick."""
        request = self.state.get("request") if self.first else None
        self.given = self.given or request is not None
        if request == "sleep" and not self.state["emergency_stop"]:
            self.set(mode="sleep", phase="compacting")
        elif request == "wake":
            self._wake()
        elif request == "stop":
            self.set(emergency_stop=True)
        elif request == "clear_stop":
            self.set(emergency_stop=False)
            self.note(notes=["The emergency stop is cleared."])
        self.autonomous = request == "tick" or not (self.given or self.resumed)
        self.sleep_asked = request == "sleep"

    def _wake(self) -> None:
        """A session runs from one waking to the next night (ruling 20)."""
        self.set(
            mode="awake",
            phase=None,
            metrics={
                "session_start": self.now.isoformat(),
                "total_tool_calls": 0,
                "successful_calls": 0,
                "failed_calls": 0,
            },
        )

    async def settle(self) -> None:
        """Take events out of the inbox whose ticks are in a checkpoint that is on disk.

        At the start of a run the state was read from disk. Later in it that holds only where
        every checkpoint is awaited; on a server the marks wait for the next run.
        """
        if self.state["handled"] and (self.first or self.resources.synced):
            await inbox.settle(self.store, self.scope, self.state["handled"])
            self.set(handled=[])

    async def decide(self) -> None:
        """Choose: the unfinished night, a new night, a pending event, the goals, or rest."""
        if self.state["emergency_stop"]:
            waits = await inbox.waiting(self.store, self.scope, self.state["handled"])
            self.note(notes=[f"Emergency stop: {len(waits)} event(s) wait until it is cleared."])
            return self.rest()
        # Also before a night: it is to know what was heard by then.
        event = await self._next_event()
        if await self._night_due():
            return self.set(turn="night", event=None)
        if event is not None:
            if self.state["mode"] == "sleep":
                self._wake()
            return self.set(turn="tick", event=event)
        if self.first and self.autonomous:
            return self._autonomous()
        return self.rest()

    def rest(self) -> None:
        """Nothing more in this run."""
        self.set(turn="rest", event=None)

    async def _night_due(self) -> bool:
        """An unfinished night goes on whatever the input; one that failed in this run waits."""
        if self.report["night"] is not None:
            return False
        if any(failure["event_id"] is None for failure in self.report["failures"]):
            return False
        if await night.unfinished(self.store, self.scope) is not None:
            return True
        return self.first and self.sleep_asked

    def _autonomous(self) -> None:
        active = any(goal["status"] == "active" for goal in self.state["goals"].values())
        if self.state["mode"] == "sleep":
            self.note(notes=["Asleep. A message or `wake` wakes the agent."])
        elif active:
            return self.set(turn="tick", event=None)
        else:
            self.note(notes=["Nothing is pending and no goal is active."])
        return self.rest()

    async def _next_event(self) -> Event | None:
        """The oldest event to act on; the unaddressed ones are taken as context."""
        failed = {failure["event_id"] for failure in self.report["failures"]}
        items = await inbox.waiting(self.store, self.scope, self.state["handled"])
        items = [item for item in items if item["event"]["id"] not in failed]
        await self._take_as_context([item for item in items if not item["event"]["addressed"]])
        acted = [item["event"] for item in items if item["event"]["addressed"]]
        return acted[0] if acted else None

    async def _take_as_context(self, items: Sequence[InboxItem]) -> None:
        """Journal unaddressed events and keep the newest in the prompt. No model is called."""
        if not items:
            return
        events = [item["event"] for item in items]
        entries = [journal.entry_in(self.state, event) for event in events]
        await apply_operations(
            [add_entry(entry, "heard, not addressed") for entry in entries],
            store=self.store,
            semantic=self.resources.semantic,
            scope=self.scope,
        )
        size = self.settings.context_buffer_size
        buffer = [*self.state["context_buffer"], *events]
        stamp = self.now.isoformat()
        marks = [HandledMark(id=e["id"], tick=self.state["tick"], at=stamp) for e in events]
        self.set(
            context_buffer=buffer[len(buffer) - size :] if size < len(buffer) else buffer,
            handled=[*self.state["handled"], *marks],
        )
        self.note(context_only=[event["id"] for event in events])


def _resumed(config: RunnableConfig) -> Report | None:
    """What `open_agent` left there. A server's client cannot: its config holds no Resources."""
    given = config.get("configurable", {})
    ours = isinstance(given.get(KEY), Resources)
    return cast(Report | None, given.get(RESUMED)) if ours else None
