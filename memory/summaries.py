"""The text that stands for what a compaction cut: earlier summaries, and what is new. Pure.

What earlier compactions left is carried on word for word, whatever the model answers; the model is
shown it and tells only what is new. So an earlier summary outlives models that fail, forget or obey
what stands in the conversation.
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
"""Why an answer ended, by provider, where it was cut off."""


def transcript(messages: Sequence[AnyMessage], tokens: int, calibration: float) -> str:
    """The messages to summarise, a line each: `ROLE (NAME): TEXT`. Tool outputs are masked.

    Where that is longer than `tokens` (calibrated), an extract of them.
    """
    text = "\n".join(_line(masked(message, always=True)) for message in messages)
    fits = _size(text, calibration) <= tokens
    return text if fits else extract(messages, tokens, calibration)


def room_for(cut: Cut, calibration: float) -> tuple[str, int]:
    """(what earlier summaries say, tokens for what is new)."""
    earlier = cut.earlier
    if not earlier:
        return "", cut.summaries
    had = _size(earlier, calibration)
    for_earlier, for_new = shares(had, cut.summaries)
    carried = condensed(earlier, for_earlier, calibration, SHORTENED)
    return carried, for_new


def joined(earlier: str, new: str) -> str:
    """The whole text, oldest first."""
    return "\n\n".join(part for part in (earlier, new) if part)


def extracted(cut: Cut, tokens: int, calibration: float) -> str:
    """What stands for what is new where no summary does; shorter than it is, if that can be.

    It leaves half of the room to what comes after it.
    """
    most = max(3 * size_of(cut.fresh, calibration) // 4, 48)
    return extract(cut.fresh, min(tokens, cut.summaries // 2, most), calibration)


def accepted(
    answer: AIMessage, messages: Sequence[AnyMessage], tokens: int, calibration: float
) -> str:
    """The model's summary of `messages`, of at most `tokens` (calibrated).

    Raises ModelError, which says why, for one that is empty, cut off, not shorter than what it
    stands for, or too long for its place.
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
    """Its words; an image or another medium is named."""
    own = isinstance(message, AIMessage)
    return str(message.text) if own else text_of(message.content)


def _size(text: str, calibration: float) -> int:
    # The line break behind it, or between it and the next one, is counted too.
    return calibrated(approximate_tokens(text + "\n\n"), calibration)
