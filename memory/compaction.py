"""Compaction: when it is due, where the history is cut, what stands in its place (data-flow-01)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from memory.errors import ModelError
from memory.operations import operation_id
from memory.tokens import approximate_tokens, calibrated

MARK = "[CONTEXT SUMMARY]"
MASK = "[tool output removed by compaction]"


def history_share(messages: Sequence[AnyMessage], calibration: float, limit: int) -> float:
    """The share (0..) of `limit` tokens that the conversation history alone fills (ruling 8)."""
    return calibrated(approximate_tokens(messages), calibration) / limit


def split(messages: Sequence[AnyMessage], window: int) -> tuple[list[AnyMessage], list[AnyMessage]]:
    """(old, kept): the newest `window` or more are kept, calls never part from answers."""
    cut = max(0, len(messages) - window)
    while 0 < cut < len(messages) and isinstance(messages[cut], ToolMessage):
        cut -= 1
    return list(messages[:cut]), list(messages[cut:])


def split_forced(
    messages: Sequence[AnyMessage], window: int, *, fits: int, calibration: float
) -> tuple[list[AnyMessage], list[AnyMessage]]:
    """As `split`, but what is kept fits `fits` tokens (calibrated) if that can be had (ruling 8).

    The newest human message and all after it, which is the exchange of the tick in hand, are kept
    whatever the window; of them only tool outputs are masked. Tool outputs are masked oldest first,
    then the window shrinks.
    """
    newest = [at for at, one in enumerate(messages) if isinstance(one, HumanMessage)][-1:]
    floor = len(messages) - newest[0] if newest else 0
    window = max(window, floor)
    old, kept = split(messages, window)
    kept = _masked(kept, fits, calibration)
    while window > floor and _size(kept, calibration) > fits:
        window -= 1
        old, kept = split(messages, window)
        kept = _masked(kept, fits, calibration)
    return old, kept


def room(
    messages: Sequence[AnyMessage],
    *,
    limit: int,
    share: float,
    overflowed: bool,
    calibration: float,
) -> int:
    """How many tokens (calibrated) a forced compaction leaves: `share` (0..1) of `limit`.

    Where the provider refused the prompt, the limit is known to be wrong: then at most half of
    what the history has.
    """
    fits = int(limit * share)
    return min(fits, _size(messages, calibration) // 2) if overflowed else fits


def marker(summary: str, *, compacted: Sequence[AnyMessage], now: datetime) -> SystemMessage:
    """The message that stands for what was cut. Its id comes from the messages it covers."""
    metadata: dict[str, Any] = {
        "type": "compaction",
        "compacted_count": len(compacted),
        "compacted_at": now.isoformat(),
        "sources": covered_events(compacted),
    }
    return SystemMessage(
        content=f"{MARK}\n{summary}",
        id=operation_id("compaction", *[message.id or "" for message in compacted]),
        additional_kwargs={"metadata": metadata},
    )


def covered_events(messages: Sequence[AnyMessage]) -> list[str]:
    """The events that `messages` carry, earlier summaries included; oldest first."""
    found: dict[str, None] = {}
    for message in messages:
        kept = message.additional_kwargs.get("metadata", {})
        ids = kept.get("sources", []) if isinstance(kept, dict) else []
        mark = message.additional_kwargs.get("circadian", {})
        if isinstance(message, HumanMessage) and isinstance(mark, dict) and mark.get("event"):
            ids = [mark["event"]]
        found.update(dict.fromkeys(ids))
    return list(found)


def transcript(messages: Sequence[AnyMessage]) -> str:
    """The messages to summarise, a line each: `ROLE (NAME): TEXT`."""
    return "\n".join(_line(message) for message in messages)


def checked_summary(summary: str, source: str) -> str:
    """`summary` stripped. Raises ModelError when it is empty or not shorter than its source."""
    text = summary.strip()
    if not text:
        raise ModelError("the summary is empty; the history stays as it is")
    if len(text) >= len(source):
        raise ModelError(
            "the summary is longer than what it summarises; the history stays as it is"
        )
    return text


def _line(message: AnyMessage) -> str:
    name = f" ({' '.join(message.name.split())})" if message.name else ""
    calls = ""
    if isinstance(message, AIMessage) and message.tool_calls:
        calls = " [calls " + ", ".join(call["name"] for call in message.tool_calls) + "]"
    return f"{message.type}{name}: {' '.join(str(message.text).split())}{calls}"


def _masked(messages: list[AnyMessage], fits: int, calibration: float) -> list[AnyMessage]:
    masked = list(messages)
    for index, message in enumerate(masked):
        if _size(masked, calibration) <= fits:
            break
        if isinstance(message, ToolMessage) and message.content != MASK:
            masked[index] = message.model_copy(update={"content": MASK})
    return masked


def _size(messages: Sequence[AnyMessage], calibration: float) -> int:
    return calibrated(approximate_tokens(messages), calibration)
