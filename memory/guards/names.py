"""Proper names of a fact, and whether its sources have them. Pure.

A name may be inflected (Turkish cases, genitives), written in another script, or translated (Köln,
Cologne). A capital letter makes a name only where the language uses none for common nouns, so a
German noun counts as a name in a few places alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

from memory.guards.lexicon import FUNCTION_WORDS, HAN, alike, fold, joined, languages, word_set
from memory.guards.mood import sentences
from memory.text import cached_by_text


class Name(NamedTuple):
    """A word that is, or may be, a proper name."""

    written: str
    key: str
    """Folded, without a case suffix behind an apostrophe."""
    sure: bool
    """Its place leaves no doubt that it is a name."""


_TITLES = word_set(
    """
    mr mrs ms miss dr prof professor sir madam aunt auntie uncle cousin coach father sister
    brother herr frau dr tante onkel oma opa pfleger schwester herrn kollege kollegin familie
    doktor senor senora sra sr don dona tia tio primo prima doctor doctora profesor profesora
    monsieur madame mme m mlle tante oncle maitre docteur professeur cousin cousine bay bayan
    sayin hoca abla abi teyze amca dayi doktor signor signora dottor zia zio senhor senhora
    mevrouw meneer
    """
)
_BEHIND_TITLES = word_set(
    """
    bey hanim hoca abla abi teyze amca usta efendi
    """
)
_COMMON = word_set(
    """
    selon laut gemass zufolge segun gore according apparently
    i ok god internet web email tv monday tuesday wednesday thursday friday saturday sunday
    january february march april may june july august september october november december mon tue
    wed thu fri sat sun utc cet gmt am pm english german french spanish turkish chinese italian
    japanese portuguese dutch russian american british european swiss austrian polish greek arabic
    mandarin christmas easter carnival ramadan halloween new year's eve year spring summer autumn
    winter fall festival lent advent pentecost whitsun eid lunar lantern epiphany mother's
    father's day boxing room hall unit flat floor no class line route gate platform station lake
    river mount mountain street road square avenue bridge church school university hospital hotel
    museum library park north south east west old town city island sea ocean bay black forest
    great saint st san santa prof euro euros eur usd gbp chf tl lira yuan pm id pdf app wifi wi-fi
    iban vat north enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre
    diciembre ocak subat mart nisan mayis haziran temmuz agustos eylul ekim kasim aralik pazartesi
    sali carsamba persembe cuma cumartesi pazar turkce ingilizce almanca turk alman bey hanim
    lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes miercoles jueves viernes
    sabado domingo
    """
)
_TRANSLATED = [
    frozenset(group.split())
    for group in fold("""
    köln cologne colonia colônia 科隆
    münchen munich múnich monaco münih monachium 慕尼黑
    wien vienna viena vienne viyana 维也纳
    nürnberg nuremberg
    hannover hanover
    genf geneva ginebra genève cenevre ginevra 日内瓦
    zürich zurich zúrich zurigo 苏黎世
    basel bâle basilea
    brüssel brussels bruselas bruxelles brüksel 布鲁塞尔
    london londres londra 伦敦
    paris parís parigi 巴黎
    rom rome roma 罗马
    mailand milan milán milano milão 米兰
    venedig venice venecia venise venedik venezia 威尼斯
    florenz florence florencia firenze floransa
    neapel naples nápoles napoli
    turin torino turín
    genua genoa génova gênes genova
    lissabon lisbon lisboa lisbonne lizbon 里斯本
    sevilla seville séville
    saragossa zaragoza
    prag prague praga prag 布拉格
    warschau warsaw varsovia varsovie varşova
    krakau krakow cracow cracovia cracovie
    moskau moscow moscú moscou moskova москва 莫斯科
    kopenhagen copenhagen copenhague kopenhag
    athen athens atenas athènes atina
    belgrad belgrade belgrado
    bukarest bucharest bucarest bükreş
    kairo cairo caire kahire
    peking beijing pekín pékin pekin 北京
    shanghai schanghai shanghái 上海
    istanbul estambul
    antwerpen antwerp amberes anvers
    gent ghent gante gand
    brügge bruges brujas brugge
    straßburg strasbourg estrasburgo
    luzern lucerne lucerna
    mainz mayence maguncia
    regensburg ratisbon
    bodensee constance constanza
    donau danube danubio tuna
    rhein rhine rin rhin ren
    alpen alps alpes alpler
    türkei turkey turquía turquie türkiye turkiye
    deutschland germany alemania allemagne almanya germania 德国
    österreich austria autriche avusturya 奥地利
    schweiz switzerland suiza suisse isviçre svizzera 瑞士
    frankreich france francia fransa 法国
    spanien spain españa espagne ispanya spagna 西班牙
    italien italy italia italie italya 意大利
    griechenland greece grecia grèce yunanistan 希腊
    england inglaterra angleterre ingiltere 英国
    schottland scotland escocia écosse iskoçya
    irland ireland irlanda irlande
    norwegen norway noruega norvège norveç
    schweden sweden suecia suède isveç
    dänemark denmark dinamarca danemark danimarka
    polen poland polonia pologne polonya
    ungarn hungary hungría hongrie macaristan
    niederlande netherlands holland países hollanda
    japan japón japon japonya 日本
    china chine çin cina 中国
    romania rumänien rumanía roumanie romanya
    marokko morocco marruecos maroc fas
    lüttich liège lieja
    maastricht
    danzig gdansk
    breslau wroclaw
    izmir smyrna
    """)
    .strip()
    .split("\n")
]
_TOKEN = re.compile(r"[^\W\d_]+(?:[-'\u2019.&][^\W\d_]+)*")
_HAN_NAME = re.compile(
    "([\u4e00-\u9fff])(教授|老师|医生|大夫|先生|女士|师傅|经理|主任|护士|老板|太太|奶奶|爷爷|阿姨|叔叔|总|姐|哥|嫂|婶|叔|姨|伯|导|队)"
)
_HAN_SURNAMES = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任"
    "沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔"
    "向汤温康施文牛樊葛邢安齐易乔伍庞颜倪庄聂章鲁岳翟殷詹申欧耿关兰焦俞左柳甘祝包宁尚符舒阮柯纪梅童凌毕单"
    "裴霍代成苗谷盛曲翁冉骆蓝路游辛靳管柴蒙鲍华喻祁蒲房滕屈饶解牟艾尤阳时穆农司卓古吉缪简车项连芦麦褚娄窦戚岑"
)
_HAN_NICKNAME = re.compile("[小老阿]([\u4e00-\u9fff])")
_NO_SURNAMES = frozenset("时包麦苗龙马车路金石白黄花时季文方温关成常家")
_DIGRAPHS = (("ae", "a"), ("oe", "o"), ("ue", "u"))
_BARE = word_set("bei von mit an fur zu nach aus in gegen ohne heist namens statt")
"""Behind one of these a German noun without an article is often a name."""
_SLOTS = _BARE | word_set("chez with by at near con avec called named")
"""Behind one of these two names stand in the same place."""


def names_in(text: str, known: Collection[str], tongue: str | None) -> list[Name]:
    """The names in a text, in order. `known`: folded names of people, names wherever they stand."""
    return list(_names(text, tongue, known))


def is_title(word: str) -> bool:
    """Whether a folded word is a title."""
    return word in _TITLES


def _names(text: str, tongue: str | None, known: Collection[str]) -> Iterator[Name]:
    if HAN.search(text):
        yield from _chinese(text, known)
    for _, sentence in sentences(text):
        tokens = [*_TOKEN.finditer(sentence)]
        for place, token in enumerate(tokens):
            written = token.group()
            key = bare(written)
            before = fold(tokens[place - 1].group()).rstrip(".") if place else ""
            after = fold(tokens[place + 1].group()) if place + 1 < len(tokens) else ""
            if key in known:
                yield Name(written, key, True)
                continue
            if not written[0].isupper() or _is_common(written, key):
                continue
            opens = not sentence[: token.start()].strip(" \"'«“„‘¿¡(")
            titled = (before in _TITLES and place > 0) or after in _BEHIND_TITLES
            suffixed = tongue == "tr" and re.search(r"['\u2019]", written) is not None
            if titled or suffixed:
                yield Name(written, key, True)
            elif tongue != "de" and not opens:
                yield Name(written, key, tongue is not None)
            elif before in _BARE if not opens else place == 0:
                yield Name(written, key, False)


def _is_common(written: str, key: str) -> bool:
    plain = fold(written)
    if (
        len(plain) <= 2
        or key in _COMMON
        or plain.removesuffix("s") in _COMMON
        or plain in _COMMON
        or key in _TITLES
        or len(key) < 2
    ):
        return True
    if written.isupper() and len(written) <= 4:
        return True
    return any(key in words for words in FUNCTION_WORDS.values())


@cached_by_text(4_096)
def bare(written: str) -> str:
    """A name folded, without a possessive or a case suffix behind an apostrophe."""
    folded = fold(written).strip(".")
    head, mark, _ = folded.partition("'")
    if mark and len(head) <= 1:
        return folded.replace("'", "")
    return head


def _chinese(text: str, known: Collection[str]) -> Iterator[Name]:
    folded = fold(text)
    for one in known:
        if HAN.match(one) and one in folded:
            yield Name(one, one, True)
    for found in _HAN_NICKNAME.finditer(folded):
        if found[1] in _HAN_SURNAMES and found[1] not in _NO_SURNAMES and found[0] not in known:
            yield Name(found[0], found[0], False)
    for found in _HAN_NAME.finditer(folded):
        before = folded[found.start() - 1 : found.start()] if found.start() else ""
        if (
            found[1] in _HAN_SURNAMES
            and found[0] not in known
            and not (before in "小老" and before)
        ):
            yield Name(found[0], found[0], True)


class HeardNames:
    """The words that a fact may take its names from."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.text = "\n".join(texts)
        self.folded = fold(self.text)
        self.words = {bare(one.group()) for one in _TOKEN.finditer(self.text)}
        self.words |= {part for word in self.words for part in re.split(r"[-.&]", word)}
        self.joined = joined(self.folded)
        self.slavic = "pl" in languages(self.text)
        self.foreign = bool(re.search(r"[\u0370-\u1fff\u3040-\u9fff\uac00-\ud7af]", self.text))

    def has(self, name: Name) -> bool:
        """Whether a name stands in the texts, in any form."""
        if HAN.search(name.key):
            return name.key in self.folded
        return all(self._has(part) for part in re.split(r"[-.&]", name.key) if len(part) > 1)

    def _has(self, key: str) -> bool:
        forms = {key, _monographs(key)}
        for word in self.words:
            if word in forms or _monographs(word) in forms:
                return True
            if _inflects(word, key) or _inflects(key, word):
                return True
            if self.slavic and _declined(word.replace("x", "ks"), key.replace("x", "ks")):
                return True
        if len(key) >= 4 and key in self.joined:
            return True
        return any(
            key in group
            and any(one in self.words or (one in self.folded and HAN.match(one)) for one in group)
            for group in _TRANSLATED
        )


def _declined(one: str, other: str) -> bool:
    """Whether two words may be cases of one Polish name: a stem, and an ending on each."""
    same = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 99)
    same = min(same, len(one), len(other))
    return same >= 3 and max(len(one), len(other)) - same <= 4


def _inflects(form: str, name: str) -> bool:
    """Whether `form` may be `name` with an ending: genitives, cases, plurals."""
    if len(name) >= 3 and form.startswith(name):
        return len(form) - len(name) <= 4
    return (
        len(name) >= 5
        and name[-1] in "aeo"
        and form.startswith(name[:-1])
        and (len(form) - len(name) <= 2)
    )


def _monographs(key: str) -> str:
    for pair, single in _DIGRAPHS:
        key = key.replace(pair, single)
    return key


_RESEMBLING = 0.6
"""Likeness of two names (0..1) from which one may have been mistaken for the other."""


def resembling(name: Name, heard: HeardNames, fact: str) -> str | None:
    """A name of the sources, not in the fact, for which `name` may have been mistaken."""
    said = fold(fact)
    for token in _TOKEN.finditer(heard.text):
        word = bare(token.group())
        if not token.group()[0].isupper() or word in said or _is_common(token.group(), word):
            continue
        if word[:2] != name.key[:2] or alike(word, name.key) or len(word) < 3:
            continue
        near = SequenceMatcher(None, word, name.key).ratio() >= _RESEMBLING
        if near and abs(len(word) - len(name.key)) <= 2:
            return token.group()
    return None


def confusable(one: str, other: str) -> bool:
    """Whether two different names are near relatives: Jansen and Janssen, 小戴 and 小代."""
    if one == other or one in _forms_of(other) or other in _forms_of(one):
        return False
    if one.isdigit() and other.isdigit():
        return True
    if HAN.search(one) or HAN.search(other):
        return len(one) == len(other) == 2 and one[0] == other[0]
    if one[:4] == other[:4] and min(len(one), len(other)) >= 6 and one[:6] != other[:6]:
        return True
    return (
        min(len(one), len(other)) >= 3
        and one[:2] == other[:2]
        and SequenceMatcher(None, one, other).ratio() >= _RESEMBLING
        and abs(len(one) - len(other)) <= 3
    )


def _forms_of(name: str) -> tuple[str, ...]:
    return name, f"{name}s", f"{name}es", f"{name}n"


def mentions(text: str, known: Collection[str], *, by_capital: bool) -> list[str]:
    """The words of a text that look like names; folded.

    "Not Cheng's" mentions nobody. `known`: names wherever they stand, with all that resemble them.
    A capital makes a name `by_capital` only, and never at the beginning.
    """
    found: list[str] = []
    for token in _MENTION.finditer(text):
        key, written = bare(token.group()), token.group()
        if not written[0].isupper() or _is_common(written, key):
            continue
        near = any(confusable(key, one) for one in known)
        is_name = near or key in known or (by_capital and token.start() > 1 and len(key) > 2)
        if is_name and not _NOT_HIM.search(fold(text[: token.start()])):
            found.append(key)
    found += [
        one[0]
        for one in _HAN_NICKNAME.finditer(text)
        if one[0] in known or (one[1] in _HAN_SURNAMES and one[1] not in _NO_SURNAMES)
    ]
    numbers = _NUMBER.findall(text)
    return list(dict.fromkeys([*found, *(one for one in numbers if one in known)]))


_NUMBER = re.compile(r"(?<![\d.,:])\d+(?![.,:]?\d)")
_LABEL = re.compile(
    r"#(\d+)|(?<!\w)([^\W\d_]{3})[^\W\d_]*\.? (?:no\.? |nr\.? |n° ?)?(\d{1,5})(?![.,:]?\d|\s?%)"
    r"|(\d+)([床号栋路])"
)


def labels(text: str, others: str) -> set[str]:
    """The numbers by which both texts tell things of a kind apart, if there are several: bed 4."""
    mine, theirs = _labels(text), _labels(others)
    known = {*_NUMBER.findall(others)}
    kinds = {kind for kind, number in mine if number in known} & {kind for kind, _ in theirs}
    found = {number for kind, number in (*theirs, *mine) if kind in kinds}
    return found if len(found) > 1 else set()


def _labels(text: str) -> set[tuple[str, str]]:
    found = (one.groups("") for one in _LABEL.finditer(fold(text)))
    return {(han or word or "#", code + number + place) for code, word, number, place, han in found}


_MENTION = re.compile(r"[^\W\d_]+(?:[-'\u2019.&][^\W_]+)*")
_NOT_HIM = re.compile(r"(?<!\w)(?:not|nicht|no|pas|non) (?:(?:mr|mrs|ms|dr|frau|herr|m|mme)\.? )?$")


def mistaken(name: Name, fact: str, heard: HeardNames) -> str | None:
    """The word that stands in the sources where the fact has `name`.

    It stands behind the same preposition, or before the same word: "bei Nele", "Nele bringt".
    """
    folded = fold(fact)
    if HAN.match(name.key):
        others = _HAN_NICKNAME.finditer(heard.folded)
        return next((one[0] for one in others if one[0] not in folded), None)
    for found in re.finditer(rf"(?<!\w){re.escape(name.key)}(?!\w)", folded):
        lead = re.search(r"(\w+) $", folded[: found.start()])
        follow = re.match(r"\W{1,3}([^\W\d_]{4,})", folded[found.end() :])
        places: list[re.Match[str]] = []
        if lead and (lead[1] in _SLOTS or len(lead[1]) > 4):
            places += re.finditer(rf"(?<!\w){lead[1]} ([^\W\d_]+)", heard.folded)
        if follow and follow[1] not in _ALL_FUNCTION_WORDS:
            places += re.finditer(
                rf"(?<!\w)([^\W\d_]+)\W{{1,3}}{re.escape(follow[1])}(?!\w)", heard.folded
            )
        for other in places:
            word = heard.text[other.start(1) : other.end(1)]
            strange = other[1] not in folded and not alike(other[1], name.key)
            if word[:1].isupper() and strange and not _is_common(word, other[1]):
                return word
    return None


_ALL_FUNCTION_WORDS = frozenset[str]().union(*FUNCTION_WORDS.values())
