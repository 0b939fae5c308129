"""Compaction of the history: its size, the masking of tool outputs, and the summary message.

`memory.cutting` decides where the history is cut (data-flow-01, section 1).
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
    """The share (0..) of `limit` tokens that the history alone fills (ruling 8)."""
    return size_of(messages, calibration) / limit


def room(
    messages: Sequence[AnyMessage],
    *,
    limit: int,
    share: float,
    overflowed: bool,
    calibration: float,
) -> int:
    """The most tokens (calibrated) that the history may have after a compaction.

    That is less than `share` of `limit`. If the provider refused the prompt (`overflowed`), the
    limit is wrong, and at most half of the history's tokens may stay.
    """
    fits = max(0, ceil(limit * share) - 1)
    return min(fits, size_of(messages, calibration) // 2) if overflowed else fits


def size_of(messages: Sequence[AnyMessage], calibration: float) -> int:
    """Tokens of the messages, calibrated."""
    return calibrated(approximate_tokens(messages), calibration)


def masked(message: AnyMessage, *, always: bool = False) -> AnyMessage:
    """A tool message with its output masked if that is shorter, or `always`; others unchanged."""
    if not isinstance(message, ToolMessage) or message.content == MASK:
        return message
    bare = message.model_copy(update={"content": MASK})
    shorter = always or approximate_tokens([bare]) < approximate_tokens([message])
    return bare if shorter else message


def masked_to_fit(
    messages: Sequence[AnyMessage], fits: int, calibration: float
) -> list[AnyMessage]:
    """The messages with tool outputs masked, oldest first, until they fit into `fits` tokens."""
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
    """The summary message in place of the `compacted` messages; its id is made from theirs.

    `by`: `summary`, or `extract` if its newest part quotes the conversation.
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
"""Store namespace: a key of `kept_keys` -> {text, at, by, error}, a summary not in the history yet.

A lost one is made again.
"""


def kept_keys(origin: str, ids: Sequence[str]) -> dict[str, str]:
    """The store keys of a summary and of an extract of the messages `ids`.

    An extract is valid for one event or night (`origin`) only: the next one asks the model again.
    """
    return {
        "summary": operation_id("compaction", *ids),
        "extract": operation_id("extract", origin, *ids),
    }


def covered_events(messages: Sequence[AnyMessage]) -> list[str]:
    """The event ids that `messages` and summaries among them cover, oldest first."""
    found: dict[str, None] = {}
    for message in messages:
        kept = message.additional_kwargs.get("metadata", {})
        ids = kept.get("sources", []) if isinstance(kept, dict) else []
        mark = message.additional_kwargs.get("circadian", {})
        if isinstance(message, HumanMessage) and isinstance(mark, dict) and mark.get("event"):
            ids = [mark["event"]]
        found.update(dict.fromkeys(ids))
    return list(found)
