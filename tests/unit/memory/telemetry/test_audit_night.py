"""What the audit log tells of nights, and of compactions by day and by night."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.store.base import PutOp

from memory import audit, night
from memory.audit import AuditEntry
from memory.records.records import NightRecord, Scope
from memory.settings import Settings
from tests.support.agents import EXTRACTING, Opening, dreamless, entries, night_model, opened, said
from tests.support.clock import Clock
from tests.support.scripted import call, scripted

SMALL = Settings(max_context_tokens=2_000, compact_preserve_window=4)


async def test_a_night_is_logged_once_with_its_calls(tmp_path: Path, clock: Clock) -> None:
    async with opened(tmp_path, scripted("Hello.", otherwise=night_model), clock) as agent:
        await agent.ainvoke(said("I grow beans on plot 7"))
        clock.advance(hours=14)
        out = await agent.ainvoke({"request": "sleep"})
        told = await audit.read(agent.store, agent.scope, since=clock())
    report = out["report"]["night"]
    assert (told[0]["what"], told[0]["target"]) == ("fell_asleep", "on request")
    told = told[1:]
    assert [(one["what"], one["target"], one["origin"]) for one in told] == [
        ("tool_call", "store_memory", report["id"]),
        ("night", report["id"], report["id"]),
    ]
    assert told[1]["outcome"] == "ok"
    assert told[1]["model"] == "scripted"
    assert told[1]["detail"]["operations"]["add_fact"] == 1
    assert [step["step"] for step in told[1]["detail"]["steps"]] == [
        "score_importance",
        "consolidate",
        "dream",
        "consolidate_entities",
        "write_pages",
    ]


async def test_an_interrupted_night_is_logged_once_at_its_end(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(scope: Scope, record: NightRecord) -> list[PutOp]:
        raise OSError("the disk is full")

    async with opened(tmp_path, scripted("Hello.", otherwise=night_model), clock) as agent:
        await agent.ainvoke(said("I grow beans on plot 7"))
        with monkeypatch.context() as patched:
            patched.setattr(night, "end_puts", broken)
            first = await agent.ainvoke({"request": "sleep"}, raise_on_failure=False)
        log = await audit.read(agent.store, agent.scope)
        assert "the disk is full" in first["report"]["failures"][0]["error"]
        assert not [one for one in log if one["what"] == "night"]
        clock.advance(hours=1)
        out = await agent.ainvoke({})
        log = await audit.read(agent.store, agent.scope)
        assert len(await entries(agent)) == 1
    assert [one["at"] for one in log if one["what"] == "night"] == [clock().isoformat()]
    assert out["report"]["night"]["ended"] == clock().isoformat()
    assert len([one for one in log if one["target"] == "store_memory"]) == 1


async def test_an_incomplete_night_is_logged_as_an_error(opening: Opening) -> None:
    model = scripted("Hello.", "not a score", "not a score", "not a score")
    async with opening(model) as agent:
        await agent.ainvoke(said("I grow beans on plot 7"))
        await agent.ainvoke({"request": "sleep"})
        told = await audit.read(agent.store, agent.scope, limit=1)
    assert (told[0]["what"], told[0]["outcome"], told[0]["detail"]["held"]) == ("night", "error", 1)
    assert "does not fit" in told[0]["detail"]["errors"][0]


@dreamless
def compacting(messages: list[BaseMessage], tools: list[str]) -> Any:
    if "Entries:" in str(messages[1].text):
        return night_model(messages, tools)
    if tools == EXTRACTING:
        done = sum(message.type == "tool" for message in messages)
        return call("noop") if done else call("add_journal_entry", content="Ada likes words.")
    return "Ada said many words." if not tools else "I see."


def chatter(count: int) -> list[HumanMessage]:
    return [HumanMessage(f"Message {n}: " + "word " * 126, name="Ada") for n in range(count)]


def told(log: list[AuditEntry], origin: str | None) -> list[tuple[str, str]]:
    return [(one["what"], one["target"]) for one in log if one["origin"] == origin]


async def test_an_emergency_compaction_and_its_extraction_are_logged(
    tmp_path: Path, clock: Clock
) -> None:
    async with opened(tmp_path, scripted(otherwise=compacting), clock, settings=SMALL) as agent:
        archives: list[str] = []
        while not archives:
            clock.advance(minutes=1)
            out = await agent.ainvoke({"messages": chatter(1)})
            journal = await entries(agent)
            archives = [one["id"] for one in journal if "compaction" in one["tags"]]
        event = out["report"]["ticks"][0]["event_id"]
        log = await audit.read(agent.store, agent.scope)
    (compaction,) = [one for one in log if one["what"] == "compaction"]
    assert compaction["target"] == archives[0]
    assert compaction["detail"]["messages"] > 0
    assert compaction["tick"] == out["report"]["ticks"][0]["tick"]
    assert told(log, event)[:2] == [("tool_call", "add_journal_entry"), ("tool_call", "noop")]


async def test_a_nights_extraction_is_logged_with_the_night(opening: Opening) -> None:
    async with opening(scripted(otherwise=compacting), settings=SMALL) as agent:
        for message in chatter(9):
            await agent.ainvoke({"messages": [message]})
        out = await agent.ainvoke({"request": "sleep"})
        log = await audit.read(agent.store, agent.scope)
    name = out["report"]["night"]["id"]
    assert told(log, name) == [
        ("tool_call", "store_memory"),
        ("tool_call", "add_journal_entry"),
        ("tool_call", "noop"),
        ("night", name),
    ]
