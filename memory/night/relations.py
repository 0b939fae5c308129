"""How two facts stand to each other: a model's claims, checked, as operations (A-MEM)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from pydantic import BaseModel, Field

from memory.guards import (
    Source,
    about_the_same,
    content,
    from_elsewhere,
    is_translated,
    joining,
    lost_in,
    may_be_one,
    may_supersede,
    not_left,
    repeats,
    rewords,
    ungrounded,
    violation,
)
from memory.messages import Citation
from memory.night.steps import NAMED_BY, Thought
from memory.operations import facts_after
from memory.records import (
    Fact,
    FactDraft,
    Operation,
    add_fact,
    change_fact,
    doubt_fact,
    last_heir,
    link,
    link_facts,
    part_id,
    settle_fact,
)
from memory.text import content_stems, name_key, regex, says, shortened

Relation = Literal["relates", "duplicates", "supersedes", "contradicts", "depends_on"]

ENDING: tuple[Relation, ...] = ("supersedes", "duplicates")
"""Relations that end one of the two facts."""

MOST_TAGS = 12

MOST_EARLIER = 10
"""The number of earlier contexts that a fact keeps."""


class Pair(BaseModel):
    """How two facts stand to each other."""

    fact: Citation = Field(
        description="A fact's number; with supersedes, of the one that holds; with depends_on, of "
        "the one that rests on the other."
    )
    other: Citation = Field(description="The other fact's number.")
    relation: Relation
    reason: str = Field("", description="Why, in a few words.")
    remains: str = Field(
        "",
        description="With supersedes: the part of the other fact that is still true, as a full "
        "sentence; empty if all of it fell.",
    )


class Described(BaseModel):
    """What a fact is about, seen with its neighbours."""

    fact: Citation = Field(description="The fact's number.")
    context: str = Field(description="One sentence.")
    tags: list[str] = Field(default_factory=list, description="Up to five words.")


def settle(
    claims: Iterable[Pair],
    shown: Mapping[str, Fact],
    new: Collection[str],
    *,
    now: str,
    owners: Collection[str] = (),
    dependents: Mapping[str, Fact] = MappingProxyType({}),
) -> Thought:
    """The operations of the claims, whatever their order; each pair of facts counts once.

    A claim about a fact that was not shown is refused. So is a claim about two old facts, unless
    they name the same entity and one of them ends or depends on the other, and a claim that makes a
    fact its own heir. `claims` and `new` name facts by operation id; `dependents`: facts that
    depend on those shown and were not shown.
    """
    kept, refused = _in_order(claims, shown, new)
    made, seen = Thought(refused=refused), {*map(pair_key, kept)}
    stands: dict[str, str] = {}
    # A fact can be in several pairs, so each claim sees the effects of the claims before it.
    facts = {**dependents, **shown}
    for given in kept:
        claim = _of_heirs(given, kept, stands, facts)
        if (pair := pair_key(claim)) != pair_key(given) and pair in seen:
            continue
        seen.add(pair)
        one, other = facts[claim.fact], facts[claim.other]
        if other in (one, last_heir(one, facts)):
            if given.relation in ("supersedes", "contradicts"):
                both = (fact_named(shown[op]) for op in (given.fact, given.other))
                made.refused.append(f"other claims deny it: {f' {given.relation} '.join(both)}")
            continue
        relation, first, second = _weighed(claim, facts, owners)
        operations = _operations(relation, first, second, claim.reason, now)
        if relation == "supersedes" and (text := " ".join(claim.remains.split())):
            if why := _not_of(text, second, first):
                made.refused.append(f"{text!r}, what remains of {fact_named(second)}: {why}")
            else:
                operations += _remaining(text, second, first, now)
                stands[second["op"]] = part_id(second["op"], first["op"])
        disproved = relation == "contradicts" and claim.relation == "supersedes"
        disproved = disproved and first["op"] == _newer(one, other)
        facts = facts_after(facts, operations)
        if relation in ENDING or disproved:
            part = facts.get(stands.get(second["op"], ""))
            after = _passed_on(relation, first, second, facts, part, now)
            facts, operations = facts_after(facts, after), [*operations, *after]
        made.operations.extend(operations)
        if relation == "duplicates":
            stands[second["op"]] = first["op"]
    return made


_PLACES = {"depends_on": 0, "duplicates": 1, "supersedes": 1, "contradicts": 2, "relates": 3}


def _in_order(
    claims: Iterable[Pair], shown: Mapping[str, Fact], new: Collection[str]
) -> tuple[list[Pair], list[str]]:
    """(the claims in an order that does not depend on the given one, why others are refused).

    Dependencies come first, because a superseded fact leaves those that depend on it in doubt. Then
    facts end in the order in which they were said, as if a night had read each by itself.
    """
    kept, refused = dict[tuple[bool, frozenset[str]], Pair](), list[str]()
    for claim in claims:
        if problem := _problem(claim, shown, new, kept):
            refused.append(problem)
        else:
            kept[pair_key(claim)] = claim

    def place(claim: Pair) -> tuple[int, str, str, str, list[str]]:
        ops = sorted((claim.fact, claim.other))
        first, last = sorted(shown[op]["valid_from"] for op in ops)
        return _PLACES[claim.relation], last, claim.relation, first, ops

    return sorted(kept.values(), key=place), refused


def _of_heirs(
    claim: Pair, claims: Iterable[Pair], stands: Mapping[str, str], facts: Mapping[str, Fact]
) -> Pair:
    """The claim with what stands for a fact that fell; of duplicates, the one that stays first.

    What says all of another fact again, after something else was said, stays and supersedes that.
    """
    both, relation = (claim.fact, claim.other), claim.relation
    one, other = (
        _standing(facts[op], facts[beside], relation in ENDING, stands, facts)
        for op, beside in (both, both[::-1])
    )
    if relation == "duplicates":
        earlier, later = sorted((one, other), key=lambda fact: fact["valid_from"])
        one, other = joining(one, other)
        says_all = not lost_in(later, earlier)
        if (heir := last_heir(earlier, facts)) != earlier and says_all and may_be_one(one, other):
            relation, one, other = "supersedes", later, heir
        elif may_supersede(later, earlier) and _said_between(earlier, later, claims, facts):
            one, other = later, earlier
    update = {"fact": one["op"], "other": other["op"], "relation": relation}
    return claim.model_copy(update=update)


def _standing(
    fact: Fact, beside: Fact, is_ending: bool, stands: Mapping[str, str], facts: Mapping[str, Fact]
) -> Fact:
    """The duplicate that a fact was joined into, or its part that remains, if that is about
    `beside`; else the fact itself.
    """
    while heir := facts.get(stands.get(fact["op"], "")):
        by = facts[fact["superseded_by"] or ""]
        near = _is_nearer(beside, heir, by) if is_ending else about_the_same(beside, heir)
        if heir != by and not near:
            break
        fact = heir
    return fact


def _said_between(
    earlier: Fact, later: Fact, claims: Iterable[Pair], facts: Mapping[str, Fact]
) -> bool:
    """Whether a claim sets the later of two facts against one that was said after the earlier."""
    ends = ({one.fact, one.other} for one in claims if one.relation == "supersedes")
    against = (facts[op] for both in ends if later["op"] in both for op in both - {later["op"]})
    first, last = earlier["valid_from"], later["valid_from"]
    return any(first < one["valid_from"] <= last for one in against)


def _problem(
    claim: Pair,
    shown: Mapping[str, Fact],
    new: Collection[str],
    seen: Collection[tuple[bool, frozenset[str]]],
) -> str | None:
    unknown = [one for one in (claim.fact, claim.other) if one not in shown]
    if unknown:
        return f"unknown id: {', '.join(unknown)}"
    one, other = (fact_named(shown[op]) for op in (claim.fact, claim.other))
    if claim.fact == claim.other:
        return f"{one} is related to itself"
    is_late = claim.relation in ("supersedes", "depends_on") and _share(shown, claim)
    if claim.fact not in new and claim.other not in new and not is_late:
        return f"neither {one} nor {other} is new"
    if pair_key(claim) in seen:
        return f"{one} and {other} are related already"
    return None


def fact_named(fact: Fact) -> str:
    """A fact in a report, whose reader knows no ids."""
    return repr(shortened(fact["text"], NAMED_BY))


def pair_key(claim: Pair) -> tuple[bool, frozenset[str]]:
    """The key by which a claim counts once; a dependency counts beside another relation."""
    return claim.relation == "depends_on", frozenset((claim.fact, claim.other))


def _weighed(
    claim: Pair, facts: Mapping[str, Fact], owners: Collection[str]
) -> tuple[Relation, Fact, Fact]:
    """(the relation that the two facts support, the fact that stays, the other one)."""
    one, other = facts[claim.fact], facts[claim.other]
    if other["invalid_at"] or (one["invalid_at"] and claim.relation != "supersedes"):
        return "relates", one, other
    if claim.relation == "supersedes":
        # A fact of doubtful origin counts as the speaker's fact from the same sources.
        said = [each for each in facts.values() if one["speaker"] is None and each["speaker"]]
        said = [each for each in said if last_heir(each, facts) != other]
        for first in (one, *(each for each in said if may_be_one(each, one))):
            if about_the_same(first, other) and may_supersede(first, other, owners):
                return "supersedes", first, other
        return "contradicts" if about_the_same(one, other) else "relates", one, other
    if claim.relation == "duplicates":
        return "duplicates" if may_be_one(one, other) else "relates", one, other
    return claim.relation, one, other


def _share(shown: Mapping[str, Fact], claim: Pair) -> bool:
    """Whether two facts name one entity: what an earlier night overlooked may still be said."""
    one, other = shown[claim.fact], shown[claim.other]
    return bool({*map(name_key, one["entities"])} & {*map(name_key, other["entities"])})


def _newer(one: Fact, other: Fact) -> str:
    return max((one, other), key=lambda fact: (fact["valid_from"], fact["op"]))["op"]


def _operations(
    relation: Relation, first: Fact, second: Fact, reason: str, now: str
) -> list[Operation]:
    ops = [link_facts(first["op"], second["op"], relation, now, reason)]
    if relation == "supersedes":
        ops.append(_superseded(second, first["op"], now, reason))
    elif relation == "duplicates":
        # A speaker's fact takes nothing from a fact of doubtful origin.
        ops += _joined(first, second, reason) if first["speaker"] == second["speaker"] else []
        ops.append(_superseded(second, first["op"], now, reason))
    elif relation == "depends_on":
        ops = _depends(first, second, [first["op"], second["op"]], reason, now)
    elif relation == "contradicts":
        ops += [_disputed(first, second, reason), _disputed(second, first, reason)]
    return [one for one in ops if one["before"] != one["after"]]


def _passed_on(
    relation: Relation,
    stays: Fact,
    goes: Fact,
    facts: Mapping[str, Fact],
    part: Fact | None,
    now: str,
) -> list[Operation]:
    """Changes to facts that depend on one that goes: doubt, or a new fact to depend on.

    A fact with more words of the `part` that remains than of the fact that stays depends on that
    part. A doubtful fact that somebody says again is no longer in doubt.
    """
    rests = [
        fact
        for fact in facts.values()
        if goes["op"] in fact.get("depends_on", []) and fact["invalid_at"] is None
    ]
    rests = [fact for fact in rests if fact["op"] != stays["op"]]
    ops = [stays["op"], goes["op"]]
    if relation != "duplicates":
        reason = "what it depends on no longer holds, or is contradicted"
        kept = [one for one in rests if part and _is_nearer(one, part, stays)]
        return [
            *(doubt_fact(fact, goes["op"], ops, reason) for fact in rests if fact not in kept),
            *(one for fact in kept if part for one in _depends(fact, part, ops, "it holds", now)),
        ]
    twice = "what it depends on was said twice"
    made = [one for fact in rests for one in _depends(fact, stays, ops, twice, now)]
    # Whoever contradicts the one that goes contradicts the other one.
    if against := [op for op in goes.get("disputed", ()) if op != stays["op"]]:
        after = {"disputed": list(dict.fromkeys([*stays.get("disputed", []), *against]))}
        made.append(change_fact(stays, after, ops, twice, place=f"disputed as {goes['op']}"))
        made += [_disputed(facts[op], stays, twice) for op in against if op in facts]
    for fact in (one for one in rests if goes["op"] in one.get("doubtful", ())):
        behind = [stays["op"] if op == goes["op"] else op for op in fact["doubtful"]]
        after, place = {"doubtful": list(dict.fromkeys(behind))}, f"doubtful as {goes['op']}"
        made.append(change_fact(fact, after, ops, twice, place=place))
    if stays.get("doubtful") and goes["valid_from"] > stays["valid_from"]:
        left = [op for op in stays.get("depends_on", []) if op not in stays["doubtful"]]
        after = {"doubtful": [], "depends_on": left}
        made.append(change_fact(stays, after, ops, "said again", place=f"again {goes['op']}"))
    return made


def _is_nearer(fact: Fact, one: Fact, other: Fact) -> bool:
    """Whether a fact shares more telling words with `one` than with `other`."""
    mine = {*content_stems(fact["text"])}
    near, far = (len(mine & {*content_stems(each["text"])}) for each in (one, other))
    return near > far


def _depends(fact: Fact, other: Fact, ops: Sequence[str], reason: str, now: str) -> list[Operation]:
    after = {"depends_on": list(dict.fromkeys([*fact.get("depends_on", []), other["op"]]))}
    return [
        link_facts(fact["op"], other["op"], "depends_on", now, reason),
        change_fact(fact, after, ops, reason, place=f"depends on {other['op']}"),
    ]


def _superseded(fact: Fact, by_op: str, now: str, reason: str) -> Operation:
    after = {"invalid_at": now, "superseded_by": by_op}
    return change_fact(fact, after, [by_op, fact["op"]], reason)


def _not_of(text: str, fact: Fact, by: Fact) -> str | None:
    """Why `text` is no part of what the fact says that a newer one (`by`) leaves; or None."""
    speaker, called = fact["speaker"], fact["entities"]
    # What both are about may stand anywhere.
    of_both = {*content(fact["text"])} & {*content(by["text"])}
    if repeats(fact["text"], [text]):
        return "that is all of it"
    if is_translated(text, fact["text"], called):
        named = any(says(text, name) for name in called)
        if not (named or {*_NUMBER.findall(text)} & {*_NUMBER.findall(fact["text"])}):
            return "that is not what it says"
    elif not rewords(text, fact["text"], [speaker or "", *called, *of_both], (), dated=False):
        return "that is not what it says"
    said, now = (Source(one["text"], one["speaker"], one["valid_from"]) for one in (fact, by))
    return (
        violation(text, speaker)
        or ungrounded(text, speaker, [said])
        or not_left(text, said, now, [*called, *by["entities"]])
    )


_NUMBER = regex(r"\d+")


def _remaining(text: str, of: Fact, by: Fact, now: str) -> list[Operation]:
    """A fact of its own for the part of a superseded one that still holds."""
    op = part_id(of["op"], by["op"])
    draft: FactDraft = {
        "op": op,
        "text": text,
        "source_entries": of["source_entries"],
        "source_events": of["source_events"],
        "speaker": of["speaker"],
        "entities": [name for name in of["entities"] if says(text, name)],
        "trust": of["trust"],
        "importance": of["importance"],
        "created": now,
        "valid_from": of["valid_from"],
    }
    if "origins" in of:
        draft["origins"] = of["origins"]
    if "other_words" in of:
        draft["other_words"] = of["other_words"]
    reason = "it still holds, though the rest of what was said does not"
    return [
        add_fact(draft, reason),
        *(link(entry, op, now, reason) for entry in of["source_entries"]),
        settle_fact(op, "part of a fact that was compared"),
    ]


def _joined(keeps: Fact, goes: Fact, reason: str) -> list[Operation]:
    """Give the fact that stays the sources of the other one, and the higher importance.

    These are two changes, so that the sources are merged even if the importance conflicts.
    """
    after = {
        "source_entries": list(dict.fromkeys([*keeps["source_entries"], *goes["source_entries"]])),
        "source_events": list(dict.fromkeys([*keeps["source_events"], *goes["source_events"]])),
        "entities": list(dict.fromkeys([*keeps["entities"], *goes["entities"]])),
    }
    if others := [*keeps.get("other_words", []), *goes.get("other_words", [])]:
        after["other_words"] = list(dict.fromkeys(others))
    both = [keeps["op"], goes["op"]]
    importance = {"importance": max(keeps["importance"], goes["importance"])}
    return [
        change_fact(keeps, after, both, reason, place=f"sources of {goes['op']}"),
        change_fact(keeps, importance, both, reason, place=f"importance of {goes['op']}"),
    ]


def _disputed(fact: Fact, by: Fact, reason: str) -> Operation:
    after = {"disputed": list(dict.fromkeys([*fact.get("disputed", []), by["op"]]))}
    return change_fact(fact, after, [fact["op"], by["op"]], reason, place=f"disputed {by['op']}")


def evolve(
    contexts: Iterable[Described],
    shown: Mapping[str, Fact],
    *,
    now: str,
    night: str,
    rules: str = "",
) -> Thought:
    """Set contexts and tags of shown facts; the earlier ones are kept as history.

    `rules`: the prompt's instructions, which describe no fact.
    """
    made = Thought()
    done: set[str] = set()
    for given in contexts:
        if given.fact not in shown or given.fact in done:
            who = (
                fact_named(shown[given.fact]) if given.fact in done else f"unknown id: {given.fact}"
            )
            what = "described again" if given.fact in done else "described"
            made.refused.append(f"{who}, {what} as {shortened(given.context, NAMED_BY)!r}")
            continue
        done.add(given.fact)
        fact = shown[given.fact]
        context, tags = " ".join(given.context.split()), _tags(given.tags)
        if why := _foreign(" ".join((context, *tags)), fact, shown.values(), rules):
            made.refused.append(f"{why}: {context!r}, said of {fact_named(fact)}")
            continue
        was = {"context": fact.get("context"), "tags": fact.get("tags", [])}
        if {"context": context or None, "tags": tags} == was or not (context or tags):
            continue
        earlier = [*fact.get("earlier", []), {**was, "until": now, "night": night}]
        known = earlier[-MOST_EARLIER:] if was["context"] or was["tags"] else []
        after = {"context": context or None, "tags": tags, "earlier": known}
        made.operations.append(
            change_fact(fact, after, [fact["op"]], "seen with its neighbours", place="context")
        )
    return made


def _foreign(described: str, fact: Fact, shown: Collection[Fact], rules: str) -> str | None:
    """Why `described` cannot describe `fact`: another speaker's words, or a rule."""
    others = [one["text"] for one in shown if one["speaker"] != fact["speaker"]]
    if from_elsewhere(described, [fact["text"]], [*others, rules]):
        return "the context is what somebody else says, or a rule"
    return violation(described)


def _tags(given: Sequence[str]) -> list[str]:
    tags = (" ".join(one.casefold().split()) for one in given if one.strip())
    return list(dict.fromkeys(tags))[:MOST_TAGS]
