"""Message classification: what becomes of an event, by the first rule that fits. Pure.

The rules and their order are the original's (original-system, section 16).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from memory.importance import AT, TRUST
from memory.records import Event, SourceType
from memory.reflection import is_reflection
from memory.settings import Settings, Verdict
from memory.tick import Classification

SYSTEM = "system"
"""The sender or channel of what no person said: notices, sensors, the world itself."""
_NAME_ENDS = r"(?![\w@]|[-.]\w)"
"""`@circadian-2`, `@circadian.example` and `@circadian@example.org` are other names."""


class Heard(NamedTuple):
    """What a rule looks at."""

    event: Event
    settings: Settings
    owners: Collection[str]


class Rule(NamedTuple):
    """A row of the table."""

    name: str
    verdict: Callable[[Heard], Verdict | None]
    """None: the rule does not fit."""
    reason: str
    """For a person; may name the sender, the channel and the verdict."""


def classify(event: Event, *, settings: Settings, owners: Sequence[str]) -> Classification:
    """What becomes of `event`, by which rule, and how far it is trusted."""
    heard = Heard(event, settings, owners)
    rule, verdict = next((r, v) for r in RULES if (v := r.verdict(heard)) is not None)
    channel = event["channel"] or "no channel"
    return {
        "verdict": verdict,
        "rule": rule.name,
        "trust": TRUST[source_type_of(event, settings)],
        "reason": rule.reason.format(sender=event["sender"], channel=channel, verdict=verdict),
    }


def wakes(event: Event, *, settings: Settings, owners: Sequence[str]) -> bool:
    """Whether `event` wakes the agent: it is acted on, and not for the assistant's own sake."""
    if is_reflection(event):
        return False
    return classify(event, settings=settings, owners=owners)["verdict"] == "act"


def source_type_of(event: Event, settings: Settings) -> SourceType:
    """Where an event's words come from; its trust is `TRUST` of that (ruling 2).

    What a person says to the assistant is direct, what it overhears is an observation; another
    assistant's words, and its own, are inference; environmental is what no person said. How rooms
    and senders are set up decides what is acted on, and makes nothing more or less trusted.
    """
    sender = event["sender"]
    if is_reflection(event) or _is_name(sender, settings) or sender in settings.assistants:
        return "inference"
    if SYSTEM in (_folded(sender), _folded(event["channel"] or "")):
        return "environmental"
    spoken_to = event["addressed"] or _mentioned(event["text"], settings)
    return "direct" if spoken_to else "observation"


def _disabled(heard: Heard) -> Verdict | None:
    return None if heard.settings.enabled else "ignore"


def _reflection(heard: Heard) -> Verdict | None:
    return "act" if is_reflection(heard.event) else None


def _own_message(heard: Heard) -> Verdict | None:
    """An owner who is called like the assistant is still heard."""
    sender = heard.event["sender"]
    own = sender not in heard.owners and _is_name(sender, heard.settings)
    return "ignore" if own else None


def _mention(heard: Heard) -> Verdict | None:
    return "act" if _mentioned(heard.event["text"], heard.settings) else None


def _direct(heard: Heard) -> Verdict | None:
    return "act" if heard.event["addressed"] else None


def _cross_talk(heard: Heard) -> Verdict | None:
    """Mention and direct stand before: an assistant that asks is answered.

    Two that ask each other may go on for as long as both do. A run still ends: what it answers is
    what was posted, and an answer posts nothing.
    """
    return "context" if heard.event["sender"] in heard.settings.assistants else None


def _permission(heard: Heard) -> Verdict | None:
    """Not owners: one who speaks to somebody else does not set the assistant off."""
    return "act" if heard.event["sender"] in heard.settings.permitted_senders else None


def _channel(heard: Heard) -> Verdict | None:
    channel = heard.event["channel"]
    return heard.settings.channels.get(channel) if channel else None


def _room_default(heard: Heard) -> Verdict | None:
    return heard.settings.room_default if heard.event["channel"] else None


def _fallback(heard: Heard) -> Verdict | None:
    return "context"


RULES: tuple[Rule, ...] = (
    Rule("disabled", _disabled, "The assistant is switched off (setting enabled)."),
    Rule("reflection", _reflection, "The assistant's look at its own work is due."),
    Rule("own_message", _own_message, "{sender} is the assistant itself (setting names)."),
    Rule("mention", _mention, "{sender} mentions the assistant by name."),
    Rule("direct", _direct, "{sender} speaks to the assistant."),
    Rule("cross_talk", _cross_talk, "{sender} is another assistant, and asks nothing of this one."),
    Rule("permission", _permission, "{sender} is always answered (setting permitted_senders)."),
    Rule("channel", _channel, "What is said to nobody in {channel}: {verdict} (setting channels)."),
    Rule(
        "room_default",
        _room_default,
        "What is said to nobody in a channel: {verdict} (setting room_default).",
    ),
    Rule("fallback", _fallback, "{sender} speaks to nobody."),
)
"""From the first to the last; the last one always fits."""


def _mentioned(text: str, settings: Settings) -> bool:
    """Whether `@` and one of the assistant's names stand in `text` as whole words, in any case."""
    words = [re.escape(word) for word in map(_folded, settings.names)]
    names = "|".join(word for word in words if word)
    return bool(names) and bool(re.search(f"{AT}(?:{names}){_NAME_ENDS}", _folded(text)))


def _is_name(sender: str, settings: Settings) -> bool:
    return _folded(sender) in map(_folded, settings.names)


def _folded(text: str) -> str:
    """`text` without case, and each letter written in one way; outer blanks cut."""
    return unicodedata.normalize("NFC", text.casefold()).strip()
