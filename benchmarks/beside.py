"""Compare Circadian with `langchain.agents.create_agent`: same model, tools and words, in one run.

    python -m benchmarks.beside [--marks 10 100 250] [--agents 100] [--json FILE]

Before each mark the agents take turns, tick by tick, so that the machine's noise affects all of
them alike. Earlier ticks save time: the agents run them side by side, and an agent whose checkpoint
file holds only the newest steps stores each tick's end instead of all its steps. At 1,000 ticks the
checkpoints of `create_agent` take some gigabytes of disk until the run ends.

The JSON sums up: `ratio_tick_N` is Circadian's processor time of a tick before mark N divided by
that of `create_agent` with Mem0, `prefix_between_ticks` the share of its prompt at the last mark
that repeats the tick before, `hundred_agents_s` the seconds of one tick of all `--agents` together,
`hundred_agents_mb` the memory of their process.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from benchmarks.agents import SYSTEMS, WITH_MEM0, System, opening
from benchmarks.models import FixedModel, Sent
from benchmarks.prompts import Parts, Repeated, added, parts, repeated, tokens, wire
from benchmarks.stores import resident
from benchmarks.tables import (
    CIRCADIAN,
    Marked,
    Shown,
    megabytes,
    milliseconds,
    percent,
    side_by_side,
    with_ratios,
)
from benchmarks.words import sentence
from graph.agent import open_agents
from graph.blocking import spare_collections

MARKS = (10, 100, 250)
WINDOW = 10
"""Ticks before a mark that are measured."""
RUN_UP = 50
"""Ticks before a mark that are stored step by step. A bounded file holds no older ones."""

MEASURED = (
    "A tick is one message, one tool call and the answer; models answer at once. Own work: the "
    f"median time of the last {WINDOW} ticks; the agents take turns in one run. In brackets: times "
    "Circadian's. Prompt tokens: approximate, all calls of a tick with tool schemas. Same prefix: "
    "the share of a prompt (system, tools, messages, as JSON) that repeats the beginning of the "
    "previous call byte by byte; within a tick, and between its first call and the tick before. "
    "Tokens by part: of the last tick's first call. "
    "Messages: in the prompt. Files: with write-ahead logs. Circadian's saver keeps only the "
    f"newest steps; it did not store steps more than {RUN_UP} ticks before a mark."
)


@dataclass(frozen=True)
class Row(Marked):
    """The figures of one agent at one mark. A mark is a number of ticks."""

    own_ms: float
    processor_ms: float
    """20th percentile of a tick, all threads."""
    checkpoint_bytes: int
    disk_bytes: int
    """Everything that the agent keeps."""
    prompt_messages: int
    """Of the last call."""
    prompt_tokens: float
    same_prefix: float
    """Share (0..1) of all prompts' characters."""
    same_prefix_in_tick: float
    """Likewise, only of calls after the first of a tick."""
    same_prefix_between_ticks: float
    """Likewise, only of the first calls of ticks."""
    tool_tokens: int
    """Of the schemas in the last tick's first call; the next four are of that call, too."""
    system_tokens: int
    history_tokens: int
    newest_tokens: int
    uncached_tokens: int
    """What does not repeat the beginning of the call before."""


FIGURES = (
    Shown("own_ms", "own work", milliseconds),
    Shown("processor_ms", "processor", milliseconds, compared=False),
    Shown("checkpoint_bytes", "checkpoints", megabytes),
    Shown("disk_bytes", "all files", megabytes),
    Shown("prompt_messages", "messages", lambda value: f"{value:,.0f}"),
    Shown("prompt_tokens", "prompt tokens", lambda value: f"{value:,.0f}"),
    Shown("same_prefix", "same prefix", percent, compared=False),
    Shown("same_prefix_in_tick", "- in a tick", percent, compared=False),
    Shown("same_prefix_between_ticks", "- from the one before", percent, compared=False),
    Shown("tool_tokens", "tool tokens", lambda value: f"{value:,.0f}", compared=False),
    Shown("system_tokens", "system", lambda value: f"{value:,.0f}", compared=False),
    Shown("history_tokens", "history", lambda value: f"{value:,.0f}", compared=False),
    Shown("newest_tokens", "newest message", lambda value: f"{value:,.0f}", compared=False),
    Shown("uncached_tokens", "uncached", lambda value: f"{value:,.0f}", compared=False),
)


class Tick(NamedTuple):
    """The measurements of one tick."""

    seconds: float
    processor: float
    """Seconds, of all threads."""
    tokens: int
    messages: int
    """Of the last call."""
    first: Repeated
    later: Repeated
    """Of all calls after the first."""
    parts: Parts
    """Of the first call."""


class Measured:
    """An agent and the measurements of its newest ticks."""

    def __init__(self, system: System) -> None:
        self.system = system
        self._ticks: deque[Tick] = deque(maxlen=WINDOW)
        self._before: Sent | None = None
        """The newest call."""

    async def tick(self, text: str) -> None:
        """Run one tick, take its time, then examine the calls that it sent."""
        began, used = time.perf_counter(), time.process_time()
        await self.system.tick(text, self.system.durability)
        seconds, processor = time.perf_counter() - began, time.process_time() - used
        sent = self.system.model.taken()
        made = parts(self._before or sent[0], sent[0])
        first, *later = self._repeated(sent)
        every = sum(tokens(one) for one in sent)
        messages = len(sent[-1].messages)
        self._ticks.append(Tick(seconds, processor, every, messages, first, added(later), made))

    async def pass_tick(self, text: str, *, hurried: bool) -> None:
        """Run one tick unmeasured. `hurried`: a bounded file stores only the tick's end."""
        hurries = hurried and self.system.bounded
        await self.system.tick(text, "exit" if hurries else self.system.durability)
        self.system.model.taken()

    def row(self, mark: int) -> Row:
        """The figures of the newest ticks. `mark` is the last of them."""
        ticks, kept = self._ticks, self.system.checkpoints
        first, later = [tick.first for tick in ticks], [tick.later for tick in ticks]
        return Row(
            system=self.system.name,
            mark=mark,
            own_ms=statistics.median(tick.seconds for tick in ticks) * 1_000,
            processor_ms=sorted(tick.processor for tick in ticks)[len(ticks) // 5] * 1_000,
            checkpoint_bytes=_bytes(kept.parent, f"{kept.name}*"),
            disk_bytes=_bytes(kept.parent, "*"),
            prompt_messages=ticks[-1].messages,
            prompt_tokens=statistics.median(tick.tokens for tick in ticks),
            same_prefix=added([*first, *later]).share,
            same_prefix_in_tick=added(later).share,
            same_prefix_between_ticks=added(first).share,
            tool_tokens=ticks[-1].parts.tools,
            system_tokens=ticks[-1].parts.system,
            history_tokens=ticks[-1].parts.history,
            newest_tokens=ticks[-1].parts.newest,
            uncached_tokens=ticks[-1].parts.uncached,
        )

    def _repeated(self, sent: Sequence[Sent]) -> list[Repeated]:
        prompts = [wire(self._before) if self._before else "", *map(wire, sent)]
        self._before = sent[-1]
        return [repeated(*pair) for pair in pairwise(prompts)]


async def compare(root: Path, marks: Collection[int]) -> list[Row]:
    """Run the agents up to the last mark, each in its own folder under `root`."""
    rows: list[Row] = []
    async with AsyncExitStack() as stack:
        agents = [
            Measured(await stack.enter_async_context(opening(name, root / name)))
            for name in SYSTEMS
        ]
        for number in range(1, max(marks, default=0) + 1):
            text, ahead = sentence(number), min(mark - number for mark in marks if mark >= number)
            # One tick before the window, too: its last prompt is compared with the next one.
            if ahead <= WINDOW:
                for place in range(len(agents)):
                    await agents[(number + place) % len(agents)].tick(text)
            else:
                hurried = ahead > RUN_UP
                await asyncio.gather(*(one.pass_tick(text, hurried=hurried) for one in agents))
            if number in marks:
                print(f"beside create_agent: tick {number:,} of {max(marks):,}")
                rows += [agent.row(number) for agent in agents]
    return rows


def _bytes(folder: Path, pattern: str) -> int:
    return sum(path.stat().st_size for path in folder.rglob(pattern) if path.is_file())


async def together(folder: Path, count: int) -> dict[str, float]:
    """One tick of `count` agents of one process that wait for a one-second model together.

    Garbage collection spares what was loaded before, as in the product's server. The memory of an
    agent is what the process grows by: while it is open, and once it was let go.
    """
    async with open_agents(folder, FixedModel(delay=1.0), "offline") as agents:

        async def tick(text: str) -> None:
            await asyncio.gather(*(one.ainvoke({"events": [{"text": text}]}) for one in every))

        every = [agents.agent("first")]  # loads what loads at first use
        await tick(sentence(0))
        spare_collections()
        unused = resident()
        every = [agents.agent(f"agent-{number}") for number in range(count)]
        await tick(sentence(1))
        began, used = time.perf_counter(), time.process_time()
        await tick(sentence(2))
        seconds, processor = time.perf_counter() - began, time.process_time() - used
        opened = resident()
        every.clear()
        gc.collect()
        left = resident()
    return {
        "hundred_agents_s": seconds,
        "hundred_agents_processor_ms": processor / count * 1_000,
        "hundred_agents_mb": opened / 1e6,
        "open_agent_mb": (opened - unused) / count / 1e6,
        "closed_agent_mb": (left - unused) / count / 1e6,
    }


def summary(rows: Sequence[Row]) -> dict[str, float]:
    """Circadian's processor time as a ratio to that of the same job, and its steady prefix."""
    found = {(row.system, row.mark): row for row in rows}
    ours = [row for row in rows if row.system == CIRCADIAN]
    ratios = {
        f"ratio_tick_{row.mark}": row.processor_ms / found[WITH_MEM0, row.mark].processor_ms
        for row in ours
        if (WITH_MEM0, row.mark) in found
    }
    return {**ratios, "prefix_between_ticks": ours[-1].same_prefix_between_ticks}


def as_json(rows: Sequence[Row]) -> dict[str, Any]:
    """The figures as JSON. `ratio` is a figure divided by Circadian's at the same mark."""
    return {
        **summary(rows),
        "measured": MEASURED,
        "systems": SYSTEMS,
        "rows": with_ratios(rows, FIGURES),
    }


def show(rows: Sequence[Row], console: Console) -> None:
    """Print the figures and their explanations."""
    console.print(side_by_side(rows, FIGURES, mark="tick", title="Beside create_agent"))
    console.print(MEASURED)
    for name, description in SYSTEMS.items():
        console.print(f"{name}: {description}.")


def run(marks: Collection[int], path: Path, *, agents: int) -> None:
    """Measure, print the table, write the JSON to `path`. `agents`: how many also tick together."""
    with tempfile.TemporaryDirectory() as scratch:
        # First, while nothing else takes memory.
        many = asyncio.run(together(Path(scratch) / "together", agents)) if agents else {}
        rows = asyncio.run(compare(Path(scratch), marks))
    found = {**many, **as_json(rows)}
    show(rows, Console())
    for key, value in found.items():
        if isinstance(value, float):
            print(f"{key}: {value:.3f}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=2) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="Circadian beside create_agent.")
    parser.add_argument("--marks", type=int, nargs="+", default=MARKS, metavar="TICK")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/beside.json"))
    parser.add_argument("--agents", type=int, default=100, help="0 leaves this out")
    options = parser.parse_args(arguments)
    run(options.marks, options.json, agents=options.agents)
    return 0


if __name__ == "__main__":
    sys.exit(main())
