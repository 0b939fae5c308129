"""Token counts: an approximation, corrected by what the provider reports. Pure; no tokenizer."""

from __future__ import annotations

import math
import weakref
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import compress, count, repeat
from operator import is_
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from typing_extensions import TypedDict

from memory.text.analysis import terms
from memory.text.words import regex, sentences

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.tools import BaseTool

M = TypeVar("M", bound="BaseMessage")
T = TypeVar("T")

WARNING_AT = 60.0
"""Percent of the limit."""

CRITICAL_AT = 80.0

CUT = " ..."
"""End of a shortened text."""

_CHARS_PER_TOKEN = 4
_PER_MESSAGE, _PER_IMAGE = 3, 85
_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
_MISSING = object()

_WIDE = regex(
    "[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00010000-\U0010ffff]"
)
"""Chinese, Japanese and Korean script, and everything beyond the basic plane, such as emoji."""

_OTHER = regex(r"[^\x00-\x7f]")
_WIDE_TOKENS, _OTHER_TOKENS = 1.0, 0.5
_SMOOTHING = 0.3
_LOWEST, _HIGHEST = 0.25, 4.0
_CALL_BLOCKS = {"tool_use", "function_call", "tool_call"}
_IMAGES = {
    *("image", "image_url", "audio", "input_audio", "video", "file"),
    *("input_file", "document", "input_image"),
}


class TokenAdvisory(TypedDict):
    """How full the context is, as a level, with advice."""

    level: Literal["normal", "warning", "critical"]
    message: str
    threshold: int
    """Percent at which the level ends; for critical, at which it begins."""


def approximate_tokens(
    messages: str | Sequence[BaseMessage], *, tools: Sequence[BaseTool | dict[str, Any]] = ()
) -> int:
    """Tokens of a text, or of messages with their tool calls; uncalibrated.

    Four ASCII characters count as one token, a Chinese, Japanese or Korean character or an emoji as
    one, any other character as half. `tools` adds the schemas that are sent along. An image or
    other medium counts as one image of low resolution, whatever its size.
    """
    if isinstance(messages, str):
        return math.ceil(len(messages) / _CHARS_PER_TOKEN + _beyond_ascii(messages))
    schemas = math.ceil(sum(map(_schema_chars, tools)) / _CHARS_PER_TOKEN)
    return sum(_counted.each(messages)) + schemas


class once_per_message(Generic[M, T]):  # a decorator
    """Keeps the result of `make` for each message, as long as the message is in use.

    Every prompt needs these results for the whole history. Messages never change in place, except
    that a message without an id may get one: its result is not kept.
    """

    def __init__(self, make: Callable[[M], T]) -> None:
        self._make = make
        self._made: dict[int, T] = {}
        self._gone: dict[int, weakref.ref[M]] = {}

    def __call__(self, message: M) -> T:
        """The result for `message`."""
        key = id(message)
        if key in self._made:
            return self._made[key]
        value = self._make(message)
        # A message kept as its own result would keep itself in use.
        if value is not message and message.id is not None:
            self._made[key] = value
            self._gone[key] = weakref.ref(message, lambda _: self._drop(key))
        return value

    def each(self, messages: Sequence[M]) -> list[T]:
        """The results for `messages`, without a loop in Python over a long history."""
        with suppress(KeyError):
            return list(map(self._made.__getitem__, map(id, messages)))
        found: list[Any] = list(map(self._made.get, map(id, messages), repeat(_MISSING)))
        for at in compress(count(), map(is_, found, repeat(_MISSING))):
            found[at] = self(messages[at])
        return found

    def _drop(self, key: int) -> None:
        self._made.pop(key, None)
        self._gone.pop(key, None)


def _schema_chars(tool: BaseTool | dict[str, Any]) -> int:
    """The length of a tool's schema, measured once, because making a schema takes long."""
    if isinstance(tool, dict):
        return _characters(tool)
    key = id(tool)
    known = _schemas.get(key)
    if known is not None and known[0]() is tool and known[1] == tool.description:
        return known[2]
    chars = _characters(tool)
    gone = weakref.ref(tool, lambda _: _schemas.pop(key, None))
    _schemas[key] = gone, tool.description, chars
    return chars


_schemas: dict[int, tuple[weakref.ref[BaseTool], str, int]] = {}
"""Schema lengths of the tools in use, by identity, with the description at that time."""


@once_per_message
def _counted(message: BaseMessage) -> int:
    """The tokens of a message as LangChain counts them; what is beyond ASCII counts for more.

    Unlike LangChain's, the count has the calls beside blocks of content, and media as images.
    """
    content, calls = message.content, getattr(message, "tool_calls", None)
    blocks = [content] if isinstance(content, str) else content
    kinds = [_kind(block) for block in blocks]
    texts = [
        _countable(block) for block, kind in zip(blocks, kinds, strict=True) if kind not in _IMAGES
    ]
    texts += [message.name or "", repr(calls) if calls and _CALL_BLOCKS.isdisjoint(kinds) else ""]
    kind = message.type.removesuffix("MessageChunk").lower()
    beside = _ROLES.get(kind, kind) + getattr(message, "tool_call_id", "")
    chars = len(beside) + sum(map(len, texts))
    images = _PER_IMAGE * sum(kind in _IMAGES for kind in kinds)
    tokens = math.ceil(chars / _CHARS_PER_TOKEN + sum(map(_beyond_ascii, texts)))
    return tokens + _PER_MESSAGE + images


def _characters(tool: BaseTool | dict[str, Any]) -> int:
    """Of the schema; LangChain's module is loaded at the first call."""
    from langchain_core.messages.utils import count_tokens_approximately

    return count_tokens_approximately([], tools=[tool], chars_per_token=1)


def best_sentences(text: str, weights: Mapping[str, float], tokens: int) -> str:
    """The sentences of a text that best match the query, in text order, or else its beginning."""
    if approximate_tokens(text) <= tokens:
        return text
    parts = sentences(text)
    values = [sum(weights.get(term, 0.0) for term in {*terms(part)}) for part in parts]
    left, chosen = tokens, set[int]()
    for place in sorted(range(len(parts)), key=lambda at: (-values[at], at)):
        size = approximate_tokens(parts[place]) + 1
        if chosen and (values[place] <= 0 or size > left):
            continue
        chosen.add(place)
        left -= size
        if left <= 0:
            break
    lines, before = list[str](), -1
    for place in sorted(chosen):
        lines += [*(["..."] if place > before + 1 else []), parts[place]]
        before = place
    shown = " ".join([*lines, *(["..."] if before < len(parts) - 1 else [])])
    return cut_to(shown, tokens + 2, 1.0)


def cut_to(text: str, tokens: int, calibration: float) -> str:
    """`text`, or its beginning and ` ...`, or nothing, in at most `tokens` (calibrated)."""
    if calibrated(approximate_tokens(text), calibration) <= tokens:
        return text

    def size(length: int) -> int:
        return calibrated(approximate_tokens(text[:length] + CUT), calibration)

    length = bisect_right(range(len(text)), tokens, key=size) - 1
    return text[:length].rstrip() + CUT if length >= 0 else ""


def calibrated(approx: int, calibration: float) -> int:
    """`approx` tokens, corrected by the factor from `recalibrate`; rounded up."""
    return math.ceil(approx * calibration)


def recalibrate(calibration: float, approximate: int, reported: int) -> float:
    """The correction factor after one more answer: exponential smoothing, within 0.25..4.

    `approximate`, `reported`: our uncalibrated count of the prompt and the provider's; 0 changes
    nothing.
    """
    if approximate <= 0 or reported <= 0:
        return calibration
    seen = _clamp(reported / approximate)
    return _clamp((1 - _SMOOTHING) * calibration + _SMOOTHING * seen)


def utilisation(used: int, limit: int) -> float:
    """`used` as a percentage of `limit` (tokens, at least 1), to one decimal."""
    return round(100 * used / limit, 1)


def advisory(percentage: float) -> TokenAdvisory:
    """Level and recommended action: normal below 60 %, critical from 80 %, warning between."""
    if percentage >= CRITICAL_AT:
        message = "Near limit: respond immediately"
        return {"level": "critical", "message": message, "threshold": int(CRITICAL_AT)}
    if percentage >= WARNING_AT:
        message = "Context filling: consider wrapping up"
        return {"level": "warning", "message": message, "threshold": int(CRITICAL_AT)}
    message = "Sufficient context available"
    return {"level": "normal", "message": message, "threshold": int(WARNING_AT)}


def _beyond_ascii(text: str) -> float:
    if text.isascii():
        return 0.0
    wide = len(_WIDE.findall(text))
    other = len(_OTHER.findall(text)) - wide
    as_ascii = (wide + other) / _CHARS_PER_TOKEN
    return wide * _WIDE_TOKENS + other * _OTHER_TOKENS - as_ascii


def _countable(block: str | dict[Any, Any]) -> str:
    if isinstance(block, str):
        return block
    return str(block.get("text", "")) if _kind(block) == "text" else repr(block)


def _kind(block: str | dict[Any, Any]) -> str:
    return "text" if isinstance(block, str) else str(block.get("type", ""))


def _clamp(factor: float) -> float:
    return min(_HIGHEST, max(_LOWEST, factor))
