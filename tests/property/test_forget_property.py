"""Whatever three people said, whatever nights there were: of whoever is forgotten no byte is left,
the others stay, and no night that had to do with the forgotten is undone or applied any more."""

import asyncio
import json
import re
import tempfile
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from graph.agent import open_agent
from graph.api import AsyncAgent
from graph.use_cases import nights
from graph.use_cases.forgetting import forget
from graph.use_cases.nights import undo_night
from memory.entities.entities import everyone
from memory.errors import ConflictError, InputError
from memory.journal import links
from memory.messages.trust import event_text
from memory.night import record as night
from memory.pages.pages import PAGES
from memory.records.records import NightRecord
from memory.settings import Settings
from memory.storage.access import list_items
from tests.support.agents import EXTRACTING, WHEN, dreamless, entries, shown_ids
from tests.support.clock import Clock
from tests.support.lives import holding
from tests.support.scripted import ScriptedChatModel, calls, scripted

PEOPLE = ("Zora", "Benno", "Mirkka")
OWN = {
    "Zora": ("quibblo", "durianto", "valparo", "lanterna"),
    "Benno": ("tomatino", "turinga", "balkono", "sardello"),
    "Mirkka": ("saunaka", "birchello", "laponi", "reindo"),
}
"""Words that one of them alone uses."""
SHARED = ("the garden", "a letter", "on Sunday", "in town")
ACTS = ("reply", "goal", "session", "project", "fact", "journal", "observe")
SETTINGS = Settings(
    max_context_tokens=1_000,
    compact_preserve_window=4,
    compact_sleep_threshold=0.05,
    reflection_threshold=5,
    min_observations=1,
    gate_facts=3,
    gate_share=0.2,
)
DEEDS = ("sleep", "preview", "apply", "undo", "discard")
LINE = re.compile(r"^\[([^\]]+)\] (.*)$", re.MULTILINE)


class Turn(NamedTuple):
    """Somebody says something; in a night nobody does."""

    who: str
    words: tuple[str, ...]
    names: str | None
    addressed: bool
    act: str

    @property
    def text(self) -> str:
        """Words of one's own between those that all use; maybe somebody's name."""
        named = f" and asked {self.names}" if self.names else ""
        mixed = (f"{own} {shared}" for own, shared in zip(self.words, SHARED, strict=False))
        return f"I saw {', '.join(mixed)}{named} ({self.act})."


def turns(people: tuple[str, ...] = PEOPLE) -> st.SearchStrategy[Turn]:
    return st.sampled_from(people).flatmap(
        lambda who: st.builds(
            Turn,
            st.just(who),
            st.lists(st.sampled_from(OWN[who]), min_size=1, max_size=3, unique=True).map(tuple),
            st.none() | st.sampled_from(people),
            st.booleans(),
            st.sampled_from(ACTS),
        )
    )


LIVES = st.lists(turns() | st.sampled_from(DEEDS), min_size=3, max_size=9)


def model() -> ScriptedChatModel:
    """It dreams in the words of what it is shown and cites."""
    return scripted(otherwise=dreaming)


def dreaming(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
    shown = str(messages[-1].text)
    lines = LINE.findall(shown)
    told = {id_: " ".join(_words(text)) or "something" for id_, text in lines}
    match tools:
        case ["Dream"]:
            new = LINE.findall(shown.partition("</new_facts>")[0])
            pairs = [(one, other) for one, _ in new for other in [*told][-1:] if one != other]
            kinds = ("supersedes", "relates", "contradicts", "duplicates")
            relations = [
                {
                    "fact": one,
                    "other": other,
                    "relation": kinds[place % 4],
                    "reason": f"{told[one]} after {told[other]}",
                }
                for place, (one, other) in enumerate(pairs)
            ]
            contexts = [
                {"fact": one, "context": f"Of {told[other]}.", "tags": told[other].split()}
                for one, other in pairs
            ]
            return calls(("Dream", {"relations": relations, "contexts": contexts}))
        case ["Attributes"]:
            return calls(("Attributes", {"attributes": _attributes(shown)}))
        case ["Questions"]:
            asked = [f"What came of {one}?" for one in _words(shown)[:3]]
            return calls(("Questions", {"questions": asked}))
        case ["Insights"]:
            cited = dict(lines[:3])
            text = f"There was much of {' and '.join(_words(' '.join(cited.values())))}."
            made = {"text": text, "evidence": list(cited), "importance": 8}
            return calls(("Insights", {"insights": [made]}))
    if tools and len(messages) == 2 and "Entries:" in str(messages[1].text):
        return calls(("store_memory", {"facts": _facts(lines)}))
    return awake(messages, tools)


def _facts(lines: list[tuple[str, str]]) -> list[dict[str, Any]]:
    said = [(id_, re.match(rf"{WHEN} (\w+): (.*)", line)) for id_, line in lines]
    return [
        {"text": f"{one[1]} said: {one[2]}", "source_ids": [id_], "speaker": one[1]}
        for id_, one in said
        if one
    ]


def _words(text: str) -> list[str]:
    return [word for one in OWN.values() for word in one if word in text]


def _attributes(shown: str) -> list[dict[str, Any]]:
    made = []
    for part in shown.split("Entity [")[1:]:
        cited = dict(LINE.findall(part)[:2])
        value = f"Looks after {' and '.join(_words(' '.join(cited.values())))}."
        one = {"entity": part.split("]", 1)[0], "name": "seen", "value": value}
        made.append({**one, "evidence": list(cited)})
    return made


async def lived(agent: AsyncAgent, clock: Clock, life: list[Any]) -> None:
    ids = count()
    for turn in life:
        clock.advance(minutes=10)
        if isinstance(turn, Turn):
            event = {"id": f"e{next(ids)}", "sender": turn.who, "text": turn.text}
            await agent.ainvoke({"events": [{**event, "addressed": turn.addressed}]})
        else:
            await done(agent, turn)


async def done(agent: AsyncAgent, deed: str) -> None:
    """Do something to the newest night that lets it, if any."""
    if deed == "sleep":
        await agent.ainvoke({"request": "sleep"})
        return
    if deed == "preview":
        await nights.sleep(agent.context, dry_run=True)
        return
    deeds: dict[str, Any] = {
        "apply": nights.apply_night,
        "undo": undo_night,
        "discard": nights.discard_night,
    }
    for one in reversed(await night.records(agent.store, agent.scope)):
        try:
            await deeds[deed](agent.context, one["id"])
        except (ConflictError, InputError):
            continue
        return


async def records(agent: AsyncAgent) -> dict[str, NightRecord]:
    return {one["id"]: one for one in await night.records(agent.store, agent.scope)}


async def nights_with(agent: AsyncAgent, words: list[str]) -> set[str]:
    """The nights whose operations hold one of these words."""
    found = set()
    for one in await night.records(agent.store, agent.scope):
        plans = await night.plans_of(agent.store, agent.scope, one["id"])
        text = json.dumps([plan["operations"] for plan in plans]).casefold()
        found |= {one["id"]} if any(word in text for word in words) else set()
    return found


async def links_lead_somewhere(agent: AsyncAgent) -> None:
    items = await list_items(agent.store, agent.scope.namespace(links.LINKS))
    ends = {item.key: item.value["linked_to"] for item in items}
    assert all(one in ends[other] for one, end in ends.items() for other in end)


async def check(folder: Path, life: list[Any], gone: str) -> None:
    clock = Clock()
    said = [turn for turn in life if isinstance(turn, Turn)]
    theirs = [turn for turn in said if gone in (turn.who, turn.names)]
    known = " ".join(turn.text for turn in said if turn not in theirs)
    brought = {word for turn in theirs for word in turn.words if word not in known}
    opening = open_agent(folder, model=model(), embedder="offline", settings=SETTINGS, clock=clock)
    async with opening as agent:
        await lived(agent, clock, life)
        before = (await agent.aget_state()).values
        concerned = await nights_with(agent, [gone.casefold(), *brought])
        try:
            await forget(agent.context, gone)
        except InputError:
            assert not theirs
        assert holding(folder, [gone.casefold(), *brought]) == []
        left = {one["content"] for one in await entries(agent)}
        assert {turn.text for turn in said if turn not in theirs} <= left
        for name, record in (await records(agent)).items():
            report = await nights.night_report(agent.context, name)
            assert report["id"] == name
            assert record.get("forgotten") or name not in concerned
            if record.get("forgotten") and record.get("status") in ("complete", "preview", "held"):
                what = undo_night if record["status"] == "complete" else nights.apply_night
                with pytest.raises(ConflictError, match="a forget took something out of"):
                    await what(agent.context, name)
        await links_lead_somewhere(agent)
        if not theirs:
            after = (await agent.aget_state()).values
            # An agent that has never run has neither.
            assert all(before.get(key) == after.get(key) for key in ("goals", "projects"))
        clock.advance(hours=9)
        out = await agent.ainvoke({"request": "sleep"})
        assert out["report"]["failures"] == []
        for deed in ("undo", "apply", "discard"):
            await done(agent, deed)
        await links_lead_somewhere(agent)
        assert holding(folder, [gone.casefold(), *brought]) == []


def turn(who: str, word: str, act: str = "reply", names: str | None = None) -> Turn:
    return Turn(who, (word,), names, True, act)


BUSY = [
    turn("Zora", "quibblo", "observe"),
    turn("Benno", "tomatino", "observe"),
    "sleep",
    turn("Zora", "lanterna", "fact"),
    turn("Benno", "turinga", names="Zora"),
    turn("Mirkka", "saunaka"),
]


@settings(
    max_examples=settings().max_examples // 10,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@example(life=[*BUSY, "sleep", "undo"], gone="Zora")
@example(life=[*BUSY, "preview"], gone="Zora")
@example(life=[*BUSY, "preview", "apply", "undo", "preview"], gone="Benno")
@given(life=LIVES, gone=st.sampled_from(PEOPLE))
def test_no_byte_of_the_forgotten_is_left_after_any_nights(life: list[Any], gone: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder) / "data", life, gone))


@dreamless
def awake(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
    """Does with what it hears what the text asks for, in words of whoever said it."""
    if tools == ["Scores"]:
        ids = shown_ids(messages)
        return calls(("Scores", {"scores": [{"id": one, "importance": 7} for one in ids]}))
    if tools == EXTRACTING:
        return "Nothing more."
    if "Summarise" in str(messages[0].text):
        text = str(messages[1].text)
        return " ".join(
            f"There was {word}." for one in OWN.values() for word in one if word in text
        )
    if isinstance(messages[-1], ToolMessage):
        return "That is done."
    if len(messages) > 1 and "Entries:" in str(messages[1].text):
        lines = LINE.findall(str(messages[1].text))
        return calls(("store_memory", {"facts": _facts(lines)}))
    newest = next(m for m in reversed(messages) if isinstance(m, HumanMessage))
    return _act(str(newest.name), event_text(newest))


def _act(who: str, said: str) -> AIMessage | str:
    found = [word for one in OWN.values() for word in one if word in said]
    about = f"Look after {' and '.join(found)}"
    wanted: dict[str, tuple[str, dict[str, Any]]] = {
        "goal": ("add_goal", {"description": about}),
        "session": ("add_session_memory", {"memory_type": "fact", "content": about}),
        "project": ("create_project", {"key": found[0], "summary": about, "context": said[:60]}),
        "fact": ("store_memory", {"facts": [{"text": _retold(who, said), "speaker": who}]}),
        "journal": ("add_journal_entry", {"content": about, "importance": 7}),
        "observe": ("update_entity_observation", {"entity": "Benno", "observation": about}),
    }
    for act, tool in wanted.items():
        if f"({act})" in said:
            return calls(tool)
    return f"I hear you: {' '.join(found)}."


def _retold(who: str, said: str) -> str:
    """In the third person, and without what the model is asked to do."""
    return said.replace("I saw", f"{who} saw").rpartition(" (")[0] + "."


async def test_a_night_of_such_a_life_makes_facts_attributes_and_pages(tmp_path: Path) -> None:
    """Without them there would be nothing in them to forget."""
    clock, busy = Clock(), [*BUSY[:2], "sleep"]
    opening = open_agent(
        tmp_path, model=model(), embedder="offline", settings=SETTINGS, clock=clock
    )
    async with opening as agent:
        await lived(agent, clock, busy)
        made = [fact["text"] for fact in await agent.resources.semantic.all(agent.scope)]
        people = await everyone(agent.store, agent.scope)
        pages = await list_items(agent.store, agent.scope.namespace(PAGES))
    assert any("quibblo" in one for one in made)
    assert any("quibblo" in str(one["attributes"]) for one in people)
    assert pages
