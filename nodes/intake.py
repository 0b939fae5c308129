"""Take in what is new, lease what is pending, decide what this run does next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import approvals, arrivals, audit, emergency, episodes, inbox, night, night_undo
from memory.overheard import overhear
from memory.records import Event, HandledMark
from memory.reflection import is_reflection
from memory.resources import undo_looked_for, undone_night
from memory.schedule import filled, hours_named, hours_over, own_sleep
from memory.session import rolled_up
from memory.settings import Settings
from memory.state import (
    Request,
    State,
)
from memory.state_check import checked, kept_problem
from memory.tick import Classification, ParkedTick
from memory.turns import Judged, Pending, goals_parked, parked_events, sorted_out, why_idle
from memory.visit import Visit


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
    # Those that stand in a checkpoint. What this visit marks is in none yet.
    committed = desk.state["handled"]
    if first:
        await desk.take_in()
        await desk.finish_undo()
        # For entries that a crash left unindexed.
        await episodes.index_written(desk.store, desk.resources.semantic, desk.scope)
    if not sound:
        desk.set(turn="refuse")  # which is to find what is wrong as it is
        return desk.update
    desk.recompute_goals()
    if desk.take_request() == "clear_stop":
        await emergency.forget_stop(desk.store, desk.scope)
    await desk.take_stop()
    await desk.decide()
    if committed:
        await inbox.note_answered(desk.store, desk.scope, committed)
    await audit.write(desk.store, desk.scope, desk.log)
    return desk.update


class _Desk(Visit):
    """What a visit of `intake` does, in the order in which the node calls it."""

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

    async def finish_undo(self) -> None:
        """One that was broken off comes before anything reads or changes memory.

        `open_agent` finished it before it resumed anything; on a server nothing runs before this.
        """
        if undo_looked_for(self.config):
            done = undone_night(self.config)
        else:
            done = await night_undo.finish(self.store, self.resources.semantic, self.scope)
        if done is not None:
            self.note(notes=[f"The undo of {done} had been broken off; it is finished now."])

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
            self.sleep("request", f"{self.resources.user} asked for it")
        elif request == "wake":
            self.wake("request", f"{self.resources.user} asked for it")
        elif request == "stop":
            self.set(emergency_stop=True)
            self.log.append(audit.of_stop("a person asked for it", **self.place))
        elif request == "clear_stop":
            self.set(emergency_stop=False, consecutive_errors=0)
            self.note(notes=["The emergency stop is cleared."])
            self.log.append(audit.of_clear(**self.place))
        if self.first and not self.resources.night_only:
            # Work of an earlier run that was finished first is no reason to wait for this one.
            self.set(unattended=request == "tick" or not self.given)
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
        """Choose, in this order: an answer, a night, an event, sleep, goals, a question, rest."""
        if self.state["emergency_stop"]:
            waits = await inbox.waiting(self.store, self.scope, self.state["handled"])
            self.note(notes=[emergency.sentence(len(waits))])
            self.drop_wish("the emergency stop stands")
            return self.rest()
        if self.resources.night_only:
            return await self._night_alone()
        if hours_over(self.state, self.settings, self.now):
            self.wake("hours", hours_named(self.settings))
        # Also before a night: it is to know what was heard by then.
        pending = await self._pending()
        ready = pending.ready(self.state, self.settings, self.now)
        if answered := await self._answered():
            return self._resume(answered)
        if await self._night_due():
            return self.set(turn="night", event=None)
        if ready is not None:
            return self._take(*ready)
        if await self._sleeps():
            return self.set(turn="night", event=None)
        goals_wait = goals_parked(self.state)
        if self.first and self.autonomous and not goals_wait and self._autonomous():
            return self.set(turn="tick", event=None, classification=None)
        if self._parked() and self.state["mode"] == "awake":
            return self._resume(self._parked()[0])
        return self.rest()

    async def _answered(self) -> ParkedTick | None:
        """The first tick whose question a person has answered."""
        answered = await approvals.answers(self.store, self.scope, self._parked())
        return next((one for one in self._parked() if one["question"]["id"] in answered), None)

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
        """Nothing more in this run. Where its night is over already, no other is about to begin."""
        over = self.state["report"]["night"] is not None and self.state["phase"] == "compacting"
        self.set(turn="rest", event=None, classification=None, **({"phase": None} if over else {}))

    async def _night_alone(self) -> None:
        """For a run that is for a night, and leaves all else that waits alone."""
        due = await night.is_due(self.store, self.scope)
        if due and not self._night_failed():
            return self.set(turn="night", event=None)
        return self.rest()

    def _night_failed(self) -> bool:
        return any(one["event_id"] is None for one in self.state["report"]["failures"])

    async def _night_due(self) -> bool:
        """An unfinished night goes on whatever the input; after a preview, what was asked for."""
        if self._night_failed():
            return False
        if (done := self.state["report"]["night"]) is not None:
            return done["dry_run"] and self.state["phase"] == "compacting"
        return (self.first and self.sleep_asked) or await night.is_going(self.store, self.scope)

    async def _sleeps(self) -> bool:
        """Whether it falls asleep of its own accord, or at its hour sleeps on: a night follows."""
        if self.state["report"]["night"] is not None:
            return False  # one a run: its wish, and its hour, stand for the next
        items = await inbox.waiting(self.store, self.scope, self.state["handled"])
        # Those that failed in this run wait as well.
        left = sorted_out(items, self.settings, self.owners, past=parked_events(self.state))
        direct, busy = bool(left.people), bool(items or self.state["parked"])
        if direct:
            self.drop_wish("a direct event waits")
        wish = self.state["sleep_wish"]
        why = own_sleep(self.state, self.settings, self.now, direct=direct, busy=busy)
        if why is None:
            return False
        reasons = {
            "go_to_sleep": wish["reasoning"] if wish else "",
            "schedule": hours_named(self.settings),
            "fatigue": f"the history fills {filled(self.state, self.settings):.0%} of the context",
        }
        self.sleep(why, reasons[why])
        return True

    def _autonomous(self) -> bool:
        """Whether to work on the goals; if not, the report says why."""
        why = why_idle(self.state, self.settings, self.now)
        if why is not None:
            self.note(notes=[why])
        return why is None

    async def _pending(self) -> Pending:
        """What waits to be acted on; the rest is taken as context or ignored."""
        failed = {failure["event_id"] for failure in self.state["report"]["failures"]}
        past = parked_events(self.state) | {one for one in failed if one is not None}
        items = await inbox.waiting(self.store, self.scope, self.state["handled"])
        pending = sorted_out(items, self.settings, self.owners, past=past)
        await self._take_as_context(pending.context)
        self._ignore(pending.ignored)
        return pending

    def _take(self, event: Event, classification: Classification) -> None:
        """A tick on the event; it wakes the agent."""
        self.set(turn="tick", event=event, classification=classification)
        if not is_reflection(event):
            self.drop_wish("a direct event waits")
        if self.state["mode"] == "sleep":
            self.wake("event", classification["reason"])

    def _ignore(self, judged: Sequence[Judged]) -> None:
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
