"""Falling asleep and waking through the real graph: by its tool, its hours, fatigue, a person."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

from langchain_core.outputs import ChatResult

from graph.api import AsyncAgent
from memory import audit
from memory.events.next_action import ask_for_stop
from memory.settings import Settings
from tests.support.agents import Opening, night_model, result_of, said
from tests.support.clock import Clock
from tests.support.scripted import ScriptedChatModel, calls, scripted

NIGHTLY = Settings(sleep_schedule_enabled=True, time_zone="Europe/Berlin")
HEARD = {"events": [{"id": "h1", "text": "The gate closes", "sender": "Ada", "addressed": False}]}
SLEEP = calls(("go_to_sleep", {"reasoning": "Nothing is left to do"}), text="Good night.")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def changes(out: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["mode"], one["why"]) for one in out["report"]["mode_changes"]]


async def logged(agent: AsyncAgent) -> list[tuple[str, str]]:
    found = await audit.read(agent.store, agent.scope)
    return [(e["what"], e["detail"]["why"]) for e in found if e["what"] in ("fell_asleep", "woke")]


async def test_go_to_sleep_ends_the_tick_and_the_night_follows_in_the_run(opening: Opening) -> None:
    model = scripted(SLEEP, otherwise=night_model)
    async with opening(model) as agent:
        out = await agent.ainvoke(said("Good night!"))
        log = await audit.read(agent.store, agent.scope)
    [tick] = out["report"]["ticks"]
    assert (tick["reply"], [one["ok"] for one in tick["tools"]]) == ("Good night.", [True])
    assert (out["mode"], changes(out)) == ("sleep", [("sleep", "go_to_sleep")])
    assert out["report"]["night"]["complete"] is True
    assert out["report"]["night"]["id"] is not None
    assert out["report"]["mode_changes"][0]["reason"] == "Nothing is left to do"
    slept = [one for one in log if one["what"] == "fell_asleep"]
    assert [(one["target"], one["why"]) for one in slept] == [
        ("of its own accord", "Nothing is left to do")
    ]


async def test_go_to_sleep_is_refused_while_a_direct_event_waits(opening: Opening) -> None:
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


async def test_an_event_after_go_to_sleep_is_answered_and_keeps_it_awake(opening: Opening) -> None:
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


async def test_under_the_emergency_stop_nothing_sends_it_to_sleep(
    opening: Opening, clock: Clock
) -> None:
    clock.set(at("2026-01-10T01:30"))
    settings = NIGHTLY.model_copy(update={"fatigue_threshold": 0.000_1})
    model = scripted(SLEEP, "I can not.")
    async with opening(model, settings=settings) as agent:
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


async def test_go_to_sleep_is_refused_after_a_stop_in_the_same_tick(
    opening: Opening, clock: Clock
) -> None:
    model = StoppedWhileItAnswers(steps=[SLEEP, "I can not."])
    async with opening(model) as agent:
        model.stop = partial(ask_for_stop, agent.store, agent.scope, at=clock(), by="Ada")
        await agent.ainvoke(said("Sleep well"))
        values = (await agent.aget_state()).values
    told = [result_of(m) for m in model.calls[-1].messages if m.type == "tool"]
    assert told[-1]["error"] == "The emergency stop is set"
    assert (values["mode"], values["emergency_stop"], values["report"]["night"]) == (
        *("awake", True),
        None,
    )


async def test_runs_without_input_sleep_once_at_the_hour_and_wake_at_its_end(
    opening: Opening, clock: Clock
) -> None:
    model = scripted(otherwise=night_model)
    async with opening(model, settings=NIGHTLY) as agent:
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


async def test_a_message_in_sleeping_hours_is_answered_and_starts_no_night(
    opening: Opening, clock: Clock
) -> None:
    clock.set(at("2026-01-10T01:30"))
    model = scripted("Hello.", "Again hello.", otherwise=night_model)
    async with opening(model, settings=NIGHTLY) as agent:
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


async def test_an_agent_sent_to_sleep_by_a_person_has_its_night_and_sleeps_on(
    opening: Opening, clock: Clock
) -> None:
    model = scripted(otherwise=night_model)
    async with opening(model, settings=NIGHTLY) as agent:
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


async def test_an_agent_that_fell_asleep_by_itself_follows_the_schedule(
    opening: Opening, clock: Clock
) -> None:
    model = scripted(SLEEP, otherwise=night_model)
    async with opening(model, settings=NIGHTLY) as agent:
        clock.set(at("2026-01-09T21:00"))
        await agent.ainvoke(said("Good night!"))
        clock.set(at("2026-01-10T01:00"))
        night = await agent.ainvoke({})
        clock.set(at("2026-01-10T05:00"))
        morning = await agent.ainvoke({})
    assert changes(night) == [("sleep", "schedule")]
    assert changes(morning) == [("awake", "hours")]


async def test_fatigue_waits_for_pending_events_and_returns_only_with_more_history(
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
