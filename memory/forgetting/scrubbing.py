"""Removing a person from texts and JSON values, by name and by known authorship. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from memory.forgetting.names import Names, unspaced

FORGOTTEN = "[forgotten]"
"""Replaces a text of which nothing is left."""


LABELS = frozenset(
    (
        *("id", "ids", "key", "target", "channel", "sender", "entity", "entities", "speaker"),
        *("source_entity", "name", "to", "who", "by", "tags", "model", "tool", "at", "origin"),
        *("sources", "source_ids", "source_entries", "source_events"),
    )
)
"""Keys whose value is a name or an id, in every record."""


CODES = frozenset(
    (
        *("type", "kind", "status", "priority", "mode", "phase", "source_type", "scoring_method"),
        *("consolidation", "entity_type", "state", "verdict", "rule", "what", "outcome"),
        *("decision", "context_type", "event_class", "role", "recommended_mode", "step", "scope"),
        *("level", "next", "compaction", "memory_type"),
    )
)
"""Keys whose value is one of the program's own words, even where a person is called the same."""


_CODE = re.compile(r"[a-z0-9_]+")


_CUT = "..."
"""Ends a text that the audit log shortened (`memory.text.redaction.bounded`)."""


_SHORTENED = 100
"""The audit log shortens no text to fewer characters."""


class Scrubber:
    """Removes a person from texts.

    A text goes whole if the assistant wrote exactly this text because of an erased event. Of any
    other text, the lines that name the person go; a line stays or goes as a whole.
    """

    def __init__(
        self,
        names: Names,
        *,
        written: Iterable[str] = (),
        ids: frozenset[str] = frozenset(),
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        """Create a scrubber.

        Args:
            names: The person's names.
            written: Arguments of tool calls in ticks of erased events, from the audit log.
            ids: Event ids that contain a name as part of a word.
            renamed: New keys of projects whose key names the person.
        """
        self.names, self.renamed = names, dict(renamed or {})
        self._ids = ids
        # A single word ("high") says nothing about its author.
        texts = {_plain(text) for text in written if _is_text(text)}
        self._written = frozenset(texts)
        self._beginnings = tuple(
            text.removesuffix(_CUT)
            for text in texts
            if text.endswith(_CUT) and len(text) > _SHORTENED
        )

    def text(self, text: str) -> str | None:
        """What is left of `text`: unchanged if nothing is cut, None if nothing is left."""
        if self._is_written(text):
            return None
        if not self.names.within(text):
            return text
        lines = (line for line in text.split("\n") if not self.names.within(line))
        left = "\n".join(lines).strip()
        return left if left and not self.names.within(left) else None

    def value(self, value: Any) -> Any:
        """`value` (JSON) with all its texts scrubbed; `[forgotten]` where nothing of one is left.

        The structure stays: a list keeps its length and an object its keys, except for keys that
        name the person.
        """
        return self._walk(value, blank=False)

    def blank(self, value: Any) -> Any:
        """`value` (JSON) with every text replaced; labels and codes stay unless they name."""
        return self._walk(value, blank=True)

    def label(self, text: str) -> str:
        """A name or an id as it stays."""
        return FORGOTTEN if text in self._ids or self.names.within(text) else text

    def _is_written(self, text: str) -> bool:
        if not self._written:
            return False
        plain = _plain(text)
        return plain in self._written or plain.startswith(self._beginnings)

    def _walk(self, value: Any, *, blank: bool) -> Any:
        if isinstance(value, str):
            return self._string(value, blank=blank)
        if isinstance(value, Mapping):
            return {
                self.renamed.get(str(key), self.label(str(key))): self._field(
                    str(key), item, blank=blank
                )
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._walk(one, blank=blank) for one in value]
        return value

    def _field(self, key: str, value: Any, *, blank: bool) -> Any:
        if key in CODES and isinstance(value, str) and _CODE.fullmatch(value):
            return value
        if key not in LABELS:
            return self._walk(value, blank=blank)
        if isinstance(value, list | tuple):
            return [self._field(key, one, blank=blank) for one in value]
        if isinstance(value, str):
            return self.renamed.get(value, self.label(value))
        return self._walk(value, blank=blank)

    def _string(self, text: str, *, blank: bool) -> str:
        if text in self.renamed:
            return self.renamed[text]
        inside = _inside(text)
        if inside is not None:
            scrubbed = self._walk(inside, blank=blank)
            return text if scrubbed == inside else json.dumps(scrubbed, ensure_ascii=False)
        if blank and text:
            return FORGOTTEN
        return (self.text(text) or FORGOTTEN) if _is_text(text) else self.label(text)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _is_text(value: str) -> bool:
    """Whether a string is more than one word: an id, a time or a code is one word."""
    return unspaced(value) or any(map(str.isspace, value.strip()))


def _inside(text: str) -> Any:
    """The object or list that `text` encodes as JSON; None where it is none."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None
