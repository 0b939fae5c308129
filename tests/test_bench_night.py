"""The benchmark of a night: what it measures, and that it measures the real thing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import night
from tests.test_locomo import sample


@pytest.fixture
def figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[dict[str, object]]]:
    monkeypatch.setattr(night, "WARM_UP", 1)
    data, out = tmp_path / "data.json", tmp_path / "out" / "night.json"
    data.write_text(json.dumps([sample()]))
    said = ["--data", str(data), "--lives", "3", "--growth", "10", "100", "--json", str(out)]
    assert night.main(said) == 0
    found: dict[str, list[dict[str, object]]] = json.loads(out.read_text())
    return found


def test_it_counts_what_each_step_of_a_real_night_spends(
    figures: dict[str, list[dict[str, object]]], capsys: pytest.CaptureFixture[str]
) -> None:
    [life] = figures["lives"]
    assert life["entries"] == life["facts"] == 3
    small, large = figures["growth"]
    assert (small["entries"], large["entries"], large["facts"]) == (10, 100, 100)
    steps = {one["step"]: one for one in large["steps"]}  # type: ignore[attr-defined] # of JSON
    asked = {name for name, one in steps.items() if one["llm_calls"]}
    assert asked == {"score_importance", "consolidate", "dream", "consolidate_entities", "reflect"}
    assert large["calls"] == sum(one["llm_calls"] for one in steps.values())
    assert all(one["tokens"] > 0 for name, one in steps.items() if name in asked)


def test_a_hundred_entries_cost_fifteen_calls_at_most_and_nothing_is_left_over(
    figures: dict[str, list[dict[str, object]]],
) -> None:
    large = figures["growth"][1]
    assert 0 < float(str(large["calls_per_100"])) <= night.BUDGET
    assert large["stopped"] is None


def test_every_published_figure_names_its_source() -> None:
    assert all(line[-1] for line in night.PUBLISHED)


def test_the_first_turns_of_the_conversations_are_a_life() -> None:
    turns = night.spoken([sample(), {**sample(), "sample_id": "other"}], 4)
    assert [one["id"] for one in turns] == [
        "conv-1/D1:1",
        "conv-1/D1:2",
        "conv-1/D2:1",
        "other/D1:1",
    ]
