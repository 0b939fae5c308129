"""Validation errors of outside input, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MOST = 5
"""Problems named at most."""


def explained(problems: Sequence[Mapping[str, Any]]) -> list[str]:
    """The first problems of a ValidationError's `errors()`, each `PLACE: MESSAGE`."""
    return [
        f"{'.'.join(str(part) for part in one['loc']) or 'arguments'}: {one['msg']}"
        for one in problems[:MOST]
    ]
