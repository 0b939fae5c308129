"""Rules for events: classification, owners, journal entries, reflection, task assessment. Pure.

An owner is a person whose word the assistant's own prompt may follow. A sender is an owner by exact
id: names that look alike are other ids.

A task is assessed by visible rules, without a model. Its class, and not its complexity, recommends
fewer steps, because a short text ("Build a tavern") is often a large task. The table by complexity
serves assessments by a model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from memory.journal import (
    SYSTEM,
    TRUST,
    entry_id_of,
    heuristic_importance,
    known_entities,
    mentions,
    mentions_assistant,
    names_assistant,
    names_project,
    source_type_of,
)
from memory.records import (
    OPENING,
    OWN_PREFIX,
    Assessment,
    Classification,
    Event,
    EventClass,
    Familiar,
    Goal,
    JournalEntry,
    Priority,
    is_reflection,
)
from memory.settings import Settings, Verdict
from memory.state import State
from memory.text import (
    CRITICAL_AT,
    WARNING_AT,
    approximate_tokens,
    is_small_talk,
    regex,
    sentences,
    spoken_words,
)

_DEFAULTS = Settings()


def entry_id(event: Event) -> str:
    """Id of the journal entry of an event."""
    return entry_id_of("event", event["at"], event["id"])


def entry_for_event(
    event: Event,
    *,
    known_entities: Iterable[str] = (),
    projects: Iterable[str] = (),
    settings: Settings = _DEFAULTS,
    sender_bonus: int = 0,
) -> JournalEntry:
    """Journal entry of an event that was acted on or taken as context; needs no model call."""
    source = source_type_of(event, settings)
    text = event["text"]
    return {
        "id": entry_id(event),
        "timestamp": event["at"],
        "content": text,
        "source_type": source,
        "source_trust": TRUST[source],
        "source_entity": event["sender"],
        "importance": heuristic_importance(
            text,
            direct=event["addressed"],
            mentioned=mentions(text),
            known_entities=[name for name in known_entities if name != event["sender"]],
            sender_bonus=sender_bonus,
        ),
        "scoring_method": "heuristic",
        "tags": ["event"],
        "related_projects": [key for key in projects if names_project(text, key)],
        "sources": [event["id"]],
        "channel": event["channel"],
        "consolidation": "pending",
    }


def entry_in(state: State, event: Event, settings: Settings, familiar: Familiar) -> JournalEntry:
    """Journal entry of an event; people and projects come from the state and profiles."""
    return entry_for_event(
        event,
        known_entities=[*known_entities(state), *familiar.names],
        projects=state["projects"]["slots"],
        settings=settings,
        sender_bonus=familiar.bonus,
    )


# The reflection event, which makes the assistant review its own work. Entries of such a tick are
# tagged `self`: they are notes on that work, not memories of the world.


def due(tick: int, last_reflection: int, interval: int, *, event: Event | None) -> bool:
    """Whether the tick that ends now sets off a reflection; a reflection never sets off another."""
    if interval <= 0 or is_reflection(event):
        return False
    return tick - last_reflection >= interval


def reflection_event(
    tick: int, now: datetime, settings: Settings, *, since: int, calls: int, failed: int
) -> Event:
    """The reflection event that tick `tick` sets off; the same one if the tick is repeated.

    `since`: ticks after the last one. `calls`, `failed`: the session's tool calls.
    """
    return {
        "id": f"{OWN_PREFIX}reflection_{tick}",
        "at": now.isoformat(),
        "sender": next((name for name in settings.names if name.strip()), "circadian"),
        "text": (
            f"{OPENING} Ticks since you last looked at your own work: {since}; tool calls in this "
            f"session: {calls}, failed: {failed}."
        ),
        "channel": None,
        "addressed": True,
        "kind": "reflection",
    }


def owners_of(settings: Settings, *, user: str, served: bool) -> tuple[str, ...]:
    """The ids of the owners, at least one. The first sends the messages without a `name`.

    On a server (`served`) only the authenticated `user`, because clients send the settings.
    """
    if served or not settings.owners:
        return (user,)
    return tuple(settings.owners)


def set_off_by_owner(event: Event | None, *, owners: Collection[str], served: bool) -> bool:
    """Whether an owner set off the tick on `event` (None: an autonomous tick).

    On a server clients choose sender ids: only a chat message without a `name` is from the user.
    """
    if event is None or is_reflection(event):
        return False
    if served and event.get("kind") != "chat":
        return False
    return event["sender"] in owners


MOST_SHARED = 500
"""Shared channels that the state keeps."""


def shared_after(
    state: State, events: Iterable[Event], settings: Settings, owners: Collection[str]
) -> dict[str, str]:
    """After these events, the channels on which others than owners write, and since when."""
    talks = state["conversations"].values()
    after = dict(state["shared_channels"])
    for sender, channel, at in [
        *((one["entity"], one["channel"], one["last_at"]) for one in talks),
        *((one["sender"], one["channel"], one["at"]) for one in events),
    ]:
        other = sender not in {*owners, SYSTEM} and not names_assistant(sender, settings)
        if channel and other:
            after[channel] = min(at, after.pop(channel, at))
    return dict([*after.items()][-MOST_SHARED:])


# Classification, by the first rule that fits.


class Heard(NamedTuple):
    """The input of a rule."""

    event: Event
    settings: Settings
    owners: Collection[str]


class EventRule(NamedTuple):
    """A classification rule."""

    name: str
    verdict: Callable[[Heard], Verdict | None]
    """None: the rule does not fit."""
    reason: str
    """Shown to a person; may contain {sender}, {channel} and {verdict}."""


def classify(event: Event, *, settings: Settings, owners: Sequence[str]) -> Classification:
    """The verdict on `event`, the rule behind it, and the trust in its source."""
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
    """Whether `event` wakes the agent: it is acted on, and it is not a reflection."""
    if is_reflection(event):
        return False
    return classify(event, settings=settings, owners=owners)["verdict"] == "act"


def _own_message(heard: Heard) -> Verdict | None:
    sender = heard.event["sender"]
    # An owner may have the assistant's name, and is still heard.
    own = sender not in heard.owners and names_assistant(sender, heard.settings)
    return "ignore" if own else None


def _channel(heard: Heard) -> Verdict | None:
    channel = heard.event["channel"]
    return heard.settings.channels.get(channel) if channel else None


RULES: tuple[EventRule, ...] = (
    EventRule(
        "disabled",
        lambda heard: None if heard.settings.enabled else "ignore",
        "The assistant is switched off (setting enabled).",
    ),
    EventRule(
        "reflection",
        lambda heard: "act" if is_reflection(heard.event) else None,
        "The assistant's review of its own work is due.",
    ),
    EventRule("own_message", _own_message, "{sender} is the assistant itself (setting names)."),
    EventRule(
        "mention",
        lambda heard: "act" if mentions_assistant(heard.event["text"], heard.settings) else None,
        "{sender} mentions the assistant by name.",
    ),
    EventRule(
        "direct",
        lambda heard: "act" if heard.event["addressed"] else None,
        "{sender} speaks to the assistant.",
    ),
    # Mention and direct come first, so an assistant that asks is answered. Two assistants may go on
    # asking each other, but each run ends: it answers posted events, and an answer posts none.
    EventRule(
        "cross_talk",
        lambda heard: "context" if heard.event["sender"] in heard.settings.assistants else None,
        "{sender} is another assistant, and asks nothing of this one.",
    ),
    # Owners are not included: their words to somebody else start no tick.
    EventRule(
        "permission",
        lambda heard: "act" if heard.event["sender"] in heard.settings.permitted_senders else None,
        "{sender} is always answered (setting permitted_senders).",
    ),
    EventRule(
        "channel", _channel, "What is said to nobody in {channel}: {verdict} (setting channels)."
    ),
    EventRule(
        "room_default",
        lambda heard: heard.settings.room_default if heard.event["channel"] else None,
        "What is said to nobody in a channel: {verdict} (setting room_default).",
    ),
    EventRule("fallback", lambda _: "context", "{sender} speaks to nobody."),
)
"""In order; the last rule always fits."""


_BUILDING = frozenset({"spawn", "create", "build", "destroy"})
_GOALS = frozenset({"goal", "goals", "task", "tasks", "complete"})
_ASKING = "what what's who who's whom whose where where's when when's which why how how's"
_VERBS = "is are am was were do does did has have had"

_SUBJECTS = """
    i you he she it we they the a an this that these those there my your his her our their
    anybody anyone anything somebody someone something everybody everyone everything
"""

_PROPOSING = regex(r"(?:what|how) about\b|what if\b|why (?:not|don't)\b")

_REQUESTING = """
    please can could would will let's let remember remind note add make write set send save record
    update change start switch delegate plan store keep
"""

_QUESTION = regex(
    rf"(?:{'|'.join(_ASKING.split())}|(?:{'|'.join(_VERBS.split())}) "
    rf"(?:{'|'.join(_SUBJECTS.split())}))(?: |$)"
)

_REQUEST_WORDS = frozenset(_REQUESTING.split())

_LONGEST_QUESTION = 30
"""Words; a longer text is more than a question."""


def event_class_of(text: str, names: Collection[str] = ()) -> tuple[EventClass, str]:
    """The class of a text, by the first rule that fits, and why. `names`: the assistant's."""
    called = {name.casefold() for name in names}
    for event_class, rule in _RULES:
        if (why := rule(text, called)) is not None:
            return event_class, why
    return "unknown", "nothing shows what it asks for"


def _communication(text: str, names: Collection[str]) -> str | None:
    """Chit-chat that asks nothing: no question, and no mere yes, which may answer one."""
    return "greeting, thanks or small talk only" if is_small_talk(text, names) else None


def _query(text: str, names: Collection[str]) -> str | None:
    """Only questions, with or without small talk; no statement, proposal or request."""
    parts = [part for part in sentences(text) if not is_small_talk(part, names)]
    said = spoken_words(text)
    if not parts or len(said) > _LONGEST_QUESTION or _REQUEST_WORDS.intersection(said):
        return None
    return "it only asks a question" if all(map(_is_question, parts)) else None


_RULES: tuple[tuple[EventClass, Callable[[str, Collection[str]], str | None]], ...] = (
    ("communication", _communication),
    ("building", lambda text, _: _says(text, _BUILDING)),
    ("goal_action", lambda text, _: _says(text, _GOALS)),
    ("query", _query),
)


def _says(text: str, keywords: Collection[str]) -> str | None:
    found = next((word for word in spoken_words(text) if word in keywords), None)
    return f"it says '{found}'" if found else None


def _is_question(sentence: str) -> bool:
    """Whether it ends and begins as an English question ("was" is also a German word)."""
    said = " ".join(spoken_words(sentence))
    if not sentence.rstrip("\"') ").endswith("?") or _PROPOSING.match(said):
        return False
    return _QUESTION.match(said) is not None


Kind: TypeAlias = Literal["event", "goal", "reflection"]
"""Whether the text is an event's, describes the goal in hand, or starts a reflection."""

Mode: TypeAlias = Literal["single_action", "react_loop", "plan_execute"]

Steps: TypeAlias = tuple[Mode | None, int | None]
"""Recommended mode and iterations; None leaves them to the settings."""

MOST_COMPLEX = 5

BY_SCORE: Mapping[int, Steps] = {
    1: ("single_action", 1),
    2: ("single_action", 1),
    3: ("react_loop", 3),
    4: ("react_loop", 5),
    5: (None, None),
}
"""Recommendation by a complexity that a model has judged."""

_BY_CLASS: Mapping[EventClass, Steps] = {
    "communication": ("single_action", 1),
    "building": ("react_loop", None),
    "query": ("react_loop", 2),
    "goal_action": ("react_loop", None),
    "unknown": (None, None),
}

_LENGTHS = (20, 60)
"""Tokens; each limit exceeded adds 1 to the complexity."""

_PARTS = (2, 4)
"""Parts; each number reached adds 1 to the complexity."""

_APART = regex(r"(?i)[,;\u3001\u3002\uff0c\uff1b]|\b(?:and|then)\b")
_WORD = regex(r"\w")

_SEVERAL_STEPS = """
    plan organise organize arrange prepare design develop research construct renovate migrate
    project campaign programme program festival phases stages steps
"""

_MULTI_STEP = frozenset(_SEVERAL_STEPS.split())


_OF_OWN_WORK: dict[Kind, tuple[EventClass, str]] = {
    "goal": ("goal_action", "a goal is in hand"),
    "reflection": ("unknown", "a review of its own work"),
}
_URGENT_FIRST: tuple[Priority, ...] = ("high", "medium")


def assess(
    text: str | None,
    *,
    kind: Kind,
    goals: Mapping[str, Goal],
    percentage: float,
    recent_errors: int,
    names: Collection[str] = (),
    plannable: bool = False,
) -> Assessment:
    """Assess a tick: class and complexity of its text, and signals from the state.

    `percentage`: how full the context is. `recent_errors`: failures in a row. `names`: the
    assistant's. `plannable`: whether the goal in hand may be decomposed first.
    """
    event_class, why = _OF_OWN_WORK.get(kind) or event_class_of(text or "", names)
    complexity, counted = complexity_of(text or "")
    mode, iterations = _BY_CLASS[event_class]
    if plannable and complexity == MOST_COMPLEX:
        mode = "plan_execute"
    pressure: Literal["normal", "high", "critical"] = "normal"
    if percentage >= WARNING_AT:
        pressure = "critical" if percentage >= CRITICAL_AT else "high"
    urgent = {goal["priority"] for goal in goals.values() if goal["status"] == "active"}
    reasons = [
        f"Taken for {event_class}: {why}",
        f"complexity {complexity} of {MOST_COMPLEX} ({counted})",
        *([f"the context is {percentage:g} % full"] if pressure != "normal" else []),
        *([f"{recent_errors} failures in a row"] if recent_errors > 1 else []),
    ]
    return {
        "by": "heuristic",
        "event_class": event_class,
        "complexity": complexity,
        "recommended_mode": mode,
        "recommended_iterations": iterations,
        "recommend_confirm_dangerous": event_class == "building",
        "reasoning": "; ".join(reasons) + ".",
        "signals": {
            "token_pressure": pressure,
            "recent_errors": recent_errors,
            "event_class": event_class,
            "goal_urgency": next((one for one in _URGENT_FIRST if one in urgent), "low"),
        },
    }


def complexity_of(text: str) -> tuple[int, str]:
    """The complexity of a text (1..5), and what was counted.

    It is 1, plus 1 for each of: more than 20 tokens; more than 60; two parts or more; four or more;
    a word for several steps, such as "plan". "And" and punctuation separate parts.
    """
    tokens = approximate_tokens(text)
    pieces = [piece for one in sentences(text) for piece in _APART.split(one)]
    parts = sum(_WORD.search(piece) is not None for piece in pieces)
    several = next((word for word in spoken_words(text) if word in _MULTI_STEP), None)
    points = sum(tokens > length for length in _LENGTHS)
    points += sum(parts >= number for number in _PARTS) + (several is not None)
    counted = f"{tokens} tokens, {parts} {'part' if parts == 1 else 'parts'}"
    return min(1 + points, MOST_COMPLEX), counted + (f", '{several}'" if several else "")
