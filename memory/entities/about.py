"""What facts are about: the people, places and things that they name. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from memory.guards import fold, is_assistant, languages, negates, share, speaks_of_oneself
from memory.records import LOCAL_USER, Attribute, EntityProfile, Fact, Observation, part_id
from memory.text import (
    LONGEST,
    MONTHS,
    PRONOUNS,
    SPEAKER,
    WEEKDAYS,
    content_stems,
    depends_on_speaker,
    name_key,
    regex,
    says,
    words,
)

_TIME_WORDS = "today tomorrow yesterday morning noon evening night week weekend month year"
_TIMES = frozenset(
    [*map(str.lower, (*MONTHS, *WEEKDAYS)), *_TIME_WORDS.split(), *map(str, range(2_100))]
)
"""Words that name a time and, alone, no thing."""


@dataclass
class Subject:
    """An entity that facts are about."""

    id: str
    name: str
    """As the facts first call it."""
    facts: list[Fact] = field(default_factory=list)
    """In the order of the time from which they hold."""
    speaks: bool = False
    """Whether it is the speaker of any fact."""


_PROPER = r"[^\W\d_a-zà-öø-ÿ][\w'-]*(?: [^\W\d_a-zà-öø-ÿ][\w'-]*){0,2}"
"""A name: one to three words that begin with a capital letter."""

_GIVEN = regex(
    r"\b(?i:my (?:full )?name is|call me|i am called|ich hei(?:ß|ss)e|mein name ist|nennt? mich|"
    r"je m['\u2019]appelle|mon nom est|mi chiamo|il mio nome è|me llamo|mi nombre es|"
    r"o meu nome é|chamo-me|nazywam się|mam na imię|ik heet|jag heter|jeg heter)"
    rf" (?P<name>{_PROPER})"
)
_BEING = regex(
    r"\b(?i:i am|i['\u2019]m|this is|ich bin|hier (?:ist|spricht)|je suis|sono|soy) "
    rf"(?P<name>{_PROPER})"
)


def names_given(text: str, sender: str) -> dict[str, bool]:
    """The names that a sender gives for themselves, each with whether it adds to the sender's own.

    "I am Nadja Berisha" counts only from Nadja, and from the local user, who has no name yet,
    because "I am Austrian" names nobody.
    """
    own = name_key(sender)
    named = [match["name"] for match in _GIVEN.finditer(text)]
    for match in _BEING.finditer(text):
        name = match["name"]
        if _adds(name, own) or (sender == LOCAL_USER and " " in name):
            named.append(name)
    return {name: _adds(name, own) for name in named if name_key(name) != own}


def _adds(name: str, own: str) -> bool:
    """Whether a name begins with the person's own name, as a full name does; accents aside."""
    return fold(name_key(name)).startswith(f"{fold(own)} ")


def names_about(fact: Fact, assistant: Sequence[str]) -> list[str]:
    """The names of people and things in a fact. `assistant`: its names, which mean nobody else.

    Its speaker is among them if the fact names nobody else, names the speaker, or is in the first
    person. "Ben: The oven is broken" is about the oven.
    """
    return list(
        _names_about(fact["text"], fact["speaker"], tuple(fact["entities"]), tuple(assistant))
    )


@lru_cache(maxsize=4_096)
def _names_about(
    text: str, speaker: str | None, entities: Sequence[str], assistant: Sequence[str]
) -> tuple[str, ...]:
    """Cached: every step of a night asks about the newest facts again."""
    named = [name for name in entities if _is_name(name, assistant)]
    if speaker is not None and _is_name(speaker, assistant):
        own = says(text, speaker) or speaks_of_oneself(text)
        named += [speaker] if own or not named else []
    return tuple({name_key(name): name for name in named}.values())


def subjects(
    facts: Iterable[Fact], ids: Mapping[str, str], assistant: Sequence[str]
) -> dict[str, Subject]:
    """The entities that `facts` are about, by id. `ids`: ids of entities by name."""
    found: dict[str, Subject] = {}
    ordered = sorted(facts, key=lambda fact: (fact["valid_from"], fact["op"]))
    for fact in ordered:
        for name in names_about(fact, assistant):
            subject = found.setdefault(ids[name], Subject(ids[name], name))
            subject.speaks = subject.speaks or name == fact["speaker"]
            if fact not in subject.facts[-1:]:
                subject.facts.append(fact)
    return found


def cited_by(profiles: Iterable[EntityProfile]) -> set[str]:
    """Operation ids of the facts, and ids of the observations, behind attributes."""
    attributes = (one for profile in profiles for one in profile["attributes"].values())
    return {id_ for attribute in attributes for id_ in attribute["evidence"]}


def evidence_now(
    attribute: Attribute, observed: Collection[str], facts: Mapping[str, Fact]
) -> list[str] | None:
    """The present evidence of an attribute; None if any of its facts no longer holds.

    A fact that was merged into a duplicate is replaced by the duplicate, and one that fell in part
    by the part that holds, if that says the value.

    Args:
        attribute: Of a profile.
        observed: Ids of the profile's observations.
        facts: Its evidence and what superseded that, by operation id, as in `superseded_by`.
    """
    found: dict[str, None] = {}
    for id_ in attribute["evidence"]:
        stands = id_ if id_ in observed else _holds_in_place(id_, facts, attribute["value"])
        if stands is None:
            return None
        found[stands] = None
    return list(found)


def _holds_in_place(op: str, facts: Mapping[str, Fact], value: str) -> str | None:
    """The fact itself, the duplicate that it was merged into, or the part of it that says `value`,
    if one of them holds.
    """
    seen = set[str]()
    while op in facts and op not in seen:
        seen.add(op)
        fact = facts[op]
        heir = facts.get(fact["superseded_by"] or "")
        if fact["invalid_at"] is None:
            return op
        if heir is None:
            return None
        if {*fact["source_entries"]} <= {*heir["source_entries"]}:
            op = heir["op"]
        else:
            part = part_id(op, heir["op"])
            if part not in facts or not _says(facts[part]["text"], value):
                return None
            op = part
    return None


def holding(
    profile: EntityProfile, facts: Mapping[str, Fact], made: Collection[Fact]
) -> EntityProfile:
    """The profile without what no longer holds: the stored one keeps it until the next night.

    An attribute falls with a fact behind it; an observation if, of the facts made of its sources,
    one that fell has more of its words than all that hold.

    Args:
        profile: As it is stored.
        facts: Those behind its attributes, by operation id.
        made: Facts made of the sources of its observations.
    """
    own = {*content_stems(" ".join((profile["name"], *profile["aliases"], *profile["senders"])))}

    def words_in_common(facts: Iterable[Fact], observation: Observation) -> int:
        mine = {*content_stems(observation["text"])} - own
        return max((len(mine & {*content_stems(fact["text"])}) for fact in facts), default=0)

    def stands(one: Observation) -> bool:
        told = [fact for fact in made if not {*one["sources"]}.isdisjoint(fact["source_entries"])]
        fell = [fact for fact in told if fact["invalid_at"] is not None]
        holds = (fact for fact in told if fact not in fell)
        return words_in_common(fell, one) <= words_in_common(holds, one)

    attributes = {
        name: one
        for name, one in profile["attributes"].items()
        if evidence_now(one, {*one["evidence"]} - facts.keys(), facts)
    }
    noted = [one for one in profile["observations"] if stands(one)]
    return {**profile, "attributes": attributes, "observations": noted}


SAID_SHARE = 0.8
"""A text says a value if it has at least this share (0..1) of the value's terms."""


def _says(text: str, value: str) -> bool:
    """Whether a text says a value: most of its words, all of its numbers, and no other mood."""
    numbers = {*_NUMBER.findall(value)} <= {*_NUMBER.findall(text)}
    denied = negates(text, languages(text)) != negates(value, languages(value))
    return numbers and not denied and share(value, [text]) >= SAID_SHARE


_NUMBER = regex(r"\d+")


def _is_name(name: str, assistant: Sequence[str]) -> bool:
    """Whether a name means the same to everyone, and is not the assistant's."""
    key = name_key(name)
    plain = key in PRONOUNS or key in SPEAKER or depends_on_speaker(name)
    told = len(name) <= LONGEST and any(word not in _TIMES for word in words(name))
    return told and not plain and not is_assistant(name, assistant)
