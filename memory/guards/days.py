"""Days and times of a fact that its sources do not bear out. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import date, timedelta

from memory.guards import clock, dates, mood
from memory.guards.lexicon import DAY_AFTER, MONTH, WEEKDAY, content, fold, is_feast
from memory.guards.mood import sentences
from memory.guards.reading import ProposedFact, Source, in_all_digits


def other_day(fact: ProposedFact) -> str | None:
    """Why a day or a time of day of the fact does not follow from its sources."""
    if not fact.familiar:
        return None
    for named in fact.days:
        if named.swapped and not dates.holds(fact.evidence.days, named):
            continue
        holds = dates.holds(fact.evidence.days, named)
        replaced = holds and _is_replaced(fact, named)
        if _is_open(fact, named) or (holds and not replaced and not _said_of_another(fact, named)):
            continue
        if _is_left_out(fact) and dates.holds(fact.told_before.days, named):
            continue
        same = len(fact.digits) == len(fact.text)
        shown = fact.text[named.start : named.end] if same else named.written
        if not replaced and (_as_before(fact, shown) or _by_its_number(fact, named)):
            continue
        return f'The fact says "{shown.strip()}", which {_days_said(fact)}'
    for time in clock.times_in(fact.digits_without_days):
        if not clock.holds(fact.evidence.times, time) and not _as_before(fact, time.written):
            return f'The fact says "{time.written.strip()}", and what it cites names no such time'
    return None


def _replaced(digits: str, said: Collection[date]) -> Iterator[tuple[dates.Days, dates.Days]]:
    """The days that a sentence says are not meant, or no longer, each with the days that are.

    "It moves from Friday to Sunday", "on the 24th, not on the 17th".
    """
    for pattern in _REPLACED:
        for found in pattern.finditer(digits):
            if pattern is _REPLACED[0] and not _MOVES.search(digits):
                continue
            rest = f"{digits[: found.start(1)]} ; {digits[found.end(1) :]}"
            # With its preposition: "del 17" is a day, and "17" alone a number.
            left = digits[found.start() : found.end(1)]
            old, new = dates.days_of(left, said), dates.days_of(rest, said)
            if old.spoken and new.spoken:
                yield old, new


_MOVES = re.compile(
    r"mov|postpon|shift|chang|push|brought|bring|switch|resched|put (?:off|back)|delay|verschob"
    r"|verleg|verlegt|wechsel|vorgezog|cambi|pasa|paso|mueve|movi|traslad|adelant|retras|aplaz|deplac"
    r"|repouss|report|avanc|decal|ertele|kayd|alind|aldi|spost|rinvi|adia|antecip|verplaats"
)
_REPLACED = (
    re.compile(
        r"(?<!\w)(?:from|von|vom|del?|du|da|van) (.{3,26}?) (?:to|till|auf|al?|au|naar|para)(?!\w)"
    ),
    re.compile(
        r"(?<!\w)(?:not|instead of|rather than|nicht|statt|anstatt|no|en vez del?|en lugar del?|pas"
        r"|au lieu d[eu]|non|invece d\w+|niet|nao|em vez d\w)"
        r" ((?:on |am |el |le |il |a )?[^.,;:!?]{3,26})"
    ),
    re.compile(r"(?<!\w)((?:\w+ )?\w+) (?:degil|yerine)(?!\w)"),
    re.compile(r"(?:[从由]|不是|而非)(.{2,9}?)(?=[改挪推提延调移到至，,]|$)"),
)


def _is_open(fact: ProposedFact, named: dates.Named) -> bool:
    """Whether the rules cannot tell: a feast day, or the day on which it was said."""
    days = fact.evidence.days
    if days.vague or is_feast(fact.digits):
        return True
    if named.weekday is not None:
        today = {one.weekday() for one in days.today}
        return named.weekday in today and not days.weekdays
    if dates.holds(dates.Days(days=days.today, today=days.today), named):
        if named.day is None:
            return not days.months
        return not _said_of_another(fact, named, today=True)
    eve = dates.Days(days={one - timedelta(1) for one in days.today})
    return bool(_NIGHT.search(fact.digits)) and dates.holds(eve, named) and not days.spoken


_NIGHT = re.compile(r"(?<!\w)(?:night|nacht|noche|nuit|gece\w*|notte|noite)(?!\w)|夜")
"""A night begins on the day before."""


def _is_left_out(fact: ProposedFact) -> bool:
    """Whether the sources name no day, so that an earlier statement may say which."""
    return not fact.evidence.days.spoken


def _is_replaced(fact: ProposedFact, named: dates.Named) -> bool:
    """Whether a source says that it is not this day, or no longer, and the fact names no other."""
    plain = _TAKES_PLACE.sub(" ", fact.text)
    if _NO_LONGER.search(fact.digits) or mood.denies(plain, fact.codes):
        return False
    for source, digits in fact.evidence.readings:
        for _, sentence in sentences(digits):
            for old, new in _replaced(sentence, fact.evidence.said(source.at)):
                if dates.holds(old, named) and not any(dates.holds(new, one) for one in fact.days):
                    return True
    return False


def _by_its_number(fact: ProposedFact, named: dates.Named) -> bool:
    """Whether a source names the day of the month alone: "the 12th", months ahead as well."""
    if named.day is None:
        return False
    day = rf"(?:the|am|el|le|den) {named.day}(?:st|nd|rd|th)?\.?(?![\d:.,/]*\d)"
    said = re.compile(rf"(?<!\w){day}|(?<!\d){named.day}(?:st|nd|rd|th|号|日)(?!\w)")
    return any(said.search(fold(one.text)) for one in fact.evidence.sources)


def _said_of_another(fact: ProposedFact, named: dates.Named, *, today: bool = False) -> bool:
    """Whether the clause that is nearest to the fact names other days, and its day is elsewhere.

    Only clauses that share no word with the fact name its day. What names none may be said of the
    day on which it was said (`today`), and so may a fact that has the other day as well.
    """
    said = [fold(one.text) for one in fact.evidence.sources]
    if any(_CORRECTS.search(one) or DAY_AFTER.search(one) for one in said):
        return False
    figures = {*re.findall(r"\d+", fact.digits_without_days)}
    others = [one for one in fact.days if one != named]
    best, silent = 0, 0
    told = dict.fromkeys((one.sentence, one.at, one.speaker) for one in fact.evidence.clauses)
    for sentence, at, speaker in told:
        asked = mood.is_question(sentence)
        if asked and not fact.evidence.answers(Source(sentence, speaker, at)):
            continue  # It proposes a day, and names none.
        days = dates.Days()
        for digits in in_all_digits(sentence):
            days.join(dates.days_of(digits, fact.evidence.said(at)))
        near = fact.nearness(content(_DAY_NAMES.sub(" ", fold(sentence))))
        near += len(figures & {*re.findall(r"\d+", sentence)})
        if not days.spoken:
            silent = max(silent, near)
        elif dates.holds(days, named):
            if near or fact.nearness(content(sentence)):
                return False
        elif not (today and any(dates.holds(days, one) for one in others)):
            best = max(best, near)
    # One word that two languages share, such as "test", proves no nearness.
    return best > max(silent if today else 0, 1 if fact.translated else 0)


def _as_before(fact: ProposedFact, written: str) -> bool:
    """Whether a source says "same hour", and a known fact says which."""
    told = fold(" ".join(one.text for one in fact.evidence.sources))
    return bool(_SAME.search(told)) and fact.is_known(written)


_DAY_NAMES = re.compile(rf"(?<![^\W\d_])(?:{MONTH}|{WEEKDAY})(?![^\W\d_])")
_SAME = re.compile(
    r"(?<!\w)(?:same|selben?|gleichen?|misma|meme|ayni)(?!\w)|同|原来|照旧", re.IGNORECASE
)
"""Points to a time that was said before."""

_CORRECTS = re.compile(
    r"(?<!\w)(?:ah+|eh|er|uh|i mean|no wait|wait|scrap that|correction|quatsch|nee|nein|ach|moment"
    r"|quiero decir|perdon|digo|pardon|euh|enfin|non|yani|yok|sey|hayir|sorry)(?!\w)|不对|哦不|说错"
)
"""Who corrects a day says two; any of them may be meant."""


def _days_said(fact: ProposedFact) -> str:
    said = sorted({source.at[:10] for source in fact.evidence.sources})
    on = " and ".join(f"{date.fromisoformat(one):%A %Y-%m-%d}" for one in said)
    return f"does not follow from what it cites, said on {on}: count from there"


_TAKES_PLACE = re.compile(r"\bstatt(?=\W*$|find|ge)")
_NO_LONGER = re.compile(
    r"(?<!\w)(?:from|instead|was|were|had|before|previous\w*|former\w*|originally|put off|put back"
    r"|bisher|vorher|fruher|war|waren|ursprunglich|antes|era|avant|etait|onceki|eskiden|once"
    r"|yerine)(?!\w)|从|原|之前"
)
