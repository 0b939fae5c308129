"""Whose words a fact is: the speaker that it names, and the person that it speaks of. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from memory.guards.dates import weekdays_in
from memory.guards.lexicon import WEEKDAY, alike, content, fold, shared, word_set, words_of
from memory.guards.mood import Mood
from memory.guards.names import HeardNames, Name, bare, confusable, labels, mentions, names_in
from memory.guards.reading import Clause, ProposedFact
from memory.text import name_key

_I = {
    "en": r"(?<!\w)i(?:'(?:m|ve|ll|d))?(?!\w)",
    "de": r"(?<!\w)ich(?!\w)",
    "es": r"(?<!\w)yo(?!\w)",
    "fr": r"(?<!\w)(?:je(?!\w)|j')",
    "tr": r"(?<!\w)ben(?!\w)",
    "zh": r"我(?!们)",
}
_MY = {
    "en": r"(?<!\w)my ([a-z]+)",
    "de": r"(?<!\w)mein\w{0,2} ([a-z]+)",
    "es": r"(?<!\w)mis? ([a-z]+)",
    "fr": r"(?<!\w)(?:mon|ma|mes) ([a-z]+)",
    "zh": "我(?:的|家)?(爸|妈|哥|姐|弟|妹|儿子|女儿|老公|老婆|爷爷|奶奶)",
}
_I_ANYWHERE = re.compile(
    "|".join(_I.values())
    + r"|(?<!\w)(?:me|my|mein\w*|mir|mich|mi|mis|mon|ma|mes|moi|m'|bana|beni|benim)(?!\w)"
)
_WE = re.compile(
    r"(?<!\w)(?:we(?:'\w+)?|us|our|ours|wir|uns|unser\w*|nosotr[oa]s|nuestr[oa]s?|\w+mos|nous"
    r"|notre|nos|on"
    r"|biz|bizim|bize|\w+(?:iyoruz|uyoruz|dik|duk|tik|tuk|eceg?iz|acag?iz)|noi|nostr[oaie]"
    r"|wij|ons)(?!\w)|我们|咱"
)
"""Who says "we" speaks of others, too."""
_SOMEBODY_FIRST = re.compile(
    r"(?<!\w)(?:he|she|they|er|ella|il|elle|ils|elles|hij|zij)(?:'\w+)?(?!\w)|[他她]"
)
_SOMEBODY = re.compile(
    r"(?<!\w)(?:he|she|him|her|his|hers|they|them|their|you|your|er|sie|ihm|ihn|ihr\w{0,2}"
    r"|ihnen|du|dir|dich"
    r"|dein\w*|el|ella|le|les|lo|la|su|sus|te|ti|tu|il|elle|lui|leur|toi|vous|o|onu|ona|onun"
    r"|sen|sana|seni|lei|voce|hij|zij|hem|haar|je)(?!\w)|[他她你您]"
)


def of_another(fact: ProposedFact, speaker: str | None) -> str | None:
    """Why the named speaker is not the one who said it."""
    told = fact.evidence.speakers
    if not speaker or not told or any(is_same(speaker, one) for one in told):
        return None
    who = " and ".join(told)
    return f"{speaker} said none of what it cites. {who} did: name {who} as the speaker"


def is_same(one: str, other: str) -> bool:
    """Whether two names may be one person's: "Haller" and "Dr Haller"."""
    if name_key(one) == name_key(other):
        return True
    mine, theirs = set(words_of(fold(one))), set(words_of(fold(other)))
    return bool(mine and theirs) and (mine <= theirs or theirs <= mine)


def refers_back(name: Name, fact: ProposedFact) -> bool:
    """Whether a pronoun of the sources may mean somebody who was named just before."""
    if name.key in fact.people and _WE.search(
        fold(" ".join(s.text for s in fact.evidence.sources))
    ):
        return any(fold(one).split()[0] in fact.folded for one in fact.evidence.speakers)
    if not fact.evidence.before or not fact.evidence.heard_before.has(name):
        return False
    if not fact.translated:
        best = max(fact.evidence.clauses, key=lambda one: fact.nearness(one.words))
        if _means_another(best, fact):
            return False
        return not _I_ANYWHERE.search(fold(best.text)) and (
            _points(best.sentence) or fact.tongue == "tr"
        )
    return not any(_I_ANYWHERE.search(fold(one.text)) for one in fact.evidence.sources) and any(
        _points(one.text) for one in fact.evidence.sources
    )


_NEAR = 6
"""So many entries before the first one cited are what was being talked of."""
_SHORT = re.compile(r"(?<![^\W_])([^\W\d_]{1,6})(?![^\W_])")


def is_left_out(name: Name, fact: ProposedFact) -> bool:
    """Whether the sources shorten a name, or leave out whose thing it is as everybody knows.

    "Bo locks up" may become "Bogdan locks up", and "The editor gives us a week" a week for "Nela's
    manuscript", of which somebody spoke just before. Who does it is never left out so, and nobody
    takes the place of somebody whom the sources name.
    """
    if _is_short_for(name, fact):
        return True
    if _is_subject(name, fact):
        return False
    near = HeardNames(f"{one.speaker or ''}: {one.text}" for one in fact.evidence.before[-_NEAR:])
    if not near.has(name) and not fact.is_known(name.written, least=1):
        return False
    speakers = {part for one in fact.evidence.speakers for part in fold(one).split()}
    is_of_speaker = any(part in fact.folded for part in speakers)
    clauses = fact.evidence.clauses
    best = max((fact.nearness(one.words) for one in clauses), default=0)
    nearest = [one for one in clauses if fact.nearness(one.words) == best]
    return not any(
        one.sure and one.key not in fact.folded and one.key != name.key
        for clause in nearest
        for one in names_in(clause.text, fact.people, fact.tongue)
    ) and (is_of_speaker or not any(map(_is_of_oneself, nearest)))


def _is_of_oneself(clause: Clause) -> bool:
    folded = fold(clause.text)
    suffixed = clause.codes[:1] == ("tr",) and _MY_TURKISH.search(folded)
    return bool(_I_ANYWHERE.search(folded) or suffixed)


_MY_TURKISH = re.compile(r"\w{2,}[aiu]m(?:[ae]|[iu]n?|[dt][ae]n?|l[ae])?(?!\w)")
"""Arabam, sirtim: my car, my back."""


def _is_short_for(name: Name, fact: ProposedFact) -> bool:
    """Whether a source has the beginning of a name that is known: "Bo", "T.", "Frau W"."""
    known = name.key in fact.people or fact.is_known(name.written)
    if not known and not fact.evidence.heard_before.has(name):
        return False
    return any(
        found[1][0].isupper()
        and name.key.startswith(fold(found[1]))
        and (len(found[1]) > 1 or found[1] != "I")
        for found in _SHORT.finditer(fact.evidence.heard.text)
    )


def _is_subject(name: Name, fact: ProposedFact) -> bool:
    """Whether a part of the fact begins with a name, and not with what is somebody's."""
    for piece in _PIECES.split(fact.text):
        folded = fold(piece).strip()
        at = folded.find(name.key)
        if at >= 0 and not _owns(name.key, piece) and len(content(folded[:at], fact.codes)) == 0:
            return True
    return False


def _means_another(clause: Clause, fact: ProposedFact) -> bool:
    """Whether the sentence names somebody else before its pronoun: "found by Sule, he picked"."""
    folded = fold(clause.sentence)
    pronoun = _SOMEBODY_FIRST.search(folded)
    return pronoun is not None and any(
        one.sure and one.key not in fact.folded and -1 < folded.find(one.key) < pronoun.start()
        for one in names_in(clause.sentence, fact.people, fact.tongue)
    )


def _points(text: str) -> bool:
    return _SOMEBODY.search(fold(text)) is not None


_PIECES = re.compile(
    r"[,;]|，|；|\s(?:and|und|y|et|ve|while|whereas|während|mientras|tandis que)\s", re.IGNORECASE
)


def other_subject(fact: ProposedFact) -> str | None:
    """Why the person of whom the fact speaks is not the one of whom its sources say it."""
    if fact.translated or fact.tongue == "pl":  # Names have endings there, and verbs the person.
        return None
    for piece in _PIECES.split(fact.text):
        found = names_in(piece.strip(), fact.people, fact.tongue)
        opening = [one for one in found[:1] if fold(piece).strip().startswith(one.key)]
        if fact.tongue == "tr":  # A capital at the beginning makes no name.
            opening = [one for one in opening if one.key in fact.people]
        for subject in opening:
            if (other := _said_of(subject, piece, fact)) is not None:
                return (
                    f"What it cites says this of {other}, and the fact says it of {subject.written}"
                )
    return None


def _said_of(subject: Name, piece: str, fact: ProposedFact) -> str | None:
    """The person of whom the nearest clause says it, if that is somebody else."""
    wanted = [one for one in content(piece, fact.codes) if bare(one) != subject.key]
    if not wanted or _owns(subject.key, piece):
        return None
    ranked = [(_weight(wanted, one), one) for one in fact.evidence.clauses]
    best = max((weight for weight, _ in ranked), default=0)
    if best < min(3, len(wanted) + 1):
        return None
    others = []
    for weight, clause in ranked:
        if weight == best:
            other = _subject_of(clause, wanted, fact.people)
            if other is None or alike(bare(other), subject.key) or is_same(other, subject.written):
                return None
            if bare(other) in fold(piece) or subject.key in fold(clause.text):
                return None
            if bare(other) in fact.folded and subject.key in fold(clause.sentence):
                return None  # The sentence tells of both, and so does the fact.
            others.append(other)
    return others[0] if others else None


def _owns(key: str, piece: str) -> bool:
    owner = re.escape(key)
    return re.search(rf"{owner}\w*['\u2019]|{owner}的", fold(piece)) is not None


def _weight(wanted: list[str], clause: Clause) -> int:
    """How much of a statement a clause has; the first word, often the verb, counts twice."""
    found = shared(wanted, clause.words)
    return len(found) + (wanted[0] in found)


def _subject_of(clause: Clause, wanted: list[str], known: Collection[str]) -> str | None:
    """The last person named before what is said: a name, or the speaker as "I"."""
    folded = fold(clause.text)
    first = min(
        (
            match.start()
            for match in re.finditer(r"[^\W\d_]+", folded)
            for word in content(match.group(), clause.codes)
            if any(alike(word, each) for each in wanted)
        ),
        default=len(folded),
    )
    people: list[tuple[int, str]] = []
    if clause.speaker and clause.codes and clause.codes[0] in _I:
        people += [
            (one.start(), clause.speaker)
            for one in re.finditer(_I[clause.codes[0]], folded[:first])
        ]
    code = clause.codes[0] if clause.codes else None
    for name in names_in(clause.text, known, code):
        at = folded.find(name.key)
        person = name.key in known or not clause.text[:at].strip(" \"'«“„")
        if name.sure and 0 <= at < first and person:
            people.append((at, name.written))
    if _SOMEBODY_FIRST.search(folded[:first]):
        return None
    return max(people)[1] if people else None


def exchanged(fact: ProposedFact) -> str | None:
    """Why the name in a part of the fact is that of somebody, or something, else in its sources.

    "Jansen covers it. Janssen does the board": two names, each with its own statement.
    """
    if fact.translated or fact.tongue == "pl":
        return None
    mine = {one.key for one in names_in(fact.text, fact.people, fact.tongue)} | fact.people
    if fact.tongue == "tr":  # A capital at the beginning makes no name.
        mine = set(fact.people)
    mine |= labels(fact.text, fact.evidence.heard.text)
    scene = list(_owners(fact, mine))
    for piece in _PIECES.split(fact.text):
        here = [one for one in mentions(piece, mine, by_capital=False) if one in mine]
        if _turned_round(here, piece, fact, scene):
            return f"What it cites has {here[0]} and {here[1]} the other way round"
        for name in here:
            if (other := _owner_of(name, here, piece, fact, scene)) is not None:
                return f"What it cites says this of {other}, and the fact says it of {name}"
    return None


class _Owned(NamedTuple):
    """What the sources say of somebody, up to the next name."""

    names: frozenset[str]
    words: tuple[str, ...]
    clauses: tuple[Clause, ...]


def _owners(fact: ProposedFact, known: Collection[str]) -> Iterator[_Owned]:
    """The runs of clauses with the same names. A fragment goes on with the sentence before."""
    run, names, sentence = list[Clause](), frozenset[str](), ""
    for clause in fact.evidence.clauses:
        is_inside = not clause.sentence.startswith(clause.text)
        text = f"... {clause.text}" if is_inside else clause.text
        here = frozenset(mentions(text, known, by_capital="de" not in clause.codes[:1]))
        anew = clause.sentence != sentence and len(clause.words) > _FRAGMENT
        if run and (anew or here):
            yield _owned(names, run)
            run = []
        names = here if here or anew else names
        run, sentence = [*run, clause], clause.sentence
    yield _owned(names, run)


_FRAGMENT = 1
"""Most content words of a sentence that may belong to the one before."""


def _owned(names: frozenset[str], run: Sequence[Clause]) -> _Owned:
    return _Owned(names, tuple(w for c in run for w in _anchors(c.text, c.codes)), tuple(run))


def _owner_of(
    name: str, here: Collection[str], piece: str, fact: ProposedFact, scene: Sequence[_Owned]
) -> str | None:
    """The other name to which the words of the piece belong, if none of them is `name`'s."""
    if not (name.isdigit() or fact.evidence.heard.has(Name(name, name, True))):
        return None
    wanted = [
        one
        for one in _anchors(piece, fact.codes)
        if not any(alike(one, key) or one in key.split("-") for key in here)
    ]
    mine, theirs, other = (0.0, set[str]()), (0.0, set[str]()), ""
    for one in scene:
        found = set(shared(wanted, one.words))
        asks = any(Mood.QUESTION in clause.moods for clause in one.clauses)
        said = (len(found) - 0.5 * (asks and bool(found)), found)
        rivals = [each for each in one.names if confusable(each, name) and each not in here]
        if name in one.names or _is_said_by(name, one):
            mine = max(mine, said, key=lambda each: each[0])
        elif rivals and said[0] > theirs[0]:
            theirs, other = said, rivals[0]
        elif not theirs[0] and _tells_all(said[0], wanted, one, fact) and not _owns(name, piece):
            theirs, other = said, min(one.names)
    same = len(mine[1] & theirs[1])
    own, foreign = mine[0] - same, theirs[0] - same
    return other if foreign > own and (own < 1 or foreign >= own + 2) else None


def _is_said_by(name: str, one: _Owned) -> bool:
    """Whether somebody of that name says it of himself."""
    return any(
        clause.speaker is not None
        and name in fold(clause.speaker).split()
        and _I_ANYWHERE.search(fold(clause.text)) is not None
        for clause in one.clauses
    )


def _tells_all(count: float, wanted: Collection[str], one: _Owned, fact: ProposedFact) -> bool:
    """Whether all words of a piece belong to a single name that the fact does not have."""
    folded = fold(" ".join(clause.text for clause in one.clauses))
    return (
        2 <= count == len(wanted)
        and len(one.names) == 1
        and not any(each in fact.folded for each in one.names)
        and not (_I_ANYWHERE.search(folded) or _SOMEBODY_FIRST.search(folded))
    )


def _anchors(text: str, codes: tuple[str, ...]) -> list[str]:
    days = (f"{one.weekday}." for one in weekdays_in(fold(text), strict=False))
    return [*content(_DAYS.sub(" ", fold(text)), codes), *re.findall(r"\d+", text), *days]


_DAYS = re.compile(rf"(?<![^\W\d_])(?:{WEEKDAY})s?(?![^\W\d_])")


def _turned_round(
    here: Sequence[str], piece: str, fact: ProposedFact, scene: Sequence[_Owned]
) -> bool:
    """Whether two names stand on the wrong sides of the same word: "Mae replaces Faye"."""
    if len(here) != 2:
        return False
    if _PASSIVE.search(fold(piece)):
        return False
    between = _between(here[0], here[1], piece, fact.codes)
    for clause in (each for one in scene if set(here) <= one.names for each in one.clauses):
        if _PASSIVE.search(fold(clause.text)):
            return False
        other = _between(here[1], here[0], clause.text, clause.codes)
        same = shared(between, other) and len(between) == len(other)
        if same or (_WON & {*between} and _WON & {*other}):
            return True
    return False


_PASSIVE = re.compile(
    r"(?<!\w)(?:by|von|vom|durch|por|par|tarafindan|with|mit|con|avec|ile)(?!\w)|[被和跟]"
)
_WON = word_set(
    "beat beats won win defeat gewann schlug besiegt gano vencio gagne battu bat vaincu yendi"
)


def _between(one: str, other: str, text: str, codes: tuple[str, ...]) -> list[str]:
    """The content words between two names, in this order."""
    folded = fold(text)
    start, end = folded.find(one), folded.find(other)
    return [*content(folded[start + len(one) : end], codes)] if 0 <= start < end else []
