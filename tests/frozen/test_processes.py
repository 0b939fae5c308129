"""The documents of the commands that are, or start, processes of their own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commandline import circadian
from tests.frozen.keeping import Normaliser, compare, document
from tests.frozen.test_documents import OFFLINE

pytestmark = pytest.mark.slow


def test_the_document_of_the_demo(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = tmp_path / "data"
    shown = circadian(capfd, "demo", "--json", "--data", data, *OFFLINE).document
    normaliser = Normaliser((data, "<data>"))
    normaliser.name_facts(shown)
    compare("processes/demo.json", document(normaliser(shown)))


def test_the_lines_of_a_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = tmp_path / "data"
    for command in (["stop"], ["send", "What is up?"]):
        circadian(capsys, *command, "--data", data, *OFFLINE)
    command = [sys.executable, "-m", "graph.cli", "run", "--json", "--data", str(data), *OFFLINE]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for number, line in enumerate(process.stdout):
            lines.append(json.loads(line))
            if number == 0:
                circadian(capsys, "clear-stop", "--data", data, *OFFLINE)
            if lines[-1]["what"] == "tick":
                process.send_signal(signal.SIGTERM)
    keys = {line["what"]: sorted(line) for line in lines}
    compare("processes/run.json", document([process.returncode, keys]))
