"""The one place where chat models are called: with retries, behind a breaker, and counted."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError
from tenacity import AsyncRetrying

from memory import telemetry
from memory.errors import ModelError, explained
from memory.models.breaker import Breaker
from memory.models.retry import Again, Failure, Sleep, persist, retrying
from memory.records import Loop, Usage
from memory.text import approximate_tokens, safe


def total(one: Usage, other: Usage) -> Usage:
    """The sum of both."""
    return {
        "llm_calls": one["llm_calls"] + other["llm_calls"],
        "tokens": one["tokens"] + other["tokens"],
    }


def in_vain(error: ModelError) -> Usage:
    """The cost of answers that could not be used."""
    return {"llm_calls": error.llm_calls, "tokens": error.tokens}


def charged(loop: Loop, usage: Usage) -> Loop:
    """The tick's loop with `usage` added to its own."""
    return {
        **loop,
        "llm_calls": loop["llm_calls"] + usage["llm_calls"],
        "tokens": loop["tokens"] + usage["tokens"],
    }


T = TypeVar("T", bound=BaseModel)

Send = Callable[[], Awaitable[AIMessage]]

CORRECTIONS = 2
"""How often a model is shown why its structured answer does not fit."""


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
    calls: bool = True,
    config: RunnableConfig | None = None,
    breaker: Breaker | None = None,
    attempts: int = 4,
    sleep: Sleep = asyncio.sleep,
    jitter: Callable[[], float] = random.random,
) -> Answer:
    """Ask the model. `config` carries the callbacks that stream tokens.

    Without `calls` the model is to answer in words. Its tools stay in the prompt where it can be
    told so, because the beginning of the prompt is what a provider's cache keeps.

    Rate limits, 5xx, dropped connections, time limits, broken bodies, empty answers and tool calls
    whose arguments are no JSON are tried again, at most `attempts` times in all, after exponential
    backoff with jitter (0..1 from `jitter`), or after the provider's Retry-After. For `breaker`
    all that is one call.

    Raises:
        ContextOverflow: the prompt is longer than the model takes. Never tried again.
        CircuitOpen: the model is left alone; no call was made.
        ModelError: no usable answer. One line, without secrets; it says what was spent.
    """
    closing = {} if calls else _NO_CALLS.get(model._llm_type)
    runnable = model if not tools or closing is None else model.bind_tools(list(tools), **closing)

    async def send() -> AIMessage:
        return await runnable.ainvoke(list(messages), config)

    meter = _Meter(model, messages, tools)
    answer = await _answer(send, meter, retrying(attempts, sleep, jitter), breaker)
    if calls or runnable is model or str(answer.message.text).strip():
        return answer
    # A server that does not know the option, such as some behind OpenAI's protocol.
    plain = await ask(model, messages, config=config, breaker=breaker)
    return Answer(plain.message, total(answer.usage, plain.usage))


_NO_CALLS: Mapping[str, dict[str, Any]] = {
    "openai-chat": {"tool_choice": "none"},
    "azure-openai-chat": {"tool_choice": "none"},
    "anthropic-chat": {"tool_choice": {"type": "none"}},
}
"""Kind of model -> the option with which it keeps its tools and calls none. Others are asked
without tools."""


async def ask_for(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    schema: type[T],
    *,
    config: RunnableConfig | None = None,
    breaker: Breaker | None = None,
    attempts: int = 4,
    sleep: Sleep = asyncio.sleep,
    jitter: Callable[[], float] = random.random,
) -> tuple[T, Usage]:
    """Ask for an answer in the form of `schema`, through a bound tool of that name.

    An answer that does not fit is shown to the model with what is wrong, at most twice. The usage
    covers all calls. Errors and `breaker` as in `ask`; ModelError too when no answer fits.
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
        meter = _Meter(model, shown)
        try:
            answer = await _answer(send, meter, retrying(attempts, sleep, jitter), breaker)
        except ModelError as error:
            raise _charged(error, spent) from error.__cause__
        spent = total(spent, answer.usage)
        try:
            return schema.model_validate(_arguments(answer.message, schema)), spent
        except ValidationError as error:
            problem = _explained(error)
        shown = [*shown, answer.message, *_corrections(answer.message, schema, problem)]
    unfit = ModelError(f"the model's {schema.__name__} does not fit: {safe(problem)}")
    raise _charged(unfit, spent)


def _charged(error: ModelError, spent: Usage) -> ModelError:
    """The error, with what was spent beside what it says already."""
    error.llm_calls += spent["llm_calls"]
    error.tokens += spent["tokens"]
    return error


@dataclass
class _Meter:
    """Adds up what the answers to one prompt cost."""

    model: BaseChatModel
    prompt: Sequence[BaseMessage]
    tools: Sequence[BaseTool] = ()
    calls: int = 0
    read: int = 0
    """Tokens of the prompt, once for each answer."""
    written: int = 0
    """Tokens of the answers."""

    @property
    def usage(self) -> Usage:
        return {"llm_calls": self.calls, "tokens": self.read + self.written}

    def add(self, message: AIMessage) -> None:
        """Count an answer: as the provider reports it, else by an approximation."""
        self.calls += 1
        reported = message.usage_metadata
        if reported and reported["total_tokens"]:
            self.read += reported["total_tokens"] - reported["output_tokens"]
            self.written += reported["output_tokens"]
        else:
            self.read += approximate_tokens(self.prompt, tools=self.tools)
            self.written += approximate_tokens([message])


async def _answer(
    send: Send, meter: _Meter, policy: AsyncRetrying, breaker: Breaker | None
) -> Answer:
    async def usable() -> AIMessage:
        message = await send()
        meter.add(message)
        if message.invalid_tool_calls:
            names = ", ".join(str(call.get("name")) for call in message.invalid_tool_calls)
            raise Again(Failure("again", f"tool calls whose arguments are not JSON: {names}"))
        if not message.tool_calls and not str(message.text).strip():
            raise Again(Failure("again", "an empty answer"))
        return message

    with telemetry.chat(meter.model) as span:
        try:
            message = await persist(usable, policy, breaker=breaker)
        except ModelError as error:
            telemetry.MODEL_CALLS.labels("failed").inc()
            raise _charged(error, meter.usage) from error.__cause__
        finally:
            telemetry.MODEL_CALLS.labels("answered").inc(meter.calls)
            telemetry.TOKENS.inc(meter.read + meter.written)
            span.set(
                {
                    "gen_ai.usage.input_tokens": meter.read,
                    "gen_ai.usage.output_tokens": meter.written,
                    "circadian.llm_calls": meter.calls,
                }
            )
    return Answer(message, meter.usage)


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
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(explained(found))
