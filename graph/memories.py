"""What a person does with an open agent's memory: look at it, mend it, erase from it, move it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any, cast

from graph import corrections, everything, forgetting, transfer
from graph.forgetting import Forgotten
from graph.transfer import Imported
from memory.records import Fact

if TYPE_CHECKING:
    from graph.handle import AsyncAgent


class Memories:
    """The part of `AsyncAgent` that is about its memory; none of it calls a chat model."""

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

    @property
    def _agent(self) -> AsyncAgent:
        return cast("AsyncAgent", self)
