"""The persona guard judges a text together with its speaker."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from memory.guards.persona import violation

REJECTED = [
    # What the pages reject.
    "I helped the player",
    "I should be more formal",
    "The assistant suggested...",
    "I helped Alice",
    # An I behind other words.
    "Yesterday I was asked about tea",
    "Mary I helped with the door",
    "With Mary I opened the gate",
    "The house I built is warm",
    # Only a quotation.
    '"I helped the player"',
]
ACCEPTED = [
    # What the pages accept.
    "Player Alice completed the quest",
    "The tavern has 5 rooms",
    "Players prefer concise responses",
    "Player Alice completed the intro quest",
    "Player prefers rustic architectural style",
    "Player Alice prefers formal address",
    "The north gate closes at midnight",
    "Players tend to explore before asking for help",
    "Alice is level 5 warrior",
    "Server has 10 active players",
    "Players explore before asking for help",
    # Words that only look like self-reference.
    "Alice's circadian rhythm is off since the flight",
    "Sleep is regulated by circadian rhythms",
    "Bob works as an assistant at the library",
    "The assistant coach was fired",
    "Dr. Lee's assistant called about the appointment",
    "Alice asked the assistant to remind her of the dentist",
    "Act I is complete",
    "L'acte est signé chez Me Laurent",
    "Zośka kupiła chleb i masło",
    "World War I ended in 1918",
    "Paris, i.e. the capital, is far",
    "The I-95 is closed and Wi-Fi is down",
    "The US embassy is near the coal mine",
    "The amulet, a focus, gives wisdom",
    'Alice said "I love my garden"',
    # Talk of machines, and the numeral one.
    "AI is changing how films are made",
    "The AI conference is in May",
    "Bob wrote a bot for his shop",
    "The both of them slept",
    "The botanist explained the rose",
    "Vitamin I is no longer called a vitamin",
    "Bob asked for vitamin I",
]


@pytest.mark.parametrize("text", REJECTED)
def test_words_of_the_assistant_about_itself_are_rejected(text: str) -> None:
    assert violation(text)


@pytest.mark.parametrize("text", ACCEPTED)
def test_words_about_others_are_accepted(text: str) -> None:
    assert violation(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "i did it",
        "i was there",
        "Yesterday I'm told it rained",
        "I\N{RIGHT SINGLE QUOTATION MARK}ve learned that players like tea",
        "Alice thanked me. Then she left",
        "It was given to me",
        "My tone should be warmer",
        "We should be more formal",
        "This taught us patience",
        "Alice and I went to the gate",
        "As an AI, being brief is best",
    ],
)
def test_first_person_without_a_speaker_is_the_assistant(text: str) -> None:
    assert violation(text)
    assert violation(text, speaker="-")
    assert violation(text, speaker="  ")
    assert violation(text, speaker="Circadian")
    assert violation(text, speaker="assistant")
    assert violation(text, speaker="Alice") is None


@pytest.mark.parametrize(
    "text",
    [
        "The assistant suggested a longer rest",
        "Assistant helped Alice with the door",
        "The assistant is friendly",
        "The assistant's tone is warm",
        "The assistant\N{RIGHT SINGLE QUOTATION MARK}s tone is warm",
        "the AI assistant also quickly answered",
        "The door was opened by the assistant",
        "Circadian suggested a longer rest",
        "Yesterday Circadian was asked about tea",
        "Circadian's persona is calm",
        "The plan was written by Circadian.",
        "The AI helped Alice",
        "this AI is friendly",
        "Alice said that the bot answered late",
        "The chatbot then politely explained it",
        "The bot's tone is warm",
        "The plan was written by the AI.",
        "The assistant quickly and carefully explained the rules",
        "The assistant calmly, kindly and very briefly answered",
    ],
)
def test_speaking_of_the_assistant_in_the_third_person_is_rejected(text: str) -> None:
    assert violation(text)
    assert violation(text, speaker="Alice")


@pytest.mark.parametrize(
    "speaker",
    [
        *("the assistant", "This assistant", "your assistant", "@assistant:", "AI assistant"),
        *("AI", "the AI", "bot", "the  chatbot", "me", "I", "Myself", "self"),
    ],
)
def test_a_speaker_by_whom_the_assistant_means_itself_is_the_assistant(speaker: str) -> None:
    assert violation("I like short answers", speaker)
    assert violation("The gate is shut", speaker) is None


@pytest.mark.parametrize("speaker", ["Iris", "Botan", "Ai Weiwei", "Melissa", "Theo"])
def test_a_person_whose_name_only_looks_like_it_speaks_for_themselves(speaker: str) -> None:
    assert violation("I like short answers", speaker) is None


def test_other_names_can_be_given() -> None:
    assert violation("Nox suggested a rest", assistant_names=("nox",))
    assert violation("I like tea", speaker="Nox", assistant_names=("nox",))
    assert violation("Circadian suggested a rest", assistant_names=("nox",)) is None


def test_the_reason_quotes_the_offending_words() -> None:
    assert "'I'" in str(violation("I helped Alice"))
    assert "'The assistant suggested'" in str(violation("The assistant suggested..."))


TURNS = [
    ("Caroline", "I went to a support group yesterday and it was so powerful."),
    ("Melanie", "My kids and I made pots, we loved it! They gave us their best work."),
    ("Jon", "I lost my job as a banker, so I'm gonna start my own business."),
]


@pytest.mark.parametrize(("speaker", "text"), TURNS)
def test_people_speak_of_themselves(speaker: str, text: str) -> None:
    assert violation(text, speaker) is None
    assert violation(text)


def test_at_most_one_percent_of_real_turns_are_rejected_when_attributed_to_their_speakers(
    record_property: Callable[[str, object], None],
) -> None:
    path = os.environ.get("CIRCADIAN_LOCOMO")
    if not path:
        pytest.skip("CIRCADIAN_LOCOMO names no file in LoCoMo's format")
    turns = [
        (turn["speaker"], turn["text"])
        for sample in json.loads(Path(path).read_text())
        for session in sample["conversation"].values()
        if isinstance(session, list)
        for turn in session
    ]
    rejected = [text for speaker, text in turns if violation(text, speaker)]
    record_property("rejected", f"{len(rejected)} of {len(turns)}")
    assert len(turns) > 100
    assert len(rejected) <= 0.01 * len(turns), rejected[:5]


@pytest.mark.parametrize(
    "text",
    [
        "I cesti servono per il mercatino di Natale.",
        "Matteo cura i campi della cascina.",
        "Lista della spesa per i cesti (24 novembre 2026): paglia, 100 etichette, spago rosso.",
        "Il me faut 3 kg de farine pour la boutique.",
        "Vanaf morgen doen we de markt in Gouda.",
    ],
)
def test_words_of_another_language_are_no_english_pronouns(text: str) -> None:
    assert violation(text) is None
    assert violation("I cleaned the baskets for the market.") is not None
