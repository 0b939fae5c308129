"""What prompts hold over three days with two nights: nothing twice, and not more than they need."""

import asyncio
import json
import re
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import PrivateAttr

from benchmarks.models import Sent
from benchmarks.prompts import parts
from benchmarks.reference_model import ReferenceModel
from memory.messages.convert import mark_of
from memory.messages.prompt_lines import read_shown
from memory.messages.trust import front_of
from memory.settings import Settings
from memory.text import approximate_tokens
from tests.support.agents import opened
from tests.support.clock import Clock
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
    return {
        "id": one.id,
        "at": f"{one.at}:00+00:00",
        "sender": one.sender,
        "text": one.text,
        "channel": one.channel,
        "addressed": one.addressed,
    }


MOST_ON_DAY_3 = 6_000
"""Tokens of a prompt on the third day, as the report counts them."""

_BLOCK = re.compile(r"<(\w+)[^>]*>\n(.*?)\n</\1>", re.DOTALL)
_PAGE_LINE = re.compile(r"^- \[[0-9a-f, ]+\] (.*) \([^()]*\)$")


class Tick(NamedTuple):
    event: str
    sent: Sent
    used: int
    """Tokens of the prompt, as the report counts them."""

    @property
    def newest(self) -> HumanMessage:
        people = [one for one in self.sent.messages if isinstance(one, HumanMessage)]
        return people[-1]

    @property
    def blocks(self) -> dict[str, list[str]]:
        front = str(self.newest.text)[: front_of(self.newest)]
        return {tag: text.splitlines() for tag, text in _BLOCK.findall(front)}

    @property
    def recalled(self) -> list[str]:
        lines = map(read_shown, self.blocks.get("semantic_memories", []))
        return [line.text for line in lines if line]

    @property
    def history(self) -> list[str]:
        before = self.sent.messages[: self.sent.messages.index(self.newest)]
        return [str(one.text) for one in before[1:]]


class Lived(NamedTuple):
    ticks: list[Tick]
    buffers: list[int]
    """Overheard events in the state after each night."""


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    return asyncio.run(_live(tmp_path_factory.mktemp("choir") / "data"))


async def _live(data: Path) -> Lived:
    clock, model = Clock(_time(SAID[0].at)), ChoirModel()
    ticks, buffers = list[Tick](), list[int]()
    async with opened(data, model, clock, settings=SETTINGS) as agent:
        for before, one in zip((None, *SAID), SAID, strict=False):
            if before and before.at[:10] != one.at[:10]:
                clock.set(_time(f"{before.at[:10]}T22:00"))
                night = (await agent.ainvoke({"request": "sleep"}))["report"]["night"]
                assert night["errors"] == []
                buffers.append(len((await agent.aget_state()).values["context_buffer"]))
            clock.set(_time(one.at))
            place = len(model.sent)
            told = await agent.ainvoke({"events": [event(one)]})
            if one.addressed:
                first = told["report"]["ticks"][0]
                ticks.append(Tick(one.id, model.sent[place], first["context"]["used"]))
    return Lived(ticks, buffers)


def _time(at: str) -> datetime:
    return datetime.fromisoformat(f"{at}:00+00:00")


def on_day(lived: Lived, day: str) -> list[Tick]:
    return [tick for tick in lived.ticks if tick.event.startswith(day)]


def texts_shown(tick: Tick) -> Iterator[tuple[str, str]]:
    """(block, text) of each memory, page line, note and overheard event before the event."""
    for tag, lines in tick.blocks.items():
        for line in lines:
            dated, page = read_shown(line), _PAGE_LINE.match(line)
            if page:
                yield tag, page[1]
            elif dated and tag in ("semantic_memories", "context_buffer"):
                yield tag, dated.text
            elif tag == "session_memory":
                yield tag, line.partition(": ")[2]


def test_no_line_stands_twice_in_a_prompt(lived: Lived) -> None:
    for tick in lived.ticks:
        texts = [text.casefold().rstrip(".") for _, text in texts_shown(tick)]
        assert sorted(texts) == sorted(set(texts)), tick.event


def test_nothing_recalled_stands_in_the_visible_conversation(lived: Lived) -> None:
    recalled = 0
    for tick in lived.ticks:
        history = "\n".join(tick.history)
        recalled += len(tick.recalled)
        assert [text for text in tick.recalled if text in history] == [], tick.event
    assert recalled > 50


def test_a_fact_is_recalled_in_place_of_its_entry(lived: Lived) -> None:
    made = {one.text: one.facts for one in SAID if one.facts}
    for tick in lived.ticks:
        for text in tick.recalled:
            assert not set(made.get(text, ())) & set(tick.recalled), tick.event
    later = [text for day in "bc" for tick in on_day(lived, day) for text in tick.recalled]
    today = {one.text for one in SAID if one.id[0] in "bc"}
    raw = [text for text in later if text in made and text not in today]
    assert len(raw) <= 0.1 * len(later)


def test_strangers_are_shown_nothing_that_an_owner_told_in_private(lived: Lived) -> None:
    private = [text for one in SAID if one.sender == OWNER for text in (one.text, *one.facts)]
    asked = [tick for tick in lived.ticks if _said(tick.event).channel == "website"]
    shown = [[text for _, text in texts_shown(tick)] for tick in asked]
    prompts = ["\n".join(str(one.text) for one in tick.sent.messages) for tick in asked]
    assert [text for told in prompts for text in private if text in told] == []
    assert "The organ in St. Jakob is being repaired until 20 October 2026." in shown[1]
    known = [text for _, text in texts_shown(on_day(lived, "c")[-1])]
    assert "The budget for the concert is 2,400 euros." in known


def _said(event: str) -> Said:
    return next(one for one in SAID if one.id == event)


def test_a_night_ends_the_talk_of_the_day(lived: Lived) -> None:
    (yesterday, today) = on_day(lived, "a")[-1], on_day(lived, "b")[0]
    assert approximate_tokens(yesterday.sent.messages[1:-1]) > 1_300
    assert approximate_tokens(today.sent.messages[1:-1]) <= (SETTINGS.earlier_history_tokens or 0)
    assert isinstance(today.sent.messages[1], SystemMessage)
    assert "older messages" in today.history[0]
    assert "Good night, Mira." in today.history[-1]
    assert on_day(lived, "b")[-1].history[: len(today.history)] == today.history
    assert lived.buffers == [0, 0]


def test_the_prompt_of_the_third_day_is_small(lived: Lived) -> None:
    sizes = [parts(a.sent, b.sent) for a, b in pairwise((lived.ticks[0], *lived.ticks))]
    assert max(tick.used for tick in on_day(lived, "c")) <= MOST_ON_DAY_3
    assert max(size.tools for size in sizes) <= 2_000
