"""Prompt component 1500: the people in the conversation, and the open conversations. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memory.fitting import fitting, left_out, line_tokens
from memory.profiles import EntityProfile, Observation, speaks_as
from memory.records import Conversation
from memory.settings import Settings
from memory.tokens import cut_to
from memory.trust import one_line

DEFAULTS = Settings()
PEOPLE = "People here, as [relationship] name, and what is known of each:"
TALKS = "Open conversations, the latest first:"
_SHARE = 0.75
"""Share of the budget for people, if there are conversations too."""
_LEAST = 60
"""Least tokens to show a person."""
_LEAST_OF_A_TEXT = 30
"""Least tokens to which a text about a person is shortened."""


def entity_context(
    people: Sequence[EntityProfile],
    conversations: Mapping[str, Conversation],
    settings: Settings = DEFAULTS,
    calibration: float = 1.0,
) -> str:
    """The people in the given order, then the open conversations."""
    tokens = settings.entity_tokens
    share = int(tokens * _SHARE) if conversations else tokens
    lines = _people(people, share, calibration) if people else []
    room = tokens - sum(line_tokens(line, calibration) for line in lines)
    return "\n".join([*lines, *(_talks(conversations, room, calibration) if conversations else [])])


def _talks(conversations: Mapping[str, Conversation], tokens: int, calibration: float) -> list[str]:
    def line(one: Conversation, most: int) -> str:
        place = f" on {one_line(one['channel'])}" if one["channel"] else ""
        return f"- {one_line(one['entity'])}{place}, last at {one['last_at'][:16]}"

    rows = sorted(conversations.values(), key=lambda one: one["last_at"], reverse=True)
    shown, left = fitting(rows, line, tokens - line_tokens(TALKS, calibration), calibration)
    return [TALKS, *shown, *left_out(left, "older")]


def _people(people: Sequence[EntityProfile], tokens: int, calibration: float) -> list[str]:
    """Each person takes at most half of the tokens left, the last one all."""
    lines = [PEOPLE]
    for place, profile in enumerate(people, 1):
        left = tokens - sum(line_tokens(line, calibration) for line in lines)
        if left < _LEAST:
            return [*lines, *left_out(len(people) + 1 - place, "people")]
        most = left if place == len(people) else max(_LEAST, left // 2)
        lines += _person(profile, most, calibration)
    return lines


def _person(profile: EntityProfile, tokens: int, calibration: float) -> list[str]:
    """Name, relationship and aliases; then attributes and observations, the newest first."""
    aliases = ", ".join(one_line(one) for one in profile["aliases"])
    known_as = f", also called {aliases}" if aliases else ""
    name = f"- [{profile['relationship']['state']}] {one_line(profile['name'])}"
    head = cut_to(name + known_as, tokens // 2, calibration)

    def line(row: tuple[str, str], most: int) -> str:
        return f"  {row[0]}: {cut_to(one_line(row[1]), most, calibration)}"

    room = tokens - line_tokens(head, calibration)
    most = max(_LEAST_OF_A_TEXT, room // 4)
    shown, left = fitting(_rows(profile), line, room, calibration, most=most)
    return [head, *shown, *(f"  {line}" for line in left_out(left, "older"))]


def _rows(profile: EntityProfile) -> list[tuple[str, str]]:
    """Attributes and observations, newest first, as (heading, text)."""
    attributes = sorted(profile["attributes"].items(), key=lambda one: one[1]["at"], reverse=True)
    return [
        *((one_line(name), attribute["value"]) for name, attribute in attributes),
        *((_noticed(profile, one), one["text"]) for one in reversed(profile["observations"])),
    ]


def _noticed(profile: EntityProfile, observation: Observation) -> str:
    """Day, and the speaker unless it is the person."""
    day, speaker = observation["at"][:10], observation["speaker"]
    if speaker is None:
        return f"{day} (your conclusion)"
    return day if speaks_as(profile, speaker) else f"{day} {one_line(speaker)} said"
