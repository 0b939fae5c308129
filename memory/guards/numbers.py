"""Numbers of a text: written in digits or words, with units, and what follows from them. Pure.

A number may be read in several ways (1.900 is 1900 or 1.9). Whoever checks a fact asks whether any
reading of its number is among the readings of its sources.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
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
        " dozen|dozens=12 twenties=20 fifties=50"
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
    "十分|(?:过|这|前)两天|千万(?=不|别|要|记)|万一|一(?:起|下|直|定|样|般|共|点|些|会|边|周|旦)"
)


def in_digits(text: str, language: str | None, *, strict: bool = False) -> str:
    """The folded `text` with the numbers of its language in digits; 1 stays a word.

    `strict` leaves ordinals and words such as "both" alone.
    """
    folded = fold(_VULGAR.sub(_vulgar, text))
    folded = _HALF_DOZEN.sub("6", _PERCENT.sub("%", _SCORE.sub("20 ", folded)))
    if HAN.search(folded):
        folded = _CHINESE_PERCENT.sub(_chinese_percent, folded)
        folded = _NO_NUMBERS.sub(lambda found: "·" * len(found.group()), folded)
        folded = _CHINESE.sub(lambda found: _chinese_digits(found.group()), folded)
        folded = _TENTHS.sub(lambda found: f"{found[1]}{found[2] or 0}%", folded)
        folded = _SPLIT.sub(r"\1.\3\2", folded)
    if language == "de":
        return _WORD.sub(_german if strict else _german_loose, folded)
    if language == "tr":
        folded = _AT_TEN.sub("10", folded)
    if language not in _WORDS:
        return folded
    known = _WORDS[language] if strict else _WORDS[language] | _LOOSE.get(language, {})
    return _composed(folded, language, known)


_VULGAR = re.compile(r"(\d+)?\s?([¼½¾⅓⅔⅕⅛])|(?<![\d/.,])(\d+) ([1-7])/([2-8])(?![\d/.])")
_SCORE = re.compile(r"(?<!\w)an? score (?=of )")
_TENTHS = re.compile(r"(?<![\d.])([1-9])成([1-9])?")
_SPLIT = re.compile(r"(?<![\d.])(\d+)(度|米|块)(\d{1,2})(?![\d.%]|分|厘米|公分|号|月|年|个|点)")
"""37度2 is 37.2度, and 2米65 is 2.65米."""
_AT_TEN = re.compile(
    r"(?<=saat )on(?:a|u|da|dan)(?!\w)|(?<!\w)on[au](?= (?:ceyrek|bes|on|yirmi|\d+) (?:var"
    r"|kala|gec))"
)
"""Turkish "at ten" looks like "to it"."""


def _vulgar(found: re.Match[str]) -> str:
    """A number with a fraction as a decimal: 5½, 5 1/2."""
    if found[2]:
        whole, part = found[1], unicodedata.numeric(found[2])
    else:
        whole, part = found[3], int(found[4]) / int(found[5])
    return f"{int(whole or 0) + part:g}"


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
            made += folded[done:start]
            made += " " if _BEHIND_DIGIT.search(made) else ""  # "Ward 6 one hundred" is no 6 100.
            made += " ".join(map(_plain, _joined(values, language)))
            done = end
    return made + folded[done:]


_BEHIND_DIGIT = re.compile(r"\d $")


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
        " km|kilometer|kilometre|kilometro|公里|千米=1000 mile|mi|milla|meile|英里=1609.344"
        " ft|foot|feet|fus|pie|pied=.3048 inch|inche|zoll|pulgada|pouce|inc|英寸=.0254 yd"
        "|yard=.9144",
        "mass": "mg|milligram|miligramo=1e-6 g|gr|gram|gramm|gramme|gramo|grammo|克=.001"
        " kg|kilo|kilogram|kilogramm|kilogramo|公斤=1 jin|斤=.5 t|tonne|ton|tonelada|吨=1000",
        "volume": "ml|milliliter|millilitre|mililitro|毫升=.001 cl|zentiliter|centilitre=.01"
        " dl|deziliter|decilitre|decilitro=.1 l|liter|litre|litro|升=1",
        "area": "m2|sqm|m²|sqm|quadratmeter|metrekare|平方米|平米=1 hectare|hektar|hectarea|ha"
        "|公顷=10000",
        "months": "month|monat|mese|mois|ay|个月=1 year|yr|jahr|ano|annee|an|yil|sene|年=12",
        "time": "ms|millisecond|millisekunde|milisegundo|milliseconde|milisaniye|毫秒=.001 s"
        "|sec|second|sekunde|segundo|seconde|saniye|秒=1 min|minute|minuto|dakika"
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
        "pound": "£ gbp pound pounds quid lb lbs",
        "lira": "₺ tl try lira",
        "yuan": "元 块 ¥ yuan rmb cny kuai",
        "franc": "chf franken fr",
    }.items()
    for name in names.split()
}
_AFTER = re.compile(
    r"\s*-?\s*([%°€$£₺¥]|m2(?!\w)|sq\.? ?m(?!\w)|square met\w+|metres? carres?|metros? cuadrados?|"
    r"(?![\u3400-\u9fff])[^\W\d_]+|(?:分钟|小时|公里|千米|星期|公斤|毫升"
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


_CASES = re.compile(r"'?(?:l[iu][kg]\w*|[dt][ae]n?|[iu]|y?[ae]|l[iu])$")
"""Turkish endings of a unit: 3 saatlik, 5 metreye."""


def unit_of(word: str) -> tuple[str, float] | None:
    """The unit that `word` (folded) names, in the singular or plural."""
    if word.startswith(("sq", "metre carre", "metres carre", "metro c", "metros c")):
        return "area", 1.0
    forms = [word, word.rstrip("s"), word.removesuffix("n"), word.removesuffix("en")]
    for form in [*forms, _CASES.sub("", word)]:
        if form in _CURRENCIES:
            return _CURRENCIES[form], 1.0
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
        whole = found[1] or found[3] or "1"
        value = (int(whole) if whole.isdigit() else 1) + (
            0.25 if _QUARTER.search(found.group()) else 0.5
        )
        after = _AFTER.match(text, found.end())
        named = unit_of(found[4] or (after[1] if after else ""))
        if named is not None or found[1] or found[3] or found[5]:
            yield Number(frozenset({value}), named, "", found.start(), found.end(), found.group())
    for value, pattern in FRACTIONS:
        for found in pattern.finditer(text):
            of = _OF.match(text, found.end())
            # A part of a thing that is no unit is a share.
            whole_unit = (unit_of(of[1]) if of else None) or PART
            yield Number(frozenset({value}), whole_unit, "", *found.span(), found.group())


PART = ("part", 1.0)
"""The unit of fractions in words: two thirds, un quart, yarısı."""

_ONES = "an?|one|ein|eine[nrm]?|une?|una|bir|uno"
_HALF = (
    "and a half|and 1/2|y media?|et demie?|bucuk|e mezz[oa]|e mei[ao]|个?半"
    "|and a quarter|y cuarto|et quart"
)
_HALVES = re.compile(
    rf"(?<![\w.,])(\d+) ?(?:{_HALF})(?!\w)"
    rf"|(?<!\w)((?:(\d+|{_ONES}) )?([a-z]+) (?:and a half|y media?|et demie?|and a quarter))(?!\w)"
    r"|(?<!\w)(?:(bir)) bucuk"
)
_QUARTER = re.compile("quar|cuart")
FRACTIONS = (
    (0.5, re.compile(
        r"(?<!\w)(?:(?:one |a )?half(?= (?:of|the|an?|hour|full|empty)(?!\w)| ?[.;,!)]|$)"
        r"|(?:die |zur )?halfte"
        r"|halbe[rsnm]?(?= )|la mitad|media(?= hora)|la moitie|demi(?=-)|yarisi|yarim(?= [a-z]))"
        r"|半(?=个?小时)|一半")),
    (0.25, re.compile(
        r"(?<!\w)(?:(?:a|one) quarter(?= of)|ein viertel(?= )|viertel(?=stunde)|un cuarto"
        r"|(?:una|la) cuarta parte|(?:un|d'un) quart(?!\w)|ceyregi|ceyrek(?= saat))|一刻(?=钟)"
        r"|4分之一|四分之一")),
    (0.75, re.compile(
        r"(?<!\w)(?:3[ -]quarters|dreiviertel|3 ?viertel|3 cuartos|3 cuartas partes|3 quarts"
        r"|(?:dortte|4) 3|tre quarti)|三刻(?=钟)|3刻(?=钟)|4分之3")),
    (1 / 3, re.compile(
        r"(?<!\w)(?:(?:a|one) (?:third|3)(?= (?:of|full|empty|off|done|left)|\W*$| ?[.;,!])"
        r"|(?:ein )?drittel|un tercio"
        r"|(?:una|la) tercera parte|(?:un|d'un) tiers|(?:ucte|3) (?:bir|1)\w*)|3分之一|三分之一")),
    (2 / 3, re.compile(
        r"(?<!\w)(?:2[ -](?:thirds|3s)|2 drittel|zweidrittel|2 tercios|(?:las )?2 terceras partes"
        r"|(?:les )?2 tiers|(?:ucte|3) (?:2|ikisi))|3分之2")),
)  # fmt: skip
"""Fractions in words."""
_OF = re.compile(r"(?: ?of an? | ?of one | an? | d'| d'une |-| de | )?([a-z]+|个?小时|钟)")


def rounded(value: float) -> float:
    """A value that compares equal to the same value computed in another way."""
    return float(f"{value:.9g}")
