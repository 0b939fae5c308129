import importlib.util
import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks import memory, stores
from benchmarks.memory import ALLOWANCE, SYSTEMS, Worker
from benchmarks.minilm import DIMENSION, MISSING, PACKAGE, Absent, MiniLM, read_tensors
from benchmarks.tables import CIRCADIAN
from benchmarks.words import asked, told, vocabulary

minilm = pytest.mark.skipif(
    importlib.util.find_spec(PACKAGE) is None or importlib.util.find_spec("tokenizers") is None,
    reason=MISSING,
)


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


def test_a_system_is_asked_no_more_once_its_time_is_spent() -> None:
    class Timed(Worker):
        def __init__(self, name: str) -> None:
            self.name = name

    one, two = Timed("one"), Timed("two")
    spent = {"one": [ALLOWANCE], "two": [0.1]}
    assert memory.in_turn([one, two], 0, spent) == [two]
    assert memory.in_turn([one, two], 1, {"one": [], "two": []}) == [two, one]


def test_made_up_facts_are_the_same_in_every_run_and_questions_use_their_words() -> None:
    words, weights = vocabulary()
    assert len(words) == len(set(words)) == len(weights)
    assert told(7) == told(7) != told(8)
    assert 80 < len(told(7)) < 200
    assert set(asked(7)[:-1].split()[4:]) <= set(told(7)[:-1].split())


def test_weights_that_are_not_minilm_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    (tmp_path / "model.safetensors").write_bytes(b"\0" * 16)
    with pytest.raises(Absent, match="is not all-MiniLM-L6-v2: its SHA-256 is"):
        MiniLM(tmp_path)


def test_the_tensors_of_a_file_are_read(tmp_path: Path) -> None:
    head = {
        "__metadata__": {"format": "pt"},
        "ids": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]},
        "weight": {"dtype": "F32", "shape": [2, 1], "data_offsets": [8, 16]},
    }
    text = json.dumps(head).encode()
    numbers = b"\0" * 8 + b"\0\0\x80\x3f\0\0\0\x40"
    (tmp_path / "a").write_bytes(len(text).to_bytes(8, "little") + text + numbers)
    tensors = read_tensors(tmp_path / "a")
    assert {name: one.tolist() for name, one in tensors.items()} == {"weight": [[1.0], [2.0]]}


@minilm
def test_minilm_finds_what_means_the_same_in_other_words() -> None:
    model = MiniLM()
    texts = [
        "She bought a new car.",
        "An automobile was purchased by her.",
        "The soup is too salty, as it has been every day of this long and rainy week.",
        "",
    ]
    vectors = model.embed_documents(texts)
    assert [len(vector) for vector in vectors] == [DIMENSION] * 4

    # As sentence-transformers 6.2 gives them on torch.
    assert vectors[0][:4] == pytest.approx([-0.03933, -0.00987, 0.07245, 0.01568], abs=1e-5)
    alike, unlike = (np.dot(vectors[0], vectors[place]) for place in (1, 2))
    assert (alike, unlike) == (pytest.approx(0.80277, abs=1e-4), pytest.approx(0.03118, abs=1e-4))
    # Padding of a batch changes nothing.
    assert vectors[0] == pytest.approx(model.embed_query(texts[0]), abs=1e-5)
    assert model.embed_documents([]) == []
