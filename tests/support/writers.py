"""Processes that write facts, on either database, until they are done or are killed.

They are forked from one process that has imported everything, so that a start takes milliseconds.
"""

import asyncio
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from memory.facts.semantic import SemanticMemory
from memory.installation.folder import open_folder
from memory.installation.opening import Installation
from memory.records.records import Fact, Scope
from tests.support.facts import ANA, WordEmbeddings, draft, nearest_facts
from tests.support.forked import forks

SECONDS = 30.0
"""After which a process that says nothing fails its test."""
BATCH = 3
"""Facts of one write: all are there, or none."""


@dataclass(frozen=True)
class Where:
    """An installation: a folder, or a database where `url` is given."""

    folder: Path
    url: str | None = None

    def open(self) -> Installation:
        """Open it with the words' embedder, as the product opens it."""
        if self.url is None:
            return open_folder(self.folder / "data", embeddings=WordEmbeddings())
        from memory.installation.database import open_database

        return open_database(SecretStr(self.url), embeddings=WordEmbeddings())


@contextmanager
def opened(where: Where) -> Iterator[SemanticMemory]:
    home = where.open()
    try:
        yield home.semantic
    finally:
        home.close()


@dataclass
class Told:
    """What a writer said that it does, and what it acknowledged."""

    facts: dict[str, str | None] = field(default_factory=dict)
    """Id -> text as it was acknowledged; None where it was removed."""
    begun: tuple[str, Any] | None = None
    """What was in hand at the end: "add" and texts, "update" and (id, text), "delete" and an id."""

    def hear(self, said: tuple[str, Any]) -> None:
        kind, value = said
        if kind == "done":
            self.facts |= value
        self.begun = None if kind == "done" else said


class Writer:
    """A process that writes, and what it told so far."""

    def __init__(self, process: BaseProcess, heard: Connection) -> None:
        self._process, self._heard = process, heard
        self.told = Told()

    def until(self, lines: int) -> None:
        """Wait until it told so many more lines."""
        for _ in range(lines):
            assert self._heard.poll(SECONDS), "the writer says nothing"
            self.told.hear(self._heard.recv())

    def kill(self) -> Told:
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.join(SECONDS)
        assert self._process.exitcode == -signal.SIGKILL
        try:
            while self._heard.poll():
                self.told.hear(self._heard.recv())
        except (EOFError, OSError):
            pass  # nothing more, or half a line
        return self.told

    def ended(self) -> Told:
        try:
            while True:
                self.until(1)
        except EOFError:
            self._process.join(SECONDS)
        assert self._process.exitcode == 0
        return self.told


Work = Callable[[SemanticMemory, str, Callable[[tuple[str, Any]], None]], Any]


@contextmanager
def writer(where: Where, name: str, work: Work | None = None) -> Iterator[Writer]:
    """A process that does `work` (default: `write_for_ever`) with the memory of `where`."""
    heard, tells = forks().Pipe(duplex=False)
    process = forks().Process(target=_run, args=(where, name, work or write_for_ever, tells))
    process.start()
    tells.close()
    try:
        yield Writer(process, heard)
    finally:
        process.kill()
        process.join(SECONDS)
        process.close()
        heard.close()


def _run(where: Where, name: str, work: Work, tells: Connection) -> None:
    with opened(where) as memory:
        asyncio.run(work(memory, name, tells.send))


async def write_for_ever(
    memory: SemanticMemory, name: str, tell: Callable[[tuple[str, Any]], None]
) -> None:
    """In a tight loop: add three batches, change a fact, remove one; tell before and after each."""
    facts: deque[Fact] = deque()
    for number in count():
        step = number % 5
        if step < 3:
            tell(("add", texts_of(name, number)))
            added = await memory.add(ANA, batch(name, number))
            facts += added
            tell(("done", {fact["id"]: fact["text"] for fact in added}))
        elif step == 3:
            fact = facts.popleft()
            text = f"{name}n{number}changed copper meadow"
            tell(("update", (fact["id"], text)))
            facts.append(await memory.update(ANA, fact["id"], {"text": text}))
            tell(("done", {fact["id"]: text}))
        else:
            fact = facts.popleft()
            tell(("delete", fact["id"]))
            await memory.delete(ANA, fact["id"])
            tell(("done", {fact["id"]: None}))


def texts_of(name: str, number: int) -> list[str]:
    return [f"{name}n{number}p{place} copper lantern" for place in range(BATCH)]


def batch(name: str, number: int) -> list[Any]:
    return [draft(text.split()[0], text) for text in texts_of(name, number)]


async def whole(memory: SemanticMemory, facts: list[Fact], scope: Scope = ANA) -> None:
    """Each fact's vector and words find it, and nothing else before it."""
    for fact in facts:
        [(nearest, cosine)] = await nearest_facts(memory, scope, fact["text"], 1)
        assert (nearest["id"], nearest["text"]) == (fact["id"], fact["text"])
        assert cosine > 0.999
        own = fact["text"].split()[0]
        assert [one["id"] for one, _ in await memory.keywords(scope, own, 5)] == [fact["id"]]
