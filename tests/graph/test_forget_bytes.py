"""Forgetting a person or a fact: nothing of it is left in any file, and the rest goes on."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from graph.api import AsyncAgent
from graph.use_cases.forgetting import forget, forget_fact
from graph.use_cases.memories import correct
from graph.use_cases.status import status
from memory import audit
from memory.errors import InputError
from memory.events import inbox
from memory.night import record as night
from memory.operations.apply import LINKS
from memory.records.records import Scope
from memory.storage.access import list_items, shelves
from tests.support.agents import entries, said
from tests.support.clock import Clock
from tests.support.lives import BENS, ZORAS, Lived, at_home, copied, holding, lived_in


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    return lived_in(tmp_path_factory.mktemp("lived"))


@pytest.fixture
def data(tmp_path: Path, lived: Lived) -> Path:
    return copied(lived, tmp_path / "data")


@pytest.fixture
async def agent(data: Path, lived: Lived, clock: Clock) -> AsyncIterator[AsyncAgent]:
    clock.set(lived.now)
    async with at_home(data, clock) as handle:
        yield handle


async def records(agent: AsyncAgent, scope: Scope) -> dict[tuple[str, ...], Any]:
    return {
        (*shelf.labels, item.key): item.value
        async for shelf in shelves(agent.store, scope)
        for item in shelf.items
    }


async def test_no_byte_of_a_forgotten_person_is_left_in_the_data_folder(
    agent: AsyncAgent, data: Path
) -> None:
    before = {one.split(": ")[1] for one in holding(data, ZORAS)}
    assert before == set(ZORAS)
    await forget(agent.context, "Zora")
    assert holding(data, ZORAS) == []
    assert {one.split(": ")[1] for one in holding(data, BENS)} == set(BENS)


async def test_the_word_index_loses_terms_of_the_forgotten_person(
    agent: AsyncAgent, data: Path
) -> None:
    def terms() -> set[str]:
        with closing(sqlite3.connect(data / "facts.db")) as connection:
            found = connection.execute("SELECT term FROM vocabulary_1").fetchall()
        return {bytes.fromhex(term).decode() if _is_hex(term) else term for (term,) in found}

    assert {"zora", "durian", "tomato"} <= terms()
    await forget(agent.context, "Zora")
    left = terms()
    assert "tomato" in left
    assert not [term for term in left if any(word in term for word in ZORAS)]


def _is_hex(term: str) -> bool:
    return len(term) % 2 == 0 and all(one in "0123456789abcdef" for one in term) and len(term) > 12


async def test_other_peoples_memories_stay(agent: AsyncAgent) -> None:
    def bens(found: Any) -> list[Any]:
        return [one for one in found if "Zora" not in str(one) and "Quibbles" not in str(one)]

    journal, facts = await entries(agent), await agent.resources.semantic.all(agent.scope)
    mine = [one for one in bens(journal) if one["source_entity"] == "Ben"]
    kept = [one for one in bens(facts) if one["speaker"] == "Ben"]
    assert (len(mine), len(kept)) == (3, 3)
    await forget(agent.context, "Zora")
    after = await entries(agent)
    assert [one for one in after if one["source_entity"]] == mine
    assert await agent.resources.semantic.all(agent.scope) == kept
    values = (await agent.aget_state()).values
    assert list(values["conversations"]) == ["Ben @ hall"]
    assert values["session_memory"]["learned_patterns"] == ["Tomatoes on a balcony dry out."]
    assert values["session_memory"]["key_facts"] == []
    assert [goal["description"] for goal in values["goals"].values()] == [
        "[forgotten]",
        "Water the tomatoes on the balcony",
    ]
    replies = [str(one.text) for one in values["messages"] if one.type == "ai" and one.text]
    assert replies == ["[forgotten]", "Have a good trip to Turin."]


async def test_the_audit_log_keeps_its_entries_without_their_texts(agent: AsyncAgent) -> None:
    def told(entry: audit.AuditEntry) -> tuple[Any, ...]:
        return tuple(entry[key] for key in ("at", "what", "outcome", "tick"))

    before = await audit.read(agent.store, agent.scope)
    await forget(agent.context, "Zora")
    *after, line = await audit.read(agent.store, agent.scope)
    assert list(map(told, after)) == list(map(told, before))
    assert (line["what"], line["target"], line["who"]) == (
        "forgotten",
        "a person or thing",
        "local",
    )
    assert line["detail"]["events"] > 0
    assert "zora" not in str(line).lower()
    calls = [one for one in after if one["target"] == "add_goal"]
    assert [one["detail"] for one in calls] == [
        {},
        {"args": {"description": "Water the tomatoes on the balcony"}},
    ]


async def test_one_checkpoint_is_left_and_no_tick_waits(agent: AsyncAgent) -> None:
    assert len((await agent.aget_state()).values["parked"]) == 1
    assert len([one async for one in agent.aget_state_history()]) > 5
    await forget(agent.context, "Zora")
    (snapshot,) = [one async for one in agent.aget_state_history()]
    assert (snapshot.tasks, snapshot.next) == ((), ())
    assert snapshot.values["parked"] == []
    assert (await status(agent.context))["inbox"] == {"waiting": 1, "set_aside": []}


async def test_the_agent_goes_on_with_the_next_tick_and_the_next_night(
    agent: AsyncAgent, data: Path, clock: Clock
) -> None:
    await forget(agent.context, "Zora")
    out = await agent.ainvoke(said("Do my tomatoes grow?", sender="Ben"))
    assert [tick["reply"] for tick in out["report"]["ticks"]] == ["I see.", "I see."]
    assert out["report"]["failures"] == []
    clock.advance(hours=8)
    out = await agent.ainvoke({"request": "sleep"})
    assert out["report"]["night"]["complete"] is True
    assert await agent.recall("tomatoes")
    assert holding(data, ("quibbles", "telescope", "lantern")) == []


async def test_a_forgotten_person_can_come_back_as_somebody_new(agent: AsyncAgent) -> None:
    await forget(agent.context, "Zora")
    await agent.ainvoke(said("Hello, I am new here.", sender="Zora", id="new-1"))
    found = [one for one in await entries(agent) if one["source_entity"] == "Zora"]
    assert [one["content"] for one in found] == ["Hello, I am new here."]
    assert (await agent.recall("new here"))[0]["sources"] == ["new-1"]


async def test_a_forgotten_event_id_is_not_accepted_again(agent: AsyncAgent) -> None:
    (gone,) = [one for one in await entries(agent) if "telescope" in one["content"]]
    await forget(agent.context, "Zora")
    posted = await agent.post({"id": gone["sources"][0], "sender": "Ben", "text": "Again"})
    assert posted.skipped == gone["sources"]


async def test_another_agent_in_the_folder_is_not_changed(
    agent: AsyncAgent, data: Path, clock: Clock
) -> None:
    async with at_home(data, clock, "other") as other:
        await other.ainvoke(said("My parrot Quibbles is ill.", sender="Zora"))
        await other.ainvoke({"request": "sleep"})

        async def whole() -> list[Any]:
            facts = await other.resources.semantic.all(other.scope)
            values = (await other.aget_state()).values
            return [await records(other, other.scope), facts, values]

        before = await whole()
        await forget(agent.context, "Zora")
        assert await whole() == before
        assert [one["text"] for one in before[1]] == ["Zora said: My parrot Quibbles is ill."]
    assert await inbox.waiting(agent.store, agent.scope)


async def test_a_preview_counts_and_changes_nothing(agent: AsyncAgent) -> None:
    before = await records(agent, agent.scope), (await agent.aget_state()).values
    told = await forget(agent.context, "zora", dry_run=True)
    assert (await records(agent, agent.scope), (await agent.aget_state()).values) == before
    assert told["dry_run"] is True
    assert told["names"] == ["Zora"]
    counts = {key: told["counts"][key] for key in ("events", "journal", "facts", "inbox", "goals")}
    assert counts == {"events": 6, "journal": 5, "facts": 3, "inbox": 3, "goals": 2}
    assert any("parrot Quibbles" in one for one in told["examples"])
    done = await forget(agent.context, "zora")
    assert done["counts"] == told["counts"]
    assert done["examples"] == []


async def test_unknown_kinds_of_records_are_searched_too(agent: AsyncAgent) -> None:
    store, scope = agent.store, agent.scope
    await store.aput(scope.namespace("diary", "Zora"), "page", {"note": "Beans."})
    await store.aput(scope.namespace("diary", "Ben"), "page", {"notes": ["Zora came.\nBeans."]})
    await forget(agent.context, "Zora")
    assert await store.aget(scope.namespace("diary", "Zora"), "page") is None
    left = await store.aget(scope.namespace("diary", "Ben"), "page")
    assert left is not None
    assert left.value == {"notes": ["Beans."]}


async def test_a_forgotten_fact_takes_its_links_and_revives_what_it_superseded(
    agent: AsyncAgent, data: Path
) -> None:
    semantic, scope = agent.resources.semantic, agent.scope
    old = next(f for f in await semantic.all(scope) if "tomatoes" in f["text"])
    new = await correct(agent.context, old["id"], "I grow artichokes in Bergamo.", by="Ben")
    gone = await forget_fact(agent.context, new["id"])
    counts = {kind: gone["counts"][kind] for kind in ("facts", "journal", "links", "nights")}
    assert counts == {"facts": 1, "journal": 1, "links": 2, "nights": 0}
    assert await semantic.get(scope, old["id"]) == old
    assert await semantic.get(scope, new["id"]) is None
    assert holding(data, ["artichokes"]) == []
    assert not [one for one in await entries(agent) if "correction" in one["tags"]]
    links = await list_items(agent.store, scope.namespace(LINKS))
    assert not [one for one in links if one.key.startswith("correction_")]
    with pytest.raises(InputError, match="there is no fact"):
        await forget_fact(agent.context, new["id"])


async def test_a_forgotten_fact_loses_its_text_in_the_nights_record(agent: AsyncAgent) -> None:
    semantic, scope = agent.resources.semantic, agent.scope
    fact = next(f for f in await semantic.all(scope) if "tomatoes" in f["text"])
    assert (await forget_fact(agent.context, fact["id"]))["counts"]["nights"] == 1
    (held,) = await night.records(agent.store, scope)
    name = held["id"]
    operations = (await night.plans_of(agent.store, scope, name)).operations()
    told = {one["id"]: one["after"] for one in operations if one["kind"] == "add_fact"}
    assert told.pop(fact["op"]) is None
    assert all(told.values())
    record = await night.load(agent.store, scope, name)
    assert record is not None
    assert record["forgotten"]


async def test_an_unfinished_tick_is_dropped_and_repeated(
    agent: AsyncAgent, data: Path, clock: Clock
) -> None:
    async for _ in agent.astream(said("Zora, where are you? Tell Ben.", sender="Ben", id="b-7")):
        break
    assert (await agent.aget_state()).tasks
    await agent.post({"id": "b-8", "sender": "Ben", "text": "My train to Turin leaves."})
    async for _ in agent.astream(None):
        break
    await forget(agent.context, "Zora")
    assert holding(data, ZORAS) == []
    assert (await agent.aget_state()).tasks == ()
    out = await agent.ainvoke({"request": "wake"})
    assert {tick["event_id"] for tick in out["report"]["ticks"]} >= {"b-8"}
    assert "b-7" not in {tick["event_id"] for tick in out["report"]["ticks"]}


async def test_a_finished_uncommitted_tick_is_not_repeated(
    agent: AsyncAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver: Any = agent.graph.checkpointer
    put = saver.aput

    async def dying(config: Any, checkpoint: Any, *more: Any) -> Any:
        messages = checkpoint["channel_values"].get("messages", [])
        if not config["configurable"]["checkpoint_ns"] and "b-8" in {one.id for one in messages}:
            raise OSError("the disk is full")
        return await put(config, checkpoint, *more)

    await agent.post({"id": "b-8", "sender": "Ben", "text": "My train to Turin leaves."})
    with monkeypatch.context() as patch, suppress(OSError):
        patch.setattr(saver, "aput", dying)
        await agent.ainvoke(None)
    (task,) = (await agent.aget_state()).tasks
    assert (task.name, task.result is not None) == ("awake", True)
    await forget(agent.context, "Zora")
    assert "b-8" in {one.id for one in (await agent.aget_state()).values["messages"]}
    out = await agent.ainvoke({"request": "wake"})
    assert "b-8" not in {tick["event_id"] for tick in out["report"]["ticks"]}
