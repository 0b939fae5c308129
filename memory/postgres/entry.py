"""A payload as the table of memories in PostgreSQL keeps it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from memory.analysis import terms as terms_of
from memory.postgres.storable import storable
from memory.postgres.text import as_kept
from memory.postgres.write import Ids
from memory.vectorstore.sqlite_filters import NUMBERS, TEXTS


class Entry(NamedTuple):
    """What of a payload goes where."""

    ids: Ids
    kept: dict[str, Any]
    """What is given back."""
    terms: list[str] | None
    """The words that it is found by. None: it is in no word index on purpose."""

    @property
    def kind(self) -> str:
        """The kind of the row: as its column computes it."""
        kind: str | None = self.kept.get("kind")
        return "fact" if kind is None else kind

    @property
    def payload(self) -> str:
        """What is given back, as JSON. Raises ValueError for what JSON cannot say."""
        return json.dumps(self.kept, ensure_ascii=False, allow_nan=False)


def entry_of(payload: Mapping[str, Any]) -> Entry:
    """Take a payload apart. Raises ValueError for one that a column cannot hold."""
    kept: dict[str, Any] = storable({key: one for key, one in payload.items() if key != "terms"})
    for field in (TEXTS | NUMBERS) & kept.keys():
        fits = str if field in TEXTS else int | float
        value = kept[field]
        if value is not None and (not isinstance(value, fits) or isinstance(value, bool)):
            raise ValueError(f"the field {field} of a memory cannot be {value!r}")
    given = payload["terms"] if "terms" in payload else terms_of(str(kept["data"]))
    terms = None if "terms" in payload and not given else as_kept(given)
    return Entry((kept.get("user_id"), kept.get("agent_id")), kept, terms)
