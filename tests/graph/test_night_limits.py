"""The budget through a whole night: it stops after a batch, and says why."""

import asyncio
import re
import sys
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from benchmarks.lives import live, made_up
from benchmarks.night import Clocked
from graph.api import AsyncAgent
from memory.journal import entries as journal
from memory.night import dream_work as nightwork
from memory.night import steps as night_steps
from memory.night.order import LEAST_CALLS
from memory.operations import apply
from memory.records.operations import observe_entity
from memory.records.profiles import entity_id
from memory.settings import Settings
from nodes.night.consolidate_entities import ENTITIES_A_CALL
from tests.support.agents import Opening, entries, shown_lines
from tests.support.clock import Clock
from tests.support.dreamers import SETTINGS, answer, dreamer, shown
from tests.support.night_memories import observation
from tests.support.scripted import ScriptedChatModel, call, scripted


async def heard(agent: AsyncAgent, clock: Clock, count: int) -> None:
    events = [
        {
            "id": f"e{n:03}",
            "sender": "Ben",
            "text": f"Plot {n:03} grows a plant of kind {n * 7 % count}.",
            "addressed": False,
            "at": clock().isoformat(),
        }
        for n in range(count)
    ]
    await agent.post(events)
    clock.advance(hours=1)


async def weighed(agent: AsyncAgent) -> None:
    for entry in await entries(agent):
        number = int(re.findall(r"Plot (\d+)", entry["content"])[0])
        changed: Any = {**entry, "importance": 5 if number % 3 == 0 else 3}
        await agent.store.abatch(journal.puts(agent.scope, changed))


async def test_a_hundred_entries_take_at_most_fifteen_calls_one_after_the_other(
    opening: Opening, clock: Clock
) -> None:
    running, most = 0, 0

    class Counting(ScriptedChatModel):
        async def _agenerate(self, *args: Any, **more: Any) -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            try:
                return await super()._agenerate(*args, **more)
            finally:
                running -= 1

    model = Counting(otherwise=lambda messages, tools: answer(messages, tools))
    settings = Settings(reflection_threshold=20, min_observations=2)
    async with opening(model, settings=settings) as agent:
        await heard(agent, clock, 100)
        slept = await agent.sleep()
        made = [one for one in slept["operations"] if one["kind"] == "add_fact"]
    assert len(model.calls) <= 15
    assert most == 1
    assert (slept["complete"], slept["held"], len(made)) == (True, [], 100)
    assert {one["step"] for one in slept["steps"]} >= {"dream", "reflect"}


async def test_a_model_that_makes_one_fact_an_answer_leaves_calls_for_comparing_them(
    opening: Opening, clock: Clock
) -> None:
    def one_by_one(messages: list[BaseMessage], tools: list[str]) -> Any:
        if "store_memory" not in tools:
            return answer(messages, tools)
        lines = shown_lines(messages)
        number, _, text = lines[sum(isinstance(one, AIMessage) for one in messages) % len(lines)]
        return call("store_memory", facts=[{"text": text, "source_ids": [number]}])

    model = scripted(otherwise=one_by_one)
    async with opening(model, settings=Settings()) as agent:
        await heard(agent, clock, 12)
        slept = await agent.sleep()
        left = [one for one in await entries(agent) if one["consolidation"] == "pending"]
    asked = [call.tools for call in model.calls]
    made = sum("store_memory" in tools for tools in asked)
    assert (made, ["Dream"] in asked, len(asked) <= 8) == (5, True, True)
    assert len(left) == 12 - made
    assert slept["complete"]


async def test_after_the_budget_is_used_up_the_next_night_takes_the_rest_by_importance(
    opening: Opening, clock: Clock
) -> None:
    settings = SETTINGS.model_copy(
        update={
            "night_tokens": 600,
            "score_batch_size": 5,
            "consolidate_batch_size": 5,
            "gate_facts": 1_000,
        }
    )
    model = dreamer()
    async with opening(model, settings=settings) as agent:
        await heard(agent, clock, 30)
        await agent.ainvoke({})
        await weighed(agent)
        first = await agent.sleep()
        asked = [plot for call in model.calls for plot in plots(call.messages)]
        assert first["complete"] is False
        assert re.fullmatch(r"\d+ of 600 tokens are used \(night_tokens\)", first["stopped"] or "")
        assert asked == sorted(asked, key=lambda n: (n % 3 != 0, n))
        assert len(first["held"]) == 30
        paid = len(model.calls)
        unlimited = settings.model_copy(update={"night_tokens": None})
        agent.context = replace(agent.context, settings=unlimited)
        clock.advance(days=1)
        second = await agent.sleep()
    scored = [call for call in model.calls[paid:] if call.tools == ["Scores"]]
    again = {plot for call in scored for plot in plots(call.messages)}
    assert again.isdisjoint(asked)
    assert len(again.union(asked)) == 30
    assert (second["complete"], second["stopped"], second["held"]) == (True, None, [])


def plots(messages: list[BaseMessage]) -> list[int]:
    told = shown(str(messages[1].text)).values()
    return [int(found) for line in told for found in re.findall(r"Plot (\d+)", line)]


SMALL = Settings(
    score_batch_size=2,
    consolidate_batch_size=2,
    dream_batch_size=2,
    night_calls_per_100=1_000,
    reflection_threshold=10_000,
    min_observations=100,
)


async def known(agent: AsyncAgent, count: int) -> None:
    memory: Any = {"store": agent.store, "semantic": agent.resources.semantic, "scope": agent.scope}
    now = agent.resources.clock().isoformat()
    for number in range(count):
        seen = observation(number, f"Has plot {number}.", at=now)
        id_, name = entity_id(f"friend {number}"), f"Friend {number}"
        one = observe_entity(id_, name, seen, kept=50, now=now, reason="test")
        await apply.apply_operations([one], **memory)


async def test_an_entity_that_is_gone_is_passed_over(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = LEAST_CALLS * ENTITIES_A_CALL
    of = nightwork.work_of

    async def with_one_gone(*args: Any) -> Any:
        work = await of(*args)
        return {**work, "entities": [*work["entities"], "entity_gone"]}

    visited_node = sys.modules["nodes.night.weigh_night"]
    monkeypatch.setattr(visited_node, "work_of", with_one_gone)
    settings = SMALL.model_copy(update={"min_observations": 1})
    async with opening(dreamer(), settings=settings) as agent:
        await known(agent, people + 1)
        report = await agent.sleep()
    assert (report["left"], report["status"]) == ({"consolidate_entities": 1}, "partial")
    (step,) = [one for one in report["steps"] if one["step"] == "consolidate_entities"]
    assert (step["done"], step["skipped"], step["llm_calls"]) == (people + 1, 0, LEAST_CALLS)


async def test_the_budget_is_checked_between_the_batches_of_one_visit(
    opening: Opening, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(night_steps, "ITEMS_A_BATCH", 1)
    settings = SMALL.model_copy(update={"night_calls_per_100": 75})
    async with opening(Clocked(), settings=settings) as agent:
        await live(agent, made_up(12))
        report = await agent.sleep()
    assert sum(one["llm_calls"] for one in report["steps"]) == 9
    assert report["held"]
