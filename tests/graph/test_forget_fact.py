"""Forgetting one fact, and forgetting while work is on its way."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from graph.api.async_agent import AsyncAgent
from graph.use_cases.forgetting import forget, forget_fact
from graph.use_cases.memories import correct
from memory.errors import InputError
from memory.night import record as night
from memory.operations.apply import LINKS
from memory.storage import list_items
from tests.graph.test_forget_bytes import agent as agent
from tests.graph.test_forget_bytes import data as data
from tests.graph.test_forget_bytes import lived as lived
from tests.support.agents import entries, said
from tests.support.clock import Clock
from tests.support.lives import ZORAS, holding


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
