"""A data folder of the first form, opened by today's program.

`tests/fixtures/first_schema.tar.gz` is such a folder: five messages of three people, a project, a
goal and one night, made with the offline model. Every later form must still open it.
"""

import asyncio
import tarfile
from pathlib import Path

import pytest

from memory.models.offline.model import OfflineChatModel
from tests.support.agents import opened
from tests.support.clock import Clock
from tests.support.commandline import circadian
from tests.support.source_files import FIXTURES

FIXTURE = FIXTURES / "first_schema.tar.gz"
ALLERGY, MOVED = "allergic to walnuts", "Lisbon in April 2025"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with tarfile.open(FIXTURE) as archive:
        archive.extractall(tmp_path / "data", filter="data")
    return tmp_path / "data"


async def all_is_there(data: Path) -> None:
    async with opened(data, OfflineChatModel(), Clock()) as agent:
        facts = [fact["text"] for fact in await agent.resources.semantic.all(agent.scope)]
        assert [sum(text in fact for fact in facts) for text in (ALLERGY, MOVED)] == [1, 1]
        assert len(facts) == 4
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
