"""Compaction: where the history is cut, what is masked, and the summary of the old part. Pure.

Earlier summaries are kept word for word, whatever the model answers; the model sees them and
summarises only what is new. So they survive models that fail, forget, or obey the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import accumulate, chain
from math import ceil
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from memory.errors import ModelError
from memory.messages import MARK, is_summary, mark_of, prompt_lines, size_of, text_of
from memory.models import ended_by
from memory.records import CompactionResult, operation_id
from memory.text import (
    approximate_tokens,
    calibrated,
    cut_to,
    once_per_message,
    one_line,
    regex,
    sentences,
)

MASK = "[tool output removed by compaction]"


def history_limit(
    messages: Sequence[AnyMessage],
    *,
    limit: int,
    share: float,
    overflowed: bool,
    calibration: float,
) -> int:
    """The most tokens (calibrated) that the history may have: less than `share` of `limit`.

    If the provider refused the prompt (`overflowed`), the limit is wrong: half of it stays at most.
    """
    fits = max(0, ceil(limit * share) - 1)
    return min(fits, size_of(messages, calibration) // 2) if overflowed else fits


def masked(message: AnyMessage, *, always: bool = False) -> AnyMessage:
    """A tool message with its output masked, if that is shorter or `always`; others unchanged."""
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


SUMMARIES_DIVISOR = 8
"""All summaries together get 1/SUMMARIES_DIVISOR of the tokens that a compaction leaves."""

NEW_DIVISOR = 4
"""The new summary gets at least 1/NEW_DIVISOR of the tokens for summaries."""

LEAST_SUMMARY = 96
"""Tokens for all summaries in a small context; half of the context if that is less."""

HEAD_TOKENS = 12
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
        """Whether there is anything to replace. Earlier summaries alone stay if they fit."""
        earlier = [one for one in self.old if is_summary(one)]
        most = self.summaries + calibrated(HEAD_TOKENS, calibration)
        return bool(self.fresh) or size_of(earlier, calibration) > most


def summary_reserve(fits: int) -> int:
    """Tokens for all summaries together when a compaction leaves `fits` tokens."""
    return max(fits // SUMMARIES_DIVISOR, min(LEAST_SUMMARY, fits // 2))


def cut(messages: Sequence[AnyMessage], window: int, *, fits: int, calibration: float) -> Cut:
    """Keep the newest `window` messages, each call with its answers, in `fits` tokens if possible.

    The current tick's exchange is always kept; only its tool outputs may be masked.
    """
    places = _places(messages)
    newest = [at for at, one in enumerate(messages) if isinstance(one, HumanMessage)][-1:]
    last = max(place for place in places if place <= (newest[0] if newest else len(messages)))
    most = min(last, max(0, len(messages) - window))
    whole = _sizes_from(messages, calibration)
    bare = _sizes_from([masked(message) for message in messages], calibration)
    earliest = max(place for place in places if place <= most)
    if whole[earliest] + _least(messages[:earliest], fits, calibration) <= fits:
        return _cut(messages, earliest, fits - whole[earliest], fits, calibration)
    # Too long with its tool outputs: count these as masked, and cut later until the rest fits.
    reserve = summary_reserve(fits)
    later = (place for place in places if earliest <= place <= last)
    at = next((place for place in later if bare[place] + reserve <= fits), last)
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


def split_reserve(earlier: int, tokens: int) -> tuple[int, int]:
    """(tokens for the earlier summaries, tokens for the new one), of `tokens` in all.

    Without room, earlier ones are cut to half, so that not every compaction shortens them again.
    """
    if earlier <= tokens - tokens // NEW_DIVISOR:
        return earlier, tokens - earlier
    return tokens // 2, tokens - tokens // 2


def _cut(messages: Sequence[AnyMessage], at: int, left: int, fits: int, calibration: float) -> Cut:
    old, kept = list(messages[:at]), list(messages[at:])
    least = _least(old, fits, calibration)
    text = max(least, min(left, summary_reserve(fits))) - calibrated(HEAD_TOKENS, calibration)
    return Cut(old, kept, max(1, text))


def _least(old: Sequence[AnyMessage], fits: int, calibration: float) -> int:
    """The tokens that keep the earlier summaries in `old` whole beside a new one."""
    reserve = summary_reserve(fits)
    earlier = size_of([one for one in old if is_summary(one)], calibration)
    return min(reserve, earlier + reserve // NEW_DIVISOR) if old else 0


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


def _sizes_from(messages: Sequence[AnyMessage], calibration: float) -> list[int]:
    """Tokens from each position to the end."""
    sums = accumulate((approximate_tokens([one]) for one in reversed(messages)), initial=0)
    return [calibrated(one, calibration) for one in sums][::-1]


# The summary.

HEAD = "[extract, no summary: the words of the conversation, shortened]"
"""The extract's first line."""

LEAST, MOST = 24, 240
"""Tokens per exchange; the newest has a fourth of the room, and the oldest are only counted."""

_DETAIL = regex(
    r"\d|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\btomorrow\b|\bdeadline\b", re.IGNORECASE
)

_NAME = regex(r"(?<=\S\s)[\W_]{0,9}[A-Z\u00c0-\u00de][\w'-]+")
"""A capitalised word that is not the first."""


@dataclass
class _Exchange:
    """A question with the tools called and the replies."""

    at: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """(who, what)."""
    tools: list[str] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)


def extract(messages: Sequence[AnyMessage], tokens: int, calibration: float) -> str:
    """The messages in at most `tokens` (calibrated), the newest in more detail."""
    told = [one for one in _exchanges(messages) if one.asked or one.tools or one.replies]
    older = "... {} older exchanges left out; the journal has them"
    left = tokens - _size(f"{HEAD}\n{older.format(len(told))}\n", calibration)
    lines: list[str] = []
    least, most = calibrated(LEAST, calibration), calibrated(MOST, calibration)
    for exchange in reversed(told):
        if left < least:
            break
        lines.append(_line(exchange, min(most, max(least, left // 4)) - 1, calibration))
        left -= _size(lines[-1] + "\n", calibration)
    if not lines:
        newest = _line(told[-1], MOST, calibration) if told else ""
        return cut_to(f"[extract] {newest}", tokens, calibration)
    counted = [older.format(len(told) - len(lines))] if len(lines) < len(told) else []
    return "\n".join([HEAD, *counted, *reversed(lines)])


def condensed(text: str, tokens: int, calibration: float, note: str) -> str:
    """`text` in at most `tokens` (calibrated); sentences without date, number or name go first,
    then the oldest. `note` at the end says that some did.
    """
    if _size(text, calibration) <= tokens:
        return text
    pieces = list(dict.fromkeys(sentences(text)))
    left = tokens - _size(f"\n{note}", calibration)
    kept = set[int]()
    for at in sorted(range(len(pieces)), key=lambda at: (not _telling(pieces[at]), -at)):
        if (size := _size(pieces[at] + "\n", calibration)) <= left:
            kept.add(at)
            left -= size
    if not kept:
        return cut_to(text, tokens, calibration)
    return "\n".join([*(pieces[at] for at in sorted(kept)), note])


def _telling(sentence: str) -> bool:
    """Whether it has a date, a number or a name, or is a note in brackets such as HEAD."""
    return bool(sentence[:1] == "[" or _DETAIL.search(sentence) or _NAME.search(sentence))


def _exchanges(messages: Iterable[AnyMessage]) -> list[_Exchange]:
    found = [_Exchange()]
    for message in messages:
        text = " ".join(text_of(message.content).split())
        if isinstance(message, HumanMessage):
            if found[-1].tools or found[-1].replies:
                found.append(_Exchange())
            found[-1].asked.append((message.name or "", text))
            found[-1].at = found[-1].at or str(mark_of(message).get("at") or "")[:10]
        elif isinstance(message, AIMessage):
            found[-1].tools += [str(call["name"]) for call in message.tool_calls]
            found[-1].replies += [str(message.text)] if str(message.text).strip() else []
        elif isinstance(message, ToolMessage):
            if message.status == "error":
                found[-1].tools.append(f"{message.name or 'a tool'} failed")
        else:
            found[-1].asked.append(("", text))
    return found


def _line(exchange: _Exchange, tokens: int, calibration: float) -> str:
    """The exchange on one line of at most `tokens`; what was asked leaves room for the reply."""
    when = f"- {exchange.at} " if exchange.at else "- "
    said = " ".join(f"{who or 'asked'}: {what}" for who, what in exchange.asked if what)
    tools = ", ".join(dict.fromkeys(exchange.tools))
    reply = " ".join(" ".join(exchange.replies).split())
    rest = (f" [tools: {tools}]" if tools else "") + (f" answered: {reply}" if reply else "")
    if _size(f"{when}{said}{rest}", calibration) > tokens:
        said = cut_to(said, tokens // 2, calibration)
    return cut_to(f"{when}{said}{rest}", tokens, calibration)


def _size(text: str, calibration: float) -> int:
    return calibrated(approximate_tokens(text), calibration)


SHORTENED = "[earlier summaries shortened; the journal's archives have them whole]"


def transcript(messages: Sequence[AnyMessage], tokens: int, calibration: float) -> str:
    """The messages to summarise, a line each: `ROLE (NAME): TEXT`; too many: an extract."""
    text = "\n".join(_transcript_line(masked(message, always=True)) for message in messages)
    fits = _size(text + "\n\n", calibration) <= tokens
    return text if fits else extract(messages, tokens, calibration)


def carried_over(cut: Cut, calibration: float) -> tuple[str, int]:
    """(the earlier summaries, shortened to fit; tokens left for the new one)."""
    earlier = cut.earlier
    if not earlier:
        return "", cut.summaries
    had = _size(earlier + "\n\n", calibration)
    for_earlier, for_new = split_reserve(had, cut.summaries)
    carried = condensed(earlier, for_earlier, calibration, SHORTENED)
    return carried, for_new


def with_earlier(earlier: str, new: str) -> str:
    """Both texts, the earlier one first."""
    return "\n\n".join(part for part in (earlier, new) if part)


def extract_of_new(cut: Cut, tokens: int, calibration: float) -> str:
    """Extractive summary of the new messages, shorter than they are; it takes half of the room."""
    most = max(3 * size_of(cut.fresh, calibration) // 4, 48)
    return extract(cut.fresh, min(tokens, cut.summaries // 2, most), calibration)


SLIGHTLY = 3
"""A summary of at most N times the tokens that fit can still be shortened by the model."""


def slightly_too_long(
    answer: AIMessage, messages: Sequence[AnyMessage], tokens: int, calibration: float
) -> bool:
    """Whether the model's summary is whole, and only somewhat too long for `checked_summary`."""
    size = _size(_summary_of(answer) + "\n\n", calibration)
    longest = min(tokens, size_of(messages, calibration) - 1)
    return ended_by(answer) != "length" and longest < size <= SLIGHTLY * longest


def checked_summary(
    answer: AIMessage, messages: Sequence[AnyMessage], tokens: int, calibration: float
) -> str:
    """The model's summary of `messages`, of at most `tokens` (calibrated). Raises ModelError."""
    text = _summary_of(answer)
    if not text:
        raise ModelError("the summary is empty")
    if ended_by(answer) == "length":
        raise ModelError("the summary is cut off")
    size = _size(text + "\n\n", calibration)
    if size >= size_of(messages, calibration):
        raise ModelError("the summary is longer than what it summarises")
    if size > tokens:
        raise ModelError(f"the summary has {size:,} tokens where {tokens:,} fit")
    return text


def _summary_of(answer: AIMessage) -> str:
    return str(answer.text).strip().removeprefix(MARK).strip()


def _transcript_line(message: AnyMessage) -> str:
    calls = ""
    if isinstance(message, AIMessage) and message.tool_calls:
        calls = " [calls " + ", ".join(call["name"] for call in message.tool_calls) + "]"
    # An image or another medium that somebody sent is named.
    said = str(message.text) if isinstance(message, AIMessage) else text_of(message.content)
    return prompt_lines.turn_line(message.type, message.name, f"{one_line(said)}{calls}")
