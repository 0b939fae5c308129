"""Export and import: a whole memory out of any agent, into an empty one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from graph.use_cases.context import AgentContext
from graph.use_cases.memories import embed_in_batches
from memory import night
from memory.errors import InputError
from memory.recall import index_entries
from memory.state import at_rest
from memory.transfer import AgentMemory, Taken, exporting, importing, state_of

Progress = Callable[[str, int, int], object]
"""Called with what is being done, how much is done, and the total."""


class Imported(TypedDict):
    """The result of an import."""

    records: int
    counts: dict[str, int]
    """Lines of the file by kind."""
    already: bool
    """The same file was imported before: nothing was changed."""


class FileLines:
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
    line of a record. `memory.transfer.exporting` says what is exported while a run is under way.

    Raises:
        InputError: a forget was interrupted and has to be finished first.
    """
    source = AgentMemory(context.store, context.semantic, context.scope)
    waiting, aside = await exporting.waiting_in(source)
    values = dict((await context.snapshot()).values)
    at = context.now().isoformat()
    who = name or context.scope.thread
    yield await exporting.header(source, agent=who, embedder=embedder, at=at)
    async for record in exporting.records(source, Taken(waiting, aside, values)):
        yield record


async def import_memory(
    context: AgentContext,
    lines: Iterable[str],
    *,
    progress: Progress = lambda what, done, of: None,
    admit: Callable[[Mapping[str, int]], object] = lambda counts: None,
) -> Imported:
    """Import an exported memory into this agent, which must be empty.

    Every line is checked before anything is written. The same lines a second time change nothing,
    or finish an import of them that was interrupted; until then nothing runs.
    `lines` are read several times: a list, or `FileLines`. `admit` is told how many lines of each
    kind an import brings before it begins, and may refuse it with an error of its own.

    Raises:
        InputError: a line is wrong (with its number), the file is cut, the agent is not empty,
            another agent here has the same facts, or an import of another file was interrupted.
        BusyError: another process holds the agent.
    """
    lines = lines if not isinstance(lines, Iterator) else list(lines)
    checked = await asyncio.to_thread(importing.check, lines)
    total = sum(checked.counts.values())
    imported: Imported = {"records": total, "counts": checked.counts, "already": False}
    async with context.lock:
        store, scope, semantic = context.store, context.scope, context.semantic
        before = await importing.begun(store, scope, checked.digest)
        if before:
            return {**imported, "already": True}
        if before is None:
            admit(checked.counts)
            if at_rest((await context.snapshot()).values):
                raise InputError(importing.NOT_EMPTY)
            await importing.check_target(store, semantic, scope, checked.facts)
            await importing.mark(store, scope, checked.digest, done=False)
        source = AgentMemory(store, semantic, scope)
        await importing.write(lines, source, on_batch=lambda done: progress("records", done, total))
        if checked.state:  # last: an agent without a state has never run
            await context.replace_state(state_of(checked.state))
        await importing.mark(store, scope, checked.digest, done=True)
        await night.finish(store, semantic, scope)
        await index_entries(store, semantic, scope)
        # Until a fact is embedded, recall finds it by its words alone; `reindex` goes on with it.
        await embed_in_batches(semantic, partial(progress, "vectors"), scope)
    return imported
