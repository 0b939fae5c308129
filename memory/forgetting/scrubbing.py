"""Removing a person or a statement from texts and JSON values. Pure."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from memory.text import (
    INVISIBLE,
    SPELLED,
    STOP_WORDS,
    TextPrefilter,
    beginnings,
    name_key,
    one_line,
    regex,
    saying,
    sentences,
    terms,
    written_out,
)

FORGOTTEN = "[forgotten]"
"""Replaces a text of which nothing is left."""

LABELS = frozenset(
    (
        *("id", "ids", "key", "target", "channel", "sender", "entity", "entities", "speaker"),
        *("source_entity", "name", "to", "who", "by", "tags", "model", "tool", "at", "origin"),
        *("sources", "source_ids", "source_entries", "source_events", "origins"),
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
"""Keys whose value is one of the program's own words, even if a person is called the same."""

_CODE = regex(r"[a-z0-9_]+")

_CUT = "..."
"""Ends a text that the audit log shortened (`memory.text.redaction.bounded`)."""

_SHORTENED = 100
"""The audit log shortens no text to fewer characters."""

_UNSPACED = regex(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Letters of scripts without blanks between words, or with endings attached to names."""

_EMPHASIS = regex(r"(?<!\w)_+|_+(?!\w)")
"""Underscores around a word; those inside belong to an id."""


class Names:
    """The names of one person.

    A name is found as whole words, ignoring case, blanks, emphasis (`_Ana_`), a leading `@`,
    invisible characters, the kind of apostrophe or hyphen, and the "s" of a genitive ("Bens"). An
    ordinary word ("Will", "WILL") counts only with a capital letter. "Ana" is not found in a longer
    name of somebody else, such as "Ana Lopez".
    """

    def __init__(self, names: Iterable[str], others: Iterable[str] = ()) -> None:
        shown: dict[str, str] = {}
        for name in filter(None, map(one_line, names)):
            shown.setdefault(name_key(name), name)
        self.shown = list(shown.values())
        """Each name once, in its first spelling."""
        self.keys = frozenset(filter(None, map(compared, self.shown)))
        self.prefilter = TextPrefilter(frozenset(map(written_out, [*self.shown, *self.keys])))
        ordinary = {name for name in self.shown if name_key(name) in STOP_WORDS}
        mine = set(self.keys)
        any_of_mine = _pattern(mine)
        candidates = set(map(compared, others)) - mine
        self._longer = {name for name in candidates if _is_longer(name, any_of_mine)}
        # Longer names first, so that each is found whole and does not count as the person.
        self._in_folded = _pattern({*self._longer, *(mine - set(map(compared, ordinary)))})
        capital = {name.title() if name.islower() else name for name in ordinary}
        self._as_written = _pattern(capital | {name.upper() for name in capital})

    def within(self, text: str) -> bool:
        """Whether `text` names the person."""
        if not self.prefilter.within(text):
            return False
        found = (one_line(match.group()) for match in self._in_folded.finditer(_folded(text)))
        if any(name not in self._longer for name in found):
            return True
        if not text.isascii():
            text = unicodedata.normalize("NFKC", INVISIBLE.sub("", text))
        return self._as_written.search(text) is not None

    def cut(self, text: str) -> str:
        """`text` without the lines that name the person."""
        return "\n".join(line for line in text.split("\n") if not self.within(line)).strip()

    def means(self, name: str | None) -> bool:
        """Whether `name`, a sender or an entity, is the person."""
        return name is not None and compared(name) in self.keys

    def in_id(self, id_: str) -> bool:
        """Whether an id contains one of the names, also as a part of a word."""
        return any(key in _folded(id_) for key in self.keys)


def _is_longer(name: str, mine: re.Pattern[str]) -> bool:
    """Whether `name` is a longer name; "Ana's dog" and "Ana and Ben" still name Ana."""
    if not STOP_WORDS.isdisjoint(name.split()):
        return False
    next_letters = [name[match.end() : match.end() + 1] for match in mine.finditer(name)]
    return bool(next_letters) and "'" not in next_letters


@lru_cache(4_096)
def compared(name: str) -> str:
    """The form in which a forget compares names, so loose that rather too much goes."""
    key = one_line(_folded(name))
    return key.lstrip("@ ") or key


def unspaced(text: str) -> bool:
    """Whether `text` has a letter of a script without blanks between words."""
    return not text.isascii() and _UNSPACED.search(text) is not None


def _folded(text: str) -> str:
    if text.isascii():
        return _EMPHASIS.sub(" ", text.replace("`", "'")).lower()
    shown = _EMPHASIS.sub(" ", INVISIBLE.sub("", text).translate(SPELLED))
    # The small letter of a Turkish dotted capital is an "i" with a dot of its own.
    return unicodedata.normalize("NFKC", shown).casefold().replace("i\u0307", "i")


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    ordered = sorted({name for name in names if name.strip()}, key=lambda name: (-len(name), name))
    return re.compile("|".join(map(_whole, ordered)) or r"(?!)")


def _whole(name: str) -> str:
    words = name.split()
    before = r"(?<!\w)" if _bounded(words[0][0]) else ""
    genitive = "" if words[-1][-1] in "sS" or len(name) < 3 else "s?"
    after = rf"{genitive}(?!\w)" if _bounded(words[-1][-1]) else ""
    return before + r"\s+".join(map(re.escape, words)) + after


def _bounded(letter: str) -> bool:
    """Whether a blank or sign separates a word with this letter at its end from the next one."""
    return re.match(r"\w", letter) is not None and not unspaced(letter)


ENOUGH = 3
"""Fewest words by which a sentence is found in a longer one; a shorter sentence must be equal."""


class Statement:
    """The sentences that say what is forgotten, with the methods of `Names`."""

    shown: tuple[str, ...] = ()

    def __init__(self, said: Iterable[str]) -> None:
        wanted = {frozenset(terms(line)) for text in said for line in sentences(text)}
        self._wanted = {words for words in wanted if len(words) > 1}
        sayings = (saying(map(beginnings, words)) for words in self._wanted)
        self.prefilter = TextPrefilter(frozenset(sayings))

    def within(self, text: str) -> bool:
        """Whether a sentence of `text` says what is forgotten."""
        return self.prefilter.within(text) and any(map(self._says, sentences(text)))

    def cut(self, text: str) -> str:
        """`text` without the sentences that say what is forgotten."""
        return "\n".join(filter(None, map(self._line, text.split("\n")))).strip()

    def means(self, name: str | None) -> bool:
        """A statement is nobody's name."""
        return False

    def in_id(self, id_: str) -> bool:
        """An id says nothing."""
        return False

    def _line(self, line: str) -> str:
        return " ".join(sentence for sentence in sentences(line) if not self._says(sentence))

    def _says(self, sentence: str) -> bool:
        said = frozenset(terms(sentence))
        return any(
            wanted <= said if len(wanted) >= ENOUGH else wanted == said for wanted in self._wanted
        )


Forgettable: TypeAlias = Names | Statement
"""What is forgotten, as texts show it: a person by names, a statement by its words."""


class Scrubber:
    """Removes a person or a statement from texts.

    A text goes whole if the assistant wrote exactly this text because of an erased event. Of any
    other text, the lines that name the person go, or the sentences that say the statement.
    """

    def __init__(
        self,
        names: Forgettable,
        *,
        written: Iterable[str] = (),
        ids: frozenset[str] = frozenset(),
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        """`written`: arguments of tool calls in ticks of erased events. `ids`: of events, with a
        name as a part of a word. `renamed`: new keys of projects whose own key names the person.
        """
        self.names, self.renamed = names, dict(renamed or {})
        self._ids, self._labels = ids, dict[str, str]()
        # A single word ("high") says nothing about its author.
        texts = {_plain(text) for text in written if _is_text(text)}
        self._written = frozenset(texts)
        self.prefilter = TextPrefilter(names.prefilter.sayings.union(map(written_out, texts)))
        self._beginnings = tuple(
            text.removesuffix(_CUT)
            for text in texts
            if text.endswith(_CUT) and len(text) > _SHORTENED
        )

    def text(self, text: str) -> str | None:
        """`text` without what is forgotten, maybe unchanged; None if nothing is left."""
        if self._is_written(text):
            return None
        if not self.names.within(text):
            return text
        left = self.names.cut(text)
        return left if left and not self.names.within(left) else None

    def value(self, value: Any) -> Any:
        """`value` (JSON) with all its texts scrubbed; a text of which nothing is left is FORGOTTEN.

        A list keeps its length and an object its keys, except for keys that name the person.
        """
        return self._walk(value, blank=False) if self.may_change(value) else value

    def may_change(self, value: Any) -> bool:
        """Whether `value` (JSON) has to be walked through."""
        return self.prefilter.within(json.dumps(value, ensure_ascii=False, default=str))

    def blank(self, value: Any) -> Any:
        """`value` (JSON) with FORGOTTEN for every text; labels and codes that name nobody stay."""
        return self._walk(value, blank=True)

    def label(self, text: str) -> str:
        """A name or an id as it stays; kept, because the same labels come again and again."""
        if text not in self._labels:
            goes = text in self._ids or self.names.within(text)
            self._labels[text] = FORGOTTEN if goes else text
        return self._labels[text]

    def origins(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The field `origins` of `record` without the person; {} if it has no such field."""
        if "origins" not in record:
            return {}
        return {"origins": list(dict.fromkeys(map(self.label, record["origins"])))}

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
            return [self._walk(item, blank=blank) for item in value]
        return value

    def _field(self, key: str, value: Any, *, blank: bool) -> Any:
        if key in CODES and isinstance(value, str) and _CODE.fullmatch(value):
            return value
        if key not in LABELS:
            return self._walk(value, blank=blank)
        if isinstance(value, list | tuple):
            return [self._field(key, item, blank=blank) for item in value]
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
    """The object or list that `text` encodes as JSON; None for any other text."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None
