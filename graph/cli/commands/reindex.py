"""`circadian reindex`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from rich.text import Text

from graph.cli.access import must_be_made
from graph.cli.exits import INTERRUPTED
from graph.cli.options import Options, command
from graph.cli.views import Screen, counted, one_line
from graph.use_cases import Reindexing, reindexing
from memory.errors import CircadianError

ON = "`circadian reindex` goes on from there, and until then memories are found by their words"


@dataclass
class _Extent:
    """How far the work has come."""

    done: int = 0
    total: int = 0

    def __str__(self) -> str:
        return f"{self.done:,} of {self.total:,} memories have their vectors"


@command()
async def reindex(options: Options) -> int:
    """Embed what has no vector yet; with another --embedder, all."""
    await must_be_made(options)
    screen, far = Screen(json=options.json), _Extent()
    try:
        done = await _embed(options, screen, far)
    except asyncio.CancelledError:
        screen.problem(f"interrupted: {far}; {ON}")
        return INTERRUPTED
    except CircadianError as error:
        if not far.done:
            raise
        raise CircadianError(f"{error}; {far}, and {ON}") from error
    screen.result(done._asdict(), *map(Text, _lines(done)))
    return 0


async def _embed(options: Options, screen: Screen, far: _Extent) -> Reindexing:
    """Reindex behind a progress bar."""
    with screen.progress() as progress:
        progress("waiting until no agent runs", 0, None)

        def tell(done: int, total: int) -> None:
            far.done, far.total = done, total
            progress("embedding", done, total)

        return await reindexing.reindex(options.data, options.embedder, progress=tell)


def _lines(done: Reindexing) -> list[str]:
    """The outcome, for people."""
    embedder = one_line(done.embedder)
    lines = []
    if done.was != done.embedder:
        before = f"was {one_line(done.was)} and " if done.was is not None else ""
        lines.append(f"The embedder {before}is {embedder} now.")
    if done.embedded:
        lines.append(f"{counted(done.embedded, 'memory', 'memories')} embedded ({embedder}).")
    elif not done.left:
        lines.append(f"Nothing waits: every memory has its vector ({embedder}).")
    if done.left:
        waits = counted(done.left, "memory waits", "memories wait")
        lines.append(f"{waits} for a vector: `circadian reindex` once more.")
    return lines
