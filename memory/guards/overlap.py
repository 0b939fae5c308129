"""Overlap: which words of a new memory stand where, and whose words they are. Pure.

A prompt contains much besides the sources: rules, recalled memories, tool results, the assistant's
own replies, other people's words. A paraphrase may share no word with its sources, so a missing
overlap proves nothing. But a text with the words of another part of the prompt, and no additional
words of its sources, comes from that part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple, TypeAlias

from memory.guards.grounding import ungrounded
from memory.guards.lexicon import (
    FUNCTION_WORDS,
    alike,
    content,
    fold,
    languages,
    sentences_of,
    word_set,
    words_of,
)
from memory.guards.mood import (
    denies,
    is_claim,
    is_conditional,
    is_possibility,
    is_quote,
    negates,
    without_request,
)
from memory.guards.numbers import numbers_in
from memory.guards.persona import speaks_of_oneself
from memory.guards.reading import Source, agrees, consents, in_all_digits
from memory.records import Fact, JournalEntry
from memory.text import (
    DATE_WORDS,
    asks,
    cached_by_text,
    content_stems,
    name_key,
    regex,
    says,
    sentences,
    stem,
    term_set,
    terms,
    words,
)

MIN_TERMS = 3
"""Fewest distinct terms for a judgement; the words of a shorter text prove nothing."""

ELSEWHERE = 0.6
"""Share of a text's terms in one passage (0..1) at which it may come from that passage."""

MIN_OWN_SHARE = 0.3
"""Least share of a text's terms in its sources, if the sources add a term."""

RUN = 3
"""Terms in a row that make a copy."""

COPIED_SHARE = 0.6
"""Share of a text's runs (0..1) in other texts at which it is a copy."""

OWN_SHARE = 0.5
"""Share of a text's terms in its sources (0..1) at which it is taken from them."""

_ESCAPES = regex(r"\\[ntr]")
_VALUES = regex(r"[\n{}\[\]|]+")


class Said(NamedTuple):
    """A text and its speaker."""

    speaker: str | None
    text: str


def share(text: str, others: Iterable[str]) -> float:
    """Share of the distinct terms of `text` that occur in any of `others` (0..1)."""
    mine = term_set(text)
    theirs = frozenset[str]().union(*map(term_set, others))
    return len(mine & theirs) / len(mine) if mine else 0.0


def is_copy(text: str, others: Iterable[str]) -> bool:
    """Whether most three-term runs of `text` occur in `others`."""
    mine = _runs(text)
    if len(term_set(text)) < MIN_TERMS:
        return False
    theirs = frozenset[tuple[str, ...]]().union(*map(_runs, others))
    return len(mine & theirs) >= COPIED_SHARE * len(mine)


def from_elsewhere(text: str, cited: Sequence[str], others: Sequence[str]) -> bool:
    """Whether `text` comes from one of `others` rather than from its `cited` sources.

    It does if it is a copy of `others`, or if one of their passages has most of its words, while
    the sources have fewer of these words and no further ones.
    """
    mine = term_set(text)
    if len(mine) < MIN_TERMS:
        return False
    own = share(text, cited)
    if own < OWN_SHARE and is_copy(text, others):
        return True
    known = mine & frozenset[str]().union(*map(term_set, cited))
    for passage in chain.from_iterable(map(_passages, others)):
        there = mine & term_set(passage)
        adds = bool(known - there) and own >= MIN_OWN_SHARE
        if len(there) / len(mine) >= max(ELSEWHERE, own + 1e-9) and not adds:
            return True
    return False


def speaker_of(text: str, given: str | None, said: Sequence[Said]) -> str | None:
    """The speaker of `text` among the speakers of its sources; None if undecided.

    The speaker that the model names (`given`) counts only if there are several, and nobody else's
    words support the text better. Otherwise the one whose statements support it best is the
    speaker; questions support nothing, and "yes" supports what it answers.
    """
    people = list(dict.fromkeys(one.speaker for one in said))
    if len(people) < 2:
        return people[0] if people else None
    borne = {one: share(text, _words_of(one, said)) for one in people}
    wanted = [one for one in people if one and given and name_key(one) == name_key(given)]
    if wanted and borne[wanted[0]] >= max(borne.values()):
        return wanted[0]
    stated = {one: _statements(one, said) for one in people}
    told = {one: (share(text, own), any(map(agrees, own))) for one, own in stated.items()}
    best = max(told.values())
    first = [one for one in people if told[one] == best]
    return first[0] if len(first) == 1 else None


def speakers_of(text: str, speaker: str | None, said: Sequence[Said]) -> str | None:
    """`speaker`, or the names of all who added to a text that joins their statements.

    Whoever said a term of it that nobody else said, names aside, added to it. So did who agreed.
    """
    people = [one for one in dict.fromkeys(each.speaker for each in said) if one]
    mine = term_set(text).difference(*map(term_set, people))
    stated = {one: _statements(one, said) for one in people}
    told = {one: mine & term_set(" ".join(its)) for one, its in stated.items()}
    joined = [
        one
        for one in people
        if one == speaker
        or any(map(consents, stated[one]))
        or told[one].difference(*(told[other] for other in people if other != one))
    ]
    return " and ".join(joined) if len(joined) > 1 else speaker


def cited_in_vain(text: str, speaker: str | None, entries: Sequence[JournalEntry]) -> list[str]:
    """Ids of other people's entries without a term of `text`, if the speaker's own support it."""
    mine = [one["content"] for one in entries if one["source_entity"] == speaker]
    if speaker is None or len(term_set(text)) < MIN_TERMS or share(text, mine) < OWN_SHARE:
        return []
    others = (one for one in entries if one["source_entity"] != speaker)
    return [
        one["id"] for one in others if not (share(text, [one["content"]]) or agrees(one["content"]))
    ]


def said_in(entries: Iterable[JournalEntry]) -> list[Said]:
    """Journal entries as texts with speakers."""
    return [Said(one["source_entity"], one["content"]) for one in entries]


def worded(said: Said) -> str:
    """The text with its speaker's name, as in a fact."""
    return f"{said.speaker or ''}: {said.text}"


def _words_of(speaker: str | None, said: Sequence[Said]) -> list[str]:
    return [one.text for one in said if one.speaker == speaker]


def _statements(speaker: str | None, said: Sequence[Said]) -> list[str]:
    texts = (one for text in _words_of(speaker, said) for one in sentences(text))
    return [one for one in texts if not asks(one)]


@cached_by_text(1_024)
def _passages(text: str) -> Sequence[str]:
    """Lines, sentences and JSON values of a text."""
    return tuple(one for part in _VALUES.split(_ESCAPES.sub("\n", text)) for one in sentences(part))


@cached_by_text(8_192)
def _runs(text: str) -> frozenset[tuple[str, ...]]:
    found = terms(text)
    return frozenset(zip(*(found[at:] for at in range(RUN)), strict=False))


# Precision. A model that was shown the words of several people may have made its text of any of
# them, whatever it cites: in another language, in code, or turned into its opposite. No list of
# such ways is complete, so nothing is looked for in the text: it has to be what its source says.


NEAR = 0.3
"""Least share (0..1) of a text's words in its sources, at which a fair rewording stands on them."""

MOSTLY = 0.5
"""The same where earlier words of the sources' speakers count, too."""

_NUMBER = regex(r"\d+")


def repeats(text: str, sources: Sequence[str], names: Collection[str] = ()) -> bool:
    """Whether each sentence of `text` is one of the sources', perhaps shortened.

    Its content words, and its numbers, stand in one sentence of a source in the same order, and
    neither denies what the other says. `names` may stand in it besides, as those of the speakers.
    """
    told = [part for one in sources for part in sentences_of(one)]
    mine = sentences_of(text)
    return bool(mine) and all(any(_repeats(one, each, names) for each in told) for one in mine)


def stands_near(
    text: str,
    sources: Sequence[str],
    names: Collection[str] = (),
    earlier: Sequence[str] = (),
    others: Iterable[str] = (),
) -> bool:
    """Whether `text` may be a fair rewording: its sources have enough of its words and numbers.

    It also is if the sources and what their speakers said `earlier` have most of them, and no text
    of `others` has more of the rest. A number that stands nowhere is not judged here.
    """
    mine, numbers = _words(text, names), _numbers(text)
    whole = [*mine, *(numbers & _numbers(*sources, *earlier))]
    if not whole or len(_among(whole, sources)) >= NEAR * len(whole):
        return bool(whole)
    known = _among(whole, earlier)
    new = [one for one in whole if one not in known]
    own = len(_among(new, sources))
    best = max((len(_among(new, [one])) for one in others), default=0)
    return own >= max(1, best) and own + len(known) >= MOSTLY * len(whole)


def _among(words: Sequence[str], texts: Sequence[str]) -> list[str]:
    theirs, numbers = [word for one in texts for word in _words(one, ())], _numbers(*texts)
    return [one for one in words if one in numbers or any(alike(one, each) for each in theirs)]


def _numbers(*texts: str) -> frozenset[str]:
    return frozenset(found for one in texts for found in _NUMBER.findall(one))


def _repeats(text: str, source: str, names: Collection[str]) -> bool:
    mine, theirs = _words(text, names), iter(_words(source, ()))
    if not mine or _denies(text) != _denies(source) or (asks(source) and not asks(text)):
        return False
    if is_conditional(source, languages(source)) and not is_conditional(text, languages(text)):
        return False
    if not {*_short(text, languages(text))} <= {*words_of(fold(" ".join((source, *names))))}:
        return False
    numbers = iter(_NUMBER.findall(source))
    if not all(one in numbers for one in _NUMBER.findall(text)):
        return False
    return all(any(alike(word, other) for other in theirs) for word in mine)


def _denies(text: str) -> bool:
    return denies(text, languages(text))


def _words(text: str, names: Collection[str]) -> list[str]:
    left = {part for one in names for part in content(one, ())}
    return [one for one in content(text) if one not in left]


# Rewording. Awake anybody's words stand in one prompt, and a model that obeys them may put them in
# a text that cites somebody else. So every word of a rewording has to come from somewhere: from its
# source, from what the same people said before, or from a table of words that claim nothing.


IN_ORDER = 0.8
"""Least share (0..1) of a rewording's words of its source that stand in the same order."""

MAX_FROM_BEFORE = 0.4
"""Most of a rewording (share of its words and numbers, 0..1) that stands in earlier words alone."""

_PLAIN = word_set("""
accord according ago also around as ask asked asks back be because been before bring brings
brought call called calls came clock come comes confidential confidentially cost costs currently
date day days does doing done euro euros evening from gave get gets give given gives go goes gone
got had happen has have her him his hour hours instead intend intends its just keep keeps kept
later made make makes mean means month months morning must name named need needs night noon now
number one other others own place plan planned planning plans private privately put puts report
reports said same say says set since stand stands start starts state states stay stays still take
taken takes talk tell tells that their then they thing this time to together told too took turn
turns us use used uses want wanted wants week weeks went will work works would year years
""")
"""Words that claim nothing by themselves."""
_PLAIN_STEMS = _PLAIN | {stem(one) for one in _PLAIN}

Codes: TypeAlias = tuple[str, ...]

_OPPOSITES = frozenset(("un", "non", "dis", "in", "im"))

_CLAUSE = regex(r"[;:,]\s+| (?:and|but|und|aber|y|pero|et|mais) ")
_PART = regex(r"[;:]\s+")


def rewords(
    text: str, source: str, names: Collection[str], earlier: Sequence[str], *, dated: bool
) -> bool:
    """Whether `text` says what `source` says, in other words.

    Each of its words and numbers is the source's, or (a small part) was said `earlier` by the same
    people, or claims nothing. It denies what the source denies, and nothing else. Numbers keep
    their order. A question bears nothing out, and a condition or a claim nothing but itself.

    Args:
        names: Of the source's speaker; they may stand in the text.
        dated: The dates and numbers of the text were compared with the source already.
    """
    codes = languages(text)
    said = (without_request(part) for part in sentences_of(source))
    told = [part for part in said if _is_said_as(part, text, codes)]
    clauses = [one for part in told for one in _CLAUSE.split(part) if one.strip()]
    parts = [one for part in sentences_of(text) for one in _PART.split(part) if one.strip()]
    own = left = 0
    for part in parts:
        if not _denies_alike(part, clauses, codes):
            return False
        words = [one for one in _claiming(part, codes) if not (dated and one in DATE_WORDS)]
        mine = _forms_in(words, told, codes)
        other = [one for one in words if one not in mine and one not in _names(names)]
        known = _forms_in(other, earlier, codes)
        if len(known) < len(other):
            return False
        taken = [one for one in mine if len(one) > 2 and one not in _names(names)]
        if _longest_run(taken, told, codes) < IN_ORDER * len(taken):
            return False
        own, left = own + len(mine), left + len(known)
    numbers, theirs = _NUMBER.findall(text), _NUMBER.findall(source)
    same = [one for one in numbers if one in theirs]
    if not (dated or len(same) == len(numbers)) or not _in_order(same, theirs):
        return False
    own += len({*same})
    return own > 0 and left <= MAX_FROM_BEFORE * (own + left)


def _is_said_as(source: str, text: str, codes: Codes) -> bool:
    """Whether a sentence is no question, and a condition or a claim only if the text is one."""
    if asks(source):
        return False
    theirs = {*codes, *languages(source)}
    return all(
        is_so(text, codes) or not is_so(source, tuple(theirs))
        for is_so in (is_conditional, is_possibility, is_claim)
    )


def _claiming(text: str, codes: Codes) -> list[str]:
    found = dict.fromkeys([*content(text, codes), *_short(text, codes)])
    return [one for one in found if one not in _PLAIN_STEMS]


def _short(text: str, codes: Codes) -> list[str]:
    """Words that are no content, and may be names: "Bo", or "Ben", which is Turkish for "I"."""
    common, *others = (FUNCTION_WORDS.get(code, frozenset[str]()) for code in (*codes, ""))
    other = frozenset[str]().union(*others)
    found = (one.partition("'")[0] for one in words_of(fold(text)))
    return [one for one in found if one not in common and (len(one) <= 2 or one in other)]


def _names(names: Iterable[str]) -> set[str]:
    parts = {part for one in names for part in (*content(one, ()), *_short(one, ()))}
    return parts | {stem(one) for one in parts}


def _forms_in(words: Sequence[str], texts: Sequence[str], codes: Codes) -> list[str]:
    """Those of these words that the texts have; `codes`: the languages of the words."""
    theirs = [word for one in texts for word in (*content(one, codes), *_short(one, codes))]
    return [one for one in words if any(_is_form(one, each) for each in theirs)]


def _longest_run(words: Sequence[str], texts: Sequence[str], codes: Codes) -> int:
    """How many of these words, in their order, the texts have in the same order."""
    lengths = [0] * (len(words) + 1)
    for word in (word for text in texts for word in content(text, codes)):
        before = 0
        for place, one in enumerate(words, 1):
            reached = before + 1 if _is_form(one, word) else 0
            before = max(before, lengths[place])
            lengths[place] = max(lengths[place], reached)
    return max(lengths)


def _is_form(one: str, other: str) -> bool:
    """Whether two words are alike, and neither is the other's opposite."""
    short, long = sorted((one, other), key=len)
    return alike(one, other) and not (long.endswith(short) and long[: -len(short)] in _OPPOSITES)


def _denies_alike(part: str, clauses: Sequence[str], codes: Codes) -> bool:
    """Whether a part of a text denies something exactly if the clauses that it is made of do."""
    words, numbers = list(dict.fromkeys(content(part, codes))), {*_NUMBER.findall(part)}
    shares = {
        one: len(_forms_in(words, [one], codes)) + len(numbers & {*_NUMBER.findall(one)})
        for one in clauses
    }
    most = max(shares.values(), default=0)
    denying = [one for one in clauses if negates(one, (*codes, *languages(one)))]
    if negates(part, codes):
        return any(shares[one] for one in denying) or bool(denying and not most)
    if not denies(part, codes):
        denying = [one for one in clauses if denies(one, (*codes, *languages(one)))]
    return not most or any(shares[one] == most for one in clauses if one not in denying)


def _in_order(numbers: Sequence[str], said: Sequence[str]) -> bool:
    """Whether numbers stand in the order in which they were said; repeated ones may stand again."""
    once = [one for one in numbers if numbers.count(one) == 1]
    return all(
        any(other in said[place + 1 :] for place, each in enumerate(said) if each == one)
        for one, other in pairwise(once)
    )


def rests_on(speaker: str | None, record: Mapping[str, Any], owners: Collection[str]) -> list[str]:
    """Everybody but the owners on whose words a memory rests: its speaker, and its origins.

    Several speakers of one fact stand as "Ada and Ben", possible ones of a note as "Ada or Ben".
    """
    said = [speaker] if speaker in owners else _SEVERAL.split(speaker or "")
    names = [*said, *record.get("origins", ())]
    return [one for one in dict.fromkeys(names) if one and one not in owners]


_SEVERAL = regex(" (?:and|or) ")


# Relations: which relations of two facts their words, speakers and times support.

MIN_ALIKE = 0.2
"""The share (0..1) of the shorter fact's terms that duplicates have in common."""

MIN_SHARED = 2
"""Telling words that a fact shares with what it supersedes, where they name no entity in common."""

SAME_WORDS = 0.8
"""The share (0..1) of all terms that duplicates without a speaker have in common."""


def about_the_same(one: Fact, other: Fact) -> bool:
    """Whether two facts can be about one thing: they share an entity, or two telling words."""
    named = {*map(name_key, one["entities"])} & {*map(name_key, other["entities"])}
    said = {*content_stems(one["text"])} & {*content_stems(other["text"])}
    return bool(named) or len(said) >= MIN_SHARED


def may_supersede(one: Fact, other: Fact, owners: Collection[str] = ()) -> bool:
    """Whether `one` may supersede `other`: it is not older, and not trusted less.

    Speakers may always take back what they said. What somebody says of themselves, or an owner
    says, others can only contradict; and where it is known who the owners are, nobody else takes
    back what another person said. What was passed on of somebody's words or affairs, that person
    may take back: first hand stands above hearsay.
    """
    if one["valid_from"] < other["valid_from"]:
        return False
    speaker = other["speaker"]
    if speaker is not None and one["speaker"] == speaker:
        return True
    if speaker is not None and speaker not in owners and _passes_on(other, one["speaker"]):
        return one["trust"] >= other["trust"]
    if speaker is not None and (of_oneself(other) or speaker in owners):
        return one["speaker"] in owners and speaker not in owners and one["trust"] >= other["trust"]
    if owners and speaker is not None and one["speaker"] not in owners:
        return False
    return one["trust"] >= other["trust"]


def _passes_on(fact: Fact, name: str | None) -> bool:
    """Whether its speaker tells of `name` as a third person does, and of nothing of their own."""
    speaker, text = fact["speaker"], fact["text"]
    if not name or not speaker or not text.startswith(speaker):
        return False
    told = text.removeprefix(speaker)
    if told[:1].isalnum():  # "Annabelle says" begins with Anna
        return False
    quoted = is_quote(text, languages(text)) and not speaks_of_oneself(told)
    return quoted and says(told, name) and not says(told, speaker)


def of_oneself(fact: Fact) -> bool:
    """Whether the speaker speaks of themselves, by name or in the first person."""
    speaker = fact["speaker"]
    if speaker is None:
        return False
    named = name_key(speaker) in map(name_key, fact["entities"]) or says(fact["text"], speaker)
    return named or speaks_of_oneself(fact["text"])


def may_be_one(one: Fact, other: Fact) -> bool:
    """Whether two facts can be merged: they have the same speaker and share words.

    Facts of two speakers stay apart, however alike they are. Two facts without a speaker may be
    about different people, and are merged only if their words are almost the same. A fact of
    doubtful origin can be merged, whatever its words, with a speaker's fact from the same sources.
    """
    if one["speaker"] != other["speaker"]:
        return _may_be_anybodys(one, other) or _may_be_anybodys(other, one)
    first, second = term_set(one["text"]), term_set(other["text"])
    if one["speaker"] is None:
        return bool(first) and len(first & second) / len(first | second) >= SAME_WORDS
    smaller = min(len(first), len(second))
    return smaller > 0 and len(first & second) / smaller >= MIN_ALIKE


def _may_be_anybodys(one: Fact, other: Fact) -> bool:
    """Whether `one` is of doubtful origin, and `other` a trusted fact from the same sources."""
    unsure = one["speaker"] is None and one["trust"] < other["trust"] and "origins" in one
    return unsure and {*one["source_entries"]} <= {*other["source_entries"]}


def joining(one: Fact, other: Fact) -> tuple[Fact, Fact]:
    """(the duplicate that stays, the other): the more trusted, the one that says all, the older."""
    return max((one, other), (other, one), key=lambda way: _merits(*way))


def _merits(stays: Fact, goes: Fact) -> tuple[float, ...]:
    kept = share(goes["text"], [stays["text"]])
    return stays["trust"], _bears_out(stays, goes), kept, _said_earlier(stays)


def lost_in(stays: Fact, goes: Fact) -> list[str]:
    """The words that go with a duplicate, if they are most of its words, or a name, a number or a
    day; all its words if one fact denies what the other does not.
    """
    if stays["speaker"] != goes["speaker"] or not may_be_one(stays, goes):
        return []
    translated = {*languages(goes["text"])}.isdisjoint(languages(stays["text"]))
    is_said = translated or share(goes["text"], [stays["text"]]) >= OWN_SHARE
    if is_said and _bears_out(stays, goes):
        return []
    known, told = {*content_stems(stays["text"])}, [*dict.fromkeys(words(goes["text"]))]
    return [one for one in told if {*content_stems(one)} - known] or told


def _bears_out(fact: Fact, other: Fact) -> bool:
    """Whether a fact has all names, numbers, days and denials of another, in whatever words."""
    text, said = other["text"], fact["text"]
    clauses, parts = _CLAUSE.split(said), _CLAUSE.split(text)
    if not all(_denies_alike(one, clauses, languages(text)) for one in parts):
        return False
    new = [one for one in parts if {*content_stems(one)} - {*content_stems(said)}]
    if any(map(_denies, new)) and not any(map(_denies, clauses)):
        return False
    theirs = [one.readings for digits in in_all_digits(said) for one in numbers_in(digits)]
    if not all(any(one.readings & each for each in theirs) for one in numbers_in(fold(text))):
        return False
    source = Source(worded(Said(fact["speaker"], said)), None, fact["valid_from"])
    return share(text, [said]) == 1 or ungrounded(text, None, [source]) is None


def _said_earlier(fact: Fact) -> float:
    """A number that grows with the fact's age."""
    digits = "".join(one for one in fact["valid_from"][:19] if one.isdigit())
    return -float(digits or 0)
