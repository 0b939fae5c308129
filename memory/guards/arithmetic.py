"""What follows from numbers by arithmetic: sums, differences, products, quotients, shares. Pure.

A number of a fact passes if its sources say it in any writing, or if it is the sum, the difference,
the product or the quotient of two numbers that they say, the sum of listed ones, or a fraction or a
percentage of one. Whether an accident is likely is for whoever asks to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product

from memory.guards.numbers import PART, Number, rounded


def sums(sources: Sequence[Number], unit: tuple[str, float] | None) -> set[float]:
    """The sums and differences of two numbers and the sums of runs of them, in base units.

    Those that may have the dimension of `unit` count.
    """
    plain = [one for one in sources if one.unit != PART][:14]
    made: set[float] = set()
    same = [one for one in plain if comparable(one, unit)]
    for one, other in combinations(same, 2):
        for a, b in _pairs(one, other):
            made |= {a + b, abs(a - b)}
    for start, _ in enumerate(same):
        totals = {0.0}
        for count, one in enumerate(same[start:], 1):
            totals = {total + value for total in totals for value in one.bases()}
            if len(totals) > 8:
                break
            made |= totals if count > 1 else set()
    return {rounded(one) for one in made}


def products(sources: Sequence[Number], unit: tuple[str, float] | None) -> set[float]:
    """The products and quotients of two numbers, and parts and percentages of them.

    Of few numbers the difference of two times a third counts, too: what is missing, at its price.
    """
    plain = [one for one in sources if one.unit != PART][:14]
    same = [one for one in plain if comparable(one, unit)]
    made: set[float] = set()
    parts = {part for one in sources for part in _parts(one)}
    made |= {value * part for one in same for value in one.bases() for part in parts}
    for one, other in combinations(plain, 2):
        if not _may_make(one, other, unit):
            continue
        for a, b in _pairs(one, other):
            made |= {a * b, *(a * b * part for part in parts)}
            made |= {x / y for x, y in ((a, b), (b, a)) if y}
            if len(plain) <= 4:
                made |= {abs(a - b) * value for third in same for value in third.bases()}
    return {rounded(one) for one in made}


def _pairs(one: Number, other: Number) -> Iterator[tuple[float, float]]:
    return product(one.bases() | one.readings, other.bases() | other.readings)


def _may_make(one: Number, other: Number, unit: tuple[str, float] | None) -> bool:
    """Whether two numbers may be multiplied to make one with a unit: lengths make an area."""
    if (
        unit
        and unit[0] == "area"
        and all(not each.unit or each.unit[0] == "length" for each in (one, other))
    ):
        return True
    return comparable(one, unit) or comparable(other, unit)


def comparable(one: Number, unit: tuple[str, float] | None) -> bool:
    """Whether a number may be added to others to make one with a unit."""
    return one.unit is None or unit is None or one.unit[0] == unit[0]


def _parts(one: Number) -> set[float]:
    """The part that a fraction or a percentage is, what it leaves, and what it adds up to."""
    if one.unit == PART:
        parts = set(one.readings)
    elif one.unit and one.unit[0] == "share":
        parts = {value / 100 for value in one.readings}
    else:
        return set()
    return {made for part in parts for made in (part, 1 - part, 1 + part)}


def shares(sources: Sequence[Number], *, rest: bool) -> set[float]:
    """The parts of a whole that two numbers make, or that are named; with `rest`, what is left."""
    named = [one for one in sources if one.unit and one.unit[0] in ("part", "share")]
    made = {value / (1 if one.unit == PART else 100) for one in named for value in one.readings}
    if not named:
        for one, other in combinations(sources[:14], 2):
            made |= {min(a, b) / max(a, b) for a, b in _pairs(one, other) if a and b}
    return made | ({1 - one for one in made} if rest else set())


def is_near(value: float, others: Iterable[float], part: float = 0.1) -> bool:
    """Whether `value` is within a tenth, or another part, of one of `others`."""
    return any(abs(value - one) <= part * abs(one) for one in others)


def is_an_example(number: Number, mine: Sequence[Number], theirs: Sequence[Number]) -> bool:
    """Whether it is a count, or the price for a count that follows from a cited price."""
    for other in mine:
        for a, b in ((number, other), (other, number)):
            made = {rounded(x * y) for x in a.readings for one in theirs for y in one.readings}
            if (
                a is not b
                and b.readings & made
                and a.readings != b.readings
                and max(b.readings) > 10
            ):
                return True
    return False
