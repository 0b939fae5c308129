"""Meaningless sentences, the same in every run."""

from __future__ import annotations

import random
from functools import cache
from itertools import accumulate, count, islice

WORDS = [
    "garden",
    "river",
    "copper",
    "lantern",
    "harbour",
    "saffron",
    "violin",
    "thunder",
    "orchard",
    "marble",
    "compass",
    "velvet",
    "anchor",
    "meadow",
    "falcon",
    "cedar",
    "pepper",
    "glacier",
    "mirror",
    "ribbon",
    "walnut",
    "candle",
    "tunnel",
    "feather",
    "basket",
]


def sentence(number: int) -> str:
    """A sentence of about 100 characters."""
    chosen = random.Random(number).choices(WORDS, k=12)
    return f"Ada keeps number {number}: {' '.join(chosen)}."


SYLLABLES = [
    one + two for one in "bdfgklmnprstvz" for two in ("a", "e", "i", "o", "ar", "en", "il")
]
VOCABULARY = 20_000
EVEN_OUT = 20
"""Zipf and Mandelbrot: the word of rank r has the weight 1/(r + EVEN_OUT)."""


@cache
def vocabulary() -> tuple[list[str], list[float]]:
    """Made-up words with cumulative weights, distributed like words other than stop words."""
    chosen = random.Random(0)
    made = ("".join(chosen.choices(SYLLABLES, k=chosen.choice((2, 3, 4)))) for _ in count())
    words = list(islice(dict.fromkeys(islice(made, 3 * VOCABULARY)), VOCABULARY))
    return words, list(accumulate(1 / (rank + EVEN_OUT) for rank in range(len(words))))


def told(number: int) -> str:
    """A fact as long as `sentence`, with word frequencies of real texts."""
    return f"Ada keeps number {number}: {' '.join(drawn_words(number))}."


def asked(number: int) -> str:
    """A question about fact number `number`, with four of its words."""
    return f"What was it about {' '.join(drawn_words(number)[::3])}?"


def drawn_words(number: int) -> list[str]:
    """The words of sentence number `number`."""
    words, weights = vocabulary()
    return random.Random(number).choices(words, cum_weights=weights, k=12)
