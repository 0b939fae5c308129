from typing import Any

import pytest

from memory.forgetting.names import Names
from memory.forgetting.resemblance import Resemblance, Speech, content
from memory.forgetting.scrubbing import FORGOTTEN, Level, Scrubber

ZORA = Speech("2026-03-02T10", "I am allergic to durian and the walnut cake of my aunt.", True)
BEN = Speech("2026-03-02T09", "My cake with apples is in the oven, and the oven is hot.", False)


def scrubber(*said: Speech, **more: Any) -> Scrubber:
    likeness = Resemblance(said or (ZORA, BEN), **more)
    return Scrubber(Names(["Zora"]), likeness, ids=frozenset(("zora1",)))


CUT: list[tuple[Level, str, str | None]] = [
    ("unknown", "Zora is here. Ben is there.", "Ben is there."),
    ("unknown", "Ben is there. I like Zora.", "Ben is there."),
    ("unknown", "Zora is here.", None),
    (
        "unknown",
        "One is allergic to durian and a walnut cake. Apples are fine.",
        "Apples are fine.",
    ),
    ("unknown", "Somebody is allergic to durian.", None),
    ("unknown", "Zora came. She hates tea. Ben left.", "Ben left."),
    ("unknown", "Dr. Zora came. Ben left.", "Ben left."),
    ("unknown", "- Zora's cup\n- Ben's cup\n", "- Ben's cup"),
    ("mixed", "Durian is out of the question for us. Apples are fine.", "Apples are fine."),
    ("said", "He told me: allergic to durian and the walnut cake. I baked.", "I baked."),
]
KEPT: list[tuple[Level, str]] = [
    ("unknown", "Ben bakes a cake with apples."),
    ("unknown", "Durian is out of the question for us."),
    ("unknown", "The cake of Ben."),
    ("mixed", "The cake is in the oven."),
    ("said", "I like durian and walnut, too."),
    ("said", "He is allergic to durian."),
    ("unknown", "Zorana is here.\n\n  She is well. "),
]


@pytest.mark.parametrize(("level", "text", "left"), CUT)
def test_what_is_theirs_is_cut_sentence_by_sentence(
    level: Level, text: str, left: str | None
) -> None:
    assert scrubber().text(text, level) == left


@pytest.mark.parametrize(("level", "text"), KEPT)
def test_what_is_not_theirs_stays_to_the_letter(level: Level, text: str) -> None:
    assert scrubber().text(text, level) == text


def test_what_another_said_first_is_no_quotation() -> None:
    first = Speech("2026-03-01", "The red house by the old mill burned.", False)
    again = Speech("2026-03-02", "the red house by the old mill", True)
    text = "They say the red house by the old mill is gone."
    assert scrubber(first, again).text(text, "unknown") == text
    assert scrubber(again, first._replace(at="2026-03-03")).text(text, "said") is None


def test_what_another_said_about_the_person_may_be_said_again_by_anybody() -> None:
    about = Speech("2026-03-01", "The red house by the old mill burned.", True, own=False)
    later = Speech("2026-03-02", "the red house by the old mill", True)
    text = "They say the red house by the old mill is gone."
    assert scrubber(about, later).text(text, "said") == text
    assert scrubber(about, later).text(text, "unknown") is None
    again = later._replace(at="2026-03-03", erased=False)
    assert scrubber(about, again).text(text, "unknown") == text


def test_a_fact_that_stays_makes_its_words_nobodys_own() -> None:
    text = "Durian is in the shop."
    assert scrubber().text(text, "mixed") is None
    assert scrubber(ZORA, BEN, kept=["Ben sells durian."]).text(text, "mixed") == text


def test_what_was_written_for_the_erased_goes_whole_but_only_as_it_was_written() -> None:
    written = scrubber(written=["Buy the blue balloons", "high"])
    assert written.text("buy the  blue balloons", "unknown") is None
    assert written.text("Buy the blue balloons and bread", "unknown") is not None
    assert written.text("high", "unknown") == "high"


def test_a_script_without_blanks_is_compared_by_its_letters() -> None:
    said = "\u79c1\u306f\u30c9\u30ea\u30a2\u30f3\u304c\u98df\u3079\u3089\u308c\u307e\u305b\u3093"
    assert len(content(said)) > 4
    one = Scrubber(Names(["Zora"]), Resemblance([Speech("", said, True)]))
    assert one.text(f"\u3042\u306e\u4eba\u306f{said}\u3002", "said") is None


def test_the_form_of_a_record_stays_whatever_the_person_is_called() -> None:
    record = {
        "kind": "chat",
        "status": "active",
        "tool": "Chat",
        "text": "Chat came. We ate.",
        "events": ["chat", {"at": "2026-03-02T09:00:00+00:00"}],
        "n": 3,
        "none": None,
    }
    one = Scrubber(Names(["Chat"]), Resemblance([Speech("", "active", True)]))
    assert one.value(record, "unknown") == {
        **record,
        "tool": FORGOTTEN,
        "text": "We ate.",
        "events": [FORGOTTEN, {"at": "2026-03-02T09:00:00+00:00"}],
    }


def test_labels_ids_and_keys_go_by_name_alone() -> None:
    record = {
        "Zora @ hall": {"channel": "walnut cake", "sender": "Zora", "id": "zora1"},
        "Ben": {"entities": ["durian", "zora"], "note": "zora1"},
    }
    assert scrubber().value(record, "unknown") == {
        FORGOTTEN: {"channel": "walnut cake", "sender": FORGOTTEN, "id": FORGOTTEN},
        "Ben": {"entities": ["durian", FORGOTTEN], "note": FORGOTTEN},
    }


def test_json_in_a_text_stays_json() -> None:
    text = '{"success": true, "said": "Zora came. Ben, too.", "n": [1, "zora"]}'
    after = scrubber().value({"content": text}, "unknown")["content"]
    assert after == '{"success": true, "said": "Ben, too.", "n": [1, "[forgotten]"]}'
    untouched = '{"b":1,  "a": "Ben came."}'
    assert scrubber().value(untouched, "unknown") == untouched


def test_scrubbed_twice_is_scrubbed_once() -> None:
    record = {"a": "Zora came. Ben left.", "b": ["Zora"], "Zora": 1}
    once = scrubber().value(record, "mixed")
    assert scrubber().value(once, "mixed") == once
