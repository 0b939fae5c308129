"""Whose words a fact is: the speaker that it names, and the person that it speaks of. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from memory.guards.lexicon import alike, content, fold, shared, words_of
from memory.guards.names import HeardNames, Name, bare, names_in
from memory.guards.reading import Clause, ProposedFact

_I = {
    "en": r"(?<!\w)i(?:'(?:m|ve|ll|d))?(?!\w)",
    "de": r"(?<!\w)ich(?!\w)",
    "es": r"(?<!\w)yo(?!\w)",
    "fr": r"(?<!\w)(?:je(?!\w)|j')",
    "tr": r"(?<!\w)ben(?!\w)",
    "zh": r"我(?!们)",
}
_I_ANYWHERE = re.compile(
    "|".join(_I.values())
    + r"|(?<!\w)(?:me|my|mein\w*|mir|mich|mi|mis|mon|ma|mes|moi|m'|bana|beni|benim)(?!\w)"
)
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
    mine, theirs = set(words_of(fold(one))), set(words_of(fold(other)))
    return bool(mine and theirs) and (mine <= theirs or theirs <= mine)


def refers_back(name: Name, fact: ProposedFact) -> bool:
    """Whether a pronoun of the sources may mean somebody who was named just before."""
    if not fact.evidence.before or not fact.evidence.heard_before.has(name):
        return False
    if not fact.translated:
        best = max(fact.evidence.clauses, key=lambda one: fact.nearness(one.words))
        return not _I_ANYWHERE.search(fold(best.text)) and (
            _points(best.sentence) or fact.tongue == "tr"
        )
    return not any(_I_ANYWHERE.search(fold(one.text)) for one in fact.evidence.sources) and any(
        _points(one.text) for one in fact.evidence.sources
    )


_NEAR = 6
"""So many entries before the first one cited are what was being talked of."""


def is_left_out(name: Name, fact: ProposedFact) -> bool:
    """Whether the sources leave out whose thing it is, as everybody knows.

    "The editor gives us a week" may become a week for "Nela's manuscript", of which somebody spoke
    just before. Who does it is never left out so, and nobody takes the place of somebody whom the
    sources name.
    """
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


def _is_subject(name: Name, fact: ProposedFact) -> bool:
    """Whether a part of the fact begins with a name, and not with what is somebody's."""
    for piece in _PIECES.split(fact.text):
        folded = fold(piece).strip()
        at = folded.find(name.key)
        if at >= 0 and not _owns(name.key, piece) and len(content(folded[:at], fact.codes)) == 0:
            return True
    return False


def _points(text: str) -> bool:
    return _SOMEBODY.search(fold(text)) is not None


_PIECES = re.compile(
    r"[,;]|，|；|\s(?:and|und|y|et|ve|while|whereas|während|mientras|tandis que)\s", re.IGNORECASE
)


def other_subject(fact: ProposedFact) -> str | None:
    """Why the person of whom the fact speaks is not the one of whom its sources say it."""
    if fact.translated:
        return None
    for piece in _PIECES.split(fact.text):
        found = names_in(piece.strip(), fact.people, fact.tongue)
        opening = [one for one in found[:1] if fold(piece).strip().startswith(one.key)]
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
