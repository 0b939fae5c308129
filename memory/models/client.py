"""The one place where chat models are called: with retries, behind a breaker, and counted."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from pydantic import BaseModel, TypeAdapter, ValidationError

from memory import telemetry
from memory.errors import ModelError, ModelRefused, explained
from memory.models.answers import MALFORMED, as_read, ended_by, forms_in, printed_call, refusal_of
from memory.models.retry import (
    Breaker,
    Failure,
    RetryableError,
    RetryPolicy,
    Service,
    Sleep,
    with_retries,
)
from memory.records import Loop, Usage
from memory.settings import Settings
from memory.text import approximate_tokens, safe

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel, LanguageModelInput
    from langchain_core.runnables import Runnable, RunnableConfig
    from langchain_core.tools import BaseTool

log = logging.getLogger("circadian")


def total(first: Usage, second: Usage) -> Usage:
    """The sum of both."""
    return {
        "llm_calls": first["llm_calls"] + second["llm_calls"],
        "tokens": first["tokens"] + second["tokens"],
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

Send = Callable[[Sequence[BaseMessage]], Awaitable[AIMessage]]

CORRECTIONS = 2
"""Most times that a model is told why its structured answer does not fit."""


@dataclass(frozen=True)
class Answer:
    """A usable answer: text without thinking, tool calls, or both.

    A call with unusable arguments is kept to be refused: they say what is wrong (MALFORMED).
    """

    message: AIMessage
    usage: Usage
    """`llm_calls` counts the calls that got an answer, unusable ones included, as they are paid
    for; tries without an answer (429, 5xx, a dropped connection) do not count."""

    @property
    def cut_off(self) -> bool:
        """Whether the output limit ended the answer."""
        return ended_by(self.message) == "length"


async def ask(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    settings: Settings,
    *,
    tools: Sequence[BaseTool] = (),
    calls: bool = True,
    names: Collection[str] = (),
    config: RunnableConfig | None = None,
    breaker: Breaker | None = None,
    attempts: int | None = None,
    sleep: Sleep = asyncio.sleep,
    jitter: Callable[[], float] = random.random,
) -> Answer:
    """Ask the model. `config` carries the callbacks that stream tokens.

    Without `calls` the model is to answer in words. If an option can forbid calls, the tools stay
    in the prompt, because a provider's cache keeps the beginning of the prompt.

    Rate limits, 5xx, dropped connections, time limits and broken bodies are tried again, at most
    `attempts` times in all (default: `model_attempts`), after exponential backoff with `jitter`
    (0..1), or after the provider's Retry-After. For `breaker` all that is one call. An answer that
    is empty, cannot be read, or prints a call of a tool (also of `names`) as text is asked for once
    more.

    Raises as `with_retries`; also ModelRefused, which is never tried again, and ModelError for an
    unusable answer. One line, without secrets; it says what was spent.
    """
    closing = {} if calls else _NO_CALLS.get(model._llm_type)
    runnable = model if not tools or closing is None else _with_tools(model, tools, closing)

    async def send(shown: Sequence[BaseMessage]) -> AIMessage:
        return await runnable.ainvoke(list(shown), config)

    policy = RetryPolicy(attempts or settings.model_attempts, sleep, jitter)
    question = _Question(model, messages, policy, settings.model_timeout, breaker, tools, names)
    answer = await _answer(send, question)
    if calls or runnable is model or str(answer.message.text).strip():
        return answer
    # A server that does not know the option, such as some behind OpenAI's protocol.
    plain = await ask(model, messages, settings, config=config, breaker=breaker)
    return Answer(plain.message, total(answer.usage, plain.usage))


def _with_tools(
    model: BaseChatModel, tools: Sequence[BaseTool], options: Mapping[str, Any]
) -> Runnable[LanguageModelInput, AIMessage]:
    """The model with these tools, kept: making the provider's form of them takes long."""
    key = (id(model), repr(options), *((id(tool), tool.description) for tool in tools))
    kept = _with_tools_kept.pop(key, None)
    # An id means the same object as long as that is in use.
    kept = kept or (model, list(tools), model.bind_tools(list(tools), **options))
    _with_tools_kept[key] = kept
    if len(_with_tools_kept) > BOUND:
        _with_tools_kept.popitem(last=False)
    return kept[2]


BOUND = 16
"""Most models with tools that are kept, the last used."""

_with_tools_kept: OrderedDict[tuple[Any, ...], tuple[Any, Any, Any]] = OrderedDict()

_NO_CALLS: Mapping[str, dict[str, Any]] = {
    "openai-chat": {"tool_choice": "none"},
    "azure-openai-chat": {"tool_choice": "none"},
    "anthropic-chat": {"tool_choice": {"type": "none"}},
}
"""Kind of model -> the option with which it keeps its tools and calls none; others lose them."""


async def ask_for(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    schema: type[T],
    settings: Settings,
    *,
    config: RunnableConfig | None = None,
    breaker: Breaker | None = None,
    sleep: Sleep = asyncio.sleep,
) -> tuple[T, Usage]:
    """Ask for an answer in the form of `schema`, through a bound tool of that name.

    JSON in the answer's text is read as well. An answer that does not fit is shown to the model
    with what is wrong, at most twice. The usage covers all calls. Raises as `ask`; ModelError too
    when no answer fits.
    """
    form = model.with_structured_output(schema, method="function_calling", include_raw=True)
    shown = list(messages)
    spent: Usage = {"llm_calls": 0, "tokens": 0}
    problem = ""
    policy = RetryPolicy(settings.model_attempts, sleep)

    async def send(prompt: Sequence[BaseMessage]) -> AIMessage:
        given: Any = await form.ainvoke(list(prompt), config)
        message: AIMessage = given["raw"]
        return message

    for _ in range(1 + CORRECTIONS):
        question = _Question(model, shown, policy, settings.model_timeout, breaker)
        try:
            answer = await _answer(send, question)
        except ModelError as error:
            raise _charged(error, spent) from error.__cause__
        spent = total(spent, answer.usage)
        fitting, problem = _read(answer.message, schema)
        if fitting is not None:
            return fitting, spent
        if answer.cut_off:
            problem = f"the output limit cut the answer off, so make it shorter ({problem})"
        shown = [*shown, answer.message, *_corrections(answer.message, schema, problem)]
    unfit = ModelError(f"the model's {schema.__name__} does not fit: {safe(problem)}")
    raise _charged(unfit, spent)


def _charged(error: ModelError, spent: Usage) -> ModelError:
    error.llm_calls += spent["llm_calls"]
    error.tokens += spent["tokens"]
    return error


class Payer(Protocol):
    """The account that pays for the calls of a process, such as a server's operator."""

    async def check(self) -> None:
        """Raise ConfigurationError if the run that is under way may make no call."""

    async def charge(self, usage: Usage) -> None:
        """Note what a call of the run that is under way has cost."""


_accounts: list[Payer] = []


@contextmanager
def charging(account: Payer) -> Iterator[None]:
    """Let `account` decide on this process's calls, and be charged for them."""
    _accounts.append(account)
    try:
        yield
    finally:
        _accounts.remove(account)


_answered: ContextVar[list[int]] = ContextVar("_answered")


@contextmanager
def costing() -> Iterator[None]:
    """Let an error that leaves the block say in `tokens` what all answers in it have cost."""
    token = _answered.set(told := list[int]())
    try:
        yield
    except Exception as error:
        vars(error)["tokens"] = sum(told)
        raise
    finally:
        _answered.reset(token)


@dataclass
class _Question:
    """What a model is asked, how often and how long, and what its answers have cost so far."""

    model: BaseChatModel
    prompt: Sequence[BaseMessage]
    policy: RetryPolicy
    seconds: float
    """The most that one try may take."""
    breaker: Breaker | None
    tools: Sequence[BaseTool] = ()
    names: Collection[str] = ()
    """Other tools that the model may know."""
    calls: int = 0
    read: int = 0
    """Tokens of the prompt, once for each answer."""
    written: int = 0
    """Tokens of the answers."""
    cached: int = 0
    """Tokens of the prompt that the provider had in its cache."""

    @property
    def usage(self) -> Usage:
        return {"llm_calls": self.calls, "tokens": self.read + self.written}

    def add(self, message: AIMessage, prompt: Sequence[BaseMessage]) -> None:
        """Count an answer: as the provider reports it, else by an approximation."""
        self.calls += 1
        reported = message.usage_metadata
        if reported and reported["total_tokens"]:
            self.read += reported["total_tokens"] - reported["output_tokens"]
            self.written += reported["output_tokens"]
            self.cached += reported.get("input_token_details", {}).get("cache_read", 0)
        else:
            self.read += approximate_tokens(prompt, tools=self.tools)
            self.written += approximate_tokens([message])


async def _answer(send: Send, question: _Question) -> Answer:
    model = telemetry.called(question.model)
    for account in _accounts:
        await account.check()
    with telemetry.chat(question.model) as span, telemetry.MODEL_SECONDS.labels(model).time():
        try:
            message = await _usable(send, question)
        except ModelError as error:
            telemetry.MODEL_CALLS.labels("failed").inc()
            raise _charged(error, question.usage) from error.__cause__
        finally:
            telemetry.MODEL_CALLS.labels("answered").inc(question.calls)
            telemetry.TOKENS.labels("input", model).inc(question.read)
            telemetry.TOKENS.labels("output", model).inc(question.written)
            telemetry.CACHED_TOKENS.labels(model).inc(question.cached)
            span.set_attributes(
                {
                    "gen_ai.usage.input_tokens": question.read,
                    "gen_ai.usage.output_tokens": question.written,
                    "circadian.llm_calls": question.calls,
                }
            )
            _answered.get([]).append(question.usage["tokens"])
            for account in _accounts:
                await account.charge(question.usage)
    return Answer(message, question.usage)


class _Trouble(NamedTuple):
    error: str
    told: str
    """For the model."""


_COUNTS = TypeAdapter(UsageMetadata)
_MOST_TOKENS = 2**40


def _countable(message: AIMessage, model: BaseChatModel) -> AIMessage:
    """The message with counts of tokens that are whole numbers, or without any."""
    if not message.usage_metadata:
        return message
    usage = _counts(message.usage_metadata)
    if usage is None:
        _say_once(telemetry.called(model))
    return message.model_copy(update={"usage_metadata": usage})


def _counts(given: Any) -> UsageMetadata | None:
    alone: dict[str, Any] = {"input_token_details": {}, "output_token_details": {}}
    for one in (given, {**given, **alone} if isinstance(given, dict) else None):
        with suppress(ValidationError):
            usage = _COUNTS.validate_python(one)
            counts = [usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]]
            counts += [int(usage.get("input_token_details", {}).get("cache_read", 0))]
            if all(0 <= count < _MOST_TOKENS for count in counts) and counts[1] <= counts[2]:
                return usage
    return None


@lru_cache(maxsize=64)
def _say_once(model: str) -> None:
    log.warning("%s: its counts of tokens are none, and are estimated", model)


async def _usable(send: Send, question: _Question) -> AIMessage:
    """Ask for a usable answer; after an unusable one ask once more, with what was wrong."""
    known = {tool.name for tool in question.tools} | set(question.names)
    prompt = list(question.prompt)

    async def one_try() -> AIMessage | _Trouble:
        try:
            async with asyncio.timeout(None) as limit:
                end = asyncio.get_running_loop().time() + question.seconds
                # A cancelled timer stays in the loop for a while; it must not keep this context.
                Context().run(limit.reschedule, end)
                given = _countable(await send(prompt), question.model)
        except TimeoutError as error:
            if not limit.expired():
                raise
            late = f"no answer within {question.seconds:g} s (model_timeout)"
            raise RetryableError(Failure("again", late, down=True)) from error
        except ValidationError as error:
            told = f"it cannot be read: {'; '.join(explained(error.errors()))}"
            return _Trouble(told, told)
        question.add(given, prompt)
        return as_read(given)

    async def tries() -> AIMessage | _Trouble:
        whom = partial(Service.of, question.model)
        return await with_retries(one_try, question.policy, whom=whom, breaker=question.breaker)

    found = await tries()
    trouble = _trouble(found, known)
    if trouble is not None:
        said = [found] if isinstance(found, AIMessage) and str(found.text).strip() else []
        prompt += [
            *said,
            HumanMessage(f"There is something wrong with your answer: {trouble.told}"),
        ]
        found = await tries()
        trouble = _trouble(found, known)
    if isinstance(found, AIMessage) and trouble is None:
        return found
    assert trouble is not None
    raise ModelError(f"no usable answer from the model, asked twice: {safe(trouble.error)}")


def _trouble(found: AIMessage | _Trouble, known: Collection[str]) -> _Trouble | None:
    """The problem with an answer, if any. Raises ModelRefused if the model declines."""
    if isinstance(found, _Trouble):
        return found
    if why := refusal_of(found):
        raise ModelRefused(f"The model refused: {safe(why)}")
    text = str(found.text)
    if found.tool_calls:
        return None
    if not text.strip():
        more = "; the output limit cut it off" if ended_by(found) == "length" else ""
        told = f"it is empty{more}. Answer briefly in words, or call a tool if you have any."
        return _Trouble(f"an empty answer{more}", told)
    if name := printed_call(text, known):
        return _Trouble(
            f"it prints a call of {name} as text in place of making it (does the model's server "
            "parse tool calls?)",
            f"it prints a call of {name} as text, and nothing was run. Make the call with the tool "
            "itself; or, if none is needed, answer in words alone.",
        )
    return None


def _read(message: AIMessage, schema: type[T]) -> tuple[T | None, str]:
    """The form that fits, from the tool call or else from the text, and what is wrong if none."""
    given: list[Any] = [
        call["args"] for call in message.tool_calls if call["name"] == schema.__name__
    ][:1]
    if given and MALFORMED in given[0]:
        return None, str(given[0][MALFORMED])
    if not given:
        given = forms_in(str(message.text), schema.__name__, list(schema.model_fields))
    fitting: list[T] = []
    problem = ""
    for arguments in given or [None]:
        try:
            fitting.append(schema.model_validate(arguments))
        except ValidationError as error:
            problem = problem or "; ".join(explained(error.errors()))
    if len(fitting) > 1:
        return None, f"there are {len(fitting)} different answers in the text"
    return (fitting[0] if fitting else None), problem


def _corrections(
    message: AIMessage, schema: type[BaseModel], problem: str
) -> list[ToolMessage] | list[HumanMessage]:
    """The problem, told to the model: as an answer to each of its calls, else as a message."""
    if not message.tool_calls:
        asked = f"This does not fit: {problem}. Answer with one call of {schema.__name__}."
        return [HumanMessage(asked)]
    text = f"This does not fit: {problem}. Call {schema.__name__} again with arguments that fit."
    return [
        ToolMessage(text, tool_call_id=call["id"] or "", name=call["name"], status="error")
        for call in message.tool_calls
    ]
