"""The page's example of a compaction, through a whole night: 50 messages, 70,000 tokens."""

from __future__ import annotations

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


def test_the_example_is_printed_beside_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert compaction.main() == 0
    shown = capsys.readouterr().out
    assert "the page" in shown
    assert "70,000" in shown
