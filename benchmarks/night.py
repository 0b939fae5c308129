"""The cost of a night: model calls, tokens and seconds by step, and their growth.

    python -m benchmarks.night [--data FILE] [--lives 20 100 1000] [--growth 100 1000 10000]
                               [--held 1000 100000] [--json FILE]

All events are journaled, and one night goes over them, through the real graph. `--lives` takes the
turns of a file in LoCoMo's format: --data, else CIRCADIAN_LOCOMO, else made-up sentences.
`--growth` takes made-up sentences. `--held` is a night of 100 made-up sentences in memories that
hold as many facts of a year, with ten links each, settled by a night before. The offline model
answers. Any other model would get the same number of calls with prompts of the same length; the
offline model's own time is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.lives import START, live, made_up, read_turns, remember
from benchmarks.stores import Noise
from benchmarks.tables import megabytes
from graph.agent import open_agent
from memory.errors import InputError
from memory.models.offline import OfflineChatModel
from memory.records import Event, NightStep

VARIABLE = "CIRCADIAN_LOCOMO"
LIVES, GROWTH = (20, 100, 1_000), (100, 1_000, 10_000)
SOME = GROWTH[:2]
"""Sizes that take a minute together. The last one takes some minutes more."""
BUDGET = 15
"""Model calls per 100 entries. The smallest night may make 8."""
NEW = 100
"""Entries of the night in a memory that holds many facts."""
WARM_UP = 20
"""Entries of a first night that is not shown: it pays for imports."""
PUBLISHED = (
    ("Mem0 v3", "1 a write, and 1 for times", "-", "its code: one ADD-only call"),
    ("A-MEM", "2 a note (1 in its newer code)", "-", "arXiv 2502.12110, its code"),
    ("A-MEM, LongMemEval-S", "986.6 in all", "2.90M in all, 5,132 s", "arXiv 2510.18866v3"),
    ("MIRIX", "about 4 an update (1-7)", "-", "docs.mirix.io; MIRIX#5"),
    ("Graphiti", "about 10 an episode", "$0.018 an episode", "getzep/graphiti#467"),
    ("O-Mem", "at least 4 an interaction", "-", "arXiv 2511.13593"),
    ("LightMem", "1/30 to 1/55 of A-MEM's", "1/38 at best", "arXiv 2510.18866v3"),
)
"""(system, model calls, tokens or cost, source). Measured elsewhere, on other data."""
MEASURED = (
    "One night over all entries. Own seconds: processor time without the model's. Ratio: own time "
    "per entry, divided by that of the row before; 1.00 is linear. Published: as given by their "
    "sources, on other data and models."
)


class Clocked(OfflineChatModel):
    """The offline model, counting its processor time."""

    seconds: float = 0.0
    """Processor time of all answers."""

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        began = time.thread_time()
        result = self._generate(messages, stop, **kwargs)
        self.seconds += time.thread_time() - began
        return result


@dataclass(frozen=True)
class Row:
    """A night and its cost."""

    entries: int
    facts: int
    calls: int
    tokens: int
    seconds: float
    """From going to sleep to the report."""
    own_seconds: float
    """Of processor time, without the model's."""
    steps: list[NightStep]
    stopped: str | None

    @property
    def calls_per_100(self) -> float:
        """Model calls per 100 entries."""
        return 100 * self.calls / self.entries

    @property
    def milliseconds(self) -> float:
        """Own time per entry, milliseconds."""
        return 1_000 * self.own_seconds / self.entries


@dataclass(frozen=True)
class Held:
    """A night of NEW entries in a memory that holds many facts."""

    held: int
    own_seconds: float
    """Of processor time, without the model's."""
    memory_bytes: int
    """Most of the process, while it was filled included."""
    stopped: str | None


async def night_of(folder: Path, events: Sequence[Event]) -> Row:
    """Run one night over these events."""
    model, now = Clocked(), datetime.fromisoformat(events[-1]["at"]) + timedelta(hours=8)
    opening = open_agent(folder, model=model, embedder="offline", clock=lambda: now)
    async with opening as agent:
        await live(agent, events)
        began, worked = time.perf_counter(), time.process_time()
        slept = await agent.ainvoke({"request": "sleep"})
        seconds, worked = time.perf_counter() - began, time.process_time() - worked
        facts = await agent.resources.semantic.count(agent.scope)
    report = slept["report"]["night"]
    steps: list[NightStep] = [one for one in report["steps"] if one["llm_calls"] or one["done"]]
    return Row(
        entries=len(events),
        facts=facts,
        calls=sum(one["llm_calls"] for one in steps),
        tokens=sum(one["tokens"] for one in steps),
        seconds=round(seconds, 3),
        own_seconds=round(worked - model.seconds, 3),
        steps=steps,
        stopped=report.get("stopped"),
    )


async def night_in(folder: Path, held: int) -> Held:
    """Run a night of NEW entries in a memory that holds `held` facts."""
    model, events, ended = Clocked(), made_up(WARM_UP + NEW), START + timedelta(days=2)
    opening = open_agent(folder, model=model, embedder=Noise(), clock=lambda: ended)
    async with opening as agent:
        await remember(agent, held)
        await live(agent, events[:WARM_UP])
        await agent.ainvoke({"request": "sleep"})
        await live(agent, events[WARM_UP:])
        spent, worked = model.seconds, time.process_time()
        slept = await agent.ainvoke({"request": "sleep"})
        worked = time.process_time() - worked - (model.seconds - spent)
    return Held(
        held,
        round(worked, 3),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024,
        slept["report"]["night"].get("stopped"),
    )


def measure_held(sizes: Sequence[int]) -> list[Held]:
    """Run such a night for each size, each in a process of its own, which tells its memory."""
    rows = []
    for size in sorted(sizes):
        with tempfile.TemporaryDirectory() as folder:
            context = multiprocessing.get_context("spawn")
            with context.Pool(1) as pool:
                rows.append(pool.apply(_night_in, (Path(folder) / "data", size)))
        print(f"night: {NEW} entries beside {size:,} facts in {rows[-1].own_seconds:,.1f} s")
    return rows


def _night_in(folder: Path, held: int) -> Held:
    return asyncio.run(night_in(folder, held))


def measure(lives: Sequence[Sequence[Event]]) -> list[Row]:
    """Run a night for each list of events, each in its own data folder."""
    rows = []
    for events in lives:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(asyncio.run(night_of(Path(folder) / "data", events)))
        print(f"night: {len(events):,} entries in {rows[-1].seconds:,.1f} s")
    return rows


def show(
    lives: Sequence[Row], grown: Sequence[Row], held: Sequence[Held], told_of: str, console: Console
) -> None:
    """Print the tables and their explanations."""
    for row in lives:
        console.print(_steps(row, told_of))
    if grown:
        console.print(_growth(grown))
    if held:
        console.print(_held(held))
    beside = _table("What published systems spend", "system", "model calls", "tokens", "source")
    for line in PUBLISHED:
        beside.add_row(*line)
    console.print(beside)
    console.print(MEASURED)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for place, column in enumerate(columns):
        right = bool(place) and "source" not in columns
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    return table


def _steps(row: Row, told_of: str) -> Table:
    """A row per step and one for the night, per 100 entries."""
    title = f"A night over {row.entries:,} entries ({told_of}), per 100 entries"
    table, hundreds = _table(title, "step", "calls", "tokens", "seconds"), row.entries / 100
    for step in row.steps:
        table.add_row(
            step["step"],
            f"{step['llm_calls'] / hundreds:.1f}",
            f"{step['tokens'] / hundreds:,.0f}",
            f"{step['seconds'] / hundreds:.3f}",
        )
    table.add_row(
        f"all (calls: budget {BUDGET})",
        f"{row.calls_per_100:.1f}",
        f"{row.tokens / hundreds:,.0f}",
        f"{row.seconds / hundreds:.3f}",
    )
    return table


def _growth(rows: Sequence[Row]) -> Table:
    columns = ("entries", "facts", "calls per 100", "tokens per 100", "own s", "ms an entry")
    table = _table("Growth", *columns, "ratio")
    for row, before in zip(rows, [None, *rows], strict=False):
        table.add_row(
            f"{row.entries:,}",
            f"{row.facts:,}",
            f"{row.calls_per_100:.1f}",
            f"{100 * row.tokens / row.entries:,.0f}",
            f"{row.own_seconds:,.2f}",
            f"{row.milliseconds:.2f}",
            f"{row.milliseconds / before.milliseconds:.2f}" if before else "",
        )
    return table


def _held(rows: Sequence[Held]) -> Table:
    table = _table(f"A night of {NEW} entries", "facts held", "own s", "ratio", "memory")
    for row in rows:
        table.add_row(
            f"{row.held:,}",
            f"{row.own_seconds:,.2f}",
            f"{row.own_seconds / rows[0].own_seconds:.2f}",
            megabytes(row.memory_bytes),
        )
    return table


def as_json(
    lives: Sequence[Row], grown: Sequence[Row], held: Sequence[Held], told_of: str
) -> dict[str, Any]:
    """The figures as JSON."""
    return {
        "measured": MEASURED,
        "lives_of": told_of,
        "lives": [_row_json(row) for row in lives],
        "growth": [_row_json(row) for row in grown],
        "held": [asdict(row) for row in held],
        "published": [
            dict(zip(("system", "calls", "tokens", "source"), row, strict=True))
            for row in PUBLISHED
        ],
    }


def _row_json(row: Row) -> dict[str, Any]:
    return {
        **asdict(row),
        "calls_per_100": row.calls_per_100,
        "own_ms_per_entry": row.milliseconds,
    }


def run(
    data: Path | None,
    lives: Sequence[int],
    growth: Sequence[int],
    path: Path,
    held: Sequence[int] = (),
) -> None:
    """Measure, print the tables, write the JSON to `path`.

    Raises InputError if `data`, or the file that the variable names, cannot be used.
    """
    named = os.environ.get(VARIABLE)
    data = data or (Path(named) if named else None)
    if data is not None:
        turns, told_of = read_turns(data), "turns of LoCoMo"
        lived = [turns[:count] for count in sorted(lives)]
    else:
        lived, told_of = [made_up(count) for count in sorted(lives)], "made-up sentences"
    measure([made_up(WARM_UP)])
    rows, grown = measure(lived), measure([made_up(count) for count in sorted(growth)])
    beside = measure_held(held)
    show(rows, grown, beside, told_of, Console())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(as_json(rows, grown, beside, told_of), indent=2) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit status, 2 if the data cannot be used."""
    parser = argparse.ArgumentParser(description="The cost of a night.")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--lives", type=_entries, nargs="*", default=LIVES, metavar="ENTRIES")
    parser.add_argument("--growth", type=_entries, nargs="*", default=GROWTH, metavar="ENTRIES")
    parser.add_argument("--held", type=_entries, nargs="*", default=(), metavar="FACTS")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/night.json"))
    options = parser.parse_args(arguments)
    try:
        run(options.data, options.lives, options.growth, options.json, options.held)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _entries(text: str) -> int:
    """Parse a number of entries, at least 1."""
    if (number := int(text)) < 1:
        raise ValueError
    return number


if __name__ == "__main__":
    sys.exit(main())
