"""Merge duplicates among recalled memories, with the sources of all. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from memory.analysis import terms
from memory.ranking import Candidate, ordered

MOST = 0.6
"""The share of an entry's terms that a fact must have to replace the entry."""


def merged(found: Sequence[Candidate]) -> list[Candidate]:
    """`found` (best first) without duplicates.

    A fact that says what its entry says is merged with the entry and keeps the entry's score, so
    that making facts of some entries moves no others. Of two equal texts the better score counts.
    An entry whose fact no longer holds counts as superseded, too.
    """
    entries = {one.row.payload["op"]: one for one in found if one.row.payload["kind"] == "episode"}
    said: dict[str, list[Candidate]] = defaultdict(list)
    left = []
    for one in found:
        source = _said_by(one, entries) if one.row.payload["kind"] == "fact" else None
        if source is not None:
            said[source].append(one)
        elif one.row.payload["kind"] == "fact":
            left.append(one)
    left += [_with_facts(entry, said[op]) for op, entry in entries.items()]
    return _once(ordered(left))


def joined(one: Candidate, other: Candidate) -> Candidate:
    """`one` with the better score of the two and the sources of both."""
    better = max(one, other, key=lambda candidate: candidate.score)
    return replace(
        one,
        parts=better.parts,
        sources=tuple(dict.fromkeys((*one.sources, *other.sources))),
        stands_for=one.stands_for | other.stands_for | {other.id} - {one.id},
    )


def _said_by(fact: Candidate, entries: Mapping[str, Candidate]) -> str | None:
    """The entry among the fact's sources that has all of its words, names aside."""
    payload = fact.row.payload
    sources = [source for source in payload["source_entries"] if source in entries]
    if not sources:
        return None
    names = {
        term for name in (payload["speaker"], *payload["entities"]) for term in terms(name or "")
    }
    says = set(terms(payload["data"])) - names
    for source in sources:
        if says <= set(terms(entries[source].row.payload["data"])):
            return str(source)
    return None


def _with_facts(entry: Candidate, facts: Sequence[Candidate]) -> Candidate:
    """An entry merged with the facts that repeat it; a fact that says most of it is shown."""
    if not facts:
        return entry
    has = set(terms(entry.row.payload["data"]))
    whole = [
        one for one in facts if len(has & set(terms(one.row.payload["data"]))) >= MOST * len(has)
    ]
    holding = sorted(whole, key=lambda one: one.superseded)
    best = holding[0] if holding else entry
    for one in (entry, *facts):
        if not one.superseded or one is best:
            best = joined(best, one)
    return best if best.superseded else replace(best, parts=entry.parts)


def _once(found: Sequence[Candidate]) -> list[Candidate]:
    """One candidate per text; a text that holds and one that does not stay apart."""
    kept: dict[tuple[str, bool], Candidate] = {}
    for one in found:
        key = (" ".join(one.row.payload["data"].casefold().split()), one.superseded)
        kept[key] = joined(kept[key], one) if key in kept else one
    return ordered(kept.values())
