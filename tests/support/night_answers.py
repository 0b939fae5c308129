"""Parts of the model's answers in a night."""

from __future__ import annotations

from collections.abc import Sequence

from nodes.night.consolidate_entities import AttributeGiven
from nodes.night.dream import Described, Pair, Relation
from nodes.night.reflect import InsightGiven


def pair(fact: str, other: str, relation: Relation, reason: str) -> Pair:
    """A relation between two facts, by the ids shown."""
    return Pair(fact=fact, other=other, relation=relation, reason=reason)


def described(fact: str, context: str, tags: Sequence[str]) -> Described:
    """What a fact is about."""
    return Described(fact=fact, context=context, tags=list(tags))


def insight(text: str, evidence: Sequence[str], importance: int) -> InsightGiven:
    """An insight with the ids of its evidence."""
    return InsightGiven(text=text, evidence=list(evidence), importance=importance)


def attribute_given(name: str, value: str, evidence: Sequence[str]) -> AttributeGiven:
    """An attribute with the ids of its evidence."""
    return AttributeGiven(entity="ada", name=name, value=value, evidence=list(evidence))
