"""What a night may spend, through the whole night: it stops at a step's end, and says why."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage

from graph.handle import AsyncAgent
from memory import journal
from memory.settings import Settings
from tests.agents import entries, opened
from tests.clock import Clock
from tests.dreamers import SETTINGS, answer, dreamer, shown
from tests.scripted import ScriptedChatModel


async def heard(agent: AsyncAgent, clock: Clock, count: int) -> None:
    """So many things are overheard at once, some of them more important than others."""
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
    """Every third one is of weight already, before the night."""
    for entry in await entries(agent):
        number = int(re.findall(r"Plot (\d+)", entry["content"])[0])
        changed: Any = {**entry, "importance": 5 if number % 3 == 0 else 3}
        await agent.store.abatch(journal.puts(agent.scope, changed))


async def test_a_night_of_a_hundred_entries_makes_fifteen_calls_at_most_side_by_side(
    tmp_path: Path, clock: Clock
) -> None:
    running, most = 0, 0

    class Counting(ScriptedChatModel):
        async def _agenerate(self, *args: Any, **more: Any) -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.25)  # on a busy machine the next one is not there at once
            try:
                return await super()._agenerate(*args, **more)
            finally:
                running -= 1

    model = Counting(otherwise=lambda messages, tools: answer(messages, tools))
    settings = Settings(reflection_threshold=20, min_observations=2, night_parallel=3)
    async with opened(tmp_path, model, clock, settings=settings) as agent:
        await heard(agent, clock, 100)
        slept = await agent.sleep()
        made = [one for one in slept["operations"] if one["kind"] == "add_fact"]
    assert len(model.calls) <= 15
    assert most == 3
    assert (slept["complete"], slept["held"], len(made)) == (True, [], 100)
    assert {one["step"] for one in slept["steps"]} >= {"dream", "reflect"}


async def test_with_its_budget_used_up_it_stops_says_so_and_the_next_goes_on_with_the_best(
    tmp_path: Path, clock: Clock
) -> None:
    settings = SETTINGS.model_copy(
        update={
            "night_tokens": 600,
            "score_batch_size": 5,
            "consolidate_batch_size": 5,
            "night_parallel": 1,
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


async def test_a_night_that_stopped_tells_it_in_its_record_and_lists_the_rest(
    tmp_path: Path, clock: Clock
) -> None:
    settings = SETTINGS.model_copy(update={"night_tokens": 1})
    async with opened(tmp_path, dreamer(), clock, settings=settings) as agent:
        await heard(agent, clock, 5)
        await agent.sleep()
        told = await agent.night("last")
    assert told["stopped"] is not None
    assert (told["status"], told["complete"], len(told["held"])) == ("complete", False, 5)
