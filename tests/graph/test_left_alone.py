"""What the agent does while a service that kept failing is left alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings

from graph.agent import open_agent
from memory.errors import ServiceDown
from memory.events import inbox
from memory.settings import Settings
from tests.support.agents import Opening, entries, night_model, said
from tests.support.clock import Clock
from tests.support.scripted import scripted

DOWN = ServiceDown("no usable answer from the model after 4 tries: HTTP 503: no")
HEARD = [
    {"id": f"e{n}", "text": f"Ada grows bean number {n}", "sender": "Ada", "addressed": False}
    for n in range(9)
]


@pytest.fixture(autouse=True)
def _soon_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIRCADIAN_BREAKER_FAILURES", "1")


async def test_an_event_waits_and_nothing_counts_against_it(opening: Opening) -> None:
    model = scripted(DOWN, "Now I am well.")
    async with opening(model) as agent:
        await agent.ainvoke(said("Are you there?", id="first"), raise_on_failure=False)
        for _ in range(4):
            out = await agent.ainvoke({}, raise_on_failure=False)
            (failure,) = out["report"]["failures"]
            assert "the model failed and is left alone" in failure["error"]
        (item,) = await inbox.waiting(agent.store, agent.scope)
        assert (item["event"]["id"], item["attempts"]) == ("first", 1)
        state = (await agent.aget_state()).values
        assert (state["emergency_stop"], state["consecutive_errors"]) == (False, 1)
    assert len(model.calls) == 1


async def test_a_night_ends_at_once_and_keeps_its_entries(opening: Opening) -> None:
    model = scripted(DOWN)
    settings = Settings(score_batch_size=2)
    async with opening(model, settings=settings) as agent:
        await agent.ainvoke({"events": HEARD})
        await agent.ainvoke(said("Are you there?", id="first"), raise_on_failure=False)
        out = await agent.ainvoke({"request": "sleep"}, raise_on_failure=False)
        assert {one["consolidation"] for one in await entries(agent)} == {"pending"}
    night = out["report"]["night"]
    assert len(model.calls) == 1
    assert (night["complete"], len(night["held"])) == (False, 9)
    assert night["errors"]
    for error in night["errors"]:
        assert error.startswith("score_importance: the model failed and is left alone")


async def test_the_next_night_does_what_was_left(opening: Opening) -> None:
    model = scripted(DOWN, otherwise=night_model)
    async with opening(model) as agent:
        await agent.ainvoke({"events": HEARD})
        await agent.ainvoke({"request": "sleep"})
    async with opening(model) as agent:
        out = await agent.ainvoke({"request": "sleep"})
    assert (out["report"]["night"]["complete"], out["report"]["night"]["held"]) == (True, [])


class Unreachable(Embeddings):
    """An embedder that is down."""

    def __init__(self) -> None:
        self.calls = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        if text == "dimension":
            return [0.0] * 8
        self.calls += 1
        raise ServiceDown("no usable answer from the embedder after 4 tries")


async def test_while_the_embedder_is_left_alone_a_tick_recalls_by_words(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    unreachable, model = Unreachable(), scripted("You grow beans.", "Beans, I said.")
    async with open_agent(tmp_path, model=model, embedder=unreachable, clock=clock) as agent:
        await agent.ainvoke(said("I grow beans.", id="first"))
        out = await agent.ainvoke(said("Which beans?", id="second"))
        assert [tick["reply"] for tick in out["report"]["ticks"]] == ["Beans, I said."]
        assert await inbox.waiting(agent.store, agent.scope) == []
        assert [hit["text"] for hit in await agent.recall("beans")] == [
            "I grow beans.",
            "Which beans?",
        ]
    assert unreachable.calls == 1, "asked once, and then left alone"
    assert "the embedder failed and is left alone for now" in caplog.text


async def test_facts_that_cannot_be_read_are_left_alone(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def broken(*_: Any) -> Any:
        tried.append(1)
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr("memory.facts.sqlite.table.SqliteTable.keywords", broken)
    async with opening(scripted()) as agent:
        first = await agent.ainvoke(said("Are you there?", id="first"), raise_on_failure=False)
        assert "disk I/O error" in first["report"]["failures"][0]["error"]
        out = await agent.ainvoke({}, raise_on_failure=False)
        assert "the memory failed and is left alone" in out["report"]["failures"][0]["error"]
        assert len(await inbox.waiting(agent.store, agent.scope)) == 1
    assert len(tried) == 1


async def test_after_its_time_the_waiting_event_is_answered(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIRCADIAN_BREAKER_SECONDS", "0.001")
    model = scripted(DOWN, "Now I am well.")
    async with opening(model) as agent:
        with pytest.raises(ServiceDown):
            await agent.ainvoke(said("Are you there?", id="first"))
        out = await agent.ainvoke({})
    assert [tick["reply"] for tick in out["report"]["ticks"]] == ["Now I am well."]
