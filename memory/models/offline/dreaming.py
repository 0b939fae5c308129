"""How the offline model makes attributes of observations: by verbs, in their own words. Pure.

An observation that says what somebody likes, where they live and the like gives the attribute of
its verb; of a home or a work the newest one counts, of the others all are listed. A word that comes
up in several of the rest is an attribute, too. Where no rule fits, the newest observation is
quoted, as what was noticed last.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory.messages.prompt_lines import (
    DatedLine,
    read_dated,
    read_entity,
    read_known,
    read_new_fact,
)
from memory.models.offline.prompt import Prompt
from memory.models.offline.sentences import has_particulars
from memory.text import STOP_WORDS, content_stems, sentences, shortened, stem, words

_OFTEN = r"(?:(?:always|also|never|now|often|only|really|usually|still) )?"
_LISTED = {
    "likes": r"(?:likes|loves|enjoys|is fond of)",
    "dislikes": r"(?:dislikes|hates|does not like|doesn't like)",
    "prefers": r"prefers",
    "plays": r"plays",
    "studies": r"studies",
    "teaches": r"teaches",
    "collects": r"collects",
    "keeps": r"(?:keeps|owns)",
    "wants": r"wants",
    "allergies": r"is allergic to",
    "fears": r"is afraid of",
}
"""Attribute and its verb; what several observations say is listed in one value."""
_ONE = {
    "home": r"(?:lives|moved (?:back |over )?(?=to\b)|is based)",
    "work": r"works",
    "married": r"is married(?: to)?",
}
"""Those of which the newest observation counts."""
_SAYS = {
    name: re.compile(rf"(?:^|\b){_OFTEN}(?P<verb>{verb})\b ?(?P<what>[^.!?;]*)", re.IGNORECASE)
    for name, verb in {**_LISTED, **_ONE}.items()
}
_LONGEST = 160
"""Characters of a value's part."""
_MOST_LISTED = 8
_LEAST = 2
"""Observations that have a word in common, to make an attribute of it."""


@dataclass
class Entity:
    """An entity as it was shown, oldest observation first."""

    id: str
    name: str
    known: dict[str, str] = field(default_factory=dict)
    observed: list[tuple[str, str]] = field(default_factory=list)
    """(id, text)"""


def attributes(prompt: Prompt) -> dict[str, Any]:
    """The attributes of every entity shown, with the observations that they stand on."""
    return {"attributes": [made for one in _read(prompt) for made in _of(one)]}


def _read(prompt: Prompt) -> list[Entity]:
    found: list[Entity] = []
    for line in prompt.data_lines("entities"):
        if entity := read_entity(line):
            found.append(Entity(*entity))
        elif found and (known := read_known(line)):
            found[-1].known[known[0]] = known[1]
        elif found and (seen := read_dated(line)):
            found[-1].observed.append((seen.id, seen.text))
    return found


def _of(entity: Entity) -> list[dict[str, Any]]:
    said: dict[str, list[tuple[str, str]]] = {}
    rest: list[tuple[str, str]] = []
    for id_, text in entity.observed:
        fitting = {name: what for name in _SAYS if (what := _what(name, text))}
        for name, what in fitting.items():
            said.setdefault(name, []).append((id_, what))
        if not fitting:
            rest.append((id_, text))
    made = [_attribute(entity, name, parts) for name, parts in said.items()]
    made += _recurring(entity, rest)
    if not made and entity.observed:
        id_, text = entity.observed[-1]
        made = [_given(entity, "noticed_last", shortened(text, _LONGEST), [id_])]
    return made


def _what(name: str, text: str) -> str:
    """What an observation says under an attribute: the words behind its verb; "" where nothing."""
    match = _SAYS[name].search(text)
    said = match["what"].strip(" ,") if match else ""
    return shortened(f"in {said[3:]}" if said.startswith("to ") else said, _LONGEST)


def _attribute(entity: Entity, name: str, parts: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """`parts`: (observation, what it says), oldest first."""
    if name in _ONE:
        newest = parts[-1][1]
        same = [id_ for id_, what in parts if what.casefold() == newest.casefold()]
        return _given(entity, name, _sentence(entity, name, [newest]), same)
    whole = _sentence(entity, name, [])
    known = entity.known.get(name, "").removeprefix(whole)
    listed = dict.fromkeys(one for one in known.rstrip(".").split("; ") if one.strip())
    listed |= dict.fromkeys(what for _, what in parts)
    kept = list(listed)[-_MOST_LISTED:]
    return _given(entity, name, _sentence(entity, name, kept), [id_ for id_, _ in parts])


def _sentence(entity: Entity, name: str, parts: Sequence[str]) -> str:
    verbs: Mapping[str, str] = {
        "home": "lives",
        "work": "works",
        "married": "is married to",
        "allergies": "is allergic to",
        "fears": "is afraid of",
    }
    said = f"{entity.name} {verbs.get(name, name)} "
    return f"{said}{'; '.join(parts)}." if parts else said


def _recurring(entity: Entity, rest: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """The word that most of the other observations have in common."""
    own = set(content_stems(entity.name))
    stems = {id_: set(content_stems(text)) - own for id_, text in rest}
    spread = Counter(one for each in stems.values() for one in each)
    if not spread:
        return []
    word, count = min(spread.items(), key=lambda one: (-one[1], one[0]))
    if count < _LEAST:
        return []
    having = [(id_, text) for id_, text in rest if word in stems[id_]]
    newest = shortened((sentences(having[-1][1]) or [having[-1][1]])[0], _LONGEST)
    value = f"Noticed {count} times, last: {newest}"
    return [_given(entity, f"about_{word}", value, [id_ for id_, _ in having])]


def _given(entity: Entity, name: str, value: str, evidence: Sequence[str]) -> dict[str, Any]:
    return {"entity": entity.id, "name": name, "value": value, "evidence": list(evidence)}


# How the offline model relates facts in a dream: by their words, and nothing else. Pure.
#
# Of a new fact and one shown near to it, the first of these that fits, same speaker or none:
#
# - duplicates: the same words in the same order;
# - supersedes: mostly the same words, another value, and the later one says that something changed;
#   or the later one says of all its words that this is over;
# - relates (whoever speaks): they share a name or another telling word that few facts shown have.
#
# What facts mean it does not know: it finds no contradictions, and describes a fact by shared words.
_OVER = re.compile(
    r"\b(?:no longer|not any ?more|any ?more|cancell?ed|called off|stopped|quit)\b", re.IGNORECASE
)
_CHANGED = re.compile(
    rf"{_OVER.pattern}|\b(?:now|moved|changed|instead|postponed|rescheduled|switched)\b",
    re.IGNORECASE,
)
_CHANGE_STEMS = frozenset(
    content_stems(
        "longer anymore cancelled canceled called stopped quit changed instead postponed "
        "rescheduled switched"
    )
)
_MOVED = re.compile(r"\bmov(?:e|es|ed|ing) (?:back |over |out )?to\b", re.IGNORECASE)
_ONESELF = re.compile(r"\b(?:i|my|mine|we|our|ours)\b", re.IGNORECASE)
_NAME = re.compile(r"\b[A-Z][\w'\u2019-]+")
_MOST_RELATED = 3
"""Of one new fact, besides duplicates and what it supersedes."""
_RARE = 0.25
"""Of the facts shown, the share that may have a word that still says something."""
_SHORTEST = 3
"""Letters of the stem of a word that relates."""
_TAGS = 5
_EVERYDAY = frozenset(
    content_stems(
        "ask bring buy call come find get give go have help hope keep know leave like live look "
        "love make mean meet need plan put say see sell send start take tell think try use want "
        "work good great new old thing time way day week month year one two three"
    )
)
"""Words in which two facts are alike without having anything to do with each other."""


@dataclass(frozen=True)
class Shown:
    """All facts of a prompt."""

    new: tuple[DatedLine, ...]
    all: Mapping[str, DatedLine]
    spread: Mapping[str, int]
    """By stem, how many facts have it."""
    names: frozenset[str]
    """Stems that stand with a capital letter only."""


def dream(prompt: Prompt) -> dict[str, Any]:
    """The relations of the new facts shown to those near them, and tags by what relates them."""
    shown = _read_facts(prompt)
    relations: list[dict[str, str]] = []
    contexts: list[dict[str, Any]] = []
    gone, done = set[str](), set[frozenset[str]]()
    for fact in shown.new:
        near = [shown.all[one] for one in fact.near if one in shown.all]
        near = [one for one in near if frozenset((fact.id, one.id)) not in done]
        done |= {frozenset((fact.id, one.id)) for one in near}
        relations += _ends(fact, near, shown, gone)
        if fact.id not in gone:
            related, tags = _related(fact, [one for one in near if one.id not in gone], shown)
            relations += related
            contexts += [{"fact": fact.id, "context": "", "tags": tags}] if tags else []
    return {"relations": relations, "contexts": contexts}


def _ends(
    fact: DatedLine, near: Sequence[DatedLine], shown: Shown, gone: set[str]
) -> Iterator[dict[str, str]]:
    """The claims by which a fact is no longer needed; its id is among those `gone` then."""
    for other in near:
        ends = None if {fact.id, other.id} & gone else _ended(fact, other, shown)
        if ends is not None:
            gone.add(ends["other"])
            yield ends


def _related(
    fact: DatedLine, near: Sequence[DatedLine], shown: Shown
) -> tuple[list[dict[str, str]], list[str]]:
    """The claims that it belongs with others, of those that share the rarest words; the words."""
    shared = [(other, _in_common(fact, other, shown)) for other in near]
    best = sorted(shared, key=lambda one: -sum(1 / shown.spread[each] for each in one[1]))
    claims, tags = list[dict[str, str]](), dict[str, None]()
    for other, stems in best[:_MOST_RELATED]:
        if stems:
            said = _as_said(fact.text, stems)
            tags |= dict.fromkeys(said)
            claims.append(_pair(fact, other, "relates", f"both say {' and '.join(said[:3])}"))
    return claims, list(tags)[:_TAGS]


def _stems(fact: DatedLine) -> frozenset[str]:
    """What it says, without stop words, its speaker and words of change; to move is to live."""
    said = content_stems(_MOVED.sub("live in", fact.text))
    return frozenset(said) - _CHANGE_STEMS - frozenset(content_stems(fact.speaker or ""))


def _read_facts(prompt: Prompt) -> Shown:
    new = [fact for fact in map(read_new_fact, prompt.data_lines("new_facts")) if fact]
    old = [fact for fact in map(read_dated, prompt.data_lines("facts")) if fact]
    every = {fact.id: fact for fact in (*old, *new)}
    spread = Counter(each for fact in every.values() for each in _stems(fact))
    capital, small = set[str](), set[str]()
    for fact in every.values():
        capital |= {stem(one) for name in _NAME.findall(fact.text) for one in words(name)}
        small |= set(content_stems(_NAME.sub(" ", fact.text)))
    return Shown(tuple(new), every, spread, frozenset(capital - small))


def _ended(one: DatedLine, other: DatedLine, shown: Shown) -> dict[str, str] | None:
    """The claim that one of the two is no longer needed, the newer one or the older id first."""
    if one.speaker != other.speaker:
        return None
    if words(one.text) == words(other.text):
        return _pair(other, one, "duplicates", "the same speaker in the same words")
    later, earlier = _in_time(one, other)
    sign = _CHANGED.search(later.text)
    if sign is None or not _about_the_same(later, earlier, shown):
        return None
    return _pair(later, earlier, "supersedes", f"the later one says '{sign.group().lower()}'")


def _in_time(one: DatedLine, other: DatedLine) -> tuple[DatedLine, DatedLine]:
    """The later of the two first; on one day that is the one that speaks of a change."""

    def key(fact: DatedLine) -> tuple[str, bool]:
        return fact.at, bool(_CHANGED.search(fact.text))

    return (one, other) if key(one) >= key(other) else (other, one)


def _about_the_same(later: DatedLine, earlier: DatedLine, shown: Shown) -> bool:
    """Mostly the same words, names aside, and another value; or an end to the very same.

    What somebody says of themselves is never the same as what they say of others.
    """
    mine, its = _stems(later), _stems(earlier)
    shared = mine & its
    of_oneself = [bool(_ONESELF.search(one.text)) for one in (later, earlier)]
    if not shared - shown.names or of_oneself[0] != of_oneself[1]:
        return False
    if _OVER.search(later.text) and mine <= its:
        return True
    if 2 * len(shared) < max(len(mine), len(its)) or not (mine - its and its - mine):
        return False
    return len(shared) > 1 or all(
        _is_particular(fact, _stems(fact) - shared) for fact in (later, earlier)
    )


def _is_particular(fact: DatedLine, stems: frozenset[str]) -> bool:
    """Whether one of these words of the fact is a name, a number or a time."""
    said = [one for one in re.findall(r"[\w'\u2019-]+", fact.text) if stem(one.lower()) in stems]
    return any(one[0].isupper() or has_particulars(one) for one in said)


def _in_common(one: DatedLine, other: DatedLine, shown: Shown) -> list[str]:
    """The stems that both have and few others, the rarest first."""
    most = max(2, int(_RARE * len(shown.all)))
    found = [
        each
        for each in _stems(one) & _stems(other)
        if each not in _EVERYDAY
        and shown.spread[each] <= (2 * most if each in shown.names else most)
        and (each in shown.names or len(each) >= _SHORTEST)
    ]
    return sorted(found, key=lambda each: (shown.spread[each], each))


def _as_said(text: str, stems: Sequence[str]) -> list[str]:
    """The words of `text` with these stems, as they stand there, in lower case."""
    first: dict[str, str] = {}
    for one in _content_words(_MOVED.sub("live in", text)):
        first.setdefault(stem(one), one)
    return [first.get(one, one) for one in stems]


def _content_words(text: str) -> Iterator[str]:
    yield from (one for one in words(text) if one not in STOP_WORDS)


def _pair(one: DatedLine, other: DatedLine, relation: str, reason: str) -> dict[str, str]:
    return {"fact": one.id, "other": other.id, "relation": relation, "reason": reason}
