"""Corrections: what a person says supersedes a fact, once; the old fact is kept."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from graph.api import AsyncAgent
from graph.cli.status_view import log_view
from graph.use_cases.context import AgentContext
from graph.use_cases.memories import correct, find_fact
from graph.use_cases.status import half_done
from memory import audit
from memory.errors import BusyError, InputError, MemoryStoreError
from memory.journal import entries as journal
from memory.operations.apply import LINKS, apply_operations
from memory.records.operations import change_fact, link_facts
from memory.records.records import Fact
from memory.settings import Settings
from memory.storage.access import list_items
from tests.support.agents import Opening, entries, night_model, opened, said
from tests.support.clock import Clock
from tests.support.facts import draft
from tests.support.homes import held
from tests.support.screens import plain
from tests.support.scripted import ScriptedChatModel, scripted

NOW = "2026-05-01T00:00:00+00:00"
PARIS, OSLO, BERGEN = "I live in Paris", "I live in Oslo", "I live in Bergen"


@pytest.fixture
def model() -> ScriptedChatModel:
    return scripted(otherwise=night_model)


@pytest.fixture
async def agent(
    tmp_path: Path, clock: Clock, model: ScriptedChatModel
) -> AsyncIterator[AsyncAgent]:
    async with opened(tmp_path, model, clock) as handle:
        yield handle
    assert model.calls == []


@pytest.fixture
async def paris(agent: AsyncAgent, clock: Clock) -> Fact:
    (fact,) = await agent.resources.semantic.add(
        agent.scope, [draft("paris", PARIS, speaker="Ada", entities=["Ada", "Paris"], trust=0.3)]
    )
    clock.advance(days=1)
    return fact


async def stored(agent: AsyncAgent) -> list[Fact]:
    return await agent.resources.semantic.all(agent.scope)


async def test_the_new_fact_supersedes_the_old_one(
    agent: AsyncAgent, paris: Fact, clock: Clock
) -> None:
    new = await correct(agent.context, paris["id"], f"  {OSLO} \n", by="Ada")
    old, held = await stored(agent)
    assert held == new
    assert (new["text"], new["speaker"], new["trust"]) == (OSLO, "Ada", 0.9)
    assert (new["entities"], new["valid_from"]) == (["Ada", "Oslo"], clock().isoformat())
    assert (new["invalid_at"], new["superseded_by"]) == (None, None)
    assert old == {**paris, "invalid_at": new["valid_from"], "superseded_by": new["id"]}


async def test_a_repeated_correction_changes_nothing_and_is_audited_once_by_id(
    agent: AsyncAgent, paris: Fact, clock: Clock
) -> None:
    new = await correct(agent.context, paris["id"], OSLO, by="Ada")
    before = (await stored(agent), await entries(agent))
    clock.advance(days=1)
    assert await correct(agent.context, paris["id"], OSLO, by="Ada") == new
    assert (await stored(agent), await entries(agent)) == before
    (line,) = await audit.read(agent.store, agent.scope)
    assert (line["who"], line["what"], line["target"]) == ("Ada", "fact_corrected", paris["id"])
    assert (line["at"], line["origin"]) == (new["created"], new["source_events"][0])
    assert line["detail"] == {"fact": new["id"]}
    assert f"Ada corrected fact {paris['id']} · now {new['id']}" in plain(log_view([line]), 200)
    assert not [text for text in (PARIS, OSLO) if text in json.dumps(line)]


async def test_the_journal_entry_is_the_new_facts_source(
    agent: AsyncAgent, paris: Fact, clock: Clock
) -> None:
    new = await correct(agent.context, paris["id"], OSLO, by="Ada")
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


async def test_a_night_does_not_consolidate_a_correction_again(
    agent: AsyncAgent, paris: Fact, model: ScriptedChatModel
) -> None:
    await correct(agent.context, paris["id"], OSLO, by="Ada")
    assert await journal.pending(agent.store, agent.scope) == []
    night = (await agent.ainvoke({"request": "sleep"}))["report"]["night"]
    asked = [(step["step"], step["llm_calls"]) for step in night["steps"]]
    assert asked == [("dream", 0), ("consolidate_entities", 1), ("write_pages", 0)]
    assert len(await stored(agent)) == 2
    model.calls.clear()


async def test_the_new_fact_is_about_what_it_names(agent: AsyncAgent, paris: Fact) -> None:
    oslo = await correct(agent.context, paris["id"], "I live in Oslo, near Ada's school", by="Ada")
    assert oslo["entities"] == ["Ada", "Oslo"]
    again = await correct(agent.context, oslo["id"], "I lived in Oslo", by="Ada")
    assert again["entities"] == ["Oslo"]


async def test_the_default_speaker_is_the_owner(agent: AsyncAgent, paris: Fact) -> None:
    made = await correct(agent.context, paris["id"], "Ada lives in Oslo")
    assert made["speaker"] == "local"


async def test_what_somebody_said_of_themselves_is_nobody_elses_first_person(
    agent: AsyncAgent, paris: Fact
) -> None:
    with pytest.raises(InputError, match=r'local is not Ada: write it about Ada, as in "Ada\'s'):
        await correct(agent.context, paris["id"], OSLO)
    assert (await stored(agent), await entries(agent)) == ([paris], [])
    (told,) = await agent.resources.semantic.add(
        agent.scope,
        [draft("told", "local has a cat called Tom", speaker="Ada", entities=["local"])],
    )
    assert (await correct(agent.context, told["id"], "My cat is called Tim"))["speaker"] == "local"


@pytest.mark.parametrize("broken_off", [True, False])
async def test_session_memory_no_longer_says_what_was_wrong(
    agent: AsyncAgent, monkeypatch: pytest.MonkeyPatch, broken_off: bool
) -> None:
    was, others = "The hall is open on Tuesdays only.", ["The hall is blue.", "Ben is late."]
    now = "The hall is open on Fridays only."
    await agent.ainvoke({"request": "wake"})
    standing = (await agent.aget_state()).values["session_memory"]
    items = {"key_facts": [was.rstrip("."), *others], "said_by": {was.rstrip("."): "Rosa"}}
    await agent.context.replace_state({"session_memory": {**standing, **items}})
    (fact,) = await agent.resources.semantic.add(agent.scope, [draft("hall", was, speaker="Rosa")])
    if broken_off:
        with monkeypatch.context() as patch:
            patch.setattr(
                "graph.use_cases.context.carry_out", AsyncMock(side_effect=OSError("disk"))
            )
            patch.setattr(AgentContext, "replace_state", AsyncMock(side_effect=OSError("disk")))
            with pytest.raises(OSError, match="disk"):
                await correct(agent.context, fact["id"], now)
        await agent.ainvoke({"request": "wake"})
    else:
        await correct(agent.context, fact["id"], now, by="Ben")
    after = (await agent.aget_state()).values["session_memory"]
    assert after["key_facts"] == [now, *others]
    assert after.get("said_by") == (None if broken_off else {now: "Ben"})
    new = next(one for one in await stored(agent) if one["text"] == now)
    await correct(agent.context, new["id"], "I keep the hall open.")
    assert (await agent.aget_state()).values["session_memory"]["key_facts"] == others


async def test_any_owners_correction_stands_in_session_memory_without_a_name(
    tmp_path: Path, clock: Clock, model: ScriptedChatModel
) -> None:
    two = Settings(owners=("Ada", "Ben"))
    monday, friday = "The shop opens on Monday.", "The shop opens on Friday."
    async with opened(tmp_path, model, clock, settings=two) as agent:
        await agent.ainvoke({"request": "wake"})
        memory = (await agent.aget_state()).values["session_memory"]
        await agent.context.replace_state({"session_memory": {**memory, "key_facts": [monday]}})
        (fact,) = await agent.resources.semantic.add(agent.scope, [draft("monday", monday)])
        await correct(agent.context, fact["id"], friday, by="Ben")
        after = (await agent.aget_state()).values["session_memory"]
    assert (after["key_facts"], after.get("said_by")) == ([friday], None)


@pytest.mark.parametrize("repeated", [True, False])
async def test_an_interrupted_correction_is_named_and_finished_by_whatever_runs_next(
    agent: AsyncAgent, paris: Fact, clock: Clock, monkeypatch: pytest.MonkeyPatch, repeated: bool
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise MemoryStoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("memory.operations.apply.write_batch", broken)
        with pytest.raises(MemoryStoreError):
            await correct(agent.context, paris["id"], OSLO, by="Ada")
    assert await entries(agent) == []
    assert "`circadian tick`" in (await half_done(agent.context))["correction"]
    began = clock().isoformat()
    clock.advance(days=1)
    if repeated:
        await correct(agent.context, paris["id"], OSLO, by="Ada")
    else:
        await agent.ainvoke({"request": "wake"})
    assert await half_done(agent.context) == {}
    old, new = await stored(agent)
    assert (old["superseded_by"], new["text"]) == (new["id"], OSLO)
    (entry,) = await entries(agent)
    assert (entry["timestamp"], new["source_entries"]) == (began, [entry["id"]])
    lines = await audit.read(agent.store, agent.scope)
    assert [one["what"] for one in lines] == ["fact_corrected"]


async def test_correcting_a_superseded_fact_is_an_error_that_names_its_successor(
    agent: AsyncAgent, paris: Fact
) -> None:
    oslo = await correct(agent.context, paris["id"], OSLO, by="Ada")
    bergen = await correct(agent.context, oslo["id"], BERGEN, by="Ada")
    for text in ("I live in Rome", OSLO, PARIS):
        with pytest.raises(InputError) as refused:
            await correct(agent.context, paris["id"], text, by="Ada")
        assert f"what holds now is {bergen['id']}: '{BERGEN}'; correct that one" in str(
            refused.value
        )
    assert len(await stored(agent)) == 3
    assert len(await entries(agent)) == 2


async def test_correcting_an_invalid_fact_without_successor_is_an_error(
    agent: AsyncAgent, paris: Fact
) -> None:
    at = "2026-03-02T10:00:00+00:00"
    await agent.resources.semantic.update(agent.scope, paris["id"], {"invalid_at": at})
    with pytest.raises(InputError, match=f"no longer holds since {at[:16]}"):
        await correct(agent.context, paris["id"], OSLO, by="Ada")


async def test_correcting_back_makes_a_third_fact(agent: AsyncAgent, paris: Fact) -> None:
    oslo = await correct(agent.context, paris["id"], OSLO, by="Ada")
    again = await correct(agent.context, oslo["id"], PARIS, by="Ada")
    third = await correct(agent.context, again["id"], OSLO, by="Ada")
    assert len({paris["id"], oslo["id"], again["id"], third["id"]}) == 4
    assert [one["text"] for one in await stored(agent) if one["invalid_at"] is None] == [OSLO]


async def test_a_text_that_holds_already_changes_nothing_and_is_not_audited(
    agent: AsyncAgent, paris: Fact
) -> None:
    assert await correct(agent.context, paris["id"], f" {PARIS}") == paris
    assert (await stored(agent), await entries(agent)) == ([paris], [])
    assert await audit.read(agent.store, agent.scope) == []


@pytest.mark.parametrize(
    ("text", "by", "says"),
    [
        (" \n\x00", "Ada", "the text has no words"),
        ("x" * 10_001, "Ada", "at most 10,000 characters, and not 10,001"),
        (OSLO, " ", "who says it needs a name"),
        ("The assistant likes jazz", "Ada", "not the assistant: speaks of the assistant"),
        ("I am happy to help", "the assistant", "not the assistant: first person"),
    ],
)
async def test_a_correction_that_cannot_be_a_fact_is_refused(
    agent: AsyncAgent, paris: Fact, text: str, by: str, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        await correct(agent.context, paris["id"], text, by=by)
    assert (await stored(agent), await entries(agent)) == ([paris], [])


async def test_a_correction_needs_the_agents_lock(
    agent: AsyncAgent, paris: Fact, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIRCADIAN_LOCK_TIMEOUT", "0")
    async with opened(tmp_path, scripted(), clock) as late:
        with held(tmp_path), pytest.raises(BusyError, match="in use by process"):
            await correct(late.context, paris["id"], OSLO, by="Ada")
        assert await stored(agent) == [paris]
        assert (await correct(late.context, paris["id"], OSLO, by="Ada"))["text"] == OSLO


async def test_a_shortened_id_finds_its_fact(agent: AsyncAgent, paris: Fact) -> None:
    for given in (paris["id"], paris["id"][:8], f" {paris['id'][:8].upper()}… "):
        assert await find_fact(agent.context, given) == paris


async def test_an_unknown_or_too_short_id_is_an_error(agent: AsyncAgent, paris: Fact) -> None:
    with pytest.raises(InputError, match="too short for one of the facts"):
        await find_fact(agent.context, paris["id"][:3])
    assert await find_fact(agent.context, paris["id"][:4]) == paris
    with pytest.raises(InputError, match="no fact is named"):
        await find_fact(agent.context, " ")
    with pytest.raises(InputError, match="there is no fact 'zzz'; `circadian recall --all` shows"):
        await find_fact(agent.context, "zzz")


async def test_the_id_of_a_journal_entry_is_an_error_that_says_so(opening: Opening) -> None:
    async with opening(scripted("Noted.")) as agent:
        await agent.ainvoke(said(PARIS))
        (entry,) = await entries(agent)
        with pytest.raises(InputError, match=r"no fact; .* `circadian forget --entry`"):
            await find_fact(agent.context, entry["id"])


async def test_facts_that_depend_on_a_corrected_fact_are_recalled_as_doubtful(
    agent: AsyncAgent, paris: Fact
) -> None:
    semantic, scope = agent.resources.semantic, agent.scope
    (ticket,) = await semantic.add(scope, [draft("ticket", "Ada has a ticket for the tram")])
    rests: dict[str, Any] = {"depends_on": ["paris"]}
    operations = [
        link_facts("ticket", "paris", "depends_on", NOW, "bought for it"),
        change_fact(ticket, rests, ["paris"], "bought for it"),
    ]
    await apply_operations(operations, store=agent.store, semantic=semantic, scope=scope)
    await correct(agent.context, paris["id"], OSLO, by="Ada")
    after = {one["op"]: one for one in await stored(agent)}
    assert after["ticket"]["doubtful"] == ["paris"]
    assert "doubtful" not in after[next(op for op in after if op not in ("paris", "ticket"))]
    found = [one for one in await agent.recall("ticket for the tram") if one["kind"] == "fact"]
    assert [(one["text"], one.get("doubtful")) for one in found] == [
        (ticket["text"], True),
        (OSLO, None),
    ]
