"""Count files, functions and I/O of four everyday operations.

    python -m benchmarks.walk [--json FILE]

Each operation runs twice on similar inputs: first to warm up, then counted. A profiler counts the
product's functions that are called, in every thread. A wrapper counts the calls of the store and
the checkpointer. Imports and first use are not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from langgraph.store.base import PutOp
from rich.console import Console
from rich.table import Table

from graph.agent import open_agent

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = tuple(f"{ROOT / name}/" for name in ("memory", "tools", "nodes", "graph"))
Call = Callable[..., Awaitable[Any]]
Operation = Callable[[], Awaitable[Any]]
STORE = ("abatch", "aput_new", "alook", "alist", "acount", "acount_named")
"""The store's base method, and the methods that the product adds."""
CHECKPOINTER = ("aget_tuple", "aput", "aput_writes", "adelete_thread")
"""Some of these calls are held back and reach no file."""
GOALS = {
    "tick": {"files": 60, "functions": 350, "store": 25},
    "recall": {"files": 18, "writes": 0},
    "night": {"files": 80},
    "forget": {"files": 35},
}
"""Upper limits by operation and figure."""


@dataclass(frozen=True)
class Walk:
    """The counts of one operation."""

    operation: str
    files: int
    functions: int
    store: int
    """Calls of the store; a batch is one."""
    writes: int
    """Records that these calls put or delete."""
    checkpointer: int


class Counter:
    """Counts on demand, in every thread that starts after the counter was made."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()
        self.store = self.writes = self.checkpointer = 0
        self._counting = False
        threading.setprofile(self._see)
        sys.setprofile(self._see)

    def close(self) -> None:
        """Stop profiling."""
        threading.setprofile(None)
        sys.setprofile(None)

    def watch(self, agent: Any) -> None:
        """Count the calls of this agent's store and checkpointer."""
        for name in STORE:
            if hasattr(agent.store, name):
                setattr(agent.store, name, self._store_call(getattr(agent.store, name)))
        for name in CHECKPOINTER:
            saver = agent.graph.checkpointer
            setattr(saver, name, self._checkpointer_call(getattr(saver, name)))

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count from zero in this block."""
        self.codes = set()
        self.store = self.writes = self.checkpointer = 0
        self._counting = True
        try:
            yield
        finally:
            self._counting = False

    def walk(self, operation: str) -> Walk:
        """The counts, as those of `operation`."""
        product = {code for code in self.codes if code.co_filename.startswith(PACKAGES)}
        files = {code.co_filename for code in product}
        functions = {code for code in product if not code.co_name.startswith("<")}
        return Walk(
            operation, len(files), len(functions), self.store, self.writes, self.checkpointer
        )

    def _see(self, frame: FrameType, event: str, argument: object) -> None:
        if self._counting and event == "call":
            self.codes.add(frame.f_code)

    def _store_call(self, call: Call) -> Call:
        async def counted(*args: Any, **more: Any) -> Any:
            given = [list(each) if isinstance(each, Iterator) else each for each in args]
            if self._counting:
                self.store += 1
                self.writes += sum(
                    isinstance(op, PutOp)
                    for each in given
                    if isinstance(each, list | tuple)
                    for op in each
                )
            return await call(*given, **more)

        return counted

    def _checkpointer_call(self, call: Call) -> Call:
        async def counted(*args: Any, **more: Any) -> Any:
            self.checkpointer += self._counting
            return await call(*args, **more)

        return counted


async def _steps(agent: Any) -> AsyncIterator[tuple[str, Operation]]:
    """The operations in order. Preparations run before an operation is yielded.

    The recall follows a tick directly, to show whether a recall indexes new entries itself.
    """

    def said(number: int, sender: str, text: str) -> Operation:
        event = {"id": f"e{number}", "sender": sender, "text": text}
        return partial(agent.ainvoke, {"events": [event]})

    for turn in (1, 2):
        people = ("Ada", "Ben", "Cleo", "Dan")
        for number, who in enumerate(people):
            await said(turn * 10 + number, who, f"My garden {turn} has {number} pear trees.")()
        yield "tick", said(turn * 10 + 5, "Ada", "The weather is fine today.")
        yield "recall", partial(agent.recall, "How many pear trees are there?")
        yield "night", partial(agent.ainvoke, {"request": "sleep"})
        yield "forget", partial(agent.forget, people[turn])


async def measure(folder: Path) -> list[Walk]:
    """Run every operation twice; the second run counts."""
    counter, walks = Counter(), {}
    try:
        async with open_agent(folder, model="offline", embedder="offline") as agent:
            counter.watch(agent)
            async for name, operation in _steps(agent):
                with counter.counting():
                    await operation()
                walks[name] = counter.walk(name)
    finally:
        counter.close()
    return [walks[name] for name in GOALS]


def table(walks: Sequence[Walk]) -> Table:
    """The figures, with their goals."""
    names = ("files", "functions", "store", "writes", "checkpointer")
    shown = Table("operation", *names, title="The way through")
    for walk in walks:
        goals = GOALS[walk.operation]
        cells = [
            f"{getattr(walk, name)}" + (f" (<= {goals[name]})" if name in goals else "")
            for name in names
        ]
        shown.add_row(walk.operation, *cells)
    return shown


def run(path: Path | None = None) -> None:
    """Measure, print the table, and write the JSON to `path` if given."""
    with tempfile.TemporaryDirectory() as scratch:
        walks = asyncio.run(measure(Path(scratch) / "data"))
    Console().print(table(walks))
    if path is not None:
        rows = [{**asdict(walk), "goals": GOALS[walk.operation]} for walk in walks]
        path.write_text(json.dumps(rows, indent=2) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="The way through the product, counted.")
    parser.add_argument("--json", type=Path, metavar="OUT")
    run(parser.parse_args(arguments).json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
