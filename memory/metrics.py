"""Prometheus metrics of a process. Every process counts; a server shows them.

Labels have few values: never a user, an agent or a text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from prometheus_client import Counter, Gauge, Histogram, generate_latest

P = ParamSpec("P")
T = TypeVar("T")

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

TICKS = Counter("circadian_ticks", "Ticks that ended.", ["context_type"])
TICK_FAILURES = Counter("circadian_tick_failures", "Ticks that failed; the event went back.")
MODEL_CALLS = Counter(
    "circadian_model_calls",
    "Answers of the chat model, usable or not, and calls that came to none.",
    ["outcome"],
)
TOKENS = Counter("circadian_tokens", "Tokens that the chat model read and wrote.")
TOOL_CALLS = Counter("circadian_tool_calls", "Tool calls.", ["outcome"])
NIGHTS = Counter("circadian_nights", "Nights that ended.", ["status"])
NIGHT_OPERATIONS = Counter("circadian_night_operations", "Operations that nights decided.")
RECALL_SECONDS = Histogram(
    "circadian_recall_seconds",
    "Seconds that a recall took.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5),
)
EVENTS_WAITING = Gauge("circadian_events_waiting", "Events in all inboxes, unanswered.")
SERVICE_UP = Gauge("circadian_service_up", "1 where a service answers, 0 where not.", ["service"])


def timed(
    histogram: Histogram,
) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Awaitable[T]]]:
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
