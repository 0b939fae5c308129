"""Two versions at once: what an older one does once a newer one has been there.

The newer one is this code's own, with the form of what it keeps counted further by hand.
"""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from graph.agent import open_agents
from memory.errors import MemoryStoreError, NewerError, StateError
from memory.models.offline.model import OfflineChatModel
from tests.support.agents import said
from tests.support.homes import KINDS

NEWER = "newer Circadian"
OPENING = """
import asyncio, sys
from graph.agent import open_agent

async def main():
    async with open_agent(data=sys.argv[1], agent=sys.argv[2], model="offline") as agent:
        await agent.ainvoke({"messages": "My aunt lives in Porto"})
        print((await agent.aget_state()).values["tick"])

asyncio.run(main())
"""


class Place:
    """A folder or a database, as `open_agents` opens it, and as a newer version would leave it."""

    def __init__(self, request: pytest.FixtureRequest, tmp_path: Path) -> None:
        self.folder = tmp_path / "data"
        self.url = None
        if request.param == "database":
            self.url = str(request.getfixturevalue("postgres_url"))
            request.getfixturevalue("monkeypatch").setenv("CIRCADIAN_DATABASE_URL", self.url)

    def open(self) -> Any:
        place = None if self.url else self.folder
        return open_agents(place, model=OfflineChatModel(), embedder="offline")

    def count(self, more: int) -> None:
        if self.url:
            self.execute("UPDATE circadian_head SET schema_version = schema_version + %s", more)
            return
        head = self.folder / "folder.json"
        known = json.loads(head.read_text())
        head.write_text(json.dumps({**known, "schema_version": known["schema_version"] + more}))

    def execute(self, statement: str, *values: Any) -> None:
        assert self.url
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement, values)


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(request, tmp_path)


async def test_what_is_open_writes_nothing_once_it_is_newer_and_goes_on_when_updated(
    place: Place,
) -> None:
    async with place.open() as agents:
        agent = agents.agent("default")
        await agent.ainvoke(said("My sister lives in Lisbon"))
        before = (await agent.aget_state()).values
        place.count(1)
        writing: list[Callable[[], Any]] = [
            lambda: agent.ainvoke(said("My aunt lives in Porto", id="waits")),
            lambda: agent.aupdate_state(None, {"mode": "sleep"}),
            lambda: agent.forget("Lila"),
        ]
        for write in writing:
            with pytest.raises(NewerError, match=NEWER):
                await write()
        assert (await agent.aget_state()).values == before
        with pytest.raises(NewerError, match=NEWER):
            async with place.open():
                pass
        # As after an update: what was said meanwhile had been accepted.
        place.count(-1)
        out = await agent.ainvoke(None)
        assert [tick["event_id"] for tick in out["report"]["ticks"]] == ["waits"]


@pytest.mark.parametrize("place", ["database"], indirect=True)
@pytest.mark.parametrize(
    "table", ["circadian_checkpoint_migrations", "circadian_store_migrations", "memory_migrations"]
)
async def test_a_newer_table_of_a_database_is_left_alone(place: Place, table: str) -> None:
    async with place.open() as agents:
        await agents.agent("default").ainvoke(said("My sister lives in Lisbon"))
    place.execute(f"INSERT INTO {table} SELECT max(v) + 1 FROM {table}")
    with pytest.raises(NewerError, match=NEWER):
        async with place.open() as agents:
            await agents.agent("default").recall("sister")


@pytest.mark.parametrize("place", ["folder"], indirect=True)
async def test_newer_facts_of_a_folder_are_left_alone(place: Place) -> None:
    async with place.open() as agents:
        await agents.agent("default").ainvoke(said("My sister lives in Lisbon"))
    with sqlite3.connect(place.folder / "facts.db") as facts:
        facts.execute("PRAGMA user_version = 99")
    facts.close()
    async with place.open() as agents:
        agent = agents.agent("default")
        with pytest.raises(MemoryStoreError, match=NEWER):
            await agent.recall("sister")
        out = await agent.ainvoke(said("My aunt lives in Porto", id="e2"), raise_on_failure=False)
        assert NEWER in out["report"]["failures"][0]["error"]
        assert [one["event"]["id"] for one in await waiting(agent)] == ["e2"]


async def waiting(agent: Any) -> list[Any]:
    from memory.events import inbox

    return await inbox.waiting(agent.store, agent.scope)


async def test_a_newer_thread_is_left_as_it_is(place: Place) -> None:
    async with place.open() as agents:
        agent = agents.agent("default")
        await agent.ainvoke(said("My sister lives in Lisbon"))
        await agent.aupdate_state(None, {"schema_version": 99})
        for _ in range(2):
            with pytest.raises(StateError, match=NEWER):
                await agent.ainvoke(said("My aunt lives in Porto", id="e2"))
        values = (await agent.aget_state()).values
        assert (values["schema_version"], values["tick"]) == (99, 1)
        assert [one["event"]["id"] for one in await waiting(agent)] == ["e2"]
