"""Fitting: as many lines of a list as a budget of tokens holds. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from memory.tokens import approximate_tokens, calibrated

LARGEST = 10
"""Where a list does not fit, one text in it takes at most this part of the budget."""

T = TypeVar("T")


def fitting(
    rows: Sequence[T],
    line: Callable[[T, int], str],
    tokens: int,
    calibration: float,
    *,
    most: int | None = None,
) -> tuple[list[str], int]:
    """(the first lines, as many as fit `tokens`; how many were left out).

    `line(row, n)` is a row with a text of at most n tokens: whole where all of them fit, else of
    at most `most`, by default a tenth of the budget.
    """
    whole = _first([line(row, tokens) for row in rows], tokens, calibration)
    if not whole[1]:
        return whole
    shorter = tokens // LARGEST if most is None else most
    return _first([line(row, shorter) for row in rows], tokens, calibration)


def left_out(count: int, which: str) -> list[str]:
    """The line that says so; none where nothing is left out."""
    return [f"... {count} {which} left out"] if count else []


def line_tokens(line: str, calibration: float) -> int:
    """Tokens of a line with its end."""
    return calibrated(approximate_tokens(line + "\n"), calibration)


def _first(lines: Sequence[str], tokens: int, calibration: float) -> tuple[list[str], int]:
    for count, line in enumerate(lines):
        tokens -= line_tokens(line, calibration)
        if tokens < 0:
            return list(lines[:count]), len(lines) - count
    return list(lines), 0
