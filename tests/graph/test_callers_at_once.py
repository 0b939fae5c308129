"""Many callers of one agent at once: each gets the reply to their own input, also in the report."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from graph.agent import open_agents
from graph.api import AsyncAgent
from graph.use_cases import tick_of
from memory.errors import ModelError
from memory.messages.trust import event_text
from memory.settings import Settings
from tests.support.agents import Opening, said
from tests.support.scripted import ScriptedChatModel, call, scripted

MANY = 20
PLAIN = Settings(reflection_interval=0)


def echo(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
    return AIMessage(f"You said {event_text(messages[-1]).split()[-1]}.")


def model() -> ScriptedChatModel:
    return scripted(otherwise=echo)


def check(number: int, out: dict[str, Any]) -> None:
    assert out["reply"] == f"You said {number}."
    assert str(out["messages"][-1].text) == out["reply"]
    (tick,) = [one for one in out["report"]["ticks"] if one["event_id"] == f"m{number}"]
    assert tick["reply"] == out["reply"]
    assert f"m{number}" not in out["report"]["skipped"]


async def test_twenty_callers_of_one_agent(opening: Opening) -> None:
    scripted_model = model()
    async with opening(scripted_model, settings=PLAIN) as agent:
        outs = await asyncio.gather(
            *(
                agent.ainvoke(said(f"number {number}", id=f"m{number}", sender=f"user {number}"))
                for number in range(MANY)
            )
        )
    for number, out in enumerate(outs):
        check(number, out)
    assert len(scripted_model.calls) == MANY


async def test_twenty_callers_through_open_agents(tmp_path: Path) -> None:
    async with open_agents(tmp_path, model=model(), embedder="offline") as agents:
        outs = await asyncio.gather(
            *(
                agents.agent("garden").ainvoke(said(f"number {number}", id=f"m{number}"))
                for number in range(MANY)
            )
        )
    for number, out in enumerate(outs):
        check(number, out)


async def test_a_tick_is_found_after_its_checkpoints_are_gone(opening: Opening) -> None:
    settings = Settings(checkpoints_kept=1)
    async with opening(model(), settings=settings) as agent:
        for number in range(9):
            await agent.ainvoke(said(f"number {number}", id=f"m{number}"))
        found = [await tick_of(agent.context, f"m{number}") for number in range(9)]
        unknown = await tick_of(agent.context, "nobody's")
    assert [one["reply"] for one in found if one] == [f"You said {n}." for n in range(9)]
    assert unknown is None


async def test_the_kept_report_of_a_tick_is_forgotten_with_its_event(opening: Opening) -> None:
    async with opening(model()) as agent:
        await agent.ainvoke(said("my word is quibbles", sender="Zora", id="m1"))
        await agent.ainvoke(said("number 2", id="m2"))
        await agent.ainvoke(said("number 3", id="m3"))
        await agent.forget("Zora")
        assert await tick_of(agent.context, "m1") is None
        assert await tick_of(agent.context, "m2") is not None


async def test_a_caller_does_not_get_the_failure_of_another_callers_event(opening: Opening) -> None:
    def picky(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
        if "broken" in event_text(messages[-1]):
            raise ModelError("the model gave no usable answer")
        return echo(messages, tools)

    settings = Settings(max_failed_ticks=9)
    async with opening(scripted(otherwise=picky), settings=settings) as agent:
        await agent.post({"id": "theirs", "sender": "Ben", "text": "broken"})
        out = await agent.ainvoke(said("number 1", id="m1"))
        check(1, out)
        assert [one["event_id"] for one in out["report"]["failures"]] == ["theirs"]
        with pytest.raises(ModelError, match="no usable answer"):
            await agent.ainvoke(said("broken", id="mine"))


def goal_first(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
    if isinstance(messages[-1], ToolMessage):
        return AIMessage("The goal is set, as you wished.")
    return call("add_goal", description="Water the beans")


async def words(agent: AsyncAgent, given: dict[str, Any], **options: Any) -> str:
    parts = [part async for part in agent.astream(given, stream_mode="messages", **options)]
    assert all(isinstance(message, AIMessage) for message, _ in parts)
    assert len(parts) > 1
    return "".join(str(message.text) for message, _ in parts)


async def test_the_words_of_the_reply_stream_at_the_top_level(opening: Opening) -> None:
    async with opening(scripted(otherwise=goal_first)) as agent:
        said_by_it = await words(agent, {"messages": "Set a goal"})
    assert said_by_it == "The goal is set, as you wished."


async def test_a_stream_has_only_the_reply_to_its_own_input(opening: Opening) -> None:
    async with opening(model()) as agent:
        await agent.post({"id": "m1", "sender": "Ben", "text": "number 1"})
        assert await words(agent, said("number 2", id="m2")) == "You said 2."


async def test_streams_at_once_give_each_caller_their_reply(opening: Opening) -> None:
    async def heard(agent: AsyncAgent, number: int) -> tuple[str, Any]:
        given, told, last = said(f"number {number}", id=f"m{number}"), "", None
        async for mode, part in agent.astream(given, stream_mode=["messages", "values"]):
            if mode == "messages":
                told += str(part[0].text)
            else:
                last = part
        return told, last

    async with opening(model()) as agent:
        outs = await asyncio.gather(*(heard(agent, number) for number in range(9)))
    assert [told for told, _ in outs] == [f"You said {number}." for number in range(9)]


async def test_with_subgraphs_everything_comes_as_from_langgraph(opening: Opening) -> None:
    async with opening(scripted(otherwise=goal_first)) as agent:
        parts = [
            part
            async for part in agent.astream(
                {"messages": "Set a goal"}, stream_mode="messages", subgraphs=True
            )
        ]
    assert any(isinstance(message, ToolMessage) for _, (message, _) in parts)
