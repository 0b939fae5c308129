"""Analysis: index terms in any language, what is embedded, and how a query is read."""

from datetime import UTC, datetime

import pytest

from memory.text.analysis import (
    Day,
    about_self,
    asks,
    asks_nothing,
    days_in,
    embedded_text,
    entry_terms,
    read_query,
    terms,
)
from memory.text.words import LONGEST, cached_by_text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Stop words are left out, unless there are no others, and English words stemmed.
        ("Ana was painting the old boats", ["ana", "paint", "old", "boat"]),
        ("Ana's boat", ["ana", "boat"]),
        ("ana boats", ["ana", "boat"]),
        ("don't", ["dont"]),
        ("Who was he?", ["who", "was", "he"]),
        ("?!", []),
        # Case, accents and wide letters make no difference.
        *((text, ["caf"]) for text in ("CAFÉ", "cafe\u0301", "\uff43\uff41\uff46\uff45", "cafe")),
        # A single character is a term by itself.
        ("猫", ["猫"]),
        ("I brought a 🎻🦊 home ☕", ["bring", "🎻", "🦊", "hom", "☕"]),
        # Vowel signs do not cut a word.
        ("हिन्दी किताब", ["हिन्दी", "किताब"]),
        ("كِتَاب", ["كِتَاب"]),
        # Words of other scripts are not stemmed, and told apart within a word.
        ("книгами", ["книгами"]),
        ("iPhone手机", ["iphon", "手机"]),
    ],
)
def test_a_text_has_these_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("昨日東京タワーに行きました", "東京タワー"),
        ("我喜欢在公园里散步", "公园"),
        ("어제 서울에서 친구를 만났어요", "서울"),
        ("ฉันไปเที่ยวเชียงใหม่", "เชียงใหม่"),
    ],
)
def test_scripts_without_blanks_are_found_by_pairs_of_characters(text: str, query: str) -> None:
    assert set(terms(query)) <= set(terms(text))
    assert {len(term) for term in terms(query)} == {2}


def test_an_entrys_own_words_count_twice_and_those_before_it_once() -> None:
    found = entry_terms("A harp", "Ana", ["What did you buy?", "Hello Ben"])
    assert sorted(found) == ["ana", "ana", "ben", "buy", "harp", "harp", "hello"]


def test_embedded_text_has_no_names_of_speakers() -> None:
    assert embedded_text("Thanks, Ana! The harp is here.", ["Ana", "Ben"]) == (
        "Thanks! The harp is here."
    )
    assert embedded_text("Ana's harp and Anabel", ["Ana"]) == "Ana's harp and Anabel"
    assert embedded_text("Ana!", ["Ana"]) == "Ana!"
    assert embedded_text("Hello", []) == embedded_text("Hello", [" "]) == "Hello"


def test_a_speakers_name_in_a_query_says_who_and_is_not_embedded_unless_alone() -> None:
    read = read_query("What did ana say about Ben's harp?", ["Ana", "Ben", "An"])
    assert read.people == {"Ana", "Ben"}
    assert read.terms == ("ana", "say", "ben", "harp")
    assert read.text == "What did say about harp?"
    alone = read_query("Ana", ["Ana"])
    assert (alone.terms, alone.text) == (("ana",), "Ana")
    assert read_query("What is an analogy?", ["Ana"]).people == frozenset()
    assert read_query("harp, harps and a harp", []).terms == ("harp",)
    assert read_query("How much was the harp?", []).terms == ("harp",)
    assert read_query("How much?", []).terms == ("much",)


PAST = [
    "What used to be Ana's job?",
    "Where did Ana live before?",
    "Where did Ana live before she came here?",
    "What was the plan previously?",
    "What does Ana no longer eat?",
    "Ana's former boss",
    "Where did Ana use to live?",
    "What didn't Ana use to eat?",
    "Where was the harp originally?",
]
PRESENT = [
    "How old is Ana?",
    "Where does Ana live?",
    "Remind me before noon of the form",
    "Which to use to cut?",
]


@pytest.mark.parametrize("query", [*PAST, *PRESENT])
def test_a_query_can_ask_about_the_past(query: str) -> None:
    assert read_query(query, []).past is (query in PAST)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Is it?", True),
        ('"Is it?"', True),
        ("Is it? [image: a harp]", True),
        ("本当\uff1f", True),
        ("Is it? Yes.", False),
        ("", False),
    ],
)
def test_a_text_that_ends_in_a_question_asks(text: str, question: bool) -> None:
    assert asks(text) is question


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("on 8 May, 2023", [Day(2023, 5, 8)]),
        ("on May 8th", [Day(None, 5, 8)]),
        ("the 3rd of June 2022", [Day(2022, 6, 3)]),
        ("in Sept. 2022", [Day(2022, 9)]),
        ("In 2022, in July", [Day(2022, 7)]),
        ("2023-05-08", [Day(2023, 5, 8)]),
        ("2023-05", [Day(2023, 5)]),
        ("in 2021", [Day(2021)]),
        ("between 1 May and 4 June 2020", [Day(2020, 5, 1), Day(2020, 6, 4)]),
        ("in May", [Day(None, 5)]),
        ("What may he do?", []),
        ("the 31 June", []),
        ("room 2023-99-99", [Day(2023)]),
        ("he marched on", []),
    ],
)
def test_dates_are_read_as_people_write_them(text: str, days: list[Day]) -> None:
    assert days_in(text) == days


def test_a_moment_is_the_closer_to_a_day_the_nearer_it_is() -> None:
    noon = datetime(2023, 5, 8, 12, tzinfo=UTC)
    day = Day(2023, 5, 8)
    assert day.closeness(noon) == 1
    assert 1 > day.closeness(noon.replace(day=9)) > day.closeness(noon.replace(day=20)) > 0
    assert Day(None, 5, 8).closeness(noon) == 1
    assert Day(2022, 2, 29).closeness(noon) < 0.01


def test_a_month_or_a_year_holds_all_its_moments_alike() -> None:
    noon = datetime(2023, 5, 8, 12, tzinfo=UTC)
    assert [Day(2023, 5).closeness(noon), Day(2023, 6).closeness(noon)] == [1, 0]
    assert Day(2022, 5).closeness(noon) == 0
    assert 0 < Day(2023).closeness(noon) < 1
    assert Day(2022).closeness(noon) == 0


def test_a_query_can_be_about_whoever_asks() -> None:
    assert read_query("Where did I put my harp?", []).own
    assert read_query("Wo ist mein Rad?", []).own
    assert not read_query("Where in the US is Ana's harp?", []).own


def test_texts_differ_in_how_much_they_tell_of_their_speaker() -> None:
    told = about_self("I moved my harp, and we will sell ours.")
    assert 0 < about_self(f"I see. {'You could move your harp to the attic. ' * 6}") < told == 1.0
    assert about_self("You could move your harp to the attic.") == 0.0


@pytest.mark.parametrize(
    ("asked", "computed"),
    [
        (["a", "b", "b", "c", "a"], [0, 1, 3, 4]),
        (["x" * LONGEST] * 2, [0]),
        (["x" * 2_001] * 2, [0, 1]),
    ],
)
def test_the_newest_short_texts_are_cached(asked: list[str], computed: list[int]) -> None:
    seen = list[str]()

    @cached_by_text(2)
    def counted(text: str) -> int:
        seen.append(text)
        return len(text)

    assert [counted(text) for text in asked] == [len(text) for text in asked]
    assert seen == [asked[place] for place in computed]


EMPTY = ["ok", "Danke!", "Thanks, Ana Lopez", "great, good night circadian", "hm hm", "Merci"]
FULL = ["Ana Lopez", "night", "ok, the barn", "great", "thanks to Ben"]


@pytest.mark.parametrize("query", [*EMPTY, *FULL])
def test_small_talk_and_fillers_ask_nothing(query: str) -> None:
    assert asks_nothing(query, ["circadian", "Ana Lopez"]) is (query in EMPTY)
