"""A database that is down is told within three seconds; what had been accepted is kept."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from psycopg.conninfo import conninfo_to_dict

from graph.agent import open_agent
from graph.api import AsyncAgent
from graph.cli.__main__ import main
from memory.errors import DatabaseDown, MemoryStoreError
from memory.events import inbox
from memory.storage.sqlite import files as storage
from tests.support.agents import entries, opened
from tests.support.clock import Clock
from tests.support.facts import draft, nearest_facts
from tests.support.postgres import Postgres
from tests.support.scripted import ScriptedChatModel

SECONDS = 3.0 * (1 + os.getloadavg()[0] / (os.cpu_count() or 1))
"""The promise holds on a quiet machine; a busy one takes as much longer as it is busy."""
STOPPED = pytest.param("is stopped", marks=pytest.mark.slow)
NOT_ACCEPTED = "no event was accepted"
HELLO = {"id": "hello", "sender": "Ada", "text": "hello"}
WAITS = {"id": "waits", "sender": "Ada", "text": "Are you there?"}
LOST = {"id": "lost", "sender": "Ada", "text": "And now?"}

Opening = Callable[[], AbstractAsyncContextManager[AsyncAgent]]


class Outage:
    """A server that is down, from `begin` to `end`; in the end it is up in any case."""

    def __init__(self, server: Postgres, kind: str) -> None:
        self._server, self._kind = server, kind
        self.down = False

    def begin(self) -> None:
        """It is stopped as an operator does, or crashes, or stands still: it does not answer."""
        self.down = True
        if self._kind == "stands still":
            self._signal(signal.SIGSTOP)
        else:
            {"is stopped": Postgres.stop, "crashes": Postgres.crash}[self._kind](self._server)

    def end(self) -> None:
        if self.down and self._kind == "stands still":
            self._signal(signal.SIGCONT)
        elif self.down:
            self._server.start()
        self.down = False

    def _signal(self, number: signal.Signals) -> None:
        place = Path(str(conninfo_to_dict(self._server.url())["host"]))
        parent = int((place / "postmaster.pid").read_text().split()[0])
        found = subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, text=True)
        for pid in (parent, *map(int, found.stdout.split())):
            os.kill(pid, number)


@pytest.fixture(params=[STOPPED, "crashes", "stands still"])
def outage(own_postgres: Postgres, request: pytest.FixtureRequest) -> Iterator[Outage]:
    made = Outage(own_postgres, request.param)
    yield made
    made.end()


@pytest.fixture
def model() -> ScriptedChatModel:
    return ScriptedChatModel(otherwise=lambda messages, tools: "I see.")


@pytest.fixture
def opening(
    own_postgres: Postgres, model: ScriptedChatModel, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> Opening:
    monkeypatch.setenv("CIRCADIAN_DATABASE_URL", own_postgres.database())
    return lambda: open_agent(model=model, embedder="offline", clock=clock)


async def refused(work: Awaitable[Any], match: str = "cannot be reached") -> None:
    began = time.monotonic()
    with pytest.raises(DatabaseDown, match=match) as raised:
        await asyncio.wait_for(work, 4 * SECONDS)
    assert time.monotonic() - began < SECONDS
    assert len(str(raised.value).splitlines()) == 1


async def test_whatever_is_asked_of_a_database_that(
    outage: Outage, opening: Opening, model: ScriptedChatModel
) -> None:
    async with opening() as agent:
        await agent.ainvoke({"events": [HELLO]})
        await agent.resources.semantic.add(agent.scope, [draft("op", "Ada grows copper beans.")])
        await agent.post(WAITS)
        outage.begin()
        # Side by side, since each waits for the database; the two runs wait for each other.
        await asyncio.gather(
            refused(agent.post(LOST), NOT_ACCEPTED),
            refused(agent.ainvoke({"events": [LOST]}), NOT_ACCEPTED),
            refused(agent.recall("beans")),
            refused(agent.aget_state()),
            refused(agent.resources.semantic.add(agent.scope, [draft("lost", "Lost.")])),
            refused(opened_again(opening), NOT_ACCEPTED),
        )
        await refused(agent.ainvoke(None))
        assert len(model.calls) == 1
        outage.end()
        # The handle that was open goes on, too.
        await has_what_was_accepted(agent)
    async with opening() as agent:
        report = (await agent.ainvoke(None))["report"]
        assert report["ticks"] == []


async def has_what_was_accepted(agent: AsyncAgent) -> None:
    """The event that waited is handled once; nothing is there that was refused."""
    items = await inbox.waiting(agent.store, agent.scope)
    assert [item["event"]["id"] for item in items] == ["waits"]
    report = (await agent.ainvoke(None))["report"]
    assert [tick["event_id"] for tick in report["ticks"]] == ["waits"]
    assert [entry["sources"] for entry in await entries(agent)] == [["hello"], ["waits"]]
    facts = await agent.resources.semantic.all(agent.scope)
    assert [fact["text"] for fact in facts] == ["Ada grows copper beans."]
    [(found, _)] = await nearest_facts(agent.resources.semantic, agent.scope, "copper beans", 1)
    assert found["text"] == "Ada grows copper beans."


async def opened_again(opening: Opening) -> None:
    async with opening():
        raise AssertionError("it was opened")


@pytest.mark.parametrize("outage", [STOPPED, "crashes"], indirect=True)
async def test_a_tick_in_which_the_database(
    outage: Outage, opening: Opening, model: ScriptedChatModel
) -> None:
    """The tick fails in time, is no failure of its event's, and is done once when it is back."""
    begun = False

    def answer(messages: list[BaseMessage], tools: list[str]) -> str:
        nonlocal begun
        if not begun:
            begun = True
            outage.begin()
        return "I see."

    model.otherwise = answer
    async with opening() as agent:
        await agent.post(HELLO)
        with pytest.raises(DatabaseDown, match="what had been accepted is kept"):
            await asyncio.wait_for(agent.ainvoke(None), 4 * SECONDS)
        outage.end()
        ticks = [t for _ in range(2) for t in (await agent.ainvoke(None))["report"]["ticks"]]
        assert [tick["event_id"] for tick in ticks] == ["hello"]
        assert len(await entries(agent)) == 1
        assert await inbox.waiting(agent.store, agent.scope) == []


def test_the_command_line_says_so_in_one_line(
    own_postgres: Postgres, opening: Opening, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["send", "hello", "--model", "offline", "--embedder", "offline"]) == 0
    capsys.readouterr()
    own_postgres.stop()
    began = time.monotonic()
    assert main(["send", "and now?", "--model", "offline"]) == 1
    assert time.monotonic() - began < SECONDS
    said = capsys.readouterr()
    [line] = said.err.splitlines()
    assert NOT_ACCEPTED in line
    assert said.out == ""


@asynccontextmanager
async def locked(file: Path) -> AsyncIterator[None]:
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.rollback()


async def test_a_file_that_another_program_keeps_to_itself(
    tmp_path: Path, model: ScriptedChatModel, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "PATIENCE", 0.2)
    said = f"store.db: database is locked: {NOT_ACCEPTED}"
    async with opened(tmp_path, model, clock) as agent:
        await agent.post(WAITS)
        async with locked(tmp_path / "store.db"):
            with pytest.raises(MemoryStoreError, match=said):
                await agent.post(LOST)
            with pytest.raises(MemoryStoreError, match=said):
                await agent.ainvoke({"events": [LOST]})
        report = (await agent.ainvoke(None))["report"]
        assert [tick["event_id"] for tick in report["ticks"]] == ["waits"]
        assert len(await entries(agent)) == 1
