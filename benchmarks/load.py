"""Load: agents of many users at once, on PostgreSQL, with a model that takes a second.

    python -m benchmarks.load [--users 100] [--ticks 5] [--delay 1.0] [--json FILE]

The database is an embedded PostgreSQL with its own defaults. There are three rounds: one worker
process; two; and two of which one is killed with SIGKILL after half of its events, and restarted.
All events are posted before the round begins, and a worker has had a first tick. Each event names
its user, and each answer names all users in its prompt, so that lost, doubled and crossed events
can be counted. Latency is a tick's time above the model's while all agents have work; most of it
is waiting for the processor.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.models import NamingModel
from benchmarks.postgres import embedded
from graph.agent import open_agents
from graph.blocking import spare_collections

AGENT = "load"
USERS, TICKS, DELAY = 100, 5, 1.0
MINUTES = 10.0
"""A round that takes longer is aborted."""
NAMES = r"user\d{4}"
_VARIABLE = "CIRCADIAN_DATABASE_URL"


@dataclass(frozen=True)
class Load:
    """The load of every round."""

    users: int = USERS
    ticks: int = TICKS
    """Events per user."""
    delay: float = DELAY
    """Seconds that the model takes."""


@dataclass(frozen=True)
class Kind:
    """The processes of a round."""

    name: str
    workers: int
    kill: bool = False
    """Whether one worker is killed after half of its events."""


KINDS = (Kind("1 worker", 1), Kind("2 workers", 2), Kind("2, 1 killed", 2, kill=True))


@dataclass(frozen=True)
class Round:
    """The results of one round."""

    name: str
    users: int
    ticks: int
    seconds: float
    per_second: float
    p50: float
    """Seconds of a tick beyond the model's."""
    p95: float
    cpu_ms: float
    """Processor time of a tick in the worker, milliseconds; the database's is not included."""
    lost: int
    """Events missing in the journal, or without an answer in the thread."""
    doubled: int
    crossed: int
    """Journal entries and prompts of one user that name another user."""


class Worker:
    """A process that runs the agents of some users. It writes a line per tick to the file `out`."""

    def __init__(self, url: str, place: int, of: int, load: Load, out: Path) -> None:
        self.out = out
        command = [sys.executable, "-m", "benchmarks.load", "--worker", f"{place}/{of}", str(out)]
        command += ["--users", str(load.users), "--ticks", str(load.ticks)]
        command += ["--delay", str(load.delay)]
        self.process = subprocess.Popen(command, env={**os.environ, _VARIABLE: url})

    def lines(self) -> list[dict[str, float]]:
        """The complete lines so far. The last line of a killed worker may be cut."""
        whole = self.out.read_text().rpartition("\n")[0] if self.out.exists() else ""
        return [json.loads(line) for line in whole.splitlines()]

    def wait(self, lines: int | None = None) -> None:
        """Wait for `lines` lines, or for the process to end. Raises RuntimeError if it failed."""
        end = time.monotonic() + MINUTES * 60
        while lines is None or len(self.lines()) < lines:
            status = self.process.poll()
            if status or time.monotonic() > end:
                self.process.kill()
                raise RuntimeError(f"a worker ended with status {status}")
            if status == 0:
                return
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


def run(load: Load, path: Path, kinds: Sequence[Kind] = KINDS) -> int:
    """Run the rounds, print the table, write the JSON; status 1 if an event was lost."""
    with embedded() as database:
        rounds = [_round(kind, database(), load) for kind in kinds]
    _show(rounds, load, path)
    return 1 if any(one.lost or one.doubled or one.crossed for one in rounds) else 0


def _round(kind: Kind, url: str, load: Load) -> Round:
    """Post all events, run the workers, count the results."""
    with _database(url), tempfile.TemporaryDirectory() as folder:
        asyncio.run(_post(load))

        def start(place: int, name: str) -> Worker:
            return Worker(url, place, kind.workers, load, Path(folder, name))

        workers = [start(place, f"{place}") for place in range(kind.workers)]
        workers[0].wait(1)  # its agents are open
        began = time.monotonic()
        if kind.kill:
            workers[0].wait(1 + len(range(0, load.users, kind.workers)) * load.ticks // 2)
            workers[0].kill()
            workers.append(start(0, "again"))
        for worker in workers[1:] if kind.kill else workers:
            worker.wait()
        seconds = time.monotonic() - began
        told = [line for worker in workers for line in worker.lines()]
        lost, doubled, crossed = asyncio.run(_look(load))
    took = sorted(line["above"] for line in told if "above" in line)
    ended = [line for line in told if "cpu" in line]
    return Round(
        kind.name,
        load.users,
        load.ticks,
        round(seconds, 1),
        round(load.users * load.ticks / seconds, 1),
        round(took[len(took) // 2], 3),
        round(took[int(len(took) * 0.95)], 3),
        round(sum(one["cpu"] for one in ended) * 1000 / sum(one["ticks"] for one in ended), 1),
        lost,
        doubled,
        crossed,
    )


@contextmanager
def _database(url: str) -> Iterator[None]:
    """Point the product's variable to the database."""
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = url
    try:
        yield
    finally:
        del os.environ[_VARIABLE]
        if before is not None:
            os.environ[_VARIABLE] = before


async def work(load: Load, place: int, of: int, out: Path) -> None:
    """Run the agents of one worker's users, all at once, in a process set up as the server's."""
    model = NamingModel(delay=load.delay, names=NAMES)
    with out.open("a", buffering=1) as file:

        def tell(**line: float) -> None:
            file.write(json.dumps(line) + "\n")

        async with open_agents(model=model, embedder="offline") as agents:
            # A first tick, of a user of its own, loads what loads at first use.
            first = agents.agent(AGENT, user=f"first-{place}-{os.getpid()}")
            await first.ainvoke({"messages": [HumanMessage(_text(0, 0))]})
            spare_collections()
            tell(opened=1)
            cpu, ticks = time.process_time(), 0

            async def live(number: int) -> None:
                nonlocal ticks
                agent = agents.agent(AGENT, user=_user(number))
                began = time.monotonic()
                async for part in agent.astream(None, stream_mode="updates"):
                    if "awake" in part:
                        now, ticks = time.monotonic(), ticks + 1
                        tell(above=now - began - load.delay)
                        began = now

            await asyncio.gather(*(live(one) for one in range(place, load.users, of)))
            tell(cpu=time.process_time() - cpu, ticks=ticks)


async def _post(load: Load) -> None:
    async with open_agents(model="offline", embedder="offline") as agents:
        for number in range(load.users):
            agent = agents.agent(AGENT, user=_user(number))
            await agent.post(
                [
                    {"id": f"{_user(number)}-{tick}", "text": _text(number, tick)}
                    for tick in range(load.ticks)
                ]
            )


async def _look(load: Load) -> tuple[int, int, int]:
    """Count events that are lost, doubled, and crossed."""
    lost = doubled = crossed = 0
    async with open_agents(model="offline", embedder="offline") as agents:
        for number in range(load.users):
            agent, user = agents.agent(AGENT, user=_user(number)), _user(number)
            rows = [row for row in await agent.everything() if row["kind"] == "episode"]
            texts = Counter(row["text"] for row in rows)
            answers = answered((await agent.aget_state()).values.get("messages", []))
            for tick in range(load.ticks):
                times = (texts[_text(number, tick)], answers[f"{user}-{tick}"])
                lost += min(times) == 0
                doubled += max(times) > 1
            crossed += sum(not text.startswith(f"The number of {user} ") for text in texts)
            crossed += sum(
                count for names, count in answers.items() if names not in _own(load, user)
            )
    return lost, doubled, crossed


def _own(load: Load, user: str) -> set[str]:
    return {f"{user}-{tick}" for tick in range(load.ticks)}


def answered(messages: Sequence[AnyMessage]) -> Counter[str]:
    """Answers per event id. An answer with another user's name counts under the names in it."""
    counted: Counter[str] = Counter()
    asked = ""
    for message in messages:
        if isinstance(message, HumanMessage):
            asked = str(message.id)
        elif isinstance(message, AIMessage):
            names = message.text
            counted[asked if names == asked.partition("-")[0] else names] += 1
    return counted


def _user(number: int) -> str:
    return f"user{number:04}"


def _text(number: int, tick: int) -> str:
    return f"The number of {_user(number)} is {tick}, is it not?"


def _show(rounds: Sequence[Round], load: Load, path: Path) -> None:
    title = f"{load.users} users on PostgreSQL, {load.ticks} events each, a model of {load.delay} s"
    table = Table(box=SIMPLE_HEAD, title=title, padding=(0, 1, 0, 0))
    heads = ("round", "s", "ticks/s", "p50 s", "p95 s", "CPU ms", "lost", "doubled", "crossed")
    for head in heads:
        table.add_column(head, justify="left" if head == "round" else "right", no_wrap=True)
    for row in rounds:
        cells = (row.seconds, row.per_second, row.p50, row.p95, row.cpu_ms)
        table.add_row(row.name, *map(str, (*cells, row.lost, row.doubled, row.crossed)))
    Console().print(table)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(one) for one in rounds], indent=2) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark, or one of its workers; return the exit status."""
    options = _parser().parse_args(arguments)
    load = Load(options.users, options.ticks, options.delay)
    if options.worker is None:
        return run(load, options.json)
    share, out = options.worker
    place, of = map(int, share.split("/"))
    asyncio.run(work(load, place, of, Path(out)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Agents of many users at once, on PostgreSQL.")
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--ticks", type=int, default=TICKS)
    parser.add_argument("--delay", type=float, default=DELAY)
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/load.json"))
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
