"""Where the agents of these tests are."""

from pathlib import Path

import pytest

from tests.support import launching
from tests.support.launching import Launches


@pytest.fixture
def launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Launches:
    return launching.set_up(monkeypatch, tmp_path)
