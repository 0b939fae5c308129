"""What every store and checkpoint can hold: text that can be encoded, numbers of 64 bits."""

from __future__ import annotations

import re
from typing import Any

_HALVES = re.compile(r"[\ud800-\udfff]")
_LARGEST = 2**63


def encodable(value: Any) -> Any:
    """`value` with every half of a surrogate pair replaced, and larger whole numbers as text.

    JSON may hold both, and no encoding can store the one, nor a checkpoint the other.
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
