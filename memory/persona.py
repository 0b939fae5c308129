"""The persona guard: what the assistant says of itself does not become memory (design, ruling 15).

It stands on the write paths. A text is judged together with its speaker: what a person says in the
first person is about that person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

ERROR = "Content appears to reference assistant actions or identity"
SUGGESTION = (
    "Session memory should contain facts about the WORLD, PLAYERS, or EVENTS - not what you did. "
    "Rephrase in third-person."
)

_NOUN = "assistant"
"""A common noun needs more around it than a name: people have assistants, and are assistants."""

_PRONOUN = re.compile(
    r"""(?<![\w'/-])
    (?: i'(?:m|ve|d|ll) | i(?!['.)]) | me | my | myself
      | we(?:'(?:re|ve|d|ll))? | us | our | ours | ourselves )
    (?![\w/-])""",
    re.VERBOSE | re.IGNORECASE,
)
_CURLY = "\N{RIGHT SINGLE QUOTATION MARK}"
_COUNTRY = "US"
_NUMBERED = re.compile(
    r"\b(?:act|part|chapter|phase|volume|book|war|class|type|level|tier|stage|section|title|"
    r"season|mark|grade)\s+$",
    re.IGNORECASE,
)
"""After one of these an `I` is the numeral one."""

_QUOTED = re.compile(r'"[^"]*"|“[^”]*”')
_AS_AN_AI = re.compile(
    r"(?:^|[.!?,;:]\s*)as an ai\b(?!\s+\w*(?:engineer|researcher|student))", re.I
)

_ADVERBS = r"(?:(?:\w+ly|also|then|just|never|always|often|now|once|has|had|have)\s+){0,2}"
_VERBS = (
    r"(?:\w+ed|is|was|has|had|does|did|will|would|can|could|should|shall|must|may|might|won't|"
    r"can't|\w+n't|said|says|told|tells|gave|gives|made|makes|found|finds|knew|knows|"
    r"thought|thinks|felt|feels|wrote|writes|chose|chooses|began|begins|took|takes|kept|keeps|"
    r"got|gets|went|goes|saw|sees|sent|sends|spoke|speaks|taught|built|put|read|let|led|"
    r"suggests|helps|likes|loves|prefers|wants|needs|tries|asks|answers|offers|explains|"
    r"recommends|believes|provides|responds|replies|reminds|acts|works|uses|remembers)\b"
)
_AFTER_AGENT = (
    r"(?=\s*(?:[.,;:!?)]|$)|\s+(?:and|or|but|in|on|at|to|with|for|during|when|while|after|before|"
    r"who|that|as|about|yesterday|today|last|this)\b)"
)


def violation(
    text: str,
    speaker: str | None = None,
    assistant_names: Sequence[str] = (_NOUN, "circadian"),
) -> str | None:
    """Why `text` is about the assistant itself, or None when it may be remembered.

    Args:
        text: What is to be remembered.
        speaker: Who says it. With none given, or `-` for unknown, the assistant does.
        assistant_names: What the assistant is called, in lower case.
    """
    text = text.replace(_CURLY, "'")
    names = tuple(name.casefold() for name in assistant_names)
    who = (speaker or "").strip(" -@").casefold()
    if not who or who in names:
        for found in _first_person(_unquoted(text)):
            return f"first person, with no one else speaking: {found!r}"
    for pattern in _third_person(names):
        if match := pattern.search(text):
            return f"speaks of the assistant: {match.group().strip()!r}"
    return None


def _first_person(text: str) -> Iterator[str]:
    """The words by which a speaker means themselves."""
    if match := _AS_AN_AI.search(text):
        yield match.group().strip()
    for match in _PRONOUN.finditer(text):
        word = match.group()
        if word != _COUNTRY and not (word == "I" and _NUMBERED.search(text[: match.start()])):
            yield word


def _unquoted(text: str) -> str:
    """`text` without what it quotes: that is someone's speech. A mere quotation stays whole."""
    rest = _QUOTED.sub(" ", text)
    return rest if re.search(r"\w", rest) else text


@lru_cache(maxsize=16)
def _third_person(names: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(
        re.compile(pattern, re.IGNORECASE) for name in names for pattern in _patterns(name)
    )


def _patterns(name: str) -> tuple[str, str, str]:
    """The assistant as owner, as subject and as agent of something."""
    it = rf"\b{re.escape(name)}\b"
    if name == _NOUN:
        it = (
            r"(?:(?:^|[.!?;:]\s+)(?:as\s+)?|\b(?:the|this|your)\s+)(?:ai\s+|virtual\s+|digital\s+)?"
            + it
        )
    return (
        rf"{it}'s\b",
        rf"{it},?\s+{_ADVERBS}{_VERBS}",
        rf"\bby\s+(?:the\s+|this\s+|your\s+)?(?:ai\s+)?\b{re.escape(name)}\b{_AFTER_AGENT}",
    )
