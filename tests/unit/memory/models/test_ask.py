"""The one place where models are called: what is tried again, and what it costs."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.exceptions import ContextOverflowError, ModelAPIError, ModelRateLimitError
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.messages.tool import invalid_tool_call
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import Field

from memory.errors import ContextOverflow, ModelError
from memory.models.answers import MALFORMED
from memory.models.client import ask
from memory.models.retry import judge
from memory.settings import Settings
from memory.text.redaction import without_secrets
from tests.support.scripted import ScriptedChatModel, Step, Waits, call, scripted

PROMPT: list[AnyMessage] = [HumanMessage("What is the time?")]
WRONG = (400, 401, 403, 404, 422)
"""Status of a request that is wrong."""


class Status(Exception):
    """An HTTP error as most clients raise it."""

    def __init__(self, status: int, message: str = "no", retry_after: str | None = None) -> None:
        super().__init__(message)
        self.status_code = status
        headers = {"retry-after": retry_after} if retry_after else {}
        self.response = type("Response", (), {"headers": headers, "status_code": status})()


async def _ask(*steps: Step, waits: Waits | None = None, **options: Any) -> Any:
    return await ask(scripted(*steps), PROMPT, Settings(), sleep=waits or Waits(), **options)


async def test_an_answer_comes_with_what_it_cost() -> None:
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    answer = await _ask(AIMessage("noon", usage_metadata=usage))
    assert answer.message.text == "noon"
    assert answer.usage == {"llm_calls": 1, "tokens": 15}
    # Tokens that the provider does not report are approximated.
    assert (await _ask("x" * 400)).usage["tokens"] > 100


@pytest.mark.parametrize(
    "failure",
    [
        Status(429),
        Status(408),
        Status(500),
        Status(503),
        ConnectionResetError("reset"),
        TimeoutError(),
        json.JSONDecodeError("cut off", "{", 1),
        ModelAPIError("down"),
        ModelRateLimitError("slow down"),
        ValueError({"message": "upstream is down", "code": 502}),
    ],
    ids=repr,
)
async def test_what_may_pass_is_tried_again(failure: Exception) -> None:
    waits = Waits()
    answer = await _ask(failure, failure, "noon", waits=waits)
    assert answer.message.text == "noon"
    assert answer.usage["llm_calls"] == 1
    assert len(waits.seconds) == 2


async def test_a_failure_wrapped_by_the_models_code_is_recognised() -> None:
    def wrapping(messages: list[BaseMessage], tools: list[str]) -> str:
        try:
            raise ConnectionResetError("reset")
        except ConnectionResetError as error:
            raise RuntimeError("the client failed") from error

    assert (await _ask(wrapping, "noon")).message.text == "noon"


SPENT = Status(429, "you exceeded your current quota")
SPENT.code = "insufficient_quota"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        *((Status(one, "no such thing"), f"HTTP {one}: no such thing") for one in WRONG),
        (SPENT, "quota"),
        (ValueError("no choices"), "ValueError: no choices"),
        (Status(429, retry_after="3600"), "asks to wait 3600 s"),
        (ModelError("a nested call failed: the prompt is too long"), "a nested call failed"),
    ],
    ids=repr,
)
async def test_what_no_wait_mends_is_not_tried_again(failure: Exception, told: str) -> None:
    waits = Waits()
    with pytest.raises(ModelError, match=told) as raised:
        await _ask(failure, waits=waits)
    assert not isinstance(raised.value, ContextOverflow)
    assert waits.seconds == []


async def test_a_bug_passes_as_it_is() -> None:
    with pytest.raises(AttributeError, match="oops"):
        await _ask(AttributeError("oops"))


async def test_an_exhausted_script_fails_the_test_and_not_the_model() -> None:
    with pytest.raises(AssertionError, match="0 steps and this is call 1"):
        await _ask()


async def test_cancellation_passes() -> None:
    model = scripted("noon", delay=30)
    task = asyncio.create_task(ask(model, PROMPT, Settings()))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(model.calls) == 1


@pytest.mark.parametrize("empty", ["", "  \n", AIMessage([])], ids=repr)
async def test_an_empty_answer_is_paid_for_and_asked_for_once_more(empty: Step) -> None:
    model, waits = scripted(empty, "noon"), Waits()
    answer = await ask(model, PROMPT, Settings(), sleep=waits)
    assert answer.message.text == "noon"
    assert answer.usage["llm_calls"] == 2
    assert waits.seconds == []
    first, second = (call.messages for call in model.calls)
    assert second[:-1] == first
    assert "it is empty" in second[-1].text


async def test_a_tool_call_without_text_is_an_answer() -> None:
    assert (await _ask(call("clock"))).message.tool_calls[0]["name"] == "clock"


async def test_calls_whose_arguments_are_no_json_come_back_as_calls_that_say_so() -> None:
    bad = invalid_tool_call(name="store it", args='{"text": ', id="c2", error="cut off")
    mixed = call("clock", zone="UTC").model_copy(update={"invalid_tool_calls": [bad]})
    answer = await _ask(mixed)
    good, broken = answer.message.tool_calls
    assert good["args"] == {"zone": "UTC"}
    assert (broken["name"], broken["id"]) == ("store_it", "c2")
    assert broken["args"][MALFORMED].endswith('these are not: {"text":')
    assert answer.message.invalid_tool_calls == []
    assert answer.usage["llm_calls"] == 1


async def test_the_callbacks_of_the_config_are_told() -> None:
    class Started(BaseCallbackHandler):
        count = 0

        def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
            self.count += 1

    started = Started()
    await _ask("noon", config={"callbacks": [started]})
    assert started.count == 1


async def test_after_the_last_try_the_error_names_the_reason_and_the_number_of_tries() -> None:
    waits = Waits()
    with pytest.raises(ModelError, match="after 4 tries: HTTP 503: no"):
        await _ask(*[Status(503)] * 4, waits=waits)
    assert len(waits.seconds) == 3


async def test_attempts_can_be_limited() -> None:
    model = scripted(Status(503), "never asked for")
    with pytest.raises(ModelError, match="after 1 try:"):
        await ask(model, PROMPT, Settings(), attempts=1, sleep=Waits())
    assert model.remaining == 1


async def test_waits_grow_and_jitter_moves_them_by_half() -> None:
    async def waited(jitter: float) -> list[float]:
        waits = Waits()
        with pytest.raises(ModelError):
            await _ask(*[Status(503)] * 4, waits=waits, jitter=lambda: jitter)
        return waits.seconds

    assert await waited(0.5) == [0.5, 1.0, 2.0]
    assert await waited(0.0) == [0.25, 0.5, 1.0]
    assert await waited(1.0) == [0.75, 1.5, 3.0]


async def test_a_short_retry_after_is_honoured() -> None:
    waits = Waits()
    await _ask(Status(429, retry_after="7"), "noon", waits=waits)
    assert waits.seconds == [7.0]


@pytest.mark.parametrize(
    "overflow",
    [
        ContextOverflowError("too long"),
        Status(400, "This model's maximum context length is 4096 tokens."),
        Status(400, "the request exceeds the available context size, try increasing it"),
        Status(400, "prompt is too long: 210000 tokens > 200000 maximum"),
        Status(413, "Request too large: reduce the length of the messages"),
        Status(400, "Input tokens exceed the configured limit of 272000 tokens."),
        Status(500, "Context size has been exceeded."),
        ValueError("This model's maximum context length is 4096 tokens."),
    ],
    ids=str,
)
async def test_a_prompt_that_is_too_long_is_told_apart_and_not_tried_again(
    overflow: Exception,
) -> None:
    waits = Waits()
    with pytest.raises(ContextOverflow):
        await _ask(overflow, waits=waits)
    assert waits.seconds == []


@pytest.mark.parametrize(
    "other",
    [
        Status(400, "max_tokens is too large: 99999"),
        Status(429, "Request too large for the limit of tokens per minute"),
        Status(400, "unknown parameter: context"),
    ],
    ids=str,
)
def test_other_errors_about_sizes_are_no_overflow(other: Exception) -> None:
    assert judge(other).verdict != "overflow"


async def test_no_secret_stands_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "abcdef-very-secret-0123")
    said = "Incorrect key: sk-proj-abcDEF123456, Bearer eyJhbGciOi, abcdef-very-secret-0123\nsecond"
    with pytest.raises(ModelError) as raised:
        await _ask(Status(401, said))
    line = str(raised.value)
    assert "\n" not in line
    assert "HTTP 401: Incorrect key: ***" in line
    for secret in ("abcDEF123456", "eyJhbGciOi", "very-secret"):
        assert secret not in line


def test_words_that_look_a_little_like_keys_are_kept() -> None:
    line = "the task-oriented model risk-free1234 failed"
    assert without_secrets(line, {"SHORT_KEY": "model"}) == line


async def test_a_wait_is_logged_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="memory.models.client"):
        await _ask(Status(503, "key sk-abcdef123456 is busy"), "noon")
    assert "next try in" in caplog.text
    assert "abcdef123456" not in caplog.text


async def test_tools_are_bound_and_tokens_stream_through_the_config() -> None:
    @tool
    def clock() -> str:
        """The time."""
        return "noon"

    model = scripted("it is noon")

    async def act(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        answer = await ask(model, state["messages"], Settings(), tools=[clock], config=config)
        return {"messages": [answer.message]}

    builder = StateGraph(MessagesState)
    builder.add_node("act", act)
    builder.add_edge(START, "act")
    stream = builder.compile().astream(MessagesState(messages=PROMPT), stream_mode="messages")
    tokens = [str(one[0].text) async for one in stream if isinstance(one, tuple)]
    assert [one for one in tokens if one] == ["it", " is", " noon"]
    assert model.calls[0].tools == ["clock"]


class Choosing(ScriptedChatModel):
    """A provider's model that takes `tool_choice`."""

    chosen: list[Any] = Field(default_factory=list)
    kind: str = "openai-chat"

    @property
    def _llm_type(self) -> str:
        return self.kind

    def bind_tools(self, tools: Any, *, tool_choice: Any = None, **kwargs: Any) -> Any:
        self.chosen.append(tool_choice)
        return super().bind_tools(tools, **kwargs)


@tool
def look(place: str) -> str:
    """Look at a place."""
    return place


@pytest.mark.parametrize(
    ("kind", "choice"), [("openai-chat", "none"), ("anthropic-chat", {"type": "none"})]
)
async def test_told_to_call_none_a_model_keeps_its_tools(kind: str, choice: Any) -> None:
    model = Choosing(steps=["noon"], kind=kind)
    answer = await ask(model, PROMPT, Settings(), tools=[look], calls=False)
    assert answer.message.text == "noon"
    assert model.chosen == [choice]
    assert model.calls[0].tools == ["look"]


async def test_a_model_that_cannot_be_told_is_asked_without_tools() -> None:
    model = Choosing(steps=["noon"], kind="another")
    await ask(model, PROMPT, Settings(), tools=[look], calls=False)
    assert [one.tools for one in model.calls] == [[]]


async def test_a_server_that_calls_a_tool_all_the_same_is_asked_once_more_without_tools() -> None:
    model = Choosing(steps=[call("look", place="here"), "noon"])
    answer = await ask(model, PROMPT, Settings(), tools=[look], calls=False)
    assert answer.message.text == "noon"
    assert answer.usage["llm_calls"] == 2
    assert [one.tools for one in model.calls] == [["look"], []]


async def test_a_provider_makes_its_form_of_the_same_tools_once() -> None:
    model = Choosing(steps=["noon", "one", "two"])
    await ask(model, PROMPT, Settings(), tools=[look])
    await ask(model, PROMPT, Settings(), tools=[look])
    assert model.chosen == [None]
    changed = look.model_copy(update={"description": "Look at a place, briefly."})
    await ask(model, PROMPT, Settings(), tools=[changed])
    assert model.chosen == [None, None]
