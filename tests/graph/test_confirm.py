"""A person is asked before a dangerous tool runs, and it runs once."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import StructuredTool
from langgraph.types import Command
from pydantic import BaseModel, field_validator

from graph.use_cases.status import status
from memory import audit
from memory.errors import InputError, ModelError
from memory.events import approvals
from memory.settings import Settings
from memory.storage import list_items
from tests.support.agents import Opening, entries, night_model, opened, said
from tests.support.clock import Clock
from tests.support.dangerous import ARGS, ASK, UNASKED, Launches, asked, asking, questions, results
from tests.support.scripted import call, calls, scripted
from tools.registry import registered


@pytest.fixture
def launches() -> Launches:
    return Launches()


@pytest.fixture
def opening(opening: Opening, launches: Launches) -> Opening:
    """Opens an agent that may launch, unless it is given other tools."""
    return partial(opening, tools=[launches.tool])


async def test_nothing_runs_before_a_person_answers(opening: Opening, launches: Launches) -> None:
    model = asking()
    async with opening(model) as agent:
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


@pytest.mark.parametrize(
    "answer", ["yes", True, {"decision": "approve"}, {"decisions": [{"type": "approve"}]}]
)
async def test_the_interrupt_is_answered_as_clients_do(
    opening: Opening, launches: Launches, answer: Any
) -> None:
    async with opening(asking("It flies.")) as agent:
        await agent.ainvoke(said("Launch it"))
        output = await agent.ainvoke(Command(resume=answer))
        assert await questions(agent) == output["report"]["questions"] == []
        assert await list_items(agent.store, agent.scope.namespace(approvals.ANSWERS)) == []
    assert launches.done == ["the moon"]
    assert output["report"]["ticks"][0]["reply"] == "It flies."


async def test_a_malformed_answer_is_asked_for_again(opening: Opening, launches: Launches) -> None:
    async with opening(asking("It flies.")) as agent:
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


async def test_an_edit_changes_what_runs_and_what_the_history_says(
    opening: Opening, launches: Launches
) -> None:
    model = asking("It flies.")
    async with opening(model) as agent:
        question = await asked(agent)
        await agent.approve(question["id"], {"target": "Mars"})
        history = (await agent.aget_state()).values["messages"]
    assert launches.done == ["Mars"]
    [called] = [one for one in history if isinstance(one, AIMessage) and one.tool_calls]
    assert called.tool_calls[0]["args"] == {"target": "Mars"}


async def test_an_unknown_question_or_a_wrong_edit_changes_nothing(
    opening: Opening, launches: Launches
) -> None:
    async with opening(asking()) as agent:
        question = await asked(agent)
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
    async with opening(model) as agent:
        question = await asked(agent, id="e1")
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
    async with opening(model) as agent:
        first = await agent.ainvoke(said("Launch it"))
        again = await agent.ainvoke(None)
    assert again["__interrupt__"][0].value["id"] == first["__interrupt__"][0].value["id"]
    assert (len(model.calls), launches.done) == (1, [])


async def test_an_approved_tool_does_not_run_again_when_the_tick_fails_after_it(
    opening: Opening, launches: Launches
) -> None:
    model = asking(ModelError("down"), "It flies.")
    async with opening(model) as agent:
        question = await asked(agent)
        with pytest.raises(ModelError, match="down"):
            await agent.approve(question["id"])
        output = await agent.ainvoke(None)
    assert output["report"]["ticks"][0]["reply"] == "It flies."
    assert launches.done == ["the moon"]
    assert "launched to the moon" in results(model)[0]


async def test_calls_before_the_question_run_once(opening: Opening) -> None:
    model = scripted(
        calls(
            ("add_goal", {"description": "Reach the moon"}),
            ("launch", {"target": "the moon"}),
            ("noop", {}),
        ),
        "Hello.",
        "It flies.",
    )
    async with opening(model) as agent:
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


async def test_only_one_dangerous_call_a_tick(opening: Opening, launches: Launches) -> None:
    twice = calls(("launch", {"target": "the moon"}), ("launch", {"target": "Mars"}))
    model = scripted(twice, ASK, "One flew.")
    async with opening(model, settings=UNASKED) as agent:
        output = await agent.ainvoke(said("Launch both"))
    assert launches.done == ["the moon"]
    assert "one dangerous tool a tick" in results(model)[1]
    assert output["report"]["ticks"][0]["reply"] == "One flew."
    assert [one["ok"] for one in output["report"]["ticks"][0]["tools"]] == [True, False, False]


async def test_without_confirmation_it_runs_at_once_unless_the_task_is_building(
    opening: Opening, launches: Launches
) -> None:
    async with opening(asking("Done.", ASK), settings=UNASKED) as agent:
        await agent.ainvoke(said("Start the rocket now please"))
        assert launches.done == ["the moon"]
        output = await agent.ainvoke(said("Build me a rocket and then create a moon base"))
    assert launches.done == ["the moon"]
    assert output["__interrupt__"][0].value["tool"] == "launch"


async def test_too_many_questions_are_refused(opening: Opening, launches: Launches) -> None:
    model = asking(ASK, "It has to wait.")
    settings = Settings(max_questions=1)
    async with opening(model, settings=settings) as agent:
        await agent.ainvoke(said("Launch it", id="e1"))
        output = await agent.ainvoke(said("Launch it too", id="e2"))
    assert output["report"]["ticks"][0]["reply"] == "It has to wait."
    assert "too many questions wait" in results(model)[0]
    assert launches.done == []


async def test_question_answer_and_deed_stand_in_the_log(opening: Opening) -> None:
    async with opening(asking("It flies.")) as agent:
        await agent.ainvoke(said("Launch it", id="e1"))
        await agent.ainvoke(Command(resume={"decision": "approve"}))
        log = await audit.read(agent.store, agent.scope)
    told = [(one["what"], one["target"], one["who"], one["outcome"]) for one in log]
    assert told == [
        ("question_asked", "launch", "agent", "ok"),
        ("question_answered", "launch", "local", "ok"),
        ("tool_call", "launch", "agent", "ok"),
    ]
    assert {one["origin"] for one in log} == {"e1"}


class Coerced(BaseModel):
    paths: list[str]

    @field_validator("paths", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value


async def test_coercible_arguments_are_asked_about_too(opening: Opening) -> None:
    removed: list[list[str]] = []

    async def rm(paths: list[str]) -> str:
        removed.append(paths)
        return "gone"

    made = StructuredTool.from_function(
        coroutine=rm, name="rm", description="Remove.", args_schema=Coerced
    )
    async with opening(
        scripted(call("rm", paths="/etc")), tools=[registered(made, "dangerous")]
    ) as agent:
        output = await agent.ainvoke(said("Clean up"))
    assert output["__interrupt__"][0].value["tool"] == "rm"
    assert removed == []


async def test_wrong_arguments_do_not_use_up_the_one_dangerous_call(
    tmp_path: Path, clock: Clock, launches: Launches
) -> None:
    model = scripted(call("launch", target=["x"]), ASK)
    async with opened(tmp_path, model, clock, tools=[launches.tool]) as agent:
        output = await agent.ainvoke(said("Launch it"))
    assert output["__interrupt__"][0].value["args"]["target"] == "the moon"
    model = scripted(call("launch", target=["x"]), ASK, "It flies.")
    async with opened(
        tmp_path / "unasked", model, clock, settings=UNASKED, tools=[launches.tool]
    ) as agent:
        await agent.ainvoke(said("Launch it"))
    assert launches.done == ["the moon"]


async def test_calls_after_a_refused_call_are_not_run(opening: Opening) -> None:
    model = scripted(
        calls(
            ("add_goal", {"description": "Reach the moon"}),
            ("launch", {"target": "the moon"}),
            ("send_message", {"to": "Bob", "text": "launched"}),
        ),
        "Then not.",
    )
    async with opening(model) as agent:
        question = await asked(agent)
        output = await agent.refuse(question["id"])
    tick = output["report"]["ticks"][-1]
    assert (tick["sent"], tick["reply"]) == ([], "Then not.")
    assert [one["ok"] for one in tick["tools"]] == [True, False, False]
    assert "not run: launch before it was refused" in results(model)[2]


async def test_a_resumed_tick_keeps_within_the_settings_of_the_moment(opening: Opening) -> None:
    async with opening(asking()) as agent:
        question = await asked(agent)
    model = scripted("It flies.")
    narrow = Settings(multi_action_enabled=False)
    async with opening(model, settings=narrow) as agent:
        output = await agent.approve(question["id"])
    pattern = output["report"]["ticks"][-1]["pattern"]
    assert (pattern["mode"], pattern["source_layers"]["mode"]) == ("single_action", "static")
    assert model.calls[0].tools == []


async def test_an_answer_where_no_question_stands_is_refused(opening: Opening) -> None:
    async with opening(scripted("Hello.")) as agent:
        await agent.ainvoke(said("Hello"))
        with pytest.raises(InputError, match="no question stands"):
            await agent.ainvoke(Command(resume="yes"))


async def test_call_ids_differ_from_those_of_a_waiting_tick(opening: Opening) -> None:
    numbered = AIMessage("", tool_calls=[{"name": "launch", "args": ARGS, "id": "call_0"}])
    again = AIMessage("", tool_calls=[{"name": "noop", "args": {}, "id": "call_0"}])
    model = scripted(numbered, again, "Hello.", "It flies.")
    async with opening(model) as agent:
        await agent.ainvoke(said("Launch it"))
        await agent.ainvoke(said("Hello"))
        await agent.ainvoke(Command(resume="yes"))
        history = (await agent.aget_state()).values["messages"]
    ids = [c["id"] for m in history if isinstance(m, AIMessage) for c in m.tool_calls]
    assert len(ids) == len(set(ids)) == 2


NUMBER = 10
DREAMT = {"dream", "consolidate_entities", "write_pages"}


def asks(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
    """Awake it asks to launch, each time to another target; asleep it consolidates."""
    if "launch" in tools:
        asked = str(messages[-1].text)
        if "rocket" in asked:
            number = asked.rsplit("rocket ", 1)[1].split()[0].strip(".<")
            return call("launch", target=f"target {number}")
        return AIMessage("Noted.")
    return night_model(messages, tools)


async def test_a_night_runs_whole_beside_ten_questions(
    opening: Opening, launches: Launches
) -> None:
    model = scripted(otherwise=asks)
    async with opening(model) as agent:
        for number in range(NUMBER):
            await agent.ainvoke(said(f"Launch rocket {number} .", id=f"e{number}"))
        await agent.ainvoke(said("Ben planted 40 oaks by the river.", id="told"))
        waiting = await questions(agent)
        out = await agent.ainvoke({"request": "sleep"})
        facts = await agent.resources.semantic.all(agent.scope)
        still = await questions(agent)
        journal = await entries(agent)
    night = out["report"]["night"]
    assert len(waiting) == NUMBER
    assert {one["id"] for one in still} == {one["id"] for one in waiting}
    assert night["complete"]
    assert night["stopped"] is None
    assert {step["step"] for step in night["steps"]} >= DREAMT
    assert {one["consolidation"] for one in journal} == {"consolidated"}
    assert "Ben planted 40 oaks by the river." in {fact["text"] for fact in facts}
    assert launches.done == []


async def test_fatigue_does_not_wait_for_an_answer(opening: Opening) -> None:
    settings = Settings(fatigue_threshold=0.01, max_context_tokens=20_000)
    model = scripted(otherwise=asks)
    async with opening(model, settings=settings) as agent:
        await agent.ainvoke(said("Launch rocket 1 .", id="e1"))
        await agent.ainvoke(said("Ben planted oaks by the river. " * 40, id="told"))
        out = await agent.ainvoke({"request": "tick"})
    assert [one["why"] for one in out["report"]["mode_changes"]] == ["fatigue"]
    assert out["report"]["night"]["stopped"] is None
