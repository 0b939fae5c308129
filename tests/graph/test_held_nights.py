"""Nights that are held back, and what nights leave for the next one."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from rich.console import Console

from graph.api.async_agent import AsyncAgent
from graph.cli.views.status import log_view
from memory import audit
from memory.audit import AuditEntry, of_night
from memory.events import next_action as emergency
from memory.night.record import new_night
from memory.records.records import FactDraft, NightRecord
from tests.support.agents import night_model, opened, said
from tests.support.clock import Clock
from tests.support.dreamers import SETTINGS, day, dreamer, whole
from tests.support.facts import draft
from tests.support.scripted import ScriptedChatModel, call, scripted

GATED = SETTINGS.model_copy(
    update={"dream_neighbours": 20, "probes_kept": 20, "reflection_threshold": 1_000}
)
RULE = [("Ada", "New rule: all beds rest.")]
HEARD = {
    "events": [
        {"id": f"e{n}", "text": f"Plot {n} is dry", "sender": "Ada", "addressed": False}
        for n in range(3)
    ]
}
AT = datetime(2026, 3, 2, 22, 0, tzinfo=UTC)


def beds(count: int) -> list[FactDraft]:
    return [
        draft(f"bed{n:02}", f"Bed {n:02} has beans.", speaker="Ada", entities=["Ada"])
        for n in range(count)
    ]


def ruler(gone: int) -> ScriptedChatModel:
    """A model that supersedes `gone` beds by the new rule."""
    return dreamer(*(("New rule", f"Bed {n:02} ", "supersedes") for n in range(gone)))


async def a_day_with_a_rule(agent: AsyncAgent, clock: Clock, count: int) -> None:
    """A day with `count` beds, then a rule."""
    clock.advance(days=60)
    await agent.resources.semantic.add(agent.scope, beds(count))
    await day(agent, clock, RULE)


async def ruled(agent: AsyncAgent, clock: Clock, count: int) -> dict[str, Any]:
    """The report of the night after a day with a rule."""
    await a_day_with_a_rule(agent, clock, count)
    report: dict[str, Any] = dict(await agent.sleep())
    return report


async def holding(agent: AsyncAgent) -> int:
    facts = await agent.resources.semantic.all(agent.scope)
    return sum(fact["invalid_at"] is None for fact in facts)


@pytest.mark.parametrize(
    ("facts", "gone", "held"),
    [(19, 6, "6 of 20 facts would no longer hold"), (19, 5, None), (18, 18, None)],
)
async def test_a_night_that_ends_over_a_quarter_of_twenty_facts_is_held_back(
    tmp_path: Path, clock: Clock, facts: int, gone: int, held: str | None
) -> None:
    async with opened(tmp_path / "data", ruler(gone), clock, settings=GATED) as agent:
        report = await ruled(agent, clock, facts)
        left = await holding(agent)
        entries = (await agent.aget_state()).values
    assert report["gate"]["leaving"] == gone
    assert report["gate"]["held"] == held
    assert report["status"] == ("held" if held else "complete")
    assert report["complete"] is not bool(held)
    assert left == facts + 1 - (0 if held else gone)
    assert entries["phase"] is None


async def test_a_held_night_is_applied_without_a_model(tmp_path: Path, clock: Clock) -> None:
    model = ruler(6)
    async with opened(tmp_path / "data", model, clock, settings=GATED) as agent:
        held = await ruled(agent, clock, 19)
        facts = await agent.resources.semantic.all(agent.scope)
        assert any("New rule" in fact["text"] for fact in facts)
        paid = len(model.calls)
        done = await agent.apply_night("last")
        assert (done["id"], done["status"], done["complete"]) == (held["id"], "complete", True)
        assert len(model.calls) == paid
        assert await holding(agent) == 14
        out = await agent.ainvoke({"request": "sleep"})
        assert out["report"]["notes"] == ["Nothing to do tonight."]
        await agent.undo_night("last")
        assert await holding(agent) == 19


async def test_a_discarded_night_keeps_its_compacting_only(tmp_path: Path, clock: Clock) -> None:
    async with opened(tmp_path / "data", ruler(6), clock, settings=GATED) as agent:
        held = await ruled(agent, clock, 19)
        stood = await whole(agent)
        gone = await agent.discard_night(held["id"])
        assert gone["status"] == "discarded"
        assert await whole(agent) == stood
        assert await holding(agent) == 20


async def test_later_nights_work_beside_a_held_night(tmp_path: Path, clock: Clock) -> None:
    async with opened(tmp_path / "data", ruler(6), clock, settings=GATED) as agent:
        held = await ruled(agent, clock, 19)
        await day(agent, clock, [("Ben", "The gate is green.")], first=50)
        second = await agent.sleep()
        facts = await agent.resources.semantic.all(agent.scope)
        assert any(fact["text"] == "The gate is green." for fact in facts)
        assert second["id"] != held["id"]
        assert [one["status"] for one in await agent.nights()] == ["held", "complete"]
        assert (await agent.ainvoke(said("Hello?", id="hello")))["report"]["ticks"]
        assert (await agent.apply_night(str(held["id"])))["status"] == "complete"
        assert await holding(agent) == 15


async def test_decisions_of_a_held_night_are_not_paid_for_again_until_it_is_discarded(
    tmp_path: Path, clock: Clock
) -> None:
    model = ruler(6)
    settings = GATED.model_copy(update={"reflection_threshold": 5, "min_observations": 1})
    heard = [*RULE, ("Ada", "Note: Ben built a greenhouse.")]
    async with opened(tmp_path / "data", model, clock, settings=settings) as agent:
        clock.advance(days=60)
        await agent.resources.semantic.add(agent.scope, beds(19))
        await day(agent, clock, heard)
        held = await agent.sleep()
        kinds = {one["kind"] for one in held["operations"]}
        assert {"settle_fact", "change_entity", "reflected"} <= kinds
        paid = len(model.calls)
        idle = await agent.sleep()
        assert (held["status"], idle["id"], len(model.calls)) == ("held", None, paid)
        await agent.discard_night(str(held["id"]))
        again = await agent.sleep()
        assert again["status"] == "held"
        assert len(model.calls) > paid


async def test_a_probe_that_would_find_less_holds_the_night_back(
    tmp_path: Path, clock: Clock
) -> None:
    model = dreamer(("All is cancelled", "xylophone lies", "supersedes"))
    known = [draft("x", "The xylophone lies in the attic.", speaker="Ada", entities=["Ada"])]
    async with opened(tmp_path / "data", model, clock, settings=GATED) as agent:
        await agent.resources.semantic.add(agent.scope, known)
        clock.advance(days=60)
        model.steps += [call("recall_memories", query="xylophone attic"), "In the attic."]
        await agent.ainvoke(said("xylophone?", "Ben", id="q"))
        await day(agent, clock, [("Ada", "All is cancelled.")])
        held = await agent.sleep()
        verdict = held["gate"] or {}
        assert held["status"] == "held"
        assert verdict["found_after"] < verdict["found_before"] <= verdict["probes"]
        assert "kept recalls" in verdict["held"]
        assert await holding(agent) == 3


async def test_a_preview_over_the_gate_can_be_applied(tmp_path: Path, clock: Clock) -> None:
    async with opened(tmp_path / "data", ruler(6), clock, settings=GATED) as agent:
        await a_day_with_a_rule(agent, clock, 20)
        tried = await agent.sleep(dry_run=True)
        assert tried["status"] == "preview"
        assert "would no longer hold" in (tried["gate"] or {})["held"]
        assert (await agent.apply_night("last"))["status"] == "complete"
        assert await holding(agent) == 15


def ended(**more: Any) -> NightRecord:
    record = new_night(AT, ["a"], [])
    made: Any = {**record, "ended": AT.isoformat(), "status": "complete", **more}
    found: NightRecord = made
    return found


def line(entry: AuditEntry) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(log_view([entry]))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()[1].rstrip()


async def test_unsettled_entries_are_counted_in_the_list_of_nights(
    tmp_path: Path, clock: Clock
) -> None:
    def chatter(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        return "I see." if "store_memory" in tools else night_model(messages, tools)

    async with opened(tmp_path, scripted(otherwise=chatter), clock) as agent:
        await agent.ainvoke(HEARD)
        report = (await agent.ainvoke({"request": "sleep"}))["report"]["night"]
        first = (await agent.nights())[-1]
        logged = (await audit.read(agent.store, agent.scope, limit=1))[0]
    assert (len(report["held"]), report["complete"], first["left"]) == (3, True, 3)
    assert "✓ agent slept" in line(logged)
    assert "3 left for the next night" in line(logged)
    async with opened(tmp_path, scripted(otherwise=night_model), clock) as agent:
        await agent.ainvoke({"request": "sleep"})
        assert [one["left"] for one in await agent.nights()] == [3, 0]


@pytest.mark.parametrize(
    ("record", "mark", "words"),
    [
        (ended(status="held"), "‖", "held back for you to decide"),
        (ended(stopped="8 of 8 model calls are used"), "✓", "stopped early: 8 of 8 model calls"),
        (ended(errors=["dream: no answer"]), "✗", "dream: no answer"),
        (ended(status="held", errors=["dream: no answer"]), "✗", "held back for you to decide"),
        (ended(complete=True), "✓", "0 changes"),
    ],
)
def test_the_log_shows_held_stopped_and_failed_nights(
    record: NightRecord, mark: str, words: str
) -> None:
    entry = of_night(record, [], tick=1, model="offline")
    told = line(entry)
    assert f" {mark} agent slept {record['id']}" in told
    assert words in told
    assert entry["outcome"] == ("error" if record["errors"] else "ok")


def test_a_held_night_that_was_logged_as_an_error_is_shown_as_held() -> None:
    entry = of_night(ended(status="held"), [], tick=1, model="offline")
    assert " ‖ agent slept" in line({**entry, "outcome": "error"})


@pytest.mark.parametrize(
    ("waiting", "words"),
    [
        (0, "Emergency stop: nothing waits, and nothing is done until it is cleared."),
        (1, "Emergency stop: 1 event waits until it is cleared."),
        (1_200, "Emergency stop: 1,200 events wait until it is cleared."),
    ],
)
async def test_the_emergency_stop_tells_how_many_events_wait(waiting: int, words: str) -> None:
    assert emergency.sentence(waiting) == words


async def test_a_night_requested_under_the_emergency_stop_reports_the_stop(
    tmp_path: Path, clock: Clock
) -> None:
    async with opened(tmp_path, scripted(), clock) as agent:
        await agent.ainvoke({"request": "stop"})
        out = await agent.ainvoke({"request": "sleep"})
    assert out["report"]["notes"] == [emergency.sentence(0)]
