"""Trying again: the one place where a failed call to a provider is repeated."""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

from memory.breaker import Breaker, guarded
from memory.errors import CircadianError, ContextOverflow, ModelError, ServiceDown
from memory.models.failures import Failure, judge, without_secrets

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]

BASE_SECONDS = 0.5
"""Wait before the second try; it doubles with each further one, give or take a half (jitter)."""
LONGEST_WAIT = 30.0
"""Seconds. A provider that asks for a longer wait is not waited for."""

log = logging.getLogger(__name__)


class Again(Exception):
    """A try that may be repeated."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


def retrying(
    attempts: int = 4, sleep: Sleep = asyncio.sleep, jitter: Callable[[], float] = random.random
) -> AsyncRetrying:
    """Exponential backoff with jitter (0..1 from `jitter`), or the provider's Retry-After."""

    def wait(state: RetryCallState) -> float:
        asked = _failure_of(state).retry_after
        backoff = min(LONGEST_WAIT, BASE_SECONDS * 2 ** (state.attempt_number - 1))
        return asked if asked is not None else backoff * (0.5 + jitter())

    return AsyncRetrying(
        stop=stop_after_attempt(attempts),
        wait=wait,
        sleep=sleep,
        retry=retry_if_exception_type(Again),
        before_sleep=_log_wait,
        reraise=True,
    )


async def persist(
    send: Callable[[], Awaitable[T]],
    policy: AsyncRetrying,
    *,
    whom: str = "model",
    breaker: Breaker | None = None,
) -> T:
    """What `send` gives, tried again while it raises Again or a provider's passing failure.

    `breaker` counts all tries together as one call. Cancellation and errors that are bugs pass as
    they are. Raises ContextOverflow, ServiceDown, CircuitOpen and ModelError, one line each,
    without secrets.
    """

    async def one_try() -> T:
        try:
            return await send()
        except (CircadianError, Again):
            raise
        except Exception as error:
            raise _translated(error, whom) from error

    async def all_tries() -> T:
        try:
            answer: T = await policy(one_try)
        except Again as last:
            made = policy.statistics["attempt_number"]
            tries = "1 try" if made == 1 else f"{made} tries"
            line = f"no usable answer from the {whom} after {tries}: {safe(last.failure.reason)}"
            raise _kind(last.failure)(line) from last.__cause__
        return answer

    return await guarded(breaker, all_tries, failure=ServiceDown)


def safe(text: str) -> str:
    """`text` without the secrets of this process's environment."""
    return without_secrets(text, os.environ)


def _translated(error: Exception, whom: str) -> Exception:
    failure = judge(error)
    if failure.verdict == "unknown":
        return error
    if failure.verdict == "overflow":
        return ContextOverflow(f"the prompt is longer than the model takes: {safe(failure.reason)}")
    if failure.verdict == "give_up":
        return _kind(failure)(f"the {whom} call failed: {safe(failure.reason)}")
    if failure.retry_after is not None and failure.retry_after > LONGEST_WAIT:
        wait = f"the provider asks to wait {failure.retry_after:.0f} s"
        return _kind(failure)(f"the {whom} call failed, {wait}: {safe(failure.reason)}")
    return Again(failure)


def _kind(failure: Failure) -> type[ModelError]:
    return ServiceDown if failure.down else ModelError


def _failure_of(state: RetryCallState) -> Failure:
    error = state.outcome.exception() if state.outcome is not None else None
    return error.failure if isinstance(error, Again) else Failure("again", "")


def _log_wait(state: RetryCallState) -> None:
    wait = state.next_action.sleep if state.next_action is not None else 0.0
    log.warning("model call: %s; next try in %.1f s", safe(_failure_of(state).reason), wait)
