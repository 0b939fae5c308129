"""Grounding: whether a proposed fact follows from the entries that it cites. Pure.

The fact is compared with what it cites, and with nothing else. Numbers, days, times and names of
the fact must occur there or follow by rule; the person of whom it speaks is the one of whom they
speak; a question, a condition, a wish or somebody's claim makes no statement; a denial stays one.
What these rules cannot decide, such as a paraphrase or a translation, passes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, date, tzinfo
from typing import NamedTuple

from memory.guards import clock, mood, names
from memory.guards.days_and_numbers import ungrounded_day, ungrounded_number
from memory.guards.lexicon import (
    HAN,
    OF_DATES,
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
from memory.guards.numbers import Number, comparable, numbers_in
from memory.guards.reading import Clause, Evidence, ProposedFact, Source, whole
from memory.text import depends_on_speaker, regex

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
    called: Sequence[str] = (),
    zone: tzinfo = UTC,
) -> str | None:
    """Why a fact does not follow from what it cites, in a sentence; None if it may.

    Every reason but a wrong speaker is a `Doubt`.

    Args:
        text: the fact.
        speaker: who said it, as its author has it.
        cited: its sources.
        before: what was said around them, to which their pronouns may refer.
        people: everybody known by name, so that a name is seen to be one.
        known: facts of memory that were shown. Their names may say what the fact is about; a day
            or a number that what is cited leaves out may come from those of the same speaker.
        called: other names of the speakers.
        zone: the people's time zone.
    """
    evidence = Evidence(tuple(cited), zone, tuple(before), tuple(known), tuple(called))
    fact = ProposedFact(text, evidence, _known([*people, *evidence.speakers]))
    if not is_plain(text):
        return "It is a heading or an answer of a tool and no fact: write one plain sentence"
    if (why := _wrong_speaker(fact, speaker)) is not None:
        return why
    checks: tuple[Callable[[], str | None], ...] = (
        lambda: ungrounded_day(fact),
        lambda: ungrounded_number(fact),
        lambda: _ungrounded_name(fact),
        lambda: _wrong_doer(fact),
        lambda: _wrong_mood(fact),
        lambda: _denied_by_sources(fact),
        lambda: _unrelated(fact),
    )
    return next((Doubt(why) for check in checks if (why := check()) is not None), None)


def is_plain(text: str) -> bool:
    """Whether a text is neither JSON nor a heading, which state nothing."""
    return not text.rstrip().endswith((":", "\uff1a")) and _MARKUP.search(text) is None


_MARKUP = regex(r"[{\[]\s*[\"{\[]|\"\s*:\s*[\"\[{\d]|[\"\]}]\s*,\s*\"")
_NO_NAMES = word_set("dr mr mrs ms frau herr the der die das la le de del van von")


def _known(people: Collection[str]) -> frozenset[str]:
    parts = {bare(part) for one in people for part in one.split()}
    return frozenset(
        {one for one in parts if len(one) > 1 and one not in _NO_NAMES and not names.is_title(one)}
        | {fold(one) for one in people if HAN.search(one)}
    )


def _wrong_speaker(fact: ProposedFact, speaker: str | None) -> str | None:
    told = fact.evidence.speakers
    if not speaker or not told or any(_is_same(speaker, one) for one in told):
        return None
    who = " and ".join(told)
    return (
        f"{speaker} said none of what it cites, {who} did: cite the entry in which {speaker} says "
        f"it, or name {who} as the speaker"
    )


def _is_same(one: str, other: str) -> bool:
    """Whether two names may be the same person's: "Haller" and "Dr Haller"."""
    mine, theirs = set(words_of(fold(one))), set(words_of(fold(other)))
    return bool(mine and theirs) and (mine <= theirs or theirs <= mine)


def _ungrounded_name(fact: ProposedFact) -> str | None:
    for title in [] if fact.translated else _TITLE.findall(fact.text):
        if joined(fold(title)) not in fact.evidence.heard.joined:
            return f"What it cites does not name {title}"
    for name in names_in(fact.text, fact.people, fact.language):
        if fact.translated and name.key not in fact.people:
            continue
        heard = fact.evidence.heard
        if name.key in fact.people and heard.has_short_form(name.key, fact.people):
            continue
        if name.key in fact.people and not heard.has(name) and _tells_of_kin(fact):
            continue  # Only who speaks knows whether "Papa" has this name.
        if (other := _in_its_place(name, fact)) is not None:
            return f"What it cites says {other}, and the fact says {name.written}"
        if heard.has(name):
            continue
        if name.sure and not (fact.is_known(name.written) or _is_left_out(name, fact)):
            return (
                f"{name.written} does not occur in what it cites: cite the entry that names "
                f"{name.written}, or put the name right"
            )
    return None


_ARTICLE = r"(?:(?i:the|der|die|das|den|dem|le|la|les|el|los|las|il|lo|gli) |[Ll]['\u2019])?"
_TITLE = regex(rf"(?<!\d)[«“„\"]\s?{_ARTICLE}((?:[^\s«»“”„\"]+\s?){{1,5}})[»”“\"]")
"""A quotation of a few words, without its article."""


def _wrong_doer(fact: ProposedFact) -> str | None:
    """Why the person whom the fact names first did not do it: all sources name another.

    "I beat Hennie in 41 moves" does not become "Hennie beat Aurelio in 41 moves".
    """
    words = words_of(fact.folded)
    mine = [bare(one) for one in words if not one.endswith("n't")]  # "doesn't" is no deed
    named = names_in(fact.text, fact.people, fact.language) if not fact.translated else []
    who = next((one.key for one in named if one.key in mine[:2] and _is_doer(one, fact)), None)
    if who is None:
        return None
    behind = mine[mine.index(who) + 1 :][:3]
    deed = next((one for one in behind if content(one, fact.codes)), who)
    told = [doers for one in fact.evidence.clauses for doers in _doers_of(deed, one, fact.people)]
    if deed in fact.people or not told or any(not one or who in one for one in told):
        return None
    own = rf"(?<!\w){re.escape(who)}"
    if re.search(rf"{own}(?:[,!:]| {_IS} (?:\w+ )?{re.escape(deed)}(?!\w))", fact.folded):
        return None  # "Leo, I did it", or "Leo was invited": others did it.
    together = re.compile(rf"{_WITH} {re.escape(who)}(?!\w)|{own} (?:and|und|et|y) ")
    heard, whole = [fold(one.text) for one in fact.evidence.sources], fact.folded.strip(" .!")
    if any(together.search(one) or whole in one for one in heard):
        return None
    beside = re.compile(rf"{_BESIDE} {told[0][-1]}(?!\w)")  # "Faye is replaced by Mae".
    if beside.search(fact.folded):
        return None
    return f"What it cites says of {told[0][-1].title()} what the fact says of {who.title()}"


def _is_doer(name: Name, fact: ProposedFact) -> bool:
    """Whether somebody is called so, or the sources write the word like a name."""
    written = re.search(rf"(?<!\w){re.escape(name.written)}(?!\w)", fact.evidence.heard.text)
    is_name = name.key in fact.people or (written is not None and not name.noun)
    return is_name and name.key == fold(name.written)


def _doers_of(deed: str, clause: Clause, people: Collection[str]) -> list[list[str]]:
    """The people up to three words before each word like `deed`; the speaker is "I" there."""
    speaker = words_of(fold(clause.speaker or ""))
    words = words_of(fold(clause.text))
    said = [bare(one) for one in words]
    # "Anselmo's things are packed" does not say that Anselmo packed them.
    doers = (one if one.endswith("'s") else bare(one) for one in words)
    who = [[one] if one in people else speaker if _I.match(one) else [] for one in doers]
    places = [n for n, one in enumerate(said) if len(one) > 2 and alike(one, deed)]
    return [[name for each in who[max(0, n - 3) : n] for name in each] for n in places]


_IS = r"(?:is|are|was|were|has been|wird|wurde|ist|war)"
_WITH = r"(?<!\w)(?:with|and|like|mit|und|wie|avec|et|comme|con|y|como)"
_BESIDE = r"(?<!\w)(?:by|von|par|por|with|mit|avec|con)"
_I = regex(r"(?:i(?:m|ve|ll|d)?|ich|je|yo|ben)$|j(?:'|ai$)")


def _tells_of_kin(fact: ProposedFact) -> bool:
    """Whether the sources say "Papa" where the fact has a name, and nowhere "I"."""
    told = [fold(one.sentence) for one in _nearest(fact)]
    said = {word for one in told for word in words_of(one) if depends_on_speaker(word)}
    return bool(said - {*map(bare, fact.text.split())}) and not any(map(_I_ANYWHERE.search, told))


_SUBJECT_FIRST = ("en", "de", "fr")
"""Languages in which no verb opens a statement."""


def _in_its_place(name: Name, fact: ProposedFact) -> str | None:
    """The name that the sources have in the place of this name of the fact; None if they agree."""
    heard = fact.evidence.heard
    if heard.has(name):
        is_speaker = name.key in fact.people and name.key not in heard.said
        return names.mistaken(name, fact.text, heard, whole=True) if is_speaker else None
    sure = name.sure or fact.language in _SUBJECT_FIRST
    other = None if name.noun else names.mistaken(name, fact.text, heard, sure=sure)
    return other or (None if name.sure else names.resembling(name, heard, fact.text))


_NEAR = 6
"""Entries before the first cited entry that tell what was being talked of."""


def _is_left_out(name: Name, fact: ProposedFact) -> bool:
    """Whether the sources leave out a name that everybody knows from what was said before.

    "The editor gives us a week" may become a week for "Nela's manuscript", of which somebody spoke
    just before. Who does it is "he" or "she" there, and nobody is meant by the speaker's "I".
    """
    told = [fold(one.sentence) for one in _nearest(fact)]
    if any(map(_I_ANYWHERE.search, told)) and not _opens_with_speaker(fact):
        return False
    if fact.folded.startswith(name.key) and "'" not in fold(name.written):
        return fact.evidence.heard_before.has(name) and any(map(_SOMEBODY.search, told))
    near = HeardNames(f"{one.speaker or ''}: {one.text}" for one in fact.evidence.before[-_NEAR:])
    return near.has(name) or fact.is_known(name.written, least=1)


def _nearest(fact: ProposedFact) -> list[Clause]:
    near = [(fact.nearness(one.words), one) for one in fact.evidence.clauses]
    best = max((count for count, _ in near), default=0)
    return [one for count, one in near if count == best]


_I_ANYWHERE = regex(
    r"(?<!\w)(?:i(?:'(?:m|ve|ll|d))?|me|my|ich|mein\w*|mir|mich|yo|mi|mis|je|mon|ma|mes|moi|ben"
    r"|bana|beni|benim)(?!\w)|(?<!\w)[jm]'|我(?!们)"
)
_SOMEBODY = regex(
    r"(?<!\w)(?:he|she|him|her|his|hers|they|them|their|er|sie|ihm|ihn|ihr\w{0,2}|ihnen|ella|ellas"
    r"|ellos|elle|elles|ils|lui|leur|o|onu|ona|onun)(?!\w)|[他她]"
)


def _opens_with_speaker(fact: ProposedFact) -> bool:
    first = [bare(one) for one in fact.text.split()[:2]]
    return any(part in first for one in fact.evidence.speakers for part in fold(one).split())


_SAID_AS = {
    Mood.QUESTION: "asks this as a question: nothing is stated yet",
    Mood.CONDITION: "says this on a condition, as a possibility or a wish: keep that in the fact",
    Mood.REPORT: "passes this on as somebody's claim: say in the fact whose claim it is",
}


def _wrong_mood(fact: ProposedFact) -> str | None:
    """A question, a condition, a wish or a claim that the fact makes a statement."""
    if fact.marked:
        return None
    told = [one for one in fact.evidence.clauses if one.words or _digits(one.text)]
    told = told or fact.evidence.clauses
    if _opens_with_speaker(fact):  # What is said of others is no matter of one's own words.
        told = [one._replace(moods=one.moods - {Mood.REPORT}) for one in told]
    plain = [one for one in told if not one.moods]
    stated = max((len(_taken(fact, one)) for one in plain), default=0)
    least = max(stated + 1, min(2, -(-len(fact.words) // 2))) if stated else 1
    for one in sorted(told, key=lambda each: -len(_taken(fact, each))):
        if one.moods and (not plain or len(_taken(fact, one)) >= least):
            return f"What it cites {_SAID_AS[next(each for each in Mood if each in one.moods)]}"
    return None


def _taken(fact: ProposedFact, clause: Clause) -> frozenset[str]:
    return frozenset(shared(fact.words, clause.words)) | (_digits(clause.text) & _digits(fact.text))


def _digits(text: str) -> set[str]:
    return {re.sub(r"\D", "", one) for one in re.findall(r"\d[\d.,]*", text)} - {""}


def _denied_by_sources(fact: ProposedFact) -> str | None:
    """Why a fact states what its sources only deny; None if it does not.

    It has most words of a denial, or the nearest parts of the sources are all denials.
    """
    if fact.translated or not fact.familiar or mood.denies(fact.text, fact.codes):
        return None
    if _is_handed_over(fact):
        return None
    mine = _digits(fact.text)
    parts = [
        (near + len(mine & _digits(text)), one, mood.denied_in(text, one.codes), text)
        for text, near, one in fact.parts
    ]
    nearest = max(near for near, _, _, _ in parts)
    said = [word for _, one, no, text in parts if no is None for word in content(text, one.codes)]
    top, instead = [], ""
    for near, clause, denied, text in parts:
        words = content(denied or "", clause.codes)
        both = shared(words, fact.words_but_reasons)
        plain = denied is not None and not clause.moods
        # "In the hall, not in the church" names what it denies by itself.
        contrasts = instead == clause.sentence and mood.opens_with_denial(text, clause.codes)
        least = len(words) if contrasts else 2
        most = len(both) >= max(1, least, 0.6 * len(words)) and not shared(both, said)
        told = content(text, clause.codes)
        other = denied is None and bool(told) and not shared(told[-1:], fact.words)
        instead = clause.sentence if other else ""
        if plain and most and not mood.negates(denied or "", clause.codes):
            return _DENIED
        # "Not 14 frames but 12": one word that both have, and another figure, is no denial.
        figures = _digits(denied or "") <= mine
        of_it = plain and (len(both) > 1 or (figures and bool(both or not words)))
        top += [of_it] if near == nearest else []
    if all(top) and nearest >= max(1, 0.5 * len(fact.words)) and not shared(fact.words, said):
        return _DENIED
    return None


def _is_handed_over(fact: ProposedFact) -> bool:
    """Whether somebody else of the fact does what a source denies: "I don't, Ben does it"."""
    mine = set(map(bare, words_of(fact.folded)))
    return any(
        not mood.negates(one.text, one.codes) and _IT.search(fold(one.text)) and others & mine
        for one in fact.evidence.clauses
        if (others := fact.people & {*map(bare, words_of(fold(one.text)))})
        and others.isdisjoint(words_of(fold(one.speaker or "")))
    )


_IT = regex(r"(?<!\w)(?:it|das|es|lo|la|le|onu|het|dat)(?!\w)")
_DENIED = "What it cites says that this is not so: keep the negation"


def _unrelated(fact: ProposedFact) -> str | None:
    """A fact whose words were said before, and which shares nothing with its sources."""
    sources = fact.evidence.sources
    own = fact.nearness(word for one in sources for word in content(one.text, fact.codes))
    if (
        len(fact.words) < ENOUGH
        or (own and len({*fact.words}) < own + ENOUGH)  # no other entry can have so many more
        or _opens_with_speaker(fact)
        or any(languages(one.text)[:1] != (fact.language,) for one in sources)
    ):
        return None
    others = [content(one.text, fact.codes) for one in fact.evidence.before if one not in sources]
    near = max(map(fact.nearness, others), default=0)
    if near <= own or (own and (near < own + ENOUGH or 4 * near < 3 * len(fact.words))):
        return None  # It may be a paraphrase.
    if any(_is_among(one, fact.evidence.numbers) for one in numbers_in(fact.digits_without_days)):
        return None  # "It is 3,200": what it is was said before.
    return "Its words were said in another entry than it cites: cite the entry that says it"


# What a newer statement leaves of an older one. In doubt it leaves nothing.


class _Told(NamedTuple):
    """Content words (with names, without words of dates), numbers, days and names of a text."""

    words: tuple[str, ...] = ()
    numbers: tuple[Number, ...] = ()
    days: frozenset[date] = frozenset()
    names: frozenset[str] = frozenset()

    def besides(self, other: _Told) -> _Told:
        """What the other one does not tell."""
        known = shared(self.words, other.words)
        return _Told(
            tuple(one for one in self.words if one not in known),
            tuple(one for one in self.numbers if not _is_among(one, other.numbers)),
            self.days - other.days,
            self.names - other.names,
        )

    def meets(self, other: _Told) -> bool:
        """Whether both tell one thing."""
        both = self.days & other.days or self.names & other.names
        numbers = any(_is_among(one, other.numbers) for one in self.numbers)
        return bool(both) or numbers or bool(shared(self.words, other.words))


_NONE = _Told()


def is_translated(text: str, source: str, called: Collection[str] = ()) -> bool:
    """Whether a text is in another language than its source: they share but names (`called`)."""
    codes, people = (languages(text), languages(source)), _known(called)
    both = shared([one for one in content(text) if one not in people], content(source))
    return all(codes) and not both and {*codes[0]}.isdisjoint(codes[1])


def not_left(text: str, old: Source, new: Source, called: Collection[str] = ()) -> str | None:
    """Why `text`, a part of an old statement, does not stay true beside a new one; None if it may.

    Only the parts of the old one with most words of the new one are affected. If the new one has
    other numbers, days or names there, it replaces these, and likewise other words; if it has no
    such figures, it replaces everything that it does not repeat.
    `called`: the names of what both are about.
    """
    evidence, own = Evidence((old,)), _known([one.speaker for one in (old, new) if one.speaker])
    people, translated = _known(called) | own, is_translated(text, old.text, called)
    codes = tuple(code for one in (old.text, new.text, text) for code in languages(one))

    def told(said: str, at: str = old.at) -> _Told:
        fact = ProposedFact(said, evidence, people)
        words = content(_NOW.sub(" ", fold(said)), codes)
        words = tuple(one for one in words if one not in own | OF_DATES)
        named = {one.key for one in names_in(said, people, fact.language) if one.sure}
        days = frozenset(Evidence((Source(said, None, at),)).days.days)
        return _Told(words, tuple(whole(numbers_in(fact.digits))), days, frozenset(named - own))

    mine, was, now = told(text), told(old.text), told(new.text, new.at)
    parts = [part for one in evidence.clauses for part in _JOINS.split(one.text)]
    near = {part: {*shared(now.words, content(part, codes))} for part in parts}
    # Most parts share the name of what both are about.
    most = max((len(words - now.names), len(words)) for words in near.values())
    touched = [part for part in parts if (len(near[part] - now.names), len(near[part])) == most]
    fell, added = _replaced([told(part) for part in touched], now, was), mine.besides(now)
    taken = [part for part in parts if told(part).meets(added)] or parts
    named = [told(part).names - fell.names for part in taken]
    if was.besides(mine) == _NONE:
        return "that is all of it"
    if not all(_is_counted_in(one, was.numbers, translated=translated) for one in mine.numbers):
        return "its numbers are others, or those of something else"
    if not mine.names <= was.names or not all(one & mine.names for one in named if one):
        return "it tells of somebody or something else"
    if mine.meets(fell):
        return "that is what has changed"
    if added == _NONE:
        return "the newer fact says so, too"
    if mood.negates(text, codes) not in [mood.negates(one, codes) for one in taken]:
        return "one of both denies it"
    return None


_NOW = regex(rf"(?<!\w)(?:{clock.NOW}|instead|stattdessen)(?!\w)|现在|目前|如今")
_JOINS = regex(r"\s(?:and|und|y|e|et|ve)\s")


def _replaced(touched: Sequence[_Told], now: _Told, was: _Told) -> _Told:
    """What a new statement (`now`) replaces of the parts that it touches of an old one (`was`)."""
    parts, new = [part.besides(now) for part in touched], now.besides(was)
    gone = _Told(
        tuple(one for part in parts for one in part.words),
        tuple(one for part in parts for one in part.numbers),
        frozenset(one for part in parts for one in part.days),
        frozenset(one for part in parts for one in part.names),
    )
    numbers = dict[Number, None]()
    for one in new.numbers:
        kin = [each for each in gone.numbers if _is_of_a_kind(one, each)]
        kin = kin or [each for each in gone.numbers if _is_bare(one) or _is_bare(each)]
        numbers |= dict.fromkeys(kin)
    figures = _Told(
        (),
        tuple(numbers),
        gone.days if new.days else frozenset(),
        gone.names if new.names else frozenset(),
    )
    if figures == _NONE:
        return gone
    of_them = [_plain(part) for part in parts if part.meets(figures)] if _plain(new) else []
    return figures._replace(words=tuple(one for words in of_them for one in words))


def _plain(told: _Told) -> list[str]:
    """Its words, but names and what is counted."""
    counted = [*told.names, *(one.noun for one in told.numbers if one.noun)]
    known = shared(told.words, counted)
    return [one for one in told.words if one not in known]


def _is_among(number: Number, others: Sequence[Number]) -> bool:
    return any(number.readings & one.readings for one in others)


def _is_counted_in(number: Number, others: Sequence[Number], *, translated: bool) -> bool:
    """Whether others have the number, of the same things; a noun may be translated."""
    same = [one for one in others if number.readings & one.readings]
    return any(
        _is_of_a_kind(number, one)
        or (one.unit == number.unit and (translated or not (one.noun and number.noun)))
        or not (number.unit or number.noun)
        for one in same
    )


def _is_of_a_kind(one: Number, other: Number) -> bool:
    """Whether two numbers have units of one dimension, or count the same things."""
    if one.unit or other.unit:
        return bool(one.unit and other.unit) and comparable(one, other.unit)
    return bool(one.noun and other.noun) and alike(one.noun, other.noun)


def _is_bare(number: Number) -> bool:
    return not (number.unit or number.noun)
