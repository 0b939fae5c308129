"""How the offline model makes attributes of observations: by verbs, in their own words. Pure.

An observation that says what somebody likes, where they live and the like gives the attribute of
its verb; of a home or a work the newest one counts, of the others all are listed. A word that comes
up in several of the rest is an attribute, too. Where no rule fits, the newest observation is
quoted, as what was noticed last.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory.models.offline_prompt import Prompt, data_lines
from memory.models.words import content_stems, sentences, shortened

_ENTITY = re.compile(r"^Entity \[(?P<id>[^\]]+)\] (?P<name>.*)$")
_KNOWN = re.compile(r"^known (?P<name>[^:\s]+): (?P<value>.*)$")
_OBSERVED = re.compile(r"^\[(?P<id>[^\]]+)\] (?P<day>\S+) (?P<who>[^:]*): (?P<text>.*)$")
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
    for line in data_lines(prompt, "entities"):
        if match := _ENTITY.match(line):
            found.append(Entity(match["id"], match["name"].strip()))
        elif found and (match := _KNOWN.match(line)):
            found[-1].known[match["name"]] = match["value"].strip()
        elif found and (match := _OBSERVED.match(line)):
            found[-1].observed.append((match["id"], match["text"].strip()))
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
