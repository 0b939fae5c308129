"""LoCoMo's conversations and BEAM's chats: read, lived through and questioned."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import beam, locomo
from benchmarks.conversations import (
    Question,
    Session,
    events_of,
    evidence_recall,
    questions,
    session_of,
    session_time,
    spoken,
)
from benchmarks.minilm import MISSING, Absent
from benchmarks.searchers import Bm25, Notes, Shared, by_meaning, by_mem0, by_words
from tests.support.facts import WordEmbeddings

ALONE = ["Circadian", "Circadian, nights", "Circadian, nights, no links", "BM25"]
BESIDE = [
    "Circadian, offline",
    "Circadian, offline, nights",
    "Circadian, offline, nights, no links",
    "dense, offline",
    "Mem0, offline",
]


def sample() -> dict[str, Any]:
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


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.json"
    path.write_text(json.dumps([sample()]))
    return path


def test_recall_is_the_fraction_of_gold_among_so_many_distinct_sources() -> None:
    sources = ["a", "a", *[f"x{n}" for n in range(8)], "b", "c"]
    assert evidence_recall(sources, ["a", "b"], 10) == 1.0
    assert evidence_recall(sources, ["a", "c"], 10) == 0.5
    assert evidence_recall(sources, ["a", "b"], 9) == 0.5
    assert evidence_recall([], ["a"], 5) == 0.0


def test_times_and_captions_are_read() -> None:
    start = session_time("1:56 pm on 8 May, 2023")
    assert start.isoformat() == "2023-05-08T13:56:00+00:00"
    turns = sample()["conversation"]["session_1"]
    assert events_of(Session(start, turns))[1]["text"].endswith("[image: a violin on a bench]")
    assert spoken(sample())["D2:1"] == "Ada: I sold the bees to Marta in June."


def test_a_question_is_asked_where_a_turn_answers_it() -> None:
    assert [one.gold for one in questions(sample())] == [["D1:2"], ["D1:1", "D2:1"]]


def test_a_session_is_found_with_any_of_its_turns() -> None:
    [violins, bees] = questions(sample())
    found = ["D1:1", "D1:2", "D2:1"]
    assert session_of("D1:12") == "D1"
    assert list(locomo.scores(violins, ["D1:1"]).items()) == [
        *[("turn@5", 0.0), ("turn@10", 0.0)],
        *[("session@5", 1.0), ("session@10", 1.0)],
    ]
    assert set(locomo.scores(bees, found).values()) == {1.0}
    many = [f"D{number}:1" for number in range(3, 10)]
    assert locomo.scores(bees, [*many, *found])["session@5"] == 0.0
    assert locomo.scores(bees, [*many, *found])["session@10"] == 1.0


def test_a_conversation_is_lived_through_and_questioned(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results" / "out.json"
    said = ["--data", str(data), "--json", str(out), "--embedder", "offline"]
    assert locomo.main(said) == 0
    figures = json.loads(out.read_text())
    assert figures["questions"] == {"1": 1, "4": 1, "all": 2}
    rows = {row["system"]: row for row in figures["rows"]}
    assert set(rows) == {*ALONE, *BESIDE}
    for name, row in rows.items():
        assert list(row["recall"]) == [*locomo.TURNS, locomo.PROMPT]
        # Three turns: every system finds them all among ten.
        assert row["recall"]["turn@10"] == {"1": 1.0, "4": 1.0, "all": 1.0}, name
        assert ("score_importance" in row["calls"]) == ("nights" in name)
        assert (row["facts"] > 0) == ("nights" in name)
    printed = capsys.readouterr().out
    assert "single-" in printed
    assert "tuned on none of these conversations" in printed


def test_nights_and_the_embedder_can_be_left_out(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    said = ["--data", str(data), "--json", str(out), "--embedder", "none", "--no-nights"]
    assert locomo.main(said) == 0
    systems = [row["system"] for row in json.loads(out.read_text())["rows"]]
    assert systems == ["Circadian", "BM25"]


def test_without_minilm_the_rest_is_measured_and_that_is_said(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent() -> None:
        raise Absent(MISSING)

    monkeypatch.setattr(locomo, "MiniLM", absent)
    out = tmp_path / "out.json"
    assert locomo.main(["--data", str(data), "--json", str(out)]) == 0
    systems = [row["system"] for row in json.loads(out.read_text())["rows"]]
    assert systems == ALONE
    assert MISSING in capsys.readouterr().out


def test_without_data_nothing_is_measured_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(locomo.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    assert locomo.main(["--embedder", "none"]) == 0
    assert capsys.readouterr().out.splitlines() == [locomo.NO_DATA]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("file", "arguments", "told"),
    [
        ("none.json", [], "none.json is absent: LoCoMo was not measured"),
        ("data.json", ["--conversation", "conv-2"], "no conversation conv-2"),
        ("data.json", ["--embedder", "unknown"], "unknown"),
    ],
)
def test_a_wrong_file_or_argument_is_one_line(
    file: str,
    arguments: list[str],
    told: str,
    data: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(locomo.VARIABLE, str(data.with_name(file)))
    assert locomo.main(arguments) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert told in line


LOCOMO = "data.json is not in LoCoMo's format: "
BROKEN = [b"no JSON", b"\xff\xfe", b"{}", b"[1]", b'[{"sample_id": "a"}]', b"[" * 100_000]


@pytest.mark.parametrize(
    ("measuring", "content", "told"),
    [
        *((locomo, content, LOCOMO) for content in BROKEN),
        (beam, b'[{"chat": 1}]', "is not a list of chats"),
    ],
)
def test_data_in_another_format_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], measuring: Any, content: bytes, told: str
) -> None:
    data = tmp_path / "data.json"
    data.write_bytes(content)
    assert measuring.main(["--data", str(data)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert told in line


def test_it_says_which_conversations_recall_was_tuned_on() -> None:
    def said(*ids: str) -> str:
        return locomo.tuned_on([{"sample_id": one} for one in ids])

    assert "on these very conversations" in said("conv-26", "conv-30")
    assert "tuned on conv-26; the others" in said("conv-26", "conv-1")
    assert "held out" in said("conv-1")


def test_words_that_are_rare_and_texts_that_are_short_weigh_more() -> None:
    texts = {
        "long": "Bees and honey, and the bread, the butter and the jam on it.",
        "short": "Bees and honey.",
        "other": "Bees in Lisbon.",
    }
    index = Bm25(texts)
    assert index.search("the honey") == ["short", "long"]
    assert index.search("Lisbon bees")[0] == "other"
    assert index.search("and the") == []


async def test_the_compared_systems_give_the_nearest_turn_first() -> None:
    embeddings = WordEmbeddings()
    for searcher in (by_words, by_meaning(embeddings), by_mem0(embeddings)):
        async with searcher(sample(), Notes()) as ask:
            assert (await ask("Tomas repairs violins in Prague."))[0] == "D1:2"


def test_systems_that_share_an_embedder_pay_each_text_once() -> None:
    embeddings = WordEmbeddings()
    shared = Shared(embeddings)
    once = shared.embed_documents(["a b", "c", "a b"])
    assert shared.embed_documents(["c", "d"])[0] == once[1]
    assert once[0] == once[2] == embeddings.embed_query("a b")
    assert shared.embed_query("a b") == shared.embed_query("a b")
    assert embeddings.calls == [["a b", "c"], ["d"]]


def chat() -> dict[str, Any]:
    said = [
        ("user", "2024-03-15T09:00:00+00:00", "My harp lessons are on Mondays."),
        ("assistant", "2024-03-15T09:01:00+00:00", "You could practise your harp on Sundays."),
        ("user", "2024-03-20T18:00:00+00:00", "My harp lessons moved to Thursdays."),
    ]
    return {
        "chat": 1,
        "messages": [
            {"id": number, "role": role, "at": at, "text": text}
            for number, (role, at, text) in enumerate(said)
        ],
        "questions": [
            {"category": "knowledge_update", "text": "When are my harp lessons?", "gold": [0, 2]},
            {"category": "advice", "text": "When could I practise?", "gold": [1]},
        ],
    }


def test_a_days_messages_are_a_session_and_the_users_can_be_read_alone() -> None:
    whole = beam.conversation_of(chat(), user_only=False)
    assert list(spoken(whole)) == ["D1:0", "D1:1", "D2:2"]
    alone = beam.conversation_of(chat(), user_only=True)
    assert list(spoken(alone)) == ["D1:0", "D2:2"]
    assert [one.gold for one in questions(alone)] == [["D1:0", "D2:2"]]
    assert [one.gold for one in questions(whole)] == [["D1:0", "D2:2"], ["D1:1"]]


def test_the_newest_of_updated_values_should_stand_first() -> None:
    asked = Question("", locomo.UPDATED, ["D1:0", "D2:2"])
    assert locomo.newest_first(asked, ["D2:2", "D1:0"]) == 1.0
    assert locomo.newest_first(asked, ["D1:0", "D2:2"]) == 0.0
    assert locomo.newest_first(asked, ["D2:2"]) == 1.0
    assert locomo.newest_first(asked, []) == 0.0


def test_a_prompt_holds_as_many_lines_as_its_tokens() -> None:
    turns = {f"D1:{number}": "word " * 500 for number in range(40)}
    first, last = Question("", 1, ["D1:0"]), Question("", 1, ["D1:39"])
    assert locomo.in_prompt(first, list(turns), turns) == 1.0
    assert locomo.in_prompt(last, list(turns), turns) == 0.0


def test_chats_are_lived_through_and_questioned(tmp_path: Path) -> None:
    data, out = tmp_path / "chats.json", tmp_path / "out.json"
    data.write_text(json.dumps([chat()]))
    said = ["--data", str(data), "--embedder", "offline", "--json", str(out)]
    assert beam.main(said) == 0
    found = json.loads(out.read_text())
    assert set(found) == {"user's messages", "all messages"}
    for rows in found.values():
        assert [row["system"] for row in rows] == [
            *("Circadian", "Circadian, offline", "dense, offline"),
            *("BM25 + dense, offline", "BM25"),
        ]
        for row in rows:
            assert row["recall"]["turn@10"]["all"] == 1.0
            assert locomo.NEWEST in row["recall"]
