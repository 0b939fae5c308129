"""The serializer of checkpoints: the same bytes as LangGraph's, and each message is made once."""

import gc
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from memory.storage.checkpoints import THREADS, MessageSerializer


def history() -> list[AnyMessage]:
    call = {"name": "look_up", "args": {"subject": "beans"}, "id": "c", "type": "tool_call"}
    return [
        HumanMessage("Hi", id="1", name="Ada", additional_kwargs={"circadian": {"tick": 1}}),
        AIMessage("", tool_calls=[call], id="2"),
        ToolMessage("Twelve pages.", tool_call_id="c", id="3"),
    ]


def checkpoint(messages: list[AnyMessage]) -> dict[str, Any]:
    return {"v": 4, "channel_values": {"messages": messages, "goals": {"1": {2: "x"}}}}


@pytest.fixture
def stock() -> JsonPlusSerializer:
    return JsonPlusSerializer(allowed_msgpack_modules=None)


@pytest.mark.parametrize(
    "value",
    [
        checkpoint(history()),
        {"channel_values": {}},
        history(),
        [RemoveMessage(id="1"), *history()],
        history()[0],
        [],
        {"a": [1]},
        "text",
        b"bytes",
        None,
    ],
)
def test_the_bytes_are_those_of_langgraph(stock: JsonPlusSerializer, value: Any) -> None:
    ours = MessageSerializer()
    for _ in range(2):
        assert ours.dumps_typed(value) == stock.dumps_typed(value)
        with ours.reading("t"):
            assert ours.loads_typed(stock.dumps_typed(value)) == value
        assert ours.loads_typed(stock.dumps_typed(value)) == value


def test_of_a_thread_only_new_messages_are_made() -> None:
    ours, old = MessageSerializer(), history()
    with ours.reading("t"):
        first = ours.loads_typed(ours.dumps_typed(old))
    with ours.reading("t"):
        then = ours.loads_typed(ours.dumps_typed([*old, HumanMessage("And now?", id="4")]))
    with ours.reading("other"):
        others = ours.loads_typed(ours.dumps_typed(old))
    assert [one is two for one, two in zip(first, then, strict=False)] == [True] * 3
    assert [one is two for one, two in zip(first, others, strict=True)] == [False] * 3


def test_a_message_that_was_given_an_id_is_written_with_it() -> None:
    ours, message = MessageSerializer(), HumanMessage("Hi")
    ours.dumps_typed([message])
    message.id = "1"
    assert ours.loads_typed(ours.dumps_typed([message])) == [message]


def test_a_changed_copy_is_written_as_it_is() -> None:
    ours, message = MessageSerializer(), HumanMessage("Hi", id="1")
    ours.dumps_typed([message])
    changed = message.model_copy(update={"content": "Bye"})
    assert ours.loads_typed(ours.dumps_typed([changed])) == [changed]


def test_messages_that_are_not_in_use_are_let_go() -> None:
    ours = MessageSerializer()
    for number in range(3 * THREADS):
        with ours.reading(str(number)):
            ours.loads_typed(ours.dumps_typed(history()))
    gc.collect()
    assert len(ours._read) == THREADS
    assert len(ours._written) == THREADS * len(history())
