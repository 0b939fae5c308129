"""What the offline model makes of observations and facts in a night, by their words alone. Pure.

A fact or an observation whose subject likes something, lives somewhere and the like gives the
attribute of its verb. Where none does, the newest is quoted, as what was noticed last.

Of a new fact and one shown near to it, the first of these that fits:

- duplicates: the same speaker in the same words;
- supersedes: the same speaker, mostly the same words, another value, and the later one says that
  something changed; or the later one says of all its words that this is over; or it says that
  something changed, or that a value of the earlier one does not hold, and has other values of the
  same kinds, and names nobody else.

The rules find no contradictions, and relate nothing: links by words would bring into an answer what
shares a word with a hit and none with the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from memory.guards import fold, weekdays_in
from memory.messages import DatedLine, prompt_lines
from memory.models.offline.prompt import Prompt
from memory.models.offline.sentences import has_particulars
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
    r"\b(?:no longer|not any ?more|any ?more|cancell?ed|called off|stopped|quit)\b", re.IGNORECASE
)
_CHANGED = re.compile(
    rf"{_OVER.pattern}|\b(?:now|moved|changed|instead|postponed|rescheduled|switched)\b",
    re.IGNORECASE,
)
_RESET = re.compile(
    rf"{_CHANGED.pattern}|\b(?:new(?= (?:\w+ ){{0,2}}\d)|from (?:today|tomorrow|now)|after all"
    r"|changes?|correction|jetzt|doch|stattdessen|verschoben|ge[aä]ndert|[aä]nderung|nicht mehr"
    r"|ab (?:heute|morgen)|ahora|cambio|cambiado|en vez|ya no|desde (?:hoy|ma[nñ]ana)"
    r"|maintenant|plut[oô]t|ne\b.{1,20}\bplus|chang[ée]e?|adesso|invece|cambiato|non pi[uù]"
    r"|art\wk|de[gğ]i[sş]iklik|de[gğ]i[sş]ti|sada|umjesto|promjena|vi[sš]e ne)\b",
    re.IGNORECASE,
)
"""Words by which a change is announced; none of them is enough by itself."""
_NOT = re.compile(
    r"\b(?:not|instead of|rather than|cannot be|can't be|isn't|nicht|kein|statt|anstatt"
    r"|en vez de|en lugar de|pas|au lieu d[eu]|non|invece d[ie]l?|nije|umjesto)"
    r"(?: (?:on|at|in|the|am|um|den|el|la|le|il|u|les))? (?P<what>[\w.:]+)"
    r"|\b(?P<off>[\w.:]+) (?:is (?:off|out)|f[aä]llt aus|de[gğ]il)\b",
    re.IGNORECASE,
)
"""A value that does not hold."""
_NO_MORE = re.compile(
    r"\b(?:not|nicht) (?:in|at|on|with|bei|auf|mit) (?:our|the|my|der|dem|den|unserem|meinem)"
    r" (?P<over>\w+) (?:any ?more|mehr)\b",
    re.IGNORECASE,
)
_ENOUGH = 3
"""Telling words in common and kinds of values that differ, by which two facts are of one thing."""
_KINDS = {
    "day": re.compile(r"(?<![\w.,:])(\d{1,2})(?=(?:st|nd|rd|th)\b|\.(?= ?[a-z])|\. ?\d)"),
    "time": re.compile(r"(?<![\w.,])(\d{1,2}[:.h]\d\d)\b"),
    "number": re.compile(r"(?<![\w.,:])(\d+(?:[.,]\d{3})*)(?![\w:]|[.,]\d|\. ?[a-z])"),
}
_CHANGE_STEMS = frozenset(
    content_stems(
        "longer anymore cancelled canceled called stopped quit changed instead postponed "
        "rescheduled switched"
    )
)
_MOVED = re.compile(r"\bmov(?:e|es|ed|ing) (?:back |over |out )?to\b", re.IGNORECASE)
_ONESELF = re.compile(r"\b(?:i|my|mine|we|our|ours)\b", re.IGNORECASE)
_NAME = re.compile(r"\b[A-Z][\w'\u2019-]+")
_NEIGHBOURS = 5
"""Of the facts shown, those that one is compared with."""
_EVERYDAY = frozenset(
    content_stems(
        "ask bring buy call come find get give go have help hope keep know leave like live look "
        "love make mean meet need plan put say see sell send start take tell think try use want "
        "work good great new old thing time way day week month year one two three"
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


def dream(prompt: Prompt) -> dict[str, Any]:
    """The claims by which one of two facts that are near is no longer needed."""
    shown = _facts(prompt)
    relations: list[dict[str, str]] = []
    gone, done = set[str](), set[frozenset[str]]()
    for fact in shown.new:
        for other in _nearest(fact, shown):
            pair = frozenset((fact.id, other.id))
            ends = None if pair & gone or pair in done else _ended(fact, other, shown)
            done.add(pair)
            if ends is not None:
                gone.add(ends["other"])
                relations.append(ends)
    return {"relations": relations}


def _nearest(fact: DatedLine, shown: _Facts) -> list[DatedLine]:
    """The facts that share most of its words, the nearest first."""
    mine = _stems(fact)

    def share(other: DatedLine) -> float:
        its = _stems(other)
        return len(mine & its) / len(mine | its) if mine & its else 0.0

    others = [other for other in shown.all.values() if other.id != fact.id]
    return sorted(others, key=lambda other: -share(other))[:_NEIGHBOURS]


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
    return _Facts(tuple(new), every, frozenset(capital - small))


def _stems(fact: DatedLine) -> frozenset[str]:
    """What it says, without stop words, its speaker and words of change; to move is to live."""
    said = content_stems(_MOVED.sub("live in", fact.text))
    return frozenset(said) - _CHANGE_STEMS - frozenset(content_stems(fact.speaker or ""))


def _ended(fact: DatedLine, other: DatedLine, shown: _Facts) -> dict[str, str] | None:
    """The claim that one of the two is no longer needed, the newer one or the older id first."""
    leads = {_lead(one, shown) for one in (fact, other)} - {""}
    if fact.speaker != other.speaker or len(leads) > 1:
        return None
    if words(fact.text) == words(other.text):
        return _pair(other, fact, "duplicates", "the same speaker in the same words")
    # On one day the later fact is the one that speaks of a change.
    earlier, later = sorted((other, fact), key=lambda each: (each.at, bool(_sign(each))))
    sign = _sign(later)
    if not sign or not _about_the_same(later, earlier, shown):
        sign = _reset(later, earlier, shown) if later.at > earlier.at else ""
    return _pair(later, earlier, "supersedes", f"the later one says '{sign}'") if sign else None


def _lead(fact: DatedLine, shown: _Facts) -> str:
    """The name with which a fact begins: whom it is about; "" if it begins otherwise."""
    match = _NAME.match(fact.text)
    stems = content_stems(match.group()) if match else []
    return stems[0] if stems and stems[0] in shown.names and stems[0] not in _EVERYDAY else ""


def _reset(later: DatedLine, earlier: DatedLine, shown: _Facts) -> str:
    """The words by which the later fact gives other values to what the earlier is about; or "".

    Both are about one thing if they share telling words, the more the fewer kinds of values differ.
    Whoever names another subject speaks of something else.
    """
    new, old = _values(later.text), _values(earlier.text)
    differ = [kind for kind in new.keys() & old.keys() if new[kind] - old[kind]]
    shared = (_stems(later) & _stems(earlier)) - _EVERYDAY - shown.names
    telling = {each for each in shared if not _values(each)}
    subjects = [_subjects(fact, shown) for fact in (later, earlier)]
    of_oneself = {bool(_ONESELF.search(fact.text)) for fact in (later, earlier)}
    if not differ or not telling or (all(subjects) and not set.intersection(*subjects)):
        return ""
    if len(of_oneself) > 1 and any(subjects) and len(telling) < _ENOUGH - 1:
        return ""
    known = {value for some in old.values() for value in some} | _stems(earlier)
    denied = next((one for one in _denied(later.text) if one in known), "")
    if denied:
        return f"not {denied}"
    sign = _RESET.search(later.text)
    enough = len(telling) + len(differ) >= _ENOUGH
    return sign.group().lower() if sign and enough else ""


def _values(text: str) -> dict[str, set[str]]:
    """What a text gives as values, by their kind: weekdays, days of a month, times, numbers."""
    found: dict[str, set[str]] = {}
    for kind, pattern in _KINDS.items():
        for match in pattern.finditer(text.lower()):
            found.setdefault(kind, set()).add(match[1])
    days = {
        WEEKDAYS[one.weekday]
        for one in weekdays_in(fold(text), strict=True)
        if one.weekday is not None
    }
    return {**found, "weekday": days} if days else found


def _denied(text: str) -> list[str]:
    """The values of which a text says that they do not hold, and the things that are over."""
    told = [(match["what"] or match["off"]).strip(".:") for match in _NOT.finditer(text)]
    found = [value for one in told for some in _values(one).values() for value in some]
    return [*found, *content_stems(" ".join(match["over"] for match in _NO_MORE.finditer(text)))]


def _subjects(fact: DatedLine, shown: _Facts) -> set[str]:
    """The names that a fact has, its speaker's left out."""
    said = {each for name in _NAME.findall(fact.text) for each in content_stems(name)}
    days = {each for each in said if weekdays_in(fold(each), strict=False)}
    return (said & shown.names) - days - set(content_stems(fact.speaker or ""))


def _sign(fact: DatedLine) -> str:
    match = _CHANGED.search(fact.text)
    return match.group().lower() if match else ""


def _about_the_same(later: DatedLine, earlier: DatedLine, shown: _Facts) -> bool:
    """Mostly the same words, names aside, and another value; or an end to the very same.

    What somebody says of themselves is never the same as what they say of others.
    """
    mine, its = _stems(later), _stems(earlier)
    shared = mine & its
    of_oneself = {bool(_ONESELF.search(fact.text)) for fact in (later, earlier)}
    if not shared - shown.names or len(of_oneself) > 1:
        return False
    if _OVER.search(later.text) and mine <= its:
        return True
    if 2 * len(shared) < max(len(mine), len(its)) or not (mine - its and its - mine):
        return False
    pair = ((later, mine - its), (earlier, its - mine))
    return len(shared) > 1 or all(_is_particular(fact, stems) for fact, stems in pair)


def _is_particular(fact: DatedLine, stems: frozenset[str]) -> bool:
    """Whether one of these words of the fact is a name, a number or a time."""
    said = [each for each in re.findall(r"[\w'\u2019-]+", fact.text) if stem(each.lower()) in stems]
    return any(each[0].isupper() or has_particulars(each) for each in said)


def _pair(fact: DatedLine, other: DatedLine, relation: str, reason: str) -> dict[str, str]:
    return {"fact": fact.id, "other": other.id, "relation": relation, "reason": reason}
