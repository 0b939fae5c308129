"""What a process loads: no heavy library before its first use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commandline import circadian
from tests.support.source_files import ROOT

HEAVY = ("faiss", "mem0", "openai", "aiohttp")
LOADED = f"""
import json, sys
def loaded():
    return [name for name in {HEAVY!r} if name in sys.modules]
import graph.agent
found = [loaded()]
from graph.cli.app import main
for words in (["--help"], ["status", *sys.argv[1:]]):
    main(words)
    found.append(loaded())
print(json.dumps(found), file=sys.stderr)
"""


def test_import_help_and_status_load_no_heavy_library(
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
    assert json.loads(done.stderr.splitlines()[-1]) == [[], [], []]
