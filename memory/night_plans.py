"""What a night decided so far: its plan records in order, and what follows from them. Pure.

Each plan is read once, when it comes. The steps ask after every wave of batches what is decided by
now, and would take time with the square of a night's length if they went through all of it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import overload

from memory.apply import entries_after
from memory.fact_changes import Rivals
from memory.records import JournalEntry, Operation, PlanRecord


class Plans(Sequence[PlanRecord]):
    """A night's plan records, in order."""

    def __init__(
        self, plans: Iterable[PlanRecord] = (), entries: Mapping[str, JournalEntry] | None = None
    ) -> None:
        """`entries`: those that the night set out with, by id, as they stand in the journal."""
        self.entries = entries or {}
        self._plans = list[PlanRecord]()
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
        """Take in plans that come after all that are here."""
        settled = list[Operation]()
        for plan in plans:
            self._plans.append(plan)
            self._decided[None].take(plan["operations"])
            new = self._decided[plan["phase"]].take(plan["operations"])
            if plan["phase"] == "compacting":
                settled += new
        self._standing = entries_after(self._standing, settled)

    def operations(self, phase: str | None = None) -> Sequence[Operation]:
        """All operations, or those of one phase, in order, each once, and without rivals."""
        return self._decided[phase].operations

    def pending(self) -> list[JournalEntry]:
        """The night's entries that compacting has not settled, as it leaves them."""
        standing = (self._standing[id_] for id_ in self.entries if id_ in self._standing)
        return [entry for entry in standing if entry["consolidation"] == "pending"]


class _Decided:
    """Operations in order, each once, and without rivals."""

    def __init__(self) -> None:
        self.operations = list[Operation]()
        self._known = set[str]()
        self._rivals = Rivals()

    def take(self, operations: Iterable[Operation]) -> list[Operation]:
        """Take in what comes after all that is here; what of it counts."""
        new = []
        for one in operations:
            if one["id"] not in self._known:
                self._known.add(one["id"])
                if self._rivals.allow(one):
                    new.append(one)
        self.operations += new
        return new
