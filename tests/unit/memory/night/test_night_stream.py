"""The progress events of a night in the stream mode `custom`."""

from pathlib import Path
from typing import Any

from memory.night.steps import NightEvent, is_night_event
from tests.support.agents import opened
from tests.support.clock import Clock
from tests.support.dreamers import SATURDAY, SETTINGS, SUNDAY, day, dreamer


async def test_each_step_tells_begin_progress_and_end_with_counts(
    tmp_path: Path, clock: Clock
) -> None:
    heard: list[NightEvent] = []
    async with opened(tmp_path, dreamer(), clock, settings=SETTINGS) as agent:
        await day(agent, clock, [*SATURDAY, *SUNDAY])
        given: dict[str, Any] = {"request": "sleep"}
        async for _, part in agent.astream(given, stream_mode="custom", subgraphs=True):
            assert is_night_event(part)
            heard.append(part)
        (line,) = await agent.nights()
    steps = [one["step"] for one in heard if one["event"] == "begin"]
    assert steps == [
        *("score_importance", "consolidate", "apply_operations", "dream", "prune_links"),
        *("consolidate_entities", "write_pages", "reflect", "prune", "weigh_night"),
        *("apply_operations", "record_night"),
    ]
    assert [one["step"] for one in heard if one["event"] == "end"] == steps[:-1]
    assert {one["night"] for one in heard} == {line["id"]}
    scored = [one for one in heard if one["step"] == "score_importance"]
    assert [(one["event"], one["done"], one["of"]) for one in scored] == [
        *(("begin", 0, 11), ("progress", 3, 11), ("progress", 6, 11), ("progress", 9, 11)),
        *(("progress", 11, 11), ("end", 11, 11)),
    ]
    assert [one["llm_calls"] for one in scored] == [0, 1, 2, 3, 4, 4]
    dreamt = [one for one in heard if one["step"] == "dream"]
    assert (dreamt[0]["done"], dreamt[-1]["done"], dreamt[-1]["of"]) == (0, 10, 10)
    assert dreamt[-1]["operations"] > 10


def test_custom_events_of_tools_are_no_night_events() -> None:
    assert not is_night_event({"type": "night"})
    assert not is_night_event({"step": "x"})
    assert not is_night_event("night")
