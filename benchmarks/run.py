"""All benchmarks: budgets and comparisons, as tables and JSON.

    python -m benchmarks.run [--ticks 300] [--facts 10000] [--agents 100] [--json FILE]
                             [--beside 10 100 250] [--memory 1000 10000] [--locomo FILE]
                             [--night 100 1000] [--load 20] [--lives FILE ...]

Budgets measure the product's own work: models answer at once, unless a row names a delay. The other
tables are those of `benchmarks.beside`, `benchmarks.memory`, `benchmarks.night`,
`benchmarks.compaction`, `benchmarks.load`, `benchmarks.growth`, `benchmarks.walk`,
`benchmarks.pages`, `benchmarks.locomo` and `benchmarks.nights`; their JSON is in the same folder.
`--beside`, `--memory`, `--night` (with compaction) or `--locomo` without a value leaves its table
out, and so do `--pages 0` and `--load 0` (with growth and walk). LoCoMo needs data, and MiniLM for
the rows with an embedding model; nights need the files of lives. The run names whatever is absent
and goes on without it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import beside, compaction, growth, load, locomo, memory, night, nights, pages, walk
from benchmarks.models import FixedModel
from benchmarks.stores import draft
from benchmarks.words import sentence
from graph.api import open_agent
from memory.errors import InputError
from memory.settings import Settings

LOAD_TICKS = 3
"""Events per user under load. `benchmarks.load` itself has more events and users."""


NOISE = 0.1
"""Share of wrong answers of the reference model, where lives are lived."""


@dataclass(frozen=True)
class Figure:
    """One measured budget."""

    name: str
    value: float
    unit: str
    budget: str


async def ticks(folder: Path, count: int) -> list[Figure]:
    """Own work per tick and size of the checkpoint file, early and late."""
    settings = Settings(max_context_tokens=6_000)
    seconds: list[float] = []
    sizes: dict[int, int] = {}
    opening = open_agent(folder, model=FixedModel(), embedder="offline", settings=settings)
    async with opening as agent:
        for number in range(1, count + 1):
            began = time.perf_counter()
            await agent.ainvoke({"events": [{"text": sentence(number), "sender": "Ada"}]})
            seconds.append(time.perf_counter() - began)
            if number in (count // 3, count):
                sizes[number] = (folder / "checkpoints.db").stat().st_size
    early, late = statistics.median(seconds[9:40]), statistics.median(seconds[-30:])
    return [
        Figure(f"tick, own work, around tick {count}", late * 1000, "ms", "flat"),
        Figure(f"tick {count} / tick 10", late / early, "x", "flat"),
        Figure(
            f"checkpoint file, tick {count} / tick {count // 3}",
            sizes[count] / sizes[count // 3],
            "x",
            "<= 1.5",
        ),
    ]


async def facts(folder: Path, count: int) -> list[Figure]:
    """Time of adding a fact and of a recall, with `count` facts stored."""
    async with open_agent(folder, model=FixedModel(), embedder="offline") as agent:
        add = agent.resources.semantic.add
        for start in range(0, count, 500):
            some = range(start, min(start + 500, count))
            await add(agent.scope, [draft(n, sentence(n)) for n in some])
        new = [draft(n, sentence(n)) for n in range(count, count + 50)]
        added = [await _timed(add(agent.scope, [one])) for one in new]
        recalled = [await _timed(agent.recall(sentence(n))) for n in range(100)]
    return [
        Figure(f"add a fact at {count}", statistics.median(added) * 1000, "ms", "<= 5"),
        Figure(f"recall at {count}, p95", _p95(recalled) * 1000, "ms", "<= 50"),
    ]


async def _timed(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


async def together(folder: Path, count: int) -> list[Figure]:
    """One tick of `count` agents that wait for a one-second model together, and their memory."""
    found = await beside.together(folder, count)
    return [
        Figure(f"{count} agents, one tick on a 1 s model", found["hundred_agents_s"], "s", "<= 2"),
        Figure(f"memory of {count} agents", found["hundred_agents_mb"], "MB", "bounded"),
    ]


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


async def measure(options: argparse.Namespace) -> list[Figure]:
    """Measure every budget, each in its own data folder."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        figures += await ticks(root / "ticks", options.ticks)
        figures += await facts(root / "facts", options.facts)
        figures += await together(root / "together", options.agents)
    return figures


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks, print the tables, write the JSON; return the exit status."""
    options = _parser().parse_args(arguments)
    figures = asyncio.run(measure(options))
    table = Table("figure", "measured", "budget")
    for figure in figures:
        table.add_row(figure.name, f"{figure.value:.2f} {figure.unit}", figure.budget)
    Console().print(table)
    path: Path = options.json
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(one) for one in figures], indent=2) + "\n")
    if options.beside:
        beside.run(options.beside, path.with_name("beside.json"))
    if options.memory:
        memory.run(options.memory, path.with_name("memory.json"))
    if options.night:
        data = Path(options.locomo) if options.locomo else None
        try:
            night.run(data, night.LIVES, options.night, path.with_name("night.json"))
        except InputError as error:
            print(error, file=sys.stderr)
            return 2
        compaction.run(path.with_name("compaction.json"))
    if options.pages:
        pages.run(options.pages, pages.VISITS, path.with_name("pages.json"))
    lost = 0
    if options.load:
        lost = load.run(load.Load(options.load, LOAD_TICKS), path.with_name("load.json"))
        growth.run(growth.SOME, path.with_name("growth.json"))
        walk.run(path.with_name("walk.json"))
    if options.lives:
        named = ["--data", *options.lives, "--json", str(path.with_name("nights.json"))]
        lost = nights.main([*named, "--noise", str(NOISE)]) or lost
    if options.locomo is None:
        return lost
    named = ["--data", options.locomo] if options.locomo else []
    return locomo.main([*named, "--json", str(path.with_name("locomo.json"))]) or lost


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="All benchmarks: budgets and comparisons.")
    parser.add_argument("--ticks", type=int, default=300)
    parser.add_argument("--facts", type=int, default=10_000)
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/budgets.json"))
    parser.add_argument("--beside", type=int, nargs="*", default=beside.MARKS, metavar="TICK")
    parser.add_argument("--memory", type=int, nargs="*", default=memory.SOME, metavar="FACTS")
    parser.add_argument("--night", type=int, nargs="*", default=night.SOME, metavar="ENTRIES")
    parser.add_argument("--pages", type=int, default=pages.SOME, metavar="ENTRIES")
    parser.add_argument("--load", type=int, default=20, metavar="USERS")
    parser.add_argument(
        "--lives", nargs="+", default=[], metavar="FILE", help="annotated lives, for nights"
    )
    parser.add_argument(
        "--locomo", nargs="?", default="", metavar="FILE", help="a file in LoCoMo's format"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
