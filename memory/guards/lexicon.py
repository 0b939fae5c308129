"""Words of several languages, as the grounding rules need them. Pure tables and look-ups.

English, German, Spanish, French, Turkish and Chinese are known; a few others are told apart from
them. A text in any other language is read as far as its digits go.
Everything is compared folded: in lower case and without accents, letter by letter, so that places
in the folded text are places in the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from functools import cache, lru_cache

from memory.text import (
    DATE_WORDS,
    MONTH_NUMBERS,
    SENTENCE_END,
    WEEKDAY_NUMBERS,
    cached_by_text,
    regex,
    sentences,
    stem,
)

_PLAIN = str.maketrans(
    {
        **dict(zip("ßøłæœðþđıİ’‘´`ʼ", "solaoptdii'''''", strict=False)),
        "\u00a0": " ",
        "\u202f": " ",
        "\u2009": " ",
    }
)
_HAN = "\u3400-\u4dbf\u4e00-\u9fff"
HAN = regex(f"[{_HAN}]")
_OTHER_SCRIPT = regex("[\u0370-\u1fff\u3040-\u30ff\uac00-\ud7af]")
_WORD = regex(rf"[{_HAN}]|(?:(?![{_HAN}])[^\W\d_])+(?:'(?:(?![{_HAN}])[^\W\d_])+)?")


@cached_by_text(4_096)
def fold(text: str) -> str:
    """`text` in lower case and without accents; every character keeps its place."""
    return "".join(map(_folded, unicodedata.normalize("NFC", text)))


def joined(folded: str) -> str:
    """A folded text without blanks and punctuation."""
    return re.sub(r"[\W_]+", "", folded)


@lru_cache(maxsize=4_096)
def _folded(character: str) -> str:
    plain = character.translate(_PLAIN)
    return unicodedata.normalize("NFKD", plain)[:1].lower().translate(_PLAIN)[:1] or character


def word_set(table: str) -> frozenset[str]:
    """The words of a table."""
    return frozenset(table.split())


def words_of(folded: str) -> list[str]:
    """The words of a folded text; a Han character is a word."""
    return _WORD.findall(folded)


def _sets(table: str) -> dict[str, frozenset[str]]:
    """A table with one language a paragraph: its code, then its words."""
    rows = (row.split() for row in table.strip().split("\n\n"))
    return {code: frozenset(words) for code, *words in rows}


FUNCTION_WORDS = _sets("""
en a about after all also am an and any are as at be been before but by can could did do does
 doesn't don't for from get got had has have he her hers him his how i i'll i'm i've if in into is
 isn't it it's its just me my no not now of off on only or our out over please she should so some
 than that that's the their them then there these they this those to too under until up us very was
 we were what when where which while who whose why will with would yet you your because being both
 each every few more most much nor once other own same such through during against between again
 without within upon whom let's can't won't didn't hasn't haven't wasn't weren't we'll you're
 himself herself nobody

de aber alle alles als also am an auch auf aus bei beim bin bis bist bitte da dann daraus das dass
 dem den der des die dies diese dieser dieses doch dort draus du durch ein eine einem einen einer
 eines er erst es
 etwas fur gegen gerade hab habe haben hat hatte hatten ich ihm ihn ihnen ihr ihre ihrem ihren im
 in ins ist ja jetzt kann kein keine keinen man mehr mein meine mich mir mit nach nicht nichts noch
 nun nur ob oder ohne schon sein seine seit sich sie sind so soll statt uber um und uns unser unter
 vom von vor war waren was weil wenn wer werden wie wieder wir wird wo wurde wurden zu zum zur

es a al algo ante aqui asi aun aunque bien cada como con cual cuando de del desde donde dos durante
 e el ella ellas ellos en entre era eran es esa ese eso esta estaba estan este esto fue ha habia
 han hasta hay he hoy la las le les lo los mas me mi mis muy nada ni no nos nosotros o os otra otro
 para pero poco por porque que quien se sea ser si sido sin sobre solo son su sus tambien te tengo
 tenia tiene tienen todavia todo todos tu un una unas uno unos va vamos voy y ya yo

fr a ai alors apres au aussi aux avait avant avec avez avons c'est ca ce cela ces cet cette chez
 comme d'un d'une dans de deja depuis des donc du elle elles en encore entre est et etait ete etre
 eu faire fait faut il ils j'ai je jusqu'au l'on la le les leur leurs lui ma mais me meme mes moi
 mon n'a n'ai n'est ne ni nos notre nous on ont ou par pas peut plus pour qu'il qu'on quand que qui
 quoi sa sans se sera ses si son sont sous sur ta te tes toi ton tous tout tres tu un une vers
 vient vos votre vous y

tr acaba ama artik asla bana bazi belki ben benden beni benim bir biraz biri biz bize bizim bu buna
 bunu bunun cok cunku da daha de degil diye en eger gibi hala hem hep hepsi her hic icin ile ise
 kadar ki kim mi mu nasil ne neden o olarak oldu olan olacak ona onu onun orada sadece sana sen
 sonra su ve veya yarin bugun dun saat sabah aksam gunu geliyor oldugu icinde siz sizi yine bence
 iyi hemen var ya yani yok yuzunden zaten gerek lazim once sey iki uzere gore baska

it a ai al alla alle anche ancora avere c'e che chi ci come con cosa da dal dalla degli dei del
 della delle di e ed era gia gli ha hai hanno ho i il in io la le lo ma mi mia mio nei nel nella
 non nostro o ogni per perche piu poi quando quella quello questa questo se sei si sono sta stato
 su sua suo sul tra tutti un una uno va

pt a ainda ao aos as ate com como da das de dela dele depois do dos e ela ele em entao era essa
 esse esta este eu foi fica ha isso ja lhe mais mas me meu minha muito na nao nas nem no nos nossa
 nosso num numa o os ou para pela pelo por porque quando que quem sao se sem ser seu so sua tambem
 tem tenho um uma vai voce vou

pl ale albo bardzo bez bedzie bo byc byl byla bylo ci co czy dla gdzie go ich ja jak jednak jego
 jej jest jestem juz kiedy ktora ktore ktory ma mam mi mnie moj moja na nad nam nas nie niz o od on
 ona oni po pod przed przez przy sa sie swoj ta tak tam te tego tej ten tez to tu tylko tym w we
 wiec z za ze i

nl aan al alle als bij dan dat de deze die dit doen door dus een en er geen had hebben heeft het
 hij hoe ik in is je kan maar me meer met mijn moet na naar niet nog nu of om ons ook op over te
 toch toen tot uit van veel voor want waren was wat we wel werd wij worden wordt zal ze zij zijn zo
""")
"""They tell languages apart, and carry no content."""

_SIGNS = {
    "en": r"(?:ing|ed|[^aeious]ly|ght|wn|'s)\b|\bth|wh|sh|\bkn|ee|oo|ck",
    "de": r"(?:ung|en|cht|tz|st|lich|ige?)\b|sch|[äöüß]|\bge|ei|ie",
    "es": r"(?:cion|ado|ido|aron|ando|iendo|dad|os|as)\b|[ñ¿¡áíóú]|\bll|que|\bes[ct]",
    "fr": r"(?:aient|ait|eux|eau|ees?|ent|oir|age|ique|eur)\b|[çèêàùœ]|oi|\b[ldnsj]'|é\b|que\b",
    "tr": r"(?:yor|lar|ler|lari|leri|iyor|acak|ecek|mak|mek|tim|dim|dum|dik)\b|[ğşı]|İ|'[aei]n?\b"
    r"|\b\w+[aeiouöü](?:di|du|yi|ya|ye|da|de)\b",
    "it": r"(?:zione|are|ere|ato|ita|ello|etto|ano)\b|[ìò]|gli|cch|zz",
    "pt": r"(?:cao|coes|ado|eiro|ais|am)\b|[ãõ]|nh|lh",
    "pl": r"(?:ego|emu|ych|ami|ach|owi|sci|cie|ala|alem|uje)\b|sz|cz|rz|[ąćęłńśźż]|dz",
    "nl": r"(?:en|ij|lijk|heid|je|isch)\b|ij|aa|uu|oe|\bge|sch",
}
_COMPILED = {code: regex(signs) for code, signs in _SIGNS.items()}
_OWN = {
    "tr": regex(r"(?<!\w)(?:[a-z\u00e7\u00f6\u00fc]+[\u011f\u015f\u0131]|[\u015f\u0131][a-z])\w*"),
    "es": regex(r"[\u00bf\u00a1]|(?<!\w)[a-z]+\u00f1\w*"),
    "de": regex(r"(?<!\w)[a-z\u00e4\u00f6\u00fc]+\u00df\w*"),
    "pt": regex(r"(?<!\w)[a-z]+[\u00e3\u00f5]\w*"),
    "pl": regex(r"(?<!\w)\w*[ąćęłńśźż]\w*"),
}
"""Letters that no other known language has, in words that are no names."""
_SIGN = 0.35
"""Weight of a spelling that is usual in a language, against a function word's 1."""


@cached_by_text(4_096)
def _scores(text: str) -> dict[str, float]:
    found = words_of(fold(text))
    lower = text.replace("I", "ı").lower() if "İ" in text else text.lower()
    return {
        code: sum(word in known for word in found)
        + _SIGN * len(_COMPILED[code].findall(lower))
        + (len(_OWN[code].findall(text)) if code in _OWN else 0)
        for code, known in FUNCTION_WORDS.items()
    }


@cached_by_text(4_096)
def languages(text: str) -> tuple[str, ...]:
    """The languages that `text` may well be in, the likeliest first; empty if unknown."""
    letters = sum(map(str.isalpha, text))
    if len(HAN.findall(text)) * 3 >= max(letters, 1):
        return ("zh",)
    if len(_OTHER_SCRIPT.findall(text)) * 2 >= max(letters, 1):
        return ()
    if _strange(text) >= _STRANGERS:
        return ()
    score = _scores(text)
    best = max(score.values())
    likely = [code for code in score if best >= 0.7 and score[code] >= 0.7 * best]
    return tuple(sorted(likely, key=lambda code: -score[code]))


def telling(words: Iterable[str], text: str) -> tuple[str, ...]:
    """The folded `words` that carry content in the language of `text`; all if none does.

    They may be stems. English stop words are left out where terms are made.
    """
    found, code = tuple(words), next(iter(languages(text)), "en")
    common = () if code == "en" else _function_stems(code)
    return tuple(one for one in found if one not in common) or found


@cache
def _function_stems(code: str) -> frozenset[str]:
    words = FUNCTION_WORDS.get(code, frozenset())
    return words | {stem(one) for one in words}


def may_be_english(text: str) -> bool:
    """Whether no other language is likelier: the Italian "I cesti" are no English "I"."""
    return languages(text)[:1] in ((), ("en",))


def is_familiar(text: str) -> bool:
    """Whether the rules know the language of `text`, or it has too few words to tell."""
    likely = languages(text)
    if HAN.search(text) and likely == ("zh",):
        return True
    if _OTHER_SCRIPT.search(text):
        return False
    found, strange = words_of(fold(text)), _strange(text)
    best = max(_scores(text)[code] for code in READ)
    is_read = not likely or any(code in READ for code in likely)
    clear = is_read and (len(likely) == 1 or best >= _KNOWN * len(found))
    return (clear and strange < _STRANGERS) or (len(found) < _FEW and not strange)


def _strange(text: str) -> int:
    """How many of its words have letters that no known language has."""
    return sum(_STRANGE.search(one) is not None for one in text.split() if one.islower())


READ = ("en", "de", "es", "fr", "tr")
"""The languages whose words are known, Chinese aside."""
_FEW = 4
_KNOWN = 0.21
"""Least score for each word of a text in a language that is known."""
_STRANGE, _STRANGERS = regex("[čšžđřěůőűșțăåøæð]"), 2
"""Letters that the known languages lack, and how many words with them make a text strange."""
_CHINESE_FUNCTION = frozenset(
    "的了在是我有和就不人都一上也很到说要去你会着没看好自己这那他她它们个把被给跟与及之其而且或但对从向以为于啊吧呢吗哦嗯已经还又再才只最更这些那里么什"
)


@lru_cache(maxsize=8_192)
def content(text: str, codes: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """The content words of `text`, stemmed if English; of Chinese, characters.

    `codes`: its languages, if they are known from a longer text.
    """
    folded = fold(text)
    likely = languages(text) if codes is None else codes
    stops: Collection[str] = frozenset[str]().union(
        *(FUNCTION_WORDS.get(code, frozenset()) for code in likely)
    )
    found: list[str] = []
    for word in _RUNS.findall(folded):
        if HAN.match(word):
            found += [one for one in word if one not in _CHINESE_FUNCTION]
            continue
        bare = word.partition("'")[0] if word.partition("'")[0] not in _ELIDED else word[2:]
        if len(bare) > 2 and bare not in stops and word not in stops:
            found.append(stem(bare) if "en" in likely else bare)
    return tuple(found)


_ELIDED = word_set("l d j n s c m t qu jusqu lorsqu puisqu")
_RUNS = regex(rf"[{_HAN}]+|(?:(?![{_HAN}])[^\W\d_])+(?:'(?:(?![{_HAN}])[^\W\d_])+)?")


def alike(one: str, other: str) -> bool:
    """Whether two content words are forms of one word, or parts of a compound."""
    if one == other:
        return True
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    if short[:4] != long[:4]:
        return len(short) >= 5 and short in long
    if len(short) < 4:
        return False
    same = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(short))
    return same == len(short) >= 5 or same >= max(4, round(0.6 * len(long)))


def shared(words: Collection[str], others: Collection[str]) -> list[str]:
    """The distinct words of `words` that are like one of `others`."""
    return [one for one in dict.fromkeys(words) if any(alike(one, each) for each in others)]


OF_DATES = frozenset(map(fold, DATE_WORDS))
MONTH_OF = {fold(name): number for name, number in MONTH_NUMBERS.items()}
MONTH = "|".join(sorted(MONTH_OF, key=len, reverse=True))
WEEKDAY_OF = {fold(name): number for name, number in WEEKDAY_NUMBERS.items()} | dict.fromkeys(
    ("pazar gunu", "pazara", "pazar sabahi", "pazar aksami"), 6
)
"""A Turkish Sunday alone is a market, too."""
WEEKDAY = "|".join(sorted(WEEKDAY_OF, key=len, reverse=True))

_OPEN = regex(
    r"boxing day|epiphan|dreikonig|reyes(?! \w+ez)|heiligabend|nochebuena|nochevieja|toussaint"
    r"|easter|ostern|pascua|paques|paskalya|christmas|weihnacht|navidad|noel|xmas|bayram|ramazan"
    r"|ramadan|new year|neujahr|silvester|ano nuevo|nouvel an|yilbasi|春节|中秋|国庆|元旦|端午|清明"
    r"|除夕|carnival|carnaval|karneval|fasching|pfingst|pentec|whitsun|thanksgiving|halloween"
    r"|advent|nikolaus|valentin|semana santa|puente|holiday|ferien|vacaciones|vacances|tatil"
    r"|放假|dieser tage|trimestre|quartal|kurban|bairam|solstice|\bnye\b|mother's day"
    r"|muttertag|father's day|vatertag|bank holiday|feiertag|festivo|ferie"
)
"""Words for days that the rules do not know."""


def is_feast(digits: str) -> bool:
    """Whether a text names a day that the rules cannot resolve, such as Easter."""
    return _OPEN.search(digits) is not None


_END = regex(
    rf"{SENTENCE_END}|(?<=[。！？；;])[”」]?|\s[-\u2013\u2014]\s|(?<=[!?])(?=\w)"
    r"|(?<=[\U0001f300-\U0001faff])\s+(?=\w)"
)
_ORDINAL = regex(r"(?:^|\W)[0-3]?\d\.\s*$")


@cached_by_text(2_048)
def sentences_of(text: str) -> tuple[str, ...]:
    """The sentences of a text in any language; a semicolon, a dash and an emoji end one, too."""
    return tuple(sentences(text, _END, _is_ordinal))


def _is_ordinal(before: str, behind: str) -> bool:
    """Whether the point at the end of `before` belongs to an ordinal."""
    if not _ORDINAL.search(before):
        return False
    first, code = (words_of(fold(behind)) or [""])[0], languages(before)[:1]
    return (
        (first in MONTH_OF and first != "may")
        or (code == ("de",) and first not in FUNCTION_WORDS["de"])
        or (code in (("de",), ("tr",), ("pl",), ()) and behind[:1].islower())
    )


def _values(table: str) -> dict[str, float]:
    """`one=1 two=2 ...`; words without a value count up from the last one."""
    made: dict[str, float] = {}
    value = -1.0
    for word in table.split():
        name, _, given = word.partition("=")
        value = float(given) if given else value + 1
        made.update(dict.fromkeys(name.split("|"), value))
    return made


TURKISH_NUMBERS = _values(
    "sifir bir iki uc dort bes alti yedi sekiz dokuz on yirmi=20 otuz=30 kirk=40 elli=50 altmis=60 "
    "yetmis=70 seksen=80 doksan=90 yuz=100 bin=1000 milyon=1e6 duzine=12"
)
RESPELLED = {
    **dict.fromkeys(("veintiun", "veintiuna"), "veintiuno"),
    "veintidos": "veintid\u00f3s",
    "veintitres": "veintitr\u00e9s",
    "veintiseis": "veintis\u00e9is",
    "dieciseis": "diecis\u00e9is",
    "millon": "mill\u00f3n",
    "funf": "f\u00fcnf",
    "zwolf": "zw\u00f6lf",
}
"""Number words that people write without their accents."""
NUMBER_WORDS = {
    "fr": _values(
        "dizaine=10 douzaine=12 quinzaine=15 vingtaine=20 trentaine=30 quarantaine=40"
        " cinquantaine=50 soixantaine=60 centaine=100"
    ),
    "de": _values(
        "dutzend=12 anderthalb|eineinhalb=1.5 zweieinhalb dreieinhalb viereinhalb funfeinhalb"
        " sechseinhalb siebeneinhalb anderthalbtausend=1500 zweieinhalbtausend=2500"
    ),
    "en": _values("dozen|dozens=12 twenties=20 fifties=50 fiver=5 tenner=10"),
    "es": _values(
        "decena=10 veintena=20 treintena=30 cincuentena=50 centenar=100 docena|docenas=12"
    ),
    "pt": _values("duzia|duzias=12 dezena=10 centena=100"),
    "it": _values(
        "dozzina|dozzine=12 decina=10 ventina=20 trentina=30 cinquantina=50 centinaio=100"
    ),
    "nl": _values("dozijn=12 tiental=10 twintigtal=20 honderdtal=100 anderhalf|anderhalve=1.5"),
}
"""Words for numbers that are nouns, and halves."""
RELATIVE_DAYS = {
    word: days
    for days, (words, phrases) in {
        0: (
            "today tonight heute heut sofort hoy aujourd'hui bugun bugunku 今天 今晚 今早 今日",
            "from now|as of now|ab jetzt|desde ahora|des maintenant|bu aksam"
            "|ce soir|ce matin|this morning|this afternoon|this evening|esta noche|esta tarde"
            "|esta manana|bu sabah",
        ),
        1: (
            "tomorrow tmrw tmr tmw 2moro tomorow tommorow tommorrow"
            " morgen manana demain yarin yarinki 明天 明早 明晚 明日",
            "ertesi gun|in the morning",
        ),
        2: (
            "ubermorgen 后天 apres-demain",
            "day after tomorrow|pasado manana|obur gun|yarindan sonra",
        ),
        3: ("大后天", "uberubermorgen"),
        -1: (
            "yesterday yest yday gestern ayer anoche hier dun dunku 昨天 昨晚 昨日",
            "last night|hier soir",
        ),
        -2: (
            "vorgestern anteayer antier avant-hier 前天",
            "day before yesterday|evvelsi gun|onceki gun|antes de ayer",
        ),
    }.items()
    for word in [*words.split(), *phrases.split("|")]
}
"""Words for a day -> its days from the day of speaking."""

LOOSE_NUMBERS: dict[str, dict[str, float]] = {
    "en": _values("both|twice|couple|pair|twins|double=2 thrice|triplets|trio=3 quartet=4"),
    "de": _values(
        "beide|beiden|paar|zweimal|zwilling|zwillinge|doppelt=2 dreimal|drilling=3 viermal funfmal "
        "zweit=2 dritt viert funft sechst siebt acht neunt zehnt"
    ),
    "es": _values("ambos|ambas|par|segundo|segunda|gemelos|doble=2 tercer=3"),
    "fr": _values("paire|jumeaux|deuxieme|seconde|double=2"),
    "tr": _values("ikisi|cift|ikiz|ikizler=2"),
}
"""Words that name a number and may mean something else: they count in sources alone."""
CURRENCIES = {
    name: code
    for code, names in {
        "euro": "€ eur euro euros",
        "dollar": "$ usd dollar dollars dolar dolares",
        "pound": "£ gbp pound pounds quid lb lbs",
        "lira": "₺ tl try lira",
        "yuan": "¥ yuan rmb cny kuai",
        "franc": "chf franken fr",
    }.items()
    for name in names.split()
}
