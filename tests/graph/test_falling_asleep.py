"""Falling asleep and waking through the real graph: by its tool, its hours, fatigue, a person."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.outputs import ChatResult

from graph.api.async_agent import AsyncAgent
from memory import audit
from memory.errors import ModelError
from memory.events.next_action import ask_for_stop
from memory.settings import Settings
from tests.support.agents import Opening, night_model, opened, result_of, said
from tests.support.clock import Clock
from tests.support.scripted import ScriptedChatModel, calls, scripted

NIGHTLY = Settings(sleep_schedule_enabled=True, time_zone="Europe/Berlin")
HEARD = {"events": [{"id": "h1", "text": "The gate closes", "sender": "Ada", "addressed": False}]}
SLEEP = calls(("go_to_sleep", {"reasoning": "Nothing is left to do"}), text="Good night.")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def changes(out: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["mode"], one["why"]) for one in out["report"]["mode_changes"]]


async def logged(agent: AsyncAgent) -> list[tuple[str, str]]:
    found = await audit.read(agent.store, agent.scope)
    return [(e["what"], e["detail"]["why"]) for e in found if e["what"] in ("fell_asleep", "woke")]


async def test_its_tool_ends_the_tick_and_the_night_follows_in_the_same_run(
    opening: Opening,
) -> None:
    model = scripted(SLEEP, otherwise=night_model)
    async with opening(model) as agent:
        out = await agent.ainvoke(said("Good night!"))
        log = await audit.read(agent.store, agent.scope)
    assert out["report"]["ticks"][0]["reply"] == "Good night."
    assert (out["mode"], changes(out)) == ("sleep", [("sleep", "go_to_sleep")])
    assert out["report"]["night"]["complete"] is True
    assert out["report"]["night"]["id"] is not None
    assert out["report"]["mode_changes"][0]["reason"] == "Nothing is left to do"
    slept = [one for one in log if one["what"] == "fell_asleep"]
    assert [(one["target"], one["why"]) for one in slept] == [
        ("of its own accord", "Nothing is left to do")
    ]


async def test_with_a_direct_event_pending_its_tool_is_refused_and_the_event_is_answered(
    opening: Opening,
) -> None:
    model = scripted(SLEEP, "Then not yet.", "Yes, Ben?")
    async with opening(model) as agent:
        await agent.post({"id": "e2", "text": "Wait!", "sender": "Ben"})
        out = await agent.ainvoke(said("Sleep well", id="e1"))
    (refused,) = [result_of(m) for m in model.calls[1].messages if m.type == "tool"]
    assert (refused["success"], refused["error"]) == (False, "1 direct event waits for you")
    assert refused["suggestion"]
    assert (out["mode"], changes(out), out["report"]["night"]) == ("awake", [], None)
    assert {tick["event_id"] for tick in out["report"]["ticks"]} == {"e1", "e2"}
    assert len(model.calls) == 3


async def test_an_event_that_comes_after_its_wish_is_answered_and_the_wish_is_dropped(
    opening: Opening,
) -> None:
    model = scripted(SLEEP, "Yes?")
    async with opening(model) as agent:
        stream = agent.astream(said("Sleep well"), stream_mode="updates", subgraphs=True)
        async for _, update in stream:
            if "use_tools" in update:
                await agent.post({"id": "late", "text": "One more thing", "sender": "Ben"})
        values = (await agent.aget_state()).values
    assert [tick["event_id"] for tick in values["report"]["ticks"]][-1] == "late"
    assert (values["mode"], values["sleep_wish"]) == ("awake", None)
    assert values["report"]["night"] is None
    assert any("stays awake" in note for note in values["report"]["notes"])


async def test_under_the_emergency_stop_nothing_sends_it_to_sleep(data: Path, clock: Clock) -> None:
    clock.set(at("2026-01-10T01:30"))
    settings = NIGHTLY.model_copy(update={"fatigue_threshold": 0.000_1})
    model = scripted(SLEEP, "I can not.")
    async with opened(data, model, clock, settings=settings) as agent:
        await ask_for_stop(agent.store, agent.scope, at=clock(), by="Ada")
        out = await agent.ainvoke({})
        asked = await agent.ainvoke({"request": "sleep"})
    assert (out["mode"], out["report"]["night"], changes(out)) == ("awake", None, [])
    assert (asked["mode"], asked["report"]["night"]) == ("awake", None)
    assert model.calls == []


class StoppedWhileItAnswers(ScriptedChatModel):
    """Somebody asks for a stop while its first answer is under way."""

    stop: Any = None

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        answer = await super()._agenerate(*args, **kwargs)
        if self.stop is not None:
            stop, self.stop = self.stop, None
            await stop()
        return answer


async def test_a_stop_asked_for_in_the_tick_makes_its_tool_refuse(data: Path, clock: Clock) -> None:
    model = StoppedWhileItAnswers(steps=[SLEEP, "I can not."])
    async with opened(data, model, clock) as agent:
        model.stop = partial(ask_for_stop, agent.store, agent.scope, at=clock(), by="Ada")
        await agent.ainvoke(said("Sleep well"))
        values = (await agent.aget_state()).values
    told = [result_of(m) for m in model.calls[-1].messages if m.type == "tool"]
    assert told[-1]["error"] == "The emergency stop stands"
    assert (values["mode"], values["emergency_stop"], values["report"]["night"]) == (
        *("awake", True),
        None,
    )


async def test_asked_twice_in_a_tick_its_tool_says_so(opening: Opening) -> None:
    twice = calls(("go_to_sleep", {"reasoning": "a"}), ("go_to_sleep", {"reasoning": "b"}))
    async with opening(scripted(twice, otherwise=night_model)) as agent:
        out = await agent.ainvoke(said("Good night!"))
    assert [one["ok"] for one in out["report"]["ticks"][0]["tools"]] == [True, False]
    assert changes(out) == [("sleep", "go_to_sleep")]


async def test_at_its_hour_a_run_that_is_given_nothing_sleeps_once_and_wakes_at_the_end(
    data: Path, clock: Clock
) -> None:
    model = scripted(otherwise=night_model)
    async with opened(data, model, clock, settings=NIGHTLY) as agent:
        clock.set(at("2026-01-10T00:50"))
        await agent.ainvoke(HEARD)
        early = await agent.ainvoke({})
        assert (early["mode"], model.calls) == ("awake", [])
        clock.set(at("2026-01-10T01:00"))
        slept = await agent.ainvoke({})
        paid = len(model.calls)
        again = await agent.ainvoke({})
        clock.set(at("2026-01-10T04:59"))
        still = await agent.ainvoke({})
        clock.set(at("2026-01-10T05:00"))
        woken = await agent.ainvoke({})
        log = await logged(agent)
    assert (slept["mode"], changes(slept)) == ("sleep", [("sleep", "schedule")])
    assert slept["report"]["night"]["id"] == "night_20260110_010000"
    assert "02:00 Europe/Berlin" in slept["report"]["mode_changes"][0]["reason"]
    assert (again["mode"], again["report"]["night"]) == ("sleep", None)
    assert (still["mode"], changes(still)) == ("sleep", [])
    assert (woken["mode"], changes(woken)) == ("awake", [("awake", "hours")])
    assert (paid, len(model.calls)) == (paid, paid)
    assert paid > 0
    assert log == [("fell_asleep", "schedule"), ("woke", "hours")]


async def test_a_message_in_its_hours_is_answered_and_nobody_who_waits_gets_a_night(
    data: Path, clock: Clock
) -> None:
    clock.set(at("2026-01-10T01:30"))
    model = scripted("Hello.", "Again hello.", otherwise=night_model)
    async with opened(data, model, clock, settings=NIGHTLY) as agent:
        given = await agent.ainvoke(said("Hi"))
        assert (given["mode"], len(model.calls)) == ("awake", 1)
        asleep = await agent.ainvoke({})
        assert (asleep["mode"], changes(asleep)) == ("sleep", [("sleep", "schedule")])
        paid = len(model.calls)
        model.steps[:] = [*[""] * paid, "Again hello."]
        woken = await agent.ainvoke(said("Still up?"))
        after = await agent.ainvoke({})
    assert changes(woken) == [("awake", "event")]
    assert woken["report"]["mode_changes"][0]["reason"] == "Ada speaks to the assistant."
    assert (after["mode"], after["report"]["night"]) == ("awake", None)


async def test_at_its_hour_a_direct_event_that_waits_comes_first(data: Path, clock: Clock) -> None:
    clock.set(at("2026-01-10T01:00"))
    model = scripted("Hello.", otherwise=night_model)
    async with opened(data, model, clock, settings=NIGHTLY) as agent:
        await agent.post({"id": "e1", "text": "Hi", "sender": "Ada"})
        out = await agent.ainvoke({})
    assert [tick["event_id"] for tick in out["report"]["ticks"]] == ["e1"]
    assert (out["mode"], out["report"]["night"]["complete"]) == ("sleep", True)
    assert "Hi" in str(model.calls[0].messages[-1].text)


async def test_at_its_hour_an_event_whose_tick_fails_keeps_it_awake(
    data: Path, clock: Clock
) -> None:
    clock.set(at("2026-01-10T01:00"))
    model = scripted(ModelError("no"))
    async with opened(data, model, clock, settings=NIGHTLY) as agent:
        await agent.post({"id": "e1", "text": "Hi", "sender": "Ada"})
        out = await agent.ainvoke({}, raise_on_failure=False)
    assert (out["mode"], out["report"]["night"], len(model.calls)) == ("awake", None, 1)


async def test_sent_to_sleep_by_a_person_no_hour_wakes_it_but_the_night_is_gone_through(
    data: Path, clock: Clock
) -> None:
    model = scripted(otherwise=night_model)
    async with opened(data, model, clock, settings=NIGHTLY) as agent:
        clock.set(at("2026-01-09T21:00"))
        asked = await agent.ainvoke({"request": "sleep"})
        await agent.ainvoke(HEARD)
        clock.set(at("2026-01-10T01:00"))
        night = await agent.ainvoke({})
        clock.set(at("2026-01-10T09:00"))
        morning = await agent.ainvoke({})
        woken = await agent.ainvoke({"request": "wake"})
    assert changes(asked) == [("sleep", "request")]
    assert (changes(night), night["report"]["night"]["complete"]) == ([], True)
    assert night["report"]["night"]["id"] is not None
    assert (morning["mode"], changes(woken)) == ("sleep", [("awake", "request")])


async def test_asleep_of_its_own_accord_it_sleeps_on_by_its_schedule_and_wakes_with_it(
    data: Path, clock: Clock
) -> None:
    model = scripted(SLEEP, otherwise=night_model)
    async with opened(data, model, clock, settings=NIGHTLY) as agent:
        clock.set(at("2026-01-09T21:00"))
        await agent.ainvoke(said("Good night!"))
        clock.set(at("2026-01-10T01:00"))
        night = await agent.ainvoke({})
        clock.set(at("2026-01-10T05:00"))
        morning = await agent.ainvoke({})
    assert changes(night) == [("sleep", "schedule")]
    assert changes(morning) == [("awake", "hours")]


async def test_fatigue_waits_until_nothing_is_pending_and_comes_again_only_with_more(
    opening: Opening,
) -> None:
    settings = Settings(fatigue_threshold=0.2, max_context_tokens=2_000)
    long = "bean " * 400
    model = scripted(long, "Hm.", otherwise=night_model)
    async with opening(model, settings=settings) as agent:
        told = await agent.ainvoke(said("Tell me of beans"))
        assert (told["mode"], told["report"]["night"]) == ("awake", None)
        tired = await agent.ainvoke({})
        assert changes(tired) == [("sleep", "fatigue")]
        paid = len(model.calls)
        model.steps[:] = [*[""] * paid, "Hm."]
        woken = await agent.ainvoke(said("And?"))
        again = await agent.ainvoke({})
    assert changes(woken) == [("awake", "event")]
    assert (again["mode"], len(model.calls)) == ("awake", paid + 1)


async def test_small_nights_at_their_hour_keep_the_budget_and_one_that_is_asked_for_does_not_wait(
    data: Path, clock: Clock
) -> None:
    model = scripted(otherwise=night_model)
    thought, why = list[int](), list[str | None]()
    async with opened(data, model, clock, settings=NIGHTLY) as agent:
        for number in range(3):
            clock.set(at(f"2026-03-0{3 + number}T12:00"))
            heard = {**HEARD["events"][0], "id": f"h{number}"}
            await agent.ainvoke({"request": "wake", "events": [heard]})
            clock.set(at(f"2026-03-0{4 + number}T01:00"))
            before = len(model.calls)
            out = await agent.ainvoke({})
            why.append(out["report"]["night"]["stopped"])
            thought.append(len(model.calls) - before)
        assert thought[0] > 0
        assert thought[1:] == [0, 0]
        assert why[0] is None
        assert all("ahead of new entries" in str(one) for one in why[1:])
        asked = await agent.sleep()
        assert (asked["stopped"], asked["held"]) == (None, [])
        assert sum(one["kind"] == "add_fact" for one in asked["operations"]) == 2
