"""The summary text of a compaction: earlier summaries, then a summary of what is new. Pure.

Earlier summaries are kept word for word, whatever the model answers; the model sees them and
summarises only what is new. So they survive models that fail, forget, or obey the conversation.
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage

from memory.chat import text_of
from memory.compaction import MARK, masked, size_of
from memory.cutting import Cut, shares
from memory.errors import ModelError
from memory.extract import condensed, extract
from memory.tokens import approximate_tokens, calibrated
from memory.trust import one_line

SHORTENED = "[earlier summaries shortened; the journal's archives have them whole]"
_CUT_OFF = ("length", "max_tokens", "max_output_tokens", "MAX_TOKENS")
"""Finish reasons of providers for an answer that was cut off."""


def transcript(messages: Sequence[AnyMessage], tokens: int, calibration: float) -> str:
    """The messages to summarise, a line each: `ROLE (NAME): TEXT`, with tool outputs masked.

    If that is longer than `tokens` (calibrated), an extract of the messages.
    """
    text = "\n".join(_line(masked(message, always=True)) for message in messages)
    fits = _size(text, calibration) <= tokens
    return text if fits else extract(messages, tokens, calibration)


def room_for(cut: Cut, calibration: float) -> tuple[str, int]:
    """(the earlier summaries' text, tokens for the new summary)."""
    earlier = cut.earlier
    if not earlier:
        return "", cut.summaries
    had = _size(earlier, calibration)
    for_earlier, for_new = shares(had, cut.summaries)
    carried = condensed(earlier, for_earlier, calibration, SHORTENED)
    return carried, for_new


def joined(earlier: str, new: str) -> str:
    """Both texts, the earlier one first."""
    return "\n\n".join(part for part in (earlier, new) if part)


def extracted(cut: Cut, tokens: int, calibration: float) -> str:
    """Extractive fallback summary of the new messages, shorter than they are if possible.

    It takes half of the room at most, and leaves the rest for later summaries.
    """
    most = max(3 * size_of(cut.fresh, calibration) // 4, 48)
    return extract(cut.fresh, min(tokens, cut.summaries // 2, most), calibration)


def accepted(
    answer: AIMessage, messages: Sequence[AnyMessage], tokens: int, calibration: float
) -> str:
    """The model's summary of `messages`, of at most `tokens` (calibrated).

    Raises:
        ModelError: the summary is empty, cut off, no shorter than the messages, or too long.
    """
    text = str(answer.text).strip().removeprefix(MARK).strip()
    if not text:
        raise ModelError("the summary is empty")
    ended = answer.response_metadata
    if {str(ended.get("finish_reason")), str(ended.get("stop_reason"))} & set(_CUT_OFF):
        raise ModelError("the summary is cut off")
    size = _size(text, calibration)
    if size >= size_of(messages, calibration):
        raise ModelError("the summary is longer than what it summarises")
    if size > tokens:
        raise ModelError(f"the summary has {size:,} tokens where {tokens:,} fit")
    return text


def _line(message: AnyMessage) -> str:
    name = f" ({one_line(message.name)})" if message.name else ""
    calls = ""
    if isinstance(message, AIMessage) and message.tool_calls:
        calls = " [calls " + ", ".join(call["name"] for call in message.tool_calls) + "]"
    return f"{message.type}{name}: {one_line(_said(message))}{calls}"


def _said(message: AnyMessage) -> str:
    """The message's text; an image or another medium is named."""
    own = isinstance(message, AIMessage)
    return str(message.text) if own else text_of(message.content)


def _size(text: str, calibration: float) -> int:
    # Counts the line breaks after the text, too.
    return calibrated(approximate_tokens(text + "\n\n"), calibration)
