"""What a person does with an open agent's memory: look at it, mend it, erase from it, move it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any, cast

from graph import corrections, everything, forgetting, night_undo, nights, transfer
from graph.forgetting import Forgotten
from graph.nights import NightLine
from graph.transfer import Imported
from memory.records import Fact
from memory.reports import NightReport

if TYPE_CHECKING:
    from graph.handle import AsyncAgent


class Memories:
    """The part of `AsyncAgent` that is about its memory.

    None of it calls a chat model, but for the preview of a night.
    """

    async def everything(self, query: str | None = None) -> list[dict[str, Any]]:
        """All that long-term memory holds, newest first; see `graph.everything`."""
        return await everything.everything(self._agent, query)

    async def correct(self, fact_id: str, text: str, by: str | None = None) -> Fact:
        """Put `text` in a fact's place, as `by` says (default the owner); see `graph.corrections`.

        Raises:
            InputError: no such fact, one that another superseded, or a text that is no fact.
            BusyError: another process holds the agent.
        """
        return await corrections.correct(self._agent, fact_id, text, by)

    async def forget(self, entity: str, *, dry_run: bool = False) -> Forgotten:
        """Erase a person and everything derived from them; see `graph.forgetting`.

        Raises:
            InputError: memory knows nobody of that name.
            BusyError: another process holds the agent.
        """
        return await forgetting.forget(self._agent, entity, dry_run=dry_run)

    async def forget_fact(self, fact_id: str) -> Forgotten:
        """Erase one fact and what stands on it; see `graph.forgetting`. Raises as `forget`."""
        return await forgetting.forget_fact(self._agent, fact_id)

    def export_memory(self) -> AsyncIterator[dict[str, Any]]:
        """The whole memory, a record at a time; see `graph.transfer`."""
        return transfer.export_memory(self._agent)

    async def import_memory(self, lines: Iterable[str]) -> Imported:
        """Take in an exported memory; the agent must be empty; see `graph.transfer`."""
        return await transfer.import_memory(self._agent, lines)

    async def nights(self) -> list[NightLine]:
        """Every night, oldest first; see `graph.nights`."""
        return await nights.nights(self._agent)

    async def night(self, night_id: str) -> NightReport:
        """A night with each of its operations; an id may be shortened, `last` is the newest one.

        Raises:
            InputError: there is no such night, or several ids begin so.
        """
        return await nights.night_report(self._agent, night_id)

    async def sleep(self, *, dry_run: bool = False) -> NightReport:
        """Go through a night; with `dry_run` apply nothing, so that memory stays as it is.

        Without it this is a run with `request: sleep`, of which the report says more.

        Raises:
            InputError: `dry_run`, and a night is open.
            BusyError: another process holds the agent.
            CircadianError: the emergency stop stands, or a step failed; what was done is kept.
        """
        if dry_run:
            return await nights.preview(self._agent)
        return nights.of_run(await self._agent.ainvoke({"request": "sleep"}))

    async def apply_night(self, night_id: str) -> NightReport:
        """Make a preview, or a night that was held back, so; raises as `graph.nights`."""
        return await nights.apply_night(self._agent, night_id)

    async def discard_night(self, night_id: str) -> NightReport:
        """Let a preview, or a night that was held back, go; raises as `graph.nights`."""
        return await nights.discard_night(self._agent, night_id)

    async def undo_night(self, night_id: str) -> NightReport:
        """Restore memory as it was before a night; see `graph.night_undo`.

        Raises:
            InputError: there is no such night, or nothing of it was applied.
            ConflictError: memory has changed since so that it cannot be.
            BusyError: another process holds the agent.
        """
        return await night_undo.undo_night(self._agent, night_id)

    @property
    def _agent(self) -> AsyncAgent:
        return cast("AsyncAgent", self)
