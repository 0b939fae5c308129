"""A second forget of the same name completes one that was interrupted anywhere."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from graph.api import AsyncAgent
from graph.use_cases import export_memory
from graph.use_cases import forgetting as use_case
from graph.use_cases.forgetting import forget
from memory import audit, forgetting
from memory.errors import BusyError, InputError, MemoryStoreError
from tests.graph.test_forget_bytes import lived as lived
from tests.support.agents import entries, said
from tests.support.clock import Clock
from tests.support.forked import forks
from tests.support.lives import BENS, ZORAS, Lived, at_home, copied, holding

PARTS: list[tuple[Any, str]] = [
    (forgetting, "begin"),
    (forgetting, "erase"),
    (forgetting, "mend"),
    (use_case, "_rewrite_state"),
    (audit, "write"),
    (use_case, "_clean"),
    (forgetting, "clean"),
    (forgetting, "ended"),
]
"""The parts of a forget, in order."""


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def data(tmp_path: Path, lived: Lived, clock: Clock) -> Path:
    clock.set(lived.now)
    return copied(lived, tmp_path / "data")


def dies(part: Callable[..., Awaitable[Any]], *, done: bool) -> Callable[..., Awaitable[Any]]:
    async def dying(*args: Any, **kwargs: Any) -> Any:
        if done:
            await part(*args, **kwargs)
        raise Killed

    return dying


async def break_off(
    agent: AsyncAgent, patched: pytest.MonkeyPatch, module: Any, part: str, *, done: bool
) -> None:
    """Forget Zora, and die before `part` or right after it."""
    with patched.context() as patch:
        patch.setattr(module, part, dies(getattr(module, part), done=done))
        with pytest.raises(Killed):
            await forget(agent.context, "Zora")


async def is_whole(agent: AsyncAgent, data: Path) -> None:
    """Zora is gone, without a trace of the forget itself, and Ben is not."""
    assert holding(data, ZORAS) == []
    assert {one.split(": ")[1] for one in holding(data, BENS)} == set(BENS)
    assert await forgetting.left_over(agent.store, agent.scope) == (None, False)
    facts = [one["text"] for one in await agent.resources.semantic.all(agent.scope)]
    assert len([one for one in facts if one.startswith("Ben said")]) == 3
    said = [one["content"] for one in await entries(agent) if one["source_entity"] == "Ben"]
    assert len(said) >= 3


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize(("module", "part"), PARTS, ids=[name for _, name in PARTS])
async def test_interrupted_at_any_step_a_second_forget_completes(
    data: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, module: Any, part: str, done: bool
) -> None:
    async with at_home(data, clock) as agent:
        counts = (await forget(agent.context, "Zora", dry_run=True))["counts"]
        await break_off(agent, monkeypatch, module, part, done=done)
    async with at_home(data, clock) as agent:
        if done and part in ("_clean", "ended"):
            with pytest.raises(InputError, match="nothing is known"):
                await forget(agent.context, "Zora")
        else:
            await forget(agent.context, "Zora")
        await is_whole(agent, data)
        [line] = [
            one for one in await audit.read(agent.store, agent.scope) if one["what"] == "forgotten"
        ]
        assert line["detail"] == {kind: number for kind, number in counts.items() if number}


def forget_zora(data: Path, now: datetime, parent: Any) -> None:
    """Forget Zora in a process that waits at each step until it may go on."""

    async def act() -> None:
        async with at_home(data, Clock(now)) as agent:
            await forget(
                agent.context, "Zora", on_step=lambda one: [parent.send(one), parent.recv()]
            )

    asyncio.run(act())


async def test_a_second_forget_completes_a_killed_one(data: Path, clock: Clock) -> None:
    ours, theirs = forks().Pipe()
    process = forks().Process(target=forget_zora, args=(data, clock(), theirs), daemon=True)
    process.start()
    while not (await asyncio.to_thread(ours.recv)).startswith("journal and records"):
        ours.send(None)
    process.kill()
    process.join(60)
    async with at_home(data, clock) as agent:
        assert (await forgetting.left_over(agent.store, agent.scope))[0] is not None
        await forget(agent.context, "Zora")
        await is_whole(agent, data)


async def test_the_agent_may_run_between_an_interrupted_and_a_second_forget(
    data: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_home(data, clock) as agent:
        await break_off(agent, monkeypatch, forgetting, "mend", done=True)
        await agent.ainvoke(said("Is my lantern ready?", sender="Zora"))
        await forget(agent.context, "Zora")
        await is_whole(agent, data)


async def test_a_forget_of_somebody_else_completes_an_interrupted_one(
    data: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_home(data, clock) as agent:
        await break_off(agent, monkeypatch, audit, "write", done=False)
        with pytest.raises(InputError, match="nothing is known of 'Carl'"):
            await forget(agent.context, "Carl")
        await is_whole(agent, data)


async def test_an_interrupted_forget_blocks_an_export(
    data: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at_home(data, clock) as agent:
        await break_off(agent, monkeypatch, forgetting, "erase", done=False)
        with pytest.raises(InputError, match="circadian forget 'Zora' --yes"):
            [one async for one in export_memory(agent.context)]


async def test_a_forget_waits_for_a_run_elsewhere_and_gives_up(
    data: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIRCADIAN_LOCK_TIMEOUT", "0")
    async with at_home(data, clock) as one, at_home(data, clock) as other, one.context.lock():
        with pytest.raises(BusyError, match="in use by process"):
            await forget(other.context, "Zora")
        assert (await forget(other.context, "Zora", dry_run=True))["counts"]["events"] == 6
        assert await forgetting.left_over(other.store, other.scope) == (None, False)


async def test_a_file_read_by_another_process_is_reported_and_cleaned_later(
    data: Path, clock: Clock
) -> None:
    async with at_home(data, clock) as agent:
        saver: Any = agent.graph.checkpointer
        await saver.file.rows("PRAGMA busy_timeout = 50")
        reader = sqlite3.connect(data / "checkpoints.db", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM checkpoints").fetchone()
        with pytest.raises(MemoryStoreError, match="forget again"):
            await forget(agent.context, "Zora")
        reader.close()
        await forget(agent.context, "Zora")
        await is_whole(agent, data)
