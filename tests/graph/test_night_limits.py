"""The budget through a whole night: it stops after a batch, and says why."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from graph.api.async_agent import AsyncAgent
from memory.journal import entries as journal
from memory.settings import Settings
from tests.support.agents import entries, opened, shown_lines
from tests.support.clock import Clock
from tests.support.dreamers import SETTINGS, answer, dreamer, shown
from tests.support.scripted import ScriptedChatModel, call, scripted


async def heard(agent: AsyncAgent, clock: Clock, count: int) -> None:
    """The agent overhears `count` messages of different importance."""
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
    """Make every third entry important before the night."""
    for entry in await entries(agent):
        number = int(re.findall(r"Plot (\d+)", entry["content"])[0])
        changed: Any = {**entry, "importance": 5 if number % 3 == 0 else 3}
        await agent.store.abatch(journal.puts(agent.scope, changed))


async def test_a_hundred_entries_take_at_most_fifteen_calls_one_after_the_other(
    tmp_path: Path, clock: Clock
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
    async with opened(tmp_path, model, clock, settings=settings) as agent:
        await heard(agent, clock, 100)
        slept = await agent.sleep()
        made = [one for one in slept["operations"] if one["kind"] == "add_fact"]
    assert len(model.calls) <= 15
    assert most == 1
    assert (slept["complete"], slept["held"], len(made)) == (True, [], 100)
    assert {one["step"] for one in slept["steps"]} >= {"dream", "reflect"}


async def test_a_model_that_makes_one_fact_an_answer_leaves_calls_for_comparing_them(
    tmp_path: Path, clock: Clock
) -> None:
    def one_by_one(messages: list[BaseMessage], tools: list[str]) -> Any:
        if "store_memory" not in tools:
            return answer(messages, tools)
        lines = shown_lines(messages)
        number, _, text = lines[sum(isinstance(one, AIMessage) for one in messages) % len(lines)]
        return call("store_memory", facts=[{"text": text, "source_ids": [number]}])

    model = scripted(otherwise=one_by_one)
    async with opened(tmp_path, model, clock, settings=Settings()) as agent:
        await heard(agent, clock, 12)
        slept = await agent.sleep()
        left = [one for one in await entries(agent) if one["consolidation"] == "pending"]
    asked = [call.tools for call in model.calls]
    made = sum("store_memory" in tools for tools in asked)
    assert (made, ["Dream"] in asked, len(asked) <= 8) == (5, True, True)
    assert len(left) == 12 - made
    assert slept["complete"]


async def test_after_the_budget_is_used_up_the_next_night_takes_the_rest_by_importance(
    tmp_path: Path, clock: Clock
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
    async with opened(tmp_path, model, clock, settings=settings) as agent:
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
    """The plots that a batch shows."""
    told = shown(str(messages[1].text)).values()
    return [int(found) for line in told for found in re.findall(r"Plot (\d+)", line)]
