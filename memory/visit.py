"""One visit of `intake`: the state as it becomes, the update that makes it so, and its log."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from memory import audit
from memory.audit_nights import of_mode_change
from memory.owners import owners_of
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
from memory.session import fallen_asleep, woken
from memory.settings import Settings
from memory.state import REDUCED_KEYS, SleepCause, State, WakeCause, fresh_state
from memory.state_check import report_so_far


class Visit:
    """What `intake` knows, and what it changed so far."""

    def __init__(
        self, state: State, runtime: Runtime[Settings], config: RunnableConfig, first: bool
    ) -> None:
        # LangGraph begins a key with a reducer as {}: not yet a value of ours. What an older
        # version did not know of begins here too.
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

    def sleep(self, why: SleepCause, reason: str) -> None:
        """Fall asleep, or sleep on; report and log say why."""
        self._change_mode(fallen_asleep(self.state, self.now, why, reason))

    def wake(self, why: WakeCause, reason: str) -> None:
        """Wake; report and log say why."""
        self._change_mode(woken(self.state, self.settings, self.now, why, reason))

    def drop_wish(self, why: str) -> None:
        """What stands in its way by now was not there when the model asked to sleep."""
        if self.state["sleep_wish"] is not None:
            self.set(sleep_wish=None)
            self.note(notes=[f"It wished to sleep, and stays awake: {why}."])

    def _change_mode(self, update: dict[str, Any]) -> None:
        told = len(self.state["report"]["mode_changes"])
        self.set(**update)
        event = self.state["event"]
        for change in self.state["report"]["mode_changes"][told:]:
            origin = event["id"] if event else None
            self.log.append(of_mode_change(change, tick=self.state["tick"], origin=origin))
