"""The summary text of a compaction: earlier summaries, then a summary of what is new. Pure.

Earlier summaries are kept word for word, whatever the model answers; the model sees them and
summarises only what is new. So they survive models that fail, forget, or obey the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from memory.compaction.cut import Cut, masked, shares
from memory.errors import ModelError
from memory.messages import MARK, mark_of, one_line, prompt_lines, size_of, text_of
from memory.models import ended_by
from memory.text import approximate_tokens, calibrated, cut_to, sentences

HEAD = "[extract, no summary: the words of the conversation, shortened]"
"""The extract's first line."""

LEAST = 24
"""Tokens per exchange at least; if there are too few, the oldest are only counted."""

SHORT = 8
"""Tokens to which the last sentence may be cut, at least."""

MOST = 240
"""Tokens per exchange, at most."""

NEWEST = 3
"""The newest exchange may be N times as long as the oldest."""

_DETAIL = re.compile(
    r"\d|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\btomorrow\b|\bdeadline\b", re.IGNORECASE
)

_NAME = re.compile(r"(?<=\S\s)[\W_]{0,9}[A-Z\u00c0-\u00de][\w'-]+")
"""A capitalised word that is not the first."""

_SPREAD = 0.618033988749895
"""The golden ratio: multiples of it, modulo 1, spread evenly."""


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
    left = tokens - _size(HEAD + "\n", calibration)
    count = min(len(told), left // calibrated(LEAST, calibration))
    older = f"... {len(told) - count} older exchanges left out; the journal has them"
    head = [HEAD, older] if count < len(told) else [HEAD]
    left -= _size(older + "\n", calibration) if count < len(told) else 0
    if count < 1 or left < calibrated(LEAST, calibration):
        newest = _line(told[-1], MOST, calibration) if told else ""
        return cut_to(f"[extract] {newest}", tokens, calibration)
    lines: list[str] = []
    share = calibrated(MOST, calibration)
    for place in range(count - 1, -1, -1):
        # An older exchange never gets more room than a newer one.
        share = min(share, int(left * _weight(place, count)))
        lines.append(_line(told[len(told) - count + place], share - 1, calibration))
        left -= _size(lines[-1] + "\n", calibration)
    return "\n".join([*head, *reversed(lines)])


def condensed(text: str, tokens: int, calibration: float, note: str = "") -> str:
    """`text` in at most `tokens` (calibrated); sentences without date, number or name go first.

    Dropped sentences are spread over the text; `note` at the end says that some were.
    """
    if _size(text, calibration) <= tokens:
        return text
    lines = [sentences(line) for line in text.split("\n")]
    # A repeated sentence stays once.
    places = {
        one: (at, n) for at, line in reversed([*enumerate(lines)]) for n, one in enumerate(line)
    }
    pieces = sorted((place, one) for one, place in places.items())
    spare = tokens - _size(f"\n{note}", calibration) if note else tokens
    ranked = sorted(
        range(len(pieces)), key=lambda at: (not _telling(pieces[at][1]), at * _SPREAD % 1)
    )
    kept: dict[int, list[tuple[int, str]]] = {}
    for left, at in zip(range(len(ranked), 0, -1), ranked, strict=True):
        (line, place), sentence = pieces[at]
        # No sentence may take all the room.
        most = spare if left == 1 else spare // 2
        shown = cut_to(sentence, most - 1, calibration)
        if shown == sentence or most >= (SHORT if left == 1 else LEAST):
            kept.setdefault(line, []).append((place, shown))
            spare -= _size(shown + "\n", calibration)
    told = [" ".join(one for _, one in sorted(kept[line])) for line in sorted(kept)]
    if not told:
        return cut_to(text, tokens, calibration)
    return "\n".join([*told, note] if note else told)


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
    """The exchange on one line of at most `tokens`, with room for the reply."""
    when = f"- {exchange.at} " if exchange.at else "- "
    said = " ".join(f"{who or 'asked'}: {what}" for who, what in exchange.asked if what)
    tools = ", ".join(dict.fromkeys(exchange.tools))
    reply = " ".join(" ".join(exchange.replies).split())
    used = f" [tools: {tools}]" if tools else ""
    answered = f" answered: {reply}" if reply else ""
    whole = f"{when}{said}{used}{answered}"
    if _size(whole, calibration) <= tokens:
        return whole
    left = tokens - _size(when, calibration) - 1
    used = cut_to(used, left // 4, calibration)
    left -= _size(used, calibration)
    share = left * 2 // 5 if said else left
    answered = condensed(answered, share, calibration)
    said = condensed(said, left - _size(answered, calibration), calibration)
    return f"{when}{said}{used} {answered.strip()}".rstrip()


def _weight(place: int, count: int) -> float:
    """The share of an exchange in the room left for it and all older ones."""
    slope = (NEWEST - 1) / max(1, count - 1)
    return (1 + slope * place) / ((place + 1) * (1 + slope * place / 2))


def _size(text: str, calibration: float) -> int:
    return calibrated(approximate_tokens(text), calibration)


SHORTENED = "[earlier summaries shortened; the journal's archives have them whole]"


def transcript(messages: Sequence[AnyMessage], tokens: int, calibration: float) -> str:
    """The messages to summarise, a line each: `ROLE (NAME): TEXT`; too many: an extract."""
    text = "\n".join(_transcript_line(masked(message, always=True)) for message in messages)
    fits = _size(text + "\n\n", calibration) <= tokens
    return text if fits else extract(messages, tokens, calibration)


def room_for(cut: Cut, calibration: float) -> tuple[str, int]:
    """(the earlier summaries' text, tokens for the new summary)."""
    earlier = cut.earlier
    if not earlier:
        return "", cut.summaries
    had = _size(earlier + "\n\n", calibration)
    for_earlier, for_new = shares(had, cut.summaries)
    carried = condensed(earlier, for_earlier, calibration, SHORTENED)
    return carried, for_new


def joined(earlier: str, new: str) -> str:
    """Both texts, the earlier one first."""
    return "\n\n".join(part for part in (earlier, new) if part)


def extracted(cut: Cut, tokens: int, calibration: float) -> str:
    """Extractive summary of the new messages, shorter than they are; it takes half of the room."""
    most = max(3 * size_of(cut.fresh, calibration) // 4, 48)
    return extract(cut.fresh, min(tokens, cut.summaries // 2, most), calibration)


SLIGHTLY = 3
"""A summary of at most N times the tokens that fit can still be shortened by the model."""


def slightly_too_long(
    answer: AIMessage, messages: Sequence[AnyMessage], tokens: int, calibration: float
) -> bool:
    """Whether the model's summary is whole, and only somewhat longer than what `accepted` takes."""
    size = _size(_summary_of(answer) + "\n\n", calibration)
    longest = min(tokens, size_of(messages, calibration) - 1)
    return ended_by(answer) != "length" and longest < size <= SLIGHTLY * longest


def accepted(
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
