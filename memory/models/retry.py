"""Retries: which failures of a provider are worth another try, and how it is made.

A wrong setting (key, model name, address) becomes one line that names the variable to set.

A service that keeps failing is left alone by its circuit breaker (Nygard, Release It!). Closed,
calls pass. After a number of failures in a row the breaker opens and calls fail at once. After some
seconds it is half open: one call tries the service, and closes or reopens it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast
from urllib.parse import urlsplit

from circuitbreaker import CircuitBreaker
from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAuthenticationError,
    ModelInvalidRequestError,
    ModelNotFoundError,
    ModelPermissionDeniedError,
)
from langchain_core.exceptions import ModelError as ProviderError

from memory.errors import (
    CircadianError,
    CircuitOpen,
    ConfigurationError,
    ContextOverflow,
    ModelError,
    ServiceDown,
)
from memory.settings import Deployment
from memory.telemetry import named
from memory.text import error_without_secrets, regex, safe

T = TypeVar("T")

BreakerState = Literal["closed", "open", "half_open"]

breaker_log = logging.getLogger("circadian.breaker")


class Breaker:
    """The breaker of one service of one process, for one event loop."""

    def __init__(self, service: str, *, failures: int = 3, seconds: float = 30.0) -> None:
        self.service = service
        self.failures, self.seconds = failures, seconds
        self._circuit = CircuitBreaker(failures, seconds, name=service)
        self._trying = False
        """A call is trying the service; until its outcome is known, all other calls fail."""

    @property
    def state(self) -> BreakerState:
        """The state that the next call would find."""
        return cast(BreakerState, self._circuit.state)

    async def call(self, send: Callable[[], Awaitable[T]], *, failure: type[Exception]) -> T:
        """The result of `send`. Only errors of the type `failure` count against the service.

        Other errors of `memory.errors` show that it answers. A wrong configuration, a bug and a
        cancelled call change nothing. Raises CircuitOpen where no call was made.
        """
        if self._trying:
            raise CircuitOpen(self._message("it is being tried again now"))
        if self._circuit.opened:
            left = max(1, self._circuit.open_remaining)
            raise CircuitOpen(self._message(f"it is tried again in {left} s"))
        trying = self._trying = not self._circuit.closed
        try:
            result = await send()
        except failure as error:
            self._record(trying, error)
            raise
        except ConfigurationError:
            raise
        except CircadianError:
            self._record(trying)
            raise
        else:
            self._record(trying)
            return result
        finally:
            if trying:
                self._trying = False

    def _record(self, trying: bool, error: Exception | None = None) -> None:
        if not trying and not self._circuit.closed:
            return
        if error is None:
            self._circuit.reset()
        else:
            # A copy: the error itself would keep its traceback, and with it prompts, in memory.
            self._circuit.__exit__(RuntimeError, RuntimeError(str(error)), None)
        fields = {"circadian": {"service": self.service, "state": self.state}}
        if self._circuit.opened:
            line = "the %s failed too often and is left alone for %g s"
            breaker_log.warning(line, self.service, self.seconds, extra=fields)
        elif trying:
            breaker_log.info("the %s answers again", self.service, extra=fields)

    def _message(self, when: str) -> str:
        often = "" if self.failures == 1 else f" {self.failures} times in a row"
        return (
            f"the {self.service} failed{often} and is left alone for now; {when} "
            f"(the last failure: {self._circuit.last_failure})"
        )


@dataclass(frozen=True)
class Breakers:
    """The breakers of one installation's services."""

    model: Breaker
    embedder: Breaker
    memory: Breaker

    @classmethod
    def of(cls, *, failures: int = 3, seconds: float = 30.0) -> Breakers:
        """Three closed breakers."""
        services = ("model", "embedder", "memory")
        return cls(*(Breaker(one, failures=failures, seconds=seconds) for one in services))


def breakers_of(deployment: Deployment) -> Breakers:
    """Three closed breakers, as the environment's variables set them."""
    return Breakers.of(failures=deployment.breaker_failures, seconds=deployment.breaker_seconds)


async def guarded(
    breaker: Breaker | None, send: Callable[[], Awaitable[T]], *, failure: type[Exception]
) -> T:
    """The result of `send`, called through `breaker` if there is one."""
    return await (send() if breaker is None else breaker.call(send, failure=failure))


Kind = Literal["model", "embedder"]

WrongSetting = Literal["key", "name", "address", "page"]
"""A wrong setting: the key, the model's name, the address, or the address of a web page."""

_VARIABLES = {
    "openai": ("OPENAI_API_KEY", ("OPENAI_BASE_URL", "OPENAI_API_BASE")),
    "azure-openai": ("AZURE_OPENAI_API_KEY", ("AZURE_OPENAI_ENDPOINT",)),
    "anthropic": ("ANTHROPIC_API_KEY", ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_URL")),
}
_SETS_NAME: dict[Kind, str] = {
    "model": "CIRCADIAN_MODEL (or --model)",
    "embedder": "CIRCADIAN_EMBEDDER (or --embedder)",
}
_ADDRESSES = ("openai_api_base", "azure_endpoint", "anthropic_api_url", "base_url", "endpoint_url")
_ENDPOINT = regex(r"/(?:chat/completions|completions|embeddings|responses|v1/messages)/?\Z")


@dataclass(frozen=True)
class Service:
    """A chat model's or an embedder's service."""

    kind: Kind
    provider: str = ""
    name: str = ""
    address: str = ""
    """The client's base URL, if the client has one."""

    @classmethod
    def of(cls, client: Any, kind: Kind = "model") -> Service:
        """The service of a LangChain chat model or embeddings."""
        if kind == "model":
            provider, *rest = named(client)
        else:
            # Classes of embeddings have no `_llm_type`.
            kind_of = type(client).__name__
            known = {"OpenAIEmbeddings": "openai", "AzureOpenAIEmbeddings": "azure-openai"}
            provider, rest = known.get(kind_of, kind_of), [str(getattr(client, "model", "") or "")]
        made = getattr(getattr(client, "root_client", None), "base_url", None)
        found = (*(getattr(client, key, None) for key in _ADDRESSES), made and str(made))
        address = next((one for one in found if isinstance(one, str) and one), "")
        return cls(kind, provider, (rest or [""])[0], address)

    def problem(self, wrong_setting: WrongSetting, reason: str, url: str | None) -> str:
        """One line: what is wrong, what the service said, and which variable to set."""
        where, who = self._where(url), f"the {self.kind} {self.name}".strip()
        key, addresses = _VARIABLES.get(self.provider, ("", ()))
        key = key or "its provider's key"
        address = next((one for one in addresses if os.environ.get(one)), (*addresses, "")[0])
        address = address or "the address in its client"
        said = safe(reason)
        match wrong_setting:
            case "key":
                return f"{where} refuses the key of {who} ({said}): set {key}"
            case "name":
                sets = f"{_SETS_NAME[self.kind]} names it, {address} the address"
                return f"{where} does not know {who} ({said}): {sets}"
            case "address":
                return f"{where}, the address of {who}, cannot be reached ({said}): set {address}"
            case "page":
                return f"{where} is no API for {who} ({said}): set {address}"

    def _where(self, url: str | None) -> str:
        parts = urlsplit(self.address or url or "")
        if not parts.hostname:
            return f"the service of the {self.kind}"
        port = f":{parts.port}" if parts.port else ""
        path = _ENDPOINT.sub("", parts.path).rstrip("/")
        return safe(f"{parts.scheme}://{parts.hostname}{port}{path}")


Verdict = Literal["again", "give_up", "overflow", "unknown"]

_AGAIN_STATUS = {408, 409, 425, 429}

_OVERFLOW_STATUS = {None, 400, 413, 422, 500}

_OF_THE_REQUEST = {400, 413, 415, 422}
"""Status of a service that is up and rejects this one request."""

_SPENT_QUOTA = {"insufficient_quota", "billing_hard_limit_reached"}

# By class name: of openai, httpx, aiohttp, requests and botocore only the one in use is installed.
_TRANSPORT = {
    *("TransportError", "APIConnectionError", "APITimeoutError", "ClientConnectionError"),
    *("IncompleteRead", "ProtocolError", "ConnectionError", "TimeoutError"),
}

_UNREADABLE = (ValueError, LookupError, TypeError)

_OF_THE_KEY = {401, 403, "invalid_api_key", "authentication_error", "permission_error"}

_OF_THE_NAME = {404, "model_not_found", "not_found_error", "DeploymentNotFound"}

_UNREACHED = {
    *("ConnectError", "ConnectTimeout", "ConnectTimeoutError", "ConnectionRefusedError"),
    *("ClientConnectorError", "NewConnectionError", "NameResolutionError", "gaierror"),
    "UnsupportedProtocol",
}
"""Exception types for an address where nobody answers, that does not exist, or is no address."""

_PAGE = regex(r"(?i)<!doctype html|<html[\s>]")

_NO_STREAM = regex(r"(?i)no generation chunks were returned|no generations found in stream")
"""LangChain's error for a web page in place of a stream: it holds no chunk."""

_OVERFLOW = regex(
    r"(?i)context_length_exceeded|exceed_context_size|contextwindowexceeded|maximum context length"
    r"|context (?:length|window|size|limit)[^.]{0,60}exceed|exceed[^.]{0,60}context"
    r"|(?:prompt|input|request)(?: is)? too (?:long|large)[^.]{0,60}(?:token|context|maximum)"
    r"|prompt is too long|input is too long|too many (?:input |prompt )?tokens"
    r"|input tokens? exceed|reduce the length of the (?:messages|prompt|input)"
)


@dataclass(frozen=True)
class Failure:
    """One failed call: the verdict, a short reason, and the wait that the provider asks for."""

    verdict: Verdict
    reason: str
    retry_after: float | None = None
    """Seconds."""
    wrong_setting: WrongSetting | None = None
    """The wrong setting, if that is the cause; waiting does not mend it."""
    url: str | None = None
    """Where the request went, if the error tells."""
    down: bool = False
    """The service is at fault and not this one call: no answer came, or it refuses to serve us
    (rate limit, quota, key, model). A circuit breaker counts such failures."""


def judge(error: Exception) -> Failure:
    """The verdict on an exception of a model call, and on the exceptions that caused it.

    again: rate limits, 408, 409, 5xx, dropped connections, time limits, bodies that are not JSON.
    give_up: any other status, a spent quota, and ValueError, LookupError or TypeError of its
    own code: it could not read the answer, or the request is wrong, and neither mends by waiting.
    unknown: anything else is a bug, and is not retried.
    """
    causes = list(_chain(error))
    wrong_setting: WrongSetting | None = next(filter(None, map(_wrong_setting, causes)), None)
    url: str | None = next(filter(None, map(_url, causes)), None)
    for cause in causes:
        verdict = _verdict(cause)
        if verdict != "unknown":
            told = causes[-1] if wrong_setting == "address" else cause
            waits = _retry_after(cause)
            return Failure(verdict, _reason(told), waits, wrong_setting, url, _is_down(cause))
    verdict = "give_up" if wrong_setting or isinstance(error, _UNREADABLE) else "unknown"
    return Failure(verdict, _reason(error), wrong_setting=wrong_setting, url=url)


def _wrong_setting(error: BaseException) -> WrongSetting | None:
    marks = {_status(error), _code(error), str(_body(error).get("type"))}
    if isinstance(error, ModelAuthenticationError | ModelPermissionDeniedError):
        return "key"
    if isinstance(error, ModelNotFoundError):
        return "name"
    if _UNREACHED & _types(error):
        return "address"
    if (_status(error) or 0) >= 500 or _status(error) in _AGAIN_STATUS:
        return None
    if marks & _OF_THE_KEY:
        return "key"
    if marks & _OF_THE_NAME:
        return "name"
    said = _said(error)
    page = _PAGE.search(said) or _NO_STREAM.search(said)
    return "page" if page and _status(error) is None else None


def _url(error: BaseException) -> str | None:
    try:
        url = getattr(getattr(error, "request", None), "url", None)
    except RuntimeError:  # httpx has the attribute, and raises where there is no request
        return None
    return str(url) if url is not None else None


def _verdict(error: BaseException) -> Verdict:
    status = _status(error)
    if _is_overflow(error, status):
        return "overflow"
    if _code(error) in _SPENT_QUOTA:
        return "give_up"
    if status is not None and status >= 400:
        return "again" if status in _AGAIN_STATUS or status >= 500 else "give_up"
    if isinstance(error, ProviderError):
        return "again" if error.is_retryable else "give_up"
    if isinstance(error, json.JSONDecodeError) or _is_transport(error):
        return "again"
    # An API error with no status, or with a good one, broke off in the middle of an answer.
    return "again" if "APIError" in _types(error) else "unknown"


def _is_down(error: BaseException) -> bool:
    if isinstance(error, ModelInvalidRequestError):
        return False
    status = _status(error)
    if status is not None and status >= 400:
        return status not in _OF_THE_REQUEST
    # A body that is no JSON is an answer, if not one that can be used.
    return not isinstance(error, json.JSONDecodeError)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    for _ in range(4):
        if seen is None:
            return
        yield seen
        seen = seen.__cause__


def _status(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    found = (
        getattr(error, "status_code", None),
        getattr(error, "http_status", None),
        getattr(response, "status_code", None),
        _body(error).get("code"),
        getattr(error, "code", None),
    )
    for value in found:
        text = str(getattr(value, "value", value))
        if text.isdecimal() and 100 <= int(text) <= 599:
            return int(text)
    return None


def _body(error: BaseException) -> Mapping[str, Any]:
    given = [getattr(error, "body", None), *error.args[:1]]
    return next((one for one in given if isinstance(one, Mapping)), {})


def _code(error: BaseException) -> str:
    return str(getattr(error, "code", None) or _body(error).get("code"))


def _is_overflow(error: BaseException, status: int | None) -> bool:
    if isinstance(error, ContextOverflowError) or _code(error) == "context_length_exceeded":
        return True
    likely = status in _OVERFLOW_STATUS or (status is not None and status < 400)
    return likely and not _is_transport(error) and bool(_OVERFLOW.search(str(error)))


def _is_transport(error: BaseException) -> bool:
    return bool((_TRANSPORT | _UNREACHED) & _types(error))


def _types(error: BaseException) -> set[str]:
    return {cls.__name__ for cls in type(error).__mro__}


def _reason(error: BaseException) -> str:
    status = _status(error)
    said = str(_body(error).get("message") or _said(error)) or type(error).__name__
    kind = f"HTTP {status}" if status is not None and status >= 400 else type(error).__name__
    return f"{kind}: {'a web page' if _PAGE.search(said) else said}"


def _said(error: BaseException) -> str:
    """What an error says; the page itself, if a client failed on a web page as on an answer."""
    taken = error.obj if isinstance(error, AttributeError) else None
    return taken if isinstance(taken, str) and _PAGE.search(taken) else str(error)


def _retry_after(error: BaseException) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = str(headers.get(name, "")).strip()
        if re.fullmatch(r"\d+(?:\.\d+)?", value):
            return float(value) * unit
    return None


Sleep = Callable[[float], Awaitable[None]]

BASE_SECONDS = 0.5
"""Wait before the second try; it doubles with each further one, give or take a half (jitter)."""

UNREACHED_TRIES = 2
"""Tries at an address where nobody answers: a second one, as a server may be starting."""

LONGEST_WAIT = 30.0
"""Seconds. A provider that asks for a longer wait is not waited for."""

log = logging.getLogger(__name__)


class RetryableError(Exception):
    """A try that may be repeated."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


@dataclass(frozen=True)
class RetryPolicy:
    """How often a call is tried, and how long to wait between two tries."""

    attempts: int = 4
    sleep: Sleep = asyncio.sleep
    jitter: Callable[[], float] = random.random
    """0..1."""

    def allows_another(self, failure: Failure, tried: int) -> bool:
        """Whether to try once more after this failure, the last of `tried` tries."""
        unreached = failure.wrong_setting is not None
        return tried < (min(self.attempts, UNREACHED_TRIES) if unreached else self.attempts)

    def wait(self, failure: Failure, tried: int) -> float:
        """Seconds: the provider's Retry-After, else exponential backoff with jitter."""
        if failure.retry_after is not None:
            return failure.retry_after
        backoff: float = min(LONGEST_WAIT, BASE_SECONDS * 2 ** (tried - 1))
        return backoff * (0.5 + self.jitter())


USUAL = RetryPolicy()


async def with_retries(
    send: Callable[[], Awaitable[T]],
    policy: RetryPolicy,
    *,
    whom: Callable[[], Service],
    breaker: Breaker | None = None,
) -> T:
    """The result of `send`, tried again while it raises RetryableError or a failure that may pass.

    `breaker` counts all tries as one call. Cancellation and bugs pass through unchanged. Raises
    ConfigurationError, ContextOverflow, ServiceDown, CircuitOpen (no call was made), or ModelError
    for any other failure of the provider: one line each, without secrets.
    """

    async def one_try() -> T:
        try:
            return await send()
        except (CircadianError, RetryableError):
            raise
        except Exception as error:
            raise _translated(error, whom()) from error

    async def all_tries() -> T:
        tried = 0
        while True:
            tried += 1
            try:
                return await one_try()
            except RetryableError as error:
                if not policy.allows_another(error.failure, tried):
                    raise _given_up(error.failure, whom(), tried) from error.__cause__
                seconds = policy.wait(error.failure, tried)
                _log_wait(error.failure, seconds)
            await policy.sleep(seconds)

    return await guarded(breaker, all_tries, failure=ServiceDown)


def once(send: Callable[[], T], *, whom: Callable[[], Service]) -> T:
    """The result of `send`, tried once. Blocking. Raises as `with_retries`, without a breaker."""
    try:
        return send()
    except CircadianError:
        raise
    except Exception as error:
        found = _translated(error, whom())
        if found is error:
            raise
        known = _given_up(found.failure, whom(), 1) if isinstance(found, RetryableError) else found
        raise known from error


def _given_up(failure: Failure, whom: Service, tries: int) -> ModelError:
    if failure.wrong_setting:
        return _misconfigured(failure, whom)
    counted = "1 try" if tries == 1 else f"{tries} tries"
    line = f"no usable answer from the {whom.kind} after {counted}: {safe(failure.reason)}"
    return _kind(failure)(line)


def _translated(error: Exception, whom: Service) -> Exception:
    failure = judge(error)
    error_without_secrets(error)  # it is the cause of what is raised, and printed with it
    if failure.verdict == "unknown":
        return error
    if failure.wrong_setting == "address":
        return RetryableError(failure)
    if failure.wrong_setting:
        return _misconfigured(failure, whom)
    if failure.verdict == "overflow":
        return ContextOverflow(f"the prompt is longer than the model takes: {safe(failure.reason)}")
    if failure.verdict == "give_up":
        return _kind(failure)(f"the {whom.kind} call failed: {safe(failure.reason)}")
    if failure.retry_after is not None and failure.retry_after > LONGEST_WAIT:
        wait = f"the provider asks to wait {failure.retry_after:.0f} s"
        return _kind(failure)(f"the {whom.kind} call failed, {wait}: {safe(failure.reason)}")
    return RetryableError(failure)


def _misconfigured(failure: Failure, whom: Service) -> ConfigurationError:
    assert failure.wrong_setting is not None
    return ConfigurationError(whom.problem(failure.wrong_setting, failure.reason, failure.url))


def _kind(failure: Failure) -> type[ModelError]:
    return ServiceDown if failure.down else ModelError


def _log_wait(failure: Failure, seconds: float) -> None:
    # The error itself names a wrong setting, so the log need not.
    level = logging.INFO if failure.wrong_setting else logging.WARNING
    log.log(level, "model call: %s; next try in %.1f s", safe(failure.reason), seconds)
