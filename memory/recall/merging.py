"""Merging: one result for each statement, with the marks of what no longer holds. Pure.

A fact stands in place of the entries that it was made from, and an entry inherits the marks of its
facts: if all of them were superseded, so was the entry; if some were, the entry stands below their
successors. A successor counts as near to the query as the found memory that it superseded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memory.facts import Row
from memory.guards import is_of_another
from memory.recall.episodes import moment
from memory.recall.ranking import (
    FIRST,
    Candidate,
    asked_of,
    candidate_of,
    ordered,
    own_terms,
    words_of,
)
from memory.records import part_id
from memory.text import Query, tells_value, terms

SAYS_ALL = 0.6
"""Share of an entry's words from which a fact stands for the entry; below, the entry stays."""

SAYS_HALF = 0.5
"""The same in a prompt, whose room is small."""

LIFTED = 3
"""A memory lifts at most the best N of its links: many would lift a crowd past better matches."""

INHERITED = 0.95
"""Score of a successor, as a share of the score of the superseded memory that was found."""

FAR_BELOW = 0.5
"""Share of its score that an entry keeps if it says more than its superseded facts."""

AMONG_BEST = 30
"""The best N memories that no longer hold are shown with their successors."""

MAX_EARLIER = 3
"""A memory is shown with the newest N facts that it superseded."""

ALIKE, ALIKE_SHARE = 3, 1 / 3
"""What another memory needs to tell a newer value: terms of the query (all, if there are fewer),
and a share of those that the best memory has."""

HOW = frozenset(["many", "much", "often", "long", "old"])
"""Terms that name the kind of a wanted value, and not its subject."""

HAIR = 1e-6
"""The margin of score by which a newer value ranks above the old value."""

BELOW = 0.98
"""Score of a partly superseded entry, as a share of the score of its facts' successor."""


def merged(
    found: Sequence[Candidate], facts: Mapping[str, Row] | None = None, wanted: Collection[str] = ()
) -> list[Candidate]:
    """Merge duplicates among `found` (best first), and mark what no longer holds.

    A fact that restates its source entry is merged with it, at the entry's own rank, so that making
    facts of some entries moves no others. Any other fact, and one that other words for it found,
    takes the entry's place if it has the entry's words of the query (`wanted`). Equal texts are
    merged at the better rank. `facts`: those made from the found entries, and their successors, by
    id; some of `found` may be left out.
    """
    entries = {one.row.payload["op"]: one for one in found if one.row.payload["kind"] == "episode"}
    given = [one for one in found if one.row.payload["kind"] == "fact"]
    known = {**(facts or {}), **{one.id: one.row for one in given}}
    if not known:
        return _once(entries.values())
    made = _made_from(known, entries)
    said_in = {op: one.row for op, one in entries.items()}
    said: dict[str, list[Candidate]] = defaultdict(list)
    left: dict[str, Candidate] = {}
    for fact in given:
        source = _said_by(fact.row, said_in)
        if source is None or _is_called(fact.row, said_in[source], wanted):
            left[fact.id] = fact
        else:
            said[source].append(fact)
    stay = list[Candidate]()
    for op, entry in entries.items():
        restating = said[op]
        if any(fact.payload.get("invalid_at") is None for fact in made[op]):
            left |= {fact.id: fact for fact in restating if fact.superseded}
            restating = [fact for fact in restating if not fact.superseded]
        one = _with_facts(entry, restating, wanted)
        if one.row is entry.row:
            one = _marked(one, made[op], known, wanted)
        place = _place(one, made[op], left, wanted)
        if place is None:
            stay.append(one)
        else:
            alone = replace(one, stands_for=frozenset())  # and not for the entry's other facts
            left[place.id] = joined(left.get(place.id) or candidate_of(place, one.parts), alone)
            says = words_of(heir) if (heir := heir_of(place, known)) else frozenset[str]()
            own = (fact for fact in restating if words_of(fact.row) & {*wanted} - says)
            left |= {fact.id: fact for fact in own if fact.id not in left}
    heard = _with_heirs([*left.values(), *stay], known, made, wanted)
    return _once(_newer_first(heard, known, made))


def newer_value_first(found: Sequence[Candidate], query: Query) -> list[Candidate]:
    """`found` (best first), with a newer value above the best memory if there is one.

    People who tell a change ("it is now 1,200") seldom repeat all words of the first statement. A
    newer value is what the same speaker said later and called new, with words of the query.
    """
    asked = asked_of(query) - HOW
    if not (query.now and asked and found and tells_value(found[0].row.payload["data"])):
        return list(found)
    best, has = found[0], asked & words_of(found[0].row)
    for one in found[1:FIRST]:
        payload, shared = one.row.payload, asked & words_of(one.row)
        if (
            not one.superseded
            and payload["speaker"] == best.row.payload["speaker"]
            and one.at > best.at
            and tells_value(payload["data"], new=True)
            and len(shared) >= min(ALIKE, len(asked))
            and len(shared & has) >= ALIKE_SHARE * len(has)
            and not is_of_another(payload["data"], best.row.payload["data"])
        ):
            return [_lifted(one, best.score + HAIR), *(it for it in found if it is not one)]
    return list(found)


def that_hold(
    found: Sequence[Candidate], wanted: Collection[str], *, past: bool
) -> list[Candidate]:
    """The memories of `found` (best first) that hold, with what they superseded; with `past` all.

    A superseded memory is shown with its successor if it is among the best, or has words of the
    query that the successor lacks: no rule knows every way to ask about the past, and people who
    ask about the present learn that it changed.
    """
    if past:
        return list(found)
    heirs = {id_: one.id for one in found if not one.superseded for id_ in one.ids}
    shown = {one.id: one for one in found if not one.superseded}
    for place, one in enumerate(found):
        heir = shown.get(heirs.get(one.heir or "", "")) if one.superseded else None
        # A duplicate's heir says the same.
        if heir is None or {*one.sources} <= {*heir.sources} or _was_never_true(one.row):
            continue
        only = words_of(one.row) & {*wanted} - words_of(heir.row)
        if only or place < AMONG_BEST:
            shown[heir.id] = replace(heir, earlier=_earlier(heir, one.row))
    return list(shown.values())


def _was_never_true(row: Row) -> bool:
    """Whether somebody settled that a fact is false; a night ends it after it began."""
    return bool(row.payload.get("invalid_at") == row.payload["valid_from"])


def _earlier(heir: Candidate, gone: Row) -> tuple[Row, ...]:
    """The memories that `heir` superseded and `gone`, each event once, the newest first."""
    known = {event for one in heir.earlier for event in one.payload["source_events"]}
    if known & {*gone.payload["source_events"]}:
        return heir.earlier
    both = sorted((*heir.earlier, gone), key=lambda one: one.payload["valid_from"], reverse=True)
    return tuple(both[:MAX_EARLIER])


def told_once(found: Sequence[Candidate], wanted: Collection[str]) -> list[Candidate]:
    """`found` (best first), for a prompt, with facts in place of the entries that they restate.

    Such an entry has no further sources, and at most one further word of those `wanted`: its other
    words are left out, and the facts may name people and days that it does not name.
    """
    facts = [one for one in found if one.row.payload["kind"] == "fact" and not one.superseded]
    kept: dict[str, Candidate] = {}
    for candidate in found:
        is_fact = candidate.row.payload["kind"] == "fact"
        says = [] if is_fact else _saying_again(candidate, facts, wanted)
        for shown in says[:1] or [candidate]:
            kept.setdefault(shown.id, shown)
    return list(kept.values())


def _saying_again(
    entry: Candidate, facts: Sequence[Candidate], wanted: Collection[str]
) -> list[Candidate]:
    """The facts that have half of an entry's words, and all but one of those `wanted`."""
    if not entry.sources:
        return []
    made = [one for one in facts if set(one.sources) >= set(entry.sources)]
    says, has = set[str]().union(*(own_terms(one.row) for one in made)), words_of(entry.row)
    says_most = len(has & says) >= SAYS_HALF * len(has)
    return made if says_most and len(has.intersection(wanted) - says) < 2 else []


def joined(one: Candidate, *others: Candidate, at: Candidate | None = None) -> Candidate:
    """`one`, the memory shown, with the sources of all, and the score of `at` or the best score."""
    every = (one, *others)
    return replace(
        one,
        parts=(at or max(every, key=lambda each: each.score)).parts,
        sources=tuple(dict.fromkeys(source for each in every for source in each.sources)),
        stands_for=one.ids.union(*(other.ids for other in others)) - {one.id},
        disputes=one.disputes.union(*(other.disputes for other in others)),
    )


def joined_into(fact: Row, known: Mapping[str, Row]) -> Row | None:
    """The fact into which a night joined this duplicate; it has the sources of both."""
    heir, cited = known.get(fact.payload.get("superseded_by") or ""), fact.payload["source_entries"]
    same = heir and cited and {*cited} <= {*heir.payload["source_entries"]}
    return heir if same and not _was_never_true(fact) else None


def with_those_that_stay(found: Iterable[Candidate], stays: Mapping[str, Row]) -> list[Candidate]:
    """`found`, with the fact that stays (`stays`) in place of each that was joined into it."""
    shown = dict[str, Candidate]()
    for one in found:
        row = one.row
        for _ in stays:
            row = stays.get(row.id, row)
        if row is not one.row:
            words = [*(row.payload.get("other_words") or ()), one.row.payload["data"]]
            row = row._replace(payload={**row.payload, "other_words": words})
            one = joined(candidate_of(row, one.parts), replace(one, disputes=frozenset()))
        shown[one.id] = joined(shown[one.id], one) if one.id in shown else one
    return list(shown.values())


def heir_of(fact: Row, known: Mapping[str, Row]) -> Row | None:
    """The fact that holds in place of a superseded one: the end of the chain; None if unknown."""
    seen, end = {fact.id}, fact
    while end.payload.get("invalid_at") is not None:
        following = known.get(end.payload.get("superseded_by") or "")
        if following is None or following.id in seen:
            return None
        seen.add(following.id)
        end = following
    return end


def _made_from(known: Mapping[str, Row], entries: Mapping[str, Candidate]) -> dict[str, list[Row]]:
    made: dict[str, list[Row]] = {op: [] for op in entries}
    for fact in known.values():
        for source in dict.fromkeys(fact.payload["source_entries"]):
            if source in made:
                made[source].append(fact)
    return made


def says_again(fact: Row, entries: Mapping[str, Row], wanted: Collection[str]) -> bool:
    """Whether a fact that holds restates most of an entry, and has no other word of the query."""
    source = _said_by(fact, entries)
    if source is None or fact.payload.get("invalid_at") is not None:
        return False
    has, says = words_of(entries[source]), words_of(fact)
    more = (own_terms(fact) - has - set(terms(fact.payload["speaker"] or ""))) & {*wanted}
    return len(has & says) >= SAYS_ALL * len(has) and not more


def _said_by(fact: Row, entries: Mapping[str, Row]) -> str | None:
    """The fact's source entry that has all of its words, names left out."""
    payload = fact.payload
    sources = [source for source in payload["source_entries"] if source in entries]
    if not sources:
        return None
    names = {
        term for name in (payload["speaker"], *payload["entities"]) for term in terms(name or "")
    }
    says = words_of(fact) - names
    return next((str(one) for one in sources if says <= words_of(entries[one])), None)


def _is_called(fact: Row, entry: Row, wanted: Collection[str]) -> bool:
    """Whether other words for a fact are in the query, and not in its entry."""
    other = set[str]().union(*map(terms, fact.payload.get("other_words") or ()))
    return not (other - words_of(entry)).isdisjoint(wanted)


def _with_facts(entry: Candidate, facts: Sequence[Candidate], wanted: Collection[str]) -> Candidate:
    """An entry merged with the facts (best first) that restate it.

    It is shown as a fact that has most of its words, and all those of the query.
    """
    if not facts:
        return entry
    has = words_of(entry.row)
    asked = has & {*wanted}
    whole = [
        fact
        for fact in facts
        if len(has & words_of(fact.row)) >= SAYS_ALL * len(has) and asked <= words_of(fact.row)
    ]
    holding = sorted(whole, key=lambda one: one.superseded)
    best = holding[0] if holding else entry
    others = (one for one in (entry, *facts) if not one.superseded and one is not best)
    return joined(best, *others, at=None if best.superseded else entry)


def _marked(
    entry: Candidate, made: Sequence[Row], known: Mapping[str, Row], wanted: Collection[str]
) -> Candidate:
    """An entry with the marks of the facts made from it."""
    if not made:
        return entry
    gone = [fact for fact in made if fact.payload.get("invalid_at") is not None]
    gone.sort(key=lambda fact: -len(words_of(fact) & {*wanted}))
    holding = [fact for fact in made if fact.payload.get("invalid_at") is None]
    contradicted = (op for fact in holding for op in fact.payload.get("disputed") or ())
    entry = replace(entry, disputes=entry.disputes | {*contradicted})
    if not gone:
        return entry
    heirs = [one for fact in gone if (one := heir_of(fact, known)) is not None]
    # An entry that tells of a change itself, or whose fact has a duplicate, says what holds.
    others = [one for one in heirs if one not in holding]
    if holding and not others and len(heirs) == len(gone):
        return entry
    heir = others[0].id if others else None
    # If an entry no longer holds as a whole, separate facts say what still holds.
    if holding and not _is_said_by(gone, entry, ()):
        return replace(entry, marks=frozenset({"partly_superseded"}), heir=heir)
    if _is_said_by(gone, entry, wanted):
        return replace(entry, marks=frozenset({"superseded"}), heir=heir)
    parts = {**entry.parts, "superseded": (FAR_BELOW - 1) * _worth(entry)}
    return replace(entry, marks=frozenset({"outdated"}), heir=heir, parts=parts)


def _worth(one: Candidate) -> float:
    """The score of a memory before it was put below its successor."""
    return one.score - one.parts.get("superseded", 0.0)


def _is_said_by(facts: Iterable[Row], entry: Candidate, wanted: Collection[str]) -> bool:
    """Whether facts have most words of an entry, or all that it has of the query."""
    says, has = set[str]().union(*map(words_of, facts)), words_of(entry.row)
    asked = has & {*wanted}
    return len(has & says) >= SAYS_ALL * len(has) or (bool(asked) and asked <= says)


def _place(
    entry: Candidate, made: Iterable[Row], left: Mapping[str, Candidate], wanted: Collection[str]
) -> Row | None:
    """The fact to show for an entry that fell, or whose facts have its words of the query."""
    alike = [
        fact for fact in made if (fact.payload.get("invalid_at") is not None) == entry.superseded
    ]
    if not (wanted or entry.superseded) or not alike or entry.row.payload["kind"] == "fact":
        return None
    asked = words_of(entry.row) & {*wanted}
    if not (entry.superseded or asked <= set().union(*map(words_of, alike))):
        return None

    def fit(fact: Row) -> tuple[int, float, str]:
        score = left[fact.id].score if fact.id in left else 0.0
        return len(asked & words_of(fact)), score, fact.id

    return max(alike, key=fit)


def _with_heirs(
    found: Sequence[Candidate],
    known: Mapping[str, Row],
    made: Mapping[str, Sequence[Row]],
    wanted: Collection[str],
) -> list[Candidate]:
    """Lift successors to the place of what they superseded or made doubtful; keep entries that hold
    in part below them.

    The part of a superseded fact that still holds stands before the successor if it has words of
    the query that the successor lacks. An entry stands for the facts that were made from it, if
    they are not found themselves.
    """
    if not any(one.superseded or one.marks or one.row.payload.get("doubtful") for one in found):
        return list(found)
    says = {one.id: {*one.ids, *_made_of(one, made)} for one in found}
    places = {id_: one for one in reversed(found) if not one.superseded for id_ in says[one.id]}
    places |= {id_: one for one in found if not one.superseded for id_ in one.ids}
    lifts: dict[str, float] = {}
    new: dict[str, Row] = {}
    heirs: dict[str, str] = {}
    by_op = {str(row.payload["op"]): row for row in known.values()}
    for gone in found:
        falls = gone.superseded or "outdated" in gone.marks
        heir = _heir(gone, known) if falls else None
        if heir is not None:
            heirs[gone.id] = heir.id
        doubts = () if falls else gone.row.payload.get("doubtful") or ()
        ends = (_latest(by_op[op], by_op, known) for op in doubts if op in by_op)
        by = known.get(gone.row.payload.get("superseded_by") or "", heir)
        part = _part(gone.row, by, by_op) if by else None
        if part and heir and not words_of(part) & {*wanted} - words_of(heir):
            part = None
        for row in filter(None, (heir, part, *ends)):
            there = places.get(row.id)
            if there is None:
                new[row.id] = row
            id_ = there.id if there else row.id
            worth = INHERITED * _worth(gone) * (BELOW if part and row is heir else 1.0)
            lifts[id_] = max(lifts.get(id_, 0.0), worth)
    lifted = [_lifted(one, lifts.get(one.id, 0.0)) for one in found]
    lifted = [replace(one, heir=heirs[one.id]) if one.id in heirs else one for one in lifted]
    lifted += [candidate_of(heir, {"supersedes": lifts[id_]}) for id_, heir in new.items()]
    scores = {one.id: one.score for one in lifted if not one.superseded}
    found_as = {id_: one.id for id_, one in places.items()} | {id_: id_ for id_ in new}
    return [_below(one, scores.get(found_as.get(one.heir or "", ""))) for one in lifted]


def _part(gone: Row, by: Row, by_op: Mapping[str, Row]) -> Row | None:
    """The part that still holds of a fact which `by` superseded."""
    part = by_op.get(part_id(str(gone.payload["op"]), str(by.payload["op"])))
    return part if part and part.payload.get("invalid_at") is None else None


def _latest(fact: Row, by_op: Mapping[str, Row], known: Mapping[str, Row]) -> Row | None:
    """The successor of a fact, or the latest statement against it."""
    end = heir_of(fact, known)
    ops = (end.payload.get("disputed") or ()) if end else ()
    ends = [end, *(heir_of(by_op[op], known) for op in ops if op in by_op)]
    return max(filter(None, ends), key=lambda one: moment(one.payload["valid_from"]), default=None)


def _made_of(one: Candidate, made: Mapping[str, Sequence[Row]]) -> list[str]:
    facts = made.get(str(one.row.payload["op"]), ()) if one.row.payload["kind"] != "fact" else ()
    return [fact.id for fact in facts if fact.payload.get("invalid_at") is None]


def _newer_first(
    found: Sequence[Candidate], known: Mapping[str, Row], made: Mapping[str, Sequence[Row]]
) -> list[Candidate]:
    """Of two memories in an unsettled contradiction, the later one stands first.

    The successor of one of them goes on contradicting the other.
    """
    if not any(one.disputes for one in found):
        return list(found)
    by_op = {str(row.payload["op"]): row for row in known.values()}
    places: dict[str, list[int]] = defaultdict(list)
    for number, one in enumerate(found):
        facts = [known[id_] for id_ in one.ids if id_ in known]
        for fact in {row.id: row for row in (*facts, *made.get(str(one.row.payload["op"]), ()))}:
            places[fact].append(number)
    placed = list(found)
    for number, candidate in enumerate(found):
        against = (by_op[op] for op in sorted(candidate.disputes & by_op.keys()))
        ends = [end for fact in against if (end := heir_of(fact, known)) is not None]
        for other in (place for end in ends for place in places[end.id]):
            then, later = sorted((number, other), key=lambda each: placed[each].at)
            older, newer = placed[then], placed[later]
            if newer.superseded or newer.at == older.at or newer.score > older.score:
                continue
            placed[later] = _lifted(newer, older.score)
            placed[then] = _shifted(older, "superseded", (BELOW - 1) * older.score)
    return placed


def _heir(gone: Candidate, known: Mapping[str, Row]) -> Row | None:
    if gone.heir is not None:
        return known.get(gone.heir)
    return heir_of(gone.row, known) if gone.row.payload["kind"] == "fact" else None


def _lifted(one: Candidate, least: float) -> Candidate:
    if one.superseded or one.score >= least:
        return one
    return _shifted(one, "supersedes", least - one.score)


def _below(one: Candidate, most: float | None) -> Candidate:
    if most is None or "partly_superseded" not in one.marks or one.score <= BELOW * most:
        return one
    return _shifted(one, "superseded", BELOW * most - one.score)


def _shifted(one: Candidate, part: str, by: float) -> Candidate:
    """A candidate whose score changes by `by`, in a part that it may have already."""
    return replace(one, parts={**one.parts, part: one.parts.get(part, 0.0) + by})


def _once(found: Iterable[Candidate]) -> list[Candidate]:
    """Merge equal texts, but never a fact that holds with a superseded fact."""
    kept: dict[tuple[Any, bool], Candidate] = {}
    for candidate in ordered(found):
        key = (" ".join(candidate.row.payload["data"].casefold().split()), candidate.superseded)
        kept[key] = joined(kept[key], candidate) if key in kept else candidate
    return list(kept.values())


def lifted_by_links(
    found: Sequence[Candidate], near: Sequence[Collection[str]], share: float
) -> list[Candidate]:
    """Add `share` of the score of the first candidates to their linked memories (`near`). Pure.

    Conclusions drawn from a candidate are not lifted: they are linked to it because they repeat its
    words. A memory below a later statement, or contradicted by one, is not lifted.
    """
    by_op = {str(one.row.payload["op"]): one for one in found}

    def is_outdated(one: Candidate) -> bool:
        later = (by_op[op].at > one.at for op in one.disputes & by_op.keys())
        return "superseded" in one.parts or any(later)

    first_hand = (one for one in enumerate(found) if not one[1].drawn)
    said = ((number, one) for number, one in first_hand if not is_outdated(one))
    place = {id_: number for number, one in said for id_ in one.ids}
    lifts: dict[int, float] = {}
    for candidate, ids in zip(found, near, strict=False):
        linked = sorted({place[id_] for id_ in ids if id_ in place})
        for number in linked[:LIFTED]:
            lifts[number] = max(lifts.get(number, 0.0), share * candidate.score)
    higher = list(found)
    for number, lift in lifts.items():
        candidate = found[number]
        parts = {**candidate.parts, "link": min(1 - candidate.score, lift)}
        higher[number] = replace(candidate, parts=parts)
    return higher
