"""What the README shows is run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.source_files import ROOT

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
PYTHON = [text for kind, text in BLOCKS if kind == "python"]
COMMANDS = [
    line.removeprefix("$ ")
    for kind, text in BLOCKS
    if kind == "console"
    for line in text.splitlines()
    if line.startswith("$ circadian ")
]


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "CIRCADIAN_DATA": str(folder / "data"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("block", PYTHON)
def test_a_python_block_runs_and_prints(block: str, tmp_path: Path) -> None:
    done = run([sys.executable, "-c", block], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "The glass arrives on Friday." in done.stdout


def test_the_commands_run_in_order_and_recall_what_was_said(tmp_path: Path) -> None:
    assert len(COMMANDS) >= 4
    outputs = []
    for line in COMMANDS:
        words = shlex.split(line)[1:]
        done = run([sys.executable, "-m", "graph.cli", *words], tmp_path)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        outputs.append(done.stdout)
    recalled = outputs[[line.split()[1] for line in COMMANDS].index("recall")]
    assert "walnuts" in recalled


def test_demo_and_test_stand_with_their_output_in_the_first_thirty_lines() -> None:
    first = "\n".join(README.splitlines()[:30])
    assert "make demo" in first
    assert re.search(r"make test\n.*\d+ passed", first)


def test_files_that_the_readme_names_exist() -> None:
    named = re.findall(r"`((?:nodes|memory|tools|graph|docs)/[\w./]+)`", README)
    named += re.findall(r"\]\(([\w./-]+)\)", README)
    missing = [name for name in named if not (ROOT / name).exists()]
    assert missing == []
