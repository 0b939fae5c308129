"""Attributes of an entity from observations (O-Mem, arXiv 2511.13593; data-flow-03, 4.2). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from memory.guards import OWN, Said, from_elsewhere, share, violation, worded
from memory.records import (
    Attribute,
    EntityProfile,
    Observation,
    Operation,
    change_entity,
    speaks_as,
)

MOST_ATTRIBUTES = 40

MOST_REPLACED = 10
"""The number of earlier values that an attribute keeps."""


class Synthesis(NamedTuple):
    """An attribute as the model gave it."""

    name: str
    value: str
    evidence: Sequence[str]
    """Observation ids, as shown."""


class Consolidated(NamedTuple):
    """The operation that an answer leads to, and why parts of it were refused."""

    operation: Operation | None
    refused: list[str]


def ripe(profile: EntityProfile, least: int) -> list[Observation]:
    """The observations that wait to be consolidated, if there are at least `least`; else []."""
    waiting = [one for one in profile["observations"] if not one["consolidated"]]
    return waiting if len(waiting) >= least else []


def consolidated(
    profile: EntityProfile,
    shown: Sequence[Observation],
    given: Iterable[Synthesis],
    *,
    now: str,
    prune: bool,
    beside: Sequence[str] = (),
    owners: Collection[str] = (),
) -> Consolidated:
    """Set a profile's new attributes; mark the shown observations as consolidated, or prune them.

    An attribute is refused if

    - it has no evidence among the observations shown,
    - it is about the assistant,
    - other texts shown support it and its evidence does not (`beside`: observations of others),
    - it is hearsay: somebody speaks for themselves, and only others than `owners` say this of them.

    A changed attribute keeps its earlier values. If every attribute was refused, the observations
    stay as they are, because a broken answer settles nothing; hearsay is no broken answer.
    """
    known = {one["id"]: one for one in profile["observations"]}
    ids, refused, hearsay = {one["id"] for one in shown}, list[str](), False
    attributes, made = dict(profile["attributes"]), dict[str, Attribute]()
    for one in given:
        name, value = _name(one.name), " ".join(one.value.split())
        evidence = [each for each in dict.fromkeys(one.evidence) if each in known]
        own = _counting(profile, [known[each] for each in evidence], owners)
        why = _problem(name, value, evidence, ids, _in_own_words(value, own))
        if why is None and (why := _unborne(name, value, profile, own, beside)) is not None:
            hearsay = True
        if why is None and name not in attributes and len(attributes) >= MOST_ATTRIBUTES:
            why = f"{name}: there are {MOST_ATTRIBUTES} attributes already"
        if why is not None:
            refused.append(why)
            continue
        refused += [f"unknown id: {each}" for each in one.evidence if each not in known]
        attributes[name] = made[name] = _attribute(attributes.get(name), value, evidence, now)
    if not made and not hearsay:
        return Consolidated(None, refused)
    cited = {each for attribute in attributes.values() for each in attribute["evidence"]}
    gone = [one for one in known if prune and one in ids and one not in cited]
    settled = [one for one in known if one in ids and one not in gone]
    sources = list(dict.fromkeys(each for one in shown for each in one["sources"]))
    reason = f"{len(shown)} observations"
    return Consolidated(change_entity(profile, made, settled, gone, sources, reason), refused)


def _problem(
    name: str, value: str, evidence: Sequence[str], shown: set[str], speaker: str | None
) -> str | None:
    if not name or not value:
        return "an attribute without a name or a value"
    if not shown & set(evidence):
        return f"{name}: no evidence among the observations shown"
    return violation(value, speaker)


def _counting(
    profile: EntityProfile, evidence: Sequence[Observation], owners: Collection[str]
) -> list[Observation]:
    """The evidence that counts: for somebody who speaks for themselves, their and owners' words."""
    if not profile["senders"]:
        return list(evidence)
    return [
        one
        for one in evidence
        if (who := one["speaker"]) is not None and (who in owners or speaks_as(profile, who))
    ]


def _in_own_words(value: str, evidence: Sequence[Observation]) -> str | None:
    """The speaker whose words the value repeats; None if it is in the model's words."""
    said = [one for one in evidence if one["speaker"] and share(value, [one["text"]]) >= OWN]
    return said[0]["speaker"] if said else None


def _unborne(
    name: str,
    value: str,
    profile: EntityProfile,
    own: Sequence[Observation],
    beside: Sequence[str],
) -> str | None:
    if not own:
        return f"{name}: only others say so of {profile['name']}"
    cited = {one["id"] for one in own}
    others = [one["text"] for one in profile["observations"] if one["id"] not in cited]
    grounds = [worded(Said(profile["name"], one["text"])) for one in own]
    if from_elsewhere(value, grounds, [*others, *beside]):
        return f"{name}: it stands on other observations than it names"
    return None


def _attribute(old: Attribute | None, value: str, evidence: Sequence[str], now: str) -> Attribute:
    if old is None:
        return {"value": value, "evidence": list(evidence), "at": now, "replaced": []}
    if old["value"] == value:
        return {**old, "evidence": list(dict.fromkeys([*old["evidence"], *evidence]))}
    was = {"value": old["value"], "evidence": old["evidence"], "at": old["at"]}
    replaced = [*old["replaced"], was][-MOST_REPLACED:]
    return {"value": value, "evidence": list(evidence), "at": now, "replaced": replaced}


def _name(text: str) -> str:
    return "_".join(text.casefold().split())[:60]
