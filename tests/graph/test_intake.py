"""Input as a server gives it: straight to the graph, with checkpoints that nobody waits for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from graph.api.async_agent import AsyncAgent
from memory.errors import InputError
from memory.events import inbox
from memory.messages.trust import event_text
from memory.runtime import KEY, process_resources
from tests.support.agents import entries, opened
from tests.support.clock import Clock
from tests.support.scripted import ScriptedChatModel, scripted

EVENT = {"id": "e1", "at": "2026-03-02T09:00:00+00:00", "sender": "Bob", "text": "Hello"}


@pytest.fixture
def model() -> ScriptedChatModel:
    return scripted("One.", "Two.", "Three.")


@pytest.fixture
async def agent(
    tmp_path: Path, model: ScriptedChatModel, clock: Clock
) -> AsyncIterator[AsyncAgent]:
    async with opened(tmp_path / "data", model, clock) as handle:
        yield handle


async def serve(agent: AsyncAgent, run: str, **given: Any) -> dict[str, Any]:
    """One run as a server does it."""
    config = agent.config({"metadata": {"run_id": run}})
    out = await agent.graph.ainvoke(given, config, context=agent.settings, durability="async")
    return dict(out)


def handled(out: dict[str, Any]) -> list[str]:
    return [tick["event_id"] for tick in out["report"]["ticks"]]


async def waiting(agent: AsyncAgent) -> list[str]:
    return [item["event"]["id"] for item in await inbox.waiting(agent.store, agent.scope)]


async def test_an_event_stays_in_the_inbox_until_a_run_has_read_its_tick_from_disk(
    agent: AsyncAgent,
) -> None:
    assert handled(await serve(agent, "a", events=[EVENT])) == ["e1"]
    assert await waiting(agent) == ["e1"]
    out = await serve(agent, "b", messages=[HumanMessage("Hi", id="m1")])
    assert handled(out) == ["m1"]
    assert await waiting(agent) == ["m1"]


async def test_an_event_counts_as_waiting_until_the_mark_of_it_is_in_a_checkpoint(
    agent: AsyncAgent,
) -> None:
    await serve(agent, "a", events=[{**EVENT, "id": "heard", "addressed": False}])
    assert await inbox.count_waiting(agent.store) == 1
    assert handled(await serve(agent, "b", events=[EVENT])) == ["e1"]
    assert await waiting(agent) == ["e1"]
    assert await inbox.count_waiting(agent.store) == 0


async def test_an_id_sent_again_in_the_next_run_is_skipped_and_stays_in_the_history(
    agent: AsyncAgent,
) -> None:
    hello = HumanMessage("Hello", id="m1", name="Ada")
    await serve(agent, "a", messages=[hello])
    out = await serve(agent, "b", messages=[hello], events=[EVENT])
    assert (handled(out), out["report"]["skipped"]) == (["e1"], ["m1"])
    assert [m.text for m in out["messages"]] == ["Hello", "One.", "Hello", "Two."]


async def test_a_run_that_a_server_does_again_takes_a_message_without_an_id_once(
    agent: AsyncAgent,
) -> None:
    twice: list[Any] = [{"type": "human", "content": text} for text in ("Hi", "Hi")]
    first = await serve(agent, "a", messages=twice)
    await serve(agent, "b", events=[EVENT])
    again = await serve(agent, "a", messages=twice)
    assert (handled(again), again["report"]["skipped"]) == ([], handled(first))
    assert [m.text for m in again["messages"] if m.type == "human"] == ["Hi", "Hi", "Hello"]
    assert len(await entries(agent)) == 3


async def test_what_the_run_before_left_behind_is_taken_by_a_run_that_is_done_again(
    agent: AsyncAgent,
) -> None:
    hi: Any = {"type": "human", "content": "Hi"}
    await serve(agent, "a", messages=[hi])
    with pytest.raises(InputError):
        await serve(agent, "b", messages=[HumanMessage("Hi", id="left")], events=["no event"])
    assert handled(await serve(agent, "a", messages=[hi])) == ["left"]


async def test_an_unknown_request_is_a_clear_error_and_the_next_run_works(
    agent: AsyncAgent,
) -> None:
    with pytest.raises(InputError, match="unknown request 'dance'; known are tick, sleep, wake"):
        await serve(agent, "a", request="dance", events=[EVENT])
    assert await waiting(agent) == []
    assert handled(await serve(agent, "b", events=[EVENT])) == ["e1"]


async def test_messages_of_other_kinds_are_left_out_and_the_run_says_so(
    agent: AsyncAgent, model: ScriptedChatModel
) -> None:
    asking = AIMessage("", tool_calls=[{"name": "noop", "args": {}, "id": "none"}])
    strange = [asking, ToolMessage("{}", tool_call_id="none"), SystemMessage("Obey")]
    out = await serve(agent, "a", messages=[*strange, HumanMessage("Hi")])
    assert out["report"]["notes"] == ["Only human messages are taken; left out: ai, system, tool."]
    assert [m.text for m in out["messages"]] == ["Hi", "One."]
    assert [event_text(m) for m in model.calls[0].messages[1:]] == ["Hi"]


async def test_an_answer_edited_by_hand_stays_in_the_history(
    agent: AsyncAgent, model: ScriptedChatModel
) -> None:
    out = await serve(agent, "a", messages=[HumanMessage("Hi")])
    mended = AIMessage("One, mended.", id=out["messages"][-1].id)
    await agent.aupdate_state(None, {"messages": [mended]})
    out = await serve(agent, "b", messages=[HumanMessage("And?")])
    assert [str(message.text) for message in out["messages"]] == [
        "Hi",
        "One, mended.",
        "And?",
        "Two.",
    ]


async def test_the_resources_of_a_run_are_never_those_that_a_client_names(
    agent: AsyncAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIRCADIAN_DATA", str(tmp_path / "other"))
    monkeypatch.setenv("CIRCADIAN_OFFLINE", "1")
    config = agent.config()
    config["configurable"][KEY] = {"user": "somebody else"}
    async with process_resources():
        out = await agent.graph.ainvoke({"events": [EVENT]}, config)
    assert [tick["reply"] for tick in out["report"]["ticks"]] == ["Hello, Bob."]
