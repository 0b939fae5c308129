"""Figures of several systems: as a table, and as JSON with ratios."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rich.table import Table

CIRCADIAN = "Circadian"
"""The system that the others are compared with."""
NOT_MEASURED = "-"


@dataclasses.dataclass(frozen=True)
class Marked:
    """The figures of one system at one mark; None if not measured."""

    system: str
    mark: int


class Shown(NamedTuple):
    """How the table shows a figure."""

    key: str
    name: str
    text: Callable[[float], str]
    compared: bool = True
    """Whether the ratio to Circadian's figure is shown."""


def milliseconds(value: float) -> str:
    """1,234.5 ms."""
    return f"{value:,.1f} ms"


def megabytes(count: float) -> str:
    """1,234.5 MB."""
    return f"{count / 1e6:,.1f} MB"


def percent(part: float) -> str:
    """12.3%."""
    return f"{part:.1%}"


def side_by_side(
    rows: Sequence[Marked], figures: Sequence[Shown], *, mark: str, title: str
) -> Table:
    """A table with a column per system and a section per mark; `mark` names the unit."""
    names = list(dict.fromkeys(row.system for row in rows))
    table = Table(mark, "figure", *names, title=title)
    for at in sorted({row.mark for row in rows}):
        for place, figure in enumerate(figures):
            cells = [_cell(figure, row, rows) for row in rows if row.mark == at]
            last = place + 1 == len(figures)
            table.add_row("" if place else f"{at:,}", figure.name, *cells, end_section=last)
    return table


def with_ratios(rows: Sequence[Marked], figures: Sequence[Shown]) -> list[dict[str, Any]]:
    """The rows as JSON. `ratio` is a figure divided by Circadian's at the same mark."""
    return [
        {
            **dataclasses.asdict(row),
            "ratio": {one.key: _ratio(one.key, row, rows) for one in figures if one.compared},
        }
        for row in rows
    ]


def _cell(figure: Shown, row: Marked, rows: Sequence[Marked]) -> str:
    value = getattr(row, figure.key)
    if value is None:
        return NOT_MEASURED
    times = _ratio(figure.key, row, rows) if figure.compared else None
    if row.system == CIRCADIAN or times is None:
        return figure.text(value)
    return f"{figure.text(value)} ({times:.2f}x)"


def _ratio(key: str, row: Marked, rows: Sequence[Marked]) -> float | None:
    [ours] = [one for one in rows if (one.system, one.mark) == (CIRCADIAN, row.mark)]
    value, compared = getattr(row, key), getattr(ours, key)
    if value is None or compared is None:
        return None
    return float(value) / (float(compared) or 1.0)
