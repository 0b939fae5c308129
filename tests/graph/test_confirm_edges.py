"""The edges of asking a person: several calls, wrong arguments, settings that changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool
from langgraph.types import Command
from pydantic import BaseModel, field_validator

from memory import audit
from memory.errors import InputError
from memory.settings import Settings
from tests.support.agents import Opening, opened, said
from tests.support.clock import Clock
from tests.support.dangerous import ARGS, ASK, UNASKED, Launches, asking, questions, results
from tests.support.scripted import call, calls, scripted
from tools.registry import registered


@pytest.fixture
def launches() -> Launches:
    return Launches()


async def test_only_one_dangerous_call_a_tick(opening: Opening, launches: Launches) -> None:
    twice = calls(("launch", {"target": "the moon"}), ("launch", {"target": "Mars"}))
    model = scripted(twice, ASK, "One flew.")
    async with opening(model, settings=UNASKED, tools=[launches.tool]) as agent:
        output = await agent.ainvoke(said("Launch both"))
    assert launches.done == ["the moon"]
    assert "one dangerous tool a tick" in results(model)[1]
    assert output["report"]["ticks"][0]["reply"] == "One flew."
    assert [one["ok"] for one in output["report"]["ticks"][0]["tools"]] == [True, False, False]


async def test_unasked_it_runs_at_once_and_building_asks_all_the_same(
    opening: Opening, launches: Launches
) -> None:
    async with opening(asking("Done.", ASK), settings=UNASKED, tools=[launches.tool]) as agent:
        await agent.ainvoke(said("Start the rocket now please"))
        assert launches.done == ["the moon"]
        output = await agent.ainvoke(said("Build me a rocket and then create a moon base"))
    assert launches.done == ["the moon"]
    assert output["__interrupt__"][0].value["tool"] == "launch"


async def test_too_many_questions_are_refused(opening: Opening, launches: Launches) -> None:
    model = asking(ASK, "It has to wait.")
    settings = Settings(max_questions=1)
    async with opening(model, settings=settings, tools=[launches.tool]) as agent:
        await agent.ainvoke(said("Launch it", id="e1"))
        output = await agent.ainvoke(said("Launch it too", id="e2"))
    assert output["report"]["ticks"][0]["reply"] == "It has to wait."
    assert "too many questions wait" in results(model)[0]
    assert launches.done == []


async def test_arguments_that_do_not_fit_are_answered_and_nobody_is_asked(
    opening: Opening, launches: Launches
) -> None:
    model = scripted(call("launch", aim="the moon"), "I gave it up.")
    async with opening(model, tools=[launches.tool]) as agent:
        output = await agent.ainvoke(said("Launch it"))
    assert "__interrupt__" not in output
    assert launches.done == []
    assert "target: Field required" in results(model)[0]


async def test_question_answer_and_deed_stand_in_the_log(
    opening: Opening, launches: Launches
) -> None:
    async with opening(asking("It flies."), tools=[launches.tool]) as agent:
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
    """Paths, given as a list or as one."""

    paths: list[str]

    @field_validator("paths", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value


async def test_arguments_that_the_tool_would_coerce_are_asked_about_too(opening: Opening) -> None:
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


async def test_what_was_to_follow_a_refused_call_is_not_done(
    opening: Opening, launches: Launches
) -> None:
    model = scripted(
        calls(
            ("add_goal", {"description": "Reach the moon"}),
            ("launch", {"target": "the moon"}),
            ("send_message", {"to": "Bob", "text": "launched"}),
        ),
        "Then not.",
    )
    async with opening(model, tools=[launches.tool]) as agent:
        await agent.ainvoke(said("Launch it"))
        [question] = await questions(agent)
        output = await agent.refuse(question["id"])
    tick = output["report"]["ticks"][-1]
    assert (tick["sent"], tick["reply"]) == ([], "Then not.")
    assert [one["ok"] for one in tick["tools"]] == [True, False, False]
    assert "not run: launch before it was refused" in results(model)[2]


async def test_a_tick_that_waits_keeps_within_what_the_settings_allow_by_then(
    opening: Opening, launches: Launches
) -> None:
    async with opening(asking(), tools=[launches.tool]) as agent:
        await agent.ainvoke(said("Launch it"))
        [question] = await questions(agent)
    model = scripted("It flies.")
    narrow = Settings(multi_action_enabled=False)
    async with opening(model, settings=narrow, tools=[launches.tool]) as agent:
        output = await agent.approve(question["id"])
    pattern = output["report"]["ticks"][-1]["pattern"]
    assert (pattern["mode"], pattern["source_layers"]["mode"]) == ("single_action", "static")
    assert model.calls[0].tools == []


async def test_an_answer_where_no_question_stands_is_refused(opening: Opening) -> None:
    async with opening(scripted("Hello.")) as agent:
        await agent.ainvoke(said("Hello"))
        with pytest.raises(InputError, match="no question stands"):
            await agent.ainvoke(Command(resume="yes"))


async def test_call_ids_are_told_apart_from_those_of_a_tick_that_waits(
    opening: Opening, launches: Launches
) -> None:
    numbered = AIMessage("", tool_calls=[{"name": "launch", "args": ARGS, "id": "call_0"}])
    again = AIMessage("", tool_calls=[{"name": "noop", "args": {}, "id": "call_0"}])
    model = scripted(numbered, again, "Hello.", "It flies.")
    async with opening(model, tools=[launches.tool]) as agent:
        await agent.ainvoke(said("Launch it"))
        await agent.ainvoke(said("Hello"))
        await agent.ainvoke(Command(resume="yes"))
        history = (await agent.aget_state()).values["messages"]
    ids = [c["id"] for m in history if isinstance(m, AIMessage) for c in m.tool_calls]
    assert len(ids) == len(set(ids)) == 2
