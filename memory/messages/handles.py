"""Short handles: numbers in place of ids, for what a prompt shows to be cited. Pure.

Ids are long, so models shorten them, mistype them and copy the brackets around them. A prompt
shows 1, 2, 3 ... instead, and an answer is joined to its records by these numbers alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import BeforeValidator

LEAST_PREFIX = 6
"""Characters of the shortest beginning of an id that stands for it."""

_MOST_WORDS = 3
"""Words before a number, such as `journal entry 3`."""

_LINE = re.compile(r"\[#?(\d+)\]")
_NUMBERS = re.compile(r"[\d\s,;#()\[\]\"']+")
_WORD = re.compile(r"\w+")
_AROUND = " \t\r\n[](){}<>\"'`*#"


class Handles:
    """The numbers of one prompt, from 1, and the ids that they stand for, in the order shown."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = list(dict.fromkeys(ids))
        self._numbers = {id_: str(place) for place, id_ in enumerate(self._ids, 1)}

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def of(self, id_: str) -> str:
        """The number of an id. Raises KeyError if it was not shown."""
        return self._numbers[id_]

    def resolve(self, given: str | int) -> str | None:
        """The id that a model means by `given`; None if it was not shown.

        That is a number (`3`, `[3]`, `#3`, `(3)`, `entry 3`, the line `[3] ...`), an id, or the
        beginning of exactly one id.
        """
        text = str(given).strip()
        number = _number(text)
        if number is not None and 1 <= number <= len(self._ids):
            return self._ids[number - 1]
        bare = text.strip(_AROUND)
        if bare in self._numbers:
            return bare
        begun = [id_ for id_ in self._ids if id_.startswith(bare)]
        return begun[0] if len(begun) == 1 and len(bare) >= LEAST_PREFIX else None

    def unknown(self, given: Iterable[str]) -> list[str]:
        """Those of `given` that were not shown, each once."""
        return [one for one in dict.fromkeys(given) if self.resolve(one) is None]

    @property
    def range(self) -> str:
        """The numbers that may be cited, for a correction."""
        return "the only number shown is 1" if len(self) == 1 else f"shown are 1 to {len(self)}"


def _number(text: str) -> int | None:
    """The number in `text`, if that is all it says but for words before it."""
    if line := _LINE.match(text):
        return int(line[1])
    parts = _WORD.findall(text[:100])
    if not parts or len(parts) > 1 + _MOST_WORDS or not parts[-1].isdecimal() or "-" in text:
        return None
    return int(parts[-1]) if all(part.isalpha() for part in parts[:-1]) else None


def _as_text(given: object) -> object:
    """A number as text; models cite `3` as often as `"3"`."""
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    return str(given) if isinstance(given, int) and not isinstance(given, bool) else given


def _as_list(given: object) -> object:
    """One citation, or several in one text, as a list."""
    found: list[object] = []
    for each in given if isinstance(given, list | tuple) else [given]:
        if isinstance(each, str) and _NUMBERS.fullmatch(each):
            found += re.findall(r"\d+", each)
        else:
            found.append(each)
    return [] if given is None else found


Citation = Annotated[str, BeforeValidator(_as_text)]
"""What a model cites, as it gave it: see `Handles.resolve`."""

Citations = Annotated[list[Citation], BeforeValidator(_as_list)]
"""Citations in a list, however a model gave them."""
