"""Where a text names the one who is to be forgotten. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from memory.models.words import STOP_WORDS
from memory.names import name_key

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Letters of scripts that put no blanks between words, or endings on them without one."""
_SPELLED = str.maketrans(
    dict.fromkeys("\u2018\u2019\u02bc\u02b9\u2032\uff07\u0060\u00b4", "'")
    | dict.fromkeys("\u2010\u2011\u2012\u2013", "-")
    | dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff", "")
)
"""Apostrophes and hyphens as keyboards, phones and typesetters have them; what nobody sees."""


class Names:
    """The names of one person.

    A name is found as whole words, whatever its case, blanks, leading `@`, and kind of apostrophe
    or hyphen. One that is an ordinary word ("Will") counts only with its capital letter. Where a
    longer name of somebody else stands, such as "Ana Lopez", "Ana" is not named.
    """

    def __init__(self, names: Iterable[str], others: Iterable[str] = ()) -> None:
        given = [one for one in map(_on_one_line, names) if one]
        self.shown = list({name_key(one): one for one in reversed(given)}.values())[::-1]
        """Each once, as it is written first."""
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
        """Whether `name`, a sender's or an entity's, is one of the person's."""
        return name is not None and compared(name) in self.keys

    def in_id(self, id_: str) -> bool:
        """Whether one of the names stands in an id, be it as a part of a word."""
        return any(key in _folded(id_) for key in self.keys)


def _is_longer(name: str, said: re.Pattern[str]) -> bool:
    """Whether `name` is a name that holds a shorter one; "Ana's dog", "Ana and Ben" name Ana."""
    if not STOP_WORDS.isdisjoint(name.split()):
        return False
    found = [name[one.end() : one.end() + 1] for one in said.finditer(name)]
    return bool(found) and "'" not in found


def compared(name: str) -> str:
    """A name as a forget compares it: `memory.names.name_key`, whatever the signs it is typed with.

    Wider than what makes two names one entity: a byte that stays is worse than one too many gone.
    """
    key = _on_one_line(_folded(name))
    return key.lstrip("@ ") or key


def unspaced(text: str) -> bool:
    """Whether it holds a letter of a script that does not part words by blanks."""
    return not text.isascii() and _UNSPACED.search(text) is not None


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text.translate(_SPELLED)).casefold()


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    """A pattern that finds any of `names` as whole words, the longest that fits."""
    ordered = sorted({one for one in names if one.strip()}, key=lambda one: (-len(one), one))
    return re.compile("|".join(map(_whole, ordered)) or r"(?!)")


def _whole(name: str) -> str:
    words = name.split()
    before = r"(?<!\w)" if _bounded(words[0][0]) else ""
    after = r"(?!\w)" if _bounded(words[-1][-1]) else ""
    return before + r"\s+".join(map(re.escape, words)) + after


def _bounded(letter: str) -> bool:
    """Whether a word that begins or ends so is told from its neighbours by what is between."""
    return re.match(r"\w", letter) is not None and not unspaced(letter)
