"""Spans: what they are called and hold, and what they never hold."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.errors import GraphInterrupt
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from memory import telemetry
from memory.errors import ModelError
from memory.models.client import ask
from memory.settings import Settings
from tests.support.agents import Opening, night_model, said
from tests.support.scripted import Waits, scripted

SECRET = "the winner is Walrus"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(telemetry, "TRACER", provider.get_tracer("circadian"))
    return exporter


def only(spans: InMemorySpanExporter, name: str) -> ReadableSpan:
    (found,) = [one for one in spans.get_finished_spans() if one.name == name]
    return found


async def test_a_model_call_is_a_span_with_its_tokens(spans: InMemorySpanExporter) -> None:
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    model = scripted("", AIMessage(SECRET, usage_metadata=usage))
    await ask(model, [HumanMessage(SECRET)], Settings(), sleep=Waits())
    chat = only(spans, "chat scripted")
    assert chat.kind == trace.SpanKind.CLIENT
    attributes: dict[str, Any] = dict(chat.attributes or {})
    assert attributes.pop("gen_ai.usage.input_tokens") > 10, "the empty answer is paid for too"
    assert attributes.pop("gen_ai.usage.output_tokens") >= 5
    assert attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "scripted",
        "circadian.llm_calls": 2,
    }
    assert chat.status.is_unset


async def test_reported_tokens_stand_as_they_are(spans: InMemorySpanExporter) -> None:
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    await ask(
        scripted(AIMessage("noon", usage_metadata=usage)), [HumanMessage("When?")], Settings()
    )
    attributes = only(spans, "chat scripted").attributes or {}
    assert attributes["gen_ai.usage.input_tokens"] == 10
    assert attributes["gen_ai.usage.output_tokens"] == 5


async def test_a_failed_call_says_so_by_the_type_of_the_error(spans: InMemorySpanExporter) -> None:
    with pytest.raises(ModelError):
        await ask(scripted(ModelError(SECRET)), [HumanMessage("When?")], Settings())
    chat = only(spans, "chat scripted")
    assert chat.status.status_code == trace.StatusCode.ERROR
    assert chat.status.description == "ModelError"
    assert (chat.attributes or {})["error.type"] == "ModelError"
    assert chat.events == ()


def test_a_tool_call_is_a_span_in_its_runs(spans: InMemorySpanExporter) -> None:
    with telemetry.invoke_agent("thread-1"), telemetry.execute_tool("add_goal", "c1") as tool:
        telemetry.failed(tool, "tool_error")
    run, call = only(spans, "invoke_agent circadian"), only(spans, "execute_tool add_goal")
    assert call.parent == run.context
    assert dict(call.attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add_goal",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "c1",
        "error.type": "tool_error",
    }
    assert run.status.is_unset


@pytest.mark.parametrize("passing", [GraphInterrupt(()), asyncio.CancelledError()])
def test_a_question_or_a_cancelled_step_is_no_error(
    spans: InMemorySpanExporter, passing: BaseException
) -> None:
    with pytest.raises(type(passing)), telemetry.execute_tool("add_goal", None):
        raise passing
    assert only(spans, "execute_tool add_goal").status.is_unset


async def parts() -> AsyncGenerator[int]:
    for number in range(3):
        with telemetry.span(f"step {number}", {}):
            await asyncio.sleep(0)
        yield number


async def test_what_a_run_does_stands_below_it_and_nothing_else_does(
    spans: InMemorySpanExporter,
) -> None:
    stream = telemetry.invoke_agent_stream("thread-1", parts())
    # Each part in another task, as a caller from a thread takes them.
    while (part := await asyncio.create_task(_next(stream))) is not None:
        with telemetry.span(f"consumer {part}", {}):
            pass
    run = only(spans, "invoke_agent circadian")
    assert dict(run.attributes or {}) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "circadian",
        "gen_ai.conversation.id": "thread-1",
    }
    for number in range(3):
        step, consumer = only(spans, f"step {number}"), only(spans, f"consumer {number}")
        assert step.parent == run.context
        assert consumer.parent is None


async def _next(stream: AsyncGenerator[int]) -> int | None:
    return await anext(stream, None)


async def test_a_run_that_is_left_early_ends_its_span_without_an_error(
    spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    stream = telemetry.invoke_agent_stream("thread-1", parts())
    assert await asyncio.create_task(_next(stream)) == 0
    await asyncio.create_task(stream.aclose())
    assert only(spans, "invoke_agent circadian").status.is_unset
    assert "detach" not in caplog.text


async def test_a_night_shows_its_steps_and_the_calls_in_them(
    spans: InMemorySpanExporter, opening: Opening
) -> None:
    async with opening(scripted("Hello.", otherwise=night_model)) as agent:
        await agent.ainvoke(said(SECRET))
        spans.clear()
        await agent.ainvoke({"request": "sleep"})
    found = spans.get_finished_spans()
    steps = {one.name: one for one in found if one.name.startswith("circadian.night.")}
    names = ["score_importance", "consolidate", "dream", "prune_links"]
    names += ["consolidate_entities", "write_pages", "prune"]
    assert [name.removeprefix("circadian.night.") for name in steps] == names
    chats = [one for one in found if one.name == "chat scripted"]
    asking = ("score_importance", "consolidate", "consolidate_entities")
    contexts = [steps[f"circadian.night.{name}"].context for name in asking]
    assert [one.parent for one in chats] == contexts
    assert not any("Walrus" in one.to_json() for one in found)
