"""Collectors of the operations that tools make: awake applied at once, asleep added to a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore

from memory.facts import SemanticMemory
from memory.messages import Handles
from memory.operations.apply import apply_operations
from memory.records import JournalEntry, Operation, Scope
from memory.runtime import present, resources_of, scope_of

KEY = "circadian_sink"
"""The key of a night step's PlanCollector in `config["configurable"]`."""


class Collector:
    """Takes the operations of tools: awake it applies them at once."""

    doubts: dict[str, str] | None = None
    """Operation id -> why the rules rejected its fact, for the model that judges it afterwards;
    None if no model judges.
    """
    shown: Mapping[str, JournalEntry] | None = None
    """Asleep: the entries that the model was shown, by id. Awake: None."""
    looked_up: dict[str, JournalEntry]
    """Asleep: other entries, of facts that the model looked up and cites."""

    def __init__(self, store: BaseStore, semantic: SemanticMemory, scope: Scope) -> None:
        self._store, self._semantic, self._scope = store, semantic, scope
        self.looked_up = {}

    def resolve(self, given: str) -> str:
        """The id that a citation means; the citation itself if it means none that was shown."""
        return given

    def handle(self, id_: str) -> str:
        """An id as the model was shown it."""
        return id_

    async def write(self, operations: Sequence[Operation]) -> list[str]:
        """Take operations; return the ids of the memories that they add."""
        return await apply_operations(
            operations, store=self._store, semantic=self._semantic, scope=self._scope
        )


class PlanCollector(Collector):
    """Asleep: keeps operations for the plan of the night's step."""

    def __init__(
        self,
        shown: Mapping[str, JournalEntry],
        operations: Sequence[Operation] = (),
        *,
        judged: bool = False,
    ) -> None:
        """`shown`: in the order of the prompt. `operations`: of earlier answers."""
        self.shown = shown
        self.operations = list(operations)
        self._earlier = len(self.operations)
        self.doubts, self.looked_up = {} if judged else None, {}
        self._handles = Handles(shown)

    @property
    def new(self) -> list[Operation]:
        """The operations of this answer."""
        return self.operations[self._earlier :]

    def resolve(self, given: str) -> str:
        """The id of the entry whose number is cited; else the citation itself."""
        return self._handles.resolve(given) or given

    def handle(self, id_: str) -> str:
        """The number under which the model was shown an entry."""
        return self._handles.of(id_)

    async def write(self, operations: Sequence[Operation]) -> list[str]:
        """Keep the operations, each once."""
        known = {operation["id"] for operation in self.operations}
        self.operations += [one for one in operations if one["id"] not in known]
        return [one["target"] for one in operations if one["kind"] in ("add_entry", "add_fact")]


def collector_of(config: RunnableConfig, store: BaseStore | None) -> Collector:
    """The collector of this run or step."""
    given = config.get("configurable", {}).get(KEY)
    if isinstance(given, PlanCollector):
        return given
    return Collector(present(store), resources_of(config).semantic, scope_of(config))


def with_collector(config: RunnableConfig, collector: PlanCollector) -> RunnableConfig:
    """`config` for the tools of a night step."""
    return {**config, "configurable": {**config.get("configurable", {}), KEY: collector}}
