"""Hygiene: what was recalled, ruled, returned or chatted never becomes a memory of its own."""

import re
from collections.abc import Callable, Mapping

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from graph.api import AsyncAgent
from memory.entities import entities
from memory.settings import Settings
from tests.support.agents import Opening, entries, said, shown_lines
from tests.support.crash_model import LINE, attributes
from tests.support.facts import draft
from tests.support.scripted import call, calls, scripted

KNOWN = "Ada sold the grey horse to the miller of Ardo last spring."
CHATTER = "Everything mentioned has been noted carefully for later use."
SAID, ALSO = "Ada repaired the western gate with oak boards.", "Ada painted the western gate green."


def rule(messages: list[BaseMessage]) -> str:
    plain = " ".join(re.sub(r"<[^>]*>", " ", str(messages[0].text)).split())
    return next(one for one in re.split(r"(?<=[.:!?])\s+", plain) if len(one.split()) > 8)


def returned(messages: list[BaseMessage]) -> str:
    status = [one for one in messages if isinstance(one, ToolMessage)][-1]
    return str(status.text).split("\n", 1)[1][:300]


SOURCES: Mapping[str, Callable[[list[BaseMessage]], str]] = {
    "a memory": lambda _: KNOWN,
    "a rule": rule,
    "a tool": returned,
    "a reply": lambda _: CHATTER,
}
SINKS: Mapping[str, Callable[[str], AIMessage]] = {
    "facts": lambda text: call("store_memory", facts=[{"text": text}]),
    "notes": lambda text: call("add_journal_entry", content=text, importance=8),
    "observations": lambda text: call(
        "update_entity_observation", entity="the mill", observation=text
    ),
    "session memory": lambda text: call("add_session_memory", memory_type="fact", content=text),
}


async def kept(agent: AsyncAgent) -> list[str]:
    facts = await agent.resources.semantic.all(agent.scope)
    people = await entities.everyone(agent.store, agent.scope)
    return [
        *(text for one in facts for text in (one["text"], one.get("context")) if text),
        *(one["content"] for one in await entries(agent) if "event" not in one["tags"]),
        *(one["text"] for person in people for one in person["observations"]),
        *(one["value"] for person in people for one in person["attributes"].values()),
        *(await agent.aget_state()).values["session_memory"]["key_facts"],
    ]


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("source", SOURCES)
async def test_a_tick_keeps_nothing_that_it_was_only_shown(
    opening: Opening, source: str, sink: str
) -> None:
    def answer(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        match sum(isinstance(one, ToolMessage) for one in messages):
            case 0 if "What do you know" in str(messages[-1].text):
                looks = [("recall_memories", {"query": "Ada horse"}), ("get_system_status", {})]
                return calls(*looks)
            case 2:
                return SINKS[sink](SOURCES[source](messages))
        return CHATTER

    async with opening(scripted(otherwise=answer)) as agent:
        await agent.resources.semantic.add(agent.scope, [draft("known", KNOWN, speaker="Ada")])
        await agent.ainvoke(said("Hello", id="e1"))
        out = await agent.ainvoke(said("What do you know?", id="e2"))
        assert await kept(agent) == [KNOWN]
    (tick,) = out["report"]["ticks"]
    assert [one["ok"] for one in tick["tools"]] == [True, True, False]


async def test_a_night_keeps_nothing_that_it_was_only_shown(opening: Opening) -> None:
    wanted = {CHATTER}

    def answer(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        if not tools or "update_goal" in tools:
            return CHATTER
        junk, shown = rule(messages), str(messages[-1].text)
        wanted.add(junk)
        ids = [number for number, _ in LINE.findall(shown)]
        match tools[0]:
            case "Scores":
                return call("Scores", scores=[{"id": one, "importance": 7} for one in ids])
            case "Dream":
                contexts = [{"fact": one, "context": junk} for one in ids]
                return call("Dream", relations=[], contexts=contexts)
            case "Attributes":
                made = [{**one, "value": CHATTER} for one in attributes(shown)]
                return call("Attributes", attributes=made)
            case "Questions":
                return call("Questions", questions=["What did Ada do?"])
            case "Insights":
                made = [{"text": junk, "evidence": ids, "importance": 9}]
                return call("Insights", insights=made)
        if any(isinstance(one, ToolMessage) for one in messages):
            return call("noop")
        lines = shown_lines(messages)
        facts = [{"text": text, "source_ids": [n], "speaker": who} for n, who, text in lines]
        facts += [{**one, "text": text} for one in facts for text in (junk, CHATTER)]
        note = {"content": junk, "importance": 9, "tags": ["event"]}
        return calls(("store_memory", {"facts": facts}), ("add_journal_entry", note))

    settings = Settings(min_observations=1, reflection_threshold=5)
    model = scripted(otherwise=answer)
    async with opening(model, settings=settings) as agent:
        for number, text in enumerate((SAID, ALSO)):
            await agent.ainvoke(said(text, id=f"e{number}"))
        night = await agent.sleep()
        stored = await kept(agent)
    assert {one["step"] for one in night["steps"]} >= {"dream", "consolidate_entities", "reflect"}
    asked = {name for one in model.calls for name in one.tools}
    assert asked >= {"Scores", "Dream", "Attributes", "Insights"}
    assert ({SAID, ALSO} <= {*stored}, wanted & {*stored}) == (True, set())
