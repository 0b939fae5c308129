"""All benchmarks, as tables and JSON.

    python -m benchmarks.run [--folder DIR] [--beside 10 100 250] [--agents 100]
                             [--memory 1000 10000] [--night 100 1000] [--pages 1000]
                             [--load 20] [--lives FILE ...] [--locomo FILE]

They measure the product's own work: models answer at once, unless a table names a delay. The tables
are those of `benchmarks.beside`, `benchmarks.memory`, `benchmarks.night`, `benchmarks.compaction`,
`benchmarks.pages`, `benchmarks.load`, `benchmarks.growth`, `benchmarks.walk`, `benchmarks.nights`
and `benchmarks.locomo`; the JSON of each is in `--folder`. `--beside`, `--memory`, `--night` (with
compaction) or `--locomo` without a value leaves its table out, and so do `--pages 0` and `--load 0`
(with growth and walk). LoCoMo needs data, and MiniLM for the rows with an embedding model; nights
need the files of lives. The run names whatever is absent and goes on without it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import beside, compaction, growth, load, locomo, memory, night, nights, pages, walk
from memory.errors import InputError

LOAD_TICKS = 3
"""Events per user under load. `benchmarks.load` itself has more events and users."""

NOISE = 0.1
"""Share of wrong answers of the reference model, where lives are lived."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmarks, print the tables, write the JSON; return the exit status."""
    options = _parser().parse_args(arguments)
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    if options.beside:
        beside.run(options.beside, folder / "beside.json", agents=options.agents)
    if options.memory:
        memory.run(options.memory, folder / "memory.json")
    if options.night:
        data = Path(options.locomo) if options.locomo else None
        try:
            night.run(data, night.LIVES, options.night, folder / "night.json")
        except InputError as error:
            print(error, file=sys.stderr)
            return 2
        compaction.run(folder / "compaction.json")
    if options.pages:
        pages.run(options.pages, pages.VISITS, folder / "pages.json")
    lost = 0
    if options.load:
        lost = load.run(load.Load(options.load, LOAD_TICKS), folder / "load.json")
        growth.run(growth.SOME, folder / "growth.json")
        walk.run(folder / "walk.json")
    if options.lives:
        named = ["--data", *options.lives, "--json", str(folder / "nights.json")]
        lost = nights.main([*named, "--noise", str(NOISE)]) or lost
    if options.locomo is None:
        return lost
    named = ["--data", options.locomo] if options.locomo else []
    return locomo.main([*named, "--json", str(folder / "locomo.json")]) or lost


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="All benchmarks.")
    parser.add_argument("--folder", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--beside", type=int, nargs="*", default=beside.MARKS, metavar="TICK")
    parser.add_argument("--agents", type=int, default=100, help="open together, beside")
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
