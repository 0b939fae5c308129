"""Which days, times and numbers of a fact do not follow from its sources. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from itertools import pairwise

from memory.guards import clock, dates, mood, numbers
from memory.guards.lexicon import MONTH, WEEKDAY, content, fold, languages, sentences_of
from memory.guards.reading import Evidence, ProposedFact, Source, in_all_digits, whole
from memory.text import local, regex, shown_day


def ungrounded_day(fact: ProposedFact) -> str | None:
    """Why a day or a time of day of the fact does not follow from its sources."""
    if not fact.familiar:
        return None
    days = fact.evidence.days
    for named in fact.days:
        denied = _is_denied(fact, named) or _is_withdrawn(fact, named)
        follows = (
            ((_is_open(fact, named) or dates.holds(days, named)) and not denied)
            or _is_corrected(fact, named)
            # Where the sources name no day, an earlier statement may say which.
            or (not days.spoken and dates.holds(fact.told_before.days, named))
        )
        if follows and not _is_elsewhere(fact, named):
            continue
        if denied or not _follows_from_before(fact, named):
            return f'The fact says "{_as_written(named, fact)}", which {_days_said(fact)}'
    text = fact.digits_without_days
    is_timed = any(clock.times_in(digits) for _, digits in fact.evidence.readings)
    same = any(_SAME_TIME.search(fold(one.text)) for one in fact.evidence.sources)
    for time in clock.times_in(text) if is_timed or not same else ():
        is_range = text.endswith("from ", 0, time.start)  # "From 10 to 11" is not 10:50.
        known = is_range or clock.holds(fact.evidence.times, time) or _is_counted(time, fact)
        if not known:
            return f'The fact says "{time.written.strip()}", and what it cites names no such time'
    return None


def _follows_from_before(fact: ProposedFact, named: dates.Named) -> bool:
    return dates.holds(_counted_from_before(fact), named) or _begins_a_night(fact, named)


def _counted_from_before(fact: ProposedFact) -> dates.Days:
    """The days to which sources point back or from which they count: "that day", "a week later".

    They were named by another source, a known fact, or what the speaker said just before.
    """
    made, evidence = dates.Days(), fact.evidence
    # "The band is booked for the 12th", where the wedding is on 12 September.
    written = {day.day for day in evidence.days.days}
    known = fact.known_from_speakers(least=1).days
    made.days |= {one for one in known.days - known.today if one.day in written}
    for source in evidence.sources:
        that_day = _THAT_DAY.search(fold(source.text))
        if not (that_day or _COUNTS.search(fold(source.text))):
            continue
        said = [one for one in evidence.before if one.speaker == source.speaker]
        others = [one for one in evidence.sources if one is not source]
        named = [Evidence((one,), evidence.zone).days for one in (*said[-1:], *others)]
        starts = {day for one in [*named, fact.told_before.days] if one.spoken for day in one.days}
        made.days |= starts if that_day else set()  # A week later it is another day.
        for digits in in_all_digits(source.text):
            made.join(dates.days_of(digits, starts))
    made.weekdays |= {one.weekday() for one in made.days}
    return made


def _begins_a_night(fact: ProposedFact, named: dates.Named) -> bool:
    """Whether it is the evening of "the night of 21 to 22 April", told on the 22nd."""
    if named.day is None or _NIGHT.search(fact.folded) is None:
        return False
    ends = [one for one in fact.days if one.day == named.day + 1 and one.month == named.month]
    return any(_is_open(fact, one) or dates.holds(fact.evidence.days, one) for one in ends)


_NIGHT = regex(r"(?<!\w)(?:night|nacht|noche|nuit|notte|noite|gece)(?!\w)")
_THAT_DAY = regex(
    r"(?<!\w)(?:(?:that|the same|same) day|an (?:dem|diesem) tag|am (?:selben|gleichen) tag"
    r"|(?:ese|el mismo|mismo) dia|(?:ce jour-la|le meme jour|meme jour)|(?:o|ayni) gun|quel giorno"
    r"|(?:lo )?stesso giorno|nesse dia|(?:no )?mesmo dia|(?:die|dezelfde) dag)(?!\w)|当天|那天"
)
_COUNTS = regex(
    r"(?<!\w)(?:days?|weeks?|tage?|wochen?|dias?|semanas?|jours?|semaines?|gun|hafta|giorn[oi]"
    rf"|settiman[ae]|dag(?:en)?|we[ek]{{2}}(?:en)?) (?:{clock.BEFORE}|{clock.AFTER}|dopo|prima"
    r"|depois|later|eerder)(?!\w)"
)


def _is_counted(time: clock.ClockTime, fact: ProposedFact) -> bool:
    """Whether a source was said then, or says how long before or after a time it is."""
    evidence = fact.evidence
    if not any(clock.times_in(digits) for _, digits in evidence.readings):
        said = [
            now.hour * 60 + now.minute
            for source in evidence.sources
            for now in (datetime.fromisoformat(source.at), local(source.at, evidence.zone))
        ]
        return any(abs(one - time.minutes) <= _MOMENTS for one in said)
    shifts = {
        sign * (int(one[1]) if one[1] else minutes)
        for told in evidence.told
        for pattern, minutes in _SPANS
        for one in pattern.finditer(told)
        for sign, word in ((-1, _BEFORE), (1, _AFTER))
        if word.search(told)
    }
    counted = [
        one._replace(minutes=(one.minutes + shift) % 1440)
        for one in evidence.times
        for shift in shifts
    ]
    return clock.holds(counted, time)


_MOMENTS = 5
"""Minutes between an event and the message that tells of it, at most."""
_BEFORE = regex(rf"(?<!\w)(?:{clock.BEFORE})(?!\w)")
_AFTER = regex(rf"(?<!\w)(?:{clock.AFTER}|late|tarde|en retard|gec)(?!\w)")
_SPANS = tuple(
    (regex(pattern), minutes)
    for pattern, minutes in (
        (r"(?<!\w)()(?:half an hour|halbe stunde|media hora|demi-heure|yarim saat)(?!\w)", 30),
        (r"(?<!\w)()(?:quarter of an hour|viertelstunde|cuarto de hora|quart d'heure)", 15),
        (r"(?<!\w)()(?:an hour|eine stunde|una hora|une heure|bir saat)(?!\w)", 60),
        (r"(?<!\d)(\d{1,2}) ?(?:min|minutes?|minuten|minutos|dakika)(?!\w)", 0),
    )
)
"""Lengths of time, in minutes, by which a source may say when something is."""

_SAME_TIME = regex(
    r"(?<!\w)(?:(?:same|usual) (?:time|hour)|(?:gleiche[rn]?|selbe[rn]?|ubliche[rn]?) (?:uhr)?zeit"
    r"|misma hora|hora de siempre|meme heure|ayni saat\w*|stessa ora|mesma hora"
    r"|(?:the )?rest (?:stays|remains|is the same)|everything else (?:stays|remains|is the same)"
    r"|(?:der rest|alles andere) bleibt|(?:el )?resto (?:sigue |queda )?igual|o resto fica"
    r"|le reste ne change pas|il resto (?:resta|rimane)|de rest blijft)(?!\w)"
    r"|同一时间|时间不变|老时间"
)
"""Only an earlier statement tells which time that is."""


def _as_written(named: dates.Named, fact: ProposedFact) -> str:
    """A day as the text of the fact has it, if it can be found there."""
    written = named.written.strip(" .,;:")
    at = fact.folded.find(written) if len(fact.folded) == len(fact.text) else -1
    return written if at < 0 else fact.text[at : at + len(written)]


_DAY = (
    rf"(?:\d+(?:st|nd|rd|th)?|{WEEKDAY}|today|tonight|tomorrow|tmrw|heute|morgen|hoy|manana"
    r"|aujourd'hui|demain|oggi|domani|(?:this|next) week|(?:diese|nachste) woche"
    r"|(?:esta|proxima) semana|semana que viene|cette semaine|semaine prochaine)(?!\w)"
)
_CORRECTION = (
    "sorry|wait|i mean|make (?:it|that)|correction|oops|ich meine|halt|quatsch|korrektur|perdon"
    "|digo|quiero decir|mejor dicho|pardon|je veux dire|enfin|scusa|anzi|desculpa|pardon yok"
)
"""With one of these a speaker takes back the day or the number just before."""
_NOT = regex(
    r"(?<!\w)(?:not|nicht|no|non|pas|instead of|rather than|statt|en vez de|au lieu de)"
    rf" (?:(?:on|the|am|den|dem|der|el|la|le) )*{_DAY}"
    rf"|(?<!\w){_DAY}(?=[,.]? (?:(?:no|nein|non)(?:,|,? (?:{_CORRECTION}))|{_CORRECTION}|doch),?"
    rf" (?:the |am |el |le )?{_DAY})"
)
"""A day that is not the one, or was a slip: "not the 4th", "Wednesday no sorry Thursday"."""


def _is_denied(fact: ProposedFact, named: dates.Named) -> bool:
    """Whether the sources only deny this day, and name another."""
    kept, evidence, said = dates.Days(), fact.evidence, False
    asked = _answered_no(evidence.sources)
    for source in evidence.sources if not mood.negates(fact.text, fact.codes) else ():
        for digits in in_all_digits(asked.get(source, source.text)):
            kept.join(dates.days_of(_NOT.sub(" ", digits), evidence.said(source.at)))
            said = said or source in asked or _NOT.search(digits) is not None
    return said and bool(kept.spoken or kept.days) and not dates.holds(kept, named)


def _answered_no(sources: Sequence[Source]) -> dict[Source, str]:
    """Sources that end with a question which the next one denies, each without that question.

    "Is it still on Friday?" is followed by "No, on Sunday."
    """
    told = sorted(sources, key=lambda each: each.at)
    return {
        one: one.text.rstrip().removesuffix(sentences_of(one.text)[-1])
        for one, answer in pairwise(told)
        if one.text.endswith("?") and mood.opens_with_denial(answer.text, languages(answer.text))
    }


def _is_open(fact: ProposedFact, named: dates.Named) -> bool:
    """Whether the rules cannot decide: the sources name a feast, or it was said that day."""
    days = fact.evidence.days
    if days.vague:
        return True
    weekdays = {one.weekday() for one in days.today}
    today = dates.Days(days=days.today, weekdays=weekdays, today=days.today)
    is_other_month = named.weekday is None and named.day is None and bool(days.months)
    silent = mood.negates(fact.text, fact.codes) or any(
        not dates.days_of(one, days.today).spoken for one in fact.evidence.told
    )
    return silent and not is_other_month and dates.holds(today, named)


def _is_elsewhere(fact: ProposedFact, named: dates.Named) -> bool:
    """Whether the sentences nearest to the fact all name days, and none that the fact names.

    A sentence that calls something off may name the day that no longer holds.
    """
    if named.day is named.weekday is None or mood.denies(fact.text, fact.codes):
        return False
    if fact.translated:  # Which sentence is nearest cannot be told.
        return False
    told = [(fact.nearness(content(text)), text, days) for _, text, days in fact.evidence.dated]
    best = max((near for near, _, _ in told), default=0)
    nearest = [(text, days) for near, text, days in told if near == best]
    if best == 0 or any(
        mood.negates(text, ()) or _IS_OFF.search(fold(text)) for text, _ in nearest
    ):
        return False
    # "We eat a day earlier", and the fact tells the other day as a reason: "a wedding on the 18th".
    beside = {int(next(filter(None, one.groups()))) for one in dates.ALONE.finditer(fact.digits)}
    if any(day.day in beside for _, days in nearest for one in days for day in one.days):
        return False
    return not _is_corrected(fact, named) and all(
        any(one.spoken for one in days)
        and not any(one.vague for one in days)
        and not _hold(days, fact.days)
        for _, days in nearest
    )


def _is_corrected(fact: ProposedFact, named: dates.Named) -> bool:
    """Whether a short sentence behind another day names this one.

    "It is on Friday." is followed by "No, Sunday.", or counted from: "a day later, sorry".
    """
    before = set[date]()
    for _, text, days in fact.evidence.dated:
        if before and _is_short(text):
            counted = [dates.days_of(one, before) for one in in_all_digits(text)]
            if _hold([*days, *counted], [named]):
                return True
        before |= {day for one in days if one.spoken for day in one.days - one.today}
    return False


def _is_withdrawn(fact: ProposedFact, named: dates.Named) -> bool:
    """Whether its speaker took the day back: "on 5 November" is followed by "sorry, 6 November"."""
    told, is_back = set[str | None](), False
    for speaker, text, days in fact.evidence.dated:
        if _hold(days, [named]):
            told.add(speaker)
            is_back = False
        elif speaker in told and any(one.spoken for one in days):
            is_back = is_back or (_is_short(text) and bool(_CORRECTS.search(fold(text))))
    return is_back


def _hold(read: Sequence[dates.Days], named: Sequence[dates.Named]) -> bool:
    return any(dates.holds(one, day) for one in read for day in named)


def _is_short(text: str) -> bool:
    """Whether a sentence names days, neither denies nor asks, and has no matter of its own."""
    words = [
        one
        for one in _OF_DAYS.sub(" ", fold(text)).split()
        if not any(letter.isdigit() for letter in one)
    ]
    if "?" in text or _REFUSES.match(fold(text)):
        return False
    return not content(" ".join(words))


_REFUSES = regex(r"\W*(?:(?:and|but|und|aber) )?(?:not|nicht|no (?:el|la|on)|pas|never|nie)(?!\w)")


_CORRECTING = (
    f"{_CORRECTION}|mean|meant|instead|rather|actually|entschuldigung|meine?|meinte|doch|sondern"
    "|lieber|stattdessen|nein|quise decir|mejor|desole|plutot|yok|duzeltme|daha dogrusu"
)
_CORRECTS = regex(rf"(?<!\w)(?:{_CORRECTING}|no|non)(?!\w)|不对|不是|应该是|更正")
_OF_DAYS = regex(
    rf"(?<!\w)(?:{WEEKDAY}|{MONTH}|(?:days?|tag|dia|jour|gun) (?:later|spater|despues|apres|sonra)"
    rf"|still|uhr|ach|oh|{_CORRECTING})(?!\w)|不对|不是|应该是|更正"
)
"""Words of dates and of their corrections."""


_IS_OFF = regex(
    r"(?<!\w)(?:(?:is|are|was|'s) off|cancel\w*|instead|abgesagt|entfallt|fallt aus|statt\w*"
    r"|en vez|en lugar|se cancela|cancelad\w|annule\w*|au lieu|iptal|yerine)(?!\w)|取消|改到|而是"
)
"""It is said that something does not take place on its day."""


def _days_said(fact: ProposedFact) -> str:
    zone = fact.evidence.zone
    said = sorted({shown_day(source.at, zone)[4:] for source in fact.evidence.sources})
    on = " and ".join(f"{date.fromisoformat(one):%A %Y-%m-%d}" for one in said)
    return f"does not follow from what it cites, said on {on}: count from there"


def ungrounded_number(fact: ProposedFact) -> str | None:
    """Why a number of the fact neither stands in its sources nor follows from them."""
    text = fact.digits_without_days
    mine = whole(numbers.numbers_in(_without_names(_without_times(text), fact)))
    for number in mine:
        theirs = fact.evidence.numbers
        if not (
            numbers.stands_in(number, _of_its_kind(number, theirs))
            or _is_computed(number, fact)
            or _is_listed(number, fact)
            or _is_from_before(number, fact)
            or _is_decade(number, fact)
        ):
            return _number_said(number, theirs)
        if _is_taken_back(number, fact):
            return f"What it cites corrects {number.written}: the fact needs the corrected number"
        if len(mine) == 1 and (_is_of_another_part(number, fact) or _is_left_behind(number, fact)):
            return _number_said(number, theirs)
    return None


def _is_taken_back(number: numbers.Number, fact: ProposedFact) -> bool:
    """Whether the sources have it only before its correction: "12 chairs, sorry, 15"."""
    readings = [digits for _, digits in fact.evidence.readings]
    slips = [one["number"] for digits in readings for one in _SLIP.finditer(digits)]
    back = {value for one in slips for value in numbers.readings_of(one.strip(".,"))}
    kept = [one for digits in readings for one in numbers.numbers_in(_SLIP.sub(" ", digits))]
    return bool(number.readings & back) and not numbers.stands_in(number, kept)


_SLIP = regex(
    r"(?<![\w.,:/])(?P<name>[^\W\d]+ )?(?P<number>\d[\d.,]*)(?P<unit>(?: [^\W\d]+){0,3})"
    r"(?:,| -| \u2013| \.\.\.|\u2026)? (?:(?:no|non|nein|ah|ach|eh|euh|uh|er),? )?"
    rf"(?:{_CORRECTION}),? "
    r"(?=(?P=name)?\d[\d.,]*(?:[,.;!]|$| (?:for|fur|por|para|pour|per|to|in|at|on|um|am|a)\b"
    r"|(?P=unit)(?!\w)))"
)
"""A number that its speaker corrects in the same breath."""


def _is_decade(number: numbers.Number, fact: ProposedFact) -> bool:
    """Whether the fact has the century for a decade: "the 80s" are the 1980s."""
    told = {
        int(one) for source, _ in fact.evidence.readings for one in _DECADE.findall(source.text)
    }
    return any(
        1910 <= one <= 2090 and one % 100 in told and re.search(rf"{one:.0f}{_TENS}", fact.text)
        for one in number.readings
    )


_TENS = r"(?:(?:s|er|'?l[ae]r)(?!\w)|年代)"
_DECADE = regex(rf"(?<!his )(?<!her )(?<!my )(?<!your )(?<!their )(?<!\d)['\u2019]?(\d0){_TENS}")


def _is_of_another_part(number: numbers.Number, fact: ProposedFact) -> bool:
    """Whether the part of a source that is nearest to the fact has another number, and only parts
    that share no word with the fact have this one. The nearest has half of the fact's words.

    "Deposit 150 paid, rest 410" does not become "The deposit paid was 410".
    """
    if fact.translated or len(fact.words) < _WORDS_OF_PART:
        return False
    texts = [(near, numbers.in_digits(text, fact.language)) for text, near, _ in fact.parts]
    parts = [(near, text, numbers.numbers_in(text)) for near, text in texts]
    best = max(near for near, _, _ in parts)
    same = [found for near, _, found in parts if near == best]
    far = [
        near == 0 and _REPLACES.search(text) is None
        for near, text, found in parts
        if numbers.stands_in(number, found)
    ]
    return (
        best >= max(_WORDS_OF_PART, len(fact.words) / 2)
        and bool(far)
        and all(far)
        and all(any(numbers.are_near(one, number) for one in found) for found in same)
    )


_WORDS_OF_PART = 2
"""Fewest words that tell which part of a source a fact repeats."""


_REPLACES = regex(
    r"(?<!\w)(?:make (?:it|that|them)|mach\w{0,2}|sagen wir|disons|mettons|facciamo|diciamo|hagamos"
    r"|digamos|que sean?|facamos|olsun) (?:(?:doch|lieber|nur) )?\d[\d.,]*"
    r"(?: (?:draus|daraus|then|please|instead|bitte|entonces|alors|allora|entao))?\W*$"
)
"""It puts another number in place of one said before: "make it nine"."""


def _is_left_behind(number: numbers.Number, fact: ProposedFact) -> bool:
    """Whether the sources give it as what changed, and the fact as what holds.

    "Raised from 250 to 280" does not become "It is 250 now".
    """
    if _NOW.search(fact.folded) is None:
        return False
    near = [(count, text) for text, count, _ in fact.parts]
    best = max(count for count, _ in near)
    told = [digits for count, text in near if count == best for digits in in_all_digits(text)]
    changes = [one for text in told if _CHANGES.search(text) for one in _CHANGE.finditer(text)]
    given = (next(filter(None, one.groups())).strip(".,") for one in changes)
    return any(number.readings & numbers.readings_of(one) for one in given)


_AMOUNT = r"(\d[\d.,]*)(?: ?[^\W\d]+| ?[€$£%])?"
_CHANGE = regex(
    rf"(?:from|von|de|du|desde) {_AMOUNT} (?:up |down )?(?:to|auf|a|hasta) \d"
    r"|(\d[\d.,]*)'?[dt][ae]n \d|从 ?(\d[\d.,]*)[^\d\s]{0,4}到"
)
"""An amount and the one that followed it."""
_CHANGES = regex(
    r"(?<!\w)(?:rais|rais|rose|went|grew|fell|drop|cut|increas|chang|up |down |erhoh|st[ei]{1,2}g"
    r"|sank|senk|sub[ei]|baj|aument|augment|pass|mont|baiss|cik|dus|indir|yuksel)|[涨降升改加减]"
)
_NOW = regex(rf"(?<!\w)(?:{clock.NOW})(?!\w)|现在|目前|如今")


def _without_times(text: str) -> str:
    for time in clock.times_in(text):
        text = text[: time.start] + " " * (time.end - time.start) + text[time.end :]
    return text


_NAME = regex(r"(?<![\w.,])(?:[^\W\d_]{1,24}\d+\w*|\d{1,3}[a-f](?!\w))")
"""A name with a number, such as lukas88 or 4B."""


def _without_names(text: str, fact: ProposedFact) -> str:
    """The text with blanks for such names of the sources. Others may be a stranger's message."""
    told = {*re.split(r"[^\w]+", fact.evidence.heard.folded)}
    return _NAME.sub(lambda one: " " if one.group() in told else one.group(), text)


def _of_its_kind(
    number: numbers.Number, theirs: Sequence[numbers.Number]
) -> Sequence[numbers.Number]:
    """The numbers that may count the same as `number`; all numbers if none surely does."""
    if not any(numbers.count_alike(one, number) for one in theirs):
        return theirs
    both = number.unit is not None
    return [
        one
        for one in theirs
        if not one.noun or (both and one.unit) or numbers.count_alike(one, number)
    ]


def _is_from_before(number: numbers.Number, fact: ProposedFact) -> bool:
    """Whether the number is from an earlier statement of its speaker, and no source counts so."""
    told = fact.told_before.numbers
    return numbers.stands_in(number, told) and not any(
        numbers.count_alike(one, number) for one in fact.evidence.numbers
    )


def _is_computed(number: numbers.Number, fact: ProposedFact) -> bool:
    """Whether the number follows from numbers of the sources, or the rules cannot tell.

    It may be a sum or a difference of numbers of one sentence, half of a number, or a product or a
    quotient of two; a small product needs a word of rates. What looks like a slip of a cited number
    is no product, and a sum or a half only of numbers that count the same.
    """
    evidence, is_share = fact.evidence, number.unit is not None and number.unit[0] == "share"
    if not fact.familiar:
        return True
    alike_ = [one for one in evidence.numbers if numbers.count_alike(one, number)]
    is_slip = any(numbers.is_slip(number, one) for one in alike_)
    texts = [digits for _, digits in evidence.readings]
    lasts = number.unit is not None and number.unit[0] == "time"  # from 10:00 to 18:00: 8 hours
    told_in = [one if lasts else _SCORE.sub(" ", _without_times(one)) for one in evidence.told]
    if _REMAINS.search(fact.folded):  # Of what one entry has, another takes some.
        told_in.append(" ".join(told_in))
    made = set[float]()
    for told in (whole(numbers.numbers_in(one)) for one in told_in):
        # Only percentages add up to one.
        same = [one for one in told if one.unit == number.unit or not is_share]
        same = [one for one in same if lasts or not one.is_ordinal]
        same = [one for one in same if numbers.count_alike(one, number)] if is_slip else same
        made |= numbers.sums(same, number.unit)
    if any(map(_HALF.search, texts)):
        halved = alike_ if is_slip else _of_its_kind(number, evidence.numbers)
        made |= {numbers.rounded(value / 2) for one in halved for value in one.bases()}
        made |= {50.0} if is_share else set()
        units = [numbers.unit_of(word) for one in texts for word in _HALF_A.findall(one)]
        made |= {one[1] / 2 for one in units if one and number.unit and one[0] == number.unit[0]}
    rated = max(number.readings) > _LARGE or any(map(_RATED.search, [fact.digits, *texts]))
    if rated and not is_slip:
        made |= numbers.products(evidence.numbers, number.unit)
    for found in ([*_TIMES.finditer(text)] for text in texts):
        both = [float(one.replace(",", ".")) for each in found for one in each.groups() if one]
        each_ = [numbers.rounded(a * b) for a, b in zip(both[::2], both[1::2], strict=True)]
        beside = {value for one in alike_ for value in one.readings}.difference(both)
        made |= {*each_, sum(each_)} | {sum(each_) + one for one in beside if each_}
    if lasts and _APART.search(fact.folded):
        made |= {numbers.rounded(one) for one in _spans(fact)}
    return bool((number.readings | number.bases()) & made)


def _spans(fact: ProposedFact) -> set[float]:
    """Seconds between any two times, or days, of the sources."""
    evidence = fact.evidence
    minutes = {one.minutes for one in evidence.times}
    days = {one.toordinal() for one in evidence.days.days}
    return {60.0 * abs(one - other) for one in minutes for other in minutes} | {
        86_400.0 * abs(one - other) for one in days for other in days
    }


_APART = regex(
    rf"(?<!\w)(?:{clock.BEFORE}|{clock.AFTER}|between|apart|zwischen|vor|nach|entre|ara\w*)(?!\w)"
    r"|之前|之后|相隔|间隔"
)
_REMAINS = regex(
    r"(?<!\w)(?:remain\w*|left|ubrig\w*|bleib\w*|qued\w*|rest\w*|kal(?:ir|di|iyor)\w*)(?!\w)|剩"
)
_EACH = (
    r"(?= ?(?:€|eur|euros?|dollars?|pounds?|lira|tl|cents?|ct|kg|g|l|litres?|liter|litros)(?!\w))"
)
_TIMES = regex(
    r"(?<![\d.,])(\d+(?:[.,]\d{1,2})?) ?(?:[x×@] ?|[^\W\d]+ (?:@|at|a|je|zu je|de a) ?)"
    rf"(?:[£€$] ?(\d+(?:[.,]\d{{1,2}})?)|(\d+(?:[.,]\d{{1,2}})?){_EACH})"
)
"""So many at so much each."""


_SCORE = regex(r"(?<![\d.,:/-])\d{1,2} ?[-:/] ?\d{1,2}(?![\d:/-]|[.,]\d)")
_LARGE = 50
"""A product or quotient above this is no accident, even without a word of rates."""
_HALF = regex(
    r"(?<!\w)(?:half(?! past)|halb\w*|halfte|mitad|(?<!y )medi[oa]|moitie|(?<!et )demi\w*"
    r"|yari\w*)(?!\w)|半"
)
_HALF_A = regex(r"(?<!\w)(?:half an?|halbe[nsr]?|medi[oa]|demi)[ -]([a-z]+)")
_RATED = regex(
    r"(?<!\w)(?:per|each|apiece|je|pro|cada|par|chacune?|chaque|tanesi|tane|every|(?<!\d )times|mal"
    r"|stuck|por|adet|kisi basi)(?!\w)|(?<=\w) a (?=\d[\d.,]* ?(?:€|eur|kg|g|l|m|cm|km|$|[.,;]))"
    r"|(?<=\d) ?[x×] ?[£€$]?(?=\d)|@|每|各"
    r"|(?:euros?|dollars?|pounds?|pence|cents?|lira|[€$£]\d[\d.,]*) an? [a-z]{3,}"
)


_AND = r"(?:,? (?:and|und|y|e|et|ve|ile|or|oder|o|ou|&|\+) |, | ?/ ?|[、和跟与])"
_LIST = regex(
    rf"(?<![\w#'-])(?:[\w#'-]+(?: [\w#'-]+){{0,2}}{_AND}){{1,6}}[\w#'-]+"
    r"|[\u3400-\u9fff]+(?:[、和跟与][\u3400-\u9fff]+)+"
)


def _is_listed(number: numbers.Number, fact: ProposedFact) -> bool:
    """Whether it counts what a source lists, and no source counts: "Petra, Nela and me" are 3."""
    texts = (fold(one.text) for one in fact.evidence.sources)
    lists = (one.group() for text in texts for one in _LIST.finditer(text))
    most = max((len(re.findall(_AND, one)) + 1 for one in lists), default=1)
    counted = any(numbers.count_alike(one, number) for one in fact.evidence.numbers)
    is_count = number.written.isdigit() and any(2 <= one <= most for one in number.readings)
    return is_count and not counted


def _number_said(number: numbers.Number, theirs: Sequence[numbers.Number]) -> str:
    alike_ = [one for one in theirs if numbers.count_alike(one, number)] or list(theirs)
    said = ", ".join(dict.fromkeys(one.written for one in alike_ if one.written))
    if not said:
        return f"The fact says {number.written}, and what it cites gives no such number"
    return f"What it cites says {said}, and the fact says {number.written}"
