"""The benchmark of the inspector's pages: a small memory, each page once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import pages


@pytest.mark.slow
def test_every_page_answers_and_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages.run(20, 1, tmp_path / "pages.json")
    found = json.loads((tmp_path / "pages.json").read_text())
    assert found["memories"] >= 20
    names = [one["page"] for one in found["pages"]]
    assert {"today", "memory, a search", "a tick", "undo a night", "log"} <= {*names}
    assert all(one["p95"] >= one["p50"] > 0 for one in found["pages"])
    assert "Own time of a page" in capsys.readouterr().out
