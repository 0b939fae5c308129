"""Correcting a fact: what a person says takes its place, once, and the old one is kept."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from graph.cli.views import log_view
from graph.corrections import correct, find_fact
from graph.handle import AsyncAgent
from memory import audit, journal
from memory.apply import LINKS
from memory.errors import BusyError, InputError, MemoryStoreError
from memory.lock import AgentLock
from memory.records import Fact
from memory.store_access import list_items
from tests.agents import entries, opened, said
from tests.clock import Clock
from tests.facts import draft
from tests.scripted import ScriptedChatModel, scripted

PARIS, OSLO, BERGEN = "I live in Paris", "I live in Oslo", "I live in Bergen"


@pytest.fixture
def model() -> ScriptedChatModel:
    """Answers nothing: a correction asks no model."""
    return scripted()


@pytest.fixture
async def agent(
    tmp_path: Path, clock: Clock, model: ScriptedChatModel
) -> AsyncIterator[AsyncAgent]:
    async with opened(tmp_path, model, clock) as handle:
        yield handle
    assert model.calls == []


@pytest.fixture
async def paris(agent: AsyncAgent, clock: Clock) -> Fact:
    """A fact of yesterday."""
    (fact,) = await agent.resources.semantic.add(
        agent.scope, [draft("paris", PARIS, speaker="Ada", entities=["Ada", "Paris"], trust=0.3)]
    )
    clock.advance(days=1)
    return fact


async def stored(agent: AsyncAgent) -> list[Fact]:
    return await agent.resources.semantic.all(agent.scope)


async def test_the_new_fact_holds_and_the_old_one_is_superseded_by_it(
    agent: AsyncAgent, paris: Fact, clock: Clock
) -> None:
    new = await correct(agent, paris["id"], f"  {OSLO} \n", by="Ada")
    old, held = await stored(agent)
    assert held == new
    assert (new["text"], new["speaker"], new["trust"]) == (OSLO, "Ada", 0.9)
    assert (new["entities"], new["valid_from"]) == (["Ada", "Paris"], clock().isoformat())
    assert (new["invalid_at"], new["superseded_by"]) == (None, None)
    assert old == {**paris, "invalid_at": new["valid_from"], "superseded_by": new["id"]}


async def test_the_audit_log_tells_it_once_by_ids_alone(
    agent: AsyncAgent, paris: Fact, clock: Clock
) -> None:
    new = await correct(agent, paris["id"], OSLO, by="Ada")
    clock.advance(minutes=5)
    await correct(agent, paris["id"], OSLO, by="Ada")
    (line,) = await audit.read(agent.store, agent.scope)
    assert (line["who"], line["what"], line["target"]) == ("Ada", "fact_corrected", paris["id"])
    assert (line["at"], line["origin"]) == (new["created"], new["source_events"][0])
    assert line["detail"] == {"fact": new["id"]}
    shown = StringIO()
    Console(width=200, file=shown).print(log_view([line]))
    assert f"Ada corrected fact {paris['id']} · now {new['id']}" in shown.getvalue()
    assert not [text for text in (PARIS, OSLO) if text in json.dumps(line)]


async def test_what_changes_nothing_is_not_told(agent: AsyncAgent, paris: Fact) -> None:
    await correct(agent, paris["id"], PARIS, by="Ada")
    assert await audit.read(agent.store, agent.scope) == []


async def test_what_was_said_stands_in_the_journal_and_is_the_facts_source(
    agent: AsyncAgent, paris: Fact, clock: Clock
) -> None:
    new = await correct(agent, paris["id"], OSLO, by="Ada")
    (entry,) = await entries(agent)
    assert new["source_entries"] == [entry["id"]]
    assert new["source_events"] == entry["sources"] != []
    assert (entry["source_type"], entry["source_entity"], entry["tags"]) == (
        *("direct", "Ada", ["correction"]),
    )
    assert entry["content"] == f"Correction: {OSLO}"
    assert entry["timestamp"] == clock().isoformat()
    links = {
        item.key: item.value["linked_to"]
        for item in await list_items(agent.store, agent.scope.namespace(LINKS))
    }
    assert links == {entry["id"]: [new["id"]], new["id"]: [entry["id"]]}


async def test_no_night_makes_a_second_fact_of_it(
    agent: AsyncAgent, paris: Fact, model: ScriptedChatModel
) -> None:
    await correct(agent, paris["id"], OSLO)
    assert await journal.pending(agent.store, agent.scope) == []
    night = (await agent.ainvoke({"request": "sleep"}))["report"]["night"]
    assert [(step["step"], step["llm_calls"]) for step in night["steps"]] == [("dream", 0)]
    assert len(await stored(agent)) == 2
    assert model.calls == []


async def test_default_recall_finds_the_new_fact_and_not_the_old_one(
    agent: AsyncAgent, paris: Fact
) -> None:
    new = await correct(agent, paris["id"], OSLO)
    found = [hit["id"] for hit in await agent.recall("Where do I live?") if hit["kind"] == "fact"]
    assert found == [new["id"]]
    every = await agent.recall("Where do I live?", include_superseded=True)
    assert {paris["id"], new["id"]} <= {hit["id"] for hit in every}


async def test_without_a_name_it_is_the_owner_who_says_so(agent: AsyncAgent, paris: Fact) -> None:
    assert (await correct(agent, paris["id"], OSLO))["speaker"] == "local"
    with pytest.raises(InputError, match="--by needs a name"):
        await correct(agent, paris["id"], BERGEN, by=" ")


async def test_the_same_correction_twice_is_one(
    agent: AsyncAgent, paris: Fact, clock: Clock
) -> None:
    new = await correct(agent, paris["id"], OSLO)
    before = (await stored(agent), await entries(agent))
    clock.advance(days=1)
    assert await correct(agent, paris["id"], OSLO) == new
    assert (await stored(agent), await entries(agent)) == before


async def test_broken_off_before_the_journal_is_written_it_is_finished_by_the_same_correction(
    agent: AsyncAgent, paris: Fact, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise MemoryStoreError("the disk is full")

    began = clock().isoformat()
    with monkeypatch.context() as patch:
        patch.setattr("memory.apply.write_batch", broken)
        with pytest.raises(MemoryStoreError):
            await correct(agent, paris["id"], OSLO)
    assert await entries(agent) == []
    clock.advance(days=1)
    new = await correct(agent, paris["id"], OSLO)
    (entry,) = await entries(agent)
    assert (entry["timestamp"], new["source_entries"]) == (began, [entry["id"]])
    assert len(await stored(agent)) == 2


async def test_a_superseded_fact_is_refused_and_the_one_that_holds_is_named(
    agent: AsyncAgent, paris: Fact
) -> None:
    oslo = await correct(agent, paris["id"], OSLO)
    bergen = await correct(agent, oslo["id"], BERGEN)
    for text in ("I live in Rome", OSLO, PARIS):
        with pytest.raises(InputError) as refused:
            await correct(agent, paris["id"], text)
        assert f"what holds now is {bergen['id']}: '{BERGEN}'; correct that one" in str(
            refused.value
        )
    assert len(await stored(agent)) == 3
    assert len(await entries(agent)) == 2


async def test_a_fact_that_holds_no_longer_and_that_nothing_superseded_is_refused(
    agent: AsyncAgent, paris: Fact
) -> None:
    at = "2026-03-02T10:00:00+00:00"
    await agent.resources.semantic.update(agent.scope, paris["id"], {"invalid_at": at})
    with pytest.raises(InputError, match=f"no longer holds since {at[:16]}"):
        await correct(agent, paris["id"], OSLO)


async def test_corrected_back_it_is_a_third_fact(agent: AsyncAgent, paris: Fact) -> None:
    oslo = await correct(agent, paris["id"], OSLO)
    again = await correct(agent, oslo["id"], PARIS)
    third = await correct(agent, again["id"], OSLO)
    assert len({paris["id"], oslo["id"], again["id"], third["id"]}) == 4
    assert [one["text"] for one in await stored(agent) if one["invalid_at"] is None] == [OSLO]


async def test_a_text_that_stands_already_changes_nothing(agent: AsyncAgent, paris: Fact) -> None:
    assert await correct(agent, paris["id"], f" {PARIS}") == paris
    assert (await stored(agent), await entries(agent)) == ([paris], [])


@pytest.mark.parametrize(
    ("text", "by", "says"),
    [
        (" \n", "Ada", "the text is empty"),
        ("The assistant likes jazz", "Ada", "not the assistant: speaks of the assistant"),
        ("I am happy to help", "the assistant", "not the assistant: first person"),
    ],
)
async def test_what_is_no_fact_is_refused_and_changes_nothing(
    agent: AsyncAgent, paris: Fact, text: str, by: str, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        await correct(agent, paris["id"], text, by=by)
    assert (await stored(agent), await entries(agent)) == ([paris], [])


async def test_while_another_process_runs_the_agent_it_is_refused(
    agent: AsyncAgent, paris: Fact, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIRCADIAN_LOCK_TIMEOUT", "0")
    running = AgentLock(tmp_path / "locks", agent.scope.thread, role="other", timeout=0)
    async with opened(tmp_path, scripted(), clock) as late:
        async with running:
            with pytest.raises(BusyError, match="in use by process"):
                await correct(late, paris["id"], OSLO)
        assert await stored(agent) == [paris]
        assert (await correct(late, paris["id"], OSLO))["text"] == OSLO


async def test_another_agents_fact_is_not_found(
    agent: AsyncAgent, paris: Fact, tmp_path: Path, clock: Clock
) -> None:
    async with opened(tmp_path, scripted(), clock, agent="other") as other:
        for given in (paris["id"], paris["id"][:8]):
            with pytest.raises(InputError, match="there is no fact"):
                await correct(other, given, OSLO)
    assert await stored(agent) == [paris]


async def test_a_fact_goes_by_how_its_id_begins(agent: AsyncAgent, paris: Fact) -> None:
    for given in (paris["id"], paris["id"][:8], f" {paris['id'][:8].upper()}… "):
        assert await find_fact(agent, given) == paris


async def test_an_id_that_means_no_fact_or_several_is_one_clear_error(
    agent: AsyncAgent, paris: Fact
) -> None:
    drafts = [draft(str(n), f"fact {n}") for n in range(40)]
    made = await agent.resources.semantic.add(agent.scope, drafts)
    ((first, _),) = Counter(fact["id"][0] for fact in made).most_common(1)
    with pytest.raises(InputError, match=f"facts have ids that begin with {first}: {first}"):
        await find_fact(agent, first)
    with pytest.raises(InputError, match="no fact is named"):
        await find_fact(agent, " ")
    with pytest.raises(InputError, match="there is no fact 'zzz'; `circadian recall --all` shows"):
        await find_fact(agent, "zzz")


async def test_an_entry_of_the_journal_is_no_fact_and_is_called_so(
    tmp_path: Path, clock: Clock
) -> None:
    async with opened(tmp_path, scripted("Noted."), clock) as agent:
        await agent.ainvoke(said(PARIS))
        (entry,) = await entries(agent)
        with pytest.raises(InputError, match="is an entry of the journal and no fact"):
            await find_fact(agent, entry["id"])
