"""What the offline model makes of observations and facts in a night, by their words alone. Pure.

A fact or an observation whose subject likes something, lives somewhere and the like gives the
attribute of its verb. Where none does, the newest is quoted, as what was noticed last.

Of a new fact and one shown near to it, the first of these that fits:

- duplicates: the same speaker in the same words;
- supersedes: the same speaker, mostly the same words, another value, and the later one says that
  something changed; or the later one says of all its words that this is over; or enough of this
  comes together: words in common that few other facts have, other values of the same kinds, a day
  or code of the earlier one beside another, a change that is announced, something that is over.

The rules find no contradictions, and relate nothing: links by words would bring into an answer what
shares a word with a hit and none with the question.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from memory.guards import days_of, fold, in_digits, weekdays_in
from memory.messages import DatedLine, prompt_lines
from memory.models.offline.prompt import Prompt
from memory.models.offline.sentences import told_stems
from memory.text import WEEKDAYS, content_stems, sentences, shortened, stem, words


class _Verb(NamedTuple):
    pattern: str
    said: str
    """How the attribute's value says it."""
    newest: bool = False
    """Only the newest line counts; else all are listed."""


_VERBS = {
    "likes": _Verb(r"(?:likes?|loves?|enjoys?|(?:is|am) fond of)", "likes"),
    "dislikes": _Verb(r"(?:dislikes?|hates?|(?:does not|doesn't|do not|don't) like)", "dislikes"),
    "prefers": _Verb("prefers?", "prefers"),
    "plays": _Verb("plays?", "plays"),
    "studies": _Verb("stud(?:ies|y)", "studies"),
    "teaches": _Verb("teach(?:es)?", "teaches"),
    "collects": _Verb("collects?", "collects"),
    "keeps": _Verb(r"(?:keeps?|owns?)", "keeps"),
    "has": _Verb(r"(?:has|have)(?= (?:an?|the|my|our|\d+|one|two|three|four|five|six)\b)", "has"),
    "wants": _Verb("wants?", "wants"),
    "allergies": _Verb("(?:is|am) allergic to", "is allergic to"),
    "fears": _Verb("(?:is|am) afraid of", "is afraid of"),
    "home": _Verb(
        r"(?:lives?|moved (?:back |over )?(?=to\b)|(?:is|am) based)", "lives", newest=True
    ),
    "work": _Verb("works?", "works", newest=True),
    "married": _Verb(r"(?:is|am) married(?: to)?", "is married to", newest=True),
    "is": _Verb(r"(?:is|am)(?= (?:an?|the)\b)", "is", newest=True),
}
_OFTEN = r"(?:(?:always|also|never|now|often|only|really|usually|still) )?"
_SAYS = {
    name: re.compile(rf"{_OFTEN}{verb.pattern}\b ?(?P<what>[^.!?;]*)", re.IGNORECASE)
    for name, verb in _VERBS.items()
}
_IT = re.compile(r"(?:she|he|they|it)\b ", re.IGNORECASE)
_FIRST = re.compile(r"(?:i|we)(?: |(?='m |'re ))", re.IGNORECASE)
_SHORT = re.compile(r"'(?:m|re) ")
_OWN_WORDS = {"my": "their", "our": "their", "me": "them", "us": "them", "mine": "theirs"}
_OWN = re.compile(rf"\b(?:{'|'.join(_OWN_WORDS)})\b", re.IGNORECASE)
_LONGEST = 160
"""Characters of a value's part."""
_MOST_LISTED = 8


@dataclass
class _Shown:
    """An entity as the prompt shows it, oldest observation first."""

    id: str
    name: str
    known: dict[str, str] = field(default_factory=dict)
    observed: list[DatedLine] = field(default_factory=list)


def attributes(prompt: Prompt) -> dict[str, Any]:
    """The attributes of every entity shown, with the observations that they stand on."""
    return {"attributes": [made for entity in _entities(prompt) for made in _of(entity)]}


def _entities(prompt: Prompt) -> list[_Shown]:
    found: list[_Shown] = []
    for line in prompt.data_lines("entities"):
        if entity := prompt_lines.read_entity(line):
            found.append(_Shown(*entity))
        elif found and (known := prompt_lines.read_known(line)):
            found[-1].known[known[0]] = known[1]
        elif found and (seen := prompt_lines.read_dated(line)):
            found[-1].observed.append(seen)
    return found


def _of(entity: _Shown) -> list[dict[str, Any]]:
    said: dict[str, list[tuple[str, str]]] = {}
    for seen in entity.observed:
        for told in _told(entity.name, seen):
            for name in _SAYS:
                if what := _what(name, told):
                    said.setdefault(name, []).append((seen.id, what))
                    break
    made = [_attribute(entity, name, parts) for name, parts in said.items()]
    if not made and entity.observed:
        last = entity.observed[-1]
        own = last.speaker == entity.name and _FIRST.search(last.text)
        told = f"{entity.name} said: {last.text}" if own else last.text
        made = [_given(entity, "noticed_last", shortened(told, _LONGEST), [last.id])]
    return made


def _told(name: str, line: DatedLine) -> Iterator[str]:
    """What each sentence of a line says of the entity that is its subject, without the subject.

    The entity is named, or it speaks of itself, or it is "she" or "it" in a line about it.
    """
    for sentence in sentences(line.text):
        if sentence.casefold().startswith(f"{name.casefold()} "):
            yield sentence[len(name) + 1 :]
        elif match := _IT.match(sentence):
            yield sentence[match.end() :]
        elif line.speaker == name and (match := _FIRST.match(sentence)):
            own = _SHORT.sub("am ", sentence[match.end() :], count=1)
            yield _OWN.sub(lambda word: _OWN_WORDS[word.group().lower()], own)


def _what(name: str, told: str) -> str:
    """What is told under an attribute: the words behind its verb; "" where nothing."""
    match = _SAYS[name].match(told)
    said = match["what"].strip(" ,") if match else ""
    moved = name == "home" and said.startswith("to ")
    return shortened(f"in {said[3:]}" if moved else said, _LONGEST)


def _attribute(entity: _Shown, name: str, parts: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """`parts`: (observation, what it says), oldest first."""
    begins = f"{entity.name} {_VERBS[name].said} "
    if _VERBS[name].newest:
        newest = parts[-1][1]
        same = [id_ for id_, what in parts if what.casefold() == newest.casefold()]
        return _given(entity, name, f"{begins}{newest}.", same)
    known = entity.known.get(name, "").removeprefix(begins).rstrip(".").split("; ")
    listed = dict.fromkeys([*filter(str.strip, known), *(what for _, what in parts)])
    value = f"{begins}{'; '.join(list(listed)[-_MOST_LISTED:])}."
    return _given(entity, name, value, [id_ for id_, _ in parts])


def _given(entity: _Shown, name: str, value: str, evidence: Sequence[str]) -> dict[str, Any]:
    return {"entity": entity.id, "name": name, "value": value, "evidence": list(evidence)}


# Relations between facts.

_OVER = re.compile(
    r"\b(?:no longer|not any ?more|any ?more|cancell?ed|called off"
    r"|(?<!n't )(?<!not )(?<!never )(?:stopped|quit))\b",
    re.IGNORECASE,
)
_CHANGED = re.compile(
    rf"{_OVER.pattern}|\b(?:now|moved|changed|instead|postponed|rescheduled|switched)\b",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"(?:(?:oh|ah|sorry|no|nope|wait)\b[,.:! ]+)*(?:no|nope|sorry|correction)\b[,.:!]",
    re.IGNORECASE,
)
"""How a correction begins."""
_RESET = re.compile(
    rf"{_CHANGED.pattern}|\b(?:new(?= (?:\w+ ){{0,2}}\d)|after all|changes?|correction|replaced"
    r"|re-?(?:booked|arranged)|(?:from|as of|starting) (?:today|tonight|tomorrow|now|this \w+)"
    r"|new (?:code|date|day|hour|lock|number|offer|plan|price|room|time)|in place of|shifts?"
    r"|same (?:dates?|day|hours?|place|time)|so (?:it's|we)|can't(?! wait)|not (?:today|this \w+)"
    r"|(?:day|week|month)s? (?:later|longer|sooner)|(?:goes?|gone) (?:up|down)"
    r"|(?:is|are) (?:gone|off)"
    r"|jetzt|doch|stattdessen|verschoben|ge[aä]ndert|[aä]nderung|nicht mehr|ab (?:heute|morgen)"
    r"|ahora|cambio|cambiado|en vez|ya no|desde (?:hoy|ma[nñ]ana)|maintenant|plut[oô]t"
    r"|ne\b.{1,20}\bplus|chang[ée]e?|adesso|invece|cambiato|non pi[uù]|art\wk|de[gğ]i[sş]iklik"
    r"|de[gğ]i[sş]ti|sada|umjesto|promjena|vi[sš]e ne)\b",
    re.IGNORECASE,
)
"""Words by which a change is announced; none of them is enough by itself."""
_DENIED = re.compile(
    r"\b(?:not|instead of|in place of|rather than|cannot be|can't be|isn't|nicht|kein|statt|anstatt"
    r"|en vez de|en lugar de|pas|au lieu d[eu]|non|invece d[ie]l?|nije|umjesto)"
    r"(?: (?:on|at|in|with|our|my|the|am|um|bei|auf|mit|den|el|la|le|il|u|les))* (?P<what>[\w.:]+)"
    r"|\b(?:no|cancelled) (?P<none>\w+(?: \w+){0,2})"
    r"|\b(?P<off>[\w.:]+(?: \w+)?) (?:(?:is|are|has|have) (?:off|out|died|run off|cancelled)"
    r"|f[aä]llt aus|de[gğ]il)\b",
    re.IGNORECASE,
)
"""A value that does not hold, or a thing that is over."""
_KINDS = {
    "day": re.compile(r"(?<![\w.,:])(\d{1,2})(?=(?:st|nd|rd|th)\b|\.(?= ?[a-z])|\. ?\d)"),
    "time": re.compile(r"(?<![\w.,])(\d{1,2}[:.h]\d\d)\b"),
    "number": re.compile(r"(?<![\w.,:])(\d+(?:[.,]\d{3})*)(?![\w:]|[.,]\d)"),
}
_ENOUGH = 4
"""Points from which a later fact takes the place of an earlier one."""
_MOST_TELLING = 3
"""Points for words in common, at most."""
_MOST_SIGNS = 2
"""Points for words that announce a change, at most."""
_FEW = 4
"""Of the facts shown, those that may have a word that tells what they are about."""
_ALL = 10
"""Points of a change that has mostly the words of what it changes."""
_AHEAD, _MOST_DAYS = timedelta(days=60), 5
"""A fact names days up to so far ahead; one that may name more of them names none for certain."""
_LONG_NUMBER = 4
"""Digits of a number that stands for one thing: a code, an account."""
_CHANGE_STEMS = frozenset(
    content_stems(
        "longer anymore cancelled canceled called stopped quit changed instead postponed "
        "rescheduled switched"
    )
)
_ONESELF = re.compile(r"\b(?:i|my|mine|we|our|ours)\b", re.IGNORECASE)
_WHOSE = re.compile(r"\b(?:[Mm]y|[Oo]ur) (?:[a-z]+ ){1,3}(?=[A-Z])")
"""Whose somebody is: "my sister Ines" is about Ines."""
_NAME = re.compile(r"\b[A-Z][\w'\u2019-]+")
_EVERYDAY = frozenset(
    content_stems(
        "ask bring buy call come count find get give go have help hope keep know leave like live "
        "look love make mean meet move need plan put say see sell send stand start take tell think "
        "try use want work good great new old first last same half thing people everybody somebody "
        "nobody mr mrs frau herr euro pound dollar i'm i've i'd it's that's can't one two three "
        "four five six seven eight nine ten eleven twelve second minute hour time till morning "
        "evening night tonight today tomorrow yesterday day way week month year january february "
        "march april may june july august september october november december " + " ".join(WEEKDAYS)
    )
)
"""Words in which two facts are alike without having anything to do with each other."""


@dataclass(frozen=True)
class _Facts:
    """All facts of a prompt."""

    new: tuple[DatedLine, ...]
    all: Mapping[str, DatedLine]
    names: frozenset[str]
    """Stems that stand with a capital letter only."""
    having: Mapping[str, int]
    """By stem, how many facts have it."""


def dream(prompt: Prompt) -> dict[str, Any]:
    """The claims by which one of two facts that are near is no longer needed.

    What a fact changes is what fits it best; what fits it less is something else.
    """
    shown = _facts(prompt)
    pairs = dict[frozenset[str], tuple[DatedLine, DatedLine]]()
    for fact in shown.new:
        for other in shown.all.values():
            pairs.setdefault(frozenset((fact.id, other.id)), (fact, other))
    claims = [claim for one, other in pairs.values() if (claim := _ended(one, other, shown))]
    gone, best = set[str](), dict[tuple[str, str], int]()
    relations: list[dict[str, str]] = []
    for points, ends in sorted(claims, key=lambda one: -one[0]):
        least = best.setdefault((ends["fact"], ends["relation"]), points)
        if points >= least and gone.isdisjoint((ends["fact"], ends["other"])):
            gone.add(ends["other"])
            relations.append(ends)
    return {"relations": relations}


def _facts(prompt: Prompt) -> _Facts:
    new, old = (
        [prompt_lines.unmarked(fact) for fact in map(prompt_lines.read_dated, lines) if fact]
        for lines in (prompt.data_lines("new_facts"), prompt.data_lines("facts"))
    )
    every = {fact.id: fact for fact in (*old, *new)}
    capital, small = set[str](), set[str]()
    for fact in every.values():
        capital |= {stem(word) for name in _NAME.findall(fact.text) for word in words(name)}
        small |= set(content_stems(_NAME.sub(" ", fact.text)))
    having = Counter(each for fact in every.values() for each in _stems(fact))
    return _Facts(tuple(new), every, frozenset(capital - small), having)


@lru_cache(maxsize=4_096)
def _stems(fact: DatedLine) -> frozenset[str]:
    """What it says, without stop words, its speaker and words of change."""
    said = told_stems(_WHOSE.sub("", fact.text))
    return frozenset(said) - _CHANGE_STEMS - frozenset(content_stems(fact.speaker or ""))


def _ended(fact: DatedLine, other: DatedLine, shown: _Facts) -> tuple[int, dict[str, str]] | None:
    """The claim that one of the two is no longer needed, the newer one or the older id first, and
    how much speaks for it.
    """
    if fact.id == other.id or fact.speaker != other.speaker:
        return None
    if words(fact.text) == words(other.text):
        return 2 * _ALL, _pair(other, fact, "duplicates", "the same speaker in the same words")
    # On one day the later fact is the one that speaks of a change.
    earlier, later = sorted((other, fact), key=lambda each: (each.at, bool(_sign(each))))
    points, sign = _changed(later, earlier, shown)
    pair = _pair(later, earlier, "supersedes", f"the later one says '{sign}'")
    return (points, pair) if points >= _ENOUGH else None


def _changed(later: DatedLine, earlier: DatedLine, shown: _Facts) -> tuple[int, str]:
    """How much speaks for it that the later fact changes the earlier, and what announces it."""
    telling = _telling(later, earlier, shown)
    leads = {_lead(one, shown) for one in (later, earlier)} - {""}
    if len(leads) > 1 and not telling & shown.names:
        return 0, ""
    if (sign := _sign(later)) and _about_the_same(later, earlier, shown):
        return _ALL, sign
    return _reset(later, earlier, telling) if later.at > earlier.at else (0, "")


def _telling(later: DatedLine, earlier: DatedLine, shown: _Facts) -> set[str]:
    """The words in common that tell what two facts are about: few other facts have them."""
    shared = (_stems(later) & _stems(earlier)) - _EVERYDAY
    return {each for each in shared if shown.having[each] <= _FEW and not each[0].isdigit()}


def _lead(fact: DatedLine, shown: _Facts) -> str:
    """The name with which a fact begins: whom it is about; "" if it begins otherwise."""
    match = _NAME.match(fact.text)
    stems = content_stems(match.group()) if match else []
    return stems[0] if stems and stems[0] in shown.names and stems[0] not in _EVERYDAY else ""


def _reset(later: DatedLine, earlier: DatedLine, telling: set[str]) -> tuple[int, str]:
    """How much speaks for it that the later fact changes a value of the earlier one, and the words
    that announce it; (0, "") if no value changes, or nothing announces it.

    Points: each telling word in common; another value of the same kind; a day or code of the
    earlier one that is named beside another; or that its day came and another is given; words that
    announce a change; something of the earlier one of which the later says that it is over.
    """
    new, old = _values(later.text), _values(earlier.text)
    differ = any(new[kind] - old[kind] for kind in new.keys() & old.keys())
    values = {value for some in old.values() for value in some}
    over = [each for each in _denied(later.text) if each in (_stems(earlier) | values)]
    signs = list(dict.fromkeys(match.group().lower() for match in _RESET.finditer(later.text)))
    codes = {each for each in new.get("number", set()) & values if len(each) >= _LONG_NUMBER}
    renamed = 2 if codes else _renamed(later, earlier)
    if not (old and (telling or codes) and (signs or over) and (differ or renamed or over)):
        return 0, ""
    points = min(_MOST_TELLING, len(telling)) + differ + min(_MOST_SIGNS, len(signs)) + renamed
    if any(each not in _EVERYDAY for each in over):
        points += 2
    elif differ:
        points += bool(over)
    return points, f"not {over[0]}" if over else signs[0]


def _renamed(later: DatedLine, earlier: DatedLine) -> int:
    """2 if a day or time of the earlier fact is named beside another one; 1 if it is the day on
    which another one is named; else 0.
    """
    new, old = _values(later.text), _values(earlier.text)
    days, were = _days(later), _days(earlier)
    for kind in (new.keys() & old.keys()) - {"number"}:
        if new[kind] & old[kind] and new[kind] - old[kind]:
            return 2
    if days & were and days - were:
        return 2
    today = date.fromisoformat(later.at[:10])
    return int(today in were and bool(days - were - {today}))


@lru_cache(maxsize=4_096)
def _values(text: str) -> dict[str, set[str]]:
    """What a text gives as values, by their kind: weekdays, days of a month, times, numbers."""
    found: dict[str, set[str]] = {}
    digits = in_digits(text.lower(), "en")
    for kind, pattern in _KINDS.items():
        for match in pattern.finditer(digits):
            found.setdefault(kind, set()).add(match[1].replace(",", ""))
    days = {
        WEEKDAYS[one.weekday]
        for one in weekdays_in(fold(text), strict=True)
        if one.weekday is not None
    }
    return {**found, "weekday": days} if days else found


@lru_cache(maxsize=4_096)
def _days(fact: DatedLine) -> frozenset[date]:
    """The days from its own on that a fact names; of a day of a month the first such day."""
    said, text = date.fromisoformat(fact.at[:10]), fold(fact.text)
    ahead = sorted(day for day in days_of(text, [said]).days if said <= day <= said + _AHEAD)
    days = {*{day.day: day for day in reversed(ahead)}.values()}
    weekdays = {one.weekday for one in weekdays_in(text, strict=True)}
    if len(days) >= _MOST_DAYS and weekdays:
        days = {day for day in days if day.weekday() in weekdays}
    return frozenset(days if len(days) <= _MOST_DAYS else ())


def _denied(text: str) -> list[str]:
    """The stems and values of which a text says that they do not hold, or are over."""
    digits = in_digits(text, "en")
    told = [next(filter(None, match.groups())) for match in _DENIED.finditer(digits)]
    found = [value for one in told for some in _values(one.strip(".:")).values() for value in some]
    return [*found, *content_stems(" ".join(told))]


def _sign(fact: DatedLine) -> str:
    match = _CHANGED.search(fact.text) or _CORRECTS.match(fact.text)
    return match.group().lower().rstrip(",.:!") if match else ""


def _about_the_same(later: DatedLine, earlier: DatedLine, shown: _Facts) -> bool:
    """Mostly the same words, names aside, and another value; or an end to the very same.

    What somebody says of themselves is never the same as what they say of others.
    """
    mine, its = _stems(later), _stems(earlier)
    shared = mine & its
    texts = [_WHOSE.sub("", fact.text) for fact in (later, earlier)]
    of_oneself = {bool(_ONESELF.search(text)) for text in texts}
    if not shared - shown.names or len(of_oneself) > 1:
        return False
    if _OVER.search(later.text) and mine <= its:
        return True
    if 2 * len(shared) < max(len(mine), len(its)) or not (mine - its and its - mine):
        return False
    corrected = bool(_CORRECTS.match(later.text))
    return len(shared) > 1 or all(
        rest & shown.names or (corrected and any(map(str.isdecimal, rest)))
        for rest in (mine - its, its - mine)
    )


def _pair(fact: DatedLine, other: DatedLine, relation: str, reason: str) -> dict[str, str]:
    return {"fact": fact.id, "other": other.id, "relation": relation, "reason": reason}
