"""What the scrubber cuts, and what it leaves to the letter."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.forgetting.scrubbing import FORGOTTEN, Names, Scrubber, Statement
from memory.text import TextPrefilter


def scrubber(*names: str, **more: Any) -> Scrubber:
    return Scrubber(Names(names or ["Zora"]), ids=frozenset(("zora1",)), **more)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Zora is here.\nBen is there.", "Ben is there."),
        ("Zora came. She hates tea.\n\nBen left.", "Ben left."),
        ("- Zora's cup\n- Ben's cup\n", "- Ben's cup"),
        ("Zora is here. Ben is there.", None),
        ("Zora is here.", None),
        ("Zorana is here.\n\n  She is well. ", "Zorana is here.\n\n  She is well. "),
        ("Ben bakes a cake with apples.", "Ben bakes a cake with apples."),
    ],
)
def test_lines_that_name_the_person_are_cut_and_others_stay_unchanged(
    text: str, left: str | None
) -> None:
    assert scrubber().text(text) == left


def test_a_name_across_two_lines_takes_the_whole_text() -> None:
    assert scrubber("Ana Lopez").text("We met Ana\nLopez.") is None


def test_a_text_written_for_an_erased_event_goes_whole_but_only_as_it_was_written() -> None:
    long = "Buy the red lanterns " * 20
    written = scrubber(written=["Buy the blue balloons", "high", f"{long[:200]}..."])
    assert written.text("buy the  blue balloons") is None
    assert written.text(long) is None
    assert written.text("Buy the blue balloons and bread") == "Buy the blue balloons and bread"
    assert written.text("high") == "high"


def test_a_record_keeps_its_structure_whatever_the_persons_name() -> None:
    record = {
        "kind": "chat",
        "status": "active",
        "tool": "Chat",
        "text": "Chat came.\nWe ate.",
        "events": ["chat", {"at": "2026-03-02T09:00:00+00:00"}],
        "n": 3,
        "none": None,
    }
    assert scrubber("Chat").value(record) == {
        **record,
        "tool": FORGOTTEN,
        "text": "We ate.",
        "events": [FORGOTTEN, {"at": "2026-03-02T09:00:00+00:00"}],
    }


def test_labels_ids_and_keys_are_compared_with_names_only() -> None:
    record = {
        "Zora @ hall": {"channel": "walnut cake", "sender": "Zora", "id": "zora1"},
        "Ben": {"entities": ["durian", "zora"], "note": "zora1"},
    }
    assert scrubber().value(record) == {
        FORGOTTEN: {"channel": "walnut cake", "sender": FORGOTTEN, "id": FORGOTTEN},
        "Ben": {"entities": ["durian", FORGOTTEN], "note": FORGOTTEN},
    }


def test_json_in_a_text_stays_json() -> None:
    text = '{"success": true, "said": "Zora came.\\nBen, too.", "n": [1, "zora"]}'
    after = scrubber().value({"content": text})["content"]
    assert after == '{"success": true, "said": "Ben, too.", "n": [1, "[forgotten]"]}'
    untouched = '{"b":1,  "a": "Ben came."}'
    assert scrubber().value(untouched) == untouched


def test_blanking_removes_texts_and_keeps_labels_and_codes() -> None:
    record = {"type": "text", "id": "x", "to": "Zora", "text": "Durian.", "n": 1, "empty": ""}
    assert scrubber().blank([record, '{"query": "durian", "kind": "fact"}']) == [
        {**record, "to": FORGOTTEN, "text": FORGOTTEN},
        '{"query": "[forgotten]", "kind": "fact"}',
    ]


def test_scrubbing_is_idempotent() -> None:
    record = {"a": "Zora came.\nBen left.", "b": ["Zora"], "Zora": 1}
    once = scrubber().value(record)
    assert scrubber().value(once) == once


WORDS = "bought berries don't Café bakery stories Müller planned 我住在柏林 Ada's oaks feet Straße"
SPELLED = ["{}", "_{}_", "{}'s", "{}.", "ÀÉ {}", "\u200b{}", "{}\n", '"{}"', "l'{}", "\\{}", "我{}"]
LETTERS = [*"abO1'\u2019`_-.\\\"\n\u0001\u200b \u00e9\u00df\ufb01\u05e9", *"我住สุซ서"]
TEXTS = st.lists(st.sampled_from([*LETTERS, *WORDS.split(), "dont", "story"]), max_size=6).map(
    "".join
)


@example("שberries", "oaks feet ", "", "don't{}")
@example("berries", "oaks\u200b", "", "{}")
@given(TEXTS, TEXTS, TEXTS, st.sampled_from([*SPELLED, "don't{}"]))
def test_a_prefilter_passes_whatever_names_a_person_or_says_a_statement(
    said: str, before: str, after: str, spelled: str
) -> None:
    text = before + spelled.format(said) + after
    for wanted in (Statement([f"{said} {before}"]), Names([said])):
        quick, wanted.prefilter = wanted.prefilter, TextPrefilter(frozenset([()]))
        if wanted.within(text):
            assert quick.within(json.dumps({"at": [text]}, ensure_ascii=False))
