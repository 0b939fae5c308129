"""What keeps an installation: which home is opened, and the head of a database."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from memory.errors import DatabaseDown, FolderError, InputError, NewerError
from memory.installation.database import DATABASE_SCHEMA, Database, open_database
from memory.installation.folder import FOLDER_SCHEMA, HEAD, DataFolder, open_folder
from memory.installation.opening import Installation, is_made, open_installation
from memory.models.registry import DIMENSION as OFFLINE_DIMENSION
from memory.models.registry import HashingEmbeddings
from memory.settings import environment_only
from memory.storage.postgres.connections import address_of
from tests.support.facts import ANA, DIMENSION, WordEmbeddings, draft, texts
from tests.support.homes import KINDS
from tests.support.source_files import ROOT

Patch = pytest.MonkeyPatch


@pytest.fixture
def url(postgres_url: str, tmp_path: Path, monkeypatch: Patch) -> str:
    """A database that the environment names, beside a data folder."""
    monkeypatch.setenv("CIRCADIAN_DATABASE_URL", postgres_url)
    monkeypatch.setenv("CIRCADIAN_DATA", str(tmp_path / "data"))
    return postgres_url


def opened(url: str, **options: Any) -> Database:
    return open_database(SecretStr(url), **options)


def refusal(url: str, **options: Any) -> str:
    with pytest.raises(FolderError) as caught:
        opened(url, **options)
    said = str(caught.value)
    assert "\n" not in said
    return said


def execute(url: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(statement)
        return found.fetchall() if found.description else []


def test_the_database_variable_moves_everything_there(url: str, tmp_path: Path) -> None:
    assert not is_made(environment_only())
    home = open_installation(environment_only())
    assert isinstance(home, Database)
    assert home.name.endswith("/" + execute(url, "SELECT current_database()")[0][0])
    assert is_made(environment_only())
    assert os.listdir(tmp_path) == []


def test_a_named_data_folder_comes_before_the_variable(url: str, tmp_path: Path) -> None:
    named = tmp_path / "named"
    assert open_installation(environment_only(), data=named).name == str(named)
    assert is_made(environment_only(), named)
    assert not is_made(environment_only())


def test_the_default_is_the_data_folder(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setenv("CIRCADIAN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CIRCADIAN_DATABASE_URL", "")
    assert not is_made(environment_only())
    assert open_installation(environment_only()).name == str(tmp_path / "data")
    assert is_made(environment_only())


@dataclass
class Place:
    """Where an installation is made: in a folder or in a database."""

    where: Path | str

    def open(self, **options: Any) -> Installation:
        if isinstance(self.where, Path):
            return open_folder(self.where, **options)
        return opened(self.where, **options)

    @property
    def head(self) -> tuple[Any, ...]:
        if isinstance(self.where, Path):
            return tuple(json.loads((self.where / HEAD).read_text()).values())
        query = "SELECT schema_version, embedder, dimension FROM circadian_head"
        [row] = execute(self.where, query)
        return row

    def make_newer(self) -> None:
        if isinstance(self.where, Path):
            newer = {"schema_version": FOLDER_SCHEMA + 1, "whatever": ["a newer one", "keeps"]}
            (self.where / HEAD).write_text(json.dumps(newer))
        else:
            execute(self.where, "UPDATE circadian_head SET schema_version = schema_version + 1")


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Every test that takes it holds for both."""
    if request.param == "folder":
        return Place(tmp_path / "a" / "b")
    return Place(request.getfixturevalue("postgres_url"))


def test_a_new_installation_records_its_metadata_and_no_more(place: Place) -> None:
    home = place.open(offline=True)
    schema = FOLDER_SCHEMA if isinstance(home, DataFolder) else DATABASE_SCHEMA
    assert place.head == (schema, "offline", OFFLINE_DIMENSION)
    assert (home.embedder, home.dimension) == ("offline", OFFLINE_DIMENSION)
    assert isinstance(home.semantic.open_embeddings(), HashingEmbeddings)
    home.close()
    if isinstance(place.where, Path):
        assert os.listdir(place.where) == [HEAD]
    else:
        tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        assert execute(place.where, tables) == [("circadian_head",)]


def test_the_embedder_is_changed_on_request_alone(place: Place) -> None:
    given = WordEmbeddings()
    place.open(offline=True)
    with pytest.raises(FolderError, match=r"offline, not openai:x; `circadian reindex --embedder"):
        place.open(embedder="openai:x")
    changed = place.open(embeddings=given, change=True)
    assert place.head[1:] == ("custom:WordEmbeddings", DIMENSION)
    assert (changed.dimension, changed.semantic.open_embeddings()) == (DIMENSION, given)
    changed.close()
    with pytest.raises(FolderError, match=r"from Python \(custom:WordEmbeddings\)"):
        place.open()
    assert place.open(embedder="offline", change=True).dimension == OFFLINE_DIMENSION
    assert place.open().embedder == place.open(change=True).embedder == "offline"


async def test_an_installation_of_a_newer_version_is_refused(place: Place) -> None:
    home = await asyncio.to_thread(place.open, offline=True)
    await asyncio.to_thread(place.make_newer)
    newer = rf"made by a newer Circadian \(schema {place.head[0]}, this .*\); update Circadian$"
    with pytest.raises(NewerError, match=newer):
        await asyncio.to_thread(place.open)
    with pytest.raises(NewerError, match=newer):
        await home.agent_lock("t").__aenter__()


class Met(WordEmbeddings):
    """Embeddings that are asked for their dimension once all have found nothing."""

    barrier = threading.Barrier(8)

    def embed_query(self, text: str) -> list[float]:
        self.barrier.wait(20)
        return super().embed_query(text)


class MetToo(Met):
    pass


def test_concurrent_first_openings_agree(place: Place) -> None:
    def make(number: int) -> Installation | FolderError:
        try:
            return place.open(embeddings=Met() if number % 2 else MetToo())
        except FolderError as error:
            return error

    with ThreadPoolExecutor(8) as pool:
        homes = [*pool.map(make, range(8))]
    made = [one for one in homes if not isinstance(one, FolderError)]
    assert (len(homes), len(made)) == (8, 4)
    assert {one.embedder for one in made} == {place.head[1]}


async def test_all_openers_share_the_facts(place: Place) -> None:
    given = WordEmbeddings()
    first = place.open(embeddings=given)
    given.calls.clear()
    second = place.open(embeddings=WordEmbeddings())
    memory = first.semantic
    assert first.semantic is memory
    [fact] = await memory.add(ANA, [draft("a", "red fox")])
    assert given.calls == [["red fox"]]
    assert texts(await second.semantic.all(ANA)) == ["red fox"]
    await second.semantic.delete(ANA, fact["id"])
    assert await memory.all(ANA) == []
    for home in (first, second):
        home.close()


async def test_closing_leaves_no_threads_connections_or_files(
    url: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    before = set(threading.enumerate())
    home = opened(url, embeddings=WordEmbeddings())
    await home.semantic.add(ANA, [draft("a", "red fox")])
    home.close()
    pool = {one for one in threading.enumerate() if one.name.startswith("asyncio_")}
    assert set(threading.enumerate()) - before - pool == set()
    assert os.listdir(scratch) == []
    others = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    with psycopg.connect(url, autocommit=True) as looking:
        for _ in range(500):  # a server takes a moment to end a connection
            if not (left := looking.execute(others).fetchall()):
                break
            await asyncio.sleep(0.02)
    assert left == []


@pytest.mark.parametrize(
    "url",
    [
        "mysql://ada:s3cret@db.example/circadian",
        "postgresql+psycopg://ada:s3cret@db.example/circadian",
        "postgresql://ada:s3cret@more@db.example/circadian",
        "postgresql://ada:s3cret/more@db.example/circadian",
        "postgresql://ada:s3cret@db.example",
        "s3cret",
    ],
)
def test_a_wrong_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InputError, match=r"postgresql://USER:PASSWORD@HOST") as refused:
        address_of(SecretStr(url))
    assert "s3cret" not in str(refused.value)
    assert "more" not in str(refused.value)


def test_the_password_is_never_shown(caplog: pytest.LogCaptureFixture, monkeypatch: Patch) -> None:
    monkeypatch.setenv("CIRCADIAN_DATABASE_URL", "postgresql://ada:s3cret@127.0.0.1:1/circadian")
    with caplog.at_level(logging.DEBUG), pytest.raises(DatabaseDown) as refused:
        open_installation(environment_only())
    assert "127.0.0.1/circadian cannot be reached" in str(refused.value)
    shown = [str(refused.value), caplog.text, repr(environment_only())]
    shown.append(repr(address_of(SecretStr("postgresql://ada:s3cret@h/d"))))
    assert [text for text in shown if "s3cret" in text] == []


def test_the_url_overrides_our_defaults() -> None:
    url = "postgresql://h/d?connect_timeout=9&application_name=mine"
    conninfo = address_of(SecretStr(url)).conninfo
    assert "connect_timeout=9" in conninfo
    assert "application_name=mine" in conninfo
    assert "connect_timeout=2" in address_of(SecretStr("postgresql://h/d")).conninfo


def test_a_missing_package_is_reported_with_its_extra(url: str, monkeypatch: Patch) -> None:
    needing_it = (
        "memory.installation.database",
        "memory.storage.postgres",
        "memory.facts.postgres",
    )
    for name in [name for name in sys.modules if name.startswith(needing_it)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg_pool", None)
    with pytest.raises(InputError, match=r"psycopg_pool.*pip install '\.\[postgres\]'"):
        open_installation(environment_only())


def test_a_data_folder_needs_no_postgresql_package(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "for name in ('psycopg', 'psycopg_pool', 'langgraph.checkpoint.postgres',"
        " 'langgraph.store.postgres'):\n"
        "    sys.modules[name] = None\n"
        "from graph.agent import open_agent\n"
        "with open_agent(sys.argv[1], model='offline', embedder='offline') as agent:\n"
        "    agent.post({'text': 'hello'})\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "data")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_database_without_pgvector_is_refused(url: str, monkeypatch: Patch) -> None:
    execute(url, "CREATE TABLE pg_available_extensions (name TEXT)")
    with_path = url + "&options=-csearch_path%3Dpublic,pg_catalog"
    assert "has no pgvector" in refusal(with_path, offline=True)
