"""Random sequences of nights, previews, undos and corrections keep memory consistent.

Links go both ways and lead somewhere, cited memories exist, and new observations stay."""

import asyncio
from collections.abc import Sequence
from itertools import count
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from memory.facts.semantic import SemanticMemory
from memory.journal import links
from memory.night.undo import built_on, inverse
from memory.records.operations import (
    add_entry,
    add_fact,
    change_fact,
    link,
    link_memories,
    observe_entity,
    prune_entry,
    supersede_fact,
    unlink,
)
from memory.records.records import Operation
from nodes.night.weigh_night import facts_leaving, heirs_of
from tests.support.facts import draft
from tests.support.night_deeds import AT, DEEDS, ENTRIES, OLD, Night, before_a_night
from tests.support.night_memories import ADA, NOW, Memory, entry, noticed, observation

PLACES = st.integers(0, 5)
ACTS = st.one_of(
    st.tuples(st.sampled_from(["night", "preview"]), DEEDS),
    st.tuples(st.sampled_from(["apply", "resume", "undo", "correct", "cite", "notice"]), PLACES),
)


class Life:
    """A memory, its applied nights and its previews."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.nights: list[tuple[str, list[Operation]]] = []
        self.previews: list[list[Operation]] = []
        self.seen: list[str] = []
        self._names = count()

    async def act(self, what: str, given: Any) -> None:
        await getattr(self, what)(given)

    async def night(self, deeds: Sequence[tuple[str, int, int]]) -> None:
        await self._apply(await self._thought_out(deeds))

    async def preview(self, deeds: Sequence[tuple[str, int, int]]) -> None:
        self.previews.append(await self._thought_out(deeds))

    async def apply(self, place: int) -> None:
        if not self.previews:
            return
        operations = self.previews.pop(place % len(self.previews))
        if not await self.memory.conflicts(operations):
            await self._apply(operations)

    async def resume(self, place: int) -> None:
        """Apply a night that was open while memory changed, without a check."""
        if self.previews:
            await self._apply(self.previews.pop(place % len(self.previews)))

    async def undo(self, place: int) -> None:
        if not self.nights:
            return
        at = place % len(self.nights)
        _, operations = self.nights[at]
        facts = await self.memory.semantic.all(self.memory.scope)
        ids = {fact["op"]: fact["id"] for fact in facts}
        back = inverse(operations)
        if built_on(operations, self.nights[at + 1 :], ids) or await self.memory.conflicts(back):
            return
        await self.memory.apply(back)
        del self.nights[at]

    async def correct(self, place: int) -> None:
        facts = await self.memory.semantic.all(self.memory.scope)
        facts = sorted((one for one in facts if not one["invalid_at"]), key=lambda one: one["op"])
        if not facts:
            return
        old, op = facts[place % len(facts)], f"c{next(self._names)}"
        said = entry(f"correction_20260502_{op}", consolidation="consolidated")
        made = draft(op, f"It is otherwise, {op}.", source_entries=[said["id"]])
        await self.memory.apply(
            [
                add_entry(said, "corrected"),
                add_fact(made, "corrected"),
                supersede_fact(old, op, NOW, [said["id"]], "corrected"),
                link(said["id"], op, NOW, "corrected"),
            ]
        )

    async def cite(self, place: int) -> None:
        """Awake, make a fact that cites an entry without a link."""
        id_ = ENTRIES[place % len(ENTRIES)]
        if await self.memory.entry(id_):
            op = f"s{next(self._names)}"
            made = draft(op, f"Beans grow, {op}.", source_entries=[id_])
            await self.memory.apply([add_fact(made, "told")])

    async def notice(self, place: int) -> None:
        number = 50 + next(self._names)
        self.seen.append(f"o{number}")
        sources = [ENTRIES[place % len(ENTRIES)]]
        if await self.memory.entry(sources[0]):
            await self.memory.apply([noticed(observation(number % 60, sources=sources))])
            self.seen[-1] = f"o{number % 60}"
        else:
            self.seen.pop()

    async def _thought_out(self, deeds: Sequence[tuple[str, int, int]]) -> list[Operation]:
        night = Night(await self.memory.semantic.all(self.memory.scope))
        for deed, one, other in deeds:
            night.do(deed, one, other)
        return night.made

    async def _apply(self, operations: list[Operation]) -> None:
        await self.memory.apply(operations)
        self.nights.append((f"night_{next(self._names)}", operations))

    async def check(self) -> None:
        """Assert that no link dangles and that every cited memory exists."""
        items = await self.memory.store.asearch(self.memory.scope.namespace(links.LINKS), limit=999)
        ends = {item.key: cast(links.End, item.value) for item in items}
        facts = await self.memory.semantic.all(self.memory.scope)
        ids = {one["id"] for one in facts}
        for one, end in ends.items():
            assert end["linked_to"]
            assert one in ids or await self.memory.entry(one), f"{one} is linked and gone"
            for other in end["linked_to"]:
                assert one in ends[other]["linked_to"]
                assert end["relations"].get(other) == ends[other]["relations"].get(one)
        profile = await self.memory.ada()
        assert profile is not None
        noticed_of = [source for one in profile["observations"] for source in one["sources"]]
        cited = {one for fact in facts for one in fact["source_entries"]} | {*noticed_of}
        for id_ in cited & {*ENTRIES}:
            assert await self.memory.entry(id_), f"{id_} is cited and gone"
        assert {*self.seen} <= {one["id"] for one in profile["observations"]}
        heirs = {one["superseded_by"] for one in facts} - {None}
        assert heirs <= ids


@settings(derandomize=True)
@given(acts=st.lists(ACTS, min_size=3, max_size=9))
def test_random_sequences_leave_no_dangling_reference(
    semantic: SemanticMemory, acts: list[tuple[str, Any]]
) -> None:
    async def lived() -> None:
        life = Life(await before_a_night(semantic))
        for what, given_ in acts:
            await life.act(what, given_)
            await life.check()

    asyncio.run(lived())


async def test_an_entry_cited_after_the_plan_is_not_pruned(semantic: SemanticMemory) -> None:
    memory = await before_a_night(semantic)
    decided = [prune_entry(entry(id_), "old") for id_ in ENTRIES[1:]]
    await memory.apply(
        [
            add_fact(draft("later", "Beans are tall.", source_entries=[ENTRIES[1]]), "told"),
            noticed(observation(20, sources=[f"source-of-{ENTRIES[2]}"])),
        ]
    )
    assert await memory.conflicts(decided) == [ENTRIES[1], ENTRIES[2]]
    await memory.apply(decided)
    left = [id_ for id_ in ENTRIES if await memory.entry(id_)]
    assert left == [ENTRIES[0], ENTRIES[1], ENTRIES[2]]


async def test_an_insight_that_was_built_on_blocks_the_undo(semantic: SemanticMemory) -> None:
    memory = await before_a_night(semantic)
    insight = entry("insight_20260503_x", consolidation="exempt", evidence=[ENTRIES[0]])
    night = [
        add_entry(insight, "insight"),
        link_memories(insight["id"], ENTRIES[0], NOW, "evidence"),
    ]
    await memory.apply(night)
    assert await memory.conflicts(inverse(night)) == []
    on_it = draft("on-it", "Beans are tall.", source_entries=[insight["id"]])
    await memory.apply([add_fact(on_it, "told")])
    assert await memory.conflicts(inverse(night)) == [insight["id"]]


async def test_an_interrupted_undo_does_not_conflict_with_itself(semantic: SemanticMemory) -> None:
    memory = await before_a_night(semantic)
    night = [add_fact(draft("n8", "Ada grows kale."), "told")]
    await memory.apply(night)
    made = await memory.fact("n8")
    night.append(change_fact(made, {"context": "Of kale."}, ["n8"], "seen"))
    await memory.apply(night)
    await memory.semantic.delete(memory.scope, made["id"])
    assert await memory.conflicts(inverse(night)) == []
    assert await memory.conflicts(inverse(night[1:])) == ["n8"]


async def test_no_link_leads_to_a_missing_memory(semantic: SemanticMemory) -> None:
    memory = await before_a_night(semantic)
    before = await memory.links()
    fact = await memory.fact("f1")
    gone = {"relation": "relates", "reason": "near", "created": AT}
    await memory.apply(
        [
            link("event_20260402_never", "f1", AT, "made"),
            link_memories(ENTRIES[1], "a-fact-that-is-gone", AT, "evidence"),
            *inverse([unlink(fact["id"], "a-fact-that-is-gone", gone, "its other end is gone")]),
        ]
    )
    assert await memory.links() == before


async def test_removed_memories_leave_no_link(semantic: SemanticMemory) -> None:
    memory = await before_a_night(semantic)
    new = draft("n9", "Ada grows kale.", source_entries=[])
    night = [add_fact(new, "told")]
    await memory.apply(night)
    await memory.apply([link(ENTRIES[2], "n9", AT, "made since")])
    assert ENTRIES[2] in await memory.links()
    await memory.apply(inverse(night))
    assert sorted(await memory.links()) == sorted([ENTRIES[0], (await memory.fact("f0"))["id"]])


async def test_observations_made_during_a_night_stay(semantic: SemanticMemory) -> None:
    memory = await before_a_night(semantic)
    night = Night(await memory.semantic.all(memory.scope))
    night.do("consolidate", 0, 0)
    assert [one["kind"] for one in night.made] == ["change_entity"]
    told = observe_entity(
        ADA, "Ada", observation(50, "Ada sails."), aliases=["Adele"], kept=50, now=NOW, reason="x"
    )
    await memory.apply([told])
    assert await memory.conflicts(night.made) == []
    await memory.apply(night.made)
    profile = await memory.ada()
    assert profile is not None
    assert "Ada sails." in [one["text"] for one in profile["observations"]]
    assert (profile["aliases"], list(profile["attributes"])) == (["Adele"], ["taste0"])
    await memory.apply(inverse(night.made))
    profile = await memory.ada()
    assert profile is not None
    assert len(profile["observations"]) == 6
    assert profile["attributes"] == {}


async def test_every_reader_accepts_a_forgotten_operation(semantic: SemanticMemory) -> None:
    memory = await before_a_night(semantic)
    night = Night(await memory.semantic.all(memory.scope))
    for deed in ("score", "mark", "link", "relate", "describe", "notice", "consolidate", "prune"):
        night.do(deed, 1, 2)
    fact = await memory.fact(OLD[0])
    made = [*night.made, change_fact(fact, {"importance": 9}, [], "more")]
    bare: Any = [{**one, "before": None, "after": None, "sources": []} for one in made]
    before = await memory.everything()
    await memory.apply(bare)
    await memory.apply(inverse(bare))
    assert await memory.everything() == before
    assert await memory.conflicts(bare) == []
    overlay = memory.through(bare)
    assert list(await overlay.facts(OLD)) == list(OLD)
    assert list(await overlay.profiles([ADA])) == [ADA]
    assert {*await overlay.holding()} == {*OLD}
    assert built_on(bare, [("later", bare)], {}).keys() == {"later"}
    assert links.after({}, bare, {}) == {}
    assert facts_leaving(bare, set(OLD)) == set()
    assert heirs_of(bare, {}) == {}
