"""What a night leaves to the next one, or waits for, is shown alike in report, list and log."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from rich.console import Console

from graph.cli.status_view import log_view
from memory import audit
from memory.audit import AuditEntry, of_night
from memory.night.record import new_night
from memory.records.records import NightRecord
from tests.support.agents import Opening, night_model
from tests.support.scripted import scripted

HEARD = {
    "events": [
        {"id": f"e{n}", "text": f"Plot {n} is dry", "sender": "Ada", "addressed": False}
        for n in range(3)
    ]
}
AT = datetime(2026, 3, 2, 22, 0, tzinfo=UTC)


def ended(**more: Any) -> NightRecord:
    record = new_night(AT, ["a"], [])
    made: Any = {**record, "ended": AT.isoformat(), "status": "complete", **more}
    found: NightRecord = made
    return found


def line(entry: AuditEntry) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(log_view([entry]))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()[1].rstrip()


async def test_unsettled_entries_are_counted_in_the_list_of_nights(opening: Opening) -> None:
    def chatter(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        return "I see." if "store_memory" in tools else night_model(messages, tools)

    async with opening(scripted(otherwise=chatter)) as agent:
        await agent.ainvoke(HEARD)
        report = (await agent.ainvoke({"request": "sleep"}))["report"]["night"]
        first = (await agent.nights())[-1]
        logged = (await audit.read(agent.store, agent.scope, limit=1))[0]
    assert (len(report["held"]), report["complete"], first["left"]) == (3, True, 3)
    assert "✓ agent slept" in line(logged)
    assert "3 left for the next night" in line(logged)
    async with opening(scripted(otherwise=night_model)) as agent:
        await agent.ainvoke({"request": "sleep"})
        assert [one["left"] for one in await agent.nights()] == [3, 0]


@pytest.mark.parametrize(
    ("record", "mark", "words"),
    [
        (ended(status="held"), "‖", "held back for you to decide"),
        (ended(stopped="8 of 8 model calls are used"), "✓", "stopped early: 8 of 8 model calls"),
        (ended(errors=["dream: no answer"]), "✗", "dream: no answer"),
        (ended(status="held", errors=["dream: no answer"]), "✗", "held back for you to decide"),
        (ended(complete=True), "✓", "0 changes"),
    ],
)
def test_the_log_shows_held_stopped_and_failed_nights(
    record: NightRecord, mark: str, words: str
) -> None:
    entry = of_night(record, [], tick=1, model="offline")
    told = line(entry)
    assert f" {mark} agent slept {record['id']}" in told
    assert words in told
    assert entry["outcome"] == ("error" if record["errors"] else "ok")


def test_a_held_night_that_was_logged_as_an_error_is_shown_as_held() -> None:
    entry = of_night(ended(status="held"), [], tick=1, model="offline")
    assert " ‖ agent slept" in line({**entry, "outcome": "error"})
