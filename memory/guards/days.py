"""Days and times of a fact that its sources do not bear out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from memory.guards import clock, dates, mood
from memory.guards.lexicon import WEEKDAY, content, fold
from memory.guards.reading import ProposedFact, in_all_digits


def other_day(fact: ProposedFact) -> str | None:
    """Why a day or a time of day of the fact does not follow from its sources."""
    if not fact.familiar:
        return None
    for named in fact.days:
        holds = dates.holds(fact.evidence.days, named) and not _is_denied(fact, named)
        if _is_open(fact, named) or (holds and not _said_of_another(fact, named)):
            continue
        # Where the sources name no day, an earlier statement may say which.
        if not fact.evidence.days.spoken and dates.holds(fact.told_before.days, named):
            continue
        same = len(fact.digits) == len(fact.text)
        shown = fact.text[named.start : named.end] if same else named.written
        return f'The fact says "{shown.strip()}", which {_days_said(fact)}'
    text = fact.digits_without_days
    for time in clock.times_in(text):
        is_range = text.endswith("from ", 0, time.start)  # "From 10 to 11" is not 10:50.
        holds = clock.holds(fact.evidence.times, time) or _is_length(fact, time)
        if not is_range and not holds:
            return f'The fact says "{time.written.strip()}", and what it cites names no such time'
    return None


_NOT = re.compile(
    r"(?<!\w)(?:not|nicht|instead of|statt|rather than)(?= (?:\w+ ){0,2}?\d|"
    rf" (?:\w+ ){{0,2}}?(?:{WEEKDAY})(?!\w))(?: (?:on|the|am|den|dem|der))* \w+"
)
"""A day that is not the one: "not the 23rd", "nicht am Montag"."""


def _is_denied(fact: ProposedFact, named: dates.Named) -> bool:
    """Whether the sources say of a day only that it is not the one, and name another."""
    readings = fact.evidence.readings
    if not any(_NOT.search(digits) for _, digits in readings):
        return False
    kept = dates.Days()
    for source, digits in readings:
        kept.join(dates.days_of(_NOT.sub(" ", digits), fact.evidence.said(source.at)))
    others = kept.spoken and not dates.holds(kept, named)
    return others and not mood.denies(fact.text, fact.codes)


def _is_length(fact: ProposedFact, time: clock.ClockTime) -> bool:
    """Whether it may be a length of time between two that the sources name: "2 h 30"."""
    gaps = clock.gaps(fact.evidence.times, (digits for _, digits in fact.evidence.readings))
    return 60.0 * time.minutes in gaps and "h" in time.written.lower().replace("uhr", "")


def _is_open(fact: ProposedFact, named: dates.Named) -> bool:
    """Whether the rules cannot tell: a feast day, or the day on which it was said."""
    days = fact.evidence.days
    if days.vague:
        return True
    weekdays = {one.weekday() for one in days.today}
    today = dates.Days(days=days.today, weekdays=weekdays, today=days.today)
    is_other_month = named.weekday is None and named.day is None and bool(days.months)
    is_today = not is_other_month and dates.holds(today, named)
    return is_today and not _said_of_another(fact, named, today=True)


def _said_of_another(fact: ProposedFact, named: dates.Named, *, today: bool = False) -> bool:
    """Whether the clause that is nearest to the fact names other days, and its day is elsewhere.

    Only clauses that share no word with the fact name its day. What names none may be said of the
    day on which it was said (`today`), and so may a fact that has the other day as well.
    """
    others = [one for one in fact.days if one != named]
    best, silent = 0, 0
    for part, near, at in _parts(fact):
        days = dates.Days()
        for digits in in_all_digits(part):
            days.join(dates.days_of(digits, fact.evidence.said(at)))
        days.days |= dates.beside(fold(part), fact.evidence.days.days)
        if dates.holds(days, named):
            if near:
                return False
        elif not days.spoken:
            silent = max(silent, near)
        elif not (today and any(dates.holds(days, one) for one in others)):
            best = max(best, near)
    # One word that two languages share, such as "test", proves no nearness.
    return best > max(silent if today else 0, 1 if fact.translated else 0)


def _parts(fact: ProposedFact) -> Iterator[tuple[str, int, str]]:
    """The clauses of the sources, how near each is, and when it was said.

    A clause of few words of its own, such as "on the 14th", belongs to its sentence. So does one
    whose day counts from another: "on 4 November, I a day later".
    """
    for one in fact.evidence.clauses:
        counted = any(map(dates.counts, in_all_digits(one.sentence)))
        whole = counted or (len(one.words) < _WORDS_OF_ITS_OWN and not fact.nearness(one.words))
        words = content(one.sentence) if whole else one.words
        yield one.sentence if whole else one.text, fact.nearness(words), one.at


_WORDS_OF_ITS_OWN = 4


def _days_said(fact: ProposedFact) -> str:
    said = sorted({source.at[:10] for source in fact.evidence.sources})
    on = " and ".join(f"{date.fromisoformat(one):%A %Y-%m-%d}" for one in said)
    return f"does not follow from what it cites, said on {on}: count from there"
