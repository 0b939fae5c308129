"""Compaction in a night, in an emergency, and after a provider's overflow."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from memory.compaction.summary import HEAD
from memory.errors import ContextOverflow
from memory.settings import Settings
from tests.support.agents import EXTRACTING, dreamless, entries, night_model, opened
from tests.support.clock import Clock
from tests.support.scripted import call, scripted


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def talk(count: int) -> list[HumanMessage]:
    return [HumanMessage(f"Message {n}: " + "word " * 126, name="Ada") for n in range(count)]


async def test_at_seventy_percent_a_night_compacts_and_archives(data: Path, clock: Clock) -> None:
    @dreamless
    def model_of(messages: list[BaseMessage], tools: list[str]) -> Any:
        if "Entries:" in str(messages[-1].text) or "Entries:" in str(messages[1].text):
            return night_model(messages, tools)
        if tools == EXTRACTING:
            return "Nothing more."
        return "Ada said many words." if not tools else "I see."

    settings = Settings(max_context_tokens=2_000, compact_preserve_window=4)
    model = scripted(otherwise=model_of)
    async with opened(data, model, clock, settings=settings) as agent:
        for message in talk(9):
            await agent.ainvoke({"messages": [message]})
        out = await agent.ainvoke({"request": "sleep"})
        state = (await agent.aget_state()).values
        journal = await entries(agent)
    steps = {one["step"]: one for one in out["report"]["night"]["steps"]}
    assert {"extract_facts", "compact"} <= steps.keys()
    first = state["messages"][0]
    assert isinstance(first, SystemMessage)
    assert first.content == "[CONTEXT SUMMARY]\nAda said many words."
    assert first.additional_kwargs["metadata"]["compacted_count"] == 14
    assert len(state["messages"]) == 5
    archive = [entry for entry in journal if "compaction" in entry["tags"]]
    assert [(one["id"], one["importance"]) for one in archive] == [
        (f"compact_{clock():%Y%m%d_%H%M%S}", 7)
    ]
    summary = next(c for c in model.calls if "Summarise" in str(c.messages[0].text))
    assert "Message 8" not in summary.text


async def test_a_longer_summary_is_refused_and_an_extract_takes_its_place(
    data: Path, clock: Clock
) -> None:
    @dreamless
    def model_of(messages: list[BaseMessage], tools: list[str]) -> Any:
        if "Entries:" in str(messages[1].text):
            return night_model(messages, tools)
        return "word " * 5_000 if not tools else "I see."

    settings = Settings(
        max_context_tokens=2_000, compact_preserve_window=4, pre_compact_extraction_enabled=False
    )
    async with opened(data, scripted(otherwise=model_of), clock, settings=settings) as agent:
        for message in talk(9):
            await agent.ainvoke({"messages": [message]})
        before = (await agent.aget_state()).values["messages"]
        out = await agent.ainvoke({"request": "sleep"})
        first, *kept = (await agent.aget_state()).values["messages"]
        (archive,) = [one for one in await entries(agent) if "compaction" in one["tags"]]
    report = out["report"]["night"]
    assert kept == before[14:]
    assert first.text.startswith(f"[CONTEXT SUMMARY]\n{HEAD}\n")
    assert "older exchanges left out" in first.text
    assert "Ada: Message 6: word" in first.text
    assert archive["content"] == first.text.replace("[CONTEXT SUMMARY]", "[CONTEXT SYNTHESIS]")
    assert report["errors"] == [
        "compact: the summary is longer than what it summarises; an extract stands in its place"
    ]
    assert report["complete"] is False
    told = report["compaction"]
    assert (told["by"], told["compacted_count"], told["preserved_count"]) == ("extract", 14, 4)
    assert told["tokens_after"] < 0.7 * 2_000 <= told["tokens_before"]
    assert told["archive"] == archive["id"]


async def test_an_emergency_journals_facts_and_cuts_before_the_tick(
    data: Path, clock: Clock
) -> None:
    def model_of(messages: list[BaseMessage], tools: list[str]) -> Any:
        if tools == EXTRACTING:
            done = sum(message.type == "tool" for message in messages)
            return call("noop") if done else call("add_journal_entry", content="Ada likes words.")
        return "Ada said many words." if not tools else "I see."

    settings = Settings(max_context_tokens=2_000, compact_preserve_window=4)
    model = scripted(otherwise=model_of)
    async with opened(data, model, clock, settings=settings) as agent:
        for message in talk(30):
            await agent.ainvoke({"messages": [message]})
        state = (await agent.aget_state()).values
        journal = await entries(agent)
    assert len(state["messages"]) < 20
    assert any(entry["content"] == "Ada likes words." for entry in journal)
    summaries = [c for c in model.calls if "Summarise" in str(c.messages[0].text)]
    assert len(summaries) >= 2
    assert "[CONTEXT SUMMARY]" in summaries[-1].text


async def test_context_overflow_leads_to_one_compaction_and_one_more_try(
    data: Path, clock: Clock
) -> None:
    model = scripted(
        *["I see."] * 6,
        ContextOverflow("too long"),
        "Nothing to journal.",
        "Ada said many words.",
        "Now it fits.",
    )
    settings = Settings(compact_preserve_window=2)
    async with opened(data, model, clock, settings=settings) as agent:
        for message in talk(6):
            await agent.ainvoke({"messages": [message]})
        out = await agent.ainvoke({"messages": [HumanMessage("And now?", name="Ada")]})
        state = (await agent.aget_state()).values
    assert out["report"]["failures"] == []
    assert out["report"]["ticks"][0]["reply"] == "Now it fits."
    assert str(state["messages"][0].text).startswith("[CONTEXT SUMMARY]")
