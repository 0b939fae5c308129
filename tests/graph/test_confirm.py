"""A person is asked before a dangerous tool runs, and it runs once."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.types import Command

from graph.use_cases.status import status
from memory.errors import InputError, ModelError
from tests.support.agents import Opening, said
from tests.support.dangerous import Launches, asking, questions, results
from tests.support.scripted import calls, scripted


@pytest.fixture
def launches() -> Launches:
    return Launches()


async def test_nothing_runs_before_a_person_answers(opening: Opening, launches: Launches) -> None:
    model = asking()
    async with opening(model, tools=[launches.tool]) as agent:
        output = await agent.ainvoke(said("Launch it", id="e1"))
        [question] = await questions(agent)
    assert launches.done == []
    assert output["__interrupt__"][0].value["id"] == question["id"]
    assert output["report"]["questions"] == [question]
    assert output["report"]["ticks"] == []
    assert (question["tool"], question["event_id"], question["sender"]) == ("launch", "e1", "Ada")
    assert question["what"] == "Run launch(target='the moon')"
    assert question["reason"] == "Ada wants it"
    assert len(model.calls) == 1


async def test_approved_it_runs_once_and_the_tick_ends(
    opening: Opening, launches: Launches
) -> None:
    model = asking("It flies.")
    async with opening(model, tools=[launches.tool]) as agent:
        await agent.ainvoke(said("Launch it", id="e1"))
        [question] = await questions(agent)
        output = await agent.approve(question["id"])
        assert await questions(agent) == []
        state = (await agent.aget_state()).values
    [tick] = output["report"]["ticks"]
    assert launches.done == ["the moon"]
    assert (tick["tick"], tick["event_id"], tick["reply"]) == (1, "e1", "It flies.")
    assert tick["llm_calls"] == 2
    assert tick["tools"] == [{"name": "launch", "ok": True}]
    assert (state["tick"], state["parked"]) == (1, [])
    assert "launched to the moon" in results(model)[0]


@pytest.mark.parametrize(
    "answer",
    [
        "yes",
        True,
        {"decision": "approve"},
        {"decisions": [{"type": "approve"}]},
    ],
)
async def test_the_interrupt_is_answered_as_clients_do(
    opening: Opening, launches: Launches, answer: Any
) -> None:
    async with opening(asking("It flies."), tools=[launches.tool]) as agent:
        await agent.ainvoke(said("Launch it"))
        output = await agent.ainvoke(Command(resume=answer))
    assert launches.done == ["the moon"]
    assert output["report"]["ticks"][0]["reply"] == "It flies."


async def test_what_is_no_answer_is_asked_again(opening: Opening, launches: Launches) -> None:
    async with opening(asking("It flies."), tools=[launches.tool]) as agent:
        await agent.ainvoke(said("Launch it"))
        again = await agent.ainvoke(Command(resume={"decision": "perhaps"}))
        assert "not an answer" in again["__interrupt__"][0].value["problem"]
        wrong = await agent.ainvoke(
            Command(resume={"decision": "edit", "args": {"target": ["a", "list"]}})
        )
        assert "do not fit launch: target" in wrong["__interrupt__"][0].value["problem"]
        assert launches.done == []
        await agent.ainvoke(Command(resume="yes"))
    assert launches.done == ["the moon"]


async def test_refused_it_does_not_run_and_the_model_is_told(
    opening: Opening, launches: Launches
) -> None:
    model = asking("Then not.")
    async with opening(model, tools=[launches.tool]) as agent:
        await agent.ainvoke(said("Launch it"))
        [question] = await questions(agent)
        output = await agent.refuse(question["id"], "too early")
    assert launches.done == []
    assert "local refused it: too early" in results(model)[0]
    assert output["report"]["ticks"][0]["reply"] == "Then not."


async def test_an_edit_changes_what_runs_and_what_the_history_says(
    opening: Opening, launches: Launches
) -> None:
    model = asking("It flies.")
    async with opening(model, tools=[launches.tool]) as agent:
        await agent.ainvoke(said("Launch it"))
        [question] = await questions(agent)
        await agent.approve(question["id"], {"target": "Mars"})
        history = (await agent.aget_state()).values["messages"]
    assert launches.done == ["Mars"]
    [asked] = [one for one in history if isinstance(one, AIMessage) and one.tool_calls]
    assert asked.tool_calls[0]["args"] == {"target": "Mars"}


async def test_an_unknown_question_or_a_wrong_edit_changes_nothing(
    opening: Opening, launches: Launches
) -> None:
    async with opening(asking(), tools=[launches.tool]) as agent:
        await agent.ainvoke(said("Launch it"))
        [question] = await questions(agent)
        with pytest.raises(InputError, match=f"no question 'ask_0' waits.*{question['id']}"):
            await agent.approve("ask_0")
        with pytest.raises(InputError, match="do not fit launch: target"):
            await agent.approve(question["id"], {})
        assert await questions(agent) == [question]
    assert launches.done == []


async def test_new_input_is_answered_first_and_the_question_asked_again(
    opening: Opening, launches: Launches
) -> None:
    model = asking("Hello.", "It flies.")
    async with opening(model, tools=[launches.tool]) as agent:
        await agent.ainvoke(said("Launch it", id="e1"))
        [question] = await questions(agent)
        output = await agent.ainvoke(said("Hello", id="e2"))
        assert [tick["event_id"] for tick in output["report"]["ticks"]] == ["e2"]
        assert output["__interrupt__"][0].value["id"] == question["id"]
        assert launches.done == []
        assert len(model.calls) == 2
        assert "the moon" not in model.calls[1].text
        assert (await status(agent.context))["inbox"]["waiting"] == 1
        answered = await agent.ainvoke(Command(resume="yes"))
    tick = answered["report"]["ticks"][-1]
    assert (tick["event_id"], tick["tick"]) == ("e1", 2)
    assert launches.done == ["the moon"]
    assert len(model.calls) == 3


async def test_without_input_it_is_asked_again_and_no_model_is_called(
    opening: Opening, launches: Launches
) -> None:
    model = asking()
    async with opening(model, tools=[launches.tool]) as agent:
        first = await agent.ainvoke(said("Launch it"))
        again = await agent.ainvoke(None)
    assert again["__interrupt__"][0].value["id"] == first["__interrupt__"][0].value["id"]
    assert (len(model.calls), launches.done) == (1, [])


async def test_what_was_done_is_not_done_again_when_the_tick_fails_after_it(
    opening: Opening, launches: Launches
) -> None:
    model = asking(ModelError("down"), "It flies.")
    async with opening(model, tools=[launches.tool]) as agent:
        await agent.ainvoke(said("Launch it"))
        [question] = await questions(agent)
        with pytest.raises(ModelError, match="down"):
            await agent.approve(question["id"])
        output = await agent.ainvoke(None)
    assert output["report"]["ticks"][0]["reply"] == "It flies."
    assert launches.done == ["the moon"]
    assert "launched to the moon" in results(model)[0]


async def test_what_was_done_before_the_question_stays_done_once(
    opening: Opening, launches: Launches
) -> None:
    model = scripted(
        calls(
            ("add_goal", {"description": "Reach the moon"}),
            ("launch", {"target": "the moon"}),
            ("noop", {}),
        ),
        "Hello.",
        "It flies.",
    )
    async with opening(model, tools=[launches.tool]) as agent:
        await agent.ainvoke(said("Launch it"))
        state = (await agent.aget_state()).values
        assert [goal["description"] for goal in state["goals"].values()] == ["Reach the moon"]
        await agent.ainvoke(said("Hello"))
        output = await agent.ainvoke(Command(resume="yes"))
        goals = (await agent.aget_state()).values["goals"]
    assert len(goals) == 1
    names = [one["name"] for one in output["report"]["ticks"][-1]["tools"]]
    assert names == ["add_goal", "launch", "noop"]
    assert len(results(model)) == 3
