"""Every command that writes, killed at random moments: it is finished by the same command again.

What is there then, in every namespace, in the facts and in the state, is what an undisturbed run
leaves. `doctor` names what was broken off.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import shutil
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from graph.api import AsyncAgent
from graph.use_cases import FileLines, runs
from graph.use_cases.forgetting import forget_agent
from graph.use_cases.nights import apply_night, sleep
from graph.use_cases.status import half_done
from memory.errors import InputError
from memory.events import inbox
from memory.state import at_rest
from memory.storage import shelves
from memory.transfer import line_of
from tests.support.agents import said
from tests.support.clock import Clock
from tests.support.forked import forks
from tests.support.lives import at_home, live
from tests.support.postgres import Postgres

KILLS = 60
SECONDS = 60.0
NAMED_AT_RANDOM = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|lc_run-[-0-9a-f]+"
    r"|scripted_[0-9a-f]{8}_\d+_\d+"
    r"|audit_\d{8}_[0-9a-f]{10}"
    r'|(?<="file": )\d+'
    r'|(?<="duration_ms": )\d+|(?<="seconds": )[\d.e-]+'
)
"""Ids of facts and messages, of audit lines, which are made of them, and of files; times taken."""

RECALLED = ("probes", "tick_reports", "tick_prompts")
"""What a tick recalled and spent. One that begins anew recalls anew, its first entry included."""
STATE = ("mode", "phase", "tick", "projects", "session_memory", "parked")


@dataclass(frozen=True)
class Home:
    """A folder in which a life was lived, or a copy of it, or the same in a database."""

    folder: Path
    now: str
    postgres: Postgres | None = None
    url: str | None = None

    def copy(self, name: str) -> Home:
        if self.postgres is None:
            return replace(self, folder=Path(shutil.copytree(self.folder, f"{self.folder}-{name}")))
        assert self.url is not None
        made = self.postgres.copy(self.url)
        return replace(self, url=made, folder=Path(f"{self.folder}-{name}"))

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.postgres is not None and self.url is not None:
            self.postgres.drop(self.url)

    async def run(self, act: Callable[[AsyncAgent], Awaitable[Any]], agent: str) -> Any:
        named = {"CIRCADIAN_DATABASE_URL": self.url} if self.url else {}
        data = None if self.url else self.folder / "data"
        with patch.dict(os.environ, named):
            async with at_home(data, Clock(datetime.fromisoformat(self.now)), agent) as opened:
                return await act(opened)


async def fact_of(agent: AsyncAgent, words: str) -> str:
    facts = await agent.resources.semantic.all(agent.scope)
    held = [one["id"] for one in facts if words in one["text"] and one["invalid_at"] is None]
    return held[0] if held else "gone"


async def correct(agent: AsyncAgent) -> Any:
    facts = await agent.resources.semantic.all(agent.scope)
    [old] = [one["id"] for one in facts if "Turin leaves" in one["text"]]
    return await agent.correct(old, "My train leaves on Sunday.", by="Ben")


async def replay(agent: AsyncAgent) -> Any:
    for number, text in enumerate(("I grow tomatoes.", "My train to Turin is late.")):
        await agent.ainvoke(said(text, sender="Ben", id=f"replayed-{number}"))


async def forget_fact(agent: AsyncAgent) -> Any:
    return await agent.forget_fact(await fact_of(agent, "tomatoes on my balcony"))


async def take(agent: AsyncAgent) -> Any:
    return await agent.import_memory(FileLines(Path(os.environ["KILLED_FILE"])))


async def apply(agent: AsyncAgent) -> Any:
    try:
        await apply_night(agent.context, "last")
    except InputError:  # It was applied: its run goes on, and nothing else.
        await runs.run(agent.context.for_a_night())


async def run(agent: AsyncAgent) -> Any:
    while (await agent.ainvoke(None))["report"]["ticks"]:
        pass


async def approve(agent: AsyncAgent) -> Any:
    return await answer(agent, agent.approve)


async def refuse(agent: AsyncAgent) -> Any:
    return await answer(agent, agent.refuse)


async def answer(agent: AsyncAgent, said_so: Callable[[str], Awaitable[Any]]) -> Any:
    """Answer the question that waits; where none does, let the run go on that took the answer."""
    parked = (await agent.aget_state()).values["parked"]
    if parked:
        await said_so(parked[0]["question"]["id"])
    return await agent.ainvoke(said("Thank you.", sender="Ben", id="thanks"))


COMMANDS: dict[str, Callable[[AsyncAgent], Awaitable[Any]]] = {
    "send": lambda agent: agent.ainvoke(said("I grow tomatoes.", sender="Ben", id="sent")),
    "post": lambda agent: agent.post({"id": "posted", "sender": "Ben", "text": "Hello"}),
    "replay": replay,
    "approve": approve,
    "refuse": refuse,
    "correct": correct,
    "forget": lambda agent: agent.forget("Zora"),
    "forget --fact": forget_fact,
    "undo": lambda agent: agent.undo_night("last"),
    "sleep --apply": apply,
    "import": take,
    "run": run,
    "sleep": lambda agent: agent.ainvoke({"request": "sleep"}),
    "agents delete": lambda agent: forget_agent(agent.context),
}


PREPARED: dict[str, Callable[[AsyncAgent], Awaitable[Any]]] = {
    "sleep --apply": lambda agent: sleep(agent.context, dry_run=True),
    # A message that waits would wake it, and the same command again would be a second night.
    "sleep": lambda agent: COMMANDS["run"](agent),
}
"""What is done before the command."""


def agent_of(command: str) -> str:
    return "second" if command == "import" else "default"


def child(home: Home, command: str, file: str, ready: Any) -> None:
    """Do the command in a process; tells when it begins and when it has ended."""

    async def act(agent: AsyncAgent) -> None:
        ready.send("begun")
        await COMMANDS[command](agent)
        ready.send("done")

    os.environ["KILLED_FILE"] = file
    asyncio.run(home.run(act, agent_of(command)))


def kill(home: Home, command: str, file: Path, after: float | None) -> float:
    """Do the command in a process and kill it; without `after` wait for its end. Seconds taken."""
    read, write = forks().Pipe(duplex=False)
    process = forks().Process(
        target=child, args=(replace(home, postgres=None), command, str(file), write), daemon=True
    )
    process.start()
    write.close()
    assert read.poll(SECONDS), f"{command} did not begin"
    assert read.recv() == "begun"
    began = time.monotonic()
    if after is None:
        assert read.poll(SECONDS), f"{command} did not end"
        read.recv()
        process.join(SECONDS)
    else:
        time.sleep(after)
    taken = time.monotonic() - began
    process.kill()
    process.join(SECONDS)
    read.close()
    return taken


async def again(agent: AsyncAgent, command: str) -> None:
    """The same command once more; what is done already may refuse it."""
    try:
        await COMMANDS[command](agent)
    except InputError as error:
        if "interrupted" in str(error):
            raise


async def everything(agent: AsyncAgent, command: str) -> Counter[str]:
    """All that the agent holds, a line each.

    Of an approved call that was under way when its process was killed, nobody knows what became of
    it: it is not made again, and the tick says so. So there only what is kept is compared, and not
    what it says.
    """
    lines: list[str] = []
    settled = set[str]()
    async for shelf in shelves(agent.store, agent.scope):
        if shelf.labels[0] == inbox.HANDLED:
            settled.update(one.key for one in shelf.items)
        for one in shelf.items:
            # An audit line's key ends with a hash of what it says, the ids of facts included.
            key = one.key.rpartition("_")[0] if shelf.labels[0] == "audit" else one.key
            kept = command == "approve" or shelf.labels[0] in RECALLED
            lines.append(
                json.dumps([shelf.labels, key, None if kept else one.value], sort_keys=True)
            )
    if command != "approve":
        facts = await agent.resources.semantic.all(agent.scope)
        lines += [json.dumps(dict(one), sort_keys=True) for one in facts]
        state = at_rest((await agent.aget_state()).values)
        lines += [f"{key}: {state.get(key)!r}" for key in STATE]
        # A mark that was settled at a run's end stands until the next run, if there is one.
        lines += [
            f"handled: {one!r}" for one in state.get("handled", []) if one["id"] not in settled
        ]
        lines += [f"{one.type}: {one.text}" for one in state.get("messages", [])]
        lines += [f"{one['id']}: {one['description']}" for one in state.get("goals", {}).values()]
    return Counter(NAMED_AT_RANDOM.sub("#", line) for line in lines)


@pytest.fixture(params=["folder", "database"])
def lived(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Home, Path]]:
    """A home in which a life was lived, and that life as a file."""
    clock = Clock()
    home = Home(tmp_path / "lived", clock().isoformat())
    home.folder.mkdir()
    if request.param == "database":
        postgres: Postgres = request.getfixturevalue("postgres")
        home = replace(home, postgres=postgres, url=postgres.database())

    async def once(agent: AsyncAgent) -> list[str]:
        await live(agent, clock)
        return [line_of(one) async for one in agent.export_memory()]

    # The life's clock goes on; it is that of the agent while it is lived.
    with patch("tests.crash.test_random_kills.Clock", lambda at: clock):
        lines = asyncio.run(home.run(once, "default"))
    file = tmp_path / "life.jsonl"
    file.write_text("\n".join(lines) + "\n")
    yield replace(home, now=clock().isoformat()), file
    home.remove()


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("command", COMMANDS)
def test_sixty_random_kills(
    command: str, lived: tuple[Home, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, file = lived
    monkeypatch.setenv("KILLED_FILE", str(file))
    chance, start = random.Random(18), home_without_life(home) if command == "import" else home
    if command in PREPARED:
        asyncio.run(home.run(PREPARED[command], "default"))
    undisturbed = start.copy("whole")
    seconds = kill(undisturbed, command, file, None)
    expected = asyncio.run(finished(undisturbed, command))[0]
    undisturbed.remove()
    told, wrong = Counter[str](), list[str]()
    for number in range(KILLS):
        own, after = start.copy(str(number)), chance.uniform(0.0, seconds)
        kill(own, command, file, after)
        left, names = asyncio.run(finished(own, command))
        told.update(names)
        lacks, has = sorted(expected - left)[:3], sorted(left - expected)[:3]
        if left != expected:
            wrong.append(f"killed after {after:.3f} of {seconds:.3f} s: {lacks}, {has}")
        own.remove()
    assert wrong == [], "\n".join([f"{len(wrong)} of {KILLS}", *wrong])
    print(f"{command}: {KILLS} kills, broken off: {dict(told)}")  # noqa: T201  # its figures


def home_without_life(home: Home) -> Home:
    folder = home.folder.with_name("empty")
    folder.mkdir()
    return replace(
        home, folder=folder, url=home.postgres.database() if home.postgres is not None else None
    )


async def finished(home: Home, command: str) -> tuple[Counter[str], list[str]]:
    """What is there after the command was repeated, and what doctor says was broken off."""

    async def act(agent: AsyncAgent) -> tuple[Counter[str], list[str]]:
        names = list(await half_done(agent.context))
        await again(agent, command)
        assert await half_done(agent.context) == {}
        return await everything(agent, command), names

    found: tuple[Counter[str], list[str]] = await home.run(act, agent_of(command))
    return found
