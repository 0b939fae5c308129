"""The commands on a database: what CIRCADIAN_DATABASE_URL names takes the data folder's place."""

import asyncio
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from graph.api import open_agent
from memory.installation.database import Examined
from tests.support.commandline import Done, circadian
from tests.support.facts import WordEmbeddings, draft

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
PARIS, OSLO = "Ada lives in Paris", "Ada lives in Oslo"


@pytest.fixture
def database(postgres_url: str, monkeypatch: Patch, tmp_path: Path) -> str:
    monkeypatch.setenv("CIRCADIAN_DATABASE_URL", postgres_url)
    monkeypatch.chdir(tmp_path)
    return postgres_url


@pytest.fixture
def facts(database: str) -> None:
    """One fact, with vectors of embeddings that no command has."""

    async def make() -> None:
        async with open_agent(model="offline", embedder=WordEmbeddings()) as agent:
            await agent.resources.semantic.add(agent.scope, [draft("paris", PARIS)])

    asyncio.run(make())


def checks(done: Done) -> dict[str, Any]:
    found = {check["name"]: check for check in done.document["checks"]}
    assert len(found) == len(done.document["checks"])
    return found


def test_memory_is_reindexed_searched_and_mended_there(
    capsys: Capture, facts: None, tmp_path: Path
) -> None:
    done = circadian(capsys, "reindex", "--embedder", "offline")
    assert (done.status, done.out.splitlines()[-1]) == (0, "1 memory embedded (offline).")
    (paris,) = circadian(capsys, "recall", "Where does Ada live?", "--json").document
    assert paris["text"] == PARIS
    assert circadian(capsys, "correct", paris["id"][:8], OSLO).status == 0
    listed = circadian(capsys, "recall", "--all", "--json").document
    new, old = [one for one in listed if one["kind"] == "fact"]
    assert (new["text"], old["superseded_by"]) == (OSLO, new["id"])
    assert list(tmp_path.iterdir()) == []


def test_a_data_folder_that_is_named_comes_first(capsys: Capture, facts: None) -> None:
    done = circadian(capsys, "recall", "--all", "--data", "elsewhere")
    assert (done.status, "no data folder at elsewhere" in done.error) == (2, True)


def test_the_doctor_names_the_server_and_what_it_has(capsys: Capture, facts: None) -> None:
    circadian(capsys, "reindex", "--embedder", "offline")
    done = circadian(capsys, "doctor", "--json")
    found = checks(done)
    assert done.status == 0
    assert "PostgreSQL 18" in found["database"]["detail"]
    assert "pgvector 0." in found["database"]["detail"]
    assert found["vectors"]["detail"] == "none is missing (offline, 256 numbers each)"
    assert list(found)[-2:] == ["lock", "inbox"]
    assert "data folder" not in found


def test_before_anything_is_kept_it_says_so(capsys: Capture, database: str) -> None:
    found = checks(circadian(capsys, "doctor", "--json"))
    assert (found["memory"]["ok"], found["memory"]["note"]) == (True, True)
    done = circadian(capsys, "recall", "bees")
    assert done.status == 2
    assert "the database holds nothing of Circadian yet" in done.error


@pytest.mark.parametrize(
    ("vector", "connections", "ok", "says"),
    [
        (None, 1, False, "no pgvector: install it on the server"),
        ("0.8.0", 95, True, "95 of 100 connections open, a pool takes up to 8, few are left"),
    ],
)
def test_doctor_names_what_the_server_lacks(
    capsys: Capture,
    database: str,
    monkeypatch: Patch,
    vector: str | None,
    connections: int,
    ok: bool,
    says: str,
) -> None:
    seen = Examined("host/db", "18.0", vector, connections, 100, 0.01)
    monkeypatch.setattr(import_module("graph.cli.commands.doctor"), "examine", lambda url: seen)
    found = checks(circadian(capsys, "doctor", "--json"))["database"]
    assert (found["ok"], says in found["detail"]) == (ok, True)


def test_a_database_that_is_down_is_one_problem_without_its_password(
    capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("CIRCADIAN_DATABASE_URL", "postgresql://ada:sesame@127.0.0.1:1/memories")
    done = circadian(capsys, "doctor", "--json")
    found = checks(done)
    assert done.status == 1
    assert {name for name, check in found.items() if not check["ok"]} == {"database"}
    assert "the database 127.0.0.1/memories cannot be reached" in found["database"]["detail"]
    for command in (["recall", "bees"], ["reindex"], ["correct", "x", OSLO], ["status"]):
        failed = circadian(capsys, *command)
        assert (failed.status, "cannot be reached" in failed.error) == (1, True)
        assert "sesame" not in failed.err + done.out


def test_an_invalid_address_is_a_problem(capsys: Capture, monkeypatch: Patch) -> None:
    monkeypatch.setenv("CIRCADIAN_DATABASE_URL", "sesame")
    found = checks(circadian(capsys, "doctor", "--json"))["database"]
    assert not found["ok"]
    assert "must read postgresql://" in found["detail"]
    assert "sesame" not in found["detail"]
