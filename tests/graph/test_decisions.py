"""Answers to a question about a dangerous tool: the first one holds."""

import asyncio
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from graph.api import AsyncAgent
from graph.use_cases.approvals import decide
from memory.errors import InputError, StateError
from memory.events import approvals
from memory.records.records import LOCAL_USER, Scope, thread_id
from memory.records.tick import Decision
from memory.storage.access import list_items
from tests.support.agents import Opening, said
from tests.support.clock import Clock
from tests.support.dangerous import Launches, asking

SCOPE = Scope(LOCAL_USER, thread_id(LOCAL_USER, "default"))
AT = "2026-03-02T09:00:00+00:00"
MARS = {"decision": "edit", "args": {"target": "Mars"}}


async def asked(agent: AsyncAgent) -> str:
    output = await agent.ainvoke(said("Launch it", id="e1"))
    return str(output["report"]["questions"][0]["id"])


def decision(word: Any, by: str = "ana") -> Decision:
    return {"decision": word, "args": None, "reason": None, "by": by, "at": AT}


async def test_the_first_of_concurrent_answers_holds_and_others_are_refused(
    opening: Opening,
) -> None:
    launches = Launches()
    async with (
        opening(asking("Done."), tools=[launches.tool]) as agent,
        opening(asking(), tools=[launches.tool]) as other,
    ):
        question = await asked(agent)
        given = [(agent, "approve"), (other, "refuse")] * 8
        found = await asyncio.gather(
            *(decide(where.context, question, word) for where, word in given),
            return_exceptions=True,
        )
        kept = [one for one in found if not isinstance(one, BaseException)]
        told = [one for one in found if isinstance(one, BaseException)]
        output = await agent.ainvoke({})
    assert (len(kept), len(told)) == (8, 8)
    assert len({one["decision"] for one in kept}) == 1
    assert {type(one) for one in told} == {InputError}
    approved = kept[0]["decision"] == "approve"
    word = "approved" if approved else "refused"
    assert f"{question} was answered before: {word} by local at {AT[:10]}" in str(told[0])
    assert launches.done == (["the moon"] if approved else [])
    assert output["report"]["ticks"][0]["tools"] == [{"name": "launch", "ok": approved}]


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("approve", "refuse", "approved by local"),
        ("refuse", "approve", "refused by local"),
        (MARS, "approve", "approved with other arguments by local"),
        (MARS, {"decision": "edit", "args": {"target": "Venus"}}, "with other arguments"),
    ],
)
async def test_a_different_answer_later_is_refused(
    opening: Opening, first: Any, second: Any, words: str
) -> None:
    launches = Launches()
    async with opening(asking("Done."), tools=[launches.tool]) as agent:
        question = await asked(agent)
        stands = await decide(agent.context, question, first)
        with pytest.raises(InputError, match=words):
            await decide(agent.context, question, second)
        items = await list_items(agent.store, agent.scope.namespace(approvals.ANSWERS))
    assert [item.value for item in items] == [stands]


@pytest.mark.parametrize("answer", ["yes", MARS, {"decision": "refuse", "reason": "too early"}])
async def test_repeating_an_answer_returns_the_stored_one(
    opening: Opening, clock: Clock, answer: Any
) -> None:
    async with opening(asking(), tools=[Launches().tool]) as agent:
        question = await asked(agent)
        stands = await decide(agent.context, question, answer)
        clock.advance(hours=3)
        assert await decide(agent.context, question, answer) == stands


async def test_every_run_that_brings_another_answer_gets_the_stored_one() -> None:
    store = InMemoryStore()
    first, second = decision("approve"), decision("refuse", "ben")
    assert await approvals.keep(store, SCOPE, "ask_1", first) == first
    assert await approvals.keep(store, SCOPE, "ask_1", second, run="r1") == first
    assert await approvals.answered(store, SCOPE, "r1") == "ask_1"
    assert await approvals.keep(store, SCOPE, "ask_2", second, run="r1") == second
    assert await approvals.answered(store, SCOPE, "r1") == "ask_1"


async def test_a_run_acts_on_the_stored_answer_not_on_its_own(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches = Launches()
    look = approvals.answers

    async def none_yet(*args: Any) -> dict[str, Decision]:
        """As just before another process writes."""
        await look(*args)
        return {}

    async with opening(asking("Well."), tools=[launches.tool]) as agent:
        question = await asked(agent)
        await decide(agent.context, question, "refuse")
        monkeypatch.setattr(approvals, "answers", none_yet)
        await agent.ainvoke(Command(resume="yes"))
    assert launches.done == []


async def test_arguments_that_differ_from_those_shown_are_an_error(opening: Opening) -> None:
    launches = Launches()
    async with opening(asking("Done."), tools=[launches.tool]) as agent:
        question = await asked(agent)
        [parked] = (await agent.aget_state()).values["parked"]
        shown = {**parked["question"], "args": {"target": "the garden"}}
        await agent.aupdate_state(None, {"parked": [{**parked, "question": shown}]})
        with pytest.raises(StateError, match=r"wrong parked\.0\.question: .*Mend it"):
            await agent.approve(question)
        assert launches.done == []
        await agent.aupdate_state(None, {"parked": [parked]})
        await agent.ainvoke({}, raise_on_failure=False)  # what the run that failed left to do
        await agent.ainvoke({})
    assert launches.done == ["the moon"]
