"""What a night reads: what is new and what that touches, and not the whole memory."""

from typing import Any

import pytest

from graph.api import AsyncAgent
from memory import journal, pages
from memory.facts import SemanticMemory
from memory.night import pending_view
from memory.operations import apply_operations
from memory.pages import pages as page_files
from memory.records import Operation
from memory.records.operations import add_entity, add_fact, link_facts, supersede_fact
from tests.support.agents import Opening, night_model
from tests.support.facts import draft
from tests.support.night_memories import ADA
from tests.support.scripted import scripted

AT = "2026-01-02T09:00:00+00:00"


def of_ada(op: str, text: str, **fields: Any) -> Operation:
    return add_fact(draft(op, text, entities=["Ada"], speaker="Ada", **fields), "told")


async def apply(agent: AsyncAgent, *operations: Operation) -> None:
    semantic = agent.resources.semantic
    await apply_operations(operations, store=agent.store, semantic=semantic, scope=agent.scope)


async def on_page(agent: AsyncAgent, id_: str) -> list[str]:
    found = await pages.everything(agent.store, agent.scope)
    return [op for line in found[id_]["lines"] for op in line["facts"]] if id_ in found else []


async def test_a_page_has_facts_from_before_those_last_written(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_view, "RECENT", 3)
    async with opening(scripted(otherwise=night_model)) as agent:
        known = add_entity(ADA, "Ada", speaks=True, now=AT, reason="met")
        await apply(agent, known, of_ada("f0", "Ada grows beans."))
        await agent.sleep()
        others = [add_fact(draft(f"o{n}", f"It rained on day {n}."), "told") for n in range(5)]
        await apply(agent, *others)
        await agent.sleep()
        assert await on_page(agent, ADA) == ["f0"]
        await apply(agent, of_ada("f1", "Ada keeps bees."))
        await agent.sleep()
        assert sorted(await on_page(agent, ADA)) == ["f0", "f1"]


@pytest.mark.parametrize("recent", [1, 2_000])
async def test_a_page_goes_without_a_fact_that_fell_by_day_whenever_it_was_said(
    opening: Opening, monkeypatch: pytest.MonkeyPatch, recent: int
) -> None:
    monkeypatch.setattr(pending_view, "RECENT", recent)
    async with opening(scripted(otherwise=night_model)) as agent:
        known = add_entity(ADA, "Ada", speaks=True, now=AT, reason="met")
        await apply(agent, known, of_ada("f0", "Ada grows beans."), of_ada("f1", "Ada bakes."))
        await agent.sleep()
        fact = (await agent.resources.semantic.by_op(agent.scope, ["f0"]))["f0"]
        await apply(agent, supersede_fact(fact, "f1", fact["valid_from"], [], "settled"))
        await apply(agent, *(add_fact(draft(f"o{n}", f"Rain {n}."), "told") for n in range(3)))
        await agent.sleep()
        assert await on_page(agent, ADA) == ["f1"]


@pytest.mark.parametrize("recent", [1, 2_000])
async def test_the_page_of_days_takes_the_next_day_where_one_fell(
    opening: Opening, monkeypatch: pytest.MonkeyPatch, recent: int
) -> None:
    monkeypatch.setattr(pending_view, "RECENT", recent)
    monkeypatch.setattr(page_files, "MOST_DATED", 1)
    async with opening(scripted(otherwise=night_model)) as agent:
        near, far = (f"Ada mows on 2026-03-{day}." for day in ("04", "20"))
        await apply(agent, of_ada("f0", near), of_ada("f1", far))
        await agent.sleep()
        assert await on_page(agent, pages.DATED) == ["f1"]
        fact = (await agent.resources.semantic.by_op(agent.scope, ["f1"]))["f1"]
        await apply(agent, supersede_fact(fact, "f0", AT, [], "off"), of_ada("f2", "Ada bakes."))
        await agent.sleep()
        assert await on_page(agent, pages.DATED) == ["f0"]


async def test_a_night_lists_neither_all_facts_nor_all_links(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = list[str]()

    async def every(*given: Any, **more: Any) -> Any:
        listed.append("all facts")
        return []

    async with opening(scripted(otherwise=night_model)) as agent:
        await apply(agent, of_ada("f0", "Ada grows beans."), of_ada("f1", "Ada keeps bees."))
        await apply(agent, link_facts("f0", "f1", "relates", AT, "both grow"))
        monkeypatch.setattr(SemanticMemory, "all", every)
        links = agent.scope.namespace(journal.links.LINKS)
        search = type(agent.store).asearch

        async def asearch(self: Any, prefix: tuple[str, ...], **more: Any) -> Any:
            listed.extend(one for one in ("all links",) if prefix == links)
            return await search(self, prefix, **more)

        monkeypatch.setattr(type(agent.store), "asearch", asearch)
        report = await agent.sleep()
        assert report["complete"]
        assert listed == []


async def test_a_link_of_the_nights_memories_to_one_that_is_gone_goes(opening: Opening) -> None:
    async with opening(scripted(otherwise=night_model)) as agent:
        await apply(agent, of_ada("f0", "Ada grows beans."), of_ada("f1", "Ada keeps bees."))
        await apply(agent, link_facts("f0", "f1", "relates", AT, "both grow"))
        facts = await agent.resources.semantic.by_op(agent.scope, ["f0", "f1"])
        await agent.resources.semantic.delete(agent.scope, facts["f1"]["id"])
        await agent.sleep()
        left = await journal.links.read(agent.store, agent.scope, [facts["f0"]["id"]])
        assert left == {}
