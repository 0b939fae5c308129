"""What the README shows is run."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.support.forked import forked_python
from tests.support.pages import Page, run
from tests.support.source_files import ROOT

README = Page("README.md")
COMMANDS = [line for line in README.commands() if line.startswith("circadian ")]


@pytest.mark.parametrize("block", README.of_kind("python"))
def test_a_python_block_runs_and_prints(block: str, tmp_path: Path) -> None:
    done = run([sys.executable, "-c", block], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "The glass arrives on Friday." in done.stdout


def test_the_commands_run_in_order_and_recall_what_was_said(tmp_path: Path) -> None:
    assert len(COMMANDS) >= 4
    outputs = []
    for line in COMMANDS:
        words = shlex.split(line)[1:]
        done = run([forked_python(), "-m", "graph.cli", *words], tmp_path)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        outputs.append(done.stdout)
    recalled = outputs[[line.split()[1] for line in COMMANDS].index("recall")]
    assert "walnuts" in recalled


def test_demo_and_test_stand_with_their_output_in_the_first_thirty_lines() -> None:
    first = "\n".join(README.text.splitlines()[:30])
    assert "make demo" in first
    assert re.search(r"make test\n.*\d+ passed", first)


def test_files_that_the_readme_names_exist() -> None:
    named = README.named()
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []
