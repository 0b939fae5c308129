"""A fact and the sources that it cites, as the grounding rules read them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from difflib import SequenceMatcher
from functools import cached_property
from typing import NamedTuple

from memory.guards import clock, dates, mood, names, numbers
from memory.guards.lexicon import (
    MONTH,
    READ,
    WEEKDAY,
    alike,
    content,
    fold,
    is_familiar,
    languages,
    sentences_of,
    shared,
    word_set,
    words_of,
)
from memory.guards.mood import Mood
from memory.guards.numbers import Number
from memory.text import regex


class Source(NamedTuple):
    """A text that a fact cites, with its speaker and the time at which it was said (ISO)."""

    text: str
    speaker: str | None
    at: str


class Clause(NamedTuple):
    """A part of a sentence of a source."""

    text: str
    speaker: str | None
    codes: tuple[str, ...]
    moods: frozenset[Mood]
    words: tuple[str, ...]
    sentence: str
    at: str


_CLAUSES = regex(
    r"\s(?=so (?-i:[A-Z]|he|she|they|we|i\b))|\s(?=and (?:i|we|he|she|they)\b|und (?:ich|wir|er)\b"
    r"|y yo\b|et (?:je|j'|on|nous|il|elle)\b)|[;\u2014()，；：]|(?<!\d)\u2013"
    r"|[\u2013,:](?!\d)|\s-\s|\u2192"
    r"|\s\b(?=(?:but|although|though|because|while|aber|weil|obwohl|pero|porque|aunque|mais"
    r"|ama|fakat"
    r"|cunku|çünkü)\b)|(?=但是?|因为|不过)",
    re.IGNORECASE,
)
"""Where a sentence is cut into clauses: before "and I" or "so she", at dashes, brackets and colons
that stand in no number, and before but, because and though."""

JOINERS = regex(
    r"\s(?:and|und|y|e|et|ve|en|so|then|daher|also|deshalb|donc|entonces)\s|所以|就(?=不|没)",
    re.IGNORECASE,
)
"""Words that join two statements in one clause."""

_POSSESSIVE = regex("['\u2019]s?$")


@dataclass(frozen=True)
class Evidence:
    """The sources of a fact."""

    sources: tuple[Source, ...]
    zone: tzinfo = UTC
    """The people's time zone, in which "tomorrow" counts, too."""
    before: tuple[Source, ...] = ()
    """What was said before, to which a pronoun of a source may refer."""
    known: tuple[Source, ...] = ()
    """Facts that memory holds and that were shown: a new fact may call its subject as they do."""
    called: tuple[str, ...] = ()
    """Other names of the speakers: a fact may put one of them for "I"."""

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """The languages of the sources."""
        return tuple(dict.fromkeys(code for one in self.sources for code in languages(one.text)))

    @cached_property
    def familiar(self) -> bool:
        """Whether the rules know the languages of all sources."""
        return all(is_familiar(one.text) for one in self.sources)

    @cached_property
    def speakers(self) -> list[str]:
        """The speakers, each once."""
        return list(dict.fromkeys(one.speaker for one in self.sources if one.speaker))

    @cached_property
    def heard(self) -> names.HeardNames:
        """What names may come from."""
        return names.HeardNames((one.text for one in self.sources), [*self.speakers, *self.called])

    @cached_property
    def heard_before(self) -> names.HeardNames:
        """What pronouns may refer to."""
        return names.HeardNames(
            [*(one.text for one in self.before), *(one.speaker or "" for one in self.before)]
        )

    @cached_property
    def readings(self) -> list[tuple[Source, str]]:
        """The sources with digits for number words, in each language that they may be in."""
        return [(one, digits) for one in self.sources for digits in in_all_digits(one.text)]

    @cached_property
    def numbers(self) -> list[Number]:
        """All numbers of the sources; what two readings of a source have in common, once."""
        found: list[Number] = []
        for source in dict.fromkeys(self.sources):
            told: list[Number] = []
            for each in (digits for one, digits in self.readings if one == source):
                known = [(one.readings, one.unit) for one in told]
                more = numbers.numbers_in(each)
                told += [one for one in more if (one.readings, one.unit) not in known]
            found += told
        return found

    @cached_property
    def told(self) -> list[str]:
        """The sentences with digits for number words, in each language that they may be in."""
        told = (sentence for source in self.sources for sentence in sentences_of(source.text))
        return [digits for text in told for digits in in_all_digits(text)]

    @cached_property
    def times(self) -> list[clock.ClockTime]:
        """All times of day that the sources may name."""
        found: list[clock.ClockTime] = []
        for source, digits in self.readings:
            english = languages(source.text)[:1] == ("en",)
            found += clock.possible_times(digits, english=english)
        return found

    @cached_property
    def days(self) -> dates.Days:
        """All days that the sources may name."""
        made = dates.Days()
        for source, digits in self.readings:
            made.join(dates.days_of(digits, self.said(source.at)))
        return made

    def said(self, at: str) -> set[date]:
        """The date of a time stamp, in its own time zone and in the people's."""
        moment = datetime.fromisoformat(at)
        if moment.tzinfo is None:
            return {moment.date()}
        return {moment.date(), moment.astimezone(self.zone).date()}

    @cached_property
    def dated(self) -> list[tuple[str | None, str, list[dates.Days]]]:
        """The sentences, as they were said: who said each, and what days it may name."""
        return [
            (
                source.speaker,
                text,
                [dates.days_of(one, self.said(source.at)) for one in in_all_digits(text)],
            )
            for source in sorted(self.sources, key=lambda each: each.at)
            for text in sentences_of(source.text)
        ]

    @cached_property
    def clauses(self) -> list[Clause]:
        """The clauses of the sources, in order."""
        return [
            clause
            for source in self.sources
            for text in sentences_of(source.text)
            for clause in _clauses(text, source, answers=self.answers(source))
        ]

    def answers(self, source: Source) -> list[Source]:
        """Somebody else's later words that are cited, too: they may answer its questions."""
        return [one for one in self.sources if one.at > source.at and one.speaker != source.speaker]


def whole(found: Sequence[Number]) -> list[Number]:
    """The numbers that are no part of another, such as the 12 of 4h12."""
    return [
        one
        for one in found
        if one.written
        and not any(
            other is not one
            and other.start <= one.start
            and one.end <= other.end
            and other.end - other.start > one.end - one.start
            for other in found
        )
    ]


def in_all_digits(text: str) -> list[str]:
    """A text with digits for number words, in each language that it may be in."""
    # A German message may end in an English sentence.
    each = (code for one in sentences_of(text) for code in languages(one))
    codes = dict.fromkeys((*languages(text), *each)) or READ
    text = _MAY.sub("can", text)
    return list(dict.fromkeys(numbers.in_digits(text, code) for code in codes))


_AGREES = regex(
    r"\W*(?:yes|yep|yeah|yup|sure|ok(?:ay)?|please do|go (?:ahead|for it)|do (?:it|that)|agreed"
    r"|done|deal|perfect|of course|fine|works for me|sounds good|no problem|ja|jo|klar|gern\w*"
    r"|passt|einverstanden|mach (?:das|es)|geht klar|si|vale|claro|de acuerdo|hecho|perfecto|oui"
    r"|d'accord|volontiers|parfait|entendu|evet|tamam|olur|tabii?)(?!\w)|[是对好行嗯]|可以|没问题|同意"
)
"""An answer that begins so accepts what was proposed."""


def agrees(text: str) -> bool:
    """Whether an answer accepts what was proposed."""
    return _AGREES.match(fold(text)) is not None


def consents(text: str) -> bool:
    """Whether a text agrees without condition or doubt: "Fine" or "Sure, Monday at 10"."""
    folded = fold(text)
    found = _AGREES.match(folded)
    behind = folded[found.end() :].lstrip() if found else "?"
    return behind[:1] in ("", *",.;!，。！") and not (
        mood.negates(text, ()) or _BUT.search(folded) or "?" in text
    )


_BUT = regex(
    r"(?<!\w)(?:but|if|unless|aber|wenn|falls|pero|si no|mais|ama|fakat|eger)(?!\w)|但|如果|不"
)
"""Words that take back or restrict an agreement."""


def _clauses(sentence: str, source: Source, *, answers: list[Source]) -> Iterable[Clause]:
    """The clauses of a sentence. Its condition, question or claim applies to all of them.

    An answer settles a question and a condition. What follows a quotation is quoted, too.
    """
    sentence = mood.without_request(sentence)
    whole = languages(source.text)
    codes = tuple(code for code in languages(sentence) if code in whole) or whole
    general = _moods_of_sentence(sentence, codes)
    parts = [part.strip() for part in _CLAUSES.split(sentence) if part and part.strip(" .!?")]
    conditional = Mood.CONDITION in general and len(parts) > 1
    certain = _certain(parts, sentence, codes) if conditional else []
    asked, agreed = Mood.QUESTION in general, any(agrees(one.text) for one in answers)
    is_settled = agreed or (asked and bool(answers))
    general -= {Mood.QUESTION, Mood.CONDITION} if answers else set()
    quote, stated = mood.quotes_from(sentence, codes), _stated(parts) if asked else []
    for part in parts or [sentence]:
        moods = general - ({Mood.CONDITION} if part in certain else set())
        moods -= {Mood.QUESTION} if part in stated else set()
        if mood.is_possibility(part, codes) and not is_settled:
            moods |= {Mood.CONDITION}
        if sentence.find(part) + len(part) > quote:
            moods |= {Mood.REPORT}
        words = content(part, codes)
        yield Clause(part, source.speaker, codes, moods, words, sentence, source.at)


def _stated(parts: list[str]) -> list[str]:
    """The statements in front of a question: "I've no strops, could I borrow yours?"."""
    asking = next((n for n, part in enumerate(parts) if _ASKS.match(fold(part))), 0)
    return [part for part in parts[:asking] if len(part.split()) >= _WORDS_STATED]


_WORDS_STATED = 3
_ASKS = regex(
    r"(?:(?:and|so|but|und|aber|y|pero|et|mais) )?(?:(?:could|can|would|will|may|shall)"
    r" (?:i|you|we|any|some)\w*|kannst du|kann ich|konnt\w+ (?:du|ihr|ich)|puede[sn]?|podri\w+"
    r"|peux-tu|pourr\w+)(?!\w)"
)


def _certain(parts: list[str], sentence: str, codes: tuple[str, ...]) -> list[str]:
    """The parts of a conditional sentence that do not depend on the condition."""
    own = [mood.is_conditional(part, codes) for part in parts]
    place = own.index(True) if any(own) else 0
    bracketed = [one for one in parts if f"({one})" in sentence]
    # "I take eight, the room is big enough if you move it": what stands before is certain.
    behind = place > 0 and mood.has_condition_behind(parts[place], codes)
    return parts[: place if behind else 0] + bracketed


def _moods_of_sentence(text: str, codes: tuple[str, ...]) -> frozenset[Mood]:
    found = set()
    if mood.is_question(text):
        found.add(Mood.QUESTION)
    if mood.is_conditional(text, codes):
        found.add(Mood.CONDITION)
    if mood.is_claim(text, codes):
        found.add(Mood.REPORT)
    return frozenset(found)


_REASON = regex(
    r"(?<!\w)(?:because|since|weil|denn|porque|parce que|perche|çünkü|cunku)(?!\w)|因为", re.I
)
_YEAR = regex(r"(?<![\w.,€$£-])(?:19|20)\d\d(?![\w€]|[.,:]\d| ?(?:eur|tl|usd|kg|m\b))")
"""A year, and no amount or measure."""
_MAY = regex(
    r"(?<!in )(?<!of )(?<!by )(?<!on )(?<!mid )(?<!from )(?<!until )(?<!till )(?<!since )"
    r"(?<!early )(?<!late )(?<!next )(?<!last )(?<!this )(?<!\d )(?<![.-])(?<!th )\bmay\b"
    r"(?!['.] | \d)|\bmay(?= (?:not|be|have|only) )|\bMay(?= I )"
)
""""May" as the verb, not the month: no preposition or number before it. Read as "can"."""


@dataclass(frozen=True)
class ProposedFact:
    """A proposed fact."""

    text: str
    evidence: Evidence
    people: frozenset[str] = frozenset()
    """The words of people's names, folded."""

    @cached_property
    def folded(self) -> str:
        """The text, folded."""
        return fold(self.text)

    def is_known(self, written: str, least: int = 2) -> bool:
        """Whether a known fact that shares `least` words with this one has this name or time.

        "The professor fetches it on Thursday" may become "Dr Kranz fetches her cargo bike", where
        memory holds that Dr Kranz left a cargo bike.
        """
        part = re.escape(_POSSESSIVE.sub("", fold(written).strip(" .,;:")))
        said = re.compile(rf"(?<!\w){part}(?!\d)")
        return any(said.search(fold(one.text)) for one, near in self._known if near >= least)

    @cached_property
    def _known(self) -> list[tuple[Source, int]]:
        return [(one, self.nearness(content(one.text))) for one in self.evidence.known]

    @cached_property
    def told_before(self) -> Evidence:
        """What the speakers of the sources said before, as known facts about the same have it.

        A day or a number that a source leaves out may come from there. What others said bears
        nothing out: else anybody's claim would come back as the speaker's own word.
        """
        return self.known_from_speakers(least=2)

    def known_from_speakers(self, least: int) -> Evidence:
        """The known facts of the sources' speakers that share at least `least` words with it."""
        own = self.evidence.speakers
        told = [one for one, near in self._known if near >= least and one.speaker in own]
        return Evidence(tuple(told), self.evidence.zone)

    @cached_property
    def language(self) -> str | None:
        """Its language, as far as it is clear from it and its sources."""
        likely, spoken = languages(self.text), self.evidence.languages
        both = [code for code in spoken if code in likely]
        least = 1 if not likely else max(2, 0.6 * sum(len(one) > 3 for one in content(self.text)))
        if spoken and not both and self._echoes >= least:
            return spoken[0]
        if len(likely) > 1 and both:
            return both[0]
        return likely[0] if likely else None

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """Its language in a tuple; empty if unknown."""
        return (self.language,) if self.language else ()

    @cached_property
    def _echoes(self) -> int:
        """How many of its long words the sources have."""
        said = [word for one in self.evidence.sources for word in content(one.text)]
        return len(shared([one for one in content(self.text) if len(one) > 3], said))

    @cached_property
    def translated(self) -> bool:
        """Whether some source is, or may be, in another language than the fact."""
        return self.language is None or any(
            self.language not in languages(one.text) for one in self.evidence.sources
        )

    @cached_property
    def familiar(self) -> bool:
        """Whether the rules know its language and those of all sources."""
        return self.language in (*READ, "zh", None) and self.evidence.familiar

    @cached_property
    def digits(self) -> str:
        """The text with digits for its number words; in English "may" is no month."""
        text = _MAY.sub("can", self.text) if self.language == "en" else self.text
        return numbers.in_digits(text, self.language, strict=True)

    @cached_property
    def days(self) -> list[dates.Named]:
        """The dates and weekdays that it names."""
        named = [
            one
            for one in dates.named_in(self.digits)
            if one.written not in self.people and not self._is_end(one)
        ]
        return [*named, *dates.weekdays_in(self.digits, strict=True)]

    def _is_end(self, named: dates.Named) -> bool:
        """Whether it is a number of the sources and a full stop: "version 3.11."."""
        return named.end == len(self.digits) and any(
            numbers.readings_of(named.written.strip(".")) & one.readings
            for one in self.evidence.numbers
            if re.fullmatch(r"\d+\.\d+\.", named.written)
        )

    @cached_property
    def digits_without_days(self) -> str:
        """The digits with blanks for the dates that it names."""
        text = self.digits
        for named in dates.named_in(text):
            if self._is_end(named):
                continue
            if not named.swapped or dates.holds(self.evidence.days, named):
                text = text[: named.start] + " " * (named.end - named.start) + text[named.end :]
        said = self.evidence.days
        known = {one.day for one in said.days}
        now = {one.year for one in said.today}
        years = {*said.years, *now, *(one.year for one in said.days)}
        if said.months or said.vague:
            years |= {one + 1 for one in now}  # It may be the next one.

        def blank(found: re.Match[str]) -> str:
            day = int(next(filter(None, found.groups())))
            return " " * len(found.group()) if day in known else found.group()

        def blank_year(found: re.Match[str]) -> str:
            return "    " if int(found.group()) in years else found.group()

        return _YEAR.sub(blank_year, dates.ALONE.sub(blank, text))

    @cached_property
    def marked(self) -> bool:
        """Whether it says that something is asked, possible, wished or somebody's claim."""
        return mood.is_marked(self.text, self.codes)

    @cached_property
    def words(self) -> list[str]:
        """Its content words without the names of its speakers, each once."""
        codes = self.codes or None
        named = self.people
        told = named | {part for one in self.evidence.speakers for part in words_of(fold(one))}
        kept = [
            one for one in content(self.text, codes) if not any(alike(one, each) for each in told)
        ]
        return list(dict.fromkeys(kept))

    @cached_property
    def words_but_reasons(self) -> list[str]:
        """Its content words in front of "because" and the like."""
        said = content(_REASON.split(self.text, maxsplit=1)[0], self.codes or None)
        return [one for one in self.words if one in said]

    @cached_property
    def parts(self) -> list[tuple[str, int, Clause]]:
        """The parts of the clauses of its sources, with the number of words that each shares."""
        return [
            (text, self.nearness(content(text, one.codes)), one)
            for one in self.evidence.clauses
            for text in JOINERS.split(one.text)
        ]

    def nearness(self, words: Iterable[str]) -> int:
        """How many of its content words are among `words`."""
        return len(shared(self.words, [*words]))


def is_of_another(new: str, old: str) -> bool:
    """Whether two statements in mostly the same words are about two things, each with its value.

    Before what is new, one or two words stand in place of others: "the oven for the bread corner
    now comes on Monday" says nothing of the oven for the pizza corner, which comes on Friday.
    Where nothing else differs, these words are what is new.
    """
    new_words, old_words = (_READ_WORD.findall(in_all_digits(text)[0]) for text in (new, old))
    ends = len(new_words)
    now_at = next((at for at, one in enumerate(new_words) if at and one in _FROM_NOW), ends)
    said = [one for one in new_words if one not in _FROM_NOW]
    steps = SequenceMatcher(None, old_words, said, autojunk=False).get_opcodes()
    changed = [step for step in steps if step[0] != "equal"]
    for _, start, end, here, there in changed[:-1]:  # The last change is what is new.
        both = old_words[start:end], said[here:there]
        in_front = there <= now_at and there < len(said) and max(map(len, both)) <= _SLOT
        if in_front and all(_names_a_thing(each, now_at >= ends - 1) for each in both):
            return True
    return False


_READ_WORD = regex(r"[^\W_]+")
_SLOT = 2
"""Most words that stand in place of others and name another thing."""
_FROM_NOW = word_set(
    "now jetzt nun ahora maintenant desormais adesso ora nu agora artik simdi sada"
)
"""Words in front of what is new."""
_DAY_OR_NUMBER = regex(rf"\d.*|{WEEKDAY}|{MONTH}")


def _names_a_thing(words: Sequence[str], may_be_new: bool) -> bool:
    """Whether words tell what something is; `may_be_new`: a day or a number may be what is new."""
    if any(map(_DAY_OR_NUMBER.fullmatch, words)):
        return not may_be_new
    return bool(content(" ".join(words)))
