"""Telemetry: spans for OpenTelemetry, and metrics for Prometheus.

Where no application has set up OpenTelemetry's SDK, a span does nothing. Names follow its
conventions for generative AI. Attributes hold names of models and tools, numbers, ids and types of
errors; never anything that a person said. Metrics are counted in every process, and shown by a
server; their labels have few values: never a user, an agent or a text.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, contextmanager
from functools import wraps
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeVar

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from prometheus_client import Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


def called(model: BaseChatModel) -> str:
    """`provider:name`, as `openai:gpt-4o-mini`; the provider alone if the model has no name."""
    return ":".join(named(model))


def named(model: BaseChatModel) -> list[str]:
    """[provider, name], or [provider]."""
    provider = model._llm_type.removesuffix("-chat")
    for attribute in ("model_name", "model", "model_id"):
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return [provider, value]
    return [provider]


T = TypeVar("T")
_RUN = "invoke_agent circadian"

TRACER = trace.get_tracer("circadian")
"""Asks the provider that the process sets up, at any time."""


@contextmanager
def span(
    name: str, attributes: Mapping[str, str], *, kind: SpanKind = SpanKind.INTERNAL
) -> Iterator[Span]:
    """A span around a block. An error in it is recorded and raised."""
    with _started(name, attributes, kind) as made, _current(made):
        yield made


def failed(span: Span, kind: str) -> None:
    """Record a failure by its kind of error. The error's text may quote a message: left out."""
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, kind))


def chat(model: BaseChatModel) -> AbstractContextManager[Span]:
    """A span for a call of a chat model, all attempts together."""
    provider, *rest = named(model)
    name = (rest or [provider])[0]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": name,
    }
    return span(f"chat {name}", attributes, kind=SpanKind.CLIENT)


def execute_tool(name: str, call_id: str | None) -> AbstractContextManager[Span]:
    """A span for a tool call."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.type": "function",
    }
    return span(
        f"execute_tool {name}", attributes | ({"gen_ai.tool.call.id": call_id} if call_id else {})
    )


def invoke_agent(thread: str) -> AbstractContextManager[Span]:
    """A span for a run of an agent."""
    return span(_RUN, _of_run(thread))


async def invoke_agent_stream(thread: str, parts: AsyncGenerator[T]) -> AsyncGenerator[T]:
    """Stream a run of an agent in a span, which is not the current span of the consumer: one task
    may resume a generator and another close it.
    """
    with _started(_RUN, _of_run(thread)) as made:
        async with aclosing(parts):
            while True:
                with _current(made):
                    try:
                        part = await anext(parts)
                    except StopAsyncIteration:
                        return
                yield part


def night_step(step: str, night: str) -> AbstractContextManager[Span]:
    """A span for one visit to a step of the night."""
    return span(f"circadian.night.{step}", {"circadian.night": night})


def _of_run(thread: str) -> dict[str, str]:
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "circadian",
        "gen_ai.conversation.id": thread,
    }


def _current(span: Span) -> AbstractContextManager[Span]:
    """Make a span the current one: spans begun inside are its children."""
    return trace.use_span(span, record_exception=False, set_status_on_exception=False)


@contextmanager
def _started(
    name: str, attributes: Mapping[str, str], kind: SpanKind = SpanKind.INTERNAL
) -> Iterator[Span]:
    from langgraph.errors import GraphBubbleUp

    made = TRACER.start_span(name, kind=kind, attributes=attributes)
    try:
        yield made
    except GraphBubbleUp:
        # An interrupt, such as a question to a person, is no failure.
        raise
    except Exception as error:
        failed(made, type(error).__name__)
        raise
    finally:
        made.end()


# Metrics.


P = ParamSpec("P")
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
TICKS = Counter("circadian_ticks", "Ticks that ended.", ["context_type"])
TICK_SECONDS = Histogram(
    "circadian_tick_seconds",
    "Seconds from the beginning of a tick to its record.",
    ["context_type"],
    buckets=(0.05, 0.25, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0),
)
TICK_FAILURES = Counter("circadian_tick_failures", "Ticks that failed; the event went back.")

MODEL_CALLS = Counter(
    "circadian_model_calls",
    "Answers of the chat model, usable or not, and calls without an answer.",
    ["outcome"],
)

MODEL_SECONDS = Histogram(
    "circadian_model_call_seconds",
    "Seconds of a call of the chat model, all attempts together.",
    ["model"],
    buckets=(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0),
)

TOKENS = Counter(
    "circadian_tokens", "Tokens that the chat model read and wrote.", ["direction", "model"]
)
"""Direction: input | output."""
CACHED_TOKENS = Counter(
    "circadian_cached_tokens",
    "Those of the tokens read that came from the provider's cache, as far as it says so.",
    ["model"],
)
TOOL_CALLS = Counter("circadian_tool_calls", "Tool calls.", ["outcome"])
NIGHTS = Counter("circadian_nights", "Nights that ended.", ["status"])
NIGHT_SECONDS = Histogram(
    "circadian_night_seconds",
    "Seconds from the beginning of a night to its end, or to the question whether to apply it.",
    buckets=(1, 5, 15, 60, 180, 600, 1_800, 3_600, 7_200, 14_400),
)
NIGHT_OPERATIONS = Counter("circadian_night_operations", "Operations that nights decided.")

RECALL_SECONDS = Histogram(
    "circadian_recall_seconds",
    "Seconds that a recall took.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5),
)

EVENTS_WAITING = Gauge("circadian_events_waiting", "Events in all inboxes, unanswered.")
OLDEST_EVENT = Gauge(
    "circadian_oldest_event_seconds", "Age of the oldest unanswered event; 0 without one."
)
QUESTIONS_WAITING = Gauge(
    "circadian_questions_waiting", "Questions of awake agents that wait for a person."
)
THROTTLED = Counter(
    "circadian_throttled_requests", "Requests refused with 429: too many, or no tokens left."
)
SERVICE_UP = Gauge("circadian_service_up", "1 if a service answers, 0 if not.", ["service"])


class ModelUse(NamedTuple):
    """What this process has asked of its chat models so far."""

    calls: int
    """Answers, usable or not."""
    input: int
    """Tokens of their prompts: as the provider reports them, else by an approximation."""
    output: int


def model_use() -> ModelUse:
    """The use so far."""
    calls = _total(MODEL_CALLS, outcome="answered")
    return ModelUse(calls, *(_total(TOKENS, direction=way) for way in ("input", "output")))


def _total(counter: Counter, **labels: str) -> int:
    samples = (sample for metric in counter.collect() for sample in metric.samples)
    return int(
        sum(
            sample.value
            for sample in samples
            if sample.name.endswith("_total") and labels.items() <= sample.labels.items()
        )
    )


def timed(histogram: Histogram) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Awaitable[T]]]:
    """Observe the duration of each call in seconds, also of calls that fail."""

    def observed(work: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
        @wraps(work)
        async def run(*args: P.args, **kwargs: P.kwargs) -> T:
            with histogram.time():
                return await work(*args, **kwargs)

        return run

    return observed


def exposition() -> bytes:
    """All metrics in Prometheus' text format."""
    return generate_latest()
