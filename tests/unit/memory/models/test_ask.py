"""The one place where models are called: what an answer costs, and what is asked once more."""

import asyncio
import logging
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel, Field

from memory.errors import ModelError
from memory.models.client import ask, ask_for
from memory.settings import Settings
from tests.support.scripted import ScriptedChatModel, Step, Waits, call, calls, scripted

PROMPT: list[AnyMessage] = [HumanMessage("What is the time?")]


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


async def test_cancellation_passes() -> None:
    model = scripted("noon", delay=30)
    task = asyncio.create_task(ask(model, PROMPT, Settings()))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(model.calls) == 1


@pytest.mark.parametrize("empty", ["", "  \n", "<think>hm</think>", AIMessage([])], ids=repr)
async def test_an_empty_answer_is_paid_for_and_asked_for_once_more(empty: Step) -> None:
    model, waits = scripted(empty, "noon"), Waits()
    answer = await ask(model, PROMPT, Settings(), sleep=waits)
    assert answer.message.text == "noon"
    assert answer.usage["llm_calls"] == 2
    assert waits.seconds == []
    first, second = (call.messages for call in model.calls)
    assert second[:-1] == first
    assert "it is empty" in second[-1].text


async def test_a_printed_call_of_a_tool_that_another_finds_is_asked_for_once_more() -> None:
    answer = await _ask('{"name": "rare_tool"}', "noon", names=["rare_tool"])
    assert (answer.message.text, answer.usage["llm_calls"]) == ("noon", 2)


async def test_the_callbacks_of_the_config_are_told() -> None:
    class Started(BaseCallbackHandler):
        count = 0

        def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
            self.count += 1

    started = Started()
    await _ask("noon", config={"callbacks": [started]})
    assert started.count == 1


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


async def test_a_wait_is_logged_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="memory.models.client"):
        await _ask(Status(503, "key sk-abcdef123456 is busy"), "noon")
    assert "next try in" in caplog.text
    assert "abcdef123456" not in caplog.text


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
    ("kind", "steps", "chosen", "offered"),
    [
        ("openai-chat", ["noon"], ["none"], [["look"]]),
        ("anthropic-chat", ["noon"], [{"type": "none"}], [["look"]]),
        # One that cannot be told is asked without tools, and so is one that calls all the same.
        ("another", ["noon"], [], [[]]),
        ("openai-chat", [call("look", place="here"), "noon"], ["none"], [["look"], []]),
    ],
)
async def test_told_to_call_none_a_model_keeps_its_tools(
    kind: str, steps: list[Step], chosen: list[Any], offered: list[list[str]]
) -> None:
    model = Choosing(steps=steps, kind=kind)
    answer = await ask(model, PROMPT, Settings(), tools=[look], calls=False)
    assert (answer.message.text, answer.usage["llm_calls"]) == ("noon", len(offered))
    assert model.chosen == chosen
    assert [one.tools for one in model.calls] == offered


async def test_a_provider_makes_its_form_of_the_same_tools_once() -> None:
    model = Choosing(steps=["noon", "one", "two"])
    await ask(model, PROMPT, Settings(), tools=[look])
    await ask(model, PROMPT, Settings(), tools=[look])
    assert model.chosen == [None]
    changed = look.model_copy(update={"description": "Look at a place, briefly."})
    await ask(model, PROMPT, Settings(), tools=[changed])
    assert model.chosen == [None, None]


class Facts(BaseModel):
    """What was found."""

    facts: list[str] = Field(min_length=1)


async def test_every_call_of_an_answer_that_does_not_fit_gets_an_answer() -> None:
    wrong = calls(("Facts", {"facts": []}), ("Facts", {"facts": 3}))
    model = scripted(wrong, call("Facts", facts=["the sky is blue"]))
    await ask_for(model, PROMPT, Facts, Settings())
    asked, *answers = model.calls[1].messages[len(PROMPT) :]
    assert isinstance(asked, AIMessage)
    ids = [one.tool_call_id for one in answers if isinstance(one, ToolMessage)]
    assert ids == [one["id"] for one in asked.tool_calls]


async def test_a_model_that_never_fits_is_shown_it_twice_and_no_more() -> None:
    model = scripted(*[call("Facts", facts=[])] * 3)
    with pytest.raises(ModelError, match="Facts does not fit: facts: List"):
        await ask_for(model, PROMPT, Facts, Settings())
    assert len(model.calls) == 3


async def test_a_structured_answer_is_tried_again_as_any_other() -> None:
    waits = Waits()
    model = scripted(ConnectionResetError(), "", call("Facts", facts=["x"]))
    _, usage = await ask_for(model, PROMPT, Facts, Settings(), sleep=waits)
    assert usage["llm_calls"] == 2
    assert len(waits.seconds) == 1
