"""BM25 against the formula as it stands in the book, said in plain Python."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.facts.sqlite.indexes import Numbers, best, bm25, measured, placed, weighed

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


@given(texts=TEXTS, query=st.sets(st.sampled_from("abcdx"), min_size=1), data=st.data())
def test_each_kind_is_scored_as_if_the_others_were_not_there_but_for_its_measure(
    texts: list[list[str]], query: set[str], data: st.DataObject
) -> None:
    kinds = [data.draw(st.sampled_from([0, 1, 3])) for _ in texts]
    together = scored(texts, kinds, query)
    for kind in set(kinds):
        mine = [text for text, one in zip(texts, kinds, strict=True) if one == kind]
        alone = scored(mine, [0] * len(mine), query)
        measure = weight(texts, query) / weight(mine, query)
        found = [score for score, one in zip(together, kinds, strict=True) if one == kind]
        assert found == pytest.approx([score * measure for score in alone])


def weight(texts: list[list[str]], query: set[str]) -> float:
    """What all words of the query weigh in these texts."""
    having = [sum(word in text for text in texts) for word in query]
    return sum(math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for n in having)


def test_a_text_that_has_it_all_counts_alike_whether_there_are_few_or_many_of_its_kind() -> None:
    many = [["a", "b"], *[["b", "c"]] * 10, *[["c", "c"]] * 200]
    few = [["a", "b"], ["c", "c"]]
    scores = scored([*many, *few], [0] * len(many) + [1] * len(few), {"a", "b"})
    assert scores[0] == pytest.approx(scores[len(many)])
    assert scores[0] > scores[1] > 0


def scored(texts: list[list[str]], kinds: list[int], query: set[str]) -> list[float]:
    given_postings = [postings(texts, word) for word in sorted(query)]
    return of(given_postings, np.arange(len(texts)), numbers(*map(len, texts)), numbers(*kinds))


def of(given_postings: list[Numbers], *known: Numbers) -> list[float]:
    texts = measured(*known)
    found, scores = bm25(list(weighed(placed(given_postings, texts.numbers), texts)), texts)
    given = dict(zip(found.tolist(), scores.tolist(), strict=True))
    return [given.get(place, 0.0) for place in range(len(known[0]))]


def test_a_word_of_every_text_still_counts_and_a_rare_one_counts_for_more() -> None:
    texts = [["a", "b"], ["a", "c"], ["a", "c"]]
    scores = scored(texts, [0, 0, 0], {"a", "b"})
    assert scores[0] > 2 * scores[1] > 0


def test_a_number_that_is_no_text_is_left_out() -> None:
    known = (numbers(5, 7), numbers(1, 1), numbers(0, 0))
    assert of([numbers(1, 5, 7, 9)], *known) == of([numbers(5, 7)], *known)
    assert of([numbers(1)], numbers(), numbers(), numbers()) == []


@given(st.lists(st.sampled_from([0.5, 1.0, 2.0])), st.integers(0, 9))
def test_the_best_come_first_and_of_equals_the_first_written(
    scores: list[float], limit: int
) -> None:
    order = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
    found = best(np.arange(len(scores)), np.array(scores), limit)
    assert found == [(place, scores[place]) for place in order[:limit]]
