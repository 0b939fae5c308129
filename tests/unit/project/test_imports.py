"""What a process loads: no heavy library before its first use."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commandline import circadian
from tests.support.source_files import LAYERS, ROOT

HEAVY = {"mem0", "openai", "aiohttp", "psycopg"}
PROVIDERS = {"langchain_openai", "openai", "tiktoken", "langchain"}
GRAPH = {*HEAVY, "langgraph.graph", "langgraph.pregel", "langsmith", "tools.registry", "nodes"}
PLAIN = {"pydantic", "rich", "asyncio", "langchain_core", "sqlite3", "numpy"}
STEPS = {
    "--help": {*GRAPH, *PLAIN, "langgraph", "graph.cli.commands", "graph.cli.access"},
    "config": {*GRAPH, "langchain_core", "langgraph", "numpy"},
    "recall --help": GRAPH,
    **dict.fromkeys(["log", "agents", "nights", "prompt", "recall hello", "status"], GRAPH),
    "import graph.agent": {*HEAVY, "langchain_community"} - {"psycopg"},
    "send 'I grow beans.'": {*PROVIDERS, "mem0"},
    "recall beans": {*PROVIDERS, "mem0"},
}
"""Each step of one process, and what it may not have loaded by then."""

LOADED = f"""
import json, re, shlex, sys

def counted(pattern, flags=0):
    frame = sys._getframe(1)
    while frame and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    if frame and frame.f_globals["__name__"].split(".")[0] in {LAYERS!r}:
        early.append(frame.f_globals["__name__"])
    return compiling(pattern, flags)

early, compiling, re.compile = [], re.compile, counted
from graph.cli.__main__ import main
for step, unwanted in {STEPS!r}.items():
    if step == "import graph.agent":
        import graph.agent
    else:
        assert main(shlex.split(step)) == 0
    print("LOADED", json.dumps([step, sorted(unwanted & set(sys.modules))]))
print("EARLY", json.dumps(early))
"""


def test_import_and_commands_load_no_heavy_library_and_compile_no_pattern_early(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIRCADIAN_DATA", str(tmp_path / "data"))
    circadian(capsys, "send", "Hello", "--model", "offline", "--embedder", "offline")
    command = [sys.executable, "-c", LOADED]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    told = [line.partition(" ")[2] for line in done.stdout.splitlines() if line[:6] == "LOADED"]
    assert [json.loads(one) for one in told] == [[step, []] for step in STEPS]
    early = json.loads(done.stdout.rpartition("EARLY")[2])
    assert {*early} <= {"memory.errors", "memory.models.offline.night"}
    assert "beans" in done.stdout.rpartition("send")[2]
