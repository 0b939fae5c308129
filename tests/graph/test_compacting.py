"""Compaction in a night, in an emergency, and after a provider's overflow."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from memory.errors import ContextOverflow
from memory.settings import Settings
from tests.support.agents import EXTRACTING, Opening, dreamless, entries, night_model, opened
from tests.support.clock import Clock
from tests.support.scripted import scripted


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


async def test_context_overflow_leads_to_one_compaction_and_one_more_try(opening: Opening) -> None:
    model = scripted(
        *["I see."] * 6,
        ContextOverflow("too long"),
        "Nothing to journal.",
        "Ada said many words.",
        "Now it fits.",
    )
    settings = Settings(compact_preserve_window=2)
    async with opening(model, settings=settings) as agent:
        for message in talk(6):
            await agent.ainvoke({"messages": [message]})
        out = await agent.ainvoke({"messages": [HumanMessage("And now?", name="Ada")]})
        state = (await agent.aget_state()).values
    assert out["report"]["failures"] == []
    assert out["report"]["ticks"][0]["reply"] == "Now it fits."
    assert str(state["messages"][0].text).startswith("[CONTEXT SUMMARY]")
