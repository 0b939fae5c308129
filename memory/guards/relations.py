"""Which relations of two facts their words, speakers and times support. Pure."""

from __future__ import annotations

from collections.abc import Collection

from memory.guards.lexicon import languages
from memory.guards.mood import is_quote
from memory.guards.persona import speaks_of_oneself
from memory.records import Fact
from memory.text import content_stems, name_key, says, terms

LEAST_ALIKE = 0.2
"""The share (0..1) of the shorter fact's terms that duplicates have in common."""

LEAST_SHARED = 2
"""Telling words that a fact shares with what it supersedes, where they name no entity in common."""

SAME_WORDS = 0.8
"""The share (0..1) of all terms that duplicates without a speaker have in common."""


def about_the_same(one: Fact, other: Fact) -> bool:
    """Whether two facts can be about one thing: they share an entity, or two telling words."""
    named = {*map(name_key, one["entities"])} & {*map(name_key, other["entities"])}
    said = {*content_stems(one["text"])} & {*content_stems(other["text"])}
    return bool(named) or len(said) >= LEAST_SHARED


def may_supersede(one: Fact, other: Fact, owners: Collection[str] = ()) -> bool:
    """Whether `one` may supersede `other`: it is not older, and not trusted less.

    Speakers may always take back what they said. What somebody says of themselves, or an owner
    says, others can only contradict; and where it is known who the owners are, nobody else takes
    back what another person said. What was passed on of somebody's words or affairs, that person
    may take back: first hand stands above hearsay.
    """
    if one["valid_from"] < other["valid_from"]:
        return False
    speaker = other["speaker"]
    if speaker is not None and one["speaker"] == speaker:
        return True
    if speaker is not None and speaker not in owners and _passes_on(other, one["speaker"]):
        return one["trust"] >= other["trust"]
    if speaker is not None and (_of_oneself(other) or speaker in owners):
        return one["speaker"] in owners and speaker not in owners and one["trust"] >= other["trust"]
    if owners and speaker is not None and one["speaker"] not in owners:
        return False
    return one["trust"] >= other["trust"]


def _passes_on(fact: Fact, name: str | None) -> bool:
    """Whether its speaker tells of `name` as a third person does, and of nothing of their own."""
    speaker, text = fact["speaker"], fact["text"]
    if not name or not speaker or not text.startswith(speaker):
        return False
    told = text.removeprefix(speaker)
    quoted = is_quote(text, languages(text)) and not speaks_of_oneself(told)
    return quoted and says(told, name) and not says(told, speaker)


def _of_oneself(fact: Fact) -> bool:
    """Whether the speaker speaks of themselves, by name or in the first person."""
    speaker = fact["speaker"]
    if speaker is None:
        return False
    named = name_key(speaker) in map(name_key, fact["entities"]) or says(fact["text"], speaker)
    return named or speaks_of_oneself(fact["text"])


def may_be_one(one: Fact, other: Fact) -> bool:
    """Whether two facts can be merged: they have the same speaker and share words.

    Facts of two speakers stay apart, however alike they are. Two facts without a speaker may be
    about different people, and are merged only if their words are almost the same.
    """
    if one["speaker"] != other["speaker"]:
        return False
    first, second = set(terms(one["text"])), set(terms(other["text"]))
    if one["speaker"] is None:
        return bool(first) and len(first & second) / len(first | second) >= SAME_WORDS
    smaller = min(len(first), len(second))
    return smaller > 0 and len(first & second) / smaller >= LEAST_ALIKE


def said_earlier(fact: Fact) -> float:
    """A number that grows with the fact's age."""
    digits = "".join(one for one in fact["valid_from"][:19] if one.isdigit())
    return -float(digits or 0)
