"""Token counts: an approximation, corrected by what the provider reports. Pure; no tokenizer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.tools import BaseTool
from typing_extensions import TypedDict

WARNING_AT = 60.0
"""Percent of the limit (ruling 6)."""
CRITICAL_AT = 80.0

_CHARS_PER_TOKEN = 4
_SMOOTHING = 0.3
_LOWEST, _HIGHEST = 0.25, 4.0
_COUNTED_BLOCKS = {"text", "image", "image_url"}
_CALL_BLOCKS = {"tool_use", "function_call", "tool_call"}
_MEDIA_BLOCKS = {"audio", "input_audio", "video", "file", "input_file", "document", "input_image"}


class TokenAdvisory(TypedDict):
    """What to make of a utilisation (architecture-self-management, section 4)."""

    level: Literal["normal", "warning", "critical"]
    message: str
    threshold: int
    """Percent: where the level ends; for critical, where it begins."""


def approximate_tokens(
    messages: str | Sequence[BaseMessage], *, tools: Sequence[BaseTool] = ()
) -> int:
    """Tokens of a text, or of messages with their tool calls; uncalibrated (4 characters each).

    `tools` adds the schemas that are sent along. An image or other medium counts as one low
    resolution image, whatever its bytes.
    """
    if isinstance(messages, str):
        return math.ceil(len(messages) / _CHARS_PER_TOKEN)
    plain = [_countable(message) for message in messages]
    return count_tokens_approximately(plain, tools=list(tools) or None)


def calibrated(approx: int, calibration: float) -> int:
    """`approx` tokens corrected by the factor that `recalibrate` keeps; rounded up."""
    return math.ceil(approx * calibration)


def recalibrate(calibration: float, approximate: int, reported: int) -> float:
    """The factor after one more answer: exponential smoothing, within 0.25..4.

    `approximate` is the uncalibrated count of the prompt that the provider counted as `reported`.
    A count of 0 says nothing and changes nothing.
    """
    if approximate <= 0 or reported <= 0:
        return calibration
    seen = _clamp(reported / approximate)
    return _clamp((1 - _SMOOTHING) * calibration + _SMOOTHING * seen)


def utilisation(used: int, limit: int) -> float:
    """`used` in percent of `limit` (both tokens), one decimal. The limit is at least 1."""
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


def _countable(message: BaseMessage) -> BaseMessage:
    """The message as langchain's counter takes it: known blocks only, tool calls not skipped."""
    content: str | list[str | dict[Any, Any]] = message.content
    if not isinstance(content, list):
        return message
    blocks = [_countable_block(block) for block in content]
    calls_in_blocks = any(_kind(block) in _CALL_BLOCKS for block in content)
    if isinstance(message, AIMessage) and message.tool_calls and not calls_in_blocks:
        # The counter takes tool calls for blocks already counted when content is a list.
        blocks.append({"type": "text", "text": repr(message.tool_calls)})
    return message.model_copy(update={"content": blocks})


def _countable_block(block: str | dict[Any, Any]) -> str | dict[Any, Any]:
    if isinstance(block, str) or _kind(block) in _COUNTED_BLOCKS:
        return block
    if _kind(block) in _MEDIA_BLOCKS:
        return {"type": "image"}
    return {"type": "text", "text": repr(block)}


def _kind(block: str | dict[Any, Any]) -> str:
    return "text" if isinstance(block, str) else str(block.get("type", ""))


def _clamp(factor: float) -> float:
    return min(_HIGHEST, max(_LOWEST, factor))
