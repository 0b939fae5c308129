"""The scorecard of nights: its measures, and a life lived in each way."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks import nights
from benchmarks.nights import (
    Asked,
    Way,
    auroc,
    evidence,
    figures,
    interval,
    left_out,
    lived,
    pooled,
    relations,
    stale_first,
    tokens_equal,
)
from benchmarks.reference_model import ReferenceModel
from memory.records.records import Fact, RecallHit


def life() -> dict[str, Any]:
    def said(id_: str, day: int, text: str, sender: str = "Ada") -> dict[str, Any]:
        at = f"2026-03-0{day}T09:00:00+01:00"
        return {"id": id_, "at": at, "sender": sender, "channel": None, "text": text} | {
            "addressed": False
        }

    def fact(id_: str, source: str, by: str | None = None) -> dict[str, Any]:
        return {"id": id_, "text": "", "sources": [source], "superseded_by": by}

    asked = {"at": "2026-03-03T09:00:00+01:00", "by": "Ada", "stale": [], "stale_events": []}
    return {
        "events": [
            said("e1", 1, "The harp of my aunt stands in Porto."),
            said("e2", 2, "The harp of my aunt stands in Lisbon now."),
            said("e3", 2, "My aunt's harp: in Lisbon.", "Ben"),
        ],
        "facts": [fact("f1", "e1", "f2"), fact("f2", "e2"), fact("f3", "e3")],
        "relations": [{"first": "f2", "second": "f3", "kind": "duplicates"}],
        "dependents": [],
        "questions": [
            {
                **asked,
                "id": "q1",
                "text": "Where does the harp of the aunt stand?",
                "kind": "current",
                "evidence": ["e2"],
                "current": ["f2"],
                "stale": ["f1"],
            },
            {
                **asked,
                "id": "q2",
                "text": "Which airline flies there?",
                "kind": "unanswerable",
                "evidence": [],
                "current": [],
            },
        ],
    }


def hit(*sources: str) -> RecallHit:
    return cast(RecallHit, {"sources": list(sources), "score": 0.5})


def test_an_event_counts_for_the_one_that_says_the_same() -> None:
    same = {"e2": {"e3"}}
    assert evidence([hit("e3")], ["e2"], same) == 1.0
    assert evidence([hit("e1")], ["e2", "e1"], same) == 0.5


def test_outdated_first_is_what_stands_above_all_that_is_current() -> None:
    question = life()["questions"][0]
    assert stale_first([hit("e9"), hit("e1"), hit("e2")], question, life())
    assert not stale_first([hit("e2"), hit("e1")], question, life())
    assert not stale_first([hit("e1", "e2")], question, life())
    assert not stale_first([], question, life())
    told_as_past = {**hit("e5", "e1"), "earlier": [{"sources": ["e1"]}]}
    assert not stale_first([cast(RecallHit, told_as_past), hit("e2")], question, life())


def test_auroc_counts_ties_half() -> None:
    assert auroc([0.9, 0.5], [0.5, 0.1]) == 0.875
    assert auroc([], [0.5]) == 0.5


def test_an_interval_is_drawn_alike_each_time() -> None:
    low, high = interval([0.0, 1.0] * 20)
    assert 0.3 < low < 0.5 < high < 0.7
    assert interval([0.0, 1.0] * 20) == [low, high]


def test_figures_of_nothing_recalled() -> None:
    asked = Asked(
        best={"q1": [], "q2": []}, prompt={"q1": [], "q2": []}, reach={"q1": [], "q2": []}
    )
    told = figures(life(), asked)
    assert (told["recall_at_10"], told["auroc"], told["answered_nothing"]) == (0.0, 0.5, 1.0)


def test_a_life_is_lived_in_each_way(tmp_path: Path) -> None:
    file, out = tmp_path / "harp.json", tmp_path / "out.json"
    file.write_text(json.dumps(life()))
    assert nights.main(["--data", str(file), "--later", "40", "--json", str(out)]) == 0
    told = json.loads(out.read_text())["harp"]
    assert list(told) == [
        *("none", "none+40", "offline", "offline+40", "reference", "reference+40")
    ]
    wanted = [
        *("recall_at_10", "recall_1300", "stale_first", "dependents_flagged", "flagged_wrongly"),
        *("auroc", "calls_per_100", "kinds"),
    ]
    assert all(list(one) == wanted for one in told.values())
    assert told["none"]["recall_at_10"] == told["offline+40"]["recall_at_10"] == 1.0
    assert (told["none"]["calls_per_100"], told["none"]["auroc"]) == (0.0, 1.0)
    assert told["offline"]["calls_per_100"] > 0


async def test_a_phase_that_is_left_out_decides_nothing() -> None:
    with left_out(["consolidate"]):
        told = await lived(life(), Way(nights=True))
    assert told[0].facts == []
    assert len((await lived(life(), Way(nights=True)))[0].facts) == 3


async def test_empty_nights_change_nothing() -> None:
    told = await lived(life(), Way(nights=True), empty=2)
    assert told[0].drift == 0.0


def made(op: str, source: str, **fields: Any) -> Fact:
    its = {"id": op, "op": op, "source_events": [source], "superseded_by": None}
    return cast(Fact, {**its, **fields})


def test_relations_are_matched_by_the_sources_of_their_facts() -> None:
    facts = [made("a", "e1", superseded_by="b"), made("b", "e2"), made("c", "e3")]
    told = relations(life(), facts)
    assert told["supersedes"] == [0.0, 0.0]
    assert told["duplicates"] == [0.0, 0.0]
    given = life()
    given["relations"].append({"first": "f2", "second": "f1", "kind": "supersedes"})
    assert relations(given, facts)["supersedes"] == [1.0, 1.0]
    again = [made("a", "e1"), made("b", "e2", source_events=["e2", "e3"])]
    again.append(made("c", "e3", superseded_by="b"))
    assert relations(given, again)["duplicates"] == [1.0, 1.0]


def test_the_reference_model_knows_names_and_everyday_words_for_a_fact_and_no_question() -> None:
    told: Any = {**life(), "attributes": [], "insights": []}
    told["aliases"] = [{"entity": "Ada", "names": ["the maestro"]}]
    fact = {"id": "f1", "text": "Ada's brother has a sofa.", "speaker": "Ada", "entities": []}
    given = ReferenceModel(life=told)._other_words(fact)
    assert given == ["the maestro, sibling, boy, couch, settee"]


def test_lives_are_pooled_over_their_questions() -> None:
    one = figures(life(), Asked(best={"q1": [hit("e2")], "q2": []}, **nothing("prompt", "reach")))
    two = figures(life(), Asked(best={"q1": [], "q2": []}, **nothing("prompt", "reach")))
    told = pooled({"one": {"none": one}, "two": {"none": two}})["none"]
    assert told["recall_at_10"] == 0.5
    assert told["intervals"]["recall_at_10"] == [0.0, 1.0]
    assert tokens_equal({"by_tokens": [0.2, 0.5]}, {"by_tokens": [0.1, 0.4]}) == 100


def nothing(*lists: str) -> dict[str, Any]:
    return {name: {"q1": [], "q2": []} for name in lists}


def test_a_file_of_another_form_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "other.json"
    file.write_text("[]")
    assert nights.main(["--data", str(file)]) == 2
    assert "is not a life" in capsys.readouterr().err
    assert isinstance(nights.WAYS["none"], Way)
