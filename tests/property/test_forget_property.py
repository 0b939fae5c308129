"""Whatever three people said in a life: of the one who is forgotten no byte is left."""

import asyncio
import re
import tempfile
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from graph.agent import open_agent
from graph.api.async_agent import AsyncAgent
from graph.use_cases.forgetting import forget
from memory.entities.entities import everyone
from memory.errors import InputError
from memory.messages.trust import event_text
from memory.pages.pages import PAGES
from memory.settings import Settings
from memory.storage.access import list_items
from tests.support.agents import EXTRACTING, WHEN, dreamless, entries, shown_ids
from tests.support.clock import Clock
from tests.support.crash_model import attributes
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
SHOWN = re.compile(rf"^\[([^\]]+)\] {WHEN} (\w+): (.*)$", re.MULTILINE)
SETTINGS = Settings(
    max_context_tokens=1_000, compact_preserve_window=4, compact_sleep_threshold=0.05
)


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


LIVES = st.lists(turns() | st.just("night"), min_size=2, max_size=9)


def model() -> ScriptedChatModel:
    """Does with what it hears what the text asks for, in words of whoever said it."""
    return scripted(otherwise=_answer)


def _answer(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
    """A night makes an attribute of each person of whom there is news, and dreams of nothing."""
    if tools == ["Attributes"]:
        found = list(attributes(str(messages[-1].text)))
        return calls(("Attributes", {"attributes": found}))
    return _undreamt(messages, tools)


@dreamless
def _undreamt(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
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
        return _facts(str(messages[1].text))
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


def _facts(text: str) -> AIMessage:
    facts = [
        {"text": _retold(who, said), "source_ids": [id_], "speaker": who}
        for id_, who, said in SHOWN.findall(text)
    ]
    return calls(("store_memory", {"facts": facts}))


async def lived(agent: AsyncAgent, clock: Clock, life: list[Any]) -> None:
    ids = count()
    for turn in life:
        clock.advance(minutes=10)
        if turn == "night":
            await agent.ainvoke({"request": "sleep"})
            continue
        event = {"id": f"e{next(ids)}", "sender": turn.who, "text": turn.text}
        await agent.ainvoke({"events": [{**event, "addressed": turn.addressed}]})


async def check(folder: Path, life: list[Any], gone: str) -> None:
    clock = Clock()
    said = [turn for turn in life if turn != "night"]
    theirs = [turn for turn in said if gone in (turn.who, turn.names)]
    others = [turn for turn in said if turn not in theirs]
    opening = open_agent(folder, model=model(), embedder="offline", settings=SETTINGS, clock=clock)
    async with opening as agent:
        await lived(agent, clock, life)
        try:
            await forget(agent.context, gone)
        except InputError:
            assert not theirs
        left = {one["content"] for one in await entries(agent)}
        assert {turn.text for turn in others} <= left
        known = " ".join(turn.text for turn in others)
        words = [word for one in OWN.values() for word in one if word not in known]
        brought = [word for word in words if any(word in turn.text for turn in theirs)]
        assert holding(folder, [gone.casefold(), *brought]) == []
        clock.advance(hours=9)
        out = await agent.ainvoke({"request": "sleep"})
        assert out["report"]["failures"] == []


@settings(
    max_examples=settings().max_examples // 4,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(life=LIVES, gone=st.sampled_from(PEOPLE))
def test_no_byte_of_the_forgotten_is_left_and_others_stay(life: list[Any], gone: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder) / "data", life, gone))


async def test_a_night_of_such_a_life_makes_facts_attributes_and_pages(tmp_path: Path) -> None:
    """Without them there would be nothing in them to forget."""
    clock = Clock()
    heard = Turn("Zora", ("quibblo",), "Mirkka", addressed=True, act="reply")
    opening = open_agent(
        tmp_path, model=model(), embedder="offline", settings=SETTINGS, clock=clock
    )
    async with opening as agent:
        await lived(agent, clock, [heard, "night"])
        made = [fact["text"] for fact in await agent.resources.semantic.all(agent.scope)]
        people = await everyone(agent.store, agent.scope)
        pages = await list_items(agent.store, agent.scope.namespace(PAGES))
    assert made == ["Zora saw quibblo the garden and asked Mirkka."]
    assert [one["attributes"]["habit"]["value"] for one in people if one["attributes"]] == made
    assert [page.key for page in pages] == [one["id"] for one in people if one["attributes"]]
