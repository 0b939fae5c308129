"""send_message: speaks to someone other than the asker, once, in the output and in the stream."""

from typing import Any

import pytest

from memory.records.records import Event
from memory.settings import Settings
from tests.support.agents import Opening, said
from tests.support.scripted import calls, scripted
from tests.support.tool_calls import EVENT, NOW, Bench, tick_state
from tools.builtin.assistant import LONGEST_NAME, LONGEST_TEXT

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


async def test_the_id_derives_from_event_and_place_and_not_from_words_or_tick() -> None:
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


async def test_a_refused_message_takes_no_place_and_surrounding_space_is_no_part_of_one() -> None:
    bench = Bench()
    await bench.call("send_message", to="Bob", text=" ")
    after_refusal = (await bench.call("send_message", **DINNER)).result["message_id"]
    assert after_refusal == (await Bench().call("send_message", **DINNER)).result["message_id"]
    called = await bench.call("send_message", to=" Bob ", text=" Hi\n", channel=" ")
    (sent,) = called.message.artifact["sent"]
    assert (sent["to"], sent["text"], sent["channel"]) == ("Bob", "Hi", None)


@pytest.mark.parametrize(
    ("event", "to", "channel", "sent"),
    [
        (EVENT, "Alice", None, False),
        (EVENT, " alice ", "", False),
        (LOBBY, "Alice", "lobby", False),
        (LOBBY, "ALICE", " Lobby ", False),
        (LOBBY, "Alice", None, True),
        (EVENT, "Alice", "lobby", True),
        (None, "Alice", None, True),
        (LOBBY, "Bob", "lobby", True),
    ],
)
async def test_a_message_to_the_asker_in_the_same_place_is_refused(
    event: Event | None, to: str, channel: str | None, sent: bool
) -> None:
    bench = Bench(state=tick_state(event=event))
    called = await bench.call("send_message", to=to, text="Hello", channel=channel)
    assert called.result["success"] is sent
    assert sent or called.result["suggestion"].startswith("Just answer")
    assert (called.message.artifact is None) is not sent


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
async def test_a_blank_or_overlong_message_is_refused(arguments: dict[str, str]) -> None:
    called = await Bench().call("send_message", **arguments)
    assert called.result["success"] is False
    assert called.result["error"]
    assert called.result["suggestion"]
    assert called.message.artifact is None


async def test_a_stream_has_the_message_as_the_report_has_it_and_no_refused_one(
    opening: Opening,
) -> None:
    refused = {"to": "Ada", "text": "Hi"}
    model = scripted(calls(("send_message", refused), ("send_message", DINNER), text="Done."))
    async with opening(model, settings=OWNED) as agent:
        given = said("Tell Bob that dinner is at eight.")
        stream = agent.astream(given, stream_mode="custom", subgraphs=True)
        parts = [part async for _, part in stream]
        report = (await agent.aget_state()).values["report"]
    [message] = [part for part in parts if part.get("type") == "message"]
    assert message == {"type": "message", **report["ticks"][0]["sent"][0]}
    assert list(message) == ["type", "id", "to", "text", "channel", "tick", "at"]
