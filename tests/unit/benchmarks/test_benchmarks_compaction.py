"""The page's example of a compaction, through a whole night: 50 messages, 70,000 tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import compaction


async def test_the_pages_example_comes_out_as_the_page_says() -> None:
    rows = await compaction.measured()
    for row in rows:
        assert (row.messages_before, row.messages_after) == (50, 21)
        assert row.result["compacted_count"] == 30
        assert row.result["tokens_before"] == pytest.approx(70_000, rel=0.05)
        assert row.result["tokens_after"] == pytest.approx(15_000, rel=0.1)
    assert [row.result["by"] for row in rows] == ["summary", "extract"]


def test_the_example_is_printed_and_written_beside_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results" / "compaction.json"
    assert compaction.main(["--json", str(out)]) == 0
    figures = json.loads(out.read_text())
    assert figures["page"]["tokens_after"] == 15_000
    assert [(one["by"], one["messages_after"]) for one in figures["measured"]] == [
        ("summary", 21),
        ("extract", 21),
    ]
    shown = capsys.readouterr().out
    assert "the page" in shown
    assert "70,000" in shown
