"""Numbers of a fact that its sources do not bear out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memory.guards import clock, dates, mood, numbers
from memory.guards.lexicon import FUNCTION_WORDS, MORE, alike, content, fold, shared
from memory.guards.reading import PIECES, Evidence, ProposedFact, in_all_digits, whole


def _is_from_before(number: numbers.Number, fact: ProposedFact) -> bool:
    """Whether an earlier statement of the same speaker has it, and the sources count no such."""
    told = fact.told_before.numbers
    return _stands(number, told, ()) and not any(
        _is_of(one, number) for one in fact.evidence.numbers
    )


def other_number(fact: ProposedFact) -> str | None:
    """Why a number of the fact neither stands in its sources nor follows from them."""
    text = fact.digits_without_days
    for time in clock.times_in(text):
        text = text[: time.start] + " " * (time.end - time.start) + text[time.end :]
    mine = whole(numbers.numbers_in(_without_names(fact, text)))
    for number in mine:
        if number.unit == numbers.PART:
            continue  # "By half", "half a year": rules do not know of what it is a part.
        is_length = number.unit is not None and number.unit[0] == "time"
        theirs = fact.evidence.amounts if is_length else fact.evidence.numbers
        if not (
            _stands(number, theirs, mine)
            or _is_one(number, fact)
            or _is_an_example(number, mine, theirs)
            or _follows(number, fact)
            or _is_from_before(number, fact)
        ):
            return _number_said(number, theirs)
        if (part := _of_another(number, numbers.numbers_in(fact.digits), fact)) is not None:
            return f'What it cites says "{part}", and the fact says {number.written}'
    return _outdated(mine, fact)


def _is_an_example(
    number: numbers.Number, mine: Sequence[numbers.Number], theirs: Sequence[numbers.Number]
) -> bool:
    """Whether it is a count, or the price for a count that follows from a cited price."""
    for other in mine:
        for a, b in ((number, other), (other, number)):
            made = {
                numbers.rounded(x * y) for x in a.readings for one in theirs for y in one.readings
            }
            if (
                a is not b
                and b.readings & made
                and a.readings != b.readings
                and max(b.readings) > 10
            ):
                return True
    return False


def _adds(fact: ProposedFact) -> bool:
    told = {found for _, digits in fact.evidence.readings for found in MORE.findall(digits)}
    return bool({*MORE.findall(fact.digits)} - told)


_CODE = re.compile(r"(?<![\w.,])[^\W\d_]{1,24}\d+\w*")
"""A letter and a number: a name such as lukas88, a place such as N4."""
_FLAT = re.compile(r"(?<![\w.,])\d{1,3}[a-f](?!\w)|#\d+(?!\w)")


def _without_names(fact: ProposedFact, text: str) -> str:
    """The text with blanks for the numbers in names of people and things that it cites.

    Names of others do not count: a stranger's name may be a message.
    """
    said = fact.evidence.heard.folded
    around = f"{said} {fact.evidence.heard_before.folded}"

    def blank(found: re.Match[str], told: str = said) -> str:
        is_name = re.search(rf"(?<![\w#]){re.escape(found.group())}(?!\w)", told)
        return " " * len(found.group()) if is_name else found.group()

    # A flat or a seat, such as 4B, may be called so in what was said before.
    return _CODE.sub(blank, _FLAT.sub(lambda found: blank(found, around), text))


def _stands(
    number: numbers.Number, theirs: Sequence[numbers.Number], mine: Sequence[numbers.Number]
) -> bool:
    """Whether a source has the number, with the same unit or without any."""
    if number.unit is None:
        for factor in {one.unit for one in mine if one.unit and one.unit[0] == "time"}:
            if any(
                one.unit and one.unit[0] == factor[0] and factor[1] * value in one.bases()
                for one in theirs
                for value in number.readings
            ):
                return True
    return any(
        numbers.comparable(other, number.unit) and number.bases() & other.bases()
        if number.unit and other.unit
        else number.readings & (other.readings | (other.bases() if number.unit is None else set()))
        for other in theirs
    )


def _follows(number: numbers.Number, fact: ProposedFact) -> bool:
    """Whether the number follows from the sources by a rule, or the rules cannot tell."""
    evidence = fact.evidence
    values = number.readings | number.bases()
    return (
        not fact.familiar
        or _is_computed(number, values, fact)
        or _is_a_count(number, values, evidence)
    )


def _is_computed(number: numbers.Number, values: frozenset[float], fact: ProposedFact) -> bool:
    """Whether it follows by arithmetic from numbers that the sources say.

    The rule: it is the sum, the difference, the product or the quotient of two cited numbers, the
    sum of listed ones or a percentage of one. A sum needs a word of sums, a small product a word of
    rates. What looks like a slip of a cited number is no product.
    """
    evidence, said = fact.evidence, fact.evidence.numbers
    texts = [digits for _, digits in evidence.readings]
    if number.unit and number.unit[0] == "share":
        return _is_percentage(number, fact)
    made = _told_beside(number, fact) | _parts_of_sum(number, fact)
    made |= {
        numbers.rounded(value / 2)
        for one in (said if any(map(_HALF.search, texts)) else ())
        for value in one.bases()
    }
    if number.unit and number.unit[0] == "time":
        if values & _parts(evidence):
            return True
        made |= clock.gaps(evidence.times, (digits for _, digits in evidence.readings))
    if values & made:
        return True
    same = any(_is_of(one, number) and (one.unit is None or one.unit[0] == "time") for one in said)
    amounts = evidence.without_times
    sums, products = numbers.sums(amounts, number.unit), numbers.products(amounts, number.unit)
    shown = {value for one in numbers.numbers_in(fact.digits) for value in one.readings}
    slips = [one for one in said if numbers.is_slip(number, one) and not one.readings & shown]
    summed = bool(_adds(fact) and values & sums)
    if any(_is_of(one, number) for one in slips):
        return summed
    large = max(number.readings) > _LARGE and not any(numbers.is_slip(number, one) for one in said)
    rated = large or (not same and any(map(_TIMES.search, [fact.digits, *texts])))
    return summed or bool(rated and values & products)


def _parts_of_sum(number: numbers.Number, fact: ProposedFact) -> set[float]:
    """What the fact's other numbers, which its sources say, add up to: "14 sacks, 12 of them"."""
    others = [one for one in numbers.numbers_in(fact.digits) if one.start != number.start]
    parts = [one for one in others if _stands(one, fact.evidence.numbers, ()) or _is_one(one, fact)]
    return numbers.sums(parts, number.unit) if len(parts) > 1 else set()


def _is_one(number: numbers.Number, fact: ProposedFact) -> bool:
    """Whether it is the 1 that a source says in a word: "three of oak, one of elm"."""
    said = (_ONE.search(fold(one.text)) for one in fact.evidence.sources)
    return number.readings == {1} and any(said)


_ONE = re.compile(r"(?<!\w)(?:one|ein\w{0,2}|un[ao]?|une|bir)(?!\w)|一")


def _told_beside(number: numbers.Number, fact: ProposedFact) -> set[float]:
    """What the few numbers of a sentence make.

    Their sums and differences where it or the fact tells of more or less; else what is left of a
    number that the fact names, too: "34 of the 42 trees".
    """
    made = set[float]()
    whole_of = _OF.match(fact.digits, number.start)
    for one in fact.evidence.told:
        said = whole(numbers.numbers_in(one))
        if len(said) > _FEW:
            continue
        if MORE.search(fact.digits) or MORE.search(one):
            made |= numbers.sums(said, number.unit)
        elif whole_of and any(float(whole_of[1]) in each.readings for each in said):
            made |= numbers.differences(said, number.unit)
    return made


_OF = re.compile(r"\d+ (?:of|von|de|sur) (?:(?:the|all|den|los|las|les) )?(\d+)")
_FEW = 4


def _is_percentage(number: numbers.Number, fact: ProposedFact) -> bool:
    """Whether it is the share of one cited number in another, or half of something."""
    rest = MORE.search(fact.digits) is not None
    made = {100 * one for one in numbers.shares(fact.evidence.numbers, rest=rest)}
    made |= {50.0 for _, digits in fact.evidence.readings if _HALF.search(digits)}
    return any(abs(one - each) <= 0.5 for one in number.readings for each in made)


_LARGE = 50
"""A product or quotient above this is no accident, even without a word of rates."""


def _is_a_count(number: numbers.Number, values: frozenset[float], evidence: Evidence) -> bool:
    if any(_is_of(one, number) for one in evidence.numbers) or not number.written.isdigit():
        return False
    counts = _counts(evidence)
    if number.unit and number.unit[0] == "time":
        counts = set[float]().union(*(dates.lengths(digits) for _, digits in evidence.readings))
    return bool(values & counts)


def _parts(evidence: Evidence) -> set[float]:
    """The parts of numbers such as 5.45 and 3:30, which may be lengths of time."""
    written = (one.written for one in evidence.numbers)
    made: set[float] = set()
    for one in filter(_SIXTIES.match, written):
        first, second = (float(part) for part in re.split("[.,:]", one))
        made |= {first, second, first * 60 + second, first * 3600 + second * 60}
    return made | {60.0 * one.minutes for one in evidence.times if _SIXTIES.match(one.written)}


_HALF = re.compile(
    r"(?<!\w)(?:half|halb\w*|halfte|mitad|medi[oa]|moitie|demi\w*|yari\w*|meta|metade)(?!\w)|半"
)


_SIXTIES = re.compile(r"\d{1,2}[.,:][0-5]\d$")
_TIMES = re.compile(
    r"(?<!\w)(?:per|each|apiece|na osobe|kazd\w+|oboje|obu|je|pro|cada|par|chacune?|chaque|tanesi"
    r"|tane|ciascun\w*|every|(?<!\d )times|mal|stuck|por|adet|kisi basi)(?!\w)"
    r"|(?<=\w) a (?=\d[\d.,]* ?(?:€|eur|$|[.,;]))|(?<=\d) ?[x×] ?(?=\d)|@|每|各|(?:euros?|dollars?"
    r"|pounds?|pence|cents?|lira|[€$£]\d[\d.,]*) an? [a-z]{3,}"
)


_AND = r"(?:,? (?:and|und|y|e|et|ve|ile|oder|or|o|ou|&|\+) |, | ?/ ?|[、和跟与])"
_LISTED = re.compile(
    rf"(?<![\w#'-])(?:[\w#'-]+(?: [\w#'-]+){{0,2}}{_AND}){{1,6}}[\w#'-]+"
    rf"|[\u3400-\u9fff]+(?:[、和跟与][\u3400-\u9fff]+)+"
)


def _counts(evidence: Evidence) -> set[float]:
    found: set[float] = set()
    for source in evidence.sources:
        for listed in _LISTED.finditer(fold(source.text)):
            parts = re.findall(_AND, listed.group())
            found |= {float(n) for n in range(2, len(parts) + 2)}
    return {one for one in found if one <= 7}


def _is_of(one: numbers.Number, number: numbers.Number) -> bool:
    """Whether two numbers count the same: alike nouns, or the same unit."""
    if one.unit and number.unit:
        return one.unit == number.unit
    return (
        bool(one.noun)
        and not any(one.noun in words for words in FUNCTION_WORDS.values())
        and (one.noun == number.noun or alike(one.noun, number.noun))
    )


_LABEL = re.compile(
    r"\b([^\W\d_]{3,}) (?:#|nr\.? |no\.? )?(?:\d+(?:, | und | and | y | et | ve | e |-))*$"
)


def _of_another(
    number: numbers.Number, mine: Sequence[numbers.Number], fact: ProposedFact
) -> str | None:
    """What a source says with another number of the kind, where it has the fact's in a part apart.

    The part shares more with the fact than those that have its number.
    """
    if fact.translated:
        return None
    piece = next(one for one in _pieces(fact.digits) if number.start < one.end())
    here = [one for one in mine if piece.start() <= one.start < piece.end()]
    shown = {value for one in here for value in one.readings}
    words = [one for one in content(piece.group(), fact.codes) if one in fact.words]
    parts = [
        (part, len(shared(words, content(part, clause.codes))), clause, _counted(part))
        for part, _, clause in fact.parts
    ]
    has = [each for each in parts if any(one.readings & number.readings for _, one in each[3])]
    if any(not content(part, clause.codes) for part, _, clause, _ in has):
        return None
    own, best, other = max((near for _, near, _, _ in has), default=-1), (0, ""), (0, "")
    since = max((clause.at for _, _, clause, _ in has), default="")  # A correction comes later.
    for part, near, clause, said in parts:
        if clause.moods or clause.at < since or any(one.readings & shown for _, one in said):
            continue
        if any(_is_alike(one, digits, number, fact) for digits, one in said):
            best = max(best, (near, part))
        elif near > 1 and any(one.unit == number.unit for _, one in said):
            other = max(other, (near, part))
    best = best if own or best > other else other
    apart = 0 <= own < best[0] and 2 * best[0] >= len(words)
    if not apart or mood.negates(fact.text, fact.codes):
        return None
    return None if _is_a_count(number, number.readings, fact.evidence) else best[1]


def _counted(part: str) -> list[tuple[str, numbers.Number]]:
    return [(digits, one) for digits in in_all_digits(part) for one in numbers.numbers_in(digits)]


def _pieces(digits: str) -> Iterator[re.Match[str]]:
    return re.finditer(rf"(?:(?!{PIECES.pattern}).)+|$", digits, re.IGNORECASE)


def _is_alike(one: numbers.Number, digits: str, number: numbers.Number, fact: ProposedFact) -> bool:
    """Whether two numbers count the same, or stand behind the same word: "hive 3", "hive 5"."""
    mine, theirs = (
        _LABEL.search(text, 0, each.start) for text, each in ((fact.digits, number), (digits, one))
    )
    same = mine and theirs and alike(mine[1], theirs[1])
    return _is_of(one, number) or bool(mine and same and content(mine[1], fact.codes))


_REPLACED = re.compile(
    r"(?:not|instead of|rather than|used to be|formerly|statt|nicht|anstatt|vorher|bisher"
    r"|en lugar de|en vez de|antes|no|au lieu de|avant|pas|de gauche|eskiden|不是|而不是|原来"
    r"|之前) ?(?:the |den |die |der |les? |la |el |los )?[€$£]?(\d[\d.,]*)|\b(?:from|von"
    r"|d[eu]) [€$£]?(\d[\d.,]*)(?: ?[€%\w]{1,6})? (?:to|auf|a|au) [€$£]?\d|(\d[\d.,]{,15}) ?(?:tl"
    r"|lira|euro?)?'?[dt][ae]n (?:\w+ )?\d|\b(?:was|were|war|waren|era|eran"
    r"|etait) (?:\w+ )?[€$£]?(\d[\d.,]*)(?=.{0,40}\b(?:now|jetzt|nun|ahora|maintenant)\b)"
    r"|(\d[\d.,]{,15}) (?:degil|yerine)\b|从(\d[\d.]*)[^\d]{,3}(?:涨|降|升|减|增|改|加|调)?[到至成]"
)
"""A number in what is cited that is not the one, or no longer."""
_CONTRASTS = re.compile(
    r"(?<!\w)(?:not|from|instead|rather|(?:was|were)(?! \w+(?:ed|ld|id|en|wn|ght)(?!\w))|before"
    r"|previous\w*|former\w*|used|old|originally|than|so far|until|earlier|no longer|had|list\w*"
    r"|statt|nicht|von|bisher|vorher|fruher|alt\w*|ursprunglich|war|waren|als|kein\w*|de|antes"
    r"|anterior\w*|no|era\w*|lugar|vez|que|du|avant|ancien\w*|pas|lieu|etait|onceki|eskiden|eski"
    r"|once|degil|yerine|\w+d[ae]n|\w+t[ae]n)(?!\w)|从|不|原|之前|而非|比|以前"
)


def _outdated(mine: Sequence[numbers.Number], fact: ProposedFact) -> str | None:
    """Why a number that is cited as denied or replaced is not the fact's number."""
    made = [one for one in mine if not _stands(one, fact.evidence.numbers, mine)]
    if made or _CONTRASTS.search(fact.digits):
        return None  # "Eight of the 48 are missing": what came in place of them is counted.
    for digits in fact.evidence.told:
        for found in _REPLACED.finditer(digits):
            group = found.lastindex or 0
            old = numbers.readings_of(found[group].strip(".,"))
            at, end = found.span(group)
            rest = digits[:at] + " " + digits[end:]
            unit = next((n.unit for n in numbers.numbers_in(digits) if n.start == at), None)
            others = [one for one in numbers.numbers_in(rest) if unit in (None, one.unit)]
            valid = frozenset[float]().union(*(one.readings for one in others))
            named = frozenset[float]().union(*(one.readings for one in mine))
            if named & old and valid - named and not valid & old:
                return f"What it cites says that {found[group]} is not, or no longer, the number"
    return None


def _number_said(number: numbers.Number, theirs: Sequence[numbers.Number]) -> str:
    alike_ = [one for one in theirs if _is_of(one, number)] or list(theirs)
    said = ", ".join(dict.fromkeys(one.written for one in alike_ if one.written))
    if not said:
        return f"The fact says {number.written}, and what it cites gives no such number"
    return f"What it cites says {said}, and the fact says {number.written}"
