"""Semantic memory and its files: what it opens and when, other processes, kills."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from memory.errors import MemoryStoreError
from memory.facts.semantic import SemanticMemory
from memory.facts.sqlite.table import SqliteTable
from memory.records.records import Scope
from tests.support.facts import (
    ANA,
    acknowledged,
    draft,
    memory_at,
    nearest_facts,
    running,
    texts,
)


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[SemanticMemory]:
    opened = memory_at(tmp_path)
    yield opened
    opened.close()


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
        lambda: SqliteTable(tmp_path / "facts.db", model="words", dimension=3),
        mem0_dir=tmp_path / "mem0",
        dimension=3,
        embeddings=fail,
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


async def test_a_history_that_mem0_kept_once_is_gone_after_a_forget(tmp_path: Path) -> None:
    memory = memory_at(tmp_path)
    await memory.add(ANA, [draft("a", "red fox")])
    (tmp_path / "mem0" / "history.db").write_text("red fox")
    await memory.scrub()
    memory.close()
    assert list((tmp_path / "mem0").glob("history*")) == []


ALONE = """
import asyncio, json, logging, sys, threading, warnings
warnings.simplefilter("error")
logging.basicConfig(level=logging.INFO)
from pathlib import Path
from tests.support.facts import nearest_facts, ANA, draft, memory_at
memory = memory_at(Path(sys.argv[1]))
async def read():
    await nearest_facts(memory, ANA, "fox", 1)
    await memory.keywords(ANA, "fox", 1)
    return await memory.count(ANA)
async def write():
    [fact] = await memory.add(ANA, [draft("a", "red fox")])
    await memory.update(ANA, fact["id"], {"text": "blue whale"})
    await memory.delete(ANA, fact["id"])
    await memory.scrub()
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
    with running(
        ALONE, str(folder), python=sys.executable, HOME=str(home), TMPDIR=str(temporary)
    ) as process:
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
    files = {str(one.relative_to(folder)): one for one in folder.rglob("*") if one.is_file()}
    assert "facts.db" in files
    for name, file in files.items():
        content = file.read_bytes()
        assert b"red fox" not in content, name
        assert b"blue whale" not in content, name
    assert "spaCy" not in error


WRITER = """
import asyncio, sys
from pathlib import Path
from memory.records import Scope
from tests.support.facts import draft, memory_at
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
    assert await nearest_facts(memory, ANA, "fact", 1) == []
    with ExitStack() as stack:
        users = {user: running(WRITER, str(tmp_path), user, "15") for user in ("ana", "ben")}
        writers = {user: stack.enter_context(one) for user, one in users.items()}
        for user, writer in writers.items():
            assert writer.stdout is not None
            scope = Scope(user, "agent")
            for line in writer.stdout:
                [(fact, score)] = await nearest_facts(
                    memory, scope, f"{user} fact{line.strip()}", 1
                )
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
        [(fact, _)] = await nearest_facts(memory, scope, f"user-{one} fact{lines[-1]}", 1)
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
