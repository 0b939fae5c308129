"""Taking out of a text, or of any JSON value, what is a forgotten person's. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from memory.forgetting.names import Names, unspaced
from memory.forgetting.resemblance import Resemblance, content

FORGOTTEN = "[forgotten]"
"""Stands where nothing of a text is left."""

Level = Literal["label", "said", "unknown", "mixed"]
"""What a text is, where it does not go whole.

`label`: the name of somebody or something; it goes where it is the person's. `said`: the words of
somebody who stays; only what names the person or repeats them is cut. `unknown`: written by the
assistant, nobody knows from what. `mixed`: known to be written from what is erased, too.
"""

LABELS = frozenset(
    (
        *("id", "ids", "key", "target", "channel", "sender", "entity", "entities", "speaker"),
        *("source_entity", "name", "to", "who", "by", "tags", "model", "tool", "at", "origin"),
    )
)
"""Keys whose value is a name or an id, in every record."""
CODES = frozenset(
    (
        *("type", "kind", "status", "priority", "mode", "phase", "source_type", "scoring_method"),
        *(
            "consolidation",
            "entity_type",
            "state",
            "verdict",
            "rule",
            "what",
            "outcome",
            "decision",
        ),
        *("context_type", "event_class", "role", "recommended_mode", "step", "scope", "level"),
        *("next", "compaction", "memory_type"),
    )
)
"""Keys whose value is one of a few words of ours, whatever anybody is called."""

_CODE = re.compile(r"[a-z0-9_]+")
_END = re.compile(r"((?<=[.!?])\s+|(?<=[.!?][\"')\]])\s+|\n+)")
_ABBREVIATED = re.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|e\.g|i\.e|approx|No|a\.m|p\.m|[A-Z])\.$"
)
_REFERS = re.compile(r"(?:she|he|they|her|his|their|hers|theirs)\b", re.IGNORECASE)


class Scrubber:
    """Cuts texts sentence by sentence: those that name the person, and those that are from them."""

    def __init__(
        self,
        names: Names,
        likeness: Resemblance,
        *,
        ids: frozenset[str] = frozenset(),
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        """`ids` are erased too, wherever they stand; keys of `renamed` get another name."""
        self.names, self._likeness = names, likeness
        self._ids, self.renamed = ids, dict(renamed or {})

    def text(self, text: str, level: Level) -> str | None:
        """What is left of `text`: itself where nothing is cut, None where nothing stays."""
        if level == "label":
            return None if self.names.within(text) else text
        if level != "said" and self._likeness.is_written(text):
            return None
        left: list[str] = []
        cut = before = False
        for sentence, gap in _sentences(text):
            before = self._goes(sentence, level, behind_a_cut=before)
            cut = cut or before
            if not before:
                left.append(sentence + gap)
        return ("".join(left).strip() or None) if cut else text

    def value(self, value: Any, level: Level) -> Any:
        """`value` (JSON) with all its texts scrubbed; `[forgotten]` where nothing of one is left.

        The form stays: a list keeps its length and an object its keys, but for keys that name.
        """
        if isinstance(value, str):
            return self._string(value, level)
        if isinstance(value, Mapping):
            return {
                self._string(str(key), "label"): self._field(str(key), one, level)
                for key, one in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(one, level) for one in value]
        return value

    def _goes(self, sentence: str, level: Level, *, behind_a_cut: bool) -> bool:
        if self.names.within(sentence):
            return True
        stems = content(sentence)
        if level == "said":
            return self._likeness.repeats(stems)
        if self._likeness.quotes(stems):
            return True
        if (behind_a_cut and _REFERS.match(sentence)) or self._likeness.resembles(stems):
            return True
        return level == "mixed" and self._likeness.has_own_word(stems)

    def _field(self, key: str, value: Any, level: Level) -> Any:
        if key in CODES and isinstance(value, str) and _CODE.fullmatch(value):
            return value
        return self.value(value, "label" if key in LABELS else level)

    def _string(self, text: str, level: Level) -> str:
        if text in self.renamed:
            return self.renamed[text]
        if level == "label" or not _is_text(text):
            return FORGOTTEN if text in self._ids or self.names.within(text) else text
        inside = _inside(text)
        if inside is not None:
            scrubbed = self.value(inside, level)
            return text if scrubbed == inside else json.dumps(scrubbed, ensure_ascii=False)
        return self.text(text, level) or FORGOTTEN


def _is_text(value: str) -> bool:
    """Whether it is more than one word: an id, a time or one of our words is none."""
    return unspaced(value) or any(map(str.isspace, value.strip()))


def _inside(text: str) -> Any:
    """The object or list that `text` is the JSON of; None where it is none."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _sentences(text: str) -> Iterator[tuple[str, str]]:
    """The sentences and lines of `text`, each with the gap behind it; "Dr." ends none."""
    parts = [*_END.split(text), ""]
    held = ""
    for at in range(0, len(parts) - 1, 2):
        sentence, gap = held + parts[at], parts[at + 1]
        if gap and "\n" not in gap and _ABBREVIATED.search(sentence):
            held = sentence + gap
        elif sentence or gap:
            held = ""
            yield sentence, gap
