"""Where a tool's operations go: applied at once when awake, kept for the plan in a night."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore

from memory.apply import apply_operations
from memory.records import JournalEntry, Operation
from memory.resources import present, resources_of, scope_of
from memory.scope import Scope
from memory.semantic import SemanticMemory

KEY = "circadian_sink"
"""Where a night's step puts its PlanSink into `config["configurable"]`."""


class Sink(Protocol):
    """Takes the operations of tools."""

    @property
    def shown(self) -> Mapping[str, JournalEntry] | None:
        """In a night the entries that the model was shown, by id; None awake."""

    async def write(self, operations: Sequence[Operation]) -> list[str]:
        """Take operations; return the ids of what they write."""


class DirectSink:
    """Awake: what a tool writes is there at once."""

    shown: Mapping[str, JournalEntry] | None = None

    def __init__(self, store: BaseStore, semantic: SemanticMemory, scope: Scope) -> None:
        self._store, self._semantic, self._scope = store, semantic, scope

    async def write(self, operations: Sequence[Operation]) -> list[str]:
        """Apply the operations now."""
        return await apply_operations(
            operations, store=self._store, semantic=self._semantic, scope=self._scope
        )


class PlanSink:
    """Asleep: what a tool writes joins the night's list, and is applied with it."""

    def __init__(self, shown: Mapping[str, JournalEntry]) -> None:
        self.shown: Mapping[str, JournalEntry] | None = shown
        self.operations: list[Operation] = []

    async def write(self, operations: Sequence[Operation]) -> list[str]:
        """Keep the operations, each once."""
        known = {operation["id"] for operation in self.operations}
        self.operations += [one for one in operations if one["id"] not in known]
        return [one["target"] for one in operations if one["kind"] in ("add_entry", "add_fact")]


def sink_of(config: RunnableConfig, store: BaseStore | None) -> Sink:
    """The sink of this run or step."""
    given = config.get("configurable", {}).get(KEY)
    if isinstance(given, PlanSink):
        return given
    return DirectSink(present(store), resources_of(config).semantic, scope_of(config))


def with_sink(config: RunnableConfig, sink: PlanSink) -> RunnableConfig:
    """`config` for the tools of a night's step."""
    return {**config, "configurable": {**config.get("configurable", {}), KEY: sink}}
