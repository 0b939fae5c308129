"""How an agent's data grows on disk: checkpoints, store and memories over 1,000 ticks.

    python -m benchmarks.growth [--ticks 100 1100] [--json FILE]

One agent gets a message per tick, in a data folder and in PostgreSQL. The table shows the growth of
rows and bytes between two marks, by default 1,000 ticks apart. The agent's context is small, so
that it compacts its history meanwhile. There is no night, so nothing is pruned. PostgreSQL is
vacuumed at each mark, as autovacuum does once a minute. Its bytes are those of tables and indexes,
including the space of deleted rows. A folder's bytes are those of its files.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.models import FixedModel
from benchmarks.postgres import embedded
from benchmarks.words import sentence
from graph.agent import open_agent
from memory.settings import Settings

MARKS, SOME = (100, 1_100), (100, 200)
"""Ticks after which sizes are measured. The second pair takes a fifth of the time."""
SETTINGS = Settings(max_context_tokens=6_000)
FOLDER, DATABASE = "data folder", "PostgreSQL"
PARTS = {
    "checkpoints": ["checkpoint%", "circadian_chunks"],
    "store": ["store%"],
    "memories": ["memor%"],
}
"""Part -> patterns of its tables' names in PostgreSQL."""
FILES = {"checkpoints": "checkpoints.db", "store": "store.db", "memories": "facts.db"}

Sizes = dict[str, tuple[int, int]]
"""Part -> rows, bytes."""


@dataclass(frozen=True)
class Growth:
    """The size of one part of an agent's data at the last mark, and its growth since the first."""

    home: str
    part: str
    rows: int
    bytes: int
    more_rows: int
    more_bytes: int


async def live(home: str, folder: Path, url: str, marks: Sequence[int]) -> list[Growth]:
    """Run an agent in `home`, and measure it at the first and the last of `marks`."""
    sizes: list[Sizes] = []
    data = folder if home == FOLDER else None
    for before, until in zip((0, *marks), marks, strict=False):
        opening = open_agent(data, model=FixedModel(), embedder="offline", settings=SETTINGS)
        async with opening as agent:
            for number in range(before, until):
                await agent.ainvoke({"events": [{"text": sentence(number), "sender": "Ada"}]})
        sizes.append(in_folder(folder) if home == FOLDER else in_database(url))
    return [_growth(home, part, sizes[0][part], sizes[-1][part]) for part in PARTS]


def _growth(home: str, part: str, then: tuple[int, int], now: tuple[int, int]) -> Growth:
    return Growth(home, part, *now, now[0] - then[0], now[1] - then[1])


def in_folder(folder: Path) -> Sizes:
    """Rows of all tables, and bytes of each file with its write-ahead log."""
    found: Sizes = {}
    for part, name in FILES.items():
        with closing(sqlite3.connect(folder / name)) as connection:
            tables = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'"
            ).fetchall()
            rows = sum(
                connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]
                for (table,) in tables
            )
        found[part] = rows, sum(one.stat().st_size for one in folder.glob(f"{name}*"))
    return found


def in_database(url: str) -> Sizes:
    """Rows and bytes of all tables, indexes included."""
    import psycopg

    found: Sizes = {}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        for part, names in PARTS.items():
            tables = connection.execute(
                "SELECT tablename, pg_total_relation_size(quote_ident(tablename)::regclass)"
                " FROM pg_tables WHERE schemaname = 'public' AND tablename LIKE ANY(%s)",
                (names,),
            ).fetchall()
            counted = [
                connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()
                for table, _ in tables
            ]
            found[part] = sum(row[0] for row in counted if row), sum(size for _, size in tables)
    return found


def run(marks: Sequence[int], path: Path) -> None:
    """Measure both homes, print the table, write the JSON."""
    grown: list[Growth] = []
    with embedded() as database, tempfile.TemporaryDirectory() as scratch:
        url, before = database(), os.environ.pop("CIRCADIAN_DATABASE_URL", None)
        for home in (FOLDER, DATABASE):
            if home == DATABASE:
                os.environ["CIRCADIAN_DATABASE_URL"] = url
            grown += asyncio.run(live(home, Path(scratch) / "data", url, marks))
        del os.environ["CIRCADIAN_DATABASE_URL"]
        if before is not None:
            os.environ["CIRCADIAN_DATABASE_URL"] = before
    _show(grown, marks)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(one) for one in grown], indent=2) + "\n")


def _show(grown: Sequence[Growth], marks: Sequence[int]) -> None:
    title = f"On the disk after {marks[-1]:,} ticks, and how much more than after {marks[0]:,}"
    table = Table(box=SIMPLE_HEAD, title=title)
    for head in ("", "part", "rows", "MB", "more rows", "more MB"):
        table.add_column(head, justify="right" if head not in ("", "part") else "left")
    for part in grown:
        cells = (f"{part.rows:,}", f"{part.bytes / 1e6:,.1f}", f"{part.more_rows:+,}")
        table.add_row(part.home, part.part, *cells, f"{part.more_bytes / 1e6:+,.1f}")
    Console().print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="How an agent's data grows on disk.")
    parser.add_argument("--ticks", type=int, nargs=2, default=MARKS, metavar="MARK")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/growth.json"))
    options = parser.parse_args(arguments)
    run(options.ticks, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
