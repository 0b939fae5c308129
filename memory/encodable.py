"""Making JSON from a model storable: valid Unicode, and integers of at most 64 bits."""

from __future__ import annotations

import re
from typing import Any

_HALVES = re.compile(r"[\ud800-\udfff]")
_LARGEST = 2**63


def encodable(value: Any) -> Any:
    """`value` with lone surrogates replaced and integers beyond 64 bits as text.

    JSON allows both, but text with lone surrogates cannot be encoded, and a checkpoint holds no
    larger integers.
    """
    if isinstance(value, str):
        return _HALVES.sub("\ufffd", value)
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        return str(value)
    if isinstance(value, list):
        return [encodable(one) for one in value]
    if isinstance(value, dict):
        return {encodable(key): encodable(one) for key, one in value.items()}
    return value
