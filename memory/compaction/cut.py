"""Where a compaction cuts the history, what it masks, and its summary message. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate, chain
from math import ceil
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from memory.messages import MARK, is_summary, size_of
from memory.records import CompactionResult, operation_id
from memory.text import approximate_tokens, calibrated, once_per_message

MASK = "[tool output removed by compaction]"


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


def masked(message: AnyMessage, *, always: bool = False) -> AnyMessage:
    """Mask a tool message's output if that is shorter, or `always`; other messages stay."""
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
    """The summary message that replaces the `compacted` messages; its id derives from their ids."""
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
"""


def kept_keys(origin: str, ids: Sequence[str]) -> dict[str, str]:
    """The store keys of a summary, and of an extract for one event or night (`origin`)."""
    return {
        "summary": operation_id("compaction", *ids),
        "extract": operation_id("extract", origin, *ids),
    }


def covered_events(messages: Sequence[AnyMessage]) -> list[str]:
    """The event ids that `messages` and summaries among them cover, oldest first."""
    return list(dict.fromkeys(chain.from_iterable(_covered.each(messages))))


@once_per_message
def _covered(message: AnyMessage) -> list[str]:
    kept = message.additional_kwargs.get("metadata", {})
    mark = message.additional_kwargs.get("circadian", {})
    if isinstance(message, HumanMessage) and isinstance(mark, dict) and mark.get("event"):
        return [mark["event"]]
    return kept.get("sources", []) if isinstance(kept, dict) else []


def visible_events(messages: Sequence[AnyMessage]) -> list[str]:
    """The ids of the events that stand among `messages` word for word, oldest first."""
    return covered_events([one for one in messages if "metadata" not in one.additional_kwargs])


SUMMARIES_SHARE = 8
"""All summaries together get 1/SUMMARIES_SHARE of the tokens that a compaction leaves."""

NEW_SHARE = 4
"""The new summary gets at least 1/NEW_SHARE of the tokens for summaries."""

LEAST = 96
"""Tokens for all summaries in a small context; half of the context if that is less."""

HEAD = 12
"""Tokens of a summary message without its text."""


class Cut(NamedTuple):
    """The history in two parts."""

    old: list[AnyMessage]
    """The messages to replace, earlier summaries included."""
    kept: list[AnyMessage]
    """The messages to keep. Which of them are masked depends on the summary's final length."""
    summaries: int
    """Tokens (calibrated) for the text in place of `old`."""

    @property
    def earlier(self) -> str:
        """The earlier summaries as one text."""
        texts = [str(one.text) for one in self.old if is_summary(one)]
        return "\n\n".join(text.removeprefix(MARK).strip() for text in texts)

    @property
    def fresh(self) -> list[AnyMessage]:
        """The messages that no summary covers yet."""
        return [one for one in self.old if not is_summary(one)]

    def gives_way(self, calibration: float) -> bool:
        """Whether there is anything to replace: earlier summaries alone stay if they fit."""
        earlier = [one for one in self.old if is_summary(one)]
        most = self.summaries + calibrated(HEAD, calibration)
        return bool(self.fresh) or size_of(earlier, calibration) > most


def room_of(fits: int) -> int:
    """Tokens for all summaries together when a compaction leaves `fits` tokens."""
    return max(fits // SUMMARIES_SHARE, min(LEAST, fits // 2))


def cut(messages: Sequence[AnyMessage], window: int, *, fits: int, calibration: float) -> Cut:
    """Keep the newest `window` messages, each call with its answers, in `fits` tokens if possible.

    The current tick's exchange is always kept; only its tool outputs may be masked.
    """
    places = _places(messages)
    newest = [at for at, one in enumerate(messages) if isinstance(one, HumanMessage)][-1:]
    last = max(place for place in places if place <= (newest[0] if newest else len(messages)))
    most = min(last, max(0, len(messages) - window))
    whole, bare = _sizes_from(messages, calibration)
    at = max(place for place in places if place <= most)
    reserve = room_of(fits)
    if whole[at] + _least(messages[:at], fits, calibration) <= fits:
        return _cut(messages, at, fits - whole[at], fits, calibration)
    following = (place for place in places if at <= place <= last)
    at = next((place for place in following if bare[place] + reserve <= fits), last)
    return _cut(messages, at, fits - bare[at], fits, calibration)


def replaced(
    parts: Cut, marker: SystemMessage | None, *, fits: int, calibration: float
) -> list[AnyMessage]:
    """The history after the cut, with tool outputs masked, oldest first, as far as needed."""
    first: list[AnyMessage] = list(parts.old) if marker is None else [marker]
    left = fits - size_of(first, calibration)
    return [*first, *masked_to_fit(parts.kept, left, calibration)]


def result_of(
    before: Sequence[AnyMessage],
    after: Sequence[AnyMessage],
    compacted: int,
    calibration: float,
    *,
    archive: str | None = None,
    by: Literal["summary", "extract", "masking"] = "masking",
    error: str | None = None,
) -> CompactionResult:
    """The result of replacing `compacted` messages, for the report."""
    result: CompactionResult = {
        "success": True,
        "by": by,
        "compacted_count": compacted,
        "preserved_count": len(after) - bool(compacted),
        "tokens_before": size_of(before, calibration),
        "tokens_after": size_of(after, calibration),
        "archive": archive,
        "error": error,
    }
    return {**result, "skipped": True} if list(after) == list(before) else result


def shares(earlier: int, tokens: int) -> tuple[int, int]:
    """(tokens for the earlier summaries, tokens for the new one), of `tokens` in all.

    Without room, earlier ones are cut to half, so that not every compaction shortens them again.
    """
    if earlier <= tokens - tokens // NEW_SHARE:
        return earlier, tokens - earlier
    return tokens // 2, tokens - tokens // 2


def _cut(messages: Sequence[AnyMessage], at: int, left: int, fits: int, calibration: float) -> Cut:
    old, kept = list(messages[:at]), list(messages[at:])
    least = _least(old, fits, calibration)
    text = max(least, min(left, room_of(fits))) - calibrated(HEAD, calibration)
    return Cut(old, kept, max(1, text))


def _least(old: Sequence[AnyMessage], fits: int, calibration: float) -> int:
    """The tokens that keep the earlier summaries in `old` whole beside a new one."""
    reserve = room_of(fits)
    earlier = size_of([one for one in old if is_summary(one)], calibration)
    return min(reserve, earlier + reserve // NEW_SHARE) if old else 0


def _places(messages: Sequence[AnyMessage]) -> list[int]:
    """Ascending positions at which a cut does not part a tool call from its answers."""
    asked: dict[str, int] = {}
    barred: set[int] = set()
    for place, message in enumerate(messages):
        if isinstance(message, AIMessage):
            asked |= {str(call["id"]): place for call in message.tool_calls}
        elif isinstance(message, ToolMessage):
            first = asked.get(message.tool_call_id, place)
            barred.update(range(first + 1, place + 1))
    return [place for place in range(len(messages) + 1) if place not in barred]


def _sizes_from(messages: Sequence[AnyMessage], calibration: float) -> tuple[list[int], list[int]]:
    """Tokens from each position to the end: as the messages are, and with outputs masked."""
    bare = [masked(message) for message in messages]
    return _from_each(messages, calibration), _from_each(bare, calibration)


def _from_each(messages: Sequence[AnyMessage], calibration: float) -> list[int]:
    sums = accumulate((approximate_tokens([one]) for one in reversed(messages)), initial=0)
    return [calibrated(one, calibration) for one in sums][::-1]
