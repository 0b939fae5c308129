"""Names: when two spellings are one, and where one stands in a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.words import MAX_WORDS, longest, name_key, places, says, shown_name, spellings

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).filter(str.strip)


def named(text: str, *known: str) -> list[str]:
    return longest(places(text), {name_key(one) for one in known})


@pytest.mark.parametrize("spelled", ["Ana Lopez", " ana  LOPEZ ", "@Ana Lopez", "ANA\nLOPEZ"])
def test_case_blanks_and_a_leading_at_are_ignored(spelled: str) -> None:
    assert name_key(spelled) == "ana lopez"


def test_an_accented_letter_is_the_same_in_every_encoding() -> None:
    assert name_key("Zo\u00eb") == name_key("Zoe\u0308") != name_key("Zoe")


@pytest.mark.parametrize("other", ["Ana Lopes", "Ana L.", "AnaLopez", "Ana-Lopez", "Lopez Ana"])
def test_a_similar_name_is_another_name(other: str) -> None:
    assert "ana lopez" not in spellings(other)


@pytest.mark.parametrize("spelled", ["Ana's", "Ana\u2019s", "Ana'"])
def test_a_genitive_may_be_the_name_itself_or_its_owners(spelled: str) -> None:
    assert spellings(spelled)[1] == "ana"
    assert spellings("Ana") == ["ana"]
    assert spellings("In\u00e9s") == ["in\u00e9s", "ines"]


@pytest.mark.parametrize("odd", ["@", "@@", "'s", "'", "  ' "])
def test_no_name_is_folded_to_nothing(odd: str) -> None:
    assert all(spellings(odd))
    assert shown_name(odd)


@given(NAMES)
def test_a_name_is_found_by_its_unfolded_spelling(name: str) -> None:
    assert name_key(name_key(name)) == name_key(name)
    assert name_key(shown_name(name)) == name_key(name)


@pytest.mark.parametrize(
    "text",
    [
        "I saw Ana Lopez.",
        "(ana lopez) is here",
        "**Ana Lopez** said so",
        "Is that Ana Lopez's hat?",
        "@Ana Lopez, look",
        "the mill\u2014Ana Lopez\u2014burned",
        "\u201cAna Lopez\u201d, they said",
    ],
)
def test_a_name_is_found_inside_punctuation(text: str) -> None:
    assert named(text, "Ana Lopez") == ["ana lopez"]
    assert says(text, "Ana Lopez")


@pytest.mark.parametrize(
    "text", ["Anabel Lopez", "Ana, Lopez and I", "Ana. Lopez", "banana lopez", "Lopez Ana", ""]
)
def test_half_a_name_or_a_part_of_a_word_is_no_mention(text: str) -> None:
    assert named(text, "Ana Lopez") == []
    assert not says(text, "Ana Lopez")


def test_of_overlapping_names_the_longest_counts_in_order_and_once() -> None:
    people = ("Ana", "Ana Lopez", "Lopez")
    assert named("Ana Lopez came", *people) == ["ana lopez"]
    assert named("Ana Lopez met Ana", *people) == ["ana lopez", "ana"]
    assert named("Bea and Ana; Bea again", "Ana", "Bea") == ["bea", "ana"]
    assert named("We ate at McDonald's.", "McDonald", "McDonald's") == ["mcdonald's"]
    assert named("We ate at McDonald's.", "McDonald") == ["mcdonald"]


def test_names_with_punctuation_are_found() -> None:
    text = "C++ is not C, says user.1 to bob@example.org and O'Brien"
    found = ["c++", "c", "user.1", "bob@example.org", "o'brien"]
    assert named(text, *found) == found
    assert named("Ask Ana L., or Bob.", "Ana L.", "Bob", "Ana L") == ["ana l.", "bob"]


def test_an_ordinary_word_is_a_name_only_with_a_capital() -> None:
    assert named("I will go", "Will") == []
    assert named("Ask Will, or will you?", "Will") == ["will"]


def test_only_the_beginning_of_a_long_text_is_searched() -> None:
    text = "word " * MAX_WORDS
    assert named(f"Ana {text}", "Ana") == ["ana"]
    assert named(f"{text} Ana", "Ana") == []
    assert len({one.key for one in places("Many words, all of them different. " * 10_000)}) < 100
