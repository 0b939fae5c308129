import json
from contextlib import suppress
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import memory, stores
from benchmarks.memory import SYSTEMS
from benchmarks.minilm import Absent
from benchmarks.tables import CIRCADIAN
from benchmarks.words import asked, told, vocabulary


@pytest.mark.slow
def test_the_memories_stand_beside_each_other_in_figures_and_ratios(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results" / "memory.json"
    small = ["--facts", "3", "25", "--adds", "2", "--recalls", "20"]
    assert memory.main([*small, "--json", str(out)]) == 0
    rows = json.loads(out.read_text())["rows"]
    assert [(row["mark"], row["system"]) for row in rows] == [
        (mark, name) for mark in (3, 25) for name in SYSTEMS
    ]
    for row in rows:
        if row["absent"]:
            assert row["add_p50_ms"] is None
            assert "loadable extensions" in row["absent"]
            continue
        ours = rows[0] if row["mark"] == 3 else rows[len(SYSTEMS)]
        assert (row["adds"], row["recalls"], row["add_p95_ms"]) == (2, 20, None)
        assert row["recall_p95_ms"] >= row["recall_p50_ms"] > 0
        assert row["ratio"]["add_p50_ms"] == row["add_p50_ms"] / ours["add_p50_ms"]
        assert min(row["memory_bytes"], row["disk_bytes"]) > 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in SYSTEMS)


def test_each_memory_keeps_what_it_is_given_and_answers(tmp_path: Path) -> None:
    for name, opening in stores.OPENING.items():
        with suppress(Absent), opening(tmp_path) as store:
            store.load(range(3))
            store.add(3)
            assert store.recall(1) == 4, name


def test_an_index_that_cannot_be_loaded_is_said_and_not_hidden(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ours = memory.Row(CIRCADIAN, 10, add_p50_ms=1.0, adds=1, recalls=1)
    absent = memory.Row(stores.LANGGRAPH, 10, absent="its index needs loadable extensions")
    memory.show([ours, absent], Console(width=200))
    said = capsys.readouterr().out
    assert f"{stores.LANGGRAPH}: not measured: its index needs loadable extensions." in said
    assert memory.as_json([ours, absent])["rows"][1]["ratio"]["add_p50_ms"] is None


def test_made_up_facts_are_the_same_in_every_run_and_questions_use_their_words() -> None:
    words, weights = vocabulary()
    assert len(words) == len(set(words)) == len(weights)
    assert told(7) == told(7) != told(8)
    assert 80 < len(told(7)) < 200
    assert set(asked(7)[:-1].split()[4:]) <= set(told(7)[:-1].split())
