"""The benchmark of a night: what it measures, and that it measures the real thing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import lives, night
from tests.unit.benchmarks.test_locomo import sample


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
    turns = lives.spoken([sample(), {**sample(), "sample_id": "other"}])
    assert [one["id"] for one in turns[:4]] == [
        "conv-1/D1:1",
        "conv-1/D1:2",
        "conv-1/D2:1",
        "other/D1:1",
    ]


WHOLE = sample()
SAID = WHOLE["conversation"]
UNUSABLE: dict[str, Any] = {
    "not JSON": "Ada: hello",
    "an object": {"a": 1},
    "items that are no conversations": [{"text": "hello"}],
    "no sessions": [{**WHOLE, "conversation": []}],
    "a session without its time": [
        {**WHOLE, "conversation": {k: v for k, v in SAID.items() if "date" not in k}}
    ],
    "a time of another form": [
        {**WHOLE, "conversation": {**SAID, "session_1_date_time": "yesterday"}}
    ],
    "turns that are text": [{**WHOLE, "conversation": {**SAID, "session_1": ["hello"]}}],
    "turns without a speaker": [
        {**WHOLE, "conversation": {**SAID, "session_1": [{"dia_id": "D1:1", "text": "Hi"}]}}
    ],
    "nothing said": [],
}


@pytest.mark.parametrize("held", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_a_file_of_another_format_is_one_line_and_status_2(
    held: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = tmp_path / "data.json", tmp_path / "night.json"
    data.write_text(held if isinstance(held, str) else json.dumps(held))
    assert night.main(["--data", str(data), "--growth", "--json", str(out)]) == 2
    said = capsys.readouterr()
    [line] = said.err.splitlines()
    assert line.startswith(str(data))
    assert (said.out, out.exists()) == ("", False)


def test_a_file_that_is_absent_or_binary_is_one_line_and_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(night.VARIABLE, str(tmp_path / "absent.json"))
    assert night.main(["--lives", "1"]) == 2
    assert (
        capsys.readouterr().err == f"{tmp_path / 'absent.json'} is absent: no night was measured\n"
    )
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert night.main(["--data", str(tmp_path / "binary")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_life_of_no_entries_is_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        night.main(["--lives", "0"])
    assert ended.value.code == 2
    assert "--lives" in capsys.readouterr().err
