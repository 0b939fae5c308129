"""A data folder whose table of facts has the first form, in today's program.

`tests/fixtures/first_schema.tar.gz` is such a folder: five messages of three people, a project, a
goal and one night, made with the offline model. Its records have the current form.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from memory.models.offline.model import OfflineChatModel
from tests.support.agents import opened
from tests.support.clock import Clock
from tests.support.commandline import circadian
from tests.support.source_files import FIXTURES, ROOT

FIXTURE = FIXTURES / "first_schema.tar.gz"
ALLERGY, MOVED = "allergic to walnuts", "Lisbon in April 2025"

DYING = """
import asyncio, os, signal, sqlite3, sys

connect, left = sqlite3.connect, int(sys.argv[2])

def counted(*args, **more):
    def count(statement):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    connection = connect(*args, **more)
    if "facts.db" in str(args[0]):
        connection.set_trace_callback(count)
    return connection

sqlite3.connect = counted
from graph.agent import open_agent

async def main():
    async with open_agent(data=sys.argv[1], model="offline") as agent:
        await agent.recall("walnuts")

asyncio.run(main())
"""
"""Opens the folder and recalls; killed at a statement on the facts' file, by its number."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The folder of the first form, as it was left."""
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(tmp_path / "data", filter="data")
    return tmp_path / "data"


async def all_is_there(data: Path) -> None:
    async with opened(data, OfflineChatModel(), Clock()) as agent:
        facts = await agent.resources.semantic.all(agent.scope)
        assert [ALLERGY in facts[0]["text"], MOVED in facts[1]["text"], len(facts)] == [
            True,
            True,
            2,
        ]
        assert ALLERGY in (await agent.recall("Who is allergic?"))[0]["text"]
        # The entry that no night had seen is found, too.
        assert any("Porto" in hit["text"] for hit in await agent.recall("Where did Bram move?"))
        values = (await agent.aget_state()).values
        assert values["tick"] == 5
        assert [goal["description"] for goal in values["goals"].values()] == ["Fix the roof"]
        assert values["projects"]["active"] == "build_shed_garden"
        assert len(values["messages"]) >= 10


def test_everything_is_found_again(data: Path) -> None:
    asyncio.run(all_is_there(data))


def test_it_goes_on_living(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shared = ("--data", data, "--json", "--model", "offline")
    said = circadian(capsys, "send", "Remember that my cat is called Miso", *shared)
    assert (said.status, said.document["tick"]) == (0, 6)
    night = circadian(capsys, "sleep", *shared).document
    assert night["complete"]
    assert len(circadian(capsys, "nights", *shared).document) == 2
    found = circadian(capsys, "recall", "What is the cat called?", *shared).document
    assert "Miso" in found[0]["text"]
    assert circadian(capsys, "doctor", *shared).status == 0
    assert circadian(capsys, "forget", "Bram", "--yes", *shared).status == 0
    held = [one for one in data.rglob("*") if one.is_file() and b"Lisbon" in one.read_bytes()]
    assert held == []


@pytest.mark.parametrize(
    "statement", [12, 25, *(pytest.param(one, marks=pytest.mark.slow) for one in range(1, 60, 3))]
)
def test_killed_while_the_folder_is_brought_up_to_date_nothing_is_lost(
    data: Path, statement: int
) -> None:
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", DYING, str(data), str(statement)],
            cwd=ROOT,
            env={**os.environ, "CIRCADIAN_OFFLINE": "1"},
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr.decode()[-2000:]
    asyncio.run(all_is_there(data))
