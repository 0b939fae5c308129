"""Undoing a night restores memory, or names what prevents it."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from graph.api import AsyncAgent
from graph.use_cases import export_memory, import_memory
from memory.errors import ConflictError, InputError
from memory.night import record as night
from memory.night import undo as night_undo
from memory.operations import apply
from memory.records.records import Scope
from memory.storage.access import write_batch
from memory.transfer.transfer import line_of
from tests.graph.test_night_previews import KINDS, copy_of, life, lived
from tests.support.agents import Opening, opened, said
from tests.support.clock import Clock
from tests.support.dreamers import SATURDAY, SETTINGS, SUNDAY, answer, day, dreamer, whole
from tests.support.scripted import scripted

__all__ = ["life", "lived"]


def kinds(report: Any) -> set[str]:
    return {one["kind"] for one in report["operations"]}


async def cumulative(agent: AsyncAgent) -> int:
    from graph.use_cases.status import status

    told: int = (await status(agent.context))["cumulative_importance"]
    return told


async def test_an_undo_restores_memory_and_the_next_night_does_the_work_again(
    lived: Path, clock: Clock
) -> None:
    async with copy_of(lived, "undone", clock, dreamer()) as agent:
        stood, counted = await whole(agent), await cumulative(agent)
        slept = await agent.sleep()
        assert kinds(slept) == KINDS
        assert await whole(agent) != stood
        assert await cumulative(agent) != counted
        undone = await agent.undo_night("last")
        assert await whole(agent) == stood
        assert await cumulative(agent) == counted
        assert (undone["status"], undone["operations"]) == ("undone", slept["operations"])
        assert await agent.undo_night("last") == undone
        assert await whole(agent) == stood
        again = await agent.sleep()
        assert kinds(again) == KINDS
        assert [told(one) for one in again["operations"]] == [
            told(one) for one in slept["operations"]
        ]
        assert (await agent.undo_night("last"))["status"] == "undone"
        assert await whole(agent) == stood


def told(operation: Any) -> tuple[Any, ...]:
    of_night = operation["target"].startswith("insight_")
    return operation["kind"], None if of_night else operation["target"], operation["reason"]


async def test_an_undo_is_refused_if_a_later_night_built_on_it(lived: Path, clock: Clock) -> None:
    async with copy_of(lived, "built", clock, dreamer()) as agent:
        first = (await agent.nights())[0]["id"]
        second = await agent.sleep()
        stood = await whole(agent)
        with pytest.raises(ConflictError, match=f"a later night built on {first}") as refused:
            await agent.undo_night(first)
        assert await whole(agent) == stood
        assert 'the fact "' in str(refused.value)
        assert f"`circadian undo {second['id']}` comes first" in str(refused.value)
        await agent.undo_night(str(second["id"]))
        assert (await agent.undo_night(first))["status"] == "undone"
        assert await agent.resources.semantic.all(agent.scope) == []


async def test_an_undo_is_refused_after_a_forget(lived: Path, clock: Clock) -> None:
    async with copy_of(lived, "forgot", clock, dreamer()) as agent:
        facts = await agent.resources.semantic.all(agent.scope)
        await agent.forget_fact(facts[0]["id"])
        with pytest.raises(ConflictError, match="a forget took something out of it"):
            await agent.undo_night("last")


async def test_old_nights_keep_ids_and_reasons_only(lived: Path, clock: Clock) -> None:
    settings = SETTINGS.model_copy(update={"nights_kept": 1})
    async with copy_of(lived, "old", clock, dreamer(), settings) as agent:
        first = (await agent.nights())[0]["id"]
        tried = await agent.sleep(dry_run=True)
        await agent.discard_night(str(tried["id"]))
        slept = await agent.sleep()
        pruned = [one for one in slept["operations"] if one["kind"] == "prune_entry"]
        with pytest.raises(ConflictError, match=r"only the newest 1 \(nights_kept\) can be"):
            await agent.undo_night(first)
        told = await agent.night(first)
        assert {one["before"] for one in told["operations"]} == {None}
        assert {one["after"] for one in told["operations"]} == {None}
        assert all(one["target"] and one["reason"] for one in told["operations"])
        assert len(pruned) == 1
        text = pruned[0]["before"]["content"]
        kept = await night.plans_of(agent.store, agent.scope, str(slept["id"]))
        assert text in str([*kept])
        await agent.ainvoke({"request": "wake"})
        clock_of(agent).advance(days=1)
        await day(agent, clock_of(agent), [("Ben", "It is Tuesday.")], first=100)
        await agent.sleep()
        names = [one["id"] for one in await agent.nights()]
        everything = [await night.plans_of(agent.store, agent.scope, one) for one in names]
        assert text not in str(everything)
        assert text not in str(await whole(agent))


def clock_of(agent: AsyncAgent) -> Clock:
    made = agent.resources.clock
    assert isinstance(made, Clock)
    return made


async def test_previews_and_unknown_nights_cannot_be_undone(lived: Path, clock: Clock) -> None:
    async with copy_of(lived, "nothing", clock, dreamer()) as agent:
        tried = await agent.sleep(dry_run=True)
        with pytest.raises(InputError, match="nothing to undo"):
            await agent.undo_night(str(tried["id"]))
        with pytest.raises(InputError, match="there is no night 'night_1'"):
            await agent.undo_night("night_1")


async def test_an_undo_removes_the_archive_and_keeps_the_conversation(
    opening: Opening, clock: Clock
) -> None:
    small = SETTINGS.model_copy(
        update={
            "max_context_tokens": 2_000,
            "compact_preserve_window": 4,
            "compact_sleep_threshold": 0.02,
        }
    )
    async with opening(dreamer(), settings=small) as agent:
        await day(agent, clock, [*SATURDAY, *SUNDAY])
        stood = await whole(agent)
        slept = await agent.sleep()
        assert "compact" in {step["step"] for step in slept["steps"]}
        talk = (await agent.aget_state()).values["messages"]
        assert "[CONTEXT SUMMARY]" in str(talk[0].text)
        await agent.undo_night("last")
        assert await whole(agent) == stood
        assert (await agent.aget_state()).values["messages"] == talk


async def test_changes_of_one_fact_by_several_batches_can_be_undone(
    opening: Opening, clock: Clock
) -> None:
    model = dreamer(("vital", "by boat.", "duplicates"), ("weighty", "by boat.", "duplicates"))
    settings = SETTINGS.model_copy(update={"dream_batch_size": 1})
    async with opening(model, settings=settings) as agent:
        await day(agent, clock, [("Ben", "From the wharf the ladder comes by boat.")])
        await agent.sleep()
        clock.advance(days=1)
        said = [f"The ladder comes by boat, which is {how}." for how in ("vital", "weighty")]
        await day(agent, clock, [("Ben", one) for one in said], first=10)
        stood = await whole(agent)
        await agent.sleep()
        facts = await agent.resources.semantic.all(agent.scope)
        (left,) = [fact for fact in facts if fact["invalid_at"] is None]
        assert left["text"] == "From the wharf the ladder comes by boat."
        assert len(left["source_events"]) == 3
        assert left["importance"] in (8, 9)
        await agent.undo_night("last")
        assert await whole(agent) == stood


async def breaks_off_an_undo(agent: AsyncAgent) -> str:
    """Leave the data as a kill right after the beginning of an undo does."""
    name = (await agent.nights())[-1]["id"]
    begun = night_undo.UndoBegun(id=name, at=agent.resources.clock().isoformat(), who="Ada")
    await write_batch(agent.store, [night_undo._pointer(agent.scope, begun)])
    return name


QUESTION = said("Where does Ada live?", "Ben", id="asked")


async def breaks_off_a_tick(agent: AsyncAgent, **more: Any) -> None:
    """Leave the data as a kill during the model call for the event `asked` does."""
    model: Any = agent.resources.chat_model
    run = asyncio.create_task(agent.ainvoke({**QUESTION, **more}))
    for _ in range(1_000):
        if model.calls and "Where does Ada live?" in model.calls[-1].text:
            break
        model.delay = 0.05
        await asyncio.sleep(0.01)
    run.cancel()
    with suppress(asyncio.CancelledError):
        await run
    model.delay = 0.0
    assert [task.name for task in (await agent.aget_state()).tasks] == ["awake"]


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_interrupted_tick_goes_on_after_the_undo(
    lived: Path, clock: Clock, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stood: list[str] = []

    def answered(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        stood.append("asked")
        return answer(messages, tools)

    applied = apply.apply_operations

    async def taking_back(*args: Any, **options: Any) -> None:
        stood.append("taken back")
        await applied(*args, **options)

    async with copy_of(lived, "resumed", clock, scripted(otherwise=answered)) as agent:
        await breaks_off_a_tick(agent)
        name = await breaks_off_an_undo(agent)
        monkeypatch.setattr(apply, "apply_operations", taking_back)
        stood.clear()
        if streamed:
            async for _ in agent.astream(None):
                pass
        else:
            await agent.ainvoke(None)
        report = (await agent.aget_state()).values["report"]
        assert stood[:2] == ["taken back", "asked"]
        assert stood.count("taken back") == 1
        assert (await agent.night(name))["status"] == "undone"
        assert await night_undo.unfinished_undo(agent.store, agent.scope) is None
    assert [one["event_id"] for one in report["ticks"]] == ["asked"]
    told = f"The undo of {name} was interrupted, and is finished now."
    assert report["notes"].count(told) == 1


async def test_an_import_finishes_an_undo_interrupted_in_the_export(
    tmp_path: Path, clock: Clock
) -> None:
    async with opened(tmp_path / "old", dreamer(), clock, settings=SETTINGS) as agent:
        await day(agent, clock, SATURDAY)
        await agent.sleep()
        name = await breaks_off_an_undo(agent)
        lines = [line_of(record) async for record in export_memory(agent.context)]
    kinds = [json.loads(line).get("namespace", [""])[0] for line in lines]
    assert night_undo.OPEN_UNDO in kinds
    async with opened(tmp_path / "new", dreamer(), clock, settings=SETTINGS) as agent:
        await import_memory(agent.context, lines)
        assert await night_undo.unfinished_undo(agent.store, agent.scope) is None
        assert (await agent.night(name))["status"] == "undone"
        assert await facts(agent, agent.scope) == []
        assert (await import_memory(agent.context, lines))["already"]
        assert await facts(agent, agent.scope) == []


async def facts(agent: AsyncAgent, scope: Scope) -> list[str]:
    return [one["text"] for one in await agent.resources.semantic.all(scope)]
