"""The documentation's pages: their code blocks, tables and figures, and a shell to try them in."""

import os
import re
import subprocess
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.support.forked import forked_python
from tests.support.source_files import ROOT

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
_ARROW = re.compile(r"(?:\s+--\s[^\n]*?)?\s*-->\s*")
_NODE = re.compile(r"(?P<id>\w+)(?:\[(?P<name>\w+)\])?")
_PRINTED = "\x1e"


class Block(NamedTuple):
    kind: str
    text: str


class Page:
    def __init__(self, name: str) -> None:
        self.text = (ROOT / name).read_text(encoding="utf-8")

    @cached_property
    def blocks(self) -> list[Block]:
        return [Block(*found) for found in _BLOCK.findall(self.text)]

    def of_kind(self, kind: str) -> list[str]:
        return [block.text for block in self.blocks if block.kind == kind]

    def commands(self) -> list[str]:
        """The lines of the console blocks behind `$ `."""
        lines = [line for text in self.of_kind("console") for line in text.splitlines()]
        return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]

    def told(self) -> list[tuple[str, str]]:
        """Each Python block with what the page says that it prints."""
        after = [*self.blocks[1:], Block("", "")]
        return [
            (block.text, following.text if following.kind == "text" else "")
            for block, following in zip(self.blocks, after, strict=True)
            if block.kind == "python"
        ]

    def rows(self, first: str) -> list[list[str]]:
        """The cells of the table whose first heading is `first`, without backquotes."""
        table = self.text.partition(f"\n| {first} |")[2].partition("\n\n")[0]
        lines = table.splitlines()[2:]
        return [[cell.strip(" `") for cell in line.strip("|").split(" | ")] for line in lines]

    def figure(self) -> set[tuple[str, str]]:
        """The arrows of the one figure, by the names of the nodes."""
        [text] = self.of_kind("mermaid")
        return set(_arrows(text))

    def named(self) -> list[str]:
        found = re.findall(r"`((?:nodes|memory|tools|graph|docs)/[\w./]+)`", self.text)
        return found + re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", self.text)


def _arrows(text: str) -> Iterator[tuple[str, str]]:
    names = {found["id"]: found["name"] or found["id"] for found in _NODE.finditer(text)}
    names |= {found["id"]: found["name"] for found in _NODE.finditer(text) if found["name"]}
    for line in text.splitlines():
        parts = _ARROW.split(line.strip())
        ids = [found["id"] for part in parts if (found := _NODE.match(part))]
        yield from ((names[a], names[b]) for a, b in pairwise(ids))


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in `folder`, as a user with a data folder there."""
    environment = {
        **os.environ,
        "CIRCADIAN_DATA": str(folder / "data"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


def run_shell(lines: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run lines of a shell; `circadian` is this checkout's."""
    ours = f'circadian() {{ "{forked_python()}" -m graph.cli "$@"; }}'
    return run(["bash", "-euc", "\n".join([ours, *lines])], folder)


def printed(blocks: list[str], folder: Path) -> list[str]:
    """What each of the blocks prints, run as one program."""
    program = f"\nprint({_PRINTED!r}, end='')\n".join(blocks)
    done = run([forked_python(), "-c", program], folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(_PRINTED)
