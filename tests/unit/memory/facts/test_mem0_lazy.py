"""Mem0 and FAISS are imported by what needs them, and Mem0 writes in the data folder alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.source_files import ROOT

COMMANDS = """
import json, sys
import graph.agent
from graph.cli.app import main
folder = ["--data", sys.argv[1]]
loaded = {"import": sorted({"mem0", "faiss", "psycopg"} & set(sys.modules))}
for words in (["send", "I grow beans."], ["status"], ["recall", "beans"]):
    status = main([words[0], *folder, *words[1:]])
    loaded[words[0]] = [status, "mem0" in sys.modules]
print(json.dumps(loaded), file=sys.stderr)
"""

WRITTEN = """
import json, sys
from pathlib import Path
from memory.records import Scope
from memory.installation.folder import open_folder
import asyncio
from tests.support.facts import draft
folder = open_folder(Path(sys.argv[1]), offline=True)
async def write():
    memory, scope = folder.semantic(), Scope("ana", "thread")
    [fact] = await memory.add(scope, [draft("a", "red fox")])
    await memory.update(scope, fact["id"], {"text": "blue whale"})
    await memory.delete(scope, fact["id"])
    await memory.scrub()
    memory.close()
asyncio.run(write())
from mem0.memory import telemetry
print(json.dumps([telemetry.MEM0_TELEMETRY, telemetry.client_telemetry.posthog is not None]))
"""


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """A data folder, a home and a place for temporary files, all empty."""
    made = {name: tmp_path / name for name in ("data", "home", "tmp")}
    for one in made.values():
        one.mkdir()
    return made


def run(code: str, places: dict[str, Path]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, str(places["data"])],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "HOME": str(places["home"]), "TMPDIR": str(places["tmp"])},
    )
    assert done.returncode == 0, done.stderr
    return done


def test_what_writes_no_fact_imports_no_mem0(places: dict[str, Path]) -> None:
    done = run(COMMANDS, places)
    loaded = json.loads(done.stderr.splitlines()[-1])
    assert loaded == {
        "import": [],
        "send": [0, False],
        "status": [0, False],
        "recall": [0, False],
    }
    assert "beans" in done.stdout


def test_what_writes_facts_writes_in_the_data_folder_alone(places: dict[str, Path]) -> None:
    done = run(WRITTEN, places)
    assert json.loads(done.stdout) == [False, False]
    assert list(places["home"].iterdir()) == list(places["tmp"].iterdir()) == []
    kept = {str(one.relative_to(places["data"])) for one in places["data"].rglob("*")}
    assert {"folder.json", "facts.db", "mem0", "mem0/history.db"} <= kept
    for file in places["data"].rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert b"red fox" not in content, file
            assert b"blue whale" not in content, file
