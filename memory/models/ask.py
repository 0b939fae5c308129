"""The one place where models are called, and where a failed call is tried again."""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

from memory.errors import CircadianError, ContextOverflow, ModelError
from memory.models.failures import Failure, judge, without_secrets
from memory.records import Usage
from memory.tokens import approximate_tokens

T = TypeVar("T", bound=BaseModel)
Sleep = Callable[[float], Awaitable[None]]
Send = Callable[[], Awaitable[AIMessage]]

BASE_SECONDS = 0.5
"""Wait before the second try; it doubles with each further one, give or take a half (jitter)."""
LONGEST_WAIT = 30.0
"""Seconds. A provider that asks for a longer wait is not waited for."""
CORRECTIONS = 2
"""How often a model is shown why its structured answer does not fit."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """A usable answer: text, tool calls with valid JSON, or both."""

    message: AIMessage
    usage: Usage
    """`llm_calls` counts the calls that got an answer, unusable ones included, as they are paid
    for; tries that got none (429, 5xx, a dropped connection) are not in it."""


async def ask(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    *,
    tools: Sequence[BaseTool] = (),
    config: RunnableConfig | None = None,
    attempts: int = 4,
    sleep: Sleep = asyncio.sleep,
    jitter: Callable[[], float] = random.random,
) -> Answer:
    """Ask the model. `config` carries the callbacks that stream tokens.

    Rate limits, 5xx, dropped connections, time limits, broken bodies, empty answers and tool calls
    whose arguments are no JSON are tried again, at most `attempts` times in all, after exponential
    backoff with jitter (0..1 from `jitter`), or after the provider's Retry-After.

    Raises:
        ContextOverflow: the prompt is longer than the model takes. Never tried again.
        ModelError: no usable answer. One line, without secrets.
    """
    runnable = model.bind_tools(list(tools)) if tools else model

    async def send() -> AIMessage:
        return await runnable.ainvoke(list(messages), config)

    return await _persist(send, _Meter(messages, tools), _retrying(attempts, sleep, jitter))


async def ask_for(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    schema: type[T],
    *,
    config: RunnableConfig | None = None,
    attempts: int = 4,
    sleep: Sleep = asyncio.sleep,
    jitter: Callable[[], float] = random.random,
) -> tuple[T, Usage]:
    """Ask for an answer in the form of `schema`, through a bound tool of that name.

    An answer that does not fit is shown to the model with what is wrong, at most twice. The usage
    covers all calls. Errors as `ask`; ModelError too when no answer fits.
    """
    form = model.with_structured_output(schema, method="function_calling", include_raw=True)
    shown = list(messages)
    spent: Usage = {"llm_calls": 0, "tokens": 0}
    problem = ""

    async def send() -> AIMessage:
        given: Any = await form.ainvoke(shown, config)
        message: AIMessage = given["raw"]
        return message

    for _ in range(1 + CORRECTIONS):
        meter = _Meter(shown)
        answer = await _persist(send, meter, _retrying(attempts, sleep, jitter))
        spent = _sum(spent, answer.usage)
        try:
            return schema.model_validate(_arguments(answer.message, schema)), spent
        except ValidationError as error:
            problem = _explained(error)
        shown = [*shown, answer.message, *_corrections(answer.message, schema, problem)]
    raise ModelError(f"the model's {schema.__name__} does not fit: {_safe(problem)}")


@dataclass
class _Meter:
    """Adds up what the answers to one prompt cost."""

    prompt: Sequence[BaseMessage]
    tools: Sequence[BaseTool] = ()
    usage: Usage = field(default_factory=lambda: Usage(llm_calls=0, tokens=0))

    def add(self, message: AIMessage) -> None:
        reported = message.usage_metadata["total_tokens"] if message.usage_metadata else 0
        tokens = reported or self._approximate(message)
        self.usage = _sum(self.usage, {"llm_calls": 1, "tokens": tokens})

    def _approximate(self, message: AIMessage) -> int:
        return approximate_tokens(self.prompt, tools=self.tools) + approximate_tokens([message])


class _Again(Exception):
    """A try that may be repeated."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


def _retrying(attempts: int, sleep: Sleep, jitter: Callable[[], float]) -> AsyncRetrying:
    def wait(state: RetryCallState) -> float:
        asked = _failure_of(state).retry_after
        backoff = min(LONGEST_WAIT, BASE_SECONDS * 2 ** (state.attempt_number - 1))
        return asked if asked is not None else backoff * (0.5 + jitter())

    return AsyncRetrying(
        stop=stop_after_attempt(attempts),
        wait=wait,
        sleep=sleep,
        retry=retry_if_exception_type(_Again),
        before_sleep=_log_wait,
        reraise=True,
    )


async def _persist(send: Send, meter: _Meter, retrying: AsyncRetrying) -> Answer:
    try:
        message: AIMessage = await retrying(_usable, send, meter)
    except _Again as last:
        tries = retrying.statistics["attempt_number"]
        reason = _safe(last.failure.reason)
        line = f"no usable answer from the model after {tries} tr{'y' if tries == 1 else 'ies'}"
        raise ModelError(f"{line}: {reason}") from last.__cause__
    return Answer(message, meter.usage)


async def _usable(send: Send, meter: _Meter) -> AIMessage:
    """One try. Cancellation and errors that are bugs pass as they are."""
    try:
        message = await send()
    except CircadianError:
        raise
    except Exception as error:
        failure = judge(error)
        if failure.verdict == "unknown":
            raise
        raise _translated(failure) from error
    meter.add(message)
    if message.invalid_tool_calls:
        names = ", ".join(str(call.get("name")) for call in message.invalid_tool_calls)
        raise _Again(Failure("again", f"tool calls whose arguments are not JSON: {names}"))
    if not message.tool_calls and not str(message.text).strip():
        raise _Again(Failure("again", "an empty answer"))
    return message


def _translated(failure: Failure) -> Exception:
    if failure.verdict == "overflow":
        return ContextOverflow(
            f"the prompt is longer than the model takes: {_safe(failure.reason)}"
        )
    if failure.verdict == "give_up":
        return ModelError(f"the model call failed: {_safe(failure.reason)}")
    if failure.retry_after is not None and failure.retry_after > LONGEST_WAIT:
        wait = f"the provider asks to wait {failure.retry_after:.0f} s"
        return ModelError(f"the model call failed, {wait}: {_safe(failure.reason)}")
    return _Again(failure)


def _failure_of(state: RetryCallState) -> Failure:
    error = state.outcome.exception() if state.outcome is not None else None
    return error.failure if isinstance(error, _Again) else Failure("again", "")


def _log_wait(state: RetryCallState) -> None:
    wait = state.next_action.sleep if state.next_action is not None else 0.0
    log.warning("model call: %s; next try in %.1f s", _safe(_failure_of(state).reason), wait)


def _arguments(message: AIMessage, schema: type[BaseModel]) -> Any:
    """The arguments of the first call of the schema's tool; None, which fits nothing, if none."""
    named = (call["args"] for call in message.tool_calls if call["name"] == schema.__name__)
    return next(named, None)


def _corrections(
    message: AIMessage, schema: type[BaseModel], problem: str
) -> list[ToolMessage] | list[HumanMessage]:
    """What is wrong, for the model: an answer to each of its calls, or a message if none."""
    text = f"This does not fit: {problem}. Call {schema.__name__} again with arguments that fit."
    if not message.tool_calls:
        return [HumanMessage(text)]
    return [
        ToolMessage(text, tool_call_id=call["id"] or "", name=call["name"], status="error")
        for call in message.tool_calls
    ]


def _explained(error: ValidationError) -> str:
    """The first problems, with their places, on one line."""
    found = error.errors(include_url=False, include_input=False, include_context=False)[:5]
    return "; ".join(
        f"{'.'.join(str(part) for part in one['loc']) or 'arguments'}: {one['msg']}"
        for one in found
    )


def _sum(one: Usage, other: Usage) -> Usage:
    return {
        "llm_calls": one["llm_calls"] + other["llm_calls"],
        "tokens": one["tokens"] + other["tokens"],
    }


def _safe(text: str) -> str:
    return without_secrets(text, os.environ)
