"""Models as they are, through the real OpenAI client: what is read, told to the model, or said."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel, Field

from memory.errors import ConfigurationError, ModelError, ModelRefused
from memory.models.answers import MALFORMED
from memory.models.client import Answer, ask, ask_for
from memory.models.registry import load_chat_model
from memory.settings import Settings
from tests.support import openai_server as replies
from tests.support.openai_server import Reply, Serve, text, tool_call
from tests.support.scripted import Waits

PROMPT: list[AnyMessage] = [HumanMessage("What time is it?")]


class Time(BaseModel):
    """The time."""

    hour: int = Field(ge=0, le=23)
    zone: str


@tool
def clock(zone: str) -> str:
    """The time in a zone."""
    return f"noon in {zone}"


@pytest.fixture(params=["whole", "streamed"])
def asked(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """`ask` with a tool, whole and as a stream is asked for."""

    async def whole(context: Settings | None = None) -> Answer:
        found: list[Answer] = []

        async def act(state: MessagesState) -> dict[str, Any]:
            model = load_chat_model("openai:gpt-test")
            settings = context or Settings()
            found.append(await ask(model, PROMPT, settings, tools=[clock], sleep=Waits()))
            return {}

        builder = StateGraph(MessagesState, context_schema=Settings)
        builder.add_node("act", act)
        builder.add_edge(START, "act")
        mode: Any = "messages" if request.param == "streamed" else "values"
        given = MessagesState(messages=PROMPT)
        async for _ in builder.compile().astream(given, stream_mode=mode, context=context):
            pass
        return found[0]

    return whole


async def test_why_a_model_refuses_is_said_and_it_is_not_asked_again(
    serve: Serve, asked: Callable[..., Any]
) -> None:
    server = serve(replies.refusal("I do not tell the time."))
    with pytest.raises(ModelRefused, match=r"^The model refused: I do not tell the time\.") as it:
        await asked()
    assert (it.value.llm_calls, len(server.requests)) == (1, 1)


async def test_an_empty_answer_is_asked_for_once_more(
    serve: Serve, asked: Callable[..., Any]
) -> None:
    server = serve(text(""), text("<think>again?</think>"))
    with pytest.raises(ModelError, match="asked twice: an empty answer"):
        await asked()
    first, second = (sent["messages"] for sent in server.requests)
    assert second[:-1] == first
    assert "it is empty" in second[-1]["content"]


async def test_thinking_is_left_out(serve: Serve, asked: Callable[..., Any]) -> None:
    serve(text("<think>\nThe sun is high.\n</think>\n\nIt is noon."))
    assert (await asked()).message.content == "It is noon."


async def test_an_answer_that_is_cut_off_is_known(serve: Serve, asked: Callable[..., Any]) -> None:
    serve(text("It is", finish="length"), text("It is noon."))
    assert (await asked()).cut_off
    assert not (await asked()).cut_off


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (tool_call("clock", "zone=UTC"), "these are not: zone=UTC"),
        (tool_call("clock", '{"zone": "UT', finish="length"), "cut this call off"),
        (tool_call("clock", '{"zone": "UTC"}', finish="length"), "cut this call off"),
    ],
)
async def test_a_call_that_cannot_run_comes_back_to_be_refused(
    serve: Serve, asked: Callable[..., Any], reply: Reply, told: str
) -> None:
    server = serve(reply)
    [made] = (await asked()).message.tool_calls
    assert told in made["args"][MALFORMED]
    assert len(server.requests) == 1


@pytest.mark.parametrize("arguments", ["[1, 2]", '"UTC"', "5"])
async def test_arguments_of_the_wrong_type_are_told_to_the_model(
    serve: Serve, asked: Callable[..., Any], arguments: str
) -> None:
    server = serve(tool_call("clock", arguments), tool_call("clock", {"zone": "UTC"}))
    [made] = (await asked()).message.tool_calls
    if MALFORMED in made["args"]:  # a stream keeps what cannot be read
        assert f"these are not: {arguments}" in made["args"][MALFORMED]
        return
    assert made["args"] == {"zone": "UTC"}
    assert "valid dictionary" in server.requests[1]["messages"][-1]["content"]


PRINTED = '```json\n{"name": "clock", "arguments": {"zone": "UTC"}}\n```'


async def test_a_call_printed_as_text_is_asked_for_properly_once(
    serve: Serve, asked: Callable[..., Any]
) -> None:
    server = serve(text(PRINTED), tool_call("clock", {"zone": "UTC"}), text(PRINTED), text(PRINTED))
    assert (await asked()).message.tool_calls[0]["args"] == {"zone": "UTC"}
    said, told = server.requests[1]["messages"][-2:]
    assert (said["role"], said["content"]) == ("assistant", PRINTED)
    assert "nothing was run" in told["content"]
    with pytest.raises(ModelError, match="prints a call of clock as text"):
        await asked()
    assert len(server.requests) == 4


async def test_a_call_that_takes_too_long_is_tried_again_and_named(
    serve: Serve, asked: Callable[..., Any]
) -> None:
    serve(*[text("noon", delay=2.0)] * 3)
    with pytest.raises(ModelError, match=r"2 tries: no answer within 0.2 s \(model_timeout\)"):
        await asked(Settings(model_timeout=0.2, model_attempts=2))


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        (replies.error(401, "Wrong key: sk-for-tests-only"), "{} refuses the key of the model"),
        (replies.error(403, "no access"), "set OPENAI_API_KEY"),
        (replies.error(404, "no such model", code="model_not_found"), "{} does not know the model"),
        (replies.error(404, "gone"), "CIRCADIAN_MODEL (or --model) names it, OPENAI_BASE_URL"),
        (replies.error(400, "no such model", code="model_not_found"), "does not know the model"),
        (replies.page(), "{} is no API for the model gpt-test"),
    ],
    ids=["401", "403", "404", "404 of a path", "400", "a web page"],
)
async def test_a_wrong_configuration_is_one_line_that_names_the_variable(
    serve: Serve, asked: Callable[..., Any], reply: Reply, line: str
) -> None:
    server = serve(reply)
    with pytest.raises(ConfigurationError) as raised:
        await asked()
    told = str(raised.value)
    assert line.format(server.base_url) in told
    assert "gpt-test" in told
    for never in ("\n", "sk-for-tests-only", "<html", "418"):
        assert never not in told.replace(server.base_url, "")  # whose port may be any number
    assert len(server.requests) == 1


async def test_an_address_where_nobody_answers_is_tried_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = "http://127.0.0.1:9/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    waits = Waits()
    with pytest.raises(ConfigurationError, match=f"{address}, the address of the model") as raised:
        await ask(load_chat_model("openai:gpt-test"), PROMPT, Settings(), sleep=waits)
    assert str(raised.value).endswith("set OPENAI_BASE_URL")
    assert len(waits.seconds) == 1


NOON: Mapping[str, Any] = {"hour": 12, "zone": "UTC"}


@pytest.mark.parametrize(
    "content",
    [
        '{"hour": 12, "zone": "UTC"}',
        'Here you are:\n\n```json\n{"hour": 12, "zone": "UTC"}\n```\n\nAnything else?',
        '<think>{"hour": 1}</think>{"name": "Time", "arguments": {"hour": 12, "zone": "UTC"}}',
    ],
)
async def test_json_where_a_form_was_asked_for_is_read(serve: Serve, content: str) -> None:
    serve(text(content))
    found, usage = await ask_for(load_chat_model("openai:gpt-test"), PROMPT, Time, Settings())
    assert (found.model_dump(), usage["llm_calls"]) == (NOON, 1)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (text('{"hour": 40, "zone": "UTC"}'), "hour: Input should be less than or equal to 23"),
        (text("It is noon."), "arguments: Input should be"),
        (text('{"hour": 1, "zone": "a"} or {"hour": 2, "zone": "b"}'), "2 different answers"),
        (tool_call("Time", "hour=12"), "these are not: hour=12"),
        (tool_call("Time", '{"hour": 12', finish="length"), "make it shorter"),
        (text('{"hour": 12', finish="length"), "make it shorter"),
    ],
)
async def test_a_form_that_does_not_fit_is_told_to_the_model(
    serve: Serve, reply: Reply, told: str
) -> None:
    server = serve(reply, tool_call("Time", NOON))
    found, _ = await ask_for(load_chat_model("openai:gpt-test"), PROMPT, Time, Settings())
    assert found.hour == 12
    assert told in server.requests[1]["messages"][-1]["content"]
    assert len(server.requests) == 2


async def test_a_refused_form_is_not_asked_for_again(serve: Serve) -> None:
    server = serve(replies.refusal("No."))
    with pytest.raises(ModelRefused):
        await ask_for(load_chat_model("openai:gpt-test"), PROMPT, Time, Settings())
    assert len(server.requests) == 1
