"""Moving a whole memory: out of any agent, into an empty one, whatever keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph.types import Overwrite
from typing_extensions import TypedDict

from memory import exporting, import_writes, importing, night_undo
from memory.at_rest import at_rest
from memory.episodes import catch_up
from memory.errors import InputError
from memory.exporting import Source, Taken
from memory.importing import Checked
from memory.state import REDUCED_KEYS
from memory.transfer import renamed, state_of

if TYPE_CHECKING:
    from graph.handle import AsyncAgent

EMBEDDED = 256
"""Texts that are embedded at a time."""

Progress = Callable[[str, int, int], object]
"""Is told what is done, how much of it, of how much."""


class Imported(TypedDict):
    """What an import wrote."""

    records: int
    counts: dict[str, int]
    """Lines of the file by kind."""
    already: bool
    """The same file had been taken in before: nothing was changed."""
    renamed: int
    """Facts that got another id, as another agent of this home has theirs."""


class JsonLines:
    """A file's lines, read anew each time they are asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[str]:
        try:
            with self._path.open(encoding="utf-8") as file:
                yield from file
        except UnicodeDecodeError:
            raise InputError(f"{self._path} is not UTF-8 text") from None
        except OSError as error:
            raise InputError(f"{self._path}: {error.strerror or error}") from None


async def export_memory(
    agent: AsyncAgent, *, name: str | None = None, embedder: str | None = None
) -> AsyncIterator[dict[str, Any]]:
    """The agent's whole memory, a record at a time; also while a run holds it.

    `name` and `embedder` stand in the first line, for people. `memory.transfer.line_of` makes a
    line of a record; `memory.exporting` says what of a run that goes on is in it.

    Raises:
        InputError: a forget was broken off.
    """
    source = _source(agent)
    waiting, aside = await exporting.waiting_in(source)
    values = dict((await agent.aget_state()).values)
    at = agent.resources.clock().isoformat()
    who = name or agent.scope.thread
    yield await exporting.header(source, agent=who, embedder=embedder, at=at)
    async for record in exporting.records(source, Taken(waiting, aside, values)):
        yield record


async def import_memory(
    agent: AsyncAgent, lines: Iterable[str], *, progress: Progress = lambda what, done, of: None
) -> Imported:
    """Take a memory that was exported into this agent, which must be empty.

    Every line is checked before anything is written. Broken off, the same lines go on from there;
    taken in already, they change nothing. `lines` are read several times: a list, or `JsonLines`.

    Raises:
        InputError: a line is wrong (with its number), the file is cut, or the agent is not empty.
        BusyError: another process holds the agent.
    """
    lines = lines if not isinstance(lines, Iterator) else list(lines)
    checked = await asyncio.to_thread(importing.check, lines)
    total = sum(checked.counts.values())
    async with agent._lock:
        store, scope, semantic = agent.store, agent.scope, agent.resources.semantic
        if await _taken_in(agent, checked):
            return _imported(checked, {}, already=True)
        await importing.mark(store, scope, checked.digest, done=False)
        ids = await importing.other_ids(semantic, scope, checked.facts)
        await import_writes.write(
            lines, _source(agent), ids, on_batch=lambda done: progress("records", done, total)
        )
        await _write_state(agent, checked, ids)
        await importing.mark(store, scope, checked.digest, done=True)
        # Not before: gone on with, an import would write what the undo had taken back.
        await night_undo.finish(store, semantic, scope)
        await catch_up(store, semantic, scope)
        await _embed(agent, progress)
    return _imported(checked, ids, already=False)


def _source(agent: AsyncAgent) -> Source:
    return Source(agent.store, agent.resources.semantic, agent.scope)


async def _taken_in(agent: AsyncAgent, checked: Checked) -> bool:
    """Whether these lines are here already. Raises InputError where something else is."""
    store, scope = agent.store, agent.scope
    earlier = await importing.standing(store, scope)
    mine = earlier is not None and earlier["digest"] == checked.digest
    if earlier is not None and mine and earlier["done"]:
        return True
    values = at_rest((await agent.aget_state()).values)
    if mine and (not values or values == state_of(checked.state)):
        return False
    if mine or values or not await importing.is_empty(store, agent.resources.semantic, scope):
        raise InputError(
            "the agent is not empty: import into another one (--agent NAME), which is made by it"
        )
    return False


async def _write_state(agent: AsyncAgent, checked: Checked, ids: dict[str, str]) -> None:
    """Last: an agent without a state has never run."""
    if not checked.state:
        return
    values = state_of(renamed(checked.state, ids) if ids else checked.state)
    whole = {key: Overwrite(one) if key in REDUCED_KEYS else one for key, one in values.items()}
    await agent.graph.aupdate_state(agent.config(), whole, as_node="intake")


async def _embed(agent: AsyncAgent, progress: Progress) -> None:
    """Recall finds by words at once; by meaning what is embedded. `reindex` goes on with it."""
    semantic, scope = agent.resources.semantic, agent.scope
    total = left = await semantic.count_unembedded(scope)
    while left and await semantic.embed_waiting(EMBEDDED, scope):
        left = await semantic.count_unembedded(scope)
        progress("vectors", total - left, total)


def _imported(checked: Checked, ids: dict[str, str], *, already: bool) -> Imported:
    return {
        "records": sum(checked.counts.values()),
        "counts": checked.counts,
        "already": already,
        "renamed": len(ids),
    }
