"""What is made of a message is made once, and let go with it."""

import gc
import weakref

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from memory.messages import as_model_sees
from memory.text import approximate_tokens, once_per_message
from memory.text import tokens as counting


def test_it_is_made_once_of_a_message_and_again_of_its_copy() -> None:
    asked: list[str] = []

    @once_per_message
    def length(message: BaseMessage) -> int:
        asked.append(str(message.text))
        return len(str(message.text))

    message = HumanMessage("Hi", id="1")
    copy = message.model_copy(update={"content": "Hello"})
    assert [length(message), length(message), length(copy)] == [2, 2, 5]
    assert asked == ["Hi", "Hello"]


def test_nothing_is_kept_of_a_message_that_has_no_id_yet() -> None:
    named: once_per_message[HumanMessage, str | None] = once_per_message(lambda one: one.id)
    message = HumanMessage("Hi")
    assert named.each([message]) == [None]
    message.id = "1"
    assert named.each([message]) == ["1"]


def test_it_is_let_go_with_its_message() -> None:
    freed: list[int] = []

    class Made:
        def __del__(self) -> None:
            freed.append(1)

    made: once_per_message[HumanMessage, Made] = once_per_message(lambda _: Made())
    message = HumanMessage("Hi", id="1")
    made(message)
    gc.collect()
    assert freed == []
    del message
    gc.collect()
    assert freed == [1]


def test_a_message_that_stands_for_itself_is_let_go() -> None:
    same: once_per_message[AIMessage, AIMessage] = once_per_message(lambda one: one)
    message = AIMessage("Hello.", id="1")
    assert same(message) is message
    gone: list[int] = []

    weakref.finalize(message, gone.append, 1)
    del message
    gc.collect()
    assert gone == [1]


def test_a_message_is_counted_and_put_into_its_block_once(monkeypatch: pytest.MonkeyPatch) -> None:
    history: list[BaseMessage] = [
        HumanMessage("Grüße", name="Ada", id="1"),
        AIMessage("Hello.", id="2"),
    ]
    counted = approximate_tokens(history)
    shown = as_model_sees(history)  # type: ignore[arg-type]
    monkeypatch.delattr(counting, "_countable")
    assert approximate_tokens(history) == counted
    assert as_model_sees(history)[0] is shown[0]  # type: ignore[arg-type]
