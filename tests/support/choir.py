"""Three days of a choir that prepares a concert, with what a good model makes of them.

Half of the events are overheard. The model answers days from `SAID`, and nights from the
annotations, so that whole prompts over three days can be looked at. The story itself is data:
`tests/fixtures/choir.json`.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import PrivateAttr

from benchmarks.models import Sent
from benchmarks.reference_model import ReferenceModel
from memory.messages.convert import mark_of
from memory.settings import Settings
from tests.support.scripted import calls
from tests.support.source_files import ROOT

OWNER = "Mira"
SETTINGS = Settings(
    owners=[OWNER],
    time_zone="Europe/Vienna",
    channel_privacy={"choir": "private", "website": "public"},
)
"""On the website strangers ask."""


class Said(NamedTuple):
    """An event; if it is addressed, what the assistant does and replies; the facts in it."""

    id: str
    at: str
    sender: str
    text: str
    channel: str | None = None
    addressed: bool = True
    tools: tuple[tuple[str, dict[str, Any]], ...] = ()
    reply: str = ""
    facts: tuple[str, ...] = ()


STORY = json.loads((ROOT / "tests/fixtures/choir.json").read_text(encoding="utf-8"))
SAID = [Said(**one) for one in STORY["said"]]


def life() -> dict[str, Any]:
    """The story in the form that the reference model reads."""
    facts = [
        {
            "id": f"{one.id}.{n}",
            "text": text,
            "sources": [one.id],
            "speaker": one.sender,
            "entities": [name for name in STORY["names"] if name in text],
        }
        for one in SAID
        for n, text in enumerate(one.facts)
    ]
    return {
        "events": [{"id": one.id, "text": one.text} for one in SAID],
        "facts": facts,
        "relations": [
            {"first": new, "second": old, "kind": "supersedes", "reason": "it is newer"}
            for old, new in STORY["superseded"]
        ],
        "dependents": [],
        "attributes": STORY["attributes"],
        "insights": STORY["insights"],
    }


class ChoirModel(ReferenceModel):
    """Answers days by `SAID`, and nights by the annotations; records the calls of ticks."""

    life: Any = life()
    _sent: list[Sent] = PrivateAttr(default_factory=list)

    @property
    def sent(self) -> list[Sent]:
        """What each tick's calls were, oldest first."""
        return self._sent

    def _answer(self, messages: list[BaseMessage], tools: list[dict[str, Any]]) -> AIMessage:
        names = {tool["function"]["name"] for tool in tools}
        if "use_tool" not in names:
            return super()._answer(messages, tools)
        self._sent.append(Sent(list(messages), tools))
        newest = next(one for one in reversed(messages) if isinstance(one, HumanMessage))
        told = next((one for one in SAID if one.id == mark_of(newest).get("event")), None)
        if told is None:
            return calls(("noop", {}))
        done = any(isinstance(one, AIMessage) for one in messages[messages.index(newest) :])
        return AIMessage(told.reply) if done or not told.tools else calls(*told.tools)


def event(one: Said) -> dict[str, Any]:
    """The event as input."""
    return {
        "id": one.id,
        "at": f"{one.at}:00+00:00",
        "sender": one.sender,
        "text": one.text,
        "channel": one.channel,
        "addressed": one.addressed,
    }
