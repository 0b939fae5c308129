import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from memory.errors import InputError, ModelError
from memory.events import inbox
from memory.settings import Settings
from tests.support.agents import Opening, entries, result_of, said
from tests.support.clock import Clock
from tests.support.scripted import call, calls, scripted


async def test_tools_run_in_order_and_the_goal_and_project_survive_a_restart(
    opening: Opening,
) -> None:
    create = {"project_key": "tavern", "summary": "Build a tavern", "initial_context": "North."}
    model = scripted(
        calls(("create_project", create), ("add_goal", {"description": "Open the tavern"})),
        call("update_goal", goal_id="goal_1_0", progress=40),
        "Done.",
    )
    async with opening(model) as agent:
        out = await agent.ainvoke(said("Build a tavern"))
    assert [one["name"] for one in out["report"]["ticks"][0]["tools"]] == [
        "create_project",
        "add_goal",
        "update_goal",
    ]
    async with opening(scripted()) as agent:
        state = (await agent.aget_state()).values
    assert state["projects"]["active"] == "tavern"
    assert state["goals"]["goal_1_0"]["progress"] == 40


async def test_at_the_cap_one_last_call_without_tools_gives_the_answer(opening: Opening) -> None:
    model = scripted(*[call("noop") for _ in range(5)], "That is as far as I got.")
    async with opening(model) as agent:
        out = await agent.ainvoke(said("Go on for ever"))
    assert [bool(one.tools) for one in model.calls] == [True] * 5 + [False]
    assert out["report"]["ticks"][0]["reply"] == "That is as far as I got."


async def test_a_failing_or_hanging_tool_answers_the_model_and_the_run_goes_on(
    opening: Opening,
) -> None:
    @tool
    async def weather(place: str) -> str:
        """Tell the weather."""
        raise OSError("no such place")

    @tool
    async def wait() -> str:
        """Wait for ever."""
        await asyncio.Event().wait()
        return "never"

    asks = calls(("weather", {"place": "Mars"}), ("nonsense", {}), ("add_goal", {}), ("wait", {}))
    model = scripted(asks, "I could not.")
    settings = Settings(tool_timeout=0.05)
    async with opening(model, tools=[weather, wait], settings=settings) as agent:
        out = await agent.ainvoke(said("How is the weather?"))
    answers = [m for m in model.calls[1].messages if isinstance(m, ToolMessage)]
    assert [answer.status for answer in answers] == ["error"] * 4
    assert "no such place" in str(answers[0].content)
    assert result_of(answers[1])["error"] == "there is no tool 'nonsense'"
    assert "description" in str(answers[2].content)
    assert "did not answer within 0.05 s" in str(answers[3].content)
    assert out["report"]["failures"] == []


async def test_unaddressed_events_are_context_only_and_cost_no_call(opening: Opening) -> None:
    model = scripted("I heard.")
    async with opening(model) as agent:
        heard = await agent.ainvoke(said("The north gate closes at nine", id="e1", addressed=False))
        assert model.calls == []
        assert heard["report"]["context_only"] == ["e1"]
        await agent.ainvoke(said("What did you hear?", id="e2"))
        journal = await entries(agent)
        assert await inbox.waiting(agent.store, agent.scope) == []
    assert "The north gate closes at nine" in str(model.calls[0].messages[-1].text)
    assert [(entry["sources"], entry["source_type"]) for entry in journal] == [
        (["e1"], "observation"),
        (["e2"], "direct"),
    ]


async def test_a_failed_tick_changes_nothing_and_its_event_goes_back(opening: Opening) -> None:
    model = scripted(
        call("add_goal", description="Half done"),
        ModelError("the provider is down"),
        "Now it works.",
    )
    async with opening(model) as agent:
        with pytest.raises(ModelError, match=r"is down \(event e1 waits in the inbox\)") as raised:
            await agent.ainvoke(said("Help", id="e1"))
        state = (await agent.aget_state()).values
        assert raised.value.report is not None
        assert raised.value.report["failures"] == [
            {
                "event_id": "e1",
                "error": "the provider is down",
                "kind": "ModelError",
                "attempts": 1,
                "set_aside": False,
            }
        ]
        assert (state["goals"], state["tick"], state["messages"]) == ({}, 0, [])
        waiting = await inbox.waiting(agent.store, agent.scope)
        assert [item["error"] for item in waiting] == ["the provider is down"]
        out = await agent.ainvoke(None)
        assert await entries(agent) != []
    assert out["report"]["ticks"][0]["reply"] == "Now it works."


async def test_a_chat_messages_sender_is_its_name_else_the_owner(
    opening: Opening, clock: Clock
) -> None:
    model = scripted("One.", "Two.")
    async with opening(model, settings=Settings(owners=["Bea"])) as agent:
        await agent.ainvoke({"messages": [HumanMessage("Hi", name="Ada Lovelace")]})
        clock.advance(seconds=1)
        await agent.ainvoke({"messages": [HumanMessage("Hi")]})
        journal = await entries(agent)
    assert [entry["source_entity"] for entry in journal] == ["Ada Lovelace", "Bea"]
    assert model.calls[0].messages[-1].name == "Ada_Lovelace"


async def test_a_request_does_not_stick_to_the_thread(opening: Opening) -> None:
    async with opening(scripted("Hello.")) as agent:
        await agent.ainvoke({"request": "sleep"})
        out = await agent.ainvoke(said("Hello"))
        assert out["report"]["night"] is None
        assert "request" not in (await agent.aget_state()).values


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("Hello", r'an input is an object .*{"messages": "Hello"}'),
        (["Hello"], "an input is an object"),
        ({"mesages": []}, "unknown input: mesages"),
        ({"request": "dance"}, "unknown request 'dance'"),
        ({"messages": [AIMessage("me")]}, "human messages"),
        ({"events": [{"sender": "Ada"}]}, "text"),
        ({"events": ["hello"]}, "must be an object"),
        ({"events": {"text": "Hello"}}, "events must be a list"),
        ({"events": [{"text": "Hi", "at": "9999-12-31T23:59:59-05:00"}]}, "years 1 to 9999"),
        ({"events": [{"text": "Hi", "at": "0001-01-01T00:00:00+05:00"}]}, "years 1 to 9999"),
    ],
)
async def test_bad_input_is_one_clear_error_and_nothing_is_taken(
    opening: Opening, given: Any, says: str
) -> None:
    async with opening(scripted()) as agent:
        with pytest.raises(InputError, match=says):
            await agent.ainvoke(given)
        assert await inbox.waiting(agent.store, agent.scope) == []
