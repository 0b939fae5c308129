"""How many events wait, over all agents: what was answered does not, also where it still stands."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore, PutOp
from langgraph.store.memory import InMemoryStore

from graph.api import Agents, open_agents
from graph.persistence import open_store
from memory.errors import ModelError
from memory.events import inbox
from memory.events.inbox import waiting_now
from memory.records.records import HandledMark, Scope
from memory.storage import access as store_access
from memory.storage.access import count_items, write_batch
from memory.storage.postgres import store as stores
from tests.support import homes
from tests.support.clock import Clock
from tests.support.homes import home_of
from tests.support.scripted import scripted
from tests.support.tool_calls import EVENT

ADA, BEN = Scope("ada", "t"), Scope("ben", "u")


def event(number: int) -> Any:
    return {**EVENT, "id": f"e{number}"}


def mark(number: int) -> HandledMark:
    return HandledMark(id=f"e{number}", tick=1, at="2026-03-02T09:00:00+00:00")


@pytest.fixture(params=[*homes.KINDS, "in memory"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BaseStore]:
    if request.param == "in memory":
        yield InMemoryStore()
    else:
        async with open_store(home_of(request, tmp_path)) as ours:
            yield ours


async def test_the_events_of_all_agents_are_counted_but_for_those_that_were_answered(
    store: BaseStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_access, "PAGE", 1)
    assert (await waiting_now(store))[0] == 0
    await inbox.post(store, ADA, [event(n) for n in range(3)], now=clock.now)
    await inbox.post(store, BEN, [event(n) for n in range(2)], now=clock.now)
    await write_batch(store, [PutOp(("ada", "t", "inboxes"), "k", {})])
    await write_batch(store, [PutOp(("ada", "t", "inbox", "below"), "k", {})])
    assert (await waiting_now(store))[0] == 5
    await inbox.note_answered(store, ADA, [mark(0), mark(7)])
    await inbox.note_answered(store, ADA, [mark(0), mark(1)])
    assert (await waiting_now(store))[0] == 3
    seen = [await waiting_now(store, below) for below in (("ada",), ADA.namespace(), ("ad",))]
    assert [number for number, _ in seen] == [1, 1, 0]
    assert [row["event"]["id"] for row in await inbox.waiting(store, BEN)] == ["e0", "e1"]
    await inbox.settle(store, ADA, [mark(0)])
    assert (await waiting_now(store))[0] == 3


async def test_an_event_that_is_given_back_after_all_waits_again(
    store: BaseStore, clock: Clock
) -> None:
    await inbox.post(store, ADA, [event(1)], now=clock.now)
    await inbox.note_answered(store, ADA, [mark(1)])
    await inbox.give_back(store, ADA, "e1", "the model is down", max_attempts=3)
    assert (await waiting_now(store))[0] == 1


async def test_it_is_one_query(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from pydantic import SecretStr

    from memory.installation.database import open_database
    from memory.storage.postgres.connections import Cursor

    asked: list[str] = []
    execute = Cursor.execute

    async def told(self: Any, query: Any, *args: Any, **options: Any) -> Any:
        asked.append(str(query))
        return await execute(self, query, *args, **options)

    async with open_store(open_database(SecretStr(postgres_url), embedder="offline")) as store:
        assert isinstance(store, stores.CircadianPostgresStore)
        monkeypatch.setattr("psycopg.AsyncCursor.execute", told)
        await waiting_now(store)
    assert len(asked) == 1


@pytest.fixture(params=homes.KINDS)
async def agents(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Agents]:
    if request.param == homes.KINDS[1]:
        monkeypatch.setenv("CIRCADIAN_DATABASE_URL", request.getfixturevalue("postgres_url"))
    data = tmp_path if request.param == homes.KINDS[0] else None
    model = scripted("Hello.", ModelError("down"), "Hello.", otherwise=lambda _: "Hello.")
    async with open_agents(data, model, "offline") as opened:
        yield opened


async def test_an_answered_event_that_stands_until_the_next_run_does_not_wait(
    agents: Agents,
) -> None:
    agent = agents.agent("default", user="ada")
    # As on a server: a checkpoint may be on its way to the disk, and the event stands till then.
    await agent.ainvoke({"events": [{"id": "e1", "text": "Hello"}]}, durability="async")
    assert await count_items(agent.store, agent.scope.namespace(inbox.INBOX)) == 1
    assert (await waiting_now(agent.store))[0] == 0
    failing = {"events": [{"id": "e2", "text": "Are you there?"}]}
    await agent.ainvoke(failing, durability="async", raise_on_failure=False)
    assert (await waiting_now(agent.store))[0] == 1, "its tick failed"
    await agent.ainvoke(None, durability="async")
    assert (await waiting_now(agent.store))[0] == 0
    await agent.ainvoke(None)
    assert await count_items(agent.store, agent.scope.namespace(inbox.INBOX)) == 0
