"""Sentences of no meaning, the same in every run."""

from __future__ import annotations

import random

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
    """Something that Ada says; it takes 100 characters or so."""
    chosen = random.Random(number).choices(WORDS, k=12)
    return f"Ada keeps number {number}: {' '.join(chosen)}."
