"""Where a compaction cuts the history, and how long what stands for the old part may be. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from memory.compacted import CompactionResult
from memory.compaction import MARK, masked, masked_to_fit, size_of
from memory.history import is_summary
from memory.tokens import approximate_tokens, calibrated

SUMMARIES_SHARE = 8
"""All summaries together have 1 of so many parts of what a compaction leaves."""
NEW_SHARE = 4
"""Of that, what is newly cut has 1 of so many parts, however long the earlier summaries are."""
LEAST = 96
"""Tokens that they have in a small context, up to half of it."""
HEAD = 12
"""Tokens of a marker without its text."""


class Cut(NamedTuple):
    """The history in two parts."""

    old: list[AnyMessage]
    """What goes, earlier summaries included."""
    kept: list[AnyMessage]
    """What stays, as it is: what of it is masked is seen when the summary stands."""
    summaries: int
    """Tokens (calibrated) for the text that stands for `old`."""

    @property
    def earlier(self) -> str:
        """What earlier compactions left, as one text."""
        texts = [str(one.text) for one in self.old if is_summary(one)]
        return "\n\n".join(text.removeprefix(MARK).strip() for text in texts)

    @property
    def fresh(self) -> list[AnyMessage]:
        """What nothing stands for yet."""
        return [one for one in self.old if not is_summary(one)]

    def gives_way(self, calibration: float) -> bool:
        """Whether there is anything to put a text in the place of.

        Earlier summaries alone stay as they are, unless they are longer than they may be.
        """
        earlier = [one for one in self.old if is_summary(one)]
        most = self.summaries + calibrated(HEAD, calibration)
        return bool(self.fresh) or size_of(earlier, calibration) > most


def room_of(fits: int) -> int:
    """Tokens for all summaries together, where a compaction leaves `fits`: in a small context more
    than their share, for a text that says anything has some length.
    """
    return max(fits // SUMMARIES_SHARE, min(LEAST, fits // 2))


def split(messages: Sequence[AnyMessage], window: int) -> tuple[list[AnyMessage], list[AnyMessage]]:
    """(old, kept): the newest `window` or more are kept, calls never part from answers."""
    most = max(0, len(messages) - window)
    cut = max(place for place in _places(messages) if place <= most)
    return list(messages[:cut]), list(messages[cut:])


def cut(messages: Sequence[AnyMessage], window: int, *, fits: int, calibration: float) -> Cut:
    """As `split`, but what is kept and a summary fit `fits` tokens, if that can be had (ruling 8).

    The newest human message and all after it, which is the exchange of the tick in hand, are kept
    whatever the window; of them only tool outputs are masked. Where the window alone is too long,
    the tool outputs in it are counted as masked, and then it shrinks.
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
    """The history after the cut: tool outputs masked, oldest first, as far as it takes to fit.

    Without a marker nothing was cut.
    """
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
    """What the compaction of `compacted` messages came to, for the report."""
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
    """(for earlier summaries, for what is newly cut): how `tokens` are given to both.

    Earlier summaries stay word for word as long as there is room for what is new. Where there is
    none left they are shortened by so much that it does not come to that every time.
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
    """Tokens without which the summaries of `old` would lose what earlier ones say."""
    reserve = room_of(fits)
    earlier = size_of([one for one in old if is_summary(one)], calibration)
    return min(reserve, earlier + reserve // NEW_SHARE) if old else 0


def _places(messages: Sequence[AnyMessage]) -> list[int]:
    """Where the history can be cut, ascending: no call parts from its answers."""
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
    """Tokens from each place on to the end: as the messages are, and with all outputs masked."""
    bare = [masked(message) for message in messages]
    return _from_each(messages, calibration), _from_each(bare, calibration)


def _from_each(messages: Sequence[AnyMessage], calibration: float) -> list[int]:
    sums = accumulate((approximate_tokens([one]) for one in reversed(messages)), initial=0)
    return [calibrated(one, calibration) for one in sums][::-1]
