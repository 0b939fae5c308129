"""Spans for OpenTelemetry, where its package is installed; else nothing, at no cost.

Names are those of its conventions for generative AI. No attribute holds what anybody said: the
names of models and tools, numbers, ids and types of errors only.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, contextmanager, nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeVar

from langchain_core.language_models import BaseChatModel
from langgraph.errors import GraphBubbleUp

from memory.models.naming import named

if TYPE_CHECKING:
    from opentelemetry.trace import Span as OtelSpan
    from opentelemetry.trace import Tracer

T = TypeVar("T")
Attributes = Mapping[str, str | int | bool]
_RUN = "invoke_agent circadian"


class Span:
    """A piece of work under way; without OpenTelemetry what is set is lost."""

    def __init__(self, otel: OtelSpan | None = None) -> None:
        self._otel = otel

    def set(self, attributes: Attributes) -> None:
        """Add attributes."""
        if self._otel is not None:
            self._otel.set_attributes(attributes)

    def current(self) -> AbstractContextManager[object]:
        """Inside, new spans are its children."""
        if self._otel is None:
            return nullcontext()
        from opentelemetry import trace

        return trace.use_span(self._otel, record_exception=False, set_status_on_exception=False)

    def failed(self, kind: str) -> None:
        """Say that it failed, and with which kind of error; its text may quote a message."""
        if self._otel is None:
            return
        from opentelemetry.trace import Status, StatusCode

        self._otel.set_attribute("error.type", kind)
        self._otel.set_status(Status(StatusCode.ERROR, kind))

    def end(self) -> None:
        """It is over."""
        if self._otel is not None:
            self._otel.end()


@contextmanager
def span(
    name: str, attributes: Attributes, *, kind: Literal["internal", "client"] = "internal"
) -> Iterator[Span]:
    """A span around the work inside; an error is told and passes."""
    with _started(name, attributes, kind) as made, made.current():
        yield made


async def spanned(name: str, attributes: Attributes, parts: AsyncGenerator[T]) -> AsyncGenerator[T]:
    """What `parts` gives, in a span. Between two parts the span is not the consumer's.

    A generator may be gone on with in another task, and be closed in a third: a context that it
    left behind could not be taken back.
    """
    with _started(name, attributes, "internal") as made:
        async with aclosing(parts):
            while True:
                with made.current():
                    try:
                        part = await anext(parts)
                    except StopAsyncIteration:
                        return
                yield part


def chat(model: BaseChatModel) -> AbstractContextManager[Span]:
    """A call of a chat model, all its tries together."""
    provider, *rest = named(model)
    name = (rest or [provider])[0]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": name,
    }
    return span(f"chat {name}", attributes, kind="client")


def execute_tool(name: str, call_id: str | None) -> AbstractContextManager[Span]:
    """A call of a tool."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.type": "function",
    }
    return span(
        f"execute_tool {name}",
        attributes | ({"gen_ai.tool.call.id": call_id} if call_id else {}),
    )


def invoke_agent(thread: str) -> AbstractContextManager[Span]:
    """A run of an agent."""
    return span(_RUN, _of_run(thread))


def invoke_agent_stream(thread: str, parts: AsyncGenerator[T]) -> AsyncGenerator[T]:
    """A run of an agent that is streamed."""
    return spanned(_RUN, _of_run(thread), parts)


def night_step(step: str, night: str) -> AbstractContextManager[Span]:
    """A visit of a step of the night."""
    return span(f"circadian.night.{step}", {"circadian.night": night})


def _of_run(thread: str) -> Attributes:
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "circadian",
        "gen_ai.conversation.id": thread,
    }


@contextmanager
def _started(
    name: str, attributes: Attributes, kind: Literal["internal", "client"]
) -> Iterator[Span]:
    tracer = _tracer()
    if tracer is None:
        yield Span()
        return
    from opentelemetry.trace import SpanKind

    made = Span(
        tracer.start_span(
            name,
            kind=SpanKind.CLIENT if kind == "client" else SpanKind.INTERNAL,
            attributes=attributes,
        )
    )
    try:
        yield made
    except GraphBubbleUp:
        # A question to a person, which ends the step, is no failure.
        raise
    except Exception as error:
        made.failed(type(error).__name__)
        raise
    finally:
        made.end()


@lru_cache(maxsize=1)
def _tracer() -> Tracer | None:
    """The one of the process; which provider it reports to may be settled later."""
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("circadian")
