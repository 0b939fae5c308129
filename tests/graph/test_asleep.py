import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from memory.errors import ContextOverflow, ModelError
from memory.events import inbox
from memory.night import record as night
from memory.operations.apply import LINKS
from memory.settings import Settings
from memory.text.tokens import approximate_tokens
from tests.support.agents import (
    Opening,
    dreamless,
    entries,
    night_model,
    overheard,
    scored,
    shown_ids,
)
from tests.support.clock import Clock
from tests.support.scripted import calls, scripted

HEARD = overheard(*(f"Ada grows bean number {n} on plot 7" for n in range(6)))["events"]


async def test_a_night_scores_consolidates_links_and_marks(opening: Opening) -> None:
    model = scripted(otherwise=night_model)
    async with opening(model) as agent:
        await agent.ainvoke({"events": HEARD})
        out = await agent.ainvoke({"request": "sleep"})
        report = out["report"]["night"]
        journal = await entries(agent)
        facts = await agent.resources.semantic.all(agent.scope)
        link = await agent.store.aget(agent.scope.namespace(LINKS), journal[0]["id"])
    assert [(one["step"], one["done"], one["llm_calls"]) for one in report["steps"]] == [
        ("score_importance", 6, 1),
        ("consolidate", 6, 1),
        ("dream", 6, 1),
        ("consolidate_entities", 1, 1),
        ("write_pages", 1, 0),
    ]
    assert report["complete"] is True
    assert report["held"] == []
    assert {(e["scoring_method"], e["importance"], e["consolidation"]) for e in journal} == {
        ("llm", 7, "consolidated")
    }
    assert sorted(fact["source_events"] for fact in facts) == [[f"e{n}"] for n in range(6)]
    assert link is not None
    assert link.value["linked_to"] == [f["id"] for f in facts if f["source_events"] == ["e0"]]
    assert (out["mode"], len(model.calls)) == ("sleep", 4)


async def test_with_nothing_to_do_sleep_says_so_and_calls_no_model(opening: Opening) -> None:
    async with opening(scripted()) as agent:
        out = await agent.ainvoke({"request": "sleep"})
        assert await night.records(agent.store, agent.scope) == []
    assert out["report"]["night"]["id"] is None
    assert out["report"]["notes"] == ["Nothing to do tonight."]
    assert out["mode"] == "sleep"


async def test_entries_below_the_threshold_are_settled_without_a_fact(opening: Opening) -> None:
    model = scripted(otherwise=lambda messages, tools: scored(messages, importance=2))
    async with opening(model) as agent:
        await agent.ainvoke({"events": HEARD})
        out = await agent.ainvoke({"request": "sleep"})
        journal = await entries(agent)
        again = await agent.ainvoke({"request": "sleep"})
    assert {entry["consolidation"] for entry in journal} == {"below_threshold"}
    assert [step["step"] for step in out["report"]["night"]["steps"]] == [
        "score_importance",
        "settle",
    ]
    assert again["report"]["night"]["id"] is None
    assert len(model.calls) == 1


def raised(step: Any) -> Any:
    if isinstance(step, Exception):
        raise step
    return step


@pytest.mark.parametrize(
    "broken",
    [
        ModelError("down"),
        calls(("Scores", {"scores": []})),
        calls(("Scores", {"scores": [{"id": "made_20260302_up", "importance": 9}]})),
    ],
)
async def test_a_broken_score_leaves_the_entries_pending(opening: Opening, broken: Any) -> None:
    model = scripted(otherwise=lambda messages, tools: raised(broken))
    async with opening(model) as agent:
        await agent.ainvoke({"events": HEARD})
        out = await agent.ainvoke({"request": "sleep"})
        journal = await entries(agent)
    assert {(e["scoring_method"], e["consolidation"]) for e in journal} == {
        ("heuristic", "pending")
    }
    assert sorted(out["report"]["night"]["held"]) == sorted(entry["id"] for entry in journal)


async def test_a_batch_that_is_too_long_for_the_model_comes_again_in_halves(
    opening: Opening,
) -> None:
    @dreamless
    def narrow(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
        if len(shown_ids(messages)) > 2:
            raise ContextOverflow("too long")
        return night_model(messages, tools)

    settings = Settings(night_calls_per_100=1_000)
    async with opening(scripted(otherwise=narrow), settings=settings) as agent:
        await agent.ainvoke({"events": HEARD})
        out = await agent.ainvoke({"request": "sleep"})
        facts = await agent.resources.semantic.all(agent.scope)
    night_report = out["report"]["night"]
    assert (night_report["complete"], night_report["held"]) == (True, [])
    assert sorted(fact["source_events"] for fact in facts) == [[f"e{n}"] for n in range(6)]


async def test_an_entry_too_long_for_any_model_does_not_hold_up_the_others(
    opening: Opening,
) -> None:
    @dreamless
    def narrow(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
        if "POISON" in str(messages[1].text):
            raise ContextOverflow("too long")
        return night_model(messages, tools)

    bad = {"id": "bad", "text": "POISON", "sender": "Ada", "addressed": False}
    async with opening(scripted(otherwise=narrow)) as agent:
        await agent.ainvoke({"events": [bad, *HEARD]})
        out = await agent.ainvoke({"request": "sleep"})
        assert await agent.resources.semantic.count(agent.scope) == 6
    held = out["report"]["night"]["held"]
    assert [one.endswith("_bad") for one in held] == [True]
    assert out["report"]["night"]["complete"] is False


async def test_batches_are_bounded_in_tokens_and_a_huge_entry_is_cut(opening: Opening) -> None:
    huge = [
        {"id": f"h{n}", "text": f"Ada wrote {n}: " + "word " * 2_000, "sender": "Ada"}
        | {"addressed": False}
        for n in range(3)
    ]
    model = scripted(otherwise=night_model)
    settings = Settings(night_batch_tokens=2_000, night_calls_per_100=1_000)
    async with opening(model, settings=settings) as agent:
        await agent.ainvoke({"events": [*huge, *HEARD]})
        out = await agent.ainvoke({"request": "sleep"})
        assert await agent.resources.semantic.count(agent.scope) == 9
    assert out["report"]["night"]["complete"] is True
    assert max(approximate_tokens(str(one.messages[1].text)) for one in model.calls) < 2_200


async def test_a_message_that_arrives_in_the_night_is_answered_after_it_in_the_same_run(
    opening: Opening,
) -> None:
    asked = asyncio.Event()

    @dreamless
    def slow(messages: list[BaseMessage], tools: list[str]) -> Any:
        asked.set()
        return night_model(messages, tools) if "Entries:" in str(messages[1].text) else "Awake."

    model = scripted(otherwise=slow, delay=0.1)
    async with opening(model) as agent:
        await agent.ainvoke({"events": HEARD})
        run = asyncio.create_task(agent.ainvoke({"request": "sleep"}))
        await asked.wait()
        await agent.post({"id": "late", "text": "Wake up!", "sender": "Ada"})
        out = await run
    night = out["report"]["night"]
    assert (night["complete"], night["held"], night["stopped"]) == (True, [], "a message waits")
    assert [tick["event_id"] for tick in out["report"]["ticks"]] == ["late"]
    assert out["mode"] == "awake"


async def test_overheard_events_do_not_wake(opening: Opening) -> None:
    async with opening(scripted()) as agent:
        await agent.ainvoke({"request": "sleep"})
        out = await agent.ainvoke({"events": HEARD[:1]})
        handled = (await agent.aget_state()).values["handled"]
        assert await inbox.waiting(agent.store, agent.scope, handled) == []
    assert (out["mode"], out["report"]["context_only"]) == ("sleep", ["e0"])


async def test_wake_begins_a_new_session(opening: Opening, clock: Clock) -> None:
    async with opening(scripted()) as agent:
        await agent.ainvoke({"request": "sleep"})
        clock.advance(hours=8)
        out = await agent.ainvoke({"request": "wake"})
        metrics = (await agent.aget_state()).values["metrics"]
    assert out["mode"] == "awake"
    assert metrics["session_start"] == clock().isoformat()


async def test_the_list_of_nights_counts_unsettled_entries(opening: Opening) -> None:
    def chatter(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        return "I see." if "store_memory" in tools else night_model(messages, tools)

    async with opening(scripted(otherwise=chatter)) as agent:
        await agent.ainvoke({"events": HEARD[:3]})
        report = (await agent.ainvoke({"request": "sleep"}))["report"]["night"]
        assert (len(report["held"]), report["complete"]) == (3, True)
        assert [one["left"] for one in await agent.nights()] == [3]
    async with opening(scripted(otherwise=night_model)) as agent:
        await agent.ainvoke({"request": "sleep"})
        assert [one["left"] for one in await agent.nights()] == [3, 0]
