"""Compaction: when it is due, what stands for what was cut, and how outputs are masked.

Where the history is cut is `memory.cutting`'s (data-flow-01, section 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from math import ceil
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, ToolMessage

from memory.operations import operation_id
from memory.tokens import approximate_tokens, calibrated

MARK = "[CONTEXT SUMMARY]"
MASK = "[tool output removed by compaction]"


def history_share(messages: Sequence[AnyMessage], calibration: float, limit: int) -> float:
    """The share (0..) of `limit` tokens that the conversation history alone fills (ruling 8)."""
    return size_of(messages, calibration) / limit


def room(
    messages: Sequence[AnyMessage],
    *,
    limit: int,
    share: float,
    overflowed: bool,
    calibration: float,
) -> int:
    """How many tokens (calibrated) a compaction leaves at most: less than `share` of `limit`.

    Where the provider refused the prompt, the limit is known to be wrong: then at most half of
    what the history has.
    """
    fits = max(0, ceil(limit * share) - 1)
    return min(fits, size_of(messages, calibration) // 2) if overflowed else fits


def size_of(messages: Sequence[AnyMessage], calibration: float) -> int:
    """Tokens of messages, calibrated."""
    return calibrated(approximate_tokens(messages), calibration)


def masked(message: AnyMessage, *, always: bool = False) -> AnyMessage:
    """The message without its output, where it is a tool's and the mask is shorter, or `always`."""
    if not isinstance(message, ToolMessage) or message.content == MASK:
        return message
    bare = message.model_copy(update={"content": MASK})
    shorter = always or approximate_tokens([bare]) < approximate_tokens([message])
    return bare if shorter else message


def masked_to_fit(
    messages: Sequence[AnyMessage], fits: int, calibration: float
) -> list[AnyMessage]:
    """The messages with tool outputs masked, oldest first, until they fit `fits` tokens."""
    left = list(messages)
    over = size_of(left, calibration) - fits
    for place, message in enumerate(left):
        if over <= 0:
            break
        bare = masked(message)
        if bare is not message:
            left[place] = bare
            over = size_of(left, calibration) - fits
    return left


def marker(
    summary: str, *, compacted: Sequence[AnyMessage], now: datetime, by: str = "summary"
) -> SystemMessage:
    """The message that stands for what was cut. Its id comes from the messages it covers.

    `by`: `summary`, or `extract` where its newest part is in the conversation's own words.
    """
    metadata: dict[str, Any] = {
        "type": "compaction",
        "compacted_count": len(compacted),
        "compacted_at": now.isoformat(),
        "by": by,
        "sources": covered_events(compacted),
    }
    return SystemMessage(
        content=f"{MARK}\n{summary}",
        id=operation_id("compaction", *[message.id or "" for message in compacted]),
        additional_kwargs={"metadata": metadata},
    )


SUMMARIES = "summaries"
"""Store namespace: key of `kept_keys` -> {text, at, by, error}, until it stands in the history.

Made again when needed.
"""


def kept_keys(origin: str, ids: Sequence[str]) -> dict[str, str]:
    """Under which keys what stands for the messages `ids` is kept: a summary, and an extract.

    An extract is kept for the event or the night (`origin`) alone.
    """
    return {
        "summary": operation_id("compaction", *ids),
        "extract": operation_id("extract", origin, *ids),
    }


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
