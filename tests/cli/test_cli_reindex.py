"""`circadian reindex`: another embedder, and vectors for what has none; broken off, it goes on."""

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from langchain_core.embeddings import Embeddings

from graph.agent import open_agent
from graph.use_cases.memories import reindex
from memory.errors import ModelError
from memory.models.offline.model import OfflineChatModel
from memory.models.registry import HashingEmbeddings
from tests.support.clock import Clock
from tests.support.commandline import Done, Run
from tests.support.facts import WordEmbeddings, draft
from tests.support.homes import held
from tests.support.openai_server import DIMENSION, Serve

Patch = pytest.MonkeyPatch
COUNT = 5
ALL = [f"Ada keeps {n} bees" for n in range(COUNT)]
NOTHING = "Nothing waits: every memory has its vector (offline).\n"


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: Patch) -> None:
    monkeypatch.setattr("graph.use_cases.memories.BATCH", 2)


@pytest.fixture
def make(data: Path, clock: Clock) -> Callable[[str | Embeddings], None]:
    """Makes the folder with an embedder, and the facts in it."""

    def run(embedder: str | Embeddings) -> None:
        asyncio.run(_made(data, embedder, clock))

    return run


async def _made(data: Path, embedder: str | Embeddings, clock: Clock) -> None:
    model = OfflineChatModel()
    async with open_agent(data, model=model, embedder=embedder, clock=clock) as agent:
        drafts = [draft(str(n), text) for n, text in enumerate(ALL)]
        await agent.resources.semantic.add(agent.scope, drafts)


def broken_off(run: Run, monkeypatch: Patch, after: int, how: Callable[[], object]) -> Done:
    """A reindex that ends like this once so many memories are embedded."""
    embedded: list[str] = []

    async def embed(self: HashingEmbeddings, texts: list[str]) -> list[list[float]]:
        if len(embedded) == after:
            how()
            await asyncio.sleep(60)
        embedded.extend(texts)
        return self.embed_documents(texts)

    with monkeypatch.context() as patch:
        patch.setattr(HashingEmbeddings, "aembed_documents", embed)
        return run("reindex", "--embedder", "offline")


def head(data: Path) -> tuple[str, int]:
    written = json.loads((data / "folder.json").read_text())
    return written["embedder"], written["dimension"]


def unembedded(run: Run) -> int:
    status = run("status", "--json").document
    return int(status["memory"].get("unembedded", 0))


def test_the_journal_is_indexed_again_where_the_index_is_lost(run: Run, data: Path) -> None:
    for name in ("garden", "home"):
        said = f"The key of the {name} is under the stone."
        run("send", said, "--agent", name)
    for one in data.glob("facts.db*"):
        one.unlink()
    told = run("doctor", "--agent", "home").out
    assert "missing: `circadian reindex` indexes the journal again" in " ".join(told.split())
    assert run("reindex").out == "2 memories embedded (offline).\n"
    assert run("reindex").out == NOTHING
    for name in ("garden", "home"):
        found = run("recall", "key", "--agent", name).out
        assert f"The key of the {name}" in found


def test_another_embedder_is_recorded_and_every_memory_embedded_with_it(
    run: Run, serve: Serve, data: Path, make: Callable[[str], None]
) -> None:
    make("offline")
    server = serve()
    done = run("reindex", "--embedder", "openai:none", "--json")
    lines = run("reindex", "--embedder", "openai:other").out.splitlines()
    assert done.document == {
        "embedder": "openai:none",
        "dimension": DIMENSION,
        "was": "offline",
        "embedded": COUNT,
        "left": 0,
    }
    assert list(done.document) == ["embedder", "dimension", "was", "embedded", "left"]
    assert lines[0] == "The embedder was openai:none and is openai:other now."
    assert head(data) == ("openai:other", DIMENSION)
    asked = [text for request in server.embedded for text in request["input"]]
    assert sorted(one for one in asked if "bees" in one) == sorted([*ALL, *ALL])
    assert unembedded(run) == 0


def test_for_people_it_says_what_was_changed_and_then_that_nothing_waits(
    run: Run, make: Callable[[Embeddings], None]
) -> None:
    make(WordEmbeddings())
    assert run("reindex", "--embedder", "offline").out.splitlines() == [
        "The embedder is offline now.",
        "5 memories embedded (offline).",
    ]
    again = run("reindex")
    assert (again.status, again.out, again.err) == (0, NOTHING, "")
    assert "\x1b" not in again.out


def test_from_python_the_embedder_may_be_an_object(
    data: Path, make: Callable[[str | Embeddings], None]
) -> None:
    make("offline")
    seen: list[tuple[int, int]] = []
    told = asyncio.run(reindex(data, WordEmbeddings(), progress=lambda *far: seen.append(far)))
    assert (told.embedder, told.was, told.embedded) == (
        *("custom:WordEmbeddings", "offline", COUNT),
    )
    assert seen == [(0, 5), (2, 5), (4, 5), (5, 5)]
    again = asyncio.run(reindex(data, WordEmbeddings()))
    assert (again.embedder, again.embedded) == ("custom:WordEmbeddings", 0)
    make(WordEmbeddings())


@pytest.mark.parametrize("embedder", ["nonsense", "openai:text-embedding-3-small"])
def test_an_unavailable_embedder_changes_nothing(
    run: Run, data: Path, make: Callable[[str], None], embedder: str
) -> None:
    make("offline")
    before = head(data)
    done = run("reindex", "--embedder", embedder)
    assert (done.status, done.out) == (2, "")
    assert embedder in done.error
    assert head(data) == before
    assert run("reindex").out == NOTHING


def test_an_interrupted_reindex_says_how_far_it_got_and_can_go_on(
    run: Run, data: Path, make: Callable[[Embeddings], None], monkeypatch: Patch
) -> None:
    make(WordEmbeddings())
    done = broken_off(run, monkeypatch, 4, lambda: signal.raise_signal(signal.SIGINT))
    assert (done.status, done.out) == (130, "")
    assert done.error == (
        "circadian: interrupted: 4 of 5 memories have their vectors; `circadian reindex` goes on "
        "from there, and until then memories are found by their words"
    )
    assert head(data)[0] == "offline"
    assert unembedded(run) == 1
    told = run("status").out
    assert "1 memory waits for a vector, found by words until `circadian reindex`" in told
    assert run("reindex", "--embedder", "offline").out == "1 memory embedded (offline).\n"
    assert unembedded(run) == 0
    found = run("recall", "bees", "--json").document
    assert sorted(one["text"] for one in found) == ALL


def test_after_an_embedder_failure_finished_work_stays(
    run: Run, make: Callable[[Embeddings], None], monkeypatch: Patch
) -> None:
    make(WordEmbeddings())
    ill = Mock(side_effect=ModelError("the embedder is ill"))
    failed = broken_off(run, monkeypatch, 2, ill)
    assert (failed.status, failed.out) == (1, "")
    assert failed.error.startswith(
        "circadian: the embedder is ill; 2 of 5 memories have their vectors, and `circadian "
        "reindex` goes on from there"
    )
    assert unembedded(run) == 3
    assert run("reindex", "--json").document["embedded"] == 3


def test_while_an_agent_runs_elsewhere_nothing_is_changed(
    run: Run, serve: Serve, data: Path, make: Callable[[str], None], monkeypatch: Patch
) -> None:
    make("offline")
    monkeypatch.setenv("CIRCADIAN_LOCK_TIMEOUT", "0")
    before = head(data)
    server = serve()
    for agent in ("other", None):
        with held(data, agent):
            done = run("reindex", "--embedder", "openai:none")
        assert (done.status, done.out) == (1, "")
        assert "is in use by process" in done.error
    assert server.embedded == []
    assert head(data) == before


def test_an_offline_environment_does_not_change_the_embedder(
    run: Run, serve: Serve, data: Path, make: Callable[[str], None], monkeypatch: Patch
) -> None:
    serve()
    make("openai:none")
    monkeypatch.setenv("CIRCADIAN_OFFLINE", "1")
    done = run("reindex", "--json")
    assert (done.document["embedder"], done.document["embedded"]) == ("openai:none", 0)
    assert head(data) == ("openai:none", DIMENSION)


def test_the_environments_embedder_is_the_one_asked_for(
    run: Run, make: Callable[[Embeddings], None], monkeypatch: Patch
) -> None:
    make(WordEmbeddings())
    monkeypatch.setenv("CIRCADIAN_EMBEDDER", "offline")
    assert run("reindex", "--json").document["embedder"] == "offline"
