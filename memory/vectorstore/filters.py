"""Filters over facts, as SQL. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

COLUMNS = frozenset({"id", "user_id", "agent_id", "op", "invalid_at"})
"""The filter keys that are columns; any other key is looked up in the payload."""


def where_clause(filters: Mapping[str, object]) -> tuple[str, list[object]]:
    """Equality filters as SQL; a list or tuple means "one of these".

    Raises ValueError for anything else, such as an operator: no filter may be lost silently.
    """
    parts, values = ["1"], list[object]()
    for key, wanted in filters.items():
        column = key if key in COLUMNS else _payload_column(key)
        if isinstance(wanted, list | tuple):
            parts.append(f"{column} IN ({', '.join('?' * len(wanted))})")
            values += [_scalar(key, one) for one in wanted]
        else:
            parts.append(f"{column} IS ?")
            values.append(_scalar(key, wanted))
    return " AND ".join(parts), values


def _payload_column(key: str) -> str:
    if not re.fullmatch(r"\w+", key):
        raise ValueError(f"{key!r} is no field to filter by")
    return f"json_extract(payload, '$.\"{key}\"')"


def _scalar(key: str, value: object) -> object:
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError(f"the filter {key} takes plain values, not {value!r}")
