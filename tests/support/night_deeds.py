"""Single decisions of a night on a small memory, made as nights make them."""

from collections.abc import Sequence
from datetime import datetime
from itertools import count

from hypothesis import strategies as st

from memory.facts.semantic import SemanticMemory
from memory.night.pending_view import profiles_after
from memory.night.relations import Relation, evolve, settle
from memory.night.undo import inverse
from memory.operations.apply import entries_after, facts_after
from memory.records.operations import (
    add_fact,
    link,
    mark_entry,
    prune_entry,
    reflected,
    score_entry,
    settle_fact,
)
from memory.records.records import Fact, JournalEntry, Operation, RecallHit
from nodes.night.consolidate_entities import consolidated
from nodes.night.reflect import insights
from tests.support.facts import draft
from tests.support.night_answers import attribute_given, described, insight, pair
from tests.support.night_memories import ADA, NOW, Memory, ada, entry, news, noticed, observation

AT = "2026-05-02T02:00:00+00:00"
OLD, NEW = ("f0", "f1", "f2"), ("n0", "n1")
"""Operation ids of the facts that stand, of which two wait for a dream, and of those to come."""
ENTRIES = tuple(f"event_20260402_e{n}" for n in range(4))
NAMES = count()


async def before_a_night(semantic: SemanticMemory) -> Memory:
    """A memory with facts, entries, a profile and a link."""
    memory = Memory.new(semantic, f"night-{next(NAMES)}")
    drafts = [draft(op, f"Ada grows beans number {op}.", speaker="Ada") for op in OLD]
    await memory.hold(drafts, [entry(id_) for id_ in ENTRIES])
    await memory.apply([noticed(observation(n)) for n in range(1, 6)])
    await memory.apply([link(ENTRIES[0], "f0", AT, "made from this entry")])
    await memory.apply(inverse([settle_fact(op, "undone") for op in OLD[:2]]))
    return memory


class Night:
    """The operations so far; every deed sees memory with them applied."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.made: list[Operation] = []
        self._facts = {one["op"]: one for one in facts}

    def do(self, deed: str, one: int, other: int) -> None:
        """Make a decision if memory allows it; `one` and `other` (0..5) choose its targets."""
        known = {operation["id"] for operation in self.made}
        decided: Sequence[Operation] = getattr(self, deed)(one, other)
        self.made += [new for new in decided if new["id"] not in known]

    def score(self, one: int, other: int) -> Sequence[Operation]:
        return [score_entry(about, 1 + other, "scored") for about in self._entry(one)]

    def mark(self, one: int, _: int) -> Sequence[Operation]:
        return [mark_entry(about, "consolidated", "settled") for about in self._entry(one)]

    def prune(self, one: int, _: int) -> Sequence[Operation]:
        return [prune_entry(about, "old") for about in self._entry(one)]

    def add(self, one: int, _: int) -> Sequence[Operation]:
        return [add_fact(draft(NEW[one % 2], f"Ada grows kale {one % 2}."), "told")]

    def link(self, one: int, other: int) -> Sequence[Operation]:
        fact = self._fact(other)
        return [link(about["id"], fact["op"], NOW, "made") for about in self._entry(one)]

    def relate(self, one: int, other: int) -> Sequence[Operation]:
        relations: Sequence[Relation] = ("relates", "duplicates", "supersedes", "contradicts")
        first, second = self._fact(one), self._fact(other)
        if first["invalid_at"] or second["invalid_at"]:
            return []
        claim = pair(first["op"], second["op"], relations[(one + other) % 4], "because")
        return settle([claim], self._seen(), [first["op"]], now=NOW).operations

    def describe(self, one: int, other: int) -> Sequence[Operation]:
        context = described(self._fact(one)["op"], f"Of {other}.", [f"tag{other}"])
        return evolve([context], self._seen(), now=NOW, night="night_1").operations

    def settle(self, one: int, other: int) -> Sequence[Operation]:
        waiting = [op for op in (*OLD[:2], *NEW) if op in self._seen()]
        return [settle_fact(waiting[(one + other) % len(waiting)], "seen with its neighbours")]

    def notice(self, one: int, other: int) -> Sequence[Operation]:
        return [noticed(observation(10 + one), aliases=["Addie"][: other % 2])]

    def consolidate(self, one: int, other: int) -> Sequence[Operation]:
        standing = ada(*(observation(n) for n in range(1, 6)))
        profile = profiles_after({ADA: standing}, self.made)[ADA]
        given = [attribute_given(f"taste{other % 2}", f"Likes{' tea' * (1 + one)}.", ["o1", "o2"])]
        return consolidated(news(profile, 1), given, now=NOW, prune=one % 2 == 0).operations

    def reflect(self, one: int, other: int) -> Sequence[Operation]:
        hits = {about["id"]: hit_of(about) for about in self._entry(one)}
        given = [insight(f"Ada is of {other}.", list(hits), 8)]
        now = datetime.fromisoformat(NOW)
        made = insights(given, hits, night=f"night_{other}", now=now).operations
        return [*made, reflected(None, NOW)] if made else []

    def _seen(self) -> dict[str, Fact]:
        return facts_after(self._facts, self.made)

    def _fact(self, number: int) -> Fact:
        shown = list(self._seen().values())
        return shown[number % len(shown)]

    def _entry(self, number: int) -> list[JournalEntry]:
        standing = entries_after({id_: entry(id_) for id_ in ENTRIES}, self.made)
        id_ = ENTRIES[number % len(ENTRIES)]
        return [standing[id_]] if id_ in standing else []


KINDS = [name for name in vars(Night) if not name.startswith("_") and name != "do"]
DEEDS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 5), st.integers(0, 5)), max_size=14
)
"""What a night does: the deed and of what."""


def hit_of(one: JournalEntry) -> RecallHit:
    return {
        "id": one["id"],
        "kind": "episode",
        "text": one["content"],
        "score": 1.0,
        "sources": one["sources"],
        "at": one["timestamp"],
        "speaker": one["source_entity"],
    }
