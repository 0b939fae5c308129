"""What a process loads: no heavy library before its first use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commandline import circadian
from tests.support.source_files import ROOT

HEAVY = {"mem0", "openai", "aiohttp"}
LOADED = f"""
import json, sys
def loaded():
    return {HEAVY!r} & set(sys.modules)
import graph.agent
found = [loaded()]
from graph.cli.app import main
assert "psycopg" not in sys.modules
for words in (["--help"], ["status", *sys.argv[1:]]):
    assert main(words) == 0
    found.append(loaded())
for words in (["send", "I grow beans."], ["recall", "beans"]):
    assert main([*words, *sys.argv[1:]]) == 0
    found.append(loaded() & {{"mem0"}})
print(json.dumps([sorted(one) for one in found]), file=sys.stderr)
"""


def test_import_and_commands_load_no_heavy_library(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["--data", str(tmp_path / "data")]
    circadian(capsys, "send", "Hello", *data, "--model", "offline", "--embedder", "offline")
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *data],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "beans" in done.stdout
    assert json.loads(done.stderr.splitlines()[-1]) == [[], [], [], [], []]
