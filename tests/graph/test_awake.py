import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from memory.errors import InputError, ModelError
from memory.events import inbox
from memory.settings import Settings
from tests.support.agents import Opening, entries, opened, result_of, said
from tests.support.clock import Clock
from tests.support.scripted import call, calls, scripted


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def test_a_message_is_answered_and_the_answer_reported(opening: Opening) -> None:
    model = scripted("Good morning, Ada.")
    async with opening(model) as agent:
        out = await agent.ainvoke({"messages": [HumanMessage("Good morning", name="Ada")]})
    tick = out["report"]["ticks"][0]
    assert (tick["tick"], tick["reply"], tick["context_type"]) == (
        1,
        "Good morning, Ada.",
        "tick_event",
    )
    assert [message.type for message in out["messages"]] == ["human", "ai"]
    assert len(model.calls) == 1


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


async def test_a_tool_sees_what_the_call_before_it_in_the_same_answer_did(opening: Opening) -> None:
    three = {"subtasks": ["Plan the beds", "Dig the beds", "Sow the beans"]}
    model = scripted(
        call("add_goal", description="Make a garden"),
        call("decompose_goal", goal_id="goal_1_0"),
        call("Subtasks", **three),
        calls(
            ("update_goal", {"goal_id": "goal_1_1", "status": "completed"}),
            ("update_goal", {"goal_id": "goal_1_2", "status": "completed"}),
        ),
        "Two of three are done.",
    )
    async with opening(model) as agent:
        out = await agent.ainvoke(said("Plan my garden"))
        goals = (await agent.aget_state()).values["goals"]
    assert goals["goal_1_0"]["progress"] == 67
    assert out["report"]["ticks"][0]["llm_calls"] == 5


async def test_at_the_cap_one_last_call_without_tools_gives_the_answer(opening: Opening) -> None:
    model = scripted(*[call("noop") for _ in range(5)], "That is as far as I got.")
    async with opening(model) as agent:
        out = await agent.ainvoke(said("Go on for ever"))
    assert [bool(one.tools) for one in model.calls] == [True] * 5 + [False]
    assert out["report"]["ticks"][0]["reply"] == "That is as far as I got."


async def test_a_failing_tool_answers_the_model_and_the_run_goes_on(opening: Opening) -> None:
    @tool
    async def weather(place: str) -> str:
        """Tell the weather."""
        raise OSError("no such place")

    model = scripted(
        calls(("weather", {"place": "Mars"}), ("nonsense", {}), ("add_goal", {})),
        "I could not.",
    )
    async with opening(model, tools=[weather]) as agent:
        out = await agent.ainvoke(said("How is the weather?"))
    answers = [m for m in model.calls[1].messages if isinstance(m, ToolMessage)]
    assert [answer.status for answer in answers] == ["error"] * 3
    assert "no such place" in str(answers[0].content)
    assert result_of(answers[1])["error"] == "there is no tool 'nonsense'"
    assert "description" in str(answers[2].content)
    assert out["report"]["failures"] == []


async def test_a_tool_that_hangs_is_ended_and_answers_the_model(opening: Opening) -> None:
    @tool
    async def wait() -> str:
        """Wait for ever."""
        await asyncio.Event().wait()
        return "never"

    model = scripted(call("wait"), "It did not answer.")
    settings = Settings(tool_timeout=0.05)
    async with opening(model, tools=[wait], settings=settings) as agent:
        out = await agent.ainvoke(said("Wait"))
    assert out["report"]["ticks"][0]["reply"] == "It did not answer."
    assert "did not answer within 0.05 s" in str(model.calls[1].messages[-1].content)


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


async def test_several_pending_events_are_one_tick_each_in_order(opening: Opening) -> None:
    model = scripted("One.", "Two.", "Three.")
    async with opening(model) as agent:
        posted = await agent.post([{"id": name, "text": name} for name in ("a", "b")])
        assert posted.accepted == ["a", "b"]
        out = await agent.ainvoke(said("c", id="c"))
    ticks = out["report"]["ticks"]
    assert [(one["tick"], one["event_id"]) for one in ticks] == [(1, "a"), (2, "b"), (3, "c")]


async def test_a_failed_tick_changes_nothing_and_its_event_goes_back(opening: Opening) -> None:
    model = scripted(
        call("add_goal", description="Half done"),
        ModelError("the provider is down"),
        "Now it works.",
    )
    async with opening(model) as agent:
        failed = await agent.ainvoke(said("Help", id="e1"), raise_on_failure=False)
        state = (await agent.aget_state()).values
        assert failed["report"]["failures"] == [
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


async def test_after_three_failures_the_event_is_set_aside_and_others_go_on(
    opening: Opening,
) -> None:
    model = scripted(*[ModelError("broken") for _ in range(3)], "Fine.")
    async with opening(model) as agent:
        for _ in range(3):
            out = await agent.ainvoke(
                {"events": [{"id": "bad", "text": "bad", "sender": "Ada"}]}, raise_on_failure=False
            )
        assert out["report"]["failures"][0]["set_aside"] is True
        aside = await inbox.set_aside(agent.store, agent.scope)
        assert [(item["event"]["id"], item["error"]) for item in aside] == [("bad", "broken")]
        fine = await agent.ainvoke(said("And now?"))
    assert fine["report"]["ticks"][0]["reply"] == "Fine."


async def test_an_unexpected_error_in_a_tick_does_not_lose_its_event(
    opening: Opening, caplog: pytest.LogCaptureFixture
) -> None:
    model = scripted(ZeroDivisionError("a bug"))
    async with opening(model) as agent:
        out = await agent.ainvoke(said("Help", id="e1"), raise_on_failure=False)
        waiting = await inbox.waiting(agent.store, agent.scope)
    assert out["report"]["failures"][0]["error"] == "ZeroDivisionError: a bug"
    assert [item["event"]["id"] for item in waiting] == ["e1"]


async def test_with_nothing_pending_and_no_goal_no_model_is_called(opening: Opening) -> None:
    async with opening(scripted()) as agent:
        out = await agent.ainvoke({"request": "tick"})
    assert out["report"]["notes"] == ["Nothing is pending and no goal is active."]


async def test_with_nothing_pending_a_tick_works_on_the_goals(opening: Opening) -> None:
    model = scripted(
        call("add_goal", description="Write a book"), "Added.", "Chapter one comes next."
    )
    async with opening(model) as agent:
        await agent.ainvoke(said("I want to write a book"))
        out = await agent.ainvoke({"request": "tick"})
        journal = await entries(agent)
    assert out["report"]["ticks"][0]["context_type"] == "tick_autonomous"
    assert "Write a book" in str(model.calls[-1].messages[-1].text)
    assert len(journal) == 1


async def test_images_and_content_blocks_do_not_break_a_tick(opening: Opening) -> None:
    content: list[Any] = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
    model = scripted("A garden.")
    async with opening(model) as agent:
        await agent.ainvoke({"messages": [HumanMessage(content)]})
        journal = await entries(agent)
    assert list(model.calls[0].messages[-1].content)[2:-1] == content
    assert journal[0]["content"] == "What is this?\n[image_url]"


async def test_a_chat_messages_sender_is_its_name_else_the_owner(data: Path, clock: Clock) -> None:
    model = scripted("One.", "Two.")
    async with opened(data, model, clock, settings=Settings(owners=["Bea"])) as agent:
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


async def test_a_goal_completed_by_hand_is_a_completed_task(opening: Opening) -> None:
    subtasks = {"subtasks": ["One", "Two", "Three"]}
    model = scripted(
        call("add_goal", description="Write"),
        call("decompose_goal", goal_id="goal_1_0"),
        call("Subtasks", **subtasks),
        "Added.",
        "Hello.",
    )
    async with opening(model) as agent:
        await agent.ainvoke(said("Add a goal"))
        done = {"progress": 100, "status": "completed"}
        await agent.aupdate_state(None, {"goals": {f"goal_1_{n}": done for n in (1, 2, 3)}})
        await agent.ainvoke(said("Hello"))
        state = (await agent.aget_state()).values
    assert state["goals"]["goal_1_0"]["status"] == "completed"
    assert [one["description"] for one in state["session_memory"]["completed_tasks"]] == ["Write"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"mesages": []}, "unknown input: mesages"),
        ({"request": "dance"}, "unknown request 'dance'"),
        ({"messages": [AIMessage("me")]}, "human messages"),
        ({"events": [{"sender": "Ada"}]}, "text"),
        ({"events": ["hello"]}, "must be an object"),
    ],
)
async def test_bad_input_is_one_clear_error_and_nothing_is_taken(
    opening: Opening, given: Any, says: str
) -> None:
    async with opening(scripted()) as agent:
        with pytest.raises(InputError, match=says):
            await agent.ainvoke(given)
        assert await inbox.waiting(agent.store, agent.scope) == []
