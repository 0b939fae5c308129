"""The real OpenAI client against a server on loopback: every way a call can go."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel

from memory.errors import ConfigurationError, ContextOverflow, ModelError, ServiceDown
from memory.models.client import Answer, ask, ask_for
from memory.models.embed import embed_query, embed_texts
from memory.models.registry import choose_model, embedding_dimension, load_chat_model, load_embedder
from memory.models.retry import retrying
from memory.settings import Settings
from tests.support import openai_server as server_replies
from tests.support.openai_server import DIMENSION, Reply, Serve, text, tool_call
from tests.support.scripted import Waits

PROMPT: list[AnyMessage] = [
    SystemMessage("You tell the time."),
    HumanMessage("What time is it?", name="Alice"),
]


class Time(BaseModel):
    """The time."""

    hour: int
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
        server_replies.error(500),
        server_replies.error(503, "overloaded"),
        server_replies.error(429, "slow down"),
        server_replies.dropped(),
        server_replies.malformed(),
    ],
    ids=["500", "503", "429", "dropped", "malformed body"],
)
async def test_what_may_pass_is_tried_again_by_us_alone(serve: Serve, failing: Reply) -> None:
    server, waits = serve(failing, failing, text("noon")), list[float]()
    answer = await _ask(waits, tools=[clock])
    assert answer.message.text == "noon"
    assert len(server.requests) == 3
    assert len(waits) == 2


async def test_the_wait_is_the_one_the_provider_asks_for(serve: Serve) -> None:
    serve(server_replies.rate_limited("3"), text("noon"))
    waits: list[float] = []
    await _ask(waits)
    assert waits == [3.0]


async def test_a_context_overflow_is_told_apart_and_not_tried_again(serve: Serve) -> None:
    server = serve(server_replies.context_overflow())
    with pytest.raises(ContextOverflow, match="maximum context length"):
        await _ask()
    assert len(server.requests) == 1


async def test_an_error_in_a_good_answers_body_is_judged_by_its_code(serve: Serve) -> None:
    body = {"message": "upstream failed", "code": 502}
    server = serve(Reply("error", status=200, error=body), text("noon"))
    assert (await _ask()).message.text == "noon"
    assert len(server.requests) == 2


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
    server = serve(server_replies.dropped(content="It was long ago", after=3), text("It is noon."))
    assert "".join(await _stream()).endswith("It is noon.")
    assert len(server.requests) == 2


async def test_an_overflow_while_streaming_is_told_apart(serve: Serve) -> None:
    serve(server_replies.context_overflow())
    with pytest.raises(ContextOverflow):
        await _stream()


def test_one_loaded_model_works_in_one_event_loop_after_another(serve: Serve) -> None:
    serve(text("one"), text("two"), text("three"))
    model = load_chat_model("openai:gpt-test")
    answers = [asyncio.run(ask(model, PROMPT, Settings())).message.text for _ in range(3)]
    assert answers == ["one", "two", "three"]


async def test_many_calls_at_once_share_one_model(serve: Serve) -> None:
    serve(*[text("noon")] * 20)
    model = load_chat_model("openai:gpt-test")
    answers = await asyncio.gather(*(ask(model, PROMPT, Settings()) for _ in range(20)))
    assert [str(one.message.text) for one in answers] == ["noon"] * 20


async def test_the_default_model_is_openais_when_a_key_is_set(serve: Serve) -> None:
    server = serve(text("noon"))
    await ask(choose_model(None), PROMPT, Settings())
    assert server.requests[0]["model"] == "gpt-4o-mini"


async def test_a_failed_embedding_call_is_tried_again_with_backoff(serve: Serve) -> None:
    server = serve()
    server.embedding_errors = [server_replies.rate_limited("2"), server_replies.error(500)]
    waits = Waits()
    vectors = await embed_texts(load_embedder("openai:e"), ["one"], retrying(sleep=waits))
    assert len(vectors) == 1
    assert len(server.embedded) == 3
    assert waits.seconds[0] == 2.0


async def test_an_embedder_that_stays_down_is_one_clear_error(serve: Serve) -> None:
    server = serve()
    server.embedding_errors = [server_replies.error(503)] * 4
    with pytest.raises(ModelError, match="embedder after 4 tries"):
        await embed_query(load_embedder("openai:e"), "one", retrying(sleep=Waits()))
    assert len(server.embedded) == 4


def test_embeddings_are_sent_as_text_in_one_batch(serve: Serve) -> None:
    server = serve()
    embedder = load_embedder("openai:some-embedder")
    vectors = embedder.embed_documents(["one", "three"])
    assert [vector[0] for vector in vectors] == [3.0, 5.0]
    assert [one["input"] for one in server.embedded] == [["one", "three"]]
    assert embedding_dimension("openai:some-embedder", embedder) == DIMENSION


async def test_a_web_page_in_place_of_vectors_names_the_address_to_set(serve: Serve) -> None:
    server = serve()
    server.embedding_errors = [server_replies.page()]
    with pytest.raises(ConfigurationError, match=r"is no API for the embedder e .*web page"):
        await embed_query(load_embedder("openai:e"), "one", retrying(sleep=Waits()))


def test_an_embedder_whose_dimension_cannot_be_measured_is_one_clear_error(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve()
    server.embedding_errors = [server_replies.error(401), server_replies.error(503)]
    with pytest.raises(ConfigurationError, match="refuses the key of the embedder e"):
        embedding_dimension("openai:e", load_embedder("openai:e"))
    with pytest.raises(ServiceDown, match="embedder after 1 try"):
        embedding_dimension("openai:e", load_embedder("openai:e"))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(ConfigurationError, match=r"cannot be reached .*set OPENAI_BASE_URL"):
        embedding_dimension("openai:e", load_embedder("openai:e"))
