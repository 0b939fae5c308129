"""BM25 against the formula as it stands in the book, said in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.vectorstore.bm25 import Numbers, best, bm25

TEXTS = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=6), min_size=1, max_size=6)


def numbers(*values: int) -> Numbers:
    return np.array(values, dtype=np.int64)


def postings(texts: list[list[str]], word: str) -> Numbers:
    return numbers(*(place for place, text in enumerate(texts) for one in text if one == word))


@given(texts=TEXTS, query=st.sets(st.sampled_from("abcdx")))
def test_a_score_is_what_the_formula_gives(texts: list[list[str]], query: set[str]) -> None:
    mean = sum(map(len, texts)) / len(texts)
    expected = []
    for text in texts:
        score = 0.0
        for word in query:
            having = sum(word in other for other in texts)
            rarity = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
            often = text.count(word)
            score += rarity * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * len(text) / mean))
        expected.append(score)
    assert scored(texts, [0] * len(texts), query) == pytest.approx(expected)


@given(texts=TEXTS, query=st.sets(st.sampled_from("abcdx")), data=st.data())
def test_each_kind_is_scored_as_if_the_others_were_not_there(
    texts: list[list[str]], query: set[str], data: st.DataObject
) -> None:
    kinds = [data.draw(st.sampled_from([0, 1, 3])) for _ in texts]
    together = scored(texts, kinds, query)
    for kind in set(kinds):
        places = [place for place, one in enumerate(kinds) if one == kind]
        alone = scored([texts[place] for place in places], [0] * len(places), query)
        assert [together[place] for place in places] == pytest.approx(alone)


def scored(texts: list[list[str]], kinds: list[int], query: set[str]) -> list[float]:
    given_postings = [postings(texts, word) for word in sorted(query)]
    lengths = numbers(*map(len, texts))
    return bm25(given_postings, np.arange(len(texts)), lengths, numbers(*kinds)).tolist()


def test_a_word_of_every_text_still_counts_and_a_rare_one_counts_for_more() -> None:
    texts = [["a", "b"], ["a", "c"], ["a", "c"]]
    scores = scored(texts, [0, 0, 0], {"a", "b"})
    assert scores[0] > 2 * scores[1] > 0


def test_a_number_that_is_no_text_is_left_out() -> None:
    known = (numbers(5, 7), numbers(1, 1), numbers(0, 0))
    assert bm25([numbers(1, 5, 7, 9)], *known).tolist() == bm25([numbers(5, 7)], *known).tolist()
    assert bm25([numbers(1)], numbers(), numbers(), numbers()).tolist() == []


@given(st.lists(st.sampled_from([0.5, 1.0, 2.0])), st.integers(0, 9))
def test_the_best_come_first_and_of_equals_the_first_written(
    scores: list[float], limit: int
) -> None:
    order = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
    found = best(np.arange(len(scores)), np.array(scores), limit)
    assert found == [(place, scores[place]) for place in order[:limit]]
