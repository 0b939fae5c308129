"""The benchmark of a night: what it measures, and that it measures the real thing."""

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


@pytest.mark.slow
def test_the_cost_of_each_step_of_a_night_is_counted(
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
    assert 0 < float(str(large["calls_per_100"])) <= night.BUDGET
    assert large["stopped"] is None


def test_the_first_turns_of_the_conversations_are_a_life() -> None:
    turns = lives.spoken([sample(), {**sample(), "sample_id": "other"}])
    assert [one["id"] for one in turns[:4]] == [
        "conv-1/D1:1",
        "conv-1/D1:2",
        "conv-1/D2:1",
        "other/D1:1",
    ]


SAMPLE = sample()
SAID = SAMPLE["conversation"]
UNTIMED = {key: value for key, value in SAID.items() if "date" not in key}
UNUSABLE: dict[str, Any] = {
    "absent": None,
    "binary": b"\xff\xfe\x00",
    "not JSON": b"Ada: hello",
    "no sessions": [{**SAMPLE, "conversation": []}],
    "a session without its time": [{**SAMPLE, "conversation": UNTIMED}],
    "a turn without a speaker": [{**SAMPLE, "conversation": {**SAID, "session_1": [{}]}}],
    "nothing said": [],
}


@pytest.mark.parametrize("held", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_a_file_without_turns_is_one_line_and_nothing_is_measured(
    held: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = tmp_path / "data.json", tmp_path / "night.json"
    if held is not None:
        data.write_bytes(held if isinstance(held, bytes) else json.dumps(held).encode())
    assert night.main(["--data", str(data), "--growth", "--json", str(out)]) == 2
    said = capsys.readouterr()
    [line] = said.err.splitlines()
    assert line.startswith(str(data))
    assert (said.out, out.exists()) == ("", False)
