"""Credit: which recalled facts an answer used."""

from __future__ import annotations

import pytest

from memory.recall.probes import used

SHOWN = {
    "a1b2c3d4e5": "Ada lives in Bergen with two cats.",
    "b1b2c3d4e5": "Ada plays the harp on Sundays.",
    "c1b2c3d4e5": "Ada pays 1,150 a month.",
    "d1b2c3d4e5": "阿达住在卑尔根",
}


@pytest.mark.parametrize(
    ("answer", "asked", "expected"),
    [
        ("In Bergen.", "Where does Ada live?", ["a1b2c3d4e5"]),
        ("She lives with Ada.", "Where does Ada live?", []),
        ("Ada does.", "Who?", []),
        ("I do not know.", "Where does Ada live?", []),
        ("Bergen it is.", "Does Ada live in Bergen?", []),
        ("See b1b2c3d4.", "What does she play?", ["b1b2c3d4e5"]),
        ("1,150.", "What does Ada pay?", ["c1b2c3d4e5"]),
        ("卑尔根", "Where?", ["d1b2c3d4e5"]),
        ("The harp, and two cats.", "What has she?", ["a1b2c3d4e5", "b1b2c3d4e5"]),
        ("", "", []),
    ],
)
def test_a_fact_is_used_if_it_is_cited_or_its_own_words_are_said(
    answer: str, asked: str, expected: list[str]
) -> None:
    assert used(SHOWN, answer, asked=asked) == expected


def test_a_word_of_all_facts_proves_the_use_of_none() -> None:
    shown = {str(n): f"The mill ground {n * 111} sacks." for n in range(1, 9)}
    assert used(shown, "The mill ground 333.", asked="How many?") == ["3"]
    assert used(shown, "The mill ground nothing.", asked="How many?") == []
