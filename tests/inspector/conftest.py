"""A life to look at: two people, three days, two nights; lived once, and copied for each test."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory.models.offline.model import OfflineChatModel
from tests.support.agents import opened, said
from tests.support.clock import Clock
from tests.support.visiting import Visitor, visiting


@pytest.fixture(scope="session")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("lived") / "data"

    async def live() -> None:
        clock = Clock()
        async with opened(data, OfflineChatModel(), clock) as agent:
            await agent.ainvoke(said("I live in Paris and work at the harbour."))
            await agent.ainvoke(said("My dog Rex is afraid of thunder.", "Ben"))
            await agent.ainvoke({"request": "sleep"})
            clock.advance(days=1)
            await agent.ainvoke(said("What is my dog Rex afraid of?", "Ben"))
            await agent.ainvoke(
                said("Add a goal: paint the boat before June. I work at the yard now.")
            )
            await agent.ainvoke({"request": "sleep"})
            clock.advance(days=1)
            await agent.ainvoke(said("Tomorrow I go to the dentist."))

    asyncio.run(live())
    return data


@pytest.fixture
async def visitor(lived: Path, tmp_path: Path, clock: Clock) -> AsyncIterator[Visitor]:
    clock.advance(days=2)
    await asyncio.to_thread(shutil.copytree, lived, tmp_path / "data")
    async with visiting(tmp_path / "data", clock) as found:
        yield found
