"""How long each page of the inspector takes, with 20,000 memories.

    python -m benchmarks.pages [--entries 10000] [--visits 20] [--folder DIR] [--json FILE]

Messages are journaled, and the operations of a night make facts from them. Each day ends with some
messages that the agent answers, and a night; the offline model answers. Each page is visited once
to warm up, then `--visits` times, each time for another memory, person, night or tick. A page's own
time is from the request to the whole answer, in the server's process, without a network; processor
time is that of all threads. Where a page begins long work, its time is the longer one of that and
the page with the result. `--folder` keeps the memory for the next run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.lives import live, made_up
from benchmarks.words import asked
from graph.agent import open_agent
from graph.api import AsyncAgent, open_agents
from graph.blocking import spare_collections
from graph.documents import MemoryFilter, Paging, memory_page, night_page, people_page, tick_page
from graph.inspector.app import OneAgent, local_inspector
from graph.inspector.visits import BackgroundJob
from memory.events import entry_for_event
from memory.journal import days
from memory.operations import apply_operations
from memory.records import (
    Event,
    FactDraft,
    JournalEntry,
    Operation,
    add_fact,
    link,
    mark_entry,
    operation_id,
    supersede_fact,
)

ENTRIES, VISITS = 10_000, 20
"""Journal entries, of which nights make about as many facts; visits of each page."""
SOME = 1_000
"""Journal entries of a memory that is made in a minute."""
NIGHTS, ANSWERED, LEFT = 5, 52, 50
"""Nights; before each, at most ANSWERED messages are answered, and LEFT entries wait for it."""
CHANGED = 20
"""Every CHANGED-th fact is superseded by the next one."""
BUDGET = 100.0
"""Milliseconds of a page (p95)."""
PORT, TOKEN = 8765, "token"
Addresses = dict[str, Callable[[int], str]]
"""Page -> a function from the number of a visit to its address."""


@dataclass(frozen=True)
class PageTime:
    """A page, and what its visits took, in milliseconds."""

    page: str
    p50: float
    p95: float
    cpu_p50: float
    """Processor time."""
    cpu_p95: float
    kilobytes: float
    """Of the longest answer."""


async def make(folder: Path, entries: int) -> None:
    """Make the memory that the pages show."""
    events = made_up(entries)
    size = max(1, entries // NIGHTS)
    now = datetime.fromisoformat(events[0]["at"])
    async with open_agent(folder, model="offline", embedder="offline", clock=lambda: now) as agent:
        for number, start in enumerate(range(0, entries, size)):
            some = events[start : start + size]
            await live(agent, some)
            await _made_into_facts(agent, some[:-LEFT])
            now = datetime.fromisoformat(some[-1]["at"])
            for turn in range(min(ANSWERED, 1 + size // 4)):
                now += timedelta(seconds=10)
                text = asked(start + turn) if turn % 2 else f"My {number}-{turn} is a boat."
                event = {"id": f"a{number}-{turn}", "sender": ("Ada", "Ben")[turn % 2]}
                await agent.ainvoke({"events": [{**event, "text": text}]})
            await agent.ainvoke({"request": "sleep"})
            print(f"pages: night {number + 1}", file=sys.stderr)


async def _made_into_facts(agent: AsyncAgent, events: Sequence[Event]) -> None:
    """Apply the operations of a night: each entry becomes a fact, which is linked to the entry."""
    semantic, why = agent.resources.semantic, "benchmark"
    entries = [entry_for_event(one, known_entities=(), projects=()) for one in events]
    made: list[Operation] = []
    for entry in entries:
        draft = _draft(entry)
        made += [
            mark_entry(entry, "consolidated", why),
            add_fact(draft, why),
            link(entry["id"], draft["op"], draft["created"], why),
        ]
    await apply_operations(made, store=agent.store, semantic=semantic, scope=agent.scope)
    facts = await semantic.by_op(agent.scope, [_draft(entry)["op"] for entry in entries])
    pairs = [*zip(facts.values(), [*facts.values()][1:], strict=False)][::CHANGED]
    ended = [supersede_fact(old, new["op"], new["valid_from"], [], why) for old, new in pairs]
    await apply_operations(ended, store=agent.store, semantic=semantic, scope=agent.scope)


def _draft(entry: JournalEntry) -> FactDraft:
    return {
        "op": operation_id("benchmark", entry["id"]),
        "text": entry["content"].replace("I noticed", f"{entry['source_entity']} noticed"),
        "source_entries": [entry["id"]],
        "source_events": entry["sources"],
        "speaker": entry["source_entity"],
        "entities": [str(entry["source_entity"])],
        "trust": 0.9,
        "importance": 5,
        "created": entry["timestamp"],
        "valid_from": entry["timestamp"],
    }


async def addresses(agent: AsyncAgent) -> Addresses:
    """The address of every visit to every page, with ids of what the memory has."""
    context, many = agent.context, Paging(500)
    facts = (await memory_page(context, MemoryFilter(kind="fact", holds=True), many)).items
    entries = (await memory_page(context, MemoryFilter(kind="entry", sort="oldest"), many)).items
    ended = (await memory_page(context, MemoryFilter(holds=False), many)).items or facts
    people = (await people_page(context, paging=many)).items
    busy = [one for one in people if one.name in ("Ada", "Ben", "Cleo", "Dan")] or people
    nights = (await night_page(context, paging=many)).items
    ticks = (await tick_page(context, many)).items
    days_lived = [f"{day[:4]}-{day[4:6]}-{day[6:]}" for day in await days(agent.store, agent.scope)]

    def each(path: str, found: Sequence[Any]) -> Callable[[int], str]:
        return lambda number: path.format(found[11 * number % len(found)])

    fact_ids, entry_ids = [one.id for one in facts], [one.id for one in entries]
    busy_ids = [one.id for one in busy]
    person_ids = [one.id for one in people if one not in busy] or busy_ids
    night_ids, numbers = [one["id"] for one in nights], [one["tick"] for one in ticks]
    words = [asked(number) for number in range(0, 1_000, 7)]
    return {
        "today": each("today", [""]),
        "memory": lambda number: f"memory?page={number + 1}",
        "memory, far back": lambda number: f"memory?page={200 + number}",
        "memory, a search": each("memory?q={}", words),
        "memory, a search by person": each("memory?q={}&person=Ada", words),
        "memory, of a person": each("memory?person={}", [one.name for one in busy]),
        "memory, of a day": each("memory?day={}", days_lived),
        "memory, what ended": each("memory?holds=ended", [""]),
        "memory, insights": each("memory?kind=insight", [""]),
        "a fact": each("memory/{}", fact_ids),
        "a fact, two hops": each("memory/{}?hops=2", fact_ids),
        "a fact that ended": each("memory/{}", [one.id for one in ended]),
        "an entry": each("memory/{}", entry_ids),
        "correct": each("correct/{}", fact_ids),
        "forget a fact": each("forget/{}", fact_ids),
        "forget an entry": each("forget/{}", entry_ids),
        "people": lambda number: f"people?page={number % 2 + 1}",
        "people, a search": each("people?q={}", ["person 1", "ada", "zzz"]),
        "a person": each("people/{}", person_ids),
        "a busy person": each("people/{}", busy_ids),
        "forget a person": each("people/{}/forget", person_ids),
        "forget a busy person": each("people/{}/forget", busy_ids),
        "nights": each("nights", [""]),
        "a night": each("nights/{}", night_ids),
        "undo a night": each("nights/{}/undo", night_ids),
        "preview": each("preview", [""]),
        "ticks": lambda number: f"ticks?page={number % 10 + 1}",
        "a tick": each("ticks/{}", numbers),
        "log": lambda number: f"log?page={number + 1}",
        "log, of a day": each("log?day={}", days_lived),
        "log, of a kind": each("log?what={}", ["night", "tool_call", "goal_created"]),
        "progress": each("progress", [""]),
    }


async def measure(folder: Path, visits: int) -> tuple[int, list[PageTime]]:
    """The number of memories, and the time of each page."""
    async with open_agents(folder, model="offline", embedder="offline") as agents:
        agent = agents.agent("default")
        asked_for = await addresses(agent)
        count = (await memory_page(agent.context)).total
        host = OneAgent(agent.context)
        current = partial(host.jobs.current, agent.scope)
        app = local_inspector(host, token=TOKEN, port=PORT)
        transport = httpx.ASGITransport(app=app)
        base = f"http://127.0.0.1:{PORT}"
        async with httpx.AsyncClient(transport=transport, base_url=base) as client:
            await client.get("/", params={"token": TOKEN})
            spare_collections()  # as `circadian inspect` does
            times = [
                await _visited(client, current, page, address, visits)
                for page, address in asked_for.items()
            ]
        await host.jobs.stop()
    return count, times


async def _visited(
    client: httpx.AsyncClient,
    current: Callable[[], BackgroundJob | None],
    page: str,
    address: Callable[[int], str],
    visits: int,
) -> PageTime:
    wall, cpu, size = [], [], 0
    for number in range(-1, visits):
        path = f"/default/{address(max(0, number))}"
        answer, took, work = await _timed(client, path)
        if answer.is_redirect:
            job = current()
            assert job is not None
            assert job.task is not None
            await job.task
            answer, *later = await _timed(client, path)
            took, work = max(took, later[0]), max(work, later[1])
        answer.raise_for_status()
        if number >= 0:
            wall.append(1_000 * took)
            cpu.append(1_000 * work)
        size = max(size, len(answer.content))
    return PageTime(page, *_percentiles(wall), *_percentiles(cpu), round(size / 1_024, 1))


async def _timed(client: httpx.AsyncClient, path: str) -> tuple[httpx.Response, float, float]:
    """The answer, its time and its processor time in seconds."""
    began, worked = time.perf_counter(), time.process_time()
    answer = await client.get(path)
    return answer, time.perf_counter() - began, time.process_time() - worked


def _percentiles(values: Sequence[float]) -> tuple[float, float]:
    """p50 and p95."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return round(ordered[last // 2], 1), round(ordered[round(0.95 * last)], 1)


def table(count: int, times: Sequence[PageTime]) -> Table:
    """The figures; a page over the budget is marked."""
    title = f"Own time of a page at {count:,} memories, ms (budget: p95 <= {BUDGET:g})"
    shown = Table(box=SIMPLE_HEAD, title=title, padding=(0, 1, 0, 0))
    for head in ("page", "p50", "p95", "CPU p50", "CPU p95", "kB", ""):
        shown.add_column(head, justify="left" if head == "page" else "right", no_wrap=True)
    for row in times:
        figures = (row.p50, row.p95, row.cpu_p50, row.cpu_p95, row.kilobytes)
        over = "over" if row.p95 > BUDGET else ""
        shown.add_row(row.page, *(f"{figure:,.1f}" for figure in figures), over)
    return shown


def run(entries: int, visits: int, path: Path, folder: Path | None = None) -> None:
    """Make the memory, measure, print the table, write the JSON."""
    with tempfile.TemporaryDirectory() as scratch:
        data = folder or Path(scratch) / "data"
        if not data.exists():
            asyncio.run(make(data, entries))
        count, times = asyncio.run(measure(data, visits))
    Console().print(table(count, times))
    path.parent.mkdir(parents=True, exist_ok=True)
    found = {"memories": count, "budget_ms": BUDGET, "pages": [asdict(one) for one in times]}
    path.write_text(json.dumps(found, indent=2) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="The own time of the inspector's pages.")
    parser.add_argument("--entries", type=int, default=ENTRIES)
    parser.add_argument("--visits", type=int, default=VISITS)
    parser.add_argument("--folder", type=Path, help="keep the memory here, and use it again")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/pages.json"))
    given = parser.parse_args(arguments)
    run(given.entries, given.visits, given.json, given.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
