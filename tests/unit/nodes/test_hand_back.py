"""What a subgraph deletes stays deleted in its parent."""

import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.types import Overwrite

from memory.messages.convert import MARK, merge_messages
from memory.settings import Settings
from memory.state import returned
from memory.state.schema import REDUCED_KEYS, State, fresh_state
from nodes.tick import hand_back
from tests.support.agents import EXTRACTING, Opening, opened, said
from tests.support.clock import Clock
from tests.support.scripted import call, scripted

RUNS = 25


def short(messages: list[BaseMessage], tools: list[str]) -> Any:
    if tools == EXTRACTING:
        return call("noop")
    return "Ada said many words." if not tools else "I see."


async def test_the_parents_history_stays_short_over_many_compactions(opening: Opening) -> None:
    settings = Settings(max_context_tokens=2_000, compact_preserve_window=4, reflection_interval=0)
    sizes, answered = [], []
    async with opening(scripted(otherwise=short), settings=settings) as agent:
        for number in range(RUNS):
            message = HumanMessage(f"Message {number}: " + "word " * 120, id=f"m{number}")
            out = await agent.ainvoke({"messages": [message]})
            sizes.append(len(out["messages"]))
            answered += [tick["event_id"] for tick in out["report"]["ticks"]]
        state = (await agent.aget_state()).values
    assert answered == [f"m{number}" for number in range(RUNS)]
    assert max(sizes) <= 22
    assert len(state["messages"]) == sizes[-1]
    markers = [one for one in state["messages"] if str(one.text).startswith(MARK)]
    assert markers == state["messages"][:1]
    assert len({one.id for one in state["messages"]}) == len(state["messages"])


async def test_a_message_that_was_compacted_does_not_come_back_when_it_is_sent_again(
    opening: Opening,
) -> None:
    settings = Settings(max_context_tokens=2_000, compact_preserve_window=4, reflection_interval=0)
    messages = [HumanMessage(f"Message {n}: " + "word " * 120, id=f"m{n}") for n in range(12)]
    async with opening(scripted(otherwise=short), settings=settings) as agent:
        for message in messages:
            before = (await agent.ainvoke({"messages": [message]}))["messages"]
        out = await agent.ainvoke({"messages": [messages[0]]})
        state = (await agent.aget_state()).values["messages"]
    assert (out["report"]["skipped"], out["report"]["ticks"]) == (["m0"], [])
    assert "m0" not in [one.id for one in before]
    assert state == before


async def test_a_conversation_that_was_dropped_does_not_come_back(
    data: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["nodes.tick.record"], "OPEN_CONVERSATIONS", 3)
    people = [f"person {number}" for number in range(5)]
    times = [clock.advance(minutes=1).isoformat() for _ in people]
    events = [
        {"sender": who, "text": "Hello", "at": at} for who, at in zip(people, times, strict=True)
    ]
    async with opened(data, scripted(otherwise=short), clock) as agent:
        await agent.ainvoke({"events": events})
        assert set((await agent.aget_state()).values["conversations"]) == set(people[2:])
        await agent.ainvoke(said("Hello again", people[-1]))
        assert set((await agent.aget_state()).values["conversations"]) == set(people[2:])


async def test_every_key_with_a_reducer_is_handed_back_whole() -> None:
    old = HumanMessage("Hi", id="m")
    state: State = {**fresh_state(), "messages": [old]}
    update = await hand_back(state)
    assert {key for key, value in update.items() if isinstance(value, Overwrite)} == {
        *REDUCED_KEYS
    } - {"messages"}
    after: list[AnyMessage] = [SystemMessage("Summary", id="s"), AIMessage("Hello", id="a")]
    given = returned(state, {"messages": after})["messages"]
    assert merge_messages([old], given) == after
