"""Previews, held nights and undo on PostgreSQL work as in a folder."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from graph.api import AsyncAgent
from memory.events import inbox
from memory.settings import Settings
from tests.graph.test_night_previews import KINDS, live, state_of
from tests.postgres.test_forget_postgres import holding
from tests.support.agents import opened, said
from tests.support.clock import Clock
from tests.support.dreamers import SETTINGS, dreamer, whole
from tests.support.postgres import Postgres
from tests.support.scripted import ScriptedChatModel

GATED = SETTINGS.model_copy(update={"gate_facts": 1, "gate_share": 0.01})


class Lives:
    def __init__(self, server: Postgres, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._server, self._life, self._patch = server, url, monkeypatch
        self.url = ""
        """The newest copy."""

    @asynccontextmanager
    async def copy(
        self, clock: Clock, model: ScriptedChatModel, settings: Settings = SETTINGS
    ) -> AsyncIterator[AsyncAgent]:
        self.url = url = self._server.copy(self._life)
        self._patch.setenv("CIRCADIAN_DATABASE_URL", url)
        try:
            async with opened(None, model, Clock(clock()), settings=settings) as agent:
                yield agent
        finally:
            self._server.drop(url)


@pytest.fixture(scope="module")
def life_in_database(postgres: Postgres) -> Iterator[tuple[str, datetime]]:
    """A day, a night, and long after a second day, as `lived` has them in a folder."""
    clock = Clock()
    url = postgres.database()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CIRCADIAN_DATABASE_URL", url)
        asyncio.run(live(None, clock))
    yield url, clock.now
    postgres.drop(url)


@pytest.fixture
def lives(
    postgres: Postgres,
    life_in_database: tuple[str, datetime],
    monkeypatch: pytest.MonkeyPatch,
    clock: Clock,
) -> Lives:
    url, now = life_in_database
    clock.set(now)
    return Lives(postgres, url, monkeypatch)


async def test_preview_apply_and_undo_work_as_in_a_folder(lives: Lives, clock: Clock) -> None:
    async with lives.copy(clock, dreamer()) as agent:
        slept = await agent.sleep()
        itself = await whole(agent)
    model = dreamer()
    async with lives.copy(clock, model) as agent:
        stood, state = await whole(agent), await state_of(agent)
        facts = await agent.resources.semantic.all(agent.scope)
        tried = await agent.sleep(dry_run=True)
        assert (await whole(agent), await state_of(agent)) == (stood, {**state, "handled": []})
        assert await agent.resources.semantic.all(agent.scope) == facts
        assert {one["kind"] for one in tried["operations"]} == KINDS
        paid = len(model.calls)
        done = await agent.apply_night("last")
        assert len(model.calls) == paid
        assert await whole(agent) == itself
        ids = [one["id"] for one in slept["operations"]]
        assert [one["id"] for one in done["operations"]] == ids
        assert (await agent.undo_night("last"))["status"] == "undone"
        assert await whole(agent) == stood
        assert (await agent.undo_night("last"))["status"] == "undone"
        assert await whole(agent) == stood
        assert kinds(await agent.sleep()) == KINDS


@pytest.mark.parametrize("what", ["preview", "held", "undone"])
async def test_no_table_holds_a_byte_of_what_is_forgotten_after_a_night(
    lives: Lives, clock: Clock, postgres: Postgres, what: str
) -> None:
    async with lives.copy(clock, dreamer(), GATED if what == "held" else SETTINGS) as agent:
        await agent.ainvoke(said("My marmalade is in the cellar.", "Zora", id="zora"))
        report = await agent.sleep(dry_run=what == "preview")
        if what == "undone":
            report = await agent.undo_night("last")
        assert report["status"] == what
        assert holding(postgres, ("marmalade",), lives.url)
        await agent.forget("Zora")
        assert holding(postgres, ("marmalade", "zora"), lives.url) == []


async def test_a_folder_and_a_database_end_in_the_same_memory(
    lives: Lives, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories = []
    async with lives.copy(clock, dreamer()) as agent:
        await agent.sleep(dry_run=True)
        await agent.apply_night("last")
        memories.append(await whole(agent))
    monkeypatch.delenv("CIRCADIAN_DATABASE_URL")
    again = Clock()
    await live(tmp_path / "folder", again)
    async with opened(tmp_path / "folder", dreamer(), again, settings=SETTINGS) as agent:
        await agent.sleep(dry_run=True)
        await agent.apply_night("last")
        memories.append(await whole(agent))
    # A prompt lists memories of equal score in the order in which the database found them.
    for one in memories:
        del one["indexing journal"]  # with the number of the folder's file
        for key in [key for key in one if key.startswith(inbox.PROMPTS)]:
            del one[key]
    assert memories[0] == memories[1]


def kinds(report: Any) -> set[str]:
    return {one["kind"] for one in report["operations"]}
