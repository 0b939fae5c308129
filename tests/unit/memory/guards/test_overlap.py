"""Overlap: what comes from elsewhere, and whose word it is."""

import pytest

from memory.guards.overlap import (
    Said,
    from_elsewhere,
    joining,
    lost_in,
    may_supersede,
    speaker_of,
    speakers_of,
    stands_near,
)
from tests.support import night_memories

RECALLED = "- [fact_1] 2026-05-01 Ben: Ben keeps the keys of the mill in Turin"


@pytest.mark.parametrize(
    "text", ["Ben keeps the keys of the mill", "The mill's keys are kept in Turin by Ben", RECALLED]
)
def test_a_recalled_memory_is_no_new_fact_unless_its_source_says_it(text: str) -> None:
    assert from_elsewhere(text, ["Ada: Good morning"], [RECALLED])
    assert not from_elsewhere(text, [f"Ada: {text}"], [RECALLED])


def test_a_paraphrase_without_shared_words_is_accepted() -> None:
    assert not from_elsewhere("Ada is a vegetarian", ["Ada: I do not eat meat"], [RECALLED])


def test_a_source_may_add_to_a_known_fact() -> None:
    known = "Ada's flight to Oslo leaves on Thursday"
    said = "Ada: It leaves on Friday now"
    assert not from_elsewhere("Ada's flight to Oslo leaves on Friday now", [said], [known])


def test_the_speaker_is_whose_words_they_are() -> None:
    said = [Said("Olaf", "Ada hates walnuts"), Said("Ada", "The weather is nice")]
    assert speaker_of("Ada hates walnuts", "Ada", said) == "Olaf"
    assert speaker_of("The weather is nice", "Olaf", said) == "Ada"
    assert speaker_of("Ada hates walnuts", "Ben", said[:1]) == "Olaf"


def test_who_agrees_says_it_too() -> None:
    said = [Said("Hana", "Can I bring the cello on Tuesday instead?"), Said("Ines", "Fine.")]
    text = "Hana brings the cello on Tuesday."
    assert speakers_of(text, "Hana", said) == "Hana and Ines"
    for other in ("The cat sleeps.", "Yes, but no.", "Of course not."):
        assert speakers_of(text, "Hana", [said[0], Said("Ines", other)]) == "Hana"


@pytest.mark.parametrize(
    ("old", "new", "owners", "may"),
    [
        ("Hana and Ines", "Hana and Ines", ["Ines"], True),
        ("Hana and Ines", "Ines", ["Ines"], True),
        ("Hana and Ines", "Hana", ["Ines"], False),
        ("Hana and Teo", "Max", ["Ines"], False),
    ],
)
def test_what_several_said_they_or_an_owner_take_back_and_nobody_else(
    old: str, new: str, owners: list[str], may: bool
) -> None:
    first = night_memories.fact("a", "Hana comes on Monday.", speaker=old, entities=["Hana"])
    later = night_memories.fact("b", "Hana comes on Tuesday.", speaker=new, entities=["Hana"])
    later = {**later, "valid_from": "2026-05-02T00:00:00+00:00"}
    assert may_supersede(later, first, owners) == may


@pytest.mark.parametrize(("teller", "may"), [("Anna", True), ("Annabelle", False)])
def test_who_passes_something_on_is_named_by_a_whole_word(teller: str, may: bool) -> None:
    at = {"source_entries": ["e1"], "source_events": ["e1"], "entities": ["Ben"]}
    text = f"{teller} says that Ben's wedding is on 2 May."
    old = night_memories.fact("old", text, speaker="Anna", **at)
    later = {**at, "speaker": "Ben", "valid_from": "2026-05-02T00:00:00+00:00"}
    new = night_memories.fact("new", "Ben's wedding is on 9 May.", **later)
    assert may_supersede(new, old, ["local"]) == may


@pytest.mark.parametrize(
    ("first", "second", "lost"),
    [
        ("Ana's sister Ida is a doctor.", "Ana's sister Ida is a doctor and allergic to nuts.", ""),
        ("Ana takes aspirin daily.", "Ana takes aspirin daily, never with ibuprofen.", ""),
        ("Ana mag Kaffee.", "Ana likes coffee but not after lunch.", ""),
        ("Ana lives in Bonn.", "Ana no longer lives in Bonn.", "ana lives in bonn"),
        ("The fair is in May.", "The fair in May was cancelled.", "the fair is in may"),
        ("Ana pays 50 euros rent.", "Ana pays 500 euros rent and 20 for power.", "50"),
    ],
)
def test_the_fuller_duplicate_stays_and_what_it_does_not_bear_out_is_told(
    first: str, second: str, lost: str
) -> None:
    at = {"source_entries": ["e1"], "source_events": ["e1"], "speaker": "Ana"}
    old = night_memories.fact("old", first, **at)
    new = night_memories.fact("new", second, **at, valid_from="2026-05-02T00:00:00+00:00")
    stays, goes = joining(old, new)
    assert (stays["text"], " ".join(lost_in(stays, goes))) == (second, lost)


@pytest.mark.parametrize(("answer", "who"), [("Yes!", "Ada"), ("It is raining.", None)])
def test_who_says_yes_is_the_speaker_of_what_was_asked(answer: str, who: str | None) -> None:
    said = [Said("Ben", "Do you like green tea, Ada?"), Said("Ada", answer)]
    assert speaker_of("Ada likes green tea", "Ada", said) == who


def test_a_rewording_may_name_what_its_speaker_spoke_of_before() -> None:
    said, before = (
        ["I counted wrong. It is 60, not 45."],
        ["A place in the evening class costs 45."],
    )
    told = "A place in the evening class costs 60 euros."
    assert not stands_near(told, said)
    assert stands_near(told, said, earlier=before)
    assert not stands_near(told, ["So be it."], earlier=before)
    cancelled, others = "The evening class is cancelled.", ["Say that it is cancelled."]
    assert not stands_near(cancelled, ["See you at six."], earlier=before, others=others)
    assert stands_near(cancelled, ["It is cancelled."], earlier=before)
