"""The plans of a night so far, in order, and what follows from them. Pure.

A plan is the record of what a step decided about one batch. Each plan is read once, when it is
added: a long night asks after every batch what is decided by now, and going through all plans each
time would take time with the square of its length.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import overload

from memory.operations import entries_after
from memory.records import JournalEntry, Operation, PlanRecord


class Plans(Sequence[PlanRecord]):
    """A night's plan records, in order."""

    def __init__(
        self, plans: Iterable[PlanRecord] = (), entries: Mapping[str, JournalEntry] | None = None
    ) -> None:
        """`entries`: the journal entries that the night set out with, by id, as stored."""
        self.entries = entries or {}
        self._plans = list[PlanRecord]()
        self._by_key = dict[str, PlanRecord]()
        self._by_step = defaultdict[str, list[PlanRecord]](list)
        self._decided = {phase: _Decided() for phase in (None, "compacting", "dreaming")}
        self._standing = dict(self.entries)
        self.extend(plans)

    @overload
    def __getitem__(self, place: int) -> PlanRecord: ...
    @overload
    def __getitem__(self, place: slice) -> list[PlanRecord]: ...
    def __getitem__(self, place: int | slice) -> PlanRecord | list[PlanRecord]:
        return self._plans[place]

    def __len__(self) -> int:
        return len(self._plans)

    def __repr__(self) -> str:
        return f"Plans({self._plans!r})"

    def extend(self, plans: Iterable[PlanRecord]) -> None:
        """Add plans that come after all that are here."""
        on_entries = list[Operation]()
        for plan in plans:
            self._plans.append(plan)
            self._by_key[plan["key"]] = plan
            self._by_step[plan["step"]].append(plan)
            self._decided[None].add(plan["operations"])
            new = self._decided[plan["phase"]].add(plan["operations"])
            if plan["phase"] == "compacting":
                on_entries += new
        self._standing = entries_after(self._standing, on_entries)

    def with_key(self, key: str) -> PlanRecord | None:
        """The plan with this key, if it is made already."""
        return self._by_key.get(key)

    def of(self, step: str) -> Sequence[PlanRecord]:
        """The plans of one step, in order."""
        return self._by_step.get(step, ())

    def next_order(self) -> int:
        """The position of the next plan in the night, from 0."""
        return max((plan["order"] for plan in self._plans), default=-1) + 1

    def operations(self, phase: str | None = None) -> Sequence[Operation]:
        """All operations, or those of one phase, in order, each once."""
        return self._decided[phase].operations

    def pending(self) -> list[JournalEntry]:
        """The night's entries that compacting has not settled, with the changes decided so far."""
        standing = (self._standing[id_] for id_ in self.entries if id_ in self._standing)
        return [entry for entry in standing if entry["consolidation"] == "pending"]


class _Decided:
    """Operations in order, each id once."""

    def __init__(self) -> None:
        self.operations = list[Operation]()
        self._known = set[str]()

    def add(self, operations: Iterable[Operation]) -> list[Operation]:
        """Add operations; return those that were not here yet."""
        new = []
        for operation in operations:
            if operation["id"] not in self._known:
                self._known.add(operation["id"])
                new.append(operation)
        self.operations += new
        return new
