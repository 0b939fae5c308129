"""Take in what is new, lease what is pending, decide what this run does next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Literal, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from memory import audit, entities, journal, night, transfer
from memory.audit import of_mode_change
from memory.errors import StateError
from memory.events import (
    CONTROLS,
    Judged,
    Pending,
    approvals,
    at_least,
    by_verdict,
    entry_in,
    forget_stop,
    goals_parked,
    hours_named,
    hours_over,
    inbox,
    misconfigured,
    own_sleep_cause,
    owners_of,
    parked_events,
    shared_after,
    spending_after_look,
    stop_asked_by,
    stop_sentence,
    why_idle,
    why_wait,
)
from memory.messages import changes, is_outside, merge_messages, without_waiting
from memory.operations import apply_operations, finish_corrections
from memory.recall import episodes
from memory.records import (
    Classification,
    Event,
    HandledMark,
    ParkedTick,
    Report,
    Scope,
    add_entry,
    empty_report,
    is_reflection,
)
from memory.runtime import (
    Resources,
    ignored_by,
    marks_elsewhere,
    resources_of,
    resumed_report,
    scope_of,
    settings_of,
    store_of,
    undo_looked_for,
    undone_night,
)
from memory.settings import Settings
from memory.state import (
    REDUCED_KEYS,
    Course,
    Request,
    SleepCause,
    State,
    WakeCause,
    checked,
    fallen_asleep,
    filled,
    fresh_state,
    kept_problem,
    report_so_far,
    rolled_up,
    state_problem,
    woken,
)
from memory.storage import read_ahead, stored_values

DIRECT_EVENT = "a direct event waits"


async def next_turn(state: Course) -> Literal["awake", "sleep", "refuse", "__end__"]:
    """Route from `intake` to the node that it chose."""
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
    """Write new input to the inbox, validate the state, then choose a tick, a night or rest.

    A state that breaks a rule, as after a bad edit by hand, leads to `refuse`; its input is kept.
    Raises InputError for malformed input, or if an import into the agent was interrupted: no event
    was taken; the messages stand in the thread, where the next run takes them.
    """
    visit = _Visit(state, runtime, config)
    sound = kept_problem(state) is None
    if sound:
        visit.store = await visit.read_ahead()
        # Before new input: an id that the run before handled must be known as handled.
        await visit.settle()
    # Where no checkpoint is held back, as on a server, these are on disk; this visit's are not.
    committed = visit.state["handled"] if stored_values(config) is None else []
    if visit.first:
        if not undo_looked_for(config):  # `open_agent` looked before it began the run
            await transfer.check_whole(visit.store, visit.scope)
        await visit.take_in()
        await visit.finish_undo()
        # Entries that a crash left unindexed.
        await episodes.index_written(visit.store, visit.resources.semantic, visit.scope)
    if not sound:
        visit.change(turn="refuse")  # `refuse` needs the state unchanged
        visit.show_waiting()
        return visit.update
    # Goals may have been edited by hand.
    goals = visit.state["goals"]
    visit.change(**rolled_up(visit.state, visit.now))
    visit.log += audit.of_goals(goals, visit.state["goals"], **visit.place, origin=None)
    visit.take_request()
    if visit.request == "clear_stop":
        await forget_stop(visit.store, visit.scope)
    await visit.take_bounds()
    visit.carry_out(await visit.decision())
    visit.show_waiting()
    if committed:
        await inbox.note_answered(visit.store, visit.scope, committed)
    await audit.write(visit.store, visit.scope, visit.log)
    return visit.update


class Findings(NamedTuple):
    """The input of `decide`: the state, and what was read from the store."""

    state: State
    settings: Settings
    now: datetime
    pending: Pending
    """Events that this run has not tried yet."""
    left: Pending
    """All waiting events, including events that failed in this run."""
    answered: ParkedTick | None
    """The first parked tick whose question a person has answered."""
    night_going: bool
    """A night was begun and has not ended, or was asked for."""
    request: Request | None
    """What this visit was asked for. `tick` looks at the goals though nothing has changed."""
    autonomous: bool
    """The run may work on the goals."""


class NextTurn(NamedTuple):
    """What the run does next, and the changes of mode and state before it."""

    turn: Literal["tick", "night", "rest"]
    event: Event | None = None
    classification: Classification | None = None
    resumes: ParkedTick | None = None
    """The parked tick that goes on."""
    falls_asleep: tuple[SleepCause, str] | None = None
    """Cause and reason."""
    wakes: str | None = None
    """The reason, where the event ends a sleep."""
    wish_dropped: str | None = None
    """What overrules the model's wish to sleep, if anything."""
    notes: tuple[str, ...] = ()


def decide(found: Findings) -> NextTurn:
    """Choose, in this order: an answer, a night, an event, sleep, goals, a question, rest. Pure."""
    state = found.state
    if found.answered:
        return _resumed(found.answered)
    if night_due(found):
        return NextTurn("night")
    if ready := found.pending.ready(state, found.settings, found.now):
        event, classification = ready
        return NextTurn(
            "tick",
            event,
            classification,
            wakes=classification["reason"] if state["mode"] == "sleep" else None,
            wish_dropped=None if is_reflection(event) else DIRECT_EVENT,
        )
    # One night a run: the wish and the hour stand for the next run.
    may_sleep = state["report"]["night"] is None
    dropped = DIRECT_EVENT if may_sleep and found.left.people else None
    if may_sleep and (cause := sleep_cause(found)):
        return NextTurn("night", falls_asleep=cause, wish_dropped=dropped)
    notes: tuple[str, ...] = ()
    if found.autonomous and not goals_parked(state):
        idle = why_idle(state, found.settings, found.now)
        if idle is None and found.request != "tick":
            idle = why_wait(state, found.settings, found.now)
        if idle is None:
            return NextTurn("tick", wish_dropped=dropped)
        notes = (idle,)
    if (parked := parked_ticks(state)) and state["mode"] == "awake":
        return _resumed(parked[0])._replace(wish_dropped=dropped, notes=notes)
    return NextTurn("rest", wish_dropped=dropped, notes=notes)


def night_due(found: Findings) -> bool:
    """Whether a night begins or goes on: it was asked for or begun, or it follows a preview."""
    if night_failed(found.state):
        return False
    if (done := found.state["report"]["night"]) is not None:
        return done["dry_run"] and found.state["phase"] == "compacting"
    return found.request == "sleep" or found.night_going


def night_failed(state: State) -> bool:
    """Whether a step of the night failed in this run."""
    return any(failure["event_id"] is None for failure in state["report"]["failures"])


def sleep_cause(found: Findings) -> tuple[SleepCause, str] | None:
    """Why the agent falls asleep of its own accord, with the reason; None: it stays awake."""
    state, settings = found.state, found.settings
    cause = own_sleep_cause(state, settings, found.now, found.left)
    if cause is None:
        return None
    wish = state["sleep_wish"]
    reasons: dict[SleepCause, str] = {
        "go_to_sleep": wish["reasoning"] if wish else "",
        "schedule": hours_named(settings),
        "fatigue": f"the history fills {filled(state, settings):.0%} of the context",
    }
    return cause, reasons[cause]


def parked_ticks(state: State) -> list[ParkedTick]:
    """The ticks that wait for a person, except ticks that failed in this run."""
    failed = _failed_events(state)
    return [one for one in state["parked"] if not one["event"] or one["event"]["id"] not in failed]


def _failed_events(state: State) -> set[str]:
    return {one["event_id"] for one in state["report"]["failures"] if one["event_id"] is not None}


def _resumed(parked: ParkedTick) -> NextTurn:
    return NextTurn("tick", parked["event"], parked["classification"], resumes=parked)


class _Visit:
    """One visit of `intake`: the new state, the update that leads to it, and its audit entries.

    The methods stand in the order in which the node calls them.
    """

    def __init__(self, state: State, runtime: Runtime[Settings], config: RunnableConfig) -> None:
        self.first = not state.get("returning")
        """This is the run's first visit."""
        # LangGraph starts a key with a reducer as {}, which is no value of ours. Keys that an older
        # version did not know start here, too.
        missing = {
            key: value
            for key, value in fresh_state().items()
            if key not in state or (key in REDUCED_KEYS and state.get(key) == {})
        }
        self.update: dict[str, Any] = dict(missing)
        self.state = cast(State, {**state, **missing})
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
        self.request: Request | None = state.get("request") if self.first else None
        self.autonomous = False
        self.given = False
        """The run brought messages, events or a request."""
        self.report_before: Report = state.get("report") or empty_report()
        """The report so far, or of the run before."""
        self.resumed: Report | None = resumed_report(config) if self.first else None
        """The report of an earlier run that was finished just now: this run's report extends it."""
        self.messages_before = self.state["messages"]
        """As the visit found them."""
        self.waiting: set[str] = set()
        """Ids of the events that wait in the inbox."""
        self.change(resuming=None)  # left by a run that ended with a question
        self.change(report=report_so_far(self.resumed if self.first else self.state["report"]))

    def change(self, **values: Any) -> None:
        """Change the state and remember the change."""
        self.update.update(values)
        self.state = cast(State, {**self.state, **values})

    def note(self, **more: Any) -> None:
        """Extend lists of the report."""
        report = cast(dict[str, Any], self.state["report"])
        self.change(report={**report, **{key: [*report[key], *new] for key, new in more.items()}})

    @property
    def place(self) -> dict[str, Any]:
        """Time, tick and user, for the audit log."""
        return {"at": self.now, "tick": self.state["tick"], "who": self.resources.user}

    async def read_ahead(self) -> BaseStore:
        """The store, with what every visit reads."""
        given = self.state.get("events")
        events = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
        ids = dict.fromkeys(
            str(one["id"]) for one in [*self.state["handled"], *events] if "id" in one
        )
        read = (inbox.INBOX, journal.UNINDEXED, episodes.INDEXING, CONTROLS, night.OPEN)
        lists = [self.scope.namespace(name) for name in read]
        return await read_ahead(self.store, lists, inbox.were_handled(self.scope, ids))

    async def settle(self) -> None:
        """Remove from the inbox the events whose ticks are on disk.

        The first visit of a run read its state from disk: all its marks count. A later visit goes
        by the last checkpoint that this run stored; on a server, where that is unknown, the marks
        wait for the next run.
        """
        marks = self.state["handled"]
        if self.first:
            await inbox.settle(self.store, self.scope, await marks_elsewhere(self.config))
            on_disk: Mapping[str, Any] | None = {**self.state, "report": self.report_before}
            ids = [mark["id"] for mark in marks]
            done = await inbox.already_handled(self.store, self.scope, ids)
            left = [mark for mark in marks if mark["id"] not in done]
        else:
            on_disk = stored_values(self.config)
            left = on_disk.get("handled", []) if on_disk else []
        if on_disk and "report" in on_disk:  # A run's first checkpoint may be its input alone.
            await inbox.settled(self.store, self.scope, on_disk, left, late=self.first)
        kept = [] if self.first else [mark for mark in marks if mark not in left]
        if marks != kept:
            self.change(handled=kept)
        if self.first and self.state["emergency_stop"]:
            await forget_stop(self.store, self.scope)

    async def take_in(self) -> None:
        """Write new input to the inbox before anything is done with it."""
        metadata = self.config.get("metadata", {})
        arrived = await inbox.take_in(
            self.state,
            store=self.store,
            scope=self.scope,
            owner=self.owners[0],
            now=self.now,
            run_id=str(metadata["run_id"]) if metadata.get("run_id") is not None else None,
            room=self.resources.bounds.room if self.resources.bounds else None,
        )
        self.given = arrived.given
        self.note(notes=ignored_by(metadata))
        report = self.state["report"]
        done = {*report["context_only"], *(tick["event_id"] for tick in report["ticks"])}
        self.note(skipped=[id_ for id_ in arrived.skipped if id_ not in done], notes=arrived.notes)
        self.change(messages=merge_messages(self.state["messages"], arrived.messages))

    async def finish_undo(self) -> None:
        """Finish an interrupted correction or undo before anything reads or changes memory.

        `open_agent` finished it before it resumed anything; on a server nothing runs before this.
        """
        if undo_looked_for(self.config):
            done = undone_night(self.config)
        else:
            memory, semantic = self.state["session_memory"], self.resources.semantic
            after = await finish_corrections(
                memory, self.owners, store=self.store, semantic=semantic, scope=self.scope
            )
            if after is not memory:
                self.change(session_memory=after)  # what is written is stored again
            done = await night.finish(self.store, semantic, self.scope)
        if done is not None:
            self.note(notes=[f"The undo of {done} was interrupted, and is finished now."])

    def take_request(self) -> None:
        """Carry out the run's request, as far as it asks for no night and no tick."""
        request = self.request
        self.given = self.given or request is not None
        if request == "sleep" and not self.state["emergency_stop"]:
            self._sleep("request", f"{self.resources.user} asked for it")
        elif request == "wake":
            self._wake("request", f"{self.resources.user} asked for it")
        elif request == "stop":
            self.change(emergency_stop=True)
            self.log.append(audit.of_stop("a person asked for it", **self.place))
        elif request == "clear_stop":
            self.change(emergency_stop=False, consecutive_errors=0)
            self.note(notes=["The emergency stop is cleared."])
            self.log.append(audit.of_clear(**self.place))
        if self.first and not self.resources.night_only:
            # Finishing an earlier run's work does not make this run an attended one.
            self.change(unattended=request == "tick" or not self.given)
        self.autonomous = self.first and (
            request == "tick" or not (self.given or self.resumed is not None)
        )

    async def take_bounds(self) -> None:
        """Take over an emergency stop that was requested meanwhile, by any process.

        Where an operator keeps a ledger, as on a server, its count of tokens is taken over, too.
        """
        stopped = self.state["emergency_stop"]
        if not stopped and (by := await stop_asked_by(self.store, self.scope)):
            self.change(emergency_stop=True)
            self.log.append(audit.of_stop("a person asked for it", **{**self.place, "who": by}))
        if (bounds := self.resources.bounds) is not None:
            tokens = await bounds.spent(self.scope)
            self.change(spending=at_least(self.state["spending"], self.now, tokens))

    async def decision(self) -> NextTurn:
        """Read what waits, and decide."""
        if self.state["emergency_stop"]:
            waits = await inbox.waiting(self.store, self.scope, self.state["handled"])
            said = stop_sentence(len(waits))
            return NextTurn("rest", wish_dropped="the emergency stop is set", notes=(said,))
        if wrong := misconfigured(self.state["report"]):
            return NextTurn("rest", notes=(f"Nothing more was tried: {wrong}.",))
        served = self.first and self.resources.served
        previewed = served and await night.preview_wanted(self.store, self.scope)
        if self.resources.night_only or previewed:
            due = await night.is_due(self.store, self.scope) and not night_failed(self.state)
            return NextTurn("night" if due else "rest")
        if hours_over(self.state, self.settings, self.now):
            self._wake("hours", hours_named(self.settings))
        pending, left = await self._read_inbox()
        answers = await approvals.answers(self.store, self.scope, parked_ticks(self.state))
        return decide(
            Findings(
                state=self.state,
                settings=self.settings,
                now=self.now,
                pending=pending,
                left=left,
                answered=next(
                    (t for t in parked_ticks(self.state) if t["question"]["id"] in answers), None
                ),
                night_going=await night.unfinished(self.store, self.scope) is not None,
                request=self.request,
                autonomous=self.autonomous,
            )
        )

    async def _read_inbox(self) -> tuple[Pending, Pending]:
        """`pending` and `left` of Findings; context events go into the journal."""
        items = await inbox.waiting(self.store, self.scope, self.state["handled"])
        self.waiting = {item["event"]["id"] for item in items}
        heard = (item["event"] for item in items)
        shared = shared_after(self.state, heard, self.settings, self.owners)
        if shared != self.state["shared_channels"]:
            self.change(shared_channels=shared)
        parked = parked_events(self.state)
        sort = partial(by_verdict, items, self.settings, self.owners)
        pending = sort(past=parked | _failed_events(self.state))
        # Before a night, too: it has to know what was heard by then.
        await self._take_as_context(pending.context)
        self._ignore(pending.ignored)
        return pending, sort(past=parked | {mark["id"] for mark in self.state["handled"]})

    async def _take_as_context(self, events: Sequence[Event]) -> None:
        """Journal unaddressed events and keep the newest in the prompt. No model is called."""
        if not events:
            return
        familiar = await entities.familiar(self.store, self.scope, events)
        entries = [
            entry_in(self.state, event, self.settings, known)
            for event, known in zip(events, familiar, strict=True)
        ]
        await apply_operations(
            [add_entry(entry, "heard, not addressed") for entry in entries],
            store=self.store,
            semantic=self.resources.semantic,
            scope=self.scope,
        )
        # Without images: every checkpoint copies the buffer.
        heard = [cast(Event, {k: v for k, v in e.items() if k != "content"}) for e in events]
        buffer = [*self.state["context_buffer"], *heard]
        newest = max(0, len(buffer) - self.settings.context_buffer_size)
        self.change(context_buffer=buffer[newest:])
        self._mark(events)
        self.note(context_only=[event["id"] for event in events])

    def _ignore(self, judged: Sequence[Judged]) -> None:
        self._mark([event for event, _ in judged])
        self.note(
            ignored=[
                {"event_id": e["id"], "rule": c["rule"], "reason": c["reason"]} for e, c in judged
            ]
        )

    def _mark(self, events: Sequence[Event]) -> None:
        stamp, tick = self.now.isoformat(), self.state["tick"]
        marks = [HandledMark(id=event["id"], tick=tick, at=stamp) for event in events]
        self.change(handled=[*self.state["handled"], *marks])

    def carry_out(self, decision: NextTurn) -> None:
        """Change state, report and log as decided."""
        self.note(notes=[*decision.notes])
        if decision.turn == "tick":
            self.change(turn="tick", event=decision.event, classification=decision.classification)
            if decision.event is None and decision.resumes is None:
                self.change(spending=spending_after_look(self.state, self.settings, self.now))
        if (why := decision.wish_dropped) is not None and self.state["sleep_wish"] is not None:
            self.change(sleep_wish=None)
            self.note(notes=[f"The agent wanted to sleep and stays awake: {why}."])
        if decision.falls_asleep:
            self._sleep(*decision.falls_asleep)
        if decision.wakes:
            self._wake("event", decision.wakes)
        if decision.turn == "night":
            self.change(turn="night", event=None)
        if decision.turn == "rest":
            # A night that was requested after the night of this run does not begin.
            over = self.state["report"]["night"] is not None and self.state["phase"] == "compacting"
            self.change(
                turn="rest", event=None, classification=None, **({"phase": None} if over else {})
            )
        if decision.resumes:
            parked = decision.resumes
            if parked["question"] not in self.state["report"]["questions"]:
                self.note(questions=[parked["question"]])
            self.change(resuming=parked["question"]["id"])

    def show_waiting(self) -> None:
        """Keep showing chat clients the messages whose events wait; none once the run rests.

        Messages for which the inbox had no room stay in the history.
        """
        shown = self.waiting if self.state["turn"] != "rest" else set()
        history = without_waiting(self.state["messages"])
        behind = self.state["messages"][len(history) :]
        left = [*history, *(m for m in behind if m.id in shown or is_outside(m))]
        self.update.pop("messages", None)
        if changed := changes(self.messages_before, left):
            self.update["messages"] = changed

    def _sleep(self, why: SleepCause, reason: str) -> None:
        self._change_mode(fallen_asleep(self.state, self.now, why, reason))

    def _wake(self, why: WakeCause, reason: str) -> None:
        self._change_mode(woken(self.state, self.settings, self.now, why, reason))

    def _change_mode(self, update: dict[str, Any]) -> None:
        told = len(self.state["report"]["mode_changes"])
        self.change(**update)
        event = self.state["event"]
        for change in self.state["report"]["mode_changes"][told:]:
            origin = event["id"] if event else None
            self.log.append(of_mode_change(change, origin=origin))


@checked
async def refuse(state: State) -> dict[str, Any]:
    """Raise StateError, which names the key; nothing if the state was mended meanwhile.

    A node of its own: LangGraph takes an edit by hand as made by the last node that ended. Where
    that is the start of the graph, LangGraph drops every key that is no input.
    """
    if (problem := state_problem(state)) is not None:
        raise StateError(problem)
    return {}
