"""An answer to one question never answers another, whatever is sent or done again."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command, interrupt

from graph.api import AsyncAgent
from tests.crash.test_crash_confirm import AND_NOW, LATER, MARS, MOON, launched, left_open, parked
from tests.support.agents import Opening, opened, said
from tests.support.clock import Clock
from tests.support.crash_worker import Job, Point, Points, running
from tests.support.dangerous import Launches
from tests.support.homes import held
from tests.support.kills import counts, kill_at_each, points
from tests.support.scripted import call, scripted
from tools.registry import registered

AS_RUN = {"resume": "yes", "run": "r1"}


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(data=str(tmp_path / "data"))


async def test_a_run_that_a_server_does_again_answers_no_other_question(job: Job) -> None:
    job = replace(job, plain=True)
    async with running(job, Points(job)) as (agent, run):
        await run({"events": [MOON, MARS]})
        for _ in range(3):
            await run(AS_RUN)
            assert (launched(job), await standing(agent)) == (["the moon"], "Mars")
        await run({"events": [AND_NOW]})
        await run(AS_RUN)
        assert (launched(job), await standing(agent)) == (["the moon"], "Mars")
        await run({"resume": "no", "run": "r2"})
        assert (launched(job), await parked(agent)) == (["the moon"], [])


async def test_an_answer_with_a_question_id_answers_only_that_question(job: Job) -> None:
    async with running(job, Points(job)) as (agent, run):
        await run({"events": [MOON, MARS]})
        moon, mars = [one["question"]["id"] for one in await parked(agent)]
        await run({"resume": {"decision": "approve", "id": moon}})
        again = await run({"resume": {"decision": "approve", "id": moon}})
        [asked] = again["__interrupt__"]
        assert asked.value["problem"] == f"that answers {moon}, but the question is {mars}"
        assert launched(job) == ["the moon"]
        await run({"resume": {"decision": "approve", "id": mars}})
    assert launched(job) == ["the moon", "Mars"]


async def test_an_answer_that_waited_for_the_lock_answers_no_later_question(
    tmp_path: Path, clock: Clock
) -> None:
    launches = Launches()
    asks = [call("launch", target="the moon"), call("launch", target="Mars")]
    one = opened(tmp_path, scripted(*asks, "It flies."), clock, tools=[launches.tool])
    two = opened(tmp_path, scripted("It flies too."), clock, tools=[launches.tool])
    async with one as first, two as second:
        await first.ainvoke(said("Launch it"))
        await first.ainvoke(said("And another"))
        with held(tmp_path):
            late = asyncio.create_task(second.ainvoke(Command(resume="yes")))
            await asyncio.sleep(0.2)
            options: Any = {"context": first.settings, "durability": "sync"}
            await first.graph.ainvoke(Command(resume="yes"), first.config(), **options)
            assert launches.done == ["the moon"]
        output = await late
        assert output["__interrupt__"][0].value["args"] == {"target": "Mars"}
        assert launches.done == ["the moon"]
        await second.ainvoke(Command(resume="yes"))
    assert launches.done == ["the moon", "Mars"]


async def test_a_tool_that_asks_by_itself_runs_once_both_are_answered(opening: Opening) -> None:
    done = []

    async def launch(target: str) -> str:
        """Launch a rocket."""
        when = interrupt(f"when to {target}?")
        done.append((target, when))
        return f"launched to {target}"

    model = scripted(call("launch", target="the moon"), "It flies.", "Hello.")
    tools = [registered(launch, "dangerous")]
    async with opening(model, tools=tools) as agent:
        await agent.ainvoke(said("Launch it"))
        own = await agent.ainvoke(Command(resume="yes"))
        assert [one.value for one in own["__interrupt__"]] == ["when to the moon?"]
        again = await agent.ainvoke(said("Hello"))
        assert ([one.value for one in again["__interrupt__"]], done) == (["when to the moon?"], [])
        output = await agent.ainvoke(Command(resume="at noon"))
    replies = [tick["reply"] for tick in output["report"]["ticks"]]
    assert replies == ["It flies.", "Hello."]
    assert done == [("the moon", "at noon")]


async def test_a_question_whose_tool_is_missing_can_only_be_refused(opening: Opening) -> None:
    launches = Launches()
    model = scripted(call("launch", target="the moon"), "It flies.")
    async with opening(model, tools=[launches.tool]) as agent:
        await agent.ainvoke(said("Launch it"))
    async with opening(model) as agent:
        asked = await agent.ainvoke(None)
        assert asked["__interrupt__"][0].value["tool"] == "launch"
        again = await agent.ainvoke(Command(resume="yes"))
        assert "there is no tool launch now" in again["__interrupt__"][0].value["problem"]
        assert again["report"]["failures"] == []
    async with opening(model, tools=[launches.tool]) as agent:
        await agent.ainvoke(None)
        await agent.ainvoke(Command(resume="yes"))
    assert launches.done == ["the moon"]


async def test_killed_in_a_run_that_a_server_then_does_again(job: Job) -> None:
    await kill_at_each(told_twice(job), while_answering(job, part="2/6"), done_again)


@pytest.mark.slow
async def test_killed_anywhere_in_a_run_that_a_server_then_does_again(job: Job) -> None:
    await kill_at_each(told_twice(job), while_answering(job), done_again)


def told_twice(job: Job) -> Job:
    return replace(job, plain=True, inputs=[{"events": [MOON]}, {"events": [MARS]}, AS_RUN])


def while_answering(job: Job, part: str = "1/1") -> list[Point]:
    job = told_twice(job)
    asked = counts(replace(job, inputs=job.inputs[:2]))["write"]
    return points(job, "write", first=asked + 1, part=part)


async def done_again(job: Job, point: Point) -> None:
    """Do the killed run again: the second question waits."""
    job = replace(job, now=LATER)
    async with running(job, Points(job)) as (agent, run):
        unknown = await left_open(agent)
        for _ in range(2):
            await run(AS_RUN)
            assert await standing(agent) == "Mars"
            assert unknown or launched(job) == ["the moon"]
            assert "Mars" not in launched(job)
        await run({"resume": "yes", "run": "r2"})
        assert launched(job)[-1] == "Mars"
        assert await parked(agent) == []


async def standing(agent: AsyncAgent) -> str:
    [asked] = (await agent.aget_state()).interrupts
    return str(asked.value["args"]["target"])
