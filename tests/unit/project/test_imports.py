"""What a process loads: no heavy library before its first use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.source_files import ROOT

HEAVY = ("faiss", "mem0", "openai", "aiohttp")
LOADED = f"""
import json, sys
with_main = sys.argv[1:]
if with_main:
    from graph.cli.app import main
    main(with_main)
else:
    import graph.agent
print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]), file=sys.stderr)
"""


@pytest.mark.parametrize("what", ["import graph.agent", "--help", "status"])
def test_it_loads_no_heavy_library(tmp_path: Path, what: str) -> None:
    data = ["--data", str(tmp_path / "data"), "--model", "offline", "--embedder", "offline"]
    if what == "status":
        loaded_by("send", "Hello", *data)
    given = {"import graph.agent": [], "--help": ["--help"], "status": ["status", *data[:2]]}
    assert loaded_by(*given[what]) == []


def loaded_by(*arguments: str) -> list[str]:
    """The heavy libraries that a process loaded that ran the command, or imported the agent."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded: list[str] = json.loads(done.stderr.splitlines()[-1])
    return loaded
