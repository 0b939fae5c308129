"""Nights that would take too much from memory wait for a person."""

from typing import Any

import pytest

from graph.api import AsyncAgent
from memory.records.records import FactDraft
from tests.support.agents import Opening, said
from tests.support.clock import Clock
from tests.support.dreamers import SETTINGS, day, dreamer, whole
from tests.support.facts import draft
from tests.support.scripted import ScriptedChatModel, call

GATED = SETTINGS.model_copy(
    update={"dream_neighbours": 20, "probes_kept": 20, "reflection_threshold": 1_000}
)
RULE = [("Ada", "New rule: all beds rest.")]


def beds(count: int) -> list[FactDraft]:
    return [
        draft(f"bed{n:02}", f"Bed {n:02} has beans.", speaker="Ada", entities=["Ada"])
        for n in range(count)
    ]


def ruler(gone: int) -> ScriptedChatModel:
    return dreamer(*(("New rule", f"Bed {n:02} ", "supersedes") for n in range(gone)))


async def a_day_with_a_rule(agent: AsyncAgent, clock: Clock, count: int) -> None:
    clock.advance(days=60)
    await agent.resources.semantic.add(agent.scope, beds(count))
    await day(agent, clock, RULE)


async def ruled(agent: AsyncAgent, clock: Clock, count: int) -> dict[str, Any]:
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
    opening: Opening, clock: Clock, facts: int, gone: int, held: str | None
) -> None:
    async with opening(ruler(gone), settings=GATED) as agent:
        report = await ruled(agent, clock, facts)
        left = await holding(agent)
        entries = (await agent.aget_state()).values
    assert report["gate"]["leaving"] == gone
    assert report["gate"]["held"] == held
    assert report["status"] == ("held" if held else "complete")
    assert report["complete"] is not bool(held)
    assert left == facts + 1 - (0 if held else gone)
    assert entries["phase"] is None


async def test_a_held_night_is_applied_without_a_model(opening: Opening, clock: Clock) -> None:
    model = ruler(6)
    async with opening(model, settings=GATED) as agent:
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


async def test_a_discarded_night_keeps_its_compacting_only(opening: Opening, clock: Clock) -> None:
    async with opening(ruler(6), settings=GATED) as agent:
        held = await ruled(agent, clock, 19)
        stood = await whole(agent)
        gone = await agent.discard_night(held["id"])
        assert gone["status"] == "discarded"
        assert await whole(agent) == stood
        assert await holding(agent) == 20


async def test_later_nights_work_beside_a_held_night(opening: Opening, clock: Clock) -> None:
    async with opening(ruler(6), settings=GATED) as agent:
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
    opening: Opening, clock: Clock
) -> None:
    model = ruler(6)
    settings = GATED.model_copy(update={"reflection_threshold": 5, "min_observations": 1})
    heard = [*RULE, ("Ada", "Note: Ben built a greenhouse of glass.")]
    async with opening(model, settings=settings) as agent:
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


async def test_a_night_that_recall_would_suffer_from_is_held_back(
    opening: Opening, clock: Clock
) -> None:
    model = dreamer(("All is cancelled", "xylophone lies", "supersedes"))
    known = [draft("x", "The xylophone lies in the attic.", speaker="Ada", entities=["Ada"])]
    async with opening(model, settings=GATED) as agent:
        await agent.resources.semantic.add(agent.scope, known)
        clock.advance(days=60)
        model.steps += [call("recall_memories", query="xylophone attic"), "In the attic."]
        await agent.ainvoke(said("xylophone?", "Ben", id="q"))
        await day(agent, clock, [("Ada", "All is cancelled.")])
        held = await agent.sleep()
        verdict = held["gate"] or {}
        assert held["status"] == "held"
        assert verdict["found_after"] < verdict["found_before"] <= verdict["probes"]
        assert verdict["held"].endswith("lost for 'xylophone?'")
        assert await holding(agent) == 3


async def test_a_preview_over_the_gate_can_be_applied(opening: Opening, clock: Clock) -> None:
    async with opening(ruler(6), settings=GATED) as agent:
        await a_day_with_a_rule(agent, clock, 20)
        tried = await agent.sleep(dry_run=True)
        assert tried["status"] == "preview"
        assert "would no longer hold" in (tried["gate"] or {})["held"]
        assert (await agent.apply_night("last"))["status"] == "complete"
        assert await holding(agent) == 15
