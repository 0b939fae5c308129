"""Parts of the model's answers in a night."""

from collections.abc import Sequence

from memory.night.relations import Described, Pair, Relation
from nodes.night.consolidate_entities import AttributeGiven
from nodes.night.reflect import InsightGiven


def pair(fact: str, other: str, relation: Relation, reason: str) -> Pair:
    return Pair(fact=fact, other=other, relation=relation, reason=reason)


def described(fact: str, context: str, tags: Sequence[str]) -> Described:
    return Described(fact=fact, context=context, tags=list(tags))


def insight(text: str, evidence: Sequence[str], importance: int) -> InsightGiven:
    return InsightGiven(text=text, evidence=list(evidence), importance=importance)


def attribute_given(name: str, value: str, evidence: Sequence[str]) -> AttributeGiven:
    return AttributeGiven(entity="ada", name=name, value=value, evidence=list(evidence))
