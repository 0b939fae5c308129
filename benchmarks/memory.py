"""Compare long-term memory with Mem0 and LangGraph's own store: adding and recalling facts.

    python -m benchmarks.memory [--facts 1000 10000 100000] [--adds 50] [--recalls 100]
                                [--json FILE]

Each system runs in its own process. Measured calls take turns, so that the machine's noise affects
all systems alike.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.stores import LANGGRAPH, MEM0, TOP
from benchmarks.tables import (
    CIRCADIAN,
    Marked,
    Shown,
    megabytes,
    milliseconds,
    side_by_side,
    with_ratios,
)

MARKS = (1_000, 10_000, 100_000)
SOME = MARKS[:2]
"""Marks that take a minute together. The last one takes some minutes more."""
ADDS, RECALLS = 50, 100
ALLOWANCE = 20.0
"""Seconds for one system's timed calls of one kind at a mark. Further calls are skipped."""
ENOUGH = 20
"""Calls that a 95th percentile needs."""
SYSTEMS = {
    CIRCADIAN: "semantic memory, each write on disk before it is acknowledged, history included; "
    "recall by words and meaning over facts and journal",
    MEM0: "Mem0 with its own FAISS provider: each add (infer=False) rewrites the whole file and "
    "does not wait for the disk; search by meaning. Loaded by its vector store's insert, without "
    "history",
    LANGGRAPH: "with its own index (sqlite-vec), on its default connection; search by meaning",
}
"""Name -> description."""
MEASURED = (
    "Facts of one user, about a hundred characters each; the same texts and vectors for all; an "
    f"embedder that costs nothing; {TOP} memories per recall. In brackets: times Circadian's. "
    "Memory: of the process. On disk: all files, with write-ahead logs. A 95th percentile needs "
    f"{ENOUGH} calls; a system has {ALLOWANCE:.0f} s for the calls of one kind at one mark."
)
FIGURES = (
    Shown("add_p50_ms", "add, p50", milliseconds),
    Shown("add_p95_ms", "add, p95", milliseconds),
    Shown("recall_p50_ms", "recall, p50", milliseconds),
    Shown("recall_p95_ms", "recall, p95", milliseconds),
    Shown("memory_bytes", "memory", megabytes),
    Shown("disk_bytes", "on disk", megabytes),
)


@dataclass(frozen=True)
class Row(Marked):
    """The figures of one system at one mark. A mark is a number of facts."""

    add_p50_ms: float | None = None
    add_p95_ms: float | None = None
    recall_p50_ms: float | None = None
    recall_p95_ms: float | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    load_s: float = 0.0
    """Seconds to fill the system up from the mark before. Not comparable: see SYSTEMS."""
    adds: int = 0
    recalls: int = 0
    absent: str | None = None
    """Why nothing was measured."""


class Worker:
    """A process with one system."""

    def __init__(self, name: str, folder: Path, stack: ExitStack) -> None:
        """Start it in the new folder `folder`; it ends with `stack`, which ends its input."""
        command = [sys.executable, "-m", "benchmarks.stores", name, str(folder)]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.name, self._process = name, stack.enter_context(process)
        self.stored = 0
        self.absent: str | None = self._answer().get("absent")

    def ask(self, **command: Any) -> Any:
        """Send one command; returns its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(command)}\n")
        self._process.stdin.flush()
        return self._answer()

    def load(self, mark: int) -> float:
        """Fill the system up to `mark` facts; returns seconds."""
        seconds: float = self.ask(load=[self.stored, mark - self.stored])
        self.stored = mark
        return seconds

    def add(self) -> float:
        """Add one more fact; returns seconds."""
        self.stored += 1
        seconds: float = self.ask(add=self.stored - 1)
        return seconds

    def recall(self, number: int) -> float:
        """Ask about a fact; returns seconds."""
        seconds: float = self.ask(recall=number)
        return seconds

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of {self.name} ended; its output is above")
        return json.loads(line)


def compare(root: Path, marks: Collection[int], *, adds: int, recalls: int) -> list[Row]:
    """Fill the systems up to each mark, and measure them there."""
    rows: list[Row] = []
    with ExitStack() as stack:
        workers = [Worker(name, root / name, stack) for name in SYSTEMS]
        for mark in sorted(marks):
            rows += _at(mark, workers, adds=adds, recalls=recalls)
    return rows


def _at(mark: int, workers: Sequence[Worker], *, adds: int, recalls: int) -> list[Row]:
    there = [worker for worker in workers if worker.absent is None]
    loaded = {}
    for worker in there:
        loaded[worker.name] = worker.load(mark)
        print(f"memory: {mark:,} facts in {worker.name}")
    for worker in there:
        worker.recall(0)  # the first call pays for what is loaded once
    recalled: dict[str, list[float]] = {worker.name: [] for worker in there}
    for number in range(recalls):
        for worker in in_turn(there, number, recalled):
            recalled[worker.name].append(worker.recall(number * mark // recalls))
    added: dict[str, list[float]] = {worker.name: [] for worker in there}
    for number in range(adds):
        for worker in in_turn(there, number, added):
            added[worker.name].append(worker.add())
    return [
        Row(worker.name, mark, absent=worker.absent)
        if worker.absent
        else _row(worker, mark, loaded[worker.name], added[worker.name], recalled[worker.name])
        for worker in workers
    ]


def in_turn(workers: Sequence[Worker], number: int, spent: dict[str, list[float]]) -> list[Worker]:
    """The workers with time left; each round begins with another worker."""
    place = number % max(1, len(workers))
    turned = [*workers[place:], *workers[:place]]
    return [worker for worker in turned if sum(spent[worker.name]) < ALLOWANCE]


def _row(
    worker: Worker, mark: int, loaded: float, added: Sequence[float], recalled: Sequence[float]
) -> Row:
    return Row(
        worker.name,
        mark,
        add_p50_ms=statistics.median(added) * 1_000,
        add_p95_ms=_p95(added),
        recall_p50_ms=statistics.median(recalled) * 1_000,
        recall_p95_ms=_p95(recalled),
        load_s=round(loaded, 2),
        adds=len(added),
        recalls=len(recalled),
        **worker.ask(size=True),
    )


def _p95(seconds: Sequence[float]) -> float | None:
    if len(seconds) < ENOUGH:
        return None
    return sorted(seconds)[int(len(seconds) * 0.95)] * 1_000


def as_json(rows: Sequence[Row]) -> dict[str, Any]:
    """The figures as JSON."""
    return {"measured": MEASURED, "systems": SYSTEMS, "rows": with_ratios(rows, FIGURES)}


def show(rows: Sequence[Row], console: Console) -> None:
    """Print the figures and their explanations."""
    console.print(side_by_side(rows, FIGURES, mark="facts", title="Long-term memory"))
    console.print(MEASURED)
    for name, absent in {row.system: row.absent for row in rows}.items():
        console.print(f"{name}: not measured: {absent}." if absent else f"{name}: {SYSTEMS[name]}.")


def run(marks: Collection[int], path: Path, *, adds: int = ADDS, recalls: int = RECALLS) -> None:
    """Measure, print the table, write the JSON to `path`."""
    with tempfile.TemporaryDirectory() as scratch:
        rows = compare(Path(scratch), marks, adds=adds, recalls=recalls)
    show(rows, Console())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(as_json(rows), indent=2) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="Long-term memory side by side.")
    parser.add_argument("--facts", type=int, nargs="+", default=MARKS, metavar="COUNT")
    parser.add_argument("--adds", type=int, default=ADDS)
    parser.add_argument("--recalls", type=int, default=RECALLS)
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/memory.json"))
    options = parser.parse_args(arguments)
    run(options.facts, options.json, adds=options.adds, recalls=options.recalls)
    return 0


if __name__ == "__main__":
    sys.exit(main())
