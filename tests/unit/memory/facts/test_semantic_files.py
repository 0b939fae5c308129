"""Semantic memory and its files: what it opens and when, other processes, kills."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from memory.errors import MemoryStoreError
from memory.facts.semantic import SemanticMemory
from memory.facts.sqlite.table import SqliteTable
from tests.support.facts import ANA, draft, memory_at, running, texts


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


async def test_a_close_waits_for_the_write_in_hand(memory: SemanticMemory) -> None:
    await memory.add(ANA, [draft("0", "first")])
    writes = [asyncio.create_task(memory.add(ANA, [draft(f"{n}", f"text {n}")])) for n in range(9)]
    await asyncio.sleep(0.005)
    await asyncio.wait_for(asyncio.to_thread(memory.close), 10)
    done = await asyncio.gather(*writes, return_exceptions=True)
    assert all(isinstance(one, list | MemoryStoreError) for one in done)
    written = [one[0]["op"] for one in done if isinstance(one, list)]
    assert set(written) <= {fact["op"] for fact in await memory.all(ANA)}
