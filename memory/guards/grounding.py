"""Grounding: whether a proposed fact follows from the entries that it cites. Pure.

The fact is compared with what it cites, and with nothing else. Numbers, days, times and names of
the fact must occur there or follow by rule; the person of whom it speaks is the one of whom they
speak; a question, a condition, a wish or somebody's claim makes no statement; a denial stays one.
What these rules cannot decide, such as a paraphrase or a translation, passes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, tzinfo

from memory.guards import mood, names
from memory.guards.days import other_day
from memory.guards.figures import other_number
from memory.guards.lexicon import (
    HAN,
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
from memory.guards.names import HeardNames, Name, bare, names_in
from memory.guards.reading import Clause, Evidence, ProposedFact, Source
from memory.text import depends_on_speaker

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
    if (why := _of_another(fact, speaker)) is not None:
        return why
    checks: tuple[Callable[[], str | None], ...] = (
        lambda: other_day(fact),
        lambda: other_number(fact),
        lambda: _other_name(fact),
        lambda: _other_subject(fact),
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
    parts = {bare(part) for one in people for part in one.split()}
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
    if (title := _other_title(fact)) is not None:
        return f"What it cites gives another title than {title}"
    for name in names_in(fact.text, fact.people, fact.tongue):
        if fact.translated and name.key not in fact.people:
            continue
        if name.key in fact.people and not fact.evidence.heard.has(name) and _tells_of_kin(fact):
            continue  # only who speaks knows whether "Papa" has this name
        if (other := _in_its_place(name, fact)) is not None:
            return f"What it cites says {other}, and the fact says {name.written}"
        if fact.evidence.heard.has(name) or _refers_back(name, fact):
            continue
        if name.sure and not (
            fact.is_known(name.written)
            or _is_addressed(name, fact)
            or _is_left_out(name, fact)
            or _is_full(name, fact)
        ):
            return (
                f"{name.written} does not occur in what it cites: cite the entry that names "
                f"{name.written}, or put the name right"
            )
    return None


def _tells_of_kin(fact: ProposedFact) -> bool:
    """Whether the sources call somebody "Papa" or "my sister", and the fact does not."""
    said = {word for word in fact.evidence.heard.words if depends_on_speaker(word)}
    return bool(said - {*map(bare, fact.text.split())})


_SUBJECT_FIRST = ("en", "de", "fr")
"""In these languages no verb opens a statement."""


def _in_its_place(name: Name, fact: ProposedFact) -> str | None:
    """The name that the sources have where the fact has this one, which they do not say there."""
    heard = fact.evidence.heard
    if heard.has(name):
        is_speaker = name.key in fact.people and name.key not in heard.said
        return names.mistaken(name, fact.text, heard, whole=True) if is_speaker else None
    sure = name.sure or fact.tongue in _SUBJECT_FIRST
    other = None if name.noun else names.mistaken(name, fact.text, heard, sure=sure)
    return other or (None if name.sure else names.resembling(name, heard, fact.text))


_SAID_AS = {
    Mood.QUESTION: "asks this as a question: nothing is stated yet",
    Mood.CONDITION: "says this on a condition or as a possibility: keep that in the fact",
    Mood.UNDECIDED: "leaves this open: say in the fact that it is not decided",
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
    stands = [one for one in told if not lost[id(one)]]
    stated = max(near[id(one)] for one in stands)
    said = frozenset[str]().union(*(_taken(fact, one) for one in stands))
    enough = min(2, -(-len(fact.words) // 2)) if stated else 1
    denied = mood.negates(fact.text, fact.codes)
    for one in sorted(told, key=lambda each: -near[id(each)]):
        if denied and lost[id(one)] and _denied_beside(one, told, lost):
            continue
        if lost[id(one)] in ([Mood.QUESTION], [Mood.WISH]) and _adds(fact, one, stands):
            continue
        # Of two clauses that are equally near, the fact is made of the one that adds to it.
        least = stated if _taken(fact, one) - said else stated + 1
        if lost[id(one)] == [Mood.REPORT] and len(fact.words) <= _SHORT:
            least = max(least, 1)
        else:
            least = max(least, enough)
        if lost[id(one)] and near[id(one)] >= least:
            return f"What it cites {_SAID_AS[lost[id(one)][0]]}"
    return None


_SHORT = 5
"""Words of a fact in which one word of somebody's claim tells where it comes from."""


def _taken(fact: ProposedFact, clause: Clause) -> frozenset[str]:
    return frozenset(shared(fact.words, clause.words)) | (_digits(clause.text) & _digits(fact.text))


def _adds(fact: ProposedFact, asked: Clause, stated: Sequence[Clause]) -> bool:
    """Whether a statement has words of the fact that a question or a dropped plan of it lacks."""
    known = shared(fact.words, asked.words)
    few = 2 * len(known) <= len(fact.words)
    return (few or Mood.WISH in asked.moods) and any(
        set(shared(fact.words, one.words)) - set(known)
        or (_digits(one.text) - _digits(asked.text)) & _digits(fact.text)
        for one in stated
    )


def _denied_beside(
    clause: Clause, told: Sequence[Clause], lost: Mapping[int, Sequence[Mood]]
) -> bool:
    """Whether a clause denies nothing, and another of its text does, as a plain statement."""
    return not mood.negates(clause.text, clause.codes) and any(
        (one.speaker, one.at) == (clause.speaker, clause.at)
        and not lost[id(one)]
        and mood.negates(one.text, one.codes)
        for one in told
    )


def _is_of_speaker(fact: ProposedFact) -> bool:
    first = [bare(one) for one in fact.text.split()[:2]]
    return any(part in first for one in fact.evidence.speakers for part in fold(one).split())


def _near(fact: ProposedFact, clause: Clause) -> int:
    return len(_taken(fact, clause))


def _digits(text: str) -> set[str]:
    return {re.sub(r"\D", "", one) for one in re.findall(r"\d[\d.,]*", text)} - {""}


def _lost(clause: Clause, fact: ProposedFact) -> list[Mood]:
    """The moods of a clause of which the fact has no sign."""
    kept: set[Mood] = {*Mood} - {Mood.UNDECIDED} if fact.marked else set()
    if mood.is_limited(fact.text, fact.codes) or (
        mood.is_requirement(clause.text, clause.codes) and _tells_requirement(fact)
    ):
        kept.add(Mood.CONDITION)
    if mood.intends(fact.text, fact.codes):
        kept.add(Mood.WISH)
    if fact.left_open:
        kept.add(Mood.UNDECIDED)
    return [one for one in Mood if one in clause.moods - kept]


def _tells_requirement(fact: ProposedFact) -> bool:
    return mood.needs(fact.text, fact.codes) or mood.negates(fact.text, fact.codes)


def _turned(fact: ProposedFact) -> str | None:
    if fact.translated or not fact.familiar or mood.denies(fact.text, fact.codes):
        return None
    required = any(mood.is_requirement(one.text, one.codes) for one in fact.evidence.clauses)
    if required and _tells_requirement(fact):
        return None
    if _is_denied_nearest(fact) or _has_what_is_denied(fact):
        return "What it cites says that this is not so: keep the negation"
    return None


def _is_denied_nearest(fact: ProposedFact) -> bool:
    """Whether the nearest parts of the sources have half of the fact's words, and deny them."""
    parts = fact.parts
    if not fact.words:  # "I won't be there on the 23rd": only a figure tells what it is about.
        parts = [(text, len(_digits(text) & _digits(fact.text)), one) for text, _, one in parts]
    best = max(near for _, near, _ in parts)
    if best < max(1, 0.5 * len(fact.words)):
        return False
    top = [(text, clause) for text, near, clause in parts if near == best]
    said = [word for text, clause in top for word in content(text, clause.codes)]
    rest = [one for one in fact.words if one not in shared(fact.words, said)]
    # "Not on Monday, but on Tuesday" goes on with what is not denied.
    return not any(
        not _denies_of(fact, text, clause) and shared(rest, content(text, clause.codes))
        for text, _, clause in fact.parts
        if clause.sentence == top[0][1].sentence
    ) and all(_denies_of(fact, text, one) and _states(text, one) for text, one in top)


def _has_what_is_denied(fact: ProposedFact) -> bool:
    """Whether the fact has most words of a denial, and words that nothing else in its sources has.

    "He does no cover-ups" is a small part of a fact that joins it with the days of his visit.
    """
    parts = [(text, mood.denied_in(text, one.codes), one) for text, _, one in fact.parts]
    said = [word for text, no, one in parts if no is None for word in content(text, one.codes)]
    named = {one.key for one in names_in(fact.text, fact.people, fact.tongue)}
    for text, denied, clause in parts:
        words = content(denied or "", clause.codes)
        both = shared(words, fact.words)
        enough = len(both) >= max(2, 0.6 * len(words)) and not shared(both, said)
        # "Ana doesn't want that": its verb is denied of the one whom the fact names.
        of_whom = fold(text).removesuffix(denied or "").split()
        enough = enough or (len(both) == len(words) == 1 and not named.isdisjoint(of_whom))
        # What does not come without something needs it.
        if enough and not mood.lacks(text) and _digits(denied or "") <= _digits(fact.text):
            return _states(text, clause)
    return False


def _states(text: str, clause: Clause) -> bool:
    return not mood.is_question(clause.sentence) and not mood.is_limited(text, clause.codes)


def _denies_of(fact: ProposedFact, text: str, clause: Clause) -> bool:
    """Whether a part denies something of which the fact speaks: "not today but tomorrow"."""
    denied = mood.denied_in(text, clause.codes)
    if denied is None or not denied.strip(" .,;!?"):
        return denied is not None
    words = content(denied, clause.codes)
    both = shared(words, fact.words)
    # "Not 14 frames but 12": one word that both have, and another figure, is no denial.
    return len(both) > 1 or (_digits(denied) <= _digits(fact.text) and (not words or bool(both)))


def _unrelated(fact: ProposedFact) -> str | None:
    """A fact whose words were said before, and which shares nothing with its sources."""
    sources = fact.evidence.sources
    if (
        len(fact.words) < ENOUGH
        or _is_of_speaker(fact)
        or any(languages(one.text)[:1] != (fact.tongue,) for one in sources)
    ):
        return None
    told = [word for one in sources for word in content(one.text, fact.codes)]
    others = [content(one.text, fact.codes) for one in fact.evidence.before if one not in sources]
    near, own = max(map(fact.nearness, others), default=0), fact.nearness(told)
    if near <= own or (own and (near < own + ENOUGH or 4 * near < 3 * len(fact.words))):
        return None  # It may be a paraphrase.
    return "Its words were said in another entry than it cites: cite the entry that says it"


# Whose words a fact is: the speaker that it names, and the person that it speaks of.

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
    r"(?<!\w)(?:he|she|him|her|his|hers|they|them|their|you|your|er|sie|ihm|ihn|ihr\w{0,2}|ihnen"
    r"|du|dir|dich|dein\w*|el|ella|le|les|lo|la|su|sus|te|ti|tu|il|elle|lui|leur|toi|vous|o|onu"
    r"|ona|onun|sen|sana|seni|lei|voce|hij|zij|hem|haar|je)(?!\w)|[他她你您]"
)


def _of_another(fact: ProposedFact, speaker: str | None) -> str | None:
    told = fact.evidence.speakers
    if not speaker or not told or any(_is_same(speaker, one) for one in told):
        return None
    who = " and ".join(told)
    return f"{speaker} said none of what it cites. {who} did: name {who} as the speaker"


def _is_same(one: str, other: str) -> bool:
    """Whether two names may be one person's: "Haller" and "Dr Haller"."""
    mine, theirs = set(words_of(fold(one))), set(words_of(fold(other)))
    return bool(mine and theirs) and (mine <= theirs or theirs <= mine)


def _refers_back(name: Name, fact: ProposedFact) -> bool:
    """Whether a pronoun of the sources may mean somebody who was named just before.

    Who does it must be a "he" or "she" there, which some languages leave out, and nobody is meant
    by the speaker's "I".
    """
    if not fact.evidence.before or not fact.evidence.heard_before.has(name):
        return False
    nearest = fact.evidence.clauses if fact.translated else _nearest(fact)
    pronoun = _SOMEBODY_FIRST if _is_subject(name, fact) else _SOMEBODY
    return not any(map(_is_of_oneself, nearest)) and (
        fact.tongue in _SILENT or any(pronoun.search(fold(one.sentence)) for one in nearest)
    )


_SILENT = ("es", "tr")
"""In these languages the verb alone says who does it."""


def _nearest(fact: ProposedFact) -> list[Clause]:
    near = [(fact.nearness(one.words), one) for one in fact.evidence.clauses]
    best = max((count for count, _ in near), default=0)
    return [one for count, one in near if count == best]


def _is_addressed(name: Name, fact: ProposedFact) -> bool:
    """Whether "you" of a source may be this person, who took part: "if you agree, I book it"."""
    if fold(fact.text).startswith(name.key):
        return False
    heard = (one.speaker or "" for one in fact.evidence.before if one.speaker)
    return any(_YOU.search(fold(one.text)) for one in fact.evidence.sources) and any(
        name.key in map(bare, one.split()) for one in heard
    )


_YOU = re.compile(
    r"(?<!\w)(?:you|your|yours|du|dir|dich|dein\w*|ihr|euch|eu(?:er|re)\w*|te|ti|tu|tus|vos|usted"
    r"|toi|ton|ta|tes|vous|votre|sen|sana|seni|senin|siz\w{0,3})(?!\w)|t'|[你您]"
)


def _is_full(name: Name, fact: ProposedFact) -> bool:
    """Whether it stands beside a name that the sources have alone: "Jane Austen" for "Austen"."""
    at = fact.text.find(name.written)
    around = (
        _BEFORE_NAME.search(fact.text, 0, at),
        _BEHIND_NAME.match(fact.text, at + len(name.written)),
    )
    told = fact.evidence.heard.text
    return any(
        one is not None
        and re.search(rf"(?<!\w){re.escape(one[1])}(?!\w)", told) is not None
        and re.search(rf"[A-Z]\w+ {re.escape(one[1])}(?!\w)|{re.escape(one[1])} [A-Z]", told)
        is None
        for one in around
    )


_BEFORE_NAME = re.compile(r"(?<!\w)([^\W\d_a-z][\w'\u2019-]+) $")
_BEHIND_NAME = re.compile(r" ([^\W\d_a-z][\w-]+)")

_NEAR = 6
"""So many entries before the first one cited are what was being talked of."""


def _is_left_out(name: Name, fact: ProposedFact) -> bool:
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
    nearest = _nearest(fact)
    return not any(
        one.sure and one.key not in fact.folded and one.key != name.key
        for sentence in {clause.sentence for clause in nearest}
        for one in names_in(sentence, fact.people, fact.tongue)
    ) and (is_of_speaker or not any(map(_is_of_oneself, nearest)))


def _is_of_oneself(clause: Clause) -> bool:
    folded = fold(clause.text)
    suffixed = clause.codes[:1] == ("tr",) and _MY_TURKISH.search(folded)
    ends = clause.codes[:1] == ("es",) and _I_SPANISH.search(clause.text.lower())
    return bool(_I_ANYWHERE.search(folded) or suffixed or ends)


_I_SPANISH = re.compile(
    r"(?<!\w)(?:he|voy|estoy|soy|tengo|puedo|quiero|hago|digo|\w{2,}[éí])(?!\w)"
)
"""Verbs in the first person: he visto, llamé."""
_MY_TURKISH = re.compile(r"(?<!\w)\w{2,}[aiu]m(?:[ae]|[iu]n?|[dt][ae]n?|l[ae])?(?!\w)")
"""Arabam, sirtim: my car, my back."""


def _is_subject(name: Name, fact: ProposedFact) -> bool:
    """Whether a part of the fact begins with a name, and not with what is somebody's."""
    for piece in _STATEMENTS.split(fact.text):
        folded = fold(piece).strip()
        at = folded.find(name.key)
        if at >= 0 and not _owns(name.key, piece) and len(content(folded[:at], fact.codes)) == 0:
            return True
    return False


_STATEMENTS = re.compile(
    r"[,;]|，|；|\s(?:and|und|y|et|ve|while|whereas|während|mientras|tandis que)\s", re.IGNORECASE
)


def _other_subject(fact: ProposedFact) -> str | None:
    """Why the person of whom the fact speaks is not the one of whom its sources say it."""
    if fact.translated:
        return None
    for piece in _STATEMENTS.split(fact.text):
        found = names_in(piece.strip(), fact.people, fact.tongue)
        opening = [
            one
            for one in found[:1]
            if fold(piece).strip().startswith(one.key)
            and (one.key in fact.people or one.written in fact.named)
        ]
        for subject in opening:
            if (other := _does_it(subject, piece, fact)) is not None:
                return (
                    f"What it cites says this of {other}, and the fact says it of {subject.written}"
                )
    return None


def _does_it(subject: Name, piece: str, fact: ProposedFact) -> str | None:
    """Who does it in the sources, if the fact's verb stands there behind other subjects alone."""
    told = fold(piece).strip()
    verb = _VERB.match(told, len(subject.key))
    is_cited = subject.key in map(bare, fact.evidence.speakers) and len(fact.evidence.speakers) > 1
    if verb is None or is_cited or not content(verb[1], fact.codes):
        return None
    doers = [
        clause.speaker if fold(found[1]) in _I_WORDS else bare(found[1])
        for clause in fact.evidence.clauses
        for found in _DOES.finditer(clause.text)
        if alike(fold(found[2]), verb[1])
    ]
    known = [one for one in doers if one and {*fold(one).split()} & fact.people]
    if len(known) < len(doers) or any(_is_same(one, subject.written) for one in known):
        return None
    return known[0].title() if known else None


_I_WORDS = word_set("i ich je yo ben")
_VERB = re.compile(
    r" (?:has |have |had |hat |habe? |a |ha |will |is going to |was going to )?([^\W\d_]{3,})"
)
_DOES = re.compile(
    r"(?<!\w)(I|ich|Ich|je|Je|yo|Yo|ben|Ben|[A-Z\u00c0-\u00de][^\W\d_]+)"
    r"(?:['\u2019](?:ve|s|d|ll|m))?(?: will| going to| gonna)? ([^\W\d_]{3,})"
)


def _owns(key: str, piece: str) -> bool:
    owner = re.escape(key)
    return re.search(rf"{owner}\w*['\u2019]|{owner}的", fold(piece)) is not None
