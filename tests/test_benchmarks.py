import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import locomo, run


def sample() -> dict[str, Any]:
    """A conversation in LoCoMo's format, made up."""
    return {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ada", "dia_id": "D1:1", "text": "I keep three bees in Lisbon."},
                {
                    "speaker": "Ben",
                    "dia_id": "D1:2",
                    "text": "My brother Tomas repairs violins in Prague.",
                    "blip_caption": "a violin on a bench",
                },
            ],
            "session_2_date_time": "10:05 am on 9 May, 2023",
            "session_2": [
                {"speaker": "Ada", "dia_id": "D2:1", "text": "I sold the bees to Marta in June."}
            ],
        },
        "qa": [
            {"question": "Who repairs violins?", "evidence": ["D1:2"], "category": 4},
            {"question": "What about the bees?", "evidence": ["D1:1; D2:1"], "category": 1},
            {"question": "Nobody knows", "evidence": [], "category": 5},
        ],
    }


def test_recall_is_the_fraction_of_gold_among_ten_distinct_sources() -> None:
    sources = ["a", "a", *[f"x{n}" for n in range(8)], "b", "c"]
    assert locomo.evidence_recall(sources, ["a", "b"]) == 1.0
    assert locomo.evidence_recall(sources, ["a", "c"]) == 0.5


def test_times_and_captions_are_read() -> None:
    start = locomo.session_time("1:56 pm on 8 May, 2023")
    assert start.isoformat() == "2023-05-08T13:56:00+00:00"
    turns = sample()["conversation"]["session_1"]
    assert locomo.events_of(turns, start)[1]["text"].endswith("[image: a violin on a bench]")


def test_a_conversation_is_lived_through_and_questioned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = tmp_path / "data.json", tmp_path / "out.json"
    data.write_text(json.dumps([sample()]))
    assert locomo.main(["--data", str(data), "--json", str(out)]) == 0
    figures = json.loads(out.read_text())["summary"]
    assert figures["turns"] == 3
    assert figures["questions"] == {"1": 1, "4": 1}
    assert figures["recall@10"] == {"1": 1.0, "4": 1.0}
    assert figures["calls"]["score_importance"] == 2
    assert "single-hop" in capsys.readouterr().out


def test_absent_data_is_said_plainly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert locomo.main(["--data", str(tmp_path / "none.json")]) == 2
    assert "absent" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content", [b"no JSON", b"\xff\xfe", b"{}", b"[1]", b'[{"sample_id": "a"}]', b"[" * 100_000]
)
def test_data_in_another_format_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    data = tmp_path / "data.json"
    data.write_bytes(content)
    assert locomo.main(["--data", str(data)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "data.json is not in LoCoMo's format: " in line


def test_the_budgets_are_measured_and_written(tmp_path: Path) -> None:
    out = tmp_path / "budgets.json"
    small = ["--ticks", "45", "--facts", "20", "--agents", "2", "--json", str(out)]
    assert run.main(small) == 0
    names = [figure["name"] for figure in json.loads(out.read_text())]
    assert "add a fact at 20" in names
    assert len(names) == 6
