"""Conversations in LoCoMo's format (Maharana et al., ACL 2024): turns and questions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

Conversation = dict[str, Any]

CATEGORIES = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}


class Session(NamedTuple):
    """The turns of one session."""

    start: datetime
    turns: list[dict[str, Any]]


class Question(NamedTuple):
    """A question with evidence."""

    text: str
    category: int | str
    gold: list[str]
    """Ids of the turns that answer it, without duplicates."""


def read_conversations(path: Path) -> list[Conversation]:
    """Read the conversations of a file. Raises ValueError if it is no JSON list of them."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError(str(error)) from None
    if not isinstance(found, list):
        raise ValueError("no list of conversations")
    wanted = {"sample_id", "conversation", "qa"}
    for place, item in enumerate(found):
        if not isinstance(item, dict) or not wanted <= item.keys():
            raise ValueError(f"item {place} lacks one of {', '.join(sorted(wanted))}")
    return found


def sessions(conversation: Conversation) -> Iterator[Session]:
    """The sessions of a conversation, in order."""
    said = conversation["conversation"]
    numbers = sorted(int(key.split("_")[1]) for key in said if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        start = session_time(said[f"session_{number}_date_time"])
        yield Session(start, said[f"session_{number}"])


def session_time(text: str) -> datetime:
    """A session's time, as in `1:56 pm on 8 May, 2023`; taken as UTC."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def session_label(at: str) -> str:
    """An ISO time as a session's time; the inverse of `session_time` up to the minute."""
    return datetime.fromisoformat(at).astimezone(UTC).strftime("%I:%M %p on %d %B, %Y")


def text_of(turn: dict[str, Any]) -> str:
    """The text of a turn, with an image's caption."""
    caption = f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return f"{turn['text']}{caption}"


def events_of(session: Session) -> list[dict[str, Any]]:
    """A session's turns as overheard events, half a minute apart where they have no time."""
    return [
        {
            "id": turn["dia_id"],
            "at": turn.get("at") or (session.start + timedelta(seconds=30 * place)).isoformat(),
            "sender": turn["speaker"],
            "text": text_of(turn),
            "addressed": False,
        }
        for place, turn in enumerate(session.turns)
    ]


def spoken(conversation: Conversation) -> dict[str, str]:
    """Turn id -> "speaker: text"."""
    turns = [turn for session in sessions(conversation) for turn in session.turns]
    return {turn["dia_id"]: f"{turn['speaker']}: {text_of(turn)}" for turn in turns}


def questions(conversation: Conversation) -> list[Question]:
    """The questions with existing turns as evidence. One string may hold several turn ids."""
    turns = spoken(conversation)
    found = []
    for raw in conversation["qa"]:
        ids = [i for text in raw.get("evidence", []) for i in re.findall(r"D\d+:\d+", text)]
        gold = [i for i in dict.fromkeys(ids) if i in turns]
        if gold:
            found.append(Question(raw["question"], raw["category"], gold))
    return found


def session_of(turn: str) -> str:
    """The session id in a turn id: `D3` of `D3:12`."""
    return turn.partition(":")[0]


def evidence_recall(found: Sequence[str], gold: Sequence[str], count: int) -> float:
    """The fraction of `gold` among the first `count` distinct ids of `found`."""
    first = list(dict.fromkeys(found))[:count]
    return len(set(gold) & set(first)) / len(set(gold))
