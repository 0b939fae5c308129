"""Numbers of a text: written in digits or words, with units, and what follows from them. Pure.

A number may be read in several ways (1.900 is 1900 or 1.9). Whoever checks a fact asks whether any
reading of its number is among the readings of its sources.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from memory.guards.lexicon import HAN, fold


def _values(table: str) -> dict[str, float]:
    """`one=1 two=2 ...`; words without a value count up from the last one."""
    made: dict[str, float] = {}
    value = -1.0
    for word in table.split():
        name, _, given = word.partition("=")
        value = float(given) if given else value + 1
        made.update(dict.fromkeys(name.split("|"), value))
    return made


_TENS = "{}=20 {}=30 {}=40 {}=50 {}=60 {}=70 {}=80 {}=90"


def _tens(words: str) -> str:
    return _TENS.format(*words.split())


_WORDS: dict[str, dict[str, float]] = {
    "en": _values(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen "
        + _tens("twenty thirty forty|fourty fifty sixty seventy eighty ninety")
        + " hundred|hundreds=100 thousand|thousands=1000 million|millions=1e6 billion=1e9"
        " dozen|dozens=12"
    ),
    "de": _values(
        "null eins zwei|zwo drei vier funf sechs sieben acht neun zehn elf zwolf dreizehn vierzehn "
        "funfzehn sechzehn siebzehn achtzehn neunzehn "
        + _tens("zwanzig dreisig vierzig funfzig sechzig siebzig achtzig neunzig")
        + " hundert=100 tausend=1000 million|millionen|mio=1e6 dutzend=12 anderthalb=1.5"
    ),
    "es": _values(
        "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince "
        "dieciseis diecisiete dieciocho diecinueve veinte|veintena veintiuno|veintiun|veintiuna "
        "veintidos veintitres veinticuatro veinticinco veintiseis veintisiete veintiocho "
        "veintinueve treinta=30 cuarenta=40 cincuenta=50 sesenta=60 setenta=70 ochenta=80 "
        "noventa=90 cien|ciento|centenar=100 doscientos|doscientas=200 trescientos|trescientas=300 "
        "cuatrocientos|cuatrocientas=400 quinientos|quinientas=500 seiscientos|seiscientas=600 "
        "setecientos|setecientas=700 ochocientos|ochocientas=800 novecientos|novecientas=900 "
        "mil=1000 millon|millones=1e6 docena|docenas=12"
    ),
    "fr": _values(
        "zero un deux trois quatre cinq six sept huit neuf dix|dizaine onze douze|douzaine treize "
        "quatorze quinze|quinzaine seize "
        + "vingt|vingts|vingtaine=20 trente|trentaine=30 quarante|quarantaine=40 "
        "cinquante|cinquantaine=50 soixante|soixantaine=60 septante=70 huitante=80 nonante=90 "
        "cent|cents|centaine=100 mille=1000 million|millions=1e6"
    ),
    "tr": _values(
        "sifir bir iki uc dort bes alti yedi sekiz dokuz on "
        + _tens("yirmi otuz kirk elli altmis yetmis seksen doksan")
        + " yuz=100 bin=1000 milyon=1e6 duzine=12"
    ),
    "it": _values(
        "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici "
        "quattordici quindici sedici diciassette diciotto diciannove "
        + _tens("venti trenta quaranta cinquanta sessanta settanta ottanta novanta")
        + " cento=100 mille|mila=1000 milione|milioni=1e6 dozzina=12"
    ),
    "pt": _values(
        "zero um dois|duas tres quatro cinco seis sete oito nove dez onze doze treze "
        "catorze|quatorze quinze dezasseis|dezesseis dezassete|dezessete dezoito "
        "dezanove|dezenove "
        + _tens("vinte trinta quarenta cinquenta sessenta setenta oitenta noventa")
        + " cem|cento=100 duzentos=200 trezentos=300 mil=1000 milhao|milhoes=1e6 duzia=12"
    ),
    "nl": _values(
        "nul een twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien"
        " zestien zeventien achttien negentien "
        + _tens("twintig dertig veertig vijftig zestig zeventig tachtig negentig")
        + " honderd=100 duizend=1000 miljoen=1e6 dozijn=12 anderhalf=1.5"
    ),
}
_LOOSE: dict[str, dict[str, float]] = {
    "en": _values(
        "third=3 fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
        "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth thirtieth=30 "
        "both|twice|couple|pair|twins|double=2 thrice|triplets|trio=3 quartet=4"
    ),
    "de": _values(
        "beide|beiden|paar|zweimal|zwilling|zwillinge|doppelt=2 dreimal|dritte|dritten|drilling=3 "
        "viermal funfmal siebte|siebten|siebter=7"
    ),
    "es": _values(
        "ambos|ambas|par|segundo|segunda|gemelos|doble=2 tercer|tercero|tercera=3 cuarta=4 "
        "quinto|quinta sexto|sexta septimo|septima octavo|octava noveno|novena decimo|decena"
    ),
    "fr": _values(
        "paire|jumeaux|deuxieme|seconde|double=2 troisieme quatrieme cinquieme sixieme septieme "
        "huitieme neuvieme dixieme onzieme douzieme treizieme quatorzieme quinzieme"
    ),
    "tr": _values("ikisi|cift|ikiz|ikizler=2"),
}
"""Words that name a number and may mean something else: they count in sources alone."""

LANGUAGES = tuple(_WORDS)
"""The languages whose number words are known."""

_BETWEEN = {"en": "and", "es": "y", "fr": "et", "pt": "e"}
"""The word inside a number: two hundred and five, treinta y uno, vingt et un."""

_TURKISH_CASE = re.compile(
    r"(?:'?(?:[yn]?[aeiu]|[dt][ae]n?|[yn]?[iu]n?|[lr][ae]r|s[ae]r|[ae]r|inci|uncu|nci|ncu|si"
    r"|su|yle))"
)
_WORD = re.compile(r"(?<![\w'])[^\W\d_]+(?:'[^\W\d_]+)?")
_CHINESE_DIGITS = {one: value for value, one in enumerate("零一二三四五六七八九")} | {
    "〇": 0,
    "两": 2,
    "俩": 2,
}
_CHINESE_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "亿": 100_000_000}
_CHINESE = re.compile("[零〇一二两俩三四五六七八九十百千万亿]+")
_CHINESE_PERCENT = re.compile(
    "百分之([零〇一二两三四五六七八九十百\\d]+)(?:[点.]([零〇一二三四五六七八九\\d]+))?"
)
_PERCENT = re.compile(r"(?<!\w)(?:por cien(?:to)?|pour cent|per cento?|por cento)(?!\w)")
_HALF_DOZEN = re.compile(
    r"half a dozen|(?:ein )?halbes dutzend|media docena|demi-douzaine|yarim duzine|mezza dozzina"
)
_NO_NUMBERS = re.compile(
    "十分|千万(?=不|别|要|记)|万一|一(?:起|下|直|定|样|般|共|点|些|会|边|周|旦)"
)


def in_digits(text: str, language: str | None, *, strict: bool = False) -> str:
    """The folded `text` with the numbers of its language in digits; 1 stays a word.

    `strict` leaves ordinals and words such as "both" alone.
    """
    folded = _HALF_DOZEN.sub("6", _PERCENT.sub("%", fold(text)))
    if HAN.search(folded):
        folded = _CHINESE_PERCENT.sub(_chinese_percent, folded)
        folded = _NO_NUMBERS.sub(lambda found: "·" * len(found.group()), folded)
        folded = _CHINESE.sub(lambda found: _chinese_digits(found.group()), folded)
    if language == "de":
        return _WORD.sub(_german if strict else _german_loose, folded)
    if language not in _WORDS:
        return folded
    known = _WORDS[language] if strict else _WORDS[language] | _LOOSE.get(language, {})
    return _composed(folded, language, known)


def _chinese_percent(found: re.Match[str]) -> str:
    whole, part = found.group(1), found.group(2)
    digits = "".join(str(_CHINESE_DIGITS.get(one, one)) for one in part or "")
    value = whole if whole.isdigit() else "1" if whole == "一" else _chinese_digits(whole)
    return f"{value}{'.' + digits if digits else ''}%"


def _chinese_digits(run: str) -> str:
    """A Chinese number in digits; 一 alone stays. 一千二 is 1200, and 三百六 is 360."""
    if run == "一" or run in "零〇" or run in ("万", "千", "百", "亿"):
        return run
    if len(run) > 1 and not set(run) & _CHINESE_SCALES.keys():
        return "".join(str(_CHINESE_DIGITS[one]) for one in run)
    total = section = digit = 0
    last = 10
    for place, one in enumerate(run):
        if one in _CHINESE_DIGITS:
            if digit and last != 10:
                # "两百六一节": 260, and one lesson.
                return _chinese_digits(run[:place]) + run[place:]
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


def _german_loose(found: re.Match[str]) -> str:
    loose = _LOOSE["de"].get(found.group())
    return _german(found) if loose is None else _plain(loose)


def _german(found: re.Match[str]) -> str:
    value = _german_value(found.group())
    return _plain(value) if value is not None and value != 1 else found.group()


def _german_value(word: str) -> float | None:
    known = _WORDS["de"]
    if word in known:
        return known[word]
    if len(word) < 6 or not any(unit in word for unit in _GERMAN_PARTS):
        return None
    if half := re.fullmatch(r"(\w+)einhalb\w{0,2}", word):
        value = _german_value(half[1]) if half[1] != "e" else 1
        return value + 0.5 if value is not None else None
    for scale, name in ((1000, "tausend"), (100, "hundert")):
        head, found, tail = word.partition(name)
        if found:
            times = 1.0 if head in ("", "ein") else _german_value(head)
            rest = _german_value(tail.removeprefix("und")) if tail else 0.0
            return None if times is None or rest is None else times * scale + rest
    if tens := re.fullmatch(r"(ein|\w+?)und(\w+zig|\w*dreisig)(?:s?te\w?)?", word):
        units = 1.0 if tens[1] == "ein" else known.get(tens[1])
        return units + known[tens[2]] if units and tens[2] in known else None
    ordinal = re.fullmatch(r"(\w+?)s?te[nrsm]?", word)
    return known.get(ordinal[1]) if ordinal else None


_GERMAN_PARTS = ("zig", "hundert", "tausend", "einhalb", "dreisig", "te", "zehn", "elf", "zwolf")


def _composed(folded: str, language: str, known: Mapping[str, float]) -> str:
    """The number words of `folded` put together: "two hundred and five" is 205."""
    made, done = "", 0
    for start, end, values in _runs(folded, language, known):
        if values != [1]:
            made += folded[done:start] + " ".join(map(_plain, _joined(values, language)))
            done = end
    return made + folded[done:]


def _runs(
    folded: str, language: str, known: Mapping[str, float]
) -> Iterator[tuple[int, int, list[float]]]:
    """Words of numbers that stand together: where, and their values."""
    between = _BETWEEN.get(language)
    start = end = 0
    values: list[float] = []
    joined = False
    for found in _WORD.finditer(folded):
        value = _value(found.group(), known, language)
        gap = folded[end : found.start()]
        near = bool(values) and (gap in (" ", "-") or (joined and gap == f" {between} "))
        if near and found.group() == between:
            joined = True
            continue
        if values and not (near and value is not None):
            yield start, end, values
            values = []
        if value is not None:
            start = start if values else found.start()
            values, end = [*values, value], found.end()
        joined = False
    if values:
        yield start, end, values


def _value(word: str, known: Mapping[str, float], language: str) -> float | None:
    if word in known or language != "tr":
        return known.get(word)
    for length in range(len(word) - 1, 1, -1):
        root, suffix = word[:length], word[length:].lstrip("'")
        if root in known and root not in ("on", "bin") and _TURKISH_CASE.fullmatch(suffix):
            return known[root]
    return None


def _joined(values: Sequence[float], language: str) -> list[float]:
    """The numbers that a run of words stands for: twenty, five is 25, and three, four stay."""
    done: list[float] = []
    total = current = 0.0
    last = -1.0
    for value in values:
        if value >= 1000:
            total, current = total + max(current, 1) * value, 0
        elif value in (100, 12) and 0 < current < 100 and last < 100:
            current *= value
        elif language == "fr" and value == 20 and last == 4:
            current += 76
        elif last < 0 or _adds(current, value, language):
            current += value
        else:
            done.append(total + current)
            total, current = 0.0, value
        last = value
    return [*done, total + current]


def _adds(current: float, value: float, language: str) -> bool:
    if current == 0:
        return value < 1000
    if current % 100 == 0:
        return value < 100
    if language == "fr" and current % 100 in (60, 80) and 10 <= value < 20:
        return True
    if current % 100 == 10 and language in ("fr", "tr"):
        return value <= 9 and (language == "tr" or value >= 7)
    return current % 10 == 0 and current % 100 >= 20 and value < 10


def _plain(value: float) -> str:
    return f"{value:g}" if value < 1e6 else str(int(value))


NUMBER = re.compile(r"\d{1,3}(?:[ \u202f'\u2019]\d{3})+(?![\d])|\d+(?:[.,]\d+)*")
_CODE = re.compile(r"\d+(?:\.\d+){2,}")

_UNITS: dict[str, tuple[str, float]] = {
    name: (dimension, float(factor))
    for dimension, rows in {
        "length": "mm|millimeter|milimetre|millimetre|milimetro=.001 cm|centimeter|centimetre"
        "|zentimeter|centimetro|santim|santimetre|厘米|公分=.01 m|meter|metre|metro|米=1"
        " km|kilometer|kilometre|kilometro|公里|千米=1000",
        "mass": "mg|milligram|miligramo=1e-6 g|gr|gram|gramm|gramme|gramo|grammo|克=.001"
        " kg|kilo|kilogram|kilogramm|kilogramo|公斤=1 jin|斤=.5 t|tonne|ton|tonelada|吨=1000",
        "volume": "ml|milliliter|millilitre|mililitro|毫升=.001 cl|zentiliter|centilitre=.01"
        " dl|deziliter|decilitre|decilitro=.1 l|liter|litre|litro|升=1",
        "time": "s|sec|second|sekunde|segundo|seconde|saniye|秒=1 min|minute|minuto|dakika"
        "|dk|分钟=60"
        " h|hr|hour|stunde|std|hora|heure|saat|小时|ora=3600"
        " day|tag|dia|jour|gun|天|giorno=86400 week|woche|semana|semaine|hafta|周|星期=604800",
        "charge": "mah=.001 ah=1",
        "data": "kb=1 mb=1000 gb=1e6 tb=1e9",
        "share": "%|percent|pct|prozent|porciento|pourcent|yuzde=1",
        "angle": "°|degree|grad|grado|degre|derece|度=1",
    }.items()
    for names, factor in (row.rsplit("=", 1) for row in rows.split())
    for name in names.split("|")
}
_CURRENCIES = {
    name: code
    for code, names in {
        "euro": "€ eur euro euros",
        "dollar": "$ usd dollar dollars dolar dolares",
        "pound": "£ gbp pound pounds quid",
        "lira": "₺ tl try lira",
        "yuan": "元 块 ¥ yuan rmb cny kuai",
        "franc": "chf franken fr",
    }.items()
    for name in names.split()
}
_AFTER = re.compile(
    r"\s*-?\s*([%°€$£₺¥]|(?![\u3400-\u9fff])[^\W\d_]+|(?:分钟|小时|公里|千米|星期|公斤|毫升"
    r"|厘米|公分|[个位只条]?[\u3400-\u9fff]))"
)
_BEFORE = re.compile(r"([%€$£₺¥]|(?:\b(?:eur|usd|gbp|chf|tl|yuzde)))\s?$")
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
    """The word behind it, folded; empty if there is none."""
    start: int
    end: int
    written: str

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
            readings if word in ("mil", "mille", "bin") else frozenset()
        )
        end = after.end()
        after = _AFTER.match(text, end)
        word = after[1] if after else ""
    before = _BEFORE.search(text, max(0, found.start() - 8), found.start())
    unit = unit_of(word) or (unit_of(before[1]) if before else None)
    return Number(readings, unit, word, found.start(), end, written)


def unit_of(word: str) -> tuple[str, float] | None:
    """The unit that `word` (folded) names, in the singular or plural."""
    for form in (word, word.rstrip("s"), word.removesuffix("n"), word.removesuffix("en")):
        if form in _CURRENCIES:
            return _CURRENCIES[form], 1.0
        if form in _UNITS and (form == word or len(form) > 2 or HAN.match(form)):
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
    (re.compile(r"(\d+) ?(?:h|hr|hrs|hours?|stunden?|std|heures?|horas?|saat|小时)"
                r"(?: (?:and|und|y|et) )? ?([0-5]?\d)(?!\d)"), ("time", 1.0), 3600.0, 60.0),
    (re.compile(r"(\d+) ?(?:m|min|minutes?|minuten|minutos|dakika|分钟?)"
                r" ?(?:and|und|y|et)? ?([0-5]?\d) ?(?:s|sec|sek|saniye"
                r"|秒)"), ("time", 1.0), 60.0, 1.0),
    (re.compile(r"(\d) ?(?:m|米) ?(\d\d)(?!\d)"), ("length", 1.0), 1.0, 0.01),
)  # fmt: skip


def _mixed(text: str) -> Iterator[Number]:
    """Numbers of two units: 4h12, 1m90."""
    for pattern, unit, first, second in _MIXED:
        for found in pattern.finditer(text):
            value = rounded(int(found[1]) * first + int(found[2]) * second)
            yield Number(frozenset({value}), unit, "", found.start(), found.end(), found.group())
    for found in _HALVES.finditer(text):
        yield Number(
            frozenset({int(found[1]) + 0.5}), None, "", found.start(), found.end(), found.group()
        )
    for found in _HALF_HOUR.finditer(text):
        minutes = 1800.0 if "3" not in found.group() else 2700.0
        yield Number(frozenset({minutes}), ("time", 1.0), "", found.start(), found.end(), "")


_HALVES = re.compile(r"(\d+) (?:and a half|y media?|et demie?|bucuk|e mezz[oa]|e mei[ao]|个?半)")
_HALF_HOUR = re.compile(
    r"half an? hour|half hour|halbe stunde|media hora|demi-heure|yarim saat|半(?:个)?小时"
    r"|dreiviertelstunde|tre quarti d'ora"
)


def rounded(value: float) -> float:
    """A value that compares equal to the same value computed in another way."""
    return round(value, 6)


def derived(sources: Sequence[Number], *, times: bool) -> set[float]:
    """Sums and differences of two numbers, in base units; with `times` products, too."""
    values = sorted({one for number in sources for one in number.bases()})[:40]
    made: set[float] = set()
    for one, other in combinations(values, 2):
        made |= {rounded(one + other), rounded(other - one)}
        if times:
            made |= {rounded(one * other)}
            made |= {rounded(a / b) for a, b in ((one, other), (other, one)) if b}
    return made


def is_near(value: float, others: Iterable[float]) -> bool:
    """Whether `value` is within a tenth of one of `others`."""
    return any(abs(value - one) <= 0.1 * abs(one) for one in others)
