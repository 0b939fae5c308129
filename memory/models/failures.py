"""What a failed model call means: try again, give up, or a prompt that is too long. Pure.

Judged by what the exceptions of all providers share (status, code, class names), so that no
provider's package is imported here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.exceptions import ContextOverflowError, ModelInvalidRequestError
from langchain_core.exceptions import ModelError as ProviderError

from memory.models.words import shortened
from memory.redaction import redact

Verdict = Literal["again", "give_up", "overflow", "unknown"]

_AGAIN_STATUS = {408, 409, 425, 429}
_OVERFLOW_STATUS = {None, 400, 413, 422, 500}
_OF_THE_REQUEST = {400, 413, 415, 422}
"""The service answers, and finds this one request wrong."""
_SPENT_QUOTA = {"insufficient_quota", "billing_hard_limit_reached"}
_TRANSPORT = {
    *("TransportError", "APIConnectionError", "APITimeoutError", "ClientConnectionError"),
    *("IncompleteRead", "ProtocolError", "ConnectionError", "TimeoutError"),
}
_UNREADABLE = (ValueError, KeyError, TypeError)
_OVERFLOW = re.compile(
    r"context_length_exceeded|exceed_context_size|contextwindowexceeded|maximum context length"
    r"|context (?:length|window|size|limit)[^.]{0,60}exceed|exceed[^.]{0,60}context"
    r"|(?:prompt|input|request)(?: is)? too (?:long|large)[^.]{0,60}(?:token|context|maximum)"
    r"|prompt is too long|input is too long|too many (?:input |prompt )?tokens"
    r"|input tokens? exceed|reduce the length of the (?:messages|prompt|input)",
    re.IGNORECASE,
)
_LONGEST_LINE = 300


@dataclass(frozen=True)
class Failure:
    """One failed call: the verdict, a short reason, and the wait that the provider asks for."""

    verdict: Verdict
    reason: str
    retry_after: float | None = None
    """Seconds."""
    down: bool = False
    """It speaks of the service and not of this one call: no answer came, or it does not serve us
    (rate limit, quota, key, model). A circuit breaker counts such failures."""


def judge(error: Exception) -> Failure:
    """The verdict on an exception of a model call; the causes it wraps are asked too.

    again: rate limits, 408, 409, 5xx, dropped connections, time limits, bodies that are not JSON.
    give_up: any other status, a spent quota, and ValueError, KeyError or TypeError of the model's
    own code: it could not read the answer, or the request is wrong, and neither mends by waiting.
    unknown: everything else is a bug, and not for a retry to hide.
    """
    for one in _chain(error):
        verdict = _verdict(one)
        if verdict != "unknown":
            return Failure(verdict, _reason(one), _retry_after(one), _is_down(one))
    verdict = "give_up" if isinstance(error, _UNREADABLE) else "unknown"
    return Failure(verdict, _reason(error))


def without_secrets(text: str, environ: Mapping[str, str]) -> str:
    """`text` on one line, with keys, and values of variables that hold secrets, blotted out."""
    return shortened(redact(text, environ), _LONGEST_LINE)


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
    return "again" if _is_api_error(error) else "unknown"


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
    """The provider's error object; some servers send it in a good answer (status 200)."""
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
    return bool(_TRANSPORT & {cls.__name__ for cls in type(error).__mro__})


def _is_api_error(error: BaseException) -> bool:
    return "APIError" in {cls.__name__ for cls in type(error).__mro__}


def _reason(error: BaseException) -> str:
    status = _status(error)
    said = str(_body(error).get("message") or error) or type(error).__name__
    kind = f"HTTP {status}" if status is not None and status >= 400 else type(error).__name__
    return f"{kind}: {said}"


def _retry_after(error: BaseException) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = str(headers.get(name, "")).strip()
        if re.fullmatch(r"\d+(?:\.\d+)?", value):
            return float(value) * unit
    return None
