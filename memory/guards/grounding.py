"""Grounding: whether a proposed fact follows from the entries that it cites. Pure.

The fact is compared with what it cites, and with nothing else. Numbers, days, times and names of
the fact must occur there or follow by rule; the person of whom it speaks is the one of whom they
speak; a question, a condition, a wish or somebody's claim makes no statement; a denial stays one.
What these rules cannot decide, such as a paraphrase or a translation, passes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import NamedTuple

from memory.guards import mood, names, numbers
from memory.guards.attribution import is_left_out, of_another, other_subject, refers_back
from memory.guards.days import other_day
from memory.guards.figures import other_number
from memory.guards.lexicon import (
    HAN,
    OPPOSITES,
    alike,
    content,
    fold,
    joined,
    languages,
    shared,
    word_set,
    words_of,
)
from memory.guards.mood import Mood
from memory.guards.reading import Clause, Evidence, ProposedFact, Source

ENOUGH = 3
"""Fewest content words of a fact that is compared with what was said before."""


class Doubt(str):
    """Why a fact may not follow, by a rule of language: a model that reads both may overrule it."""


def ungrounded(
    text: str,
    speaker: str | None,
    cited: Sequence[Source],
    *,
    before: Sequence[Source] = (),
    people: Collection[str] = (),
    known: Sequence[Source] = (),
    zone: tzinfo = UTC,
) -> str | None:
    """Why a fact does not follow from what it cites, in a sentence; None if it may.

    All but whose words they are is a `Doubt`.

    Args:
        text: the fact.
        speaker: who said it, as its author has it.
        cited: its sources.
        before: what was said around them, to which their pronouns may refer.
        people: everybody known by name, so that a name is seen to be one.
        known: facts of memory that were shown. Their names may say what the fact is about; a day
            or a number that what is cited leaves out may come from those of the same speaker.
        zone: the people's time zone.
    """
    evidence = Evidence(tuple(cited), zone, tuple(before), tuple(known))
    fact = ProposedFact(text, evidence, _known([*people, *evidence.speakers]))
    if not is_plain(text):
        return "It is a heading or an answer of a tool and no fact: write one plain sentence"
    if (why := of_another(fact, speaker)) is not None:
        return why
    checks: tuple[Callable[[], str | None], ...] = (
        lambda: other_day(fact),
        lambda: other_number(fact),
        lambda: _other_name(fact),
        lambda: _other_thing(fact),
        lambda: other_subject(fact),
        lambda: _other_mood(fact),
        lambda: _turned(fact),
        lambda: _unrelated(fact),
    )
    return next((Doubt(why) for check in checks if (why := check()) is not None), None)


def is_plain(text: str) -> bool:
    """Whether a text is neither JSON nor a heading, which state nothing."""
    return not text.rstrip().endswith((":", "\uff1a")) and _MARKUP.search(text) is None


_MARKUP = re.compile(r"[{\[]\s*[\"{\[]|\"\s*:\s*[\"\[{\d]|[\"\]}]\s*,\s*\"")
_NO_NAMES = word_set(
    """
    dr mr mrs ms frau herr the der die das la le de del van von
    """
)


def _known(people: Collection[str]) -> frozenset[str]:
    """The words of people's names, folded."""
    parts = {names.bare(part) for one in people for part in one.split()}
    return frozenset(
        {one for one in parts if len(one) > 1 and one not in _NO_NAMES and not names.is_title(one)}
        | {fold(one) for one in people if HAN.search(one)}
    )


_QUOTED = re.compile(
    r"[\u00ab\u201c\u201e\"\u300a]([^\u00bb\u201d\"\u300b]{3,40})[\u00bb\u201d\u201c\"\u300b]"
    r"|\u300a([^\u300b]{1,40})\u300b|(?<!\w)['\u2018]([^'\u2018\u2019]{3,40})['\u2019](?!\w)"
)


def _other_title(fact: ProposedFact) -> str | None:
    """A title in quotation marks that the sources, which quote some, do not have."""
    heard = fact.evidence.heard
    if fact.translated or not _QUOTED.search(heard.text):
        return None
    titles = ("".join(one).strip() for one in _QUOTED.findall(fact.text))
    return next((one for one in titles if joined(fold(one)) not in heard.joined), None)


def _other_name(fact: ProposedFact) -> str | None:
    """A name of the fact that its sources do not have."""
    heard = fact.evidence.heard
    if (title := _other_title(fact)) is not None:
        return f"What it cites gives another title than {title}"
    for name in names.names_in(fact.text, fact.people, fact.tongue):
        if heard.has(name) or (fact.translated and name.key not in fact.people):
            continue
        if (other := names.mistaken(name, fact.text, heard)) is not None:
            return f"What it cites says {other}, and the fact says {name.written}"
        if refers_back(name, fact) or fact.is_known(name.written) or is_left_out(name, fact):
            continue
        if name.sure:
            return (
                f"{name.written} does not occur in what it cites: cite the entry that names "
                f"{name.written}, or put the name right"
            )
        other = names.resembling(name, heard, fact.text)
        if other is not None:
            return f"What it cites says {other}, and the fact says {name.written}"
    return None


_DETERMINERS = word_set(
    """
    the an in at to from with of for my our his her their der die das den dem des ein eine einen
    einem einer im am vom zum zur mit von bei nach auf el la los las un una en con de del al para
    por le les des du au aux dans avec chez sur pour
    """
)


def _other_thing(fact: ProposedFact) -> str | None:
    """A noun in whose place the sources have another one, between the same words.

    "The towels with the otter sell": "towels with the heron sell". The noun follows an article or a
    preposition, and a content word stands on one of its sides in both. A name may have another form
    in the fact ("Wien", "Vienna"): other rules compare names.
    """
    if fact.translated:
        return None
    named = {one.key for one in names.names_in(fact.text, fact.people, fact.tongue) if one.sure}
    mine = _TOKEN.findall(fact.folded)
    for source in fact.evidence.sources:
        theirs = _TOKEN.findall(fold(source.text))
        for here, one in enumerate(mine):
            if one in theirs or one in named or not _follows_article(mine, here):
                continue
            for there, other in enumerate(theirs):
                if (
                    other not in mine
                    and _follows_article(theirs, there)
                    and not alike(one, other)
                    and _has_same_sides(mine, here, theirs, there, fact.codes)
                ):
                    return f"What it cites says {other}, and the fact says {one}"
    return None


_TOKEN = re.compile(r"[^\W\d_]+|\d+")


def _follows_article(words: Sequence[str], at: int) -> bool:
    return at > 0 and words[at - 1] in _DETERMINERS and len(words[at]) > 3 and words[at].isalpha()


def _has_same_sides(
    mine: Sequence[str], here: int, theirs: Sequence[str], there: int, codes: tuple[str, ...]
) -> bool:
    """Whether two words stand between the same ones, of which one is a content word."""
    left = [
        a for a, b in zip(mine[:here][-1:-4:-1], theirs[:there][-1:-4:-1], strict=False) if a == b
    ]
    after = (mine[here + 1 : here + 2], theirs[there + 1 : there + 2])
    if len(left) < 2 or (after[0] and after[0] != after[1]):
        return False
    return bool(content(" ".join([*left, *after[0]]), codes))


_CUES: dict[Mood, Callable[[str, tuple[str, ...]], bool]] = {
    Mood.QUESTION: mood.asks_in,
    Mood.CONDITION: lambda fact, codes: any(
        kept(fact, codes) for kept in (mood.hedges_in, mood.wishes_in, mood.asks_in)
    ),
    Mood.WISH: mood.wishes_in,
    Mood.REPORT: mood.reports_in,
}
_SAID_AS = {
    Mood.QUESTION: "asks this as a question: nothing is stated yet",
    Mood.CONDITION: "says this on a condition or as a possibility: keep that in the fact",
    Mood.WISH: "wishes or hopes this: say so in the fact",
    Mood.REPORT: "passes this on as somebody's claim: say in the fact whose claim it is",
}


def _other_mood(fact: ProposedFact) -> str | None:
    """A question, a condition, a wish or a claim that the fact makes a statement."""
    told = [
        one for one in fact.evidence.clauses if one.words or _digits(one.text)
    ] or fact.evidence.clauses
    lost = {id(one): _lost(one, fact) for one in told}
    own = any(mood.is_own(one.text) and not lost[id(one)] for one in told)
    if own and _is_of_speaker(fact):
        # What is said of others is no matter of one's own words.
        lost = {key: [] if moods == [Mood.REPORT] else moods for key, moods in lost.items()}
    if all(lost[id(one)] for one in told):
        nearest = max(told, key=lambda one: _near(fact, one))
        return f"What it cites {_SAID_AS[lost[id(nearest)][0]]}"
    near = {id(one): _near(fact, one) for one in told}
    stated = max(near[id(one)] for one in told if not lost[id(one)])
    enough = min(2, -(-len(fact.words) // 2)) if stated else 1
    denied = mood.negates(fact.text, fact.codes)
    for one in sorted(told, key=lambda each: -near[id(each)]):
        if denied and lost[id(one)] and _denied_beside(one, told, lost):
            continue
        if lost[id(one)] and near[id(one)] > stated and near[id(one)] >= enough:
            return f"What it cites {_SAID_AS[lost[id(one)][0]]}"
    return None


def _denied_beside(
    clause: Clause, told: Sequence[Clause], lost: Mapping[int, Sequence[Mood]]
) -> bool:
    """Whether a clause denies nothing, and another of its sentence does, as a plain statement."""
    return not mood.negates(clause.text, clause.codes) and any(
        one.sentence == clause.sentence and not lost[id(one)] and mood.negates(one.text, one.codes)
        for one in told
    )


def _is_of_speaker(fact: ProposedFact) -> bool:
    """Whether the fact begins with the name of a speaker that it cites."""
    first = [names.bare(one) for one in fact.text.split()[:2]]
    return any(part in first for one in fact.evidence.speakers for part in fold(one).split())


def _near(fact: ProposedFact, clause: Clause) -> int:
    same = _digits(clause.text) & _digits(fact.text)
    return fact.nearness(clause.words) + len(same)


def _digits(text: str) -> set[str]:
    """The numbers of a text, without their separators."""
    return {re.sub(r"\D", "", one) for one in re.findall(r"\d[\d.,]*", text)} - {""}


def _lost(clause: Clause, fact: ProposedFact) -> list[Mood]:
    """The moods of a clause of which the fact has no sign."""
    return [one for one in Mood if one in clause.moods and not _CUES[one](fact.text, fact.codes)]


def _turned(fact: ProposedFact) -> str | None:
    """A denial that the fact makes an assertion, or the other way round."""
    if fact.translated or not fact.familiar or not fact.words:
        return None
    parts = [
        Part(text, content(text, one.codes), one, mood.negates(text, one.codes))
        for one in fact.evidence.clauses
        for text in _AND.split(one.text)
    ]
    if not mood.denies(fact.text, fact.codes) and any(_leaves_out(fact, parts)):
        return "What it cites leaves this out: keep the negation"
    pieces = [one for one in _PIECES.split(fact.text) if one and one.strip()]
    return next((why for one in pieces if (why := _turns(one, fact, parts)) is not None), None)


class Part(NamedTuple):
    """A part of a clause, between two "and"."""

    text: str
    words: tuple[str, ...]
    clause: Clause
    negated: bool


def _turns(piece: str, fact: ProposedFact, parts: Sequence[Part]) -> str | None:
    """The same for a piece of the fact."""
    words = shared(content(piece, fact.codes), fact.words)
    if len(words) < 3 and piece != fact.text:
        return None
    near = {one: len(shared(words, one.words)) for one in parts}
    best = max(near.values())
    if best < max(1, 0.6 * len(words)):
        return None
    top = [one for one in parts if near[one] == best]
    if any(mood.is_question(one.clause.sentence) for one in top) or _goes_on(fact, top[0].clause):
        return None
    said = [word for one in top for word in one.words]
    rest = [one for one in words if one not in shared(words, said)]
    denied = mood.denies(piece, fact.codes) or any(
        shared(rest, one.words)
        for one in parts
        if not one.negated and one.clause.sentence == top[0].clause.sentence
    )
    if not denied and all(one.negated for one in top):
        return "What it cites says that this is not so: keep the negation"
    return _opposite(piece, fact, [one.text for one in top])


_AND = re.compile(
    r"\s(?:and|und|y|e|et|ve|en|so|then|daher|also|deshalb|donc|entonces)\s|所以|就(?=不|没)",
    re.IGNORECASE,
)
_PIECES = re.compile(
    r"[,;，；]|\s(?:and|but|while|because|und|aber|weil|y|pero|porque|et|mais"
    r"|parce que|ve|ama|cunku|çünkü)\s",
    re.IGNORECASE,
)


def _goes_on(fact: ProposedFact, clause: Clause) -> bool:
    """Whether a later source speaks of it, too: "It did not come." - "It comes tomorrow."."""
    return any(
        one.at > clause.at and one.speaker != clause.speaker and fact.nearness(one.words)
        for one in fact.evidence.clauses
    )


def _leaves_out(fact: ProposedFact, parts: Sequence[Part]) -> Iterator[bool]:
    """Whether all words of a denial are in the fact, and nothing else says them: "No dairy"."""
    for one in parts:
        words = set(one.words)
        others = [each for each in parts if each is not one and not each.negated]
        yield (
            one.negated
            and 2 <= len(words) <= 4
            and len(shared(words, fact.words)) == len(words)
            and not any(shared(words, each.words) for each in others)
        )


def _opposite(piece: str, fact: ProposedFact, texts: Sequence[str]) -> str | None:
    """A word of the nearest clauses in whose place the fact has its opposite."""
    mine = set(words_of(fold(piece)))
    theirs = {word for text in texts for word in words_of(fold(text))}
    if mood.negates(piece, fact.codes) or any(mood.negates(one, fact.codes) for one in texts):
        return None
    for one, other in OPPOSITES.get(fact.tongue or "", ()):
        for here, there in ((one, other), (other, one)):
            if mine & here and theirs & there and not mine & there and not theirs & here:
                return f'What it cites says "{min(theirs & there)}", and the fact the opposite'
    return None


def _unrelated(fact: ProposedFact) -> str | None:
    """A fact whose words were said before, and which shares nothing with its sources."""
    sources = fact.evidence.sources
    if len(fact.words) < ENOUGH or any(
        languages(one.text)[:1] != (fact.tongue,) for one in sources
    ):
        return None
    told = [word for one in sources for word in content(one.text, fact.codes)]
    others = [content(one.text, fact.codes) for one in fact.evidence.before if one not in sources]
    if max(map(fact.nearness, others), default=0) <= fact.nearness(told):
        return None  # It may be a paraphrase.
    if shared(fact.words, told) or numbers.numbers_in(numbers.in_digits(fact.text, fact.tongue)):
        return None
    return "It shares nothing with what it cites: cite the entry that says it"
