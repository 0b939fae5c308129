"""The real OpenAI client against a server on loopback: every way a call and its answer can go."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel, Field

from memory.errors import ConfigurationError, ContextOverflow, ModelError, ModelRefused, ServiceDown
from memory.models.answers import MALFORMED
from memory.models.client import Answer, ask, ask_for
from memory.models.registry import (
    embed_query,
    embed_texts,
    embedding_dimension,
    load_chat_model,
    load_embedder,
)
from memory.models.retry import RetryPolicy
from memory.settings import Settings
from tests.support import openai_server as replies
from tests.support.openai_server import DIMENSION, Reply, Serve, text, tool_call
from tests.support.scripted import Waits

PROMPT: list[AnyMessage] = [
    SystemMessage("You tell the time."),
    HumanMessage("What time is it?", name="Alice"),
]


class Time(BaseModel):
    """The time."""

    hour: int = Field(ge=0, le=23)
    zone: str


@tool
def clock(zone: str) -> str:
    """The time in a zone."""
    return f"noon in {zone}"


async def _ask(waits: list[float] | None = None, **options: Any) -> Answer:
    async def sleep(seconds: float) -> None:
        (waits if waits is not None else []).append(seconds)

    model = load_chat_model("openai:gpt-test")
    return await ask(model, PROMPT, Settings(), sleep=sleep, **options)


async def test_a_plain_answer_with_the_usage_that_the_provider_reports(serve: Serve) -> None:
    server = serve(text("It is noon."))
    answer = await _ask()
    assert answer.message.text == "It is noon."
    assert answer.usage == {"llm_calls": 1, "tokens": 25}
    sent = server.requests[0]
    assert sent["model"] == "gpt-test"
    assert [one["role"] for one in sent["messages"]] == ["system", "user"]
    assert sent["messages"][1]["name"] == "Alice"


async def test_a_tool_call_and_its_answer_go_through(serve: Serve) -> None:
    server = serve(tool_call("clock", {"zone": "UTC"}), text("Noon."))
    first = await _ask(tools=[clock])
    assert server.requests[0]["tools"][0]["function"]["name"] == "clock"
    (made,) = first.message.tool_calls
    assert (made["name"], made["args"]) == ("clock", {"zone": "UTC"})
    result = ToolMessage("noon", tool_call_id=str(made["id"]))
    second = await ask(
        load_chat_model("openai:gpt-test"), [*PROMPT, first.message, result], Settings()
    )
    assert second.message.text == "Noon."
    assert server.requests[1]["messages"][-1]["tool_call_id"] == made["id"]


async def test_a_structured_answer(serve: Serve) -> None:
    server = serve(tool_call("Time", {"hour": 12, "zone": "UTC"}))
    found, usage = await ask_for(load_chat_model("openai:gpt-test"), PROMPT, Time, Settings())
    assert found == Time(hour=12, zone="UTC")
    assert usage == {"llm_calls": 1, "tokens": 25}
    assert server.requests[0]["tool_choice"]["function"]["name"] == "Time"


@pytest.mark.parametrize(
    "failing",
    [
        replies.error(500),
        replies.error(503, "overloaded"),
        replies.error(429, "slow down"),
        replies.dropped(),
        replies.malformed(),
        Reply("error", status=200, error={"message": "upstream failed", "code": 502}),
    ],
    ids=["500", "503", "429", "dropped", "malformed body", "an error in a good answer's body"],
)
async def test_a_passing_failure_is_tried_again_by_us_alone(serve: Serve, failing: Reply) -> None:
    server, waits = serve(failing, failing, text("noon")), list[float]()
    answer = await _ask(waits, tools=[clock])
    assert answer.message.text == "noon"
    assert len(server.requests) == 3
    assert len(waits) == 2


async def test_the_wait_is_the_one_the_provider_asks_for(serve: Serve) -> None:
    serve(replies.rate_limited("3"), text("noon"))
    waits: list[float] = []
    await _ask(waits)
    assert waits == [3.0]


async def test_a_context_overflow_is_told_apart_and_not_tried_again(serve: Serve) -> None:
    server = serve(replies.context_overflow())
    with pytest.raises(ContextOverflow, match="maximum context length"):
        await _ask()
    assert len(server.requests) == 1


async def _stream() -> list[str]:
    """The tokens that a streaming caller of a node sees."""

    async def no_wait(seconds: float) -> None:
        return None

    async def act(state: MessagesState) -> dict[str, Any]:
        answer = await ask(
            load_chat_model("openai:gpt-test"), state["messages"], Settings(), sleep=no_wait
        )
        return {"messages": [answer.message]}

    builder = StateGraph(MessagesState)
    builder.add_node("act", act)
    builder.add_edge(START, "act")
    stream = builder.compile().astream(MessagesState(messages=PROMPT), stream_mode="messages")
    return [str(one[0].text) async for one in stream if isinstance(one, tuple)]


async def test_tokens_stream(serve: Serve) -> None:
    server = serve(text("It is noon."))
    assert [one for one in await _stream() if one] == ["It", " is", " noon."]
    assert server.requests[0]["stream"] is True


async def test_a_stream_that_breaks_off_is_asked_for_again(serve: Serve) -> None:
    server = serve(replies.dropped(content="It was long ago", after=3), text("It is noon."))
    assert "".join(await _stream()).endswith("It is noon.")
    assert len(server.requests) == 2


async def test_an_overflow_while_streaming_is_told_apart(serve: Serve) -> None:
    serve(replies.context_overflow())
    with pytest.raises(ContextOverflow):
        await _stream()


def test_one_loaded_model_takes_many_calls_at_once_in_one_event_loop_after_another(
    serve: Serve,
) -> None:
    serve(*[text("noon")] * 21)
    model = load_chat_model("openai:gpt-test")

    async def many(count: int) -> list[str]:
        calls = (ask(model, PROMPT, Settings()) for _ in range(count))
        return [str(one.message.text) for one in await asyncio.gather(*calls)]

    for count in (1, 1, 19):
        assert asyncio.run(many(count)) == ["noon"] * count


async def test_a_failed_embedding_call_is_tried_again_with_backoff(serve: Serve) -> None:
    server = serve()
    server.embedding_errors = [replies.rate_limited("2"), replies.error(500)]
    waits = Waits()
    vectors = await embed_texts(load_embedder("openai:e"), ["one"], RetryPolicy(sleep=waits))
    assert len(vectors) == 1
    assert len(server.embedded) == 3
    assert waits.seconds[0] == 2.0


async def test_an_embedder_that_stays_down_or_gives_a_web_page_is_one_clear_error(
    serve: Serve,
) -> None:
    server = serve()
    server.embedding_errors = [replies.error(503)] * 4
    with pytest.raises(ModelError, match="embedder after 4 tries"):
        await embed_query(load_embedder("openai:e"), "one", RetryPolicy(sleep=Waits()))
    assert len(server.embedded) == 4
    server.embedding_errors = [replies.page()]
    with pytest.raises(ConfigurationError, match=r"is no API for the embedder e .*web page"):
        await embed_query(load_embedder("openai:e"), "one", RetryPolicy(sleep=Waits()))


def test_embeddings_are_sent_as_text_in_one_batch(serve: Serve) -> None:
    server = serve()
    embedder = load_embedder("openai:some-embedder")
    vectors = embedder.embed_documents(["one", "three"])
    assert [vector[0] for vector in vectors] == [3.0, 5.0]
    assert [one["input"] for one in server.embedded] == [["one", "three"]]
    assert embedding_dimension("openai:some-embedder", embedder) == DIMENSION


def test_an_embedder_whose_dimension_cannot_be_measured_is_one_clear_error(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve()
    server.embedding_errors = [replies.error(401), replies.error(503)]
    with pytest.raises(ConfigurationError, match="refuses the key of the embedder e"):
        embedding_dimension("openai:e", load_embedder("openai:e"))
    with pytest.raises(ServiceDown, match="embedder after 1 try"):
        embedding_dimension("openai:e", load_embedder("openai:e"))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(ConfigurationError, match=r"cannot be reached .*set OPENAI_BASE_URL"):
        embedding_dimension("openai:e", load_embedder("openai:e"))


# Answers as models give them: what is read, told to the model, or said.


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


async def test_thinking_is_left_out_and_a_cut_off_answer_recognised(
    serve: Serve, asked: Callable[..., Any]
) -> None:
    serve(text("<think>\nThe sun is high.\n</think>\n\nIt is noon."), text("It", finish="length"))
    answer = await asked()
    assert (answer.message.content, answer.cut_off) == ("It is noon.", False)
    assert (await asked()).cut_off


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
        (tool_call("Other", NOON), "arguments: Input should be"),
        (tool_call("Time", {}), "hour: Field required"),
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
    found, usage = await ask_for(load_chat_model("openai:gpt-test"), PROMPT, Time, Settings())
    assert (found.hour, usage["llm_calls"]) == (12, 2)
    assert told in server.requests[1]["messages"][-1]["content"]
    assert len(server.requests) == 2


async def test_a_refused_form_is_not_asked_for_again(serve: Serve) -> None:
    server = serve(replies.refusal("No."))
    with pytest.raises(ModelRefused):
        await ask_for(load_chat_model("openai:gpt-test"), PROMPT, Time, Settings())
    assert len(server.requests) == 1
