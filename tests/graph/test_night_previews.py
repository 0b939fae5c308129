"""Previews: they change nothing, and applied they equal the night itself."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import PutOp
from prometheus_client import REGISTRY

from graph.api import AsyncAgent
from graph.use_cases.memories import find_fact
from memory.entities import entities
from memory.errors import CircadianError, ConflictError
from memory.journal import entries as journal
from memory.night import record as night
from memory.records.records import NightRecord, Scope
from memory.settings import Settings
from tests.support.agents import opened, said
from tests.support.clock import Clock
from tests.support.dreamers import SATURDAY, SETTINGS, SUNDAY, day, dreamer, whole
from tests.support.lives import Lived, copied
from tests.support.scripted import ScriptedChatModel

MONTH = 40


async def live(data: Path | None, clock: Clock) -> None:
    """Live two days, in `data` or in the database that the variable names."""
    async with opened(data, dreamer(), clock, settings=SETTINGS) as agent:
        await day(agent, clock, SATURDAY)
        await agent.ainvoke({"request": "sleep"})
        clock.advance(days=MONTH)
        await day(agent, clock, SUNDAY, first=len(SATURDAY))


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    """A day, a night, and long after a second day: the next night has work of every kind."""
    clock = Clock()
    data = tmp_path_factory.mktemp("life") / "data"
    asyncio.run(live(data, clock))
    return Lived(data, clock.now)


@pytest.fixture
def lived(life: Lived, tmp_path: Path, clock: Clock) -> Path:
    clock.set(life.now)
    return copied(life, tmp_path / "lived")


@asynccontextmanager
async def copy_of(
    lived: Path, name: str, clock: Clock, model: ScriptedChatModel, settings: Settings = SETTINGS
) -> AsyncIterator[AsyncAgent]:
    data = lived.parent / name
    if not data.exists():
        shutil.copytree(lived, data)
    async with opened(data, model, Clock(clock()), settings=settings) as agent:
        yield agent


async def state_of(agent: AsyncAgent) -> dict[str, Any]:
    values = (await agent.aget_state()).values
    return {key: one for key, one in values.items() if key not in ("report", "turn", "night")}


def counters() -> list[float | None]:
    """What is counted of a night's work; the time that a person takes to decide is none."""
    names = ("night_seconds_count", "night_seconds_sum", "night_operations_total")
    return [REGISTRY.get_sample_value(f"circadian_{name}") for name in names]


KINDS = {
    *("score_entry", "mark_entry", "add_fact", "settle_fact", "link", "change_fact"),
    *("change_entity", "write_page", "add_entry", "reflected", "prune_entry"),
}


async def test_a_preview_changes_neither_memory_nor_state(lived: Path, clock: Clock) -> None:
    model = dreamer()
    async with copy_of(lived, "tried", clock, model) as agent:
        stood, state = await whole(agent), await state_of(agent)
        facts = await agent.resources.semantic.all(agent.scope)
        tried = await agent.sleep(dry_run=True)
        assert await whole(agent) == stood
        # Every run begins with taking out the marks of the run before.
        assert await state_of(agent) == {**state, "handled": []}
        assert await agent.resources.semantic.all(agent.scope) == facts
        (_, line) = await agent.nights()
    assert {one["kind"] for one in tried["operations"]} == KINDS
    assert (tried["dry_run"], tried["complete"], tried["status"]) == (True, True, "preview")
    assert (line["id"], line["status"]) == (tried["id"], "preview")
    assert line["llm_calls"] == len(model.calls) > 5


async def test_an_applied_preview_equals_the_night_and_calls_no_model(
    lived: Path, clock: Clock
) -> None:
    async with copy_of(lived, "slept", clock, dreamer()) as agent:
        slept = await agent.sleep()
        itself = await whole(agent)
    model = dreamer()
    async with copy_of(lived, "applied", clock, model) as agent:
        tried = await agent.sleep(dry_run=True)
        paid, counted = len(model.calls), counters()
        done = await agent.apply_night("last")
        assert (len(model.calls), counters()) == (paid, counted)
        assert await whole(agent) == itself
        again = await agent.ainvoke({"request": "sleep"})
    assert [one["id"] for one in tried["operations"]] == [one["id"] for one in slept["operations"]]
    assert done["operations"] == tried["operations"]
    assert (done["status"], done["dry_run"], done["complete"]) == ("complete", False, True)
    assert again["report"]["notes"] == ["Nothing to do tonight."]
    assert len(model.calls) == paid


async def test_events_keep_waiting_during_a_preview_and_its_application(
    lived: Path, clock: Clock
) -> None:
    model = dreamer()
    async with copy_of(lived, "waits", clock, model) as agent:
        await agent.post({"id": "e1", "sender": "Ada", "text": "Are you there?"})
        await agent.post({"id": "e2", "sender": "Ben", "text": "Hm.", "addressed": False})
        stood = await whole(agent)
        tried = await agent.sleep(dry_run=True)
        assert await whole(agent) == stood
        await agent.apply_night(str(tried["id"]))
        assert (await agent.aget_state()).values["mode"] == "awake"
        assert "Are you there?" not in "".join(call.text for call in model.calls)
        out = await agent.ainvoke({})
    assert [tick["event_id"] for tick in out["report"]["ticks"]] == ["e1"]
    assert {one["step"] for one in tried["steps"]} >= {"dream", "consolidate_entities", "reflect"}


async def an_entry(agent: AsyncAgent) -> str:
    entry = (await journal.newest(agent.store, agent.scope, limit=1))[0]
    changed: Any = {**entry, "importance": 10, "scoring_method": "manual"}
    await agent.store.abatch(journal.puts(agent.scope, changed))
    return "Note: Ben waters the greenhouse."


async def a_fact(agent: AsyncAgent) -> str:
    facts = await agent.resources.semantic.all(agent.scope)
    (glass,) = [fact for fact in facts if "Friday" in fact["text"]]
    await agent.correct(glass["id"], "The glass arrives on Tuesday.", "Ben")
    return 'the fact "The glass arrives on Friday."'


async def a_profile(agent: AsyncAgent) -> str:
    (ben,) = [
        one for one in await entities.everyone(agent.store, agent.scope) if one["name"] == "Ben"
    ]
    left = [{**one, "consolidated": True} for one in ben["observations"]]
    namespace = agent.scope.namespace(entities.ENTITIES)
    await agent.store.aput(namespace, ben["id"], {**ben, "observations": left}, index=False)
    return "what is known of Ben"


async def the_night_itself(agent: AsyncAgent) -> str:
    await agent.sleep()
    return 'the fact "'


@pytest.mark.parametrize("change", [an_entry, a_fact, a_profile, the_night_itself])
async def test_a_preview_is_refused_after_its_targets_changed(
    lived: Path, clock: Clock, change: Any
) -> None:
    async with copy_of(lived, "changed", clock, dreamer()) as agent:
        tried = await agent.sleep(dry_run=True)
        what = await change(agent)
        stood = await whole(agent)
        with pytest.raises(ConflictError, match="memory has changed since") as refused:
            await agent.apply_night(str(tried["id"]))
        assert await whole(agent) == stood
        assert what in str(refused.value)
        assert f"circadian night {tried['id']} --discard" in str(refused.value)
        gone = await agent.discard_night(str(tried["id"]))
        assert gone["status"] == "discarded"
        assert (
            await agent.discard_night(
                "last" if change is not the_night_itself else str(tried["id"])
            )
        )["status"] == "discarded"
        assert (await agent.sleep())["complete"] is True


async def test_new_memories_do_not_conflict_with_a_preview(lived: Path, clock: Clock) -> None:
    async with copy_of(lived, "since", clock, dreamer()) as agent:
        tried = await agent.sleep(dry_run=True)
        await agent.ainvoke(said("I planted beans.", "Ada", id="new"))
        assert (await agent.apply_night(str(tried["id"])))["complete"] is True
        second = await agent.sleep()
    assert [one["after"]["text"] for one in second["operations"] if one["kind"] == "add_fact"] == [
        "I planted beans."
    ]


async def test_a_preview_is_not_applied_after_a_forget(lived: Path, clock: Clock) -> None:
    async with copy_of(lived, "forgot", clock, dreamer()) as agent:
        tried = await agent.sleep(dry_run=True)
        friday = next(
            f for f in await agent.resources.semantic.all(agent.scope) if "Friday" in f["text"]
        )
        fact = await find_fact(agent.context, friday["id"])
        await agent.forget_fact(fact["id"])
        with pytest.raises(ConflictError, match="a forget took something out of"):
            await agent.apply_night(str(tried["id"]))


async def test_the_emergency_stop_cancels_a_preview(lived: Path, clock: Clock) -> None:
    async with copy_of(lived, "stopped", clock, dreamer()) as agent:
        await agent.ainvoke({"request": "stop"})
        with pytest.raises(Exception, match="Emergency stop"):
            await agent.sleep(dry_run=True)
        await agent.ainvoke({"request": "clear_stop"})
        assert len(await agent.nights()) == 1


@pytest.mark.parametrize("after", ["a preview", "a message", "a night"])
async def test_an_interrupted_preview_is_finished_first_and_paid_for_once(
    lived: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    def broken(scope: Scope, record: NightRecord) -> list[PutOp]:
        raise OSError("the disk is full")

    model = dreamer()
    async with copy_of(lived, "broken", clock, model) as agent:
        stood = await whole(agent)
        with monkeypatch.context() as patched:
            patched.setattr("memory.night.end_puts", broken)
            with pytest.raises(CircadianError, match="the disk is full"):
                await agent.sleep(dry_run=True)
        assert await whole(agent) == stood
        paid = len(model.calls)
        if after == "a preview":
            tried = await agent.sleep(dry_run=True)
            assert len(model.calls) == paid
            assert await whole(agent) == stood
            assert (await agent.apply_night(str(tried["id"])))["complete"] is True
        else:
            if after == "a message":
                out = await agent.ainvoke(said("Are you there?", "Ada", id="there"))
                assert len(model.calls) == paid + 1
                assert [tick["event_id"] for tick in out["report"]["ticks"]] == ["there"]
            slept = await agent.sleep()
            assert (slept["dry_run"], slept["status"]) == (False, "complete")
        statuses = [one["status"] for one in await agent.nights()]
    previewed = [] if after == "a preview" else ["preview"]
    assert statuses == ["complete", *previewed, "complete"]


async def test_a_preview_waits_for_a_night_in_another_process(lived: Path, clock: Clock) -> None:
    async with (
        copy_of(lived, "both", clock, dreamer(delay=0.02)) as sleeper,
        copy_of(lived, "both", clock, dreamer(delay=0.02)) as trier,
    ):
        asked = asyncio.create_task(sleeper.sleep())
        while await night.unfinished(trier.store, trier.scope) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        tried = await trier.sleep(dry_run=True)
        assert ((await asked)["status"], tried["id"]) == ("complete", None)
        await trier.undo_night("last")
        asked = asyncio.create_task(trier.sleep(dry_run=True))
        while not await night.preview_wanted(trier.store, trier.scope):  # noqa: ASYNC110
            await asyncio.sleep(0)
        slept = await sleeper.sleep()
        assert ((await asked)["status"], slept["status"]) == ("preview", "complete")
