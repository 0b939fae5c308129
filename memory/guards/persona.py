"""The persona guard: what the assistant says about itself does not become memory. Pure.

It checks every write to long-lived memory. A text is judged together with its speaker: a person's
first person is about that person. The assistant is recognised in the first person, if nobody else
is the speaker; and in the third person, as the owner, subject or agent of something ("the
assistant's tone", "Circadian suggested", "opened by the bot").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from memory.guards.lexicon import may_be_english
from memory.text import regex

ERROR = "Content appears to reference assistant actions or identity"

SUGGESTION = (
    "Session memory should contain facts about the WORLD, PLAYERS, or EVENTS - not what you did. "
    "Rephrase in third-person."
)

_NOUN = "assistant"
"""People have assistants and work as assistants, so this noun counts only in some positions."""

_MACHINES = ("ai", "bot", "chatbot")
"""These mean the assistant only behind "the" or "this": people talk about AI and about bots."""

_SELF = frozenset(
    {_NOUN, "ai assistant", *_MACHINES, "ai chatbot", "i", "me", "myself", "self", "we", "us"}
)
"""Speaker names by which the assistant means itself."""

_DETERMINER = regex(r"^(?:the|this|your|an?)\s+")
_APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"

_PRONOUN = regex(
    r"""(?<![\w'/-])
    (?: i'(?:m|ve|d|ll) | i(?!['.)]) | me | my | myself
      | we(?:'(?:re|ve|d|ll))? | us | our | ours | ourselves )
    (?![\w/-])""",
    re.VERBOSE | re.IGNORECASE,
)

_COUNTRY = "US"

_NUMBERED = regex(
    r"\b(?:act|part|chapter|phase|volume|book|war|class|type|level|tier|stage|section|title|"
    r"season|grade|vitamin|factor|group|category|appendix|article|figure|table|step|division|"
    r"block|zone|sector|schedule|exhibit)\s+$",
    re.IGNORECASE,
)
"""After one of these nouns an "I" is a numeral."""

_CAPITAL = regex(r" [A-Z\u00c0-\u00de]")
"""Behind "Me", as French lawyers are called: Me Laurent."""

_QUOTED = regex(r'"[^"]*"|“[^”]*”')

_AS_AN_AI = regex(
    r"(?:^|[.!?,;:]\s*)as an ai\b(?!\s+\w*(?:engineer|researcher|student))", re.IGNORECASE
)

_COURTESY = regex(
    r"^\W*(?:(?:of course|sure|certainly|absolutely|no problem|my pleasure|well done)\b(?=\s*[,.!])"
    r"|thanks?(?: you)?(?: (?:so|very) much)?(?: for\b|\s*[,.!])|you're (?:very )?welcome\b"
    r"|(?:happy|glad|delighted) to (?:help|hear|assist)\b|(?:sorry|great|good) to hear\b"
    r"|(?:great|good) (?:question|point)\b|let me know\b"
    r"|here(?:'s| is| are) (?:a|an|the|your|some)\b)",
    re.IGNORECASE,
)
"""Openings of an answer; no fact begins like this."""


def _any(words: str) -> str:
    return f"(?:{'|'.join(words.split())})"


_ADVERB = rf"(?:\w+ly|{_any('also then just even never always often now once soon very quite')})"

_ADVERBS = (
    rf"(?:(?:{_ADVERB}|{_any('again still already first has had have')})"
    rf"(?:,?\s+{_any('and but yet or')}\s+|,?\s+)){{0,4}}"
)

_AUXILIARY = _any(
    r"is was has had does did will would can could should shall must may might can't won't \w+n't"
)

_PAST = _any(
    r"\w+ed said told gave made found knew thought felt wrote chose began took kept got went saw "
    "sent spoke taught built put read let led"
)

_PRESENT = _any(
    "says tells gives makes finds knows thinks feels writes chooses begins takes keeps gets goes "
    "sees sends speaks suggests helps likes loves prefers wants needs tries asks answers offers "
    "explains recommends believes provides responds replies reminds acts works uses remembers"
)

_OBJECT = _any(
    "the an? his her their its my your our this these those all any every each no only nobody "
    "whatever whoever what whom him them it you me us everyone everybody anyone to nothing "
    "everything anything"
)

_TRANSITIVE = rf"\w+[^\Ws]s\s+(?:{_OBJECT}\b|(?-i:[A-Z]))"
"""Any other verb in the present with its object: "obeys the king", "belongs to Ada"."""

_VERB = rf"(?:(?:{_AUXILIARY}|{_PAST}|{_PRESENT})\b|{_TRANSITIVE})"

_CLAUSE_ENDS = (
    r"(?=\s*(?:[.,;:!?)]|$)|\s+"
    + _any(
        "and or but in on at to with for during when while after before who that as about "
        "yesterday today last this"
    )
    + r"\b)"
)


def violation(
    text: str,
    speaker: str | None = None,
    assistant_names: Sequence[str] = (_NOUN, "circadian"),
) -> str | None:
    """Why `text` is about the assistant itself; None if it may be remembered.

    Args:
        text: what is to be remembered.
        speaker: who says it. None and `-` (unknown) count as the assistant, and so does a name by
            which the assistant means itself ("me", "the assistant", "this AI").
        assistant_names: names of the assistant, in lower case.
    """
    text = text.replace(_APOSTROPHE, "'")
    names = tuple(name.casefold() for name in assistant_names)
    if is_assistant(speaker, names):
        if is_courtesy(text):
            return f"an answer to somebody, and no fact: {text[:40]!r}"
        for found in _first_person(text):
            return f"first person, with no one else speaking: {found!r}"
    for pattern in _third_person(names):
        if match := pattern.search(text):
            return f"speaks of the assistant: {match.group().strip()!r}"
    return None


def is_courtesy(text: str) -> bool:
    """Whether `text` begins like an answer: with thanks, agreement or an offer of help."""
    return _COURTESY.match(text.replace(_APOSTROPHE, "'")) is not None


def speaks_of_oneself(text: str) -> bool:
    """Whether `text` is in the first person outside its quotations."""
    return next(_first_person(text.replace(_APOSTROPHE, "'")), None) is not None


def is_assistant(speaker: str | None, names: Sequence[str]) -> bool:
    """Whether the speaker is unknown, or the assistant under any of its names."""
    who = " ".join((speaker or "").replace("_", " ").split()).strip(" -@.:()'\"").casefold()
    bare = _DETERMINER.sub("", who)
    return not who or who in names or bare in names or bare in _SELF


def _first_person(text: str) -> Iterator[str]:
    """The words outside quotations by which a speaker means themselves."""
    text = _unquoted(text)
    if match := _AS_AN_AI.search(text):
        yield match.group().strip()
    for match in _PRONOUN.finditer(text if may_be_english(text) else ""):
        word = match.group()
        numeral = word == "I" and _NUMBERED.search(text[: match.start()])
        title = word == "Me" and _CAPITAL.match(text, match.end())
        if word == _COUNTRY or numeral or title:
            continue
        yield word


def _unquoted(text: str) -> str:
    """`text` without quotations, which are somebody's speech; unchanged if nothing else is left."""
    rest = _QUOTED.sub(" ", text)
    return rest if re.search(r"\w", rest) else text


@lru_cache(maxsize=16)
def _third_person(names: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    nouns = (*names, *(noun for noun in _MACHINES if noun not in names))
    return tuple(
        re.compile(pattern, re.IGNORECASE) for name in nouns for pattern in _patterns(name)
    )


def _patterns(name: str) -> tuple[str, str, str]:
    subject, article = rf"\b{re.escape(name)}\b", r"(?:the\s+|this\s+|your\s+)?"
    if name in _MACHINES:
        subject, article = rf"\b(?:the|this)\s+(?:ai\s+)?{subject}", r"(?:the|this)\s+"
    elif name == _NOUN:
        # At the beginning of a sentence, or after a determiner.
        begins = r"(?:^|[.!?;:]\s+)(?:as\s+)?"
        subject = rf"(?:{begins}|\b(?:the|this|your)\s+)(?:(?:ai|virtual|digital)\s+)?{subject}"
    return (
        rf"{subject}'s\b",
        rf"{subject},?\s+{_ADVERBS}{_VERB}",
        rf"\bby\s+{article}(?:ai\s+)?\b{re.escape(name)}\b{_CLAUSE_ENDS}",
    )
