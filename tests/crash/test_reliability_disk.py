"""A full disk is one clear error: what was acknowledged stays, and work goes on with space."""

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from graph.api import AsyncAgent
from memory.errors import MemoryStoreError
from memory.events import inbox
from memory.facts.semantic import SemanticMemory
from memory.storage.sqlite.files import quick_check
from tests.support.agents import entries, opened
from tests.support.clock import Clock
from tests.support.facts import ANA, draft, nearest_facts
from tests.support.scripted import ScriptedChatModel
from tests.support.writers import Where, whole, writer
from tests.support.writers import opened as opened_memory

SIZE = "16m"
FULL = "database or disk is full"
LIMIT = 400_000
"""Bytes that a file may have, where no disk of one's own can be made."""


class Disk:
    """A small disk; `ballast` fills it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._ballast = folder, folder / "ballast"

    def fill(self, leave: int = 0) -> None:
        """Leave so many bytes free, a page more or less."""
        with self._ballast.open("ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    continue
        os.truncate(self._ballast, max(0, self._ballast.stat().st_size - leave))

    def free(self) -> None:
        self._ballast.unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "circadian-test", str(place)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("only root can make a small disk, and only where mounting is allowed")
    try:
        yield Disk(place)
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


async def test_facts_on_a_full_disk(disk: Disk) -> None:
    where = Where(disk.folder)
    told: list[str] = []
    with opened_memory(where) as memory:
        await write(memory, told, 10)
        for leave in (0, 8_192, 100_000):
            disk.fill(leave)
            with pytest.raises(MemoryStoreError, match=FULL):
                await write(memory, told, 1_000)
            await keeps(memory, told)
            with opened_memory(where) as again:
                await keeps(again, told)
            disk.free()
            await write(memory, told, 3)
            await keeps(memory, told)
        await whole(memory, await memory.all(ANA))
    assert quick_check(disk.folder / "data" / "facts.db") is None


async def write(memory: SemanticMemory, told: list[str], count: int) -> None:
    """Write facts, one after the other; those that were acknowledged are `told`."""
    for _ in range(count):
        text = f"n{len(told)} {'copper ' * 100}"
        [fact] = await memory.add(ANA, [draft(f"n{len(told)}", text)])
        told.append(fact["text"])


async def keeps(memory: SemanticMemory, told: list[str]) -> None:
    assert [fact["text"] for fact in await memory.all(ANA)] == told
    [(found, _)] = await nearest_facts(memory, ANA, told[-1], 1)
    assert found["text"] == told[-1]


async def test_files_that_may_not_grow(tmp_path: Path) -> None:
    """As a full disk, for any user: the limit is that of one process."""
    where = Where(tmp_path)
    told: list[str] = []
    with opened_memory(where) as memory:
        await write(memory, told, 3)
    with writer(where, "limited", write_until_refused) as process:
        said = process.ended().facts
    error = said.pop("error")
    assert error is not None
    assert error.startswith("MemoryStoreError(")
    assert "facts.db: disk I/O error" in error
    assert len(said) > 0
    with opened_memory(where) as memory:
        await keeps(memory, [*told, *(text for text in said.values() if text)])
        await write(memory, told, 1)
        await whole(memory, await memory.all(ANA))


async def write_until_refused(
    memory: SemanticMemory, name: str, tell: Callable[[tuple[str, Any]], None]
) -> None:
    """Write facts until no file may grow any more; tell each, and then the error."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, most))
    try:
        for number in range(1_000):
            text = f"{name}{number} {'copper ' * 100}"
            [fact] = await memory.add(ANA, [draft(f"{name}{number}", text)])
            tell(("done", {fact["id"]: fact["text"]}))
    except MemoryStoreError as error:
        tell(("done", {"error": repr(error)}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


async def test_events_on_a_full_disk(disk: Disk, clock: Clock) -> None:
    """One that cannot be kept is refused, in so many words; those before it are handled once."""
    model = ScriptedChatModel(otherwise=lambda messages, tools: "I see.")
    async with opened(disk.folder / "data", model, clock) as agent:
        await agent.post({"id": "first", "text": "hello"})
        disk.fill(60_000)
        told = ["first"]
        with pytest.raises(MemoryStoreError, match=f"{FULL}.*no event was accepted"):
            await post(agent, told, 1_000)
        assert await waiting(agent) == told
        assert model.calls == []
        disk.free()
        report = (await agent.ainvoke(None))["report"]
        assert [tick["event_id"] for tick in report["ticks"]] == told
        assert report["failures"] == []
        assert len(await entries(agent)) == len(told)


async def post(agent: AsyncAgent, told: list[str], count: int) -> None:
    for number in range(count):
        await agent.post({"id": f"e{number}", "text": "copper " * 100})
        told.append(f"e{number}")


@pytest.mark.parametrize("leave", [0, 24_576, 60_000])
async def test_a_tick_during_which_the_disk_becomes_full(
    disk: Disk, clock: Clock, leave: int
) -> None:
    """Wherever it stops: the event is in the inbox until its tick is done, which is once."""
    full = [False]

    def answer(messages: list[BaseMessage], tools: list[str]) -> str:
        if not full[0]:
            disk.fill(leave)
            full[0] = True
        return "I see."

    model = ScriptedChatModel(otherwise=answer)
    async with opened(disk.folder / "data", model, clock) as agent:
        await agent.post({"id": "first", "text": "hello"})
        with pytest.raises(MemoryStoreError, match=FULL):
            await agent.ainvoke(None)
        # Late enough, the disk becomes full behind the checkpoint that has the tick.
        done = (await agent.aget_state()).values.get("tick") == 1
        assert done or await waiting(agent) == ["first"]
        disk.free()
        # The first of the next runs may end with the failure that the full disk left behind.
        outs = [await agent.ainvoke(None, raise_on_failure=False) for _ in range(2)]
        reports = [out["report"] for out in outs]
        assert reports[-1]["failures"] == []
        ticks = [tick["event_id"] for report in reports for tick in report["ticks"]]
        assert ticks == ["first"]
        assert await waiting(agent) == []
        assert await inbox.set_aside(agent.store, agent.scope) == []
        assert len(await entries(agent)) == 1
        messages = (await agent.aget_state()).values["messages"]
        assert [message.type for message in messages] == ["human", "ai"]


async def waiting(agent: AsyncAgent) -> list[str]:
    items = await inbox.waiting(agent.store, agent.scope, [])
    return [item["event"]["id"] for item in items]
