"""Entities in the store: found by name, never across scopes; operations that change them."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import GetOp, Op, Result
from langgraph.store.memory import InMemoryStore

from memory.entities import entities
from memory.facts.semantic import SemanticMemory
from memory.operations.apply import apply_operations
from memory.records.operations import add_fact, meet_entity, observe_entity, supersede_fact
from memory.records.profiles import EntityProfile, entity_id, sender_id
from memory.records.records import Event, Fact, Operation, Scope
from tests.support.agents import Opening
from tests.support.facts import ANA, BEN, draft, memory_at
from tests.support.night_memories import observation, talk
from tests.support.scripted import scripted
from tests.support.tool_calls import EVENT

AT = "2026-03-02T09:00:00+00:00"
NO_FACTS = cast(SemanticMemory, object())


class Counting(InMemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.batches, self.reads = 0, 0

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        ops = list(ops)
        self.batches += 1
        self.reads += sum(isinstance(op, GetOp) for op in ops)
        return await super().abatch(ops)


def observe(name: str, number: int = 1, *aliases: str) -> Operation:
    id_ = entity_id(name.casefold())
    return observe_entity(
        id_, name, observation(number), aliases=aliases, kept=10, now=AT, reason="test"
    )


def event(sender: str, text: str = "Hello", id_: str = "e1") -> Event:
    return {**EVENT, "id": id_, "sender": sender, "text": text}


async def apply(store: Any, *operations: Operation, scope: Scope = ANA) -> None:
    await apply_operations(operations, store=store, semantic=NO_FACTS, scope=scope)


async def meet(store: Any, sender: str, id_: str = "e1") -> None:
    ((known,), _) = await entities.look_up(store, ANA, senders=[sender])
    await apply(store, meet_entity(known.id, event(sender, id_=id_), now=AT, reason="test"))


async def found(store: Any, name: str, scope: Scope = ANA) -> str | None:
    (known,) = await entities.named(store, scope, [name])
    return known.profile["name"] if known.profile else None


async def whose(store: Any, sender: str) -> EntityProfile | None:
    ((known,), _) = await entities.look_up(store, ANA, senders=[sender])
    return known.profile


SPELLED = ["Ana Lopez", "ana lopez", "@Ana  Lopez", "Ana Lopez's", "anita"]
NEAR = ["Ana", "Lopez", "Ana Lopes", "Ana Lopez Garcia", "Anit"]


@pytest.mark.parametrize("name", [*SPELLED, *NEAR])
async def test_an_entity_is_found_by_its_name_and_by_an_alias_alone(name: str) -> None:
    store = InMemoryStore()
    await apply(store, observe("Ana Lopez", 1, "Anita"))
    assert await found(store, name) == ("Ana Lopez" if name in SPELLED else None)


@given(
    name=st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(str.strip),
    other=st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).filter(str.strip),
)
def test_a_name_never_resolves_in_another_scope(name: str, other: str) -> None:
    async def check() -> None:
        store = InMemoryStore()
        await apply(store, observe(name), scope=ANA)
        here = [Scope(ANA.user, other), Scope(other, ANA.thread), BEN]
        for scope in (one for one in here if one != ANA):
            assert await found(store, name, scope) is None
            known, said = await entities.look_up(store, scope, senders=[name], texts=[name])
            assert (known[0].profile, said) == (None, [[]])
            assert await entities.read(store, scope, [known[0].id]) == {}
            assert await entities.everyone(store, scope) == []
        assert len(await entities.everyone(store, ANA)) == 1

    asyncio.run(check())


async def test_a_mentioned_person_who_writes_is_the_same_entity() -> None:
    store = InMemoryStore()
    await apply(store, observe("Bea"))
    await meet(store, "Bea")
    (bea,) = await entities.everyone(store, ANA)
    assert (bea["senders"], len(bea["observations"])) == (["Bea"], 1)


@pytest.mark.parametrize("almost", ["bea", "@Bea", " Bea", "Bea "])
async def test_a_sender_with_a_similar_id_is_another_entity(almost: str) -> None:
    store = InMemoryStore()
    await meet(store, "Bea", "e1")
    await meet(store, almost, "e2")
    await meet(store, almost, "e3")
    bea, other = await whose(store, "Bea"), await whose(store, almost)
    assert bea is not None
    assert other is not None
    assert (bea["id"], other["id"]) == (entity_id("bea"), sender_id(almost))
    assert [one["relationship"]["interactions"] for one in (bea, other)] == [1, 2]
    assert await found(store, almost) == "Bea"


async def test_an_alias_does_not_change_a_senders_entity() -> None:
    store = InMemoryStore()
    await apply(store, observe("Bob", 1, "Zoe"))
    assert await whose(store, "Zoe") is None
    await meet(store, "Zoe")
    zoe = await whose(store, "Zoe")
    assert zoe is not None
    assert (zoe["id"], await found(store, "Zoe")) == (entity_id("zoe"), "Zoe")
    bob = await whose(store, "Bob")
    assert bob is not None
    assert bob["aliases"] == []


async def test_names_in_a_text_cost_two_batches_of_reads() -> None:
    store = Counting()
    people = [observe(f"Person {n}", n) for n in range(300)]
    await apply(store, *people, observe("Bea", 301, "Queen B."))
    store.batches = store.reads = 0
    text = "Queen B. met Person 7 and person 99, not Person 300. " * 20
    _, (said,) = await entities.look_up(store, ANA, texts=[text])
    assert [one["name"] for one in said] == ["Bea", "Person 7", "Person 99"]
    assert (store.batches, store.reads < 120) == (2, True)


async def test_a_very_long_text_costs_no_more_than_a_long_one() -> None:
    store = Counting()
    await entities.names_in(store, ANA, " ".join(f"word{n}" for n in range(20_000)))
    assert store.reads <= 4 * 300


async def test_the_prompt_shows_sender_then_mentioned_then_open_conversations() -> None:
    store = InMemoryStore()
    known = [observe(name, n) for n, name in enumerate(("Ana", "Bea", "Carl", "Dan", "Zed"))]
    await apply(store, *known)
    talks = {name: talk(name, at) for name, at in (("Dan", "2026-01"), ("Carl", "2026-02"))}
    people = await entities.in_conversation(store, ANA, event("Ana", "Is Bea here?"), talks)
    assert [one["name"] for one in people] == ["Ana", "Bea", "Carl", "Dan"]
    alone = await entities.in_conversation(store, ANA, None, talks)
    assert [one["name"] for one in alone] == ["Carl", "Dan"]


async def test_blank_profiles_of_others_are_not_shown() -> None:
    store = InMemoryStore()
    for sender in ("Ana", "Bea"):
        await meet(store, sender)
    talks = {"Bea": talk("Bea", "2026")}
    people = await entities.in_conversation(store, ANA, event("Ana"), talks)
    assert [one["name"] for one in people] == ["Ana"]


async def test_only_the_nearest_people_are_shown() -> None:
    store = InMemoryStore()
    await apply(store, *(observe(f"P{n}", n) for n in range(50)))
    talks = {f"P{n}": talk(f"P{n}", f"2026-{n:02}") for n in range(50)}
    people = await entities.in_conversation(store, ANA, None, talks)
    assert [one["name"] for one in people] == [f"P{n}" for n in range(49, 41, -1)]
    named = event("P0", " ".join(f"P{n}" for n in range(1, 30)))
    people = await entities.in_conversation(store, ANA, named, talks)
    assert [one["name"] for one in people] == [f"P{n}" for n in range(8)]


async def test_a_sender_does_not_mention_themselves() -> None:
    store = InMemoryStore()
    await apply(store, observe("Bea", 1, "Queen B."), observe("Ana", 2, "Anita"))
    said = [event("Bea", "Queen B. is here"), event("Bea", "Anita is here")]
    assert [one.names for one in await entities.familiar(store, ANA, said)] == [
        (),
        ("Ana", "Anita"),
    ]


async def test_operations_without_entities_read_nothing() -> None:
    store = Counting()
    await apply(store)
    assert store.reads == 0


async def test_repeated_observations_are_stored_once(opening: Opening) -> None:
    async with opening(scripted()) as agent:
        for number in [*range(8), *range(8)]:
            await apply(agent.store, observe("Bea", number))
        (bea,) = await entities.everyone(agent.store, ANA)
        assert await entities.puts_after(agent.store, ANA, [observe("Bea", 3)]) == []
    assert [one["id"] for one in bea["observations"]] == [f"o{n}" for n in range(8)]


async def test_a_fact_is_not_superseded_by_a_missing_one_or_itself(tmp_path: Path) -> None:
    semantic, store = memory_at(tmp_path), InMemoryStore()
    (old,) = await semantic.add(ANA, [draft("1", "lives in Rome")])
    gone: Fact = {**old, "op": "gone"}
    ends = [
        supersede_fact(old, "nowhere", AT, [], "test"),
        supersede_fact(old, "1", AT, [], "test"),
        supersede_fact(gone, "1", AT, [], "test"),
    ]
    await apply_operations(ends, store=store, semantic=semantic, scope=ANA)
    assert await semantic.all(ANA) == [old]


async def test_a_crash_between_facts_and_store_leaves_no_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    semantic, store = memory_at(tmp_path), InMemoryStore()
    operations = [observe("Bea"), add_fact(draft("1", "Bea likes tea"), "test")]

    async def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("memory.operations.apply.write_batch", killed)
        with pytest.raises(KeyboardInterrupt):
            await apply_operations(operations, store=store, semantic=semantic, scope=ANA)
    assert len(await semantic.all(ANA)) == 1
    assert (await entities.everyone(store, ANA), await found(store, "Bea")) == ([], None)
    await apply_operations(operations, store=store, semantic=semantic, scope=ANA)
    (bea,) = await entities.everyone(store, ANA)
    assert (len(await semantic.all(ANA)), len(bea["observations"])) == (1, 1)
