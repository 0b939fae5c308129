"""Proper names of a fact, and whether its sources have them. Pure.

A name may be inflected (Turkish cases, genitives). A capital letter makes a name only where the
language uses none for common nouns, so a German noun counts as a name in a few places alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from typing import NamedTuple

from memory.guards.lexicon import (
    FUNCTION_WORDS,
    HAN,
    MONTH_OF,
    WEEKDAY_OF,
    alike,
    fold,
    joined,
    sentences_of,
    word_set,
)
from memory.text import cached_by_text, regex


class Name(NamedTuple):
    """A word that is, or may be, a proper name."""

    written: str
    key: str
    """Folded, without a case suffix behind an apostrophe."""
    sure: bool
    """Whether its place leaves no doubt that it is a name."""
    noun: bool = False
    """Whether it is a German noun: only a slip of another noun is told."""


_TITLES = word_set(
    """
    mr mrs ms miss dr dra drs cllr councillor capt sgt rev prof professor sir madam aunt auntie
    uncle cousin coach father sister brother herr frau dr tante onkel oma opa pfleger schwester
    herrn kollege kollegin familie doktor senor senora sra sr don dona tia tio primo prima doctor
    doctora profesor profesora monsieur madame mme m mlle tante oncle maitre docteur professeur
    cousin cousine bay bayan sayin hoca abla abi teyze amca dayi doktor signor signora dottor zia
    zio senhor senhora mevrouw meneer
    """
)
_COMMON = word_set(
    """
    selon laut gemass zufolge segun gore according apparently instead besides meanwhile statt
    anstatt since although though whereas unless while until weil obwohl wahrend nachdem bevor
    sofern falls sobald solange number nummer aunque porque mientras puisque comme i ok god
    internet web email tv utc cet gmt am pm english german french spanish turkish chinese italian
    japanese portuguese dutch russian american british european swiss austrian polish greek arabic
    mandarin christmas natale weihnachten weihnacht navidad kerst easter pasqua ostern pascua paques
    pasen carnival ramadan halloween new year's eve year spring summer autumn
    winter fall festival lent advent pentecost whitsun eid lunar lantern epiphany mother's father's
    day boxing room hall unit flat floor no class line route gate platform station lake river mount
    mountain street road square avenue bridge church school university hospital hotel museum
    library park north south east west old town city island sea ocean bay black forest great saint
    st san santa prof euro euros eur usd gbp chf tl lira yuan id pdf app wifi wi-fi iban vat turkce
    ingilizce almanca turk alman bey hanim
    """
) | {*MONTH_OF, *WEEKDAY_OF}
_TOKEN = regex(r"[^\W\d_]+(?:[-'\u2019.&][^\W\d_]+)*")
_HAN_NAME = regex(
    "([\u4e00-\u9fff])(教授|老师|医生|大夫|先生|女士|师傅|经理|主任|护士|老板|太太|奶奶|爷爷|阿姨|叔叔|总|姐|哥|嫂|婶|叔|姨|伯|导|队)"
)
_HAN_SURNAMES = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任"
    "沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔"
    "向汤温康施文牛樊葛邢安齐易乔伍庞颜倪庄聂章鲁岳翟殷詹申欧耿关兰焦俞左柳甘祝包宁尚符舒阮柯纪梅童凌毕单"
    "裴霍代成苗谷盛曲翁冉骆蓝路游辛靳管柴蒙鲍华喻祁蒲房滕屈饶解牟艾尤阳时穆农司卓古吉缪简车项连芦麦褚娄窦戚岑"
)
_BARE = word_set("bei von mit an fur zu nach aus in gegen ohne heist namens statt")
"""Words behind which a German noun without an article is often a name."""
_SLOTS = _BARE | word_set("chez with by at near con avec called named")
"""Words behind which two names stand in the same place."""


def is_title(word: str) -> bool:
    """Whether a folded word is a title."""
    return word in _TITLES


def names_in(text: str, known: Collection[str], language: str | None) -> Iterator[Name]:
    """The names in a text, in order. `known`: folded names of people, names wherever they stand."""
    if HAN.search(text):
        yield from _chinese(text, known)
    for sentence in sentences_of(text):
        tokens = [*_TOKEN.finditer(sentence)]
        for place, token in enumerate(tokens):
            written = token.group()
            key = bare(written)
            before = fold(tokens[place - 1].group()).rstrip(".") if place else ""
            if key in known:
                yield Name(written, key, True)
                continue
            if not written[0].isupper() or _is_common(written, key):
                continue
            opens = not sentence[: token.start()].strip(" \"'«“„‘¿¡(")
            titled = before in _TITLES and place > 0
            suffixed = language == "tr" and re.search(r"['\u2019]", written) is not None
            if titled or suffixed:
                yield Name(written, key, True)
            elif language != "de" and not opens:
                yield Name(written, key, language is not None)
            elif (
                before in _BARE or _is_apposed(tokens, place, sentence) if not opens else place == 0
            ):
                yield Name(written, key, False)
            elif language == "de":
                yield Name(written, key, False, True)


def _is_apposed(tokens: Sequence[re.Match[str]], place: int, sentence: str) -> bool:
    """Whether a noun stands right behind another one: "die Firma Kessler"."""
    before = tokens[place - 1]
    is_noun = before.group()[0].isupper() and fold(before.group()) not in _ALL_FUNCTION_WORDS
    return is_noun and sentence[before.end() : tokens[place].start()] == " "


def _is_common(written: str, key: str) -> bool:
    plain = fold(written)
    shouted = written.isupper() and len(written) <= 4
    forms = {key, plain, plain.removesuffix("s")}
    said = not forms.isdisjoint(_COMMON) or key in _TITLES or key in _ALL_FUNCTION_WORDS
    return len(plain) <= 2 or len(key) < 2 or shouted or said


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
    for found in re.finditer("姓[\u4e00-\u9fff]", folded):
        yield Name(found[0], found[0], True)
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

    def __init__(self, texts: Iterable[str], speakers: Iterable[str] = ()) -> None:
        told = "\n".join(texts)
        self.said = fold(told)
        """What was said, folded, without who said it."""
        self.text = "\n".join([told, *speakers])
        self.folded = fold(self.text)
        self.words = {bare(one.group()) for one in _TOKEN.finditer(self.text)}
        self.words |= {part for word in self.words for part in re.split(r"[-.&]", word)}
        self.joined = joined(self.folded)
        self._told = told

    @cached_property
    def _short(self) -> frozenset[str]:
        """Words that may be short forms of names."""
        return frozenset(
            bare(one.group())
            for sentence in sentences_of(self._told)
            for one in _TOKEN.finditer(sentence)
            if one.group()[0].isupper() and (one.start() or len(one.group()) > _OPENING)
        ).difference(_ALL_FUNCTION_WORDS)

    def has(self, name: Name) -> bool:
        """Whether a name stands in the texts, in any form."""
        if HAN.search(name.key):
            return name.key in self.folded or f"姓{name.key[0]}" in self.folded
        return all(self._has(part) for part in re.split(r"[-.&]", name.key) if len(part) > 1)

    def has_short_form(self, key: str, people: Collection[str]) -> bool:
        """Whether a word can only mean the person of this name: "Tomek" Tomasz, "Clem" Clémence."""
        words = (word for word in self._short - {*people} if _is_short_for(word, key))
        return any(sum(_is_short_for(word, one) for one in people) == 1 for word in words)

    def _has(self, key: str) -> bool:
        return any(
            word == key or _inflects(word, key) or _inflects(key, word) for word in self.words
        )


def _inflects(form: str, name: str) -> bool:
    """Whether `form` may be `name` with an ending: genitives, cases, plurals."""
    if len(name) >= 3 and form.startswith(name):
        end = form[len(name) :]
        return len(end) <= (6 if end[:3] in ("lar", "ler") else 4 if end[:1] == "l" else 2)
    return False


def _is_short_for(word: str, name: str) -> bool:
    """Whether a word is the beginning of a name, or a pet name from its first syllable."""
    if len(word) < len(name) and len(word) > 1 and name.startswith(word):
        return True
    pet = _PET.fullmatch(word)
    return pet is not None and len(name) > len(pet[1]) and name.startswith(pet[1])


_OPENING = 3
"""Longest word that opens a sentence and is no short form: "Car broke" says nothing of Carme."""
_PET = regex(
    r"(\w{3,}?)(?:ek|ka|ko|us|usz|ik|ie|y|i|tje|je|ke|chen|lein|i?to|i?ta|inho|inha|cik|cim|su)"
)
"""A syllable of three letters or more with a diminutive ending."""

_RESEMBLING, _SLIP = 0.6, 0.8
"""Likeness of two names, and of two nouns (0..1), from which one may be taken for the other."""


def resembling(name: Name, heard: HeardNames, fact: str) -> str | None:
    """A name of the sources, not in the fact, for which `name` may have been mistaken."""
    said = fold(fact)
    for token in _TOKEN.finditer(heard.text):
        word = bare(token.group())
        if not token.group()[0].isupper() or word in said or _is_common(token.group(), word):
            continue
        if word[:2] != name.key[:2] or alike(word, name.key) or len(word) < 3:
            continue
        least = _SLIP if name.noun else _RESEMBLING
        near = SequenceMatcher(None, word, name.key).ratio() >= least
        if near and abs(len(word) - len(name.key)) <= 2:
            return token.group()
    return None


def mistaken(
    name: Name, fact: str, heard: HeardNames, *, whole: bool = False, sure: bool = True
) -> str | None:
    """The word that the sources have where the fact has `name`.

    The words beside it are the same, up to the first that tells something: "bei Nele", "Thibault a
    une entorse"; with `whole`, all other words of the fact. If the fact's first word is not `sure`
    to be a name, no first word of a sentence counts.
    """
    mine, found = _WORDS.findall(fact), [*_WORDS.finditer(heard.text)]
    theirs = [str(one.group()) for one in found]
    folded, said = [*map(bare, mine)], [*map(bare, theirs)]
    for at in (n for n, one in enumerate(folded) if one == name.key):
        sides = (folded[:at][::-1], folded[at + 1 :])
        runs = sides if whole else (_run(sides[0], _SLOTS), _run(sides[1], frozenset()))
        for place, other in enumerate(said):
            word = theirs[place]
            strange = other not in folded and not _inflects(name.key, other)
            if not sure and at == 0 and _OPENS.search(heard.text, 0, found[place].start()):
                continue
            if not (word[:1].isupper() and strange) or _is_common(word, other):
                continue
            before = said[max(0, place - len(runs[0])) : place][::-1]
            ends = _ENDS.match(heard.text, found[place].end())  # "piazza Maggiore. Costa 20 euro"
            same = (before == runs[0], not ends and said[place + 1 :][: len(runs[1])] == runs[1])
            if all(same) if whole else any(a and b for a, b in zip(same, runs, strict=True)):
                return word
    return None


_ENDS = regex(r"[\"'”»)]*\s*[.!?\n]")
_OPENS = regex(r"(?:^|[.!?\n:]\s*)[\u00a1\u00bf]?$")
_WORDS = regex(r"[^\W_]+(?:['\u2019][^\W\d_]+)?")


def _run(words: Sequence[str], slots: Collection[str]) -> list[str]:
    """The first words (at most three) up to one that tells something or precedes a name; or []."""
    for count, one in enumerate(words[:3], 1):
        if one in slots or (len(one) > 2 and one not in _ALL_FUNCTION_WORDS):
            return [*words[:count]]
    return []


_ALL_FUNCTION_WORDS = frozenset[str]().union(*FUNCTION_WORDS.values())
