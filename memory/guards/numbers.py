"""Numbers of a text: written in digits or words, with units, and what follows from them. Pure.

A number may be read in several ways (1.900 is 1900 or 1.9). Whoever checks a fact asks whether any
reading of its number is among the readings of its sources.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

from text_to_num import find_numbers

from memory.guards.lexicon import (
    CURRENCIES,
    FUNCTION_WORDS,
    HAN,
    LOOSE_NUMBERS,
    MONTH_OF,
    NUMBER_WORDS,
    RESPELLED,
    TURKISH_NUMBERS,
    WEEKDAY_OF,
    alike,
    fold,
)
from memory.text import regex

_TURKISH_CASE = regex(
    r"(?:'?(?:[yn]?[aeiu]|[dt][ae]n?|[yn]?[iu]n?|[lr][ae]r|s[ae]r|[ae]r|inci|uncu|nci|ncu"
    r"|s[iu]nd[ae]n?|si|su|yle))"
)
_WORD = regex(r"(?<![\w'])[^\W\d_]+(?:'[^\W\d_]+)?")
_CHINESE_DIGITS = dict(
    zip("零〇一二两俩三四五六七八九", (0, 0, 1, 2, 2, 2, *range(3, 10)), strict=True)
)
_CHINESE_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "亿": 100_000_000}
_CHINESE = regex("[零〇一二两俩三四五六七八九十百千万亿]+")
_CHINESE_PERCENT = regex(
    "百分之([零〇一二两三四五六七八九十百\\d]+)(?:[点.]([零〇一二三四五六七八九\\d]+))?"
)
_PERCENT = regex(r"(?<!\w)(?:por cien(?:to)?|pour cent|per cento?|por cento)(?!\w)", re.IGNORECASE)
_NO_NUMBERS = regex(
    "十分|(?:过|这|前)两天|千万(?=不|别|要|记)|万一|一(?:起|下|直|定|样|般|共|点|些|会|边|周|旦)"
)


def in_digits(text: str, language: str | None, *, strict: bool = False) -> str:
    """The folded `text` with the numbers of its language in digits; 1 stays a word.

    `strict` leaves ordinals and words such as "both" alone.
    """
    text = _PERCENT.sub("%", text.replace("½", ".5"))
    if language in NUMBER_WORDS:
        text = _read(text, language, strict=strict)
    folded = fold(text.replace("\uff0c", ", "))  # No decimal point.
    if HAN.search(folded):
        folded = _CHINESE_PERCENT.sub(_chinese_percent, folded)
        folded = _NO_NUMBERS.sub(lambda found: "\u00b7" * len(found.group()), folded)
        folded = _CHINESE.sub(lambda found: _chinese_digits(found.group()), folded)
    if language == "tr":
        return _turkish(folded, {} if strict else LOOSE_NUMBERS["tr"])
    return folded


class _Word(NamedTuple):
    """A word, or a number in digits, as the reader of number words takes it."""

    written: str
    gap: str
    """What stands between it and the word before."""
    start: int
    end: int

    def text(self) -> str:
        """How it is spelled."""
        plain = fold(self.written)
        return RESPELLED.get(plain, self.written.lower())

    def nt_separated(self, previous: _Word) -> bool:
        """Whether it begins another number."""
        return self.gap not in (" ", "-")

    def not_a_number_part(self) -> bool:
        """Whether it is no word of a number."""
        return self.written.isdigit()


_TOKEN = regex(r"(?<![\w'\u2019])[^\W\d_]+(?:['\u2019][^\W\d_]+)?|\d+")


def _read(text: str, language: str, *, strict: bool) -> str:
    """`text` with digits for its number words; ordinals from 3 on count unless `strict`."""
    words: list[_Word] = []
    for found in _TOKEN.finditer(text):
        gap = text[words[-1].end if words else 0 : found.start()]
        words.append(_Word(found.group(), gap, *found.span()))
    others = NUMBER_WORDS[language] | ({} if strict else LOOSE_NUMBERS.get(language, {}))
    values = {
        at: (at + 1, others[plain])
        for at, word in enumerate(words)
        if (plain := fold(word.written)) in others
    }
    for one in find_numbers(words, language, 0):
        behind_digits = one.start and words[one.start - 1].written.isdigit()
        is_scale = one.value in _SCALES.values() and behind_digits and words[one.start].gap == " "
        first = fold(words[one.start].written)
        # "Na sexta" is Friday, and no sixth; blood of type O has no zero.
        if first in _QUARTERS or first in WEEKDAY_OF or first == "o":
            continue
        if one.end < len(words) and _in_name(words[one.start], words[one.end], one.start):
            continue
        if one.value != 1 and not is_scale and not (one.is_ordinal and (strict or one.value < 3)):
            values[one.start] = (one.end, one.value)
    # Two dozen are 24.
    for at in [one for one in values if others.get(fold(words[one].written)) == 12 and one]:
        before, (_, count) = words[at - 1], values.get(at - 1, (0, 0))
        count = float(before.written) if before.written.isdecimal() else count
        if 1 < count < 1000 and words[at].gap == " " and before.gap[-1:] not in (".", ","):
            values[at - 1] = (at + 1, 12 * count)
            del values[at]
    made, done = "", 0
    for at in sorted(values):
        last, value = values[at]
        made += text[done : words[at].start]
        made += " " if _BEHIND_DIGIT.search(made) else ""  # "Ward 6 one hundred" is no 6 100.
        made, done = made + _plain(value), words[last - 1].end
    return made + text[done:]


def _in_name(first: _Word, behind: _Word, place: int) -> bool:
    """Whether a number is a part of a name in a sentence, as in "the play Nine Doors"."""
    inside = place > 0 and not _BEFORE_A_CAPITAL.search(first.gap)
    titled = first.written.istitle() and behind.written.istitle() and behind.gap == " "
    return inside and titled and fold(behind.written) not in MONTH_OF


_BEFORE_A_CAPITAL = regex(r"[.!?:;\n\u201c\u201e\"(]")
"""Signs behind which any word may begin with a capital."""
_QUARTERS = frozenset(("cuarto", "cuarta", "quarto", "quarta"))
_BEHIND_DIGIT = regex(r"\d $")


def _chinese_percent(found: re.Match[str]) -> str:
    whole, part = found.group(1), found.group(2)
    digits = "".join(str(_CHINESE_DIGITS.get(one, one)) for one in part or "")
    value = whole if whole.isdigit() else "1" if whole == "一" else _chinese_digits(whole)
    return f"{value}{'.' + digits if digits else ''}%"


def _chinese_digits(run: str) -> str:
    """A Chinese number in digits; 一 alone stays. 一千二 is 1200, and 三百六 is 360."""
    if run == "一" or run in "零〇" or run in ("万", "千", "百", "亿"):
        return run
    total = section = digit = 0
    last = 10
    for one in run:
        if one in _CHINESE_DIGITS:
            digit = _CHINESE_DIGITS[one]
            last = 10 if digit == 0 else last
            continue
        scale = last = _CHINESE_SCALES[one]
        if scale >= 10_000:
            total, section = total + max(section + digit, 1) * scale, 0
        else:
            section += max(digit, 1) * scale
        digit = 0
    return str(total + section + digit * (last // 10 if last > 10 else 1))


def _turkish(folded: str, loose: dict[str, float]) -> str:
    """The Turkish number words of a folded text put together: "iki yuz bes" is 205."""
    made, done = "", 0
    for start, end, values in _runs(folded, TURKISH_NUMBERS | loose):
        if values != [1]:
            made += folded[done:start]
            made += " " if _BEHIND_DIGIT.search(made) else ""
            made, done = made + " ".join(map(_plain, _joined(values))), end
    return made + folded[done:]


def _runs(folded: str, known: Mapping[str, float]) -> Iterator[tuple[int, int, list[float]]]:
    """Words of numbers that stand together: where, and their values."""
    start = end = 0
    values: list[float] = []
    for found in _WORD.finditer(folded):
        value = _value(found.group(), known)
        near = bool(values) and folded[end : found.start()] in (" ", "-")
        if values and not (near and value is not None):
            yield start, end, values
            values = []
        if value is not None:
            start = start if values else found.start()
            values, end = [*values, value], found.end()
    if values:
        yield start, end, values


def _value(word: str, known: Mapping[str, float]) -> float | None:
    if word in known:
        return known[word]
    if word == "yuzde":  # Percent, and no hundred.
        return None
    for length in range(len(word) - 1, 1, -1):
        root, suffix = word[:length], word[length:].lstrip("'")
        if root in known and root not in ("on", "bin") and _TURKISH_CASE.fullmatch(suffix):
            return known[root]
    return None


def _joined(values: Sequence[float]) -> list[float]:
    """The numbers that a run of words stands for: twenty, five is 25, and three, four stay."""
    done: list[float] = []
    total = current = 0.0
    last = -1.0
    for value in values:
        if value >= 1000:
            total, current = total + max(current, 1) * value, 0
        elif value in (100, 12) and 0 < current < 100 and last < 100:
            current *= value
        elif last < 0 or (value < 100 if current % 100 == 0 else current % 10 == 0 and value < 10):
            current += value
        else:
            done.append(total + current)
            total, current = 0.0, value
        last = value
    return [*done, total + current]


def _plain(value: float) -> str:
    return f"{value:g}" if value < 1e6 else str(int(value))


NUMBER = regex(
    r"(?<!\bm)(?<!\bcm)(?:\d{1,3}(?:[ \u202f'\u2019]\d{3})+(?:[.,]\d\d?)?(?!\d)|\d+(?:[.,]\d+)*)"
)

_UNITS: dict[str, tuple[str, float]] = {
    name: (dimension, float(factor))
    for dimension, rows in {
        "length": "mm|millimeter|milimetre|millimetre|milimetro=.001 cm|centimeter|centimetre"
        "|zentimeter|centimetro|santim|santimetre|厘米|公分=.01 m|meter|metre|metro|米=1"
        " km|kilometer|kilometre|kilometro|公里|千米=1000 mile|mi|milla|meile|英里=1609.344"
        " ft|foot|feet|fus|pie|pied=.3048 inch|inche|zoll|pulgada|pouce|inc|英寸=.0254 yd"
        "|yard=.9144",
        "mass": "mg|milligram|miligramo=1e-6 g|gr|gram|gramm|gramme|gramo|grammo|克=.001"
        " kg|kilo|kilogram|kilogramm|kilogramo|公斤=1 jin|斤=.5 t|tonne|ton|tonelada|吨=1000",
        "volume": "ml|milliliter|millilitre|mililitro|毫升=.001 cl|zentiliter|centilitre=.01"
        " dl|deziliter|decilitre|decilitro=.1 l|liter|litre|litro|升=1",
        "area": "m2|sqm|m²|sqm|quadratmeter|metrekare|平方米|平米=1 hectare|hektar|hectarea|ha"
        "|公顷=10000",
        "months": "month|monat|mese|mois|ay|个月=1 year|yr|jahr|ano|annee|ans|yil|sene|年=12",
        "time": "ms|millisecond|millisekunde|milisegundo|milliseconde|milisaniye|毫秒=.001 s"
        "|sec|second|sekunde|segundo|seconde|saniye|秒=1 min|minute|minuto|dakika|dk|分钟=60"
        " h|hr|hour|stunde|std|hora|heure|saat|小时|ora=3600"
        " day|tag|dia|jour|gun|天|giorno=86400 week|woche|semana|semaine|hafta|周|星期=604800",
        "charge": "mah=.001 ah=1",
        "money": "cent|centime|centimo|kurus|pence|penny|p|rappen=.01 块|元=1",
        "data": "kb=1 mb=1000 gb=1e6 tb=1e9",
        "share": "%|percent|pct|prozent|porciento|pourcent|yuzde=1",
        "angle": "°|degree|grad|grado|degre|derece|度=1",
    }.items()
    for names, factor in (row.rsplit("=", 1) for row in rows.split())
    for name in names.split("|")
}
_AFTER = regex(
    r"\s*-?\s*(?:euro (?=cent))?([%°€$£₺¥]|m2(?!\w)|sq\.? ?m(?!\w)|square met\w+|metres? carres?"
    r"|metros? cuadrados?|(?![\u3400-\u9fff])[^\W\d_]+"
    r"|(?:分钟|小时|公里|千米|星期|公斤|毫升|厘米|公分|[个位只条]?[\u3400-\u9fff]))"
)
_BEFORE = regex(r"((?<!\d)(?<!\d )[%€$£₺¥]|(?:\b(?:eur|usd|gbp|chf|tl|yuzde)))\s?$")
_SCALES = {
    **dict.fromkeys(("k", "tausend", "thousand", "mil", "mille", "bin", "tsd", "千"), 1e3),
    **dict.fromkeys(("million", "millionen", "mio", "millones", "millions", "milyon"), 1e6),
    "万": 1e4,
}


class Number(NamedTuple):
    """A number of a text."""

    readings: frozenset[float]
    """What it may mean."""
    unit: tuple[str, float] | None
    """The dimension of its unit, and the factor to the dimension's base unit."""
    noun: str
    """The word behind it, folded; empty if there is none, or one that counts nothing."""
    start: int
    end: int
    written: str
    is_ordinal: bool = False
    """Whether it is a place in an order and no amount: "the 1st"."""

    def bases(self) -> set[float]:
        """The readings in the base unit; without a unit, as they are."""
        factor = self.unit[1] if self.unit else 1.0
        return {rounded(one * factor) for one in self.readings}


def numbers_in(digits: str) -> list[Number]:
    """The numbers of a text whose number words are digits already, in order."""
    found = [_number(one, digits) for one in NUMBER.finditer(digits)]
    return [*found, *_mixed(digits)]


def _number(found: re.Match[str], text: str) -> Number:
    written, end = found.group(), found.end()
    readings = readings_of(written)
    after = _AFTER.match(text, end)
    word = after[1] if after else ""
    if word in _SCALES and after and (word != "k" or not text[end].isspace()):
        readings = frozenset(rounded(one * _SCALES[word]) for one in readings) | (
            readings if word in ("mil", "mille", "bin", "k") else frozenset()  # 35k is a distance.
        )
        end = after.end()
        after = _AFTER.match(text, end)
        word = after[1] if after else ""
    before = _BEFORE.search(text, max(0, found.start() - 8), found.start())
    unit = (unit_of(before[1]) if before else None) or unit_of(word)
    noun = "" if any(word in words for words in FUNCTION_WORDS.values()) else word
    is_ordinal = _ORDINAL.match(text, found.end()) is not None
    return Number(readings, unit, noun, found.start(), end, written, is_ordinal)


_ORDINAL = regex(r"(?:st|nd|rd|th|er|re|[ei]?eme|[oa]|\u00ba|\u00aa)(?![\w.,])")


def unit_of(word: str) -> tuple[str, float] | None:
    """The unit that `word` (folded) names, in the singular or plural."""
    forms = [word]
    if not any(word in words for words in FUNCTION_WORDS.values()):  # "30 has" is no hectare.
        forms += [word.rstrip("s"), word.removesuffix("n"), word.removesuffix("en")]
    for form in forms:
        if form in CURRENCIES:
            return CURRENCIES[form], 1.0
        if form in _UNITS and (form == word or len(form) > 1 or HAN.match(form)):
            return _UNITS[form]
    return None


def readings_of(written: str) -> frozenset[float]:
    """What digits may mean: with points and commas as signs of thousands or of decimals."""
    bare = re.sub(r"[ \u202f'\u2019]", "", written)
    parts = re.split(r"[.,]", bare)
    marks = re.findall(r"[.,]", bare)
    if not marks:
        return frozenset({float(bare)})
    in_thousands = len(parts[0]) <= 3 and all(len(one) == 3 for one in parts[1:])
    made = set()
    if in_thousands and len(set(marks)) == 1 and parts[0] != "0":
        made.add(float("".join(parts)))
    if len(marks) == 1 or (len(set(marks)) == 2 and marks.index(marks[-1]) == len(marks) - 1):
        made.add(float("".join(parts[:-1]) + "." + parts[-1]))
    return frozenset(map(rounded, made)) or frozenset(map(float, parts))


_MIXED = (
    (regex(r"((?<!\d)\d{1,9}|(?<!\w)(?:an|one|eine|une|una|bir)(?= )) ?"
                r"(?:h|hr|hrs|hours?|stunden?|std|heures?|horas?|saat|小时)"
                r"(?: (?:and|und|y|et) )? ?([0-5]?\d)(?!\d)"), ("time", 1.0), 3600.0, 60.0),
    (regex(r"(?<!\d)(\d{1,9}) ?(?:m|min|minutes?|minuten|minutos|dakika|分钟?)"
                r" ?(?:and|und|y|et)? ?([0-5]?\d) ?(?:s(?!\w)|sec|sek|saniye"
                r"|秒)"), ("time", 1.0), 60.0, 1.0),
    (regex(r"(?<![\d.,])(\d{1,9}) (?:euros?|eur|€) (\d\d)(?![.,:]?\d| ?[%€a-z])"),
     (CURRENCIES["euro"], 1.0), 1.0, 0.01),
    (regex(r"(\d) ?(?:m|米) ?(\d\d)(?!\d)"), ("length", 1.0), 1.0, 0.01),
)  # fmt: skip


def _mixed(text: str) -> Iterator[Number]:
    """Numbers of two units: 4h12, 1m90."""
    for pattern, unit, first, second in _MIXED:
        for found in pattern.finditer(text):
            count = int(found[1]) if found[1].isdigit() else 1
            value = rounded(count * first + int(found[2]) * second)
            yield Number(frozenset({value}), unit, "", found.start(), found.end(), found.group())
    for found in _HALVES.finditer(text):
        whole = found[1] or found[3] or "1"
        value = (int(whole) if whole.isdigit() else 1) + (
            0.25 if _QUARTER.search(found.group()) else 0.5
        )
        after = _AFTER.match(text, found.end())
        named = unit_of(found[4] or (after[1] if after else ""))
        if named is not None or found[1] or found[3] or found[5]:
            yield Number(frozenset({value}), named, "", found.start(), found.end(), found.group())


_ONES = "an?|one|ein|eine[nrm]?|une?|una|bir|uno"
_HALF = (
    "and a half|and 1/2|y media?|et demie?|bucu[kg]|e mezz[oa]|e mei[ao]|个?半"
    "|and a quarter|y cuarto|et quart"
)
_HALVES = regex(
    rf"(?<![\w.,])(\d{{1,9}}) ?(?:{_HALF})(?!\w)"
    rf"|(?<![a-z\d])((?:(\d{{1,9}}|{_ONES}) ?)?([a-z]+|[公小]?[斤里米天年时]) ?(?:and a half"
    r"|y media?|et demie?|and a quarter|半))(?!\w)|(?<!\w)(?:(bir)) bucuk"
)
_QUARTER = regex("quar|cuart")


def rounded(value: float) -> float:
    """A value that compares equal to the same value computed in another way."""
    return float(f"{value:.9g}")


def sums(sources: Sequence[Number], unit: tuple[str, float] | None) -> set[float]:
    """The sums and differences of two numbers and the sums of runs of them, in base units.

    Those that may have the dimension of `unit` count.
    """
    same = [one for one in sources[:14] if comparable(one, unit)]
    pairs = [pair for one, other in combinations(same, 2) for pair in _pairs(one, other)]
    made = {a + b for a, b in pairs} | {abs(a - b) for a, b in pairs if a != b}
    for start, _ in enumerate(same):
        totals = {0.0}
        for count, one in enumerate(same[start:], 1):
            totals = {total + value for total in totals for value in one.bases()}
            if len(totals) > 8:
                break
            made |= totals if count > 1 else set()
    return {rounded(one) for one in made}


def products(sources: Sequence[Number], unit: tuple[str, float] | None) -> set[float]:
    """The products and quotients of two numbers, and what percentages of one make."""
    few = sources[:14]
    made: set[float] = set()
    for one, other in combinations(few, 2):
        if not (comparable(one, unit) or comparable(other, unit)):
            continue
        for a, b in _pairs(one, other):
            made |= {a * b, *(x / y for x, y in ((a, b), (b, a)) if y)}
    of_100 = [one for one in few if one.unit is not None and one.unit[0] == "share"]
    shares = [each / 100 for one in of_100 for each in one.readings]
    parts = {made for part in shares for made in (part, 1 - part, 1 + part)}
    same = [one for one in few if comparable(one, unit)]
    made |= {value * part for one in same for value in one.bases() for part in parts}
    return {rounded(one) for one in made}


def _pairs(one: Number, other: Number) -> Iterator[tuple[float, float]]:
    return product(one.bases() | one.readings, other.bases() | other.readings)


def comparable(one: Number, unit: tuple[str, float] | None) -> bool:
    """Whether numbers may be added to make one with a unit: cents are of any currency."""
    kinds = {one.unit[0], unit[0]} if one.unit and unit else set[str]()
    return len(kinds) < 2 or ("money" in kinds and kinds <= {"money", *CURRENCIES.values()})


def count_alike(one: Number, other: Number) -> bool:
    """Whether two numbers count the same: alike nouns, or the same unit."""
    if one.unit and other.unit:
        return one.unit == other.unit
    return bool(one.noun) and alike(one.noun, other.noun)


def are_near(one: Number, other: Number) -> bool:
    """Whether two numbers may be taken for each other: by their units, and within ten times."""
    sizes = sorted((max(one.readings), max(other.readings)))
    return comparable(one, other.unit) and sizes[1] < 10 * sizes[0]


def stands_in(number: Number, theirs: Sequence[Number]) -> bool:
    """Whether `theirs` have the number, with the same unit or without any."""
    return any(
        comparable(other, number.unit) and number.bases() & other.bases()
        if number.unit and other.unit
        else number.readings & other.readings or number.bases() & other.bases()
        for other in theirs
    )


def is_slip(number: Number, other: Number) -> bool:
    """Whether two numbers differ in one digit or in the order of their digits alone."""
    mine, theirs = (re.sub(r"\D", "", one.written) for one in (number, other))
    if len(mine) != len(theirs) or len(mine) < 2 or not comparable(other, number.unit):
        return False
    return sorted(mine) == sorted(theirs) or sum(map(str.__ne__, mine, theirs)) == 1
