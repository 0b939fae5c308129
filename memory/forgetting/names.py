"""Finding a person's names in a text. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from memory.text import STOP_WORDS, name_key

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Letters of scripts without blanks between words, or with endings attached to names."""


_SPELLED = str.maketrans(
    dict.fromkeys("\u2018\u2019\u02bc\u02b9\u2032\uff07\u0060\u00b4", "'")
    | dict.fromkeys("\u2010\u2011\u2012\u2013", "-")
    | dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff", "")
)
"""Variants of apostrophe and hyphen become one; invisible characters go."""


class Names:
    """The names of one person.

    A name is found as whole words, ignoring case, blanks, a leading `@`, and the kind of apostrophe
    or hyphen. An ordinary word ("Will") counts only with a capital letter. "Ana" is not found in a
    longer name of somebody else, such as "Ana Lopez".
    """

    def __init__(self, names: Iterable[str], others: Iterable[str] = ()) -> None:
        given = [one for one in map(_on_one_line, names) if one]
        self.shown = list({name_key(one): one for one in reversed(given)}.values())[::-1]
        """Each name once, in its first spelling."""
        self.keys = frozenset(filter(None, map(compared, self.shown)))
        plain = {one for one in self.shown if name_key(one) in STOP_WORDS}
        mine = set(self.keys)
        said = _pattern(mine)
        longer = set(map(compared, others))
        self._longer = {one for one in longer - mine if _is_longer(one, said)}
        self._folded = _pattern({*self._longer, *(mine - set(map(compared, plain)))})
        self._written = _pattern({one.title() if one.islower() else one for one in plain})

    def within(self, text: str) -> bool:
        """Whether `text` names the person."""
        found = (_on_one_line(one.group()) for one in self._folded.finditer(_folded(text)))
        if any(one not in self._longer for one in found):
            return True
        return self._written.search(unicodedata.normalize("NFKC", text)) is not None

    def means(self, name: str | None) -> bool:
        """Whether `name`, a sender or an entity, is the person."""
        return name is not None and compared(name) in self.keys

    def in_id(self, id_: str) -> bool:
        """Whether an id contains one of the names, also as a part of a word."""
        return any(key in _folded(id_) for key in self.keys)


def _is_longer(name: str, said: re.Pattern[str]) -> bool:
    """Whether `name` is a longer name; "Ana's dog" and "Ana and Ben" still name Ana."""
    if not STOP_WORDS.isdisjoint(name.split()):
        return False
    found = [name[one.end() : one.end() + 1] for one in said.finditer(name)]
    return bool(found) and "'" not in found


def compared(name: str) -> str:
    """A name as a forget compares it: `memory.text.names.name_key`, for any apostrophe and hyphen.

    More than what makes two names one entity: to leave something is worse than to erase too much.
    """
    key = _on_one_line(_folded(name))
    return key.lstrip("@ ") or key


def unspaced(text: str) -> bool:
    """Whether `text` has a letter of a script without blanks between words."""
    return not text.isascii() and _UNSPACED.search(text) is not None


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text.translate(_SPELLED)).casefold()


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    """Pattern for any of `names` as whole words, longest first."""
    ordered = sorted({one for one in names if one.strip()}, key=lambda one: (-len(one), one))
    return re.compile("|".join(map(_whole, ordered)) or r"(?!)")


def _whole(name: str) -> str:
    words = name.split()
    before = r"(?<!\w)" if _bounded(words[0][0]) else ""
    after = r"(?!\w)" if _bounded(words[-1][-1]) else ""
    return before + r"\s+".join(map(re.escape, words)) + after


def _bounded(letter: str) -> bool:
    """Whether a blank or sign separates a word with this letter at its end from the next one."""
    return re.match(r"\w", letter) is not None and not unspaced(letter)
