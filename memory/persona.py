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

_MACHINES = ("ai", "bot", "chatbot")
"""Nouns that mean the assistant only behind "the" or "this": there is talk of AI and of bots."""

_SELF = frozenset(
    {_NOUN, "ai assistant", *_MACHINES, "ai chatbot", "i", "me", "myself", "self", "we", "us"}
)
"""Names of a speaker by which the assistant means itself."""

_DETERMINER = re.compile(r"^(?:the|this|your|an?)\s+")

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
    r"season|mark|grade|vitamin|factor|group|category|appendix|article|figure|table|step|division|"
    r"block|zone|sector|schedule|exhibit)\s+$",
    re.IGNORECASE,
)
"""After one of these an `I` is the numeral one."""

_RULER = re.compile(
    r"""(?<!(?i:\bat\s))(?<!(?i:\b[io]n\s))(?<!(?i:\bto\s))(?<!(?i:\bfor\s))(?<!(?i:\band\s))
    (?<!(?i:\bthe\s))(?<!(?i:\bwith\s))(?<!(?i:\bfrom\s))
    \b(?: (?:King|Queen|Emperor|Empress|Pope|Tsar|Czar|Kaiser|Sultan|Shah|Pharaoh|Prince|Princess|
              Duke|Duchess|Lord|Lady)\s+(?:[A-Z][\w-]+\s+){1,2}
        | (?:Abbas|Albert|Alexander|Alfonso|Anne|Baldwin|Basil|Benedict|Boniface|Carl|Casimir|
             Catherine|Charles|Christian|Clement|Conrad|Constantine|Cyrus|Darius|David|Edward|
             Elizabeth|Ferdinand|Francis|Franz|Frederick|George|Gregory|Gustav|Harald|Harold|Henry|
             Innocent|Isabella|Ivan|James|John|Joseph|Justinian|Leo|Leopold|Louis|Malcolm|Manuel|
             Margaret|Mary|Maximilian|Mehmed|Murad|Napoleon|Nicholas|Otto|Paul|Pedro|Peter|Philip|
             Pius|Ptolemy|Ramses|Ramesses|Richard|Robert|Rudolf|Selassie|Selim|Seti|Sigismund|
             Stephen|Suleiman|Theodosius|Umberto|Urban|Victor|Wilhelm|William|Xerxes)\s+)$""",
    re.VERBOSE,
)
"""A ruler's name: an `I` behind it is the numeral, unless the verb is one of the first person.

Any capitalised word would not do: "Yesterday I helped" has one too. Nor does a name behind a
preposition: "With Mary I opened the gate".
"""
_FIRST_PERSON_VERB = re.compile(
    r"\s+(?:\w+ly\s+)?(?:am|have|do|don't|haven't|think|believe|know|guess|hope|want|need|like|love|"
    r"suggest|recommend|remember|prefer|feel|say|see|help|try|ask|told|said|thought|helped|"
    r"suggested|recommended|asked|answered|explained)\b",
    re.IGNORECASE,
)

_QUOTED = re.compile(r'"[^"]*"|“[^”]*”')
_COURTESY = re.compile(
    r"^\W*(?:(?:of course|sure|certainly|absolutely|no problem|my pleasure|well done)\b(?=\s*[,.!])"
    r"|thanks?(?: you)?(?: (?:so|very) much)?(?: for\b|\s*[,.!])|you're (?:very )?welcome\b"
    r"|(?:happy|glad|delighted) to (?:help|hear|assist)\b|(?:sorry|great|good) to hear\b"
    r"|(?:great|good) (?:question|point)\b|let me know\b"
    r"|here(?:'s| is| are) (?:a|an|the|your|some)\b)",
    re.IGNORECASE,
)
"""How an answer begins, and no fact."""
_AS_AN_AI = re.compile(
    r"(?:^|[.!?,;:]\s*)as an ai\b(?!\s+\w*(?:engineer|researcher|student))", re.I
)

_ADVERBS = (
    r"(?:(?:\w+ly|also|then|just|even|never|always|often|now|once|soon|very|quite|again|still|already|first|"
    r"has|had|have)(?:,?\s+(?:and|but|yet|or)\s+|,?\s+)){0,4}"
)
_VERBS = (
    r"(?:\w+ed|is|was|has|had|does|did|will|would|can|could|should|shall|must|may|might|won't|"
    r"can't|\w+n't|said|says|told|tells|gave|gives|made|makes|found|finds|knew|knows|"
    r"thought|thinks|felt|feels|wrote|writes|chose|chooses|began|begins|took|takes|kept|keeps|"
    r"got|gets|went|goes|saw|sees|sent|sends|spoke|speaks|taught|built|put|read|let|led|"
    r"suggests|helps|likes|loves|prefers|wants|needs|tries|asks|answers|offers|explains|"
    r"recommends|believes|provides|responds|replies|reminds|acts|works|uses|remembers)\b"
)
_DOES_SOMETHING = (
    r"\w+[^\Ws]s\s+(?:(?:the|an?|his|her|their|its|my|your|our|this|these|those|all|any|every|each|"
    r"no|only|nobody|whatever|whoever|what|whom|him|them|it|you|me|us|everyone|everybody|anyone|"
    r"to|nothing|everything|anything)\b|(?-i:[A-Z]))"
)
"""Any other verb with what it is done to: "obeys the king", "belongs to Ada"."""
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
        speaker: Who says it. With none given, or `-` for unknown, the assistant does; so it does
            when it names itself ("me", "the assistant", "this AI").
        assistant_names: What the assistant is called, in lower case.
    """
    text = text.replace(_CURLY, "'")
    names = tuple(name.casefold() for name in assistant_names)
    if is_assistant(speaker, names):
        if is_courtesy(text):
            return f"an answer to somebody, and no fact: {text[:40]!r}"
        for found in _first_person(_unquoted(text)):
            return f"first person, with no one else speaking: {found!r}"
    for pattern in _third_person(names):
        if match := pattern.search(text):
            return f"speaks of the assistant: {match.group().strip()!r}"
    return None


def is_courtesy(text: str) -> bool:
    """Whether `text` begins as an answer does: thanks, agreement, an offer of help."""
    return _COURTESY.match(text.replace(_CURLY, "'")) is not None


def speaks_of_oneself(text: str) -> bool:
    """Whether `text` is in the first person, what it quotes aside."""
    return next(_first_person(_unquoted(text.replace(_CURLY, "'"))), None) is not None


def is_assistant(speaker: str | None, names: Sequence[str]) -> bool:
    """Whether the one who speaks is nobody known, or the assistant under any of its names."""
    who = " ".join((speaker or "").replace("_", " ").split()).strip(" -@.:()'\"").casefold()
    bare = _DETERMINER.sub("", who)
    return not who or who in names or bare in names or bare in _SELF


def _first_person(text: str) -> Iterator[str]:
    """The words by which a speaker means themselves."""
    if match := _AS_AN_AI.search(text):
        yield match.group().strip()
    for match in _PRONOUN.finditer(text):
        word = match.group()
        if word != _COUNTRY and not (word == "I" and _is_numeral(text, match)):
            yield word


def _is_numeral(text: str, match: re.Match[str]) -> bool:
    """Whether this `I` is the numeral one: "World War I", "Charles I was beheaded"."""
    before = text[: match.start()]
    if _NUMBERED.search(before):
        return True
    return bool(_RULER.search(before)) and not _FIRST_PERSON_VERB.match(text, match.end())


def _unquoted(text: str) -> str:
    """`text` without what it quotes: that is someone's speech. A mere quotation stays whole."""
    rest = _QUOTED.sub(" ", text)
    return rest if re.search(r"\w", rest) else text


@lru_cache(maxsize=16)
def _third_person(names: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    nouns = (*names, *(noun for noun in _MACHINES if noun not in names))
    return tuple(
        re.compile(pattern, re.IGNORECASE) for name in nouns for pattern in _patterns(name)
    )


def _patterns(name: str) -> tuple[str, str, str]:
    """The assistant as owner, as subject and as agent of something."""
    it = rf"\b{re.escape(name)}\b"
    article = r"(?:the\s+|this\s+|your\s+)?"
    if name in _MACHINES:
        it, article = rf"\b(?:the|this)\s+(?:ai\s+)?{it}", r"(?:the|this)\s+"
    if name == _NOUN:
        it = (
            r"(?:(?:^|[.!?;:]\s+)(?:as\s+)?|\b(?:the|this|your)\s+)(?:ai\s+|virtual\s+|digital\s+)?"
            + it
        )
    return (
        rf"{it}'s\b",
        rf"{it},?\s+{_ADVERBS}(?:{_VERBS}|{_DOES_SOMETHING})",
        rf"\bby\s+{article}(?:ai\s+)?\b{re.escape(name)}\b{_AFTER_AGENT}",
    )
