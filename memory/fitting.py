"""Fitting the lines of a list into a budget of tokens. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from memory.tokens import approximate_tokens, calibrated

LARGEST = 10
"""In a list that does not fit, a text takes at most the N-th part of the budget."""

T = TypeVar("T")


def fitting(
    rows: Sequence[T],
    line: Callable[[T, int], str],
    tokens: int,
    calibration: float,
    *,
    most: int | None = None,
) -> tuple[list[str], int]:
    """(the first lines that fit `tokens`; the number of lines left out).

    Texts are whole where the whole list fits, and shortened to `most` tokens where it does not.

    Args:
        rows: in order.
        line: `line(row, n)` gives a row's line with a text of at most n tokens.
        tokens: the budget.
        calibration: the model's tokens per approximate token.
        most: tokens of a shortened text; default a tenth of the budget.
    """
    whole = _first([line(row, tokens) for row in rows], tokens, calibration)
    if not whole[1]:
        return whole
    shorter = tokens // LARGEST if most is None else most
    return _first([line(row, shorter) for row in rows], tokens, calibration)


def left_out(count: int, which: str) -> list[str]:
    """A line that says how many are left out; none for 0."""
    return [f"... {count} {which} left out"] if count else []


def line_tokens(line: str, calibration: float) -> int:
    """Tokens of a line with its line end."""
    return calibrated(approximate_tokens(line + "\n"), calibration)


def _first(lines: Sequence[str], tokens: int, calibration: float) -> tuple[list[str], int]:
    for count, line in enumerate(lines):
        tokens -= line_tokens(line, calibration)
        if tokens < 0:
            return list(lines[:count]), len(lines) - count
    return list(lines), 0
