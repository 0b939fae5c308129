"""The documents of the commands that are, or start, processes of their own."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from graph.agent import open_agent
from tests.frozen.keeping import Normaliser, compare, document
from tests.frozen.test_documents import OFFLINE
from tests.support.commandline import circadian

pytestmark = pytest.mark.slow


def test_the_document_of_the_demo(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = tmp_path / "data"
    shown = circadian(capfd, "demo", "--json", "--data", data, *OFFLINE).document
    assert len({*shown["processes"], os.getpid()}) == 3
    normaliser = Normaliser((data, "<data>"))
    normaliser.name_facts(shown)
    # The story is recalled at the real time of day, and a score falls with the years.
    for key in ("score", "parts"):
        shown["recalled"].pop(key, None)
    compare("processes/demo.json", document(normaliser(shown)))


def test_the_lines_of_a_run(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with open_agent(data, model="offline", embedder="offline") as agent:
        agent.post({"id": "e1", "text": "What is up?", "sender": "Ada"})
    command = [sys.executable, "-m", "graph.cli", "run", "--json", "--data", str(data), *OFFLINE]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        guard = threading.Timer(120, process.kill)
        guard.start()
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(json.loads(line))
            if lines[-1]["what"] == "resting" and any(one["what"] == "tick" for one in lines):
                process.send_signal(signal.SIGTERM)
        guard.cancel()
    keys = {line["what"]: sorted(line) for line in lines}
    compare("processes/run.json", document([process.returncode, keys]))
