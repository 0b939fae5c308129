"""send_message: speaks to someone other than the asker, once, in the output and in the stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore

from memory.records.records import Event
from memory.settings import Settings
from memory.state.schema import State
from tests.support.agents import opened, said
from tests.support.clock import Clock
from tests.support.scripted import calls, scripted
from tests.support.tool_calls import EVENT, NOW, Bench, tick_state
from tools.builtin.communication import LONGEST_NAME, LONGEST_TEXT
from tools.execution.execute import execute
from tools.policy import CONTEXTS, select_execution_pattern
from tools.registry import BUILT_IN, tools_for

DINNER = {"to": "Bob", "text": "Dinner is at eight."}
OWNED = Settings(owners=["Ada"])
LOBBY: Event = {**EVENT, "channel": "lobby"}


async def test_a_message_is_handed_to_the_loop_and_changes_no_state() -> None:
    called = await Bench().call("send_message", **DINNER, channel="kitchen", reasoning="asked to")
    (sent,) = called.message.artifact["sent"]
    assert sent == {
        "id": called.result["message_id"],
        "to": "Bob",
        "text": "Dinner is at eight.",
        "channel": "kitchen",
        "tick": 42,
        "at": NOW.isoformat(),
    }
    assert called.result == {
        "success": True,
        "message_id": sent["id"],
        "to": "Bob",
        "channel": "kitchen",
        "message": "Sent",
    }
    assert called.update == {}


async def test_surrounding_space_is_no_part_of_a_message() -> None:
    called = await Bench().call("send_message", to=" Bob ", text=" Hi\n", channel=" ")
    (sent,) = called.message.artifact["sent"]
    assert (sent["to"], sent["text"], sent["channel"]) == ("Bob", "Hi", None)


async def test_its_id_is_of_the_event_and_its_place_and_not_of_words_or_tick() -> None:
    async def ids(*texts: str, **changes: Any) -> list[str]:
        bench = Bench(state=tick_state(**changes))
        made = [await bench.call("send_message", to="Bob", text=text) for text in texts]
        return [str(one.result["message_id"]) for one in made]

    first = await ids("Hi", "And bye")
    assert len(set(first)) == 2
    assert all(one.startswith("sent_") and len(one) == 21 for one in first)
    assert await ids("Hello", "So long", tick=43) == first
    assert not {*first} & {*await ids("Hi", event={**EVENT, "id": "message-2"})}
    alone = [await ids("Hi", event=None, tick=tick) for tick in (42, 42, 43)]
    assert alone[0] == alone[1] != alone[2]


async def test_a_refused_message_takes_no_place() -> None:
    bench = Bench()
    await bench.call("send_message", to="Bob", text=" ")
    after_refusal = (await bench.call("send_message", **DINNER)).result["message_id"]
    assert after_refusal == (await Bench().call("send_message", **DINNER)).result["message_id"]


@pytest.mark.parametrize(
    ("event", "to", "channel"),
    [
        (EVENT, "Alice", None),
        (EVENT, " alice ", ""),
        (LOBBY, "Alice", "lobby"),
        (LOBBY, "ALICE", " Lobby "),
    ],
)
async def test_to_the_asker_in_the_same_place_it_is_refused_and_told_to_answer(
    event: Event, to: str, channel: str | None
) -> None:
    bench = Bench(state=tick_state(event=event))
    called = await bench.call("send_message", to=to, text="Hello", channel=channel)
    assert called.result["success"] is False
    assert called.result["suggestion"].startswith("Just answer")
    assert called.message.artifact is None


@pytest.mark.parametrize(
    ("event", "to", "channel"),
    [
        (LOBBY, "Alice", None),
        (EVENT, "Alice", "lobby"),
        (None, "Alice", None),
        (LOBBY, "Bob", "lobby"),
    ],
    ids=["asker_in_private", "asker_in_public", "autonomous_tick", "another_in_the_same_place"],
)
async def test_to_anyone_else_or_elsewhere_it_is_sent(
    event: Event | None, to: str, channel: str | None
) -> None:
    bench = Bench(state=tick_state(event=event))
    called = await bench.call("send_message", to=to, text="Hello", channel=channel)
    assert called.result["success"] is True


@pytest.mark.parametrize(
    "arguments",
    [
        {"to": " ", "text": "Hello"},
        {"to": "Bob", "text": "\n"},
        {"to": "B" * (LONGEST_NAME + 1), "text": "Hello"},
        {"to": "Bob", "text": "x" * (LONGEST_TEXT + 1)},
        {"to": "Bob", "text": "Hello", "channel": "c" * (LONGEST_NAME + 1)},
    ],
    ids=["nobody", "nothing", "long_name", "long_text", "long_channel"],
)
async def test_what_is_blank_or_too_long_is_refused(arguments: dict[str, str]) -> None:
    called = await Bench().call("send_message", **arguments)
    assert called.result["success"] is False
    assert called.result["error"]
    assert called.result["suggestion"]
    assert called.message.artifact is None


async def streamed(*wanted: dict[str, Any], event: Event | None = EVENT) -> list[Any]:
    """What a graph with one node that runs these calls streams as `custom`."""
    ticking = tick_state(event=event)
    asked = [
        {"name": "send_message", "args": args, "id": f"call-{at}", "type": "tool_call"}
        for at, args in enumerate(wanted)
    ]

    async def use(state: State, config: RunnableConfig) -> dict[str, Any]:
        tools = [BUILT_IN["send_message"][0]]
        messages = [AIMessage("", tool_calls=asked)]
        seen = cast(State, {**ticking, "messages": messages})
        await execute(cast(Any, asked), tools, seen, config, seconds=5)
        return {}

    builder = StateGraph(State, context_schema=Settings)
    builder.add_node("use", use)
    builder.add_edge(START, "use")
    inner = builder.compile()
    outer = StateGraph(State, context_schema=Settings)
    outer.add_node("inner", inner)
    outer.add_edge(START, "inner")
    graph = outer.compile(store=InMemoryStore())
    config = Bench()._config()
    return [
        part
        async for _, part in graph.astream(
            {"mode": "awake"}, config, context=Settings(), stream_mode="custom", subgraphs=True
        )
    ]


async def test_a_message_is_in_the_custom_stream_also_from_a_subgraph() -> None:
    parts = await streamed(DINNER, {"to": "Cem", "text": "You too."})
    assert [(part["type"], part["to"], part["text"]) for part in parts] == [
        ("message", "Bob", "Dinner is at eight."),
        ("message", "Cem", "You too."),
    ]
    assert list(parts[0]) == ["type", "id", "to", "text", "channel", "tick", "at"]
    assert parts[0]["id"] != parts[1]["id"]


async def test_a_refused_message_is_in_no_stream() -> None:
    assert await streamed({"to": "Alice", "text": "Hi"}, {"to": "Bob", "text": ""}) == []


@pytest.mark.parametrize(
    ("context_type", "offered"),
    [
        ("tick_event", True),
        ("tick_autonomous", True),
        ("reflection", False),
        ("reflection_cont", False),
        ("sleep_consolidate", False),
        ("goal_decompose", False),
        ("pre_compaction", False),
    ],
)
def test_only_ticks_may_speak_to_others(context_type: str, offered: bool) -> None:
    context = CONTEXTS[context_type]
    names = {
        one.name for one in tools_for(context, select_execution_pattern(Settings(), context), ())
    }
    assert ("send_message" in names) is offered
    assert ("update_system_prompt" in names) is offered


# In the whole agent


async def test_the_run_shows_what_was_sent_and_no_further_model_call_is_made(
    tmp_path: Path, clock: Clock
) -> None:
    model = scripted(calls(("send_message", DINNER), text="I have told Bob."))
    async with opened(tmp_path, model, clock, settings=OWNED) as agent:
        output = await agent.ainvoke(said("Tell Bob that dinner is at eight."))
    (tick,) = output["report"]["ticks"]
    assert tick["tools"] == [{"name": "send_message", "ok": True}]
    (sent,) = tick["sent"]
    assert (sent["to"], sent["text"], sent["tick"]) == ("Bob", "Dinner is at eight.", 1)
    assert tick["reply"] == "I have told Bob."
    assert len(model.calls) == 1


async def test_the_agents_own_stream_has_the_message_as_the_report_has_it(
    tmp_path: Path, clock: Clock
) -> None:
    model = scripted(calls(("send_message", DINNER), text="Done."))
    async with opened(tmp_path, model, clock, settings=OWNED) as agent:
        given = said("Tell Bob that dinner is at eight.")
        stream = agent.astream(given, stream_mode="custom", subgraphs=True)
        parts = [part async for _, part in stream]
        report = (await agent.aget_state()).values["report"]
    messages = [part for part in parts if part.get("type") == "message"]
    assert messages == [{"type": "message", **report["ticks"][0]["sent"][0]}]
