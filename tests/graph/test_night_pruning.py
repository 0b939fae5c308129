"""Which journal entries fade in a night: none that is cited, or may yet be."""

from typing import Any

import pytest

from graph.api import AsyncAgent
from memory.operations.apply import apply_operations
from memory.records.operations import (
    add_entry,
    add_fact,
    link,
    link_facts,
    link_memories,
    observe_entity,
)
from memory.records.records import Operation
from tests.support.agents import Opening, entries, night_model, said
from tests.support.facts import draft
from tests.support.night_memories import ADA, entry, observation
from tests.support.scripted import scripted

OLD = "2026-01-01T09:00:00+00:00"
AT = "2026-01-02T09:00:00+00:00"


def old(name: str, **fields: Any) -> Operation:
    settled = {"timestamp": OLD, "importance": 2, "consolidation": "below_threshold"}
    made = {**settled, "sources": [name], "content": f"It was {name}.", **fields}
    return add_entry(entry(f"event_20260101_{name}", **made), "test")


KEPT: dict[str, list[Operation]] = {
    "a fact cites the entry": [
        add_fact(draft("f1", "Beans.", source_entries=["event_20260101_one"]), "x")
    ],
    "a fact cites the event": [add_fact(draft("f1", "Beans.", source_events=["one"]), "x")],
    "somebody was observed in it": [
        observe_entity(ADA, "Ada", observation(1, sources=["one"]), kept=9, now=AT, reason="x")
    ],
    "an insight stands on it": [
        add_entry(
            entry(
                "insight_20260102_x",
                consolidation="exempt",
                evidence=["event_20260101_one"],
                importance=8,
                tags=["insight"],
            ),
            "x",
        ),
        link_memories("insight_20260102_x", "event_20260101_one", AT, "evidence of the insight"),
    ],
    "it is linked": [
        add_fact(draft("f1", "Beans.", source_events=["elsewhere"]), "x"),
        link("event_20260101_one", "f1", AT, "near"),
    ],
}


async def night(agent: AsyncAgent, *operations: Operation) -> list[str]:
    to_dream_of = add_fact(draft("new", "There is something to dream of."), "x")
    await apply_operations(
        [*operations, to_dream_of],
        store=agent.store,
        semantic=agent.resources.semantic,
        scope=agent.scope,
    )
    out = await agent.ainvoke({"request": "sleep"})
    assert out["report"]["failures"] == []
    return [
        one["content"]
        for one in await entries(agent)
        if one["timestamp"] == OLD and one["consolidation"] != "faded"
    ]


@pytest.mark.parametrize("why", KEPT)
async def test_cited_entries_do_not_fade(opening: Opening, why: str) -> None:
    async with opening(scripted(otherwise=night_model)) as agent:
        left = await night(agent, old("one"), old("other"), *KEPT[why])
        assert left == ["It was one."]


async def test_entries_of_the_current_conversation_do_not_fade(opening: Opening) -> None:
    model = scripted("I see.", otherwise=night_model)
    async with opening(model) as agent:
        await agent.ainvoke(said("Hm", id="shown"))
        left = await night(agent, old("shown"), old("other"))
        assert left == ["It was shown."]


async def test_a_link_between_facts_keeps_no_entry(opening: Opening) -> None:
    facts = [draft(op, f"Beans {op}.", source_events=["elsewhere"]) for op in ("a", "b")]
    made = [add_fact(one, "x") for one in facts]
    async with opening(scripted(otherwise=night_model)) as agent:
        both = link_facts("a", "b", "relates", AT, "x")
        assert await night(agent, old("one"), *made, both) == []


async def test_fading_entries_alone_begin_a_night_and_cited_ones_do_not(opening: Opening) -> None:
    model = scripted(otherwise=night_model)
    async with opening(model) as agent:
        cited = [old("one"), *KEPT["an insight stands on it"]]
        store, scope, semantic = agent.store, agent.scope, agent.resources.semantic
        for operations, gone in ((cited, []), ([old("two")], ["event_20260101_two"])):
            await apply_operations(operations, store=store, semantic=semantic, scope=scope)
            report = await agent.sleep()
            assert [one["target"] for one in report["operations"]] == gone
            assert (report["id"] is None) is not bool(gone)
        assert (await agent.sleep())["id"] is None
    assert model.calls == []


async def test_a_faded_entry_is_still_found_undone_exported_and_forgotten(opening: Opening) -> None:
    async with opening(scripted(otherwise=night_model)) as agent:
        assert await night(agent, old("harp", source_entity="Ada")) == []
        stood = [one for one in await entries(agent) if one["timestamp"] == OLD]
        assert [one["consolidation"] for one in stood] == ["faded"]
        assert [hit["id"] for hit in await agent.recall("It was a harp")] == [stood[0]["id"]]
        assert await agent.recall("It was", 10, max_tokens=1_300) == []
        await agent.undo_night("last")
        [back] = [one for one in await entries(agent) if one["timestamp"] == OLD]
        assert back["consolidation"] == "below_threshold"
        assert (await agent.sleep())["complete"]
        exported = [line async for line in agent.export_memory()]
        assert "It was harp." in str(exported)
        await agent.forget("Ada")
        assert [one for one in await entries(agent) if one["timestamp"] == OLD] == []
        assert await agent.recall("It was a harp") == []
