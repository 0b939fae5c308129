"""Where the agents of these tests are, and the command on their data folder."""

from pathlib import Path

import pytest

from tests.support import launching
from tests.support.commandline import Done, Run, circadian
from tests.support.launching import Launches


@pytest.fixture
def launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Launches:
    return launching.set_up(monkeypatch, tmp_path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], data: Path) -> Run:
    """The command on the test's data folder, or on another one: `run("status", data=other)`."""

    def on_data(*args: str | Path, data: Path = data) -> Done:
        return circadian(capsys, *args, "--data", data)

    return on_data
