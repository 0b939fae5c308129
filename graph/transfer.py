"""Moving a whole memory: out of any agent, into an empty one, between any installations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from langgraph.types import Overwrite
from typing_extensions import TypedDict

from graph.context import AgentContext
from memory import exporting, import_writes, importing, night_undo
from memory.at_rest import at_rest
from memory.episodes import catch_up
from memory.errors import InputError
from memory.exporting import Source, Taken
from memory.importing import Checked
from memory.state import REDUCED_KEYS
from memory.transfer import renamed, state_of

EMBEDDED = 256
"""Texts embedded at a time."""

Progress = Callable[[str, int, int], object]
"""Called with what is being done, how much is done, and the total."""


class Imported(TypedDict):
    """The result of an import."""

    records: int
    counts: dict[str, int]
    """Lines of the file by kind."""
    already: bool
    """The same file was imported before; nothing changed."""
    renamed: int
    """Facts that got a new id, because another agent of this installation has theirs."""


class JsonLines:
    """A file's lines; each iteration reads the file again."""

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
    context: AgentContext, *, name: str | None = None, embedder: str | None = None
) -> AsyncIterator[dict[str, Any]]:
    """The agent's whole memory, one record at a time; takes no lock.

    `name` and `embedder` go into the first record, for people. `memory.transfer.line_of` makes a
    line of a record. `memory.exporting` describes what is exported of a run that is under way.

    Raises:
        InputError: a forget was interrupted and has to be finished first.
    """
    source = _source(context)
    waiting, aside = await exporting.waiting_in(source)
    values = dict((await context.snapshot()).values)
    at = context.now().isoformat()
    who = name or context.scope.thread
    yield await exporting.header(source, agent=who, embedder=embedder, at=at)
    async for record in exporting.records(source, Taken(waiting, aside, values)):
        yield record


async def import_memory(
    context: AgentContext, lines: Iterable[str], *, progress: Progress = lambda what, done, of: None
) -> Imported:
    """Import an exported memory into this agent, which must be empty.

    Every line is checked before anything is written. After an interruption, importing the same
    lines again continues it; once complete, that changes nothing. `lines` is read several times:
    give a list, or `JsonLines`.

    Raises:
        InputError: a line is wrong (with its number), the file is cut, or the agent is not empty.
        BusyError: another process holds the agent.
    """
    lines = lines if not isinstance(lines, Iterator) else list(lines)
    checked = await asyncio.to_thread(importing.check, lines)
    total = sum(checked.counts.values())
    async with context.lock:
        store, scope, semantic = context.store, context.scope, context.semantic
        if await _taken_in(context, checked):
            return _imported(checked, {}, already=True)
        await importing.mark(store, scope, checked.digest, done=False)
        ids = await importing.other_ids(semantic, scope, checked.facts)
        await import_writes.write(
            lines, _source(context), ids, on_batch=lambda done: progress("records", done, total)
        )
        await _write_state(context, checked, ids)
        await importing.mark(store, scope, checked.digest, done=True)
        # Last: a resumed import would write again what the undo has removed.
        await night_undo.finish(store, semantic, scope)
        await catch_up(store, semantic, scope)
        await _embed(context, progress)
    return _imported(checked, ids, already=False)


def _source(context: AgentContext) -> Source:
    return Source(context.store, context.semantic, context.scope)


async def _taken_in(context: AgentContext, checked: Checked) -> bool:
    """Whether these lines were imported before. Raises InputError if the agent is not empty."""
    store, scope = context.store, context.scope
    earlier = await importing.standing(store, scope)
    mine = earlier is not None and earlier["digest"] == checked.digest
    if earlier is not None and mine and earlier["done"]:
        return True
    values = at_rest((await context.snapshot()).values)
    if mine and (not values or values == state_of(checked.state)):
        return False
    if mine or values or not await importing.is_empty(store, context.semantic, scope):
        raise InputError(
            "the agent is not empty: import into another one (--agent NAME), which is made by it"
        )
    return False


async def _write_state(context: AgentContext, checked: Checked, ids: dict[str, str]) -> None:
    """Comes after the records: without a state the agent counts as empty and can be resumed."""
    if not checked.state:
        return
    values = state_of(renamed(checked.state, ids) if ids else checked.state)
    whole = {key: Overwrite(one) if key in REDUCED_KEYS else one for key, one in values.items()}
    await context.graph.aupdate_state(context.config(), whole, as_node="intake")


async def _embed(context: AgentContext, progress: Progress) -> None:
    """Until a fact is embedded, recall finds it by its words alone. `reindex` continues this."""
    semantic, scope = context.semantic, context.scope
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
