"""Semantic memory on real SQLite, FAISS and Mem0."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel

from memory.errors import InputError, MemoryStoreError, ModelError
from memory.records import Fact
from memory.scope import Scope
from memory.semantic import SemanticMemory
from tests.facts import (
    ANA,
    BEN,
    WordEmbeddings,
    acknowledged,
    draft,
    memory_at,
    running,
    texts,
    vector_of,
)


@pytest.fixture
def embeddings() -> WordEmbeddings:
    return WordEmbeddings()


@pytest.fixture
async def memory(tmp_path: Path, embeddings: WordEmbeddings) -> AsyncIterator[SemanticMemory]:
    opened = memory_at(tmp_path, embeddings)
    yield opened
    opened.close()


def history(folder: Path) -> list[tuple[str, str]]:
    """Event and new text of every row of Mem0's history."""
    with sqlite3.connect(folder / "mem0" / "history.db") as connection:
        rows = connection.execute("SELECT event, new_memory FROM history ORDER BY rowid").fetchall()
    connection.close()
    return rows


async def test_every_field_of_a_fact_comes_back(memory: SemanticMemory) -> None:
    given = draft(
        "op-1",
        'Ana\'s "boat" is\nblue \U0001f6a4',
        source_entries=["e1", "e2"],
        source_events=["v2", "v1"],
        speaker="Ana López",
        entities=["Ana", "boat"],
        trust=0.6,
        importance=9,
    )
    [fact] = await memory.add(ANA, [given])
    assert fact == {**given, "id": fact["id"], "invalid_at": None, "superseded_by": None}
    assert await memory.get(ANA, fact["id"]) == fact
    assert await memory.all(ANA) == [fact]
    assert await memory.by_op(ANA, ["op-1", "op-2"]) == {"op-1": fact}
    assert [one for one, _ in await memory.search(ANA, "boat", 1)] == [fact]
    assert [one for one, _ in await memory.keywords(ANA, "boat", 1)] == [fact]


async def test_facts_outlive_the_process_that_wrote_them(
    memory: SemanticMemory, tmp_path: Path
) -> None:
    written = await memory.add(ANA, [draft("a", "red fox"), draft("b", "blue whale")])
    memory.close()
    again = memory_at(tmp_path)
    assert await again.all(ANA) == written
    assert texts([one for one, _ in await again.search(ANA, "whale", 1)]) == ["blue whale"]
    again.close()
    assert await memory.count(ANA) == 2, "closed, it opens again when used"


async def test_the_same_operation_twice_is_one_fact(
    memory: SemanticMemory, embeddings: WordEmbeddings, tmp_path: Path
) -> None:
    first = await memory.add(ANA, [draft("a", "red fox"), draft("b", "blue whale")])
    second = await memory.add(
        ANA, [draft("b", "changed"), draft("c", "owl"), draft("a", "changed"), draft("c", "hawk")]
    )
    assert second == [first[1], second[1], first[0], second[1]]
    assert texts(await memory.all(ANA)) == ["red fox", "blue whale", "owl"]
    assert history(tmp_path) == [("ADD", "red fox"), ("ADD", "blue whale"), ("ADD", "owl")]
    await memory.add(ANA, [draft("a", "red fox")])
    assert embeddings.calls == [["red fox", "blue whale"], ["owl", "hawk"]]


async def test_the_same_operation_in_two_threads_at_once_is_one_fact(
    memory: SemanticMemory, tmp_path: Path
) -> None:
    ops = [f"op-{number}" for number in range(5)]
    results: list[list[Fact]] = []

    def write() -> None:
        drafts = [draft(op, f"fact of {op}") for op in ops]
        results.append(asyncio.run(memory.add(ANA, drafts)))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all(one == results[0] for one in results)
    assert await memory.count(ANA) == len(history(tmp_path)) == 5


async def test_many_tasks_write_and_search_together_and_nothing_is_mixed_up(
    memory: SemanticMemory,
) -> None:
    scopes = [Scope(f"user-{number}", "agent") for number in range(8)]

    async def live(scope: Scope) -> None:
        for number in range(4):
            await memory.add(scope, [draft(str(number), f"{scope.user} fact{number}")])
            [(fact, score)] = await memory.search(scope, f"{scope.user} fact{number}", 1)
            assert (fact["text"], round(score, 3)) == (f"{scope.user} fact{number}", 1.0)

    await asyncio.gather(*(live(scope) for scope in scopes))
    assert [await memory.count(scope) for scope in scopes] == [4] * 8


async def test_new_texts_are_embedded_in_one_call(
    memory: SemanticMemory, embeddings: WordEmbeddings
) -> None:
    await memory.add(ANA, [draft(str(one), f"text {one % 3}") for one in range(6)])
    assert embeddings.calls == [["text 0", "text 1", "text 2"]]


async def test_one_agents_facts_are_closed_to_every_other(memory: SemanticMemory) -> None:
    [fact] = await memory.add(ANA, [draft("a", "red fox")])
    for other in (BEN, Scope(ANA.user, BEN.thread), Scope(BEN.user, ANA.thread)):
        assert await memory.get(other, fact["id"]) is None
        assert await memory.by_op(other, ["a"]) == {}
        assert (await memory.all(other), await memory.count(other)) == ([], 0)
        assert await memory.search(other, "red fox", 5) == []
        assert await memory.keywords(other, "red fox", 5) == []
        with pytest.raises(InputError, match="no fact"):
            await memory.update(other, fact["id"], {"trust": 0.1})
        with pytest.raises(InputError, match="no fact"):
            await memory.delete(other, fact["id"])
        [own] = await memory.add(other, [draft("a", "of another")])
        assert own["id"] != fact["id"]
    assert await memory.all(ANA) == [fact]


async def test_ids_with_whitespace_or_nothing_are_scopes_of_their_own(
    memory: SemanticMemory,
) -> None:
    users = ["ana b", "ana%20b", "ana\tb", " ana b", "ana b ", "anab", "", " ", "%", "\u00a0"]
    for user in users:
        await memory.add(Scope(user, "the agent"), [draft("a", f"of {user!r}")])
    for user in users:
        assert texts(await memory.all(Scope(user, "the agent"))) == [f"of {user!r}"]


async def test_an_update_changes_what_is_named_and_nothing_else(
    memory: SemanticMemory, embeddings: WordEmbeddings
) -> None:
    old, other = await memory.add(ANA, [draft("a", "red fox"), draft("b", "blue whale")])
    new = await memory.update(
        ANA, old["id"], {"invalid_at": "2026-03-03T00:00:00+00:00", "superseded_by": other["id"]}
    )
    assert new == {**old, "invalid_at": new["invalid_at"], "superseded_by": other["id"]}
    assert await memory.all(ANA) == [new, other]
    assert len(embeddings.calls) == 1, "the text stays, so does its vector"
    [(found, score)] = await memory.search(ANA, "red fox", 1, include_superseded=True)
    assert (found, round(score, 3)) == (new, 1.0)


async def test_a_new_text_is_embedded_and_found_by_its_words(
    memory: SemanticMemory, embeddings: WordEmbeddings
) -> None:
    [old] = await memory.add(ANA, [draft("a", "red fox")])
    new = await memory.update(ANA, old["id"], {"text": "blue whale"})
    assert new == {**old, "text": "blue whale"}
    assert embeddings.calls == [["red fox"], ["blue whale"]]
    [(found, score)] = await memory.search(ANA, "blue whale", 1)
    assert (found, round(score, 3)) == (new, 1.0)
    assert await memory.keywords(ANA, "fox", 5) == []
    assert [one for one, _ in await memory.keywords(ANA, "whale", 5)] == [new]


@pytest.mark.parametrize(
    "changes", [{"id": "x"}, {"op": "x"}, {"colour": "red"}, {"importance": "high"}, {"speaker": 3}]
)
async def test_a_change_that_breaks_the_form_changes_nothing(
    memory: SemanticMemory, changes: dict[str, Any]
) -> None:
    [fact] = await memory.add(ANA, [draft("a", "red fox")])
    with pytest.raises(InputError):
        await memory.update(ANA, fact["id"], changes)
    assert await memory.all(ANA) == [fact]


async def test_a_superseded_fact_leaves_recall_and_keeps_its_record(
    memory: SemanticMemory,
) -> None:
    old, new = await memory.add(ANA, [draft("a", "red fox"), draft("b", "red panda")])
    await memory.update(ANA, old["id"], {"invalid_at": "2026-03-03", "superseded_by": new["id"]})
    for look in (memory.search, memory.keywords):
        assert texts([one for one, _ in await look(ANA, "red", 5)]) == ["red panda"]
        everything = await look(ANA, "red", 5, include_superseded=True)
        assert sorted(texts([one for one, _ in everything])) == ["red fox", "red panda"]
    assert await memory.count(ANA) == 2


async def test_a_deleted_fact_leaves_no_text_behind(memory: SemanticMemory, tmp_path: Path) -> None:
    gone, kept = await memory.add(ANA, [draft("a", "red fox"), draft("b", "blue whale")])
    await memory.update(ANA, gone["id"], {"text": "red panda"})
    await memory.delete(ANA, gone["id"])
    assert await memory.all(ANA) == [kept]
    assert await memory.keywords(ANA, "red", 5) == []
    assert history(tmp_path) == [("ADD", "blue whale")]
    with pytest.raises(InputError, match="no fact"):
        await memory.delete(ANA, gone["id"])
    [again] = await memory.add(ANA, [draft("a", "red fox")])
    assert again["id"] != gone["id"]


@pytest.mark.parametrize(
    "broken",
    [
        draft("a", "  "),
        draft("a", "fox", source_entries=[], source_events=[]),
        draft("a", "fox", trust=float("nan")),
        draft("a", "fox", importance="high"),
        draft("a", "half a pair \ud83d"),
        {"op": "a", "text": "fox"},
    ],
)
async def test_a_broken_draft_is_refused_with_its_whole_batch(
    memory: SemanticMemory, embeddings: WordEmbeddings, broken: Any
) -> None:
    with pytest.raises(InputError):
        await memory.add(ANA, [draft("b", "blue whale"), broken])
    assert await memory.count(ANA) == 0
    assert embeddings.calls == []


async def test_an_error_in_the_middle_of_a_batch_leaves_none_of_it(
    memory: SemanticMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await memory.add(ANA, [draft("a", "red fox")])
    from memory.vectorstore.sqlite import FactsDb

    insert = FactsDb.insert

    def fail_at_owl(self: FactsDb, fact_id: str, vector: bytes, payload: dict[str, Any]) -> None:
        if payload["data"] == "owl":
            raise sqlite3.OperationalError("database or disk is full")
        insert(self, fact_id, vector, payload)

    monkeypatch.setattr(FactsDb, "insert", fail_at_owl)
    with pytest.raises(MemoryStoreError, match="disk is full"):
        await memory.add(ANA, [draft("b", "blue whale"), draft("c", "owl")])
    assert texts(await memory.all(ANA)) == ["red fox"]
    assert history(tmp_path) == [("ADD", "red fox")]
    monkeypatch.undo()
    await memory.add(ANA, [draft("b", "blue whale"), draft("c", "owl")])
    assert texts(await memory.all(ANA)) == ["red fox", "blue whale", "owl"]


class BrokenEmbeddings(WordEmbeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return {"few": [vector_of("x")], "short": [[1.0]] * len(texts)}[texts[0]]


@pytest.mark.parametrize(("first", "says"), [("few", "1 vectors for 2"), ("short", "shape")])
async def test_what_a_broken_embedder_gives_is_not_stored(
    tmp_path: Path, first: str, says: str
) -> None:
    memory = memory_at(tmp_path, BrokenEmbeddings())
    with pytest.raises((MemoryStoreError, ModelError), match=says):
        await memory.add(ANA, [draft("a", first), draft("b", "other")])
    assert await memory.count(ANA) == 0
    memory.close()


async def test_a_file_that_is_no_memory_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "facts.db").write_text("not a database at all, but text that is long enough\n" * 50)
    with pytest.raises(MemoryStoreError, match=r"facts\.db: file is not a database"):
        await memory_at(tmp_path).count(ANA)
    with pytest.raises(MemoryStoreError, match="unable to open"):
        await memory_at(tmp_path / "nowhere").count(ANA)


async def test_it_opens_nothing_before_it_is_used(tmp_path: Path) -> None:
    def fail() -> Any:
        raise AssertionError("embeddings were loaded")

    memory = SemanticMemory(
        tmp_path / "facts.db", mem0_dir=tmp_path / "mem0", dimension=3, embeddings=fail
    )
    assert os.listdir(tmp_path) == []
    assert await memory.count(ANA) == 0
    assert await memory.add(ANA, []) == []
    memory.close()


async def test_two_folders_in_one_process_share_nothing(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = memory_at(tmp_path / "one"), memory_at(tmp_path / "two")
    await one.add(ANA, [draft("a", "red fox")])
    await two.add(ANA, [draft("a", "blue whale")])
    assert (texts(await one.all(ANA)), texts(await two.all(ANA))) == (["red fox"], ["blue whale"])
    one.close()
    two.close()
    assert history(tmp_path / "one") == [("ADD", "red fox")]
    assert history(tmp_path / "two") == [("ADD", "blue whale")]


ALONE = """
import asyncio, json, logging, sys, threading, warnings
warnings.simplefilter("error")
logging.basicConfig(level=logging.INFO)
from pathlib import Path
from tests.facts import ANA, draft, memory_at
memory = memory_at(Path(sys.argv[1]))
async def read():
    await memory.search(ANA, "fox", 1)
    await memory.keywords(ANA, "fox", 1)
    return await memory.count(ANA)
async def write():
    [fact] = await memory.add(ANA, [draft("a", "red fox")])
    await memory.update(ANA, fact["id"], {"trust": 0.5})
    await memory.delete(ANA, fact["id"])
asyncio.run(read())
before = "mem0" in sys.modules
asyncio.run(write())
memory.close()
from mem0.memory import telemetry
print(json.dumps({
    "mem0 read": before,
    "mem0 written": "mem0" in sys.modules,
    "telemetry": telemetry.MEM0_TELEMETRY,
    "posthog": telemetry.client_telemetry.posthog is not None,
    "threads": [one.name for one in threading.enumerate() if "asyncio" not in one.name],
}))
"""


def test_it_writes_in_its_folder_alone_and_tells_nobody(tmp_path: Path) -> None:
    folder, home, temporary = (tmp_path / name for name in ("data", "home", "tmp"))
    for one in (folder, home, temporary):
        one.mkdir()
    with running(ALONE, str(folder), HOME=str(home), TMPDIR=str(temporary)) as process:
        out, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert json.loads(out) == {
        "mem0 read": False,
        "mem0 written": True,
        "telemetry": False,
        "posthog": False,
        "threads": ["MainThread"],
    }
    assert list(home.iterdir()) == list(temporary.iterdir()) == []
    assert "spaCy" not in error


WRITER = """
import asyncio, sys
from pathlib import Path
from memory.scope import Scope
from tests.facts import draft, memory_at
async def main():
    memory, user = memory_at(Path(sys.argv[1])), sys.argv[2]
    for number in range(int(sys.argv[3])):
        await memory.add(Scope(user, "agent"), [draft(str(number), f"{user} fact{number}")])
        print(number, flush=True)
    memory.close()
asyncio.run(main())
"""


async def test_a_reader_sees_what_two_writing_processes_write(tmp_path: Path) -> None:
    memory = memory_at(tmp_path)
    assert await memory.search(ANA, "fact", 1) == []
    with ExitStack() as stack:
        users = {user: running(WRITER, str(tmp_path), user, "15") for user in ("ana", "ben")}
        writers = {user: stack.enter_context(one) for user, one in users.items()}
        for user, writer in writers.items():
            assert writer.stdout is not None
            scope = Scope(user, "agent")
            for line in writer.stdout:
                [(fact, score)] = await memory.search(scope, f"{user} fact{line.strip()}", 1)
                assert (fact["op"], round(score, 3)) == (line.strip(), 1.0)
            assert [fact["op"] for fact in await memory.all(scope)] == [f"{n}" for n in range(15)]
    memory.close()


async def test_every_fact_that_a_killed_writer_acknowledged_is_there(tmp_path: Path) -> None:
    with ExitStack() as stack:
        users = [running(WRITER, str(tmp_path), f"user-{one}", "100000") for one in range(2)]
        writers = [stack.enter_context(one) for one in users]
        acked = [acknowledged(writer, 5 + 9 * one) for one, writer in enumerate(writers)]
    memory = memory_at(tmp_path)
    for one, lines in enumerate(acked):
        scope = Scope(f"user-{one}", "agent")
        stored = [fact["op"] for fact in await memory.all(scope)]
        assert stored[: len(lines)] == lines
        assert len(stored) <= len(lines) + 1
        await memory.add(scope, [draft(op, "again") for op in [*lines, "new"]])
        assert await memory.count(scope) == len(stored) + 1
        [(fact, _)] = await memory.search(scope, f"user-{one} fact{lines[-1]}", 1)
        assert fact["op"] == lines[-1]
    memory.close()


async def test_a_close_waits_for_the_write_in_hand(memory: SemanticMemory) -> None:
    await memory.add(ANA, [draft("0", "first")])
    writes = [asyncio.create_task(memory.add(ANA, [draft(f"{n}", f"text {n}")])) for n in range(9)]
    await asyncio.sleep(0.005)
    await asyncio.wait_for(asyncio.to_thread(memory.close), 10)
    done = await asyncio.gather(*writes, return_exceptions=True)
    assert all(isinstance(one, list | MemoryStoreError) for one in done)
    written = [one[0]["op"] for one in done if isinstance(one, list)]
    assert set(written) <= {fact["op"] for fact in await memory.all(ANA)}


def extraction(memory: SemanticMemory) -> Any:
    """Mem0's own extraction, which the product does not use, over the chat model adapter."""
    return memory._open_mem0().memory.add("I moved to Lisbon", user_id="ana")


@pytest.mark.parametrize(
    "answer",
    ["", "I cannot", '{"memory": ["a"]}', '{"memory": [{"text": 1}]}', '{"memo', "[]", "{}"],
)
def test_a_broken_answer_to_mem0_is_an_error_and_not_an_empty_memory(
    tmp_path: Path, answer: str
) -> None:
    memory = memory_at(tmp_path, chat_model=FakeListChatModel(responses=[answer]))
    with pytest.raises(Exception, match="broken extraction") as caught:
        extraction(memory)
    assert isinstance(caught.value.__cause__, ModelError)
    memory.close()


def test_mem0_works_on_any_langchain_chat_model(tmp_path: Path) -> None:
    answer = '```json\n{"memory": [{"text": "Ana lives in Lisbon"}, {"text": "Ana moved"}]}\n```'
    embeddings = WordEmbeddings()
    memory = memory_at(tmp_path, embeddings, chat_model=FakeListChatModel(responses=[answer]))
    results = extraction(memory)["results"]
    assert [one["memory"] for one in results] == ["Ana lives in Lisbon", "Ana moved"]
    assert embeddings.calls == [["Ana lives in Lisbon", "Ana moved"]]
    memory.close()


def test_mem0_without_a_chat_model_says_so(tmp_path: Path) -> None:
    memory = memory_at(tmp_path)
    with pytest.raises(Exception, match="chat model"):
        extraction(memory)
    memory.close()
