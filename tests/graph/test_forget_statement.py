"""Forgetting a fact or an entry erases what it says: no recall and no prompt has it afterwards."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from graph.api import AsyncAgent
from memory.errors import InputError
from memory.forgetting import unfinished
from memory.records import Fact
from tests.support.agents import Opening, dreamless, entries, opened, said, scored, shown_lines
from tests.support.clock import Clock
from tests.support.lives import holding
from tests.support.scripted import ScriptedChatModel, calls, scripted

OPENS = "The bakery on Mill Street opens at 7."
TOLD = f"{OPENS} My sister Nina lives in Turin."
FACTS = {
    "bakery": "The bakery on Mill Street opens at 7.",
    "Nina": "Ben's sister Nina lives in Turin.",
    "oaks": "Ben planted 40 oaks by the river.",
}


@dreamless
def answers(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
    """Awake it repeats what it is told; asleep it makes one fact of each known sentence."""
    if tools == ["Scores"]:
        return scored(messages)
    if tools == ["store_memory", "noop"] or (
        "store_memory" in tools and "Entries:" in str(messages[1].text)
    ):
        facts = [
            {"text": text, "source_ids": [one], "speaker": who}
            for one, who, line in shown_lines(messages)
            for word, text in FACTS.items()
            if word in line
        ]
        return calls(("store_memory", {"facts": facts}), ("noop", {}))
    heard = str(messages[-1].text)
    return AIMessage(f"Noted. {OPENS}" if "bakery" in heard else "Noted.")


async def lived(agent: AsyncAgent, *texts: str) -> list[Fact]:
    for number, text in enumerate(texts):
        await agent.ainvoke(said(text, sender="Ben", id=f"e{number}"))
    await agent.ainvoke({"request": "sleep"})
    facts: list[Fact] = await agent.resources.semantic.all(agent.scope)
    return facts


def named(facts: list[Fact], word: str) -> Fact:
    (found,) = [fact for fact in facts if word in fact["text"]]
    return found


async def shown_to(agent: AsyncAgent, model: ScriptedChatModel, question: str) -> str:
    await agent.ainvoke(said(question, sender="Ben"))
    return "\n".join(str(one.text) for one in model.calls[-1].messages)


async def recalled(agent: AsyncAgent, query: str) -> list[str]:
    return [hit["text"] for hit in await agent.recall(query, include_superseded=True)]


async def test_a_fact_goes_with_the_entry_that_nothing_else_needs(
    tmp_path: Path, clock: Clock
) -> None:
    model = scripted(otherwise=answers)
    async with opened(tmp_path, model, clock) as agent:
        facts = await lived(agent, OPENS, "I planted 40 oaks by the river, at last.")
        fact = named(facts, "bakery")
        preview = await agent.forget_fact(fact["id"], dry_run=True)
        assert len(await agent.resources.semantic.all(agent.scope)) == len(facts)
        done = await agent.forget_fact(fact["id"])
        journal = [one["content"] for one in await entries(agent)]
        left = await agent.resources.semantic.all(agent.scope)
        found = await recalled(agent, "When does the bakery on Mill Street open?")
        prompt = await shown_to(agent, model, "When does the shop open?")
    assert {(one["kind"], one["text"], one["left"]) for one in preview["memories"]} == {
        ("fact", OPENS, None),
        ("episode", OPENS, None),
    }
    assert (preview["dry_run"], done["dry_run"]) == (True, False)
    assert done["counts"] == preview["counts"]
    assert (done["counts"]["facts"], done["counts"]["journal"], done["memories"]) == (1, 1, [])
    assert [one["text"] for one in left] == [FACTS["oaks"]]
    assert journal == ["I planted 40 oaks by the river, at last."]
    assert not [text for text in found if "bakery" in text.lower()]
    assert "bakery" not in prompt.lower()
    assert holding(tmp_path, ["mill street"]) == []


async def test_an_entry_that_another_fact_needs_loses_the_sentence(
    tmp_path: Path, clock: Clock
) -> None:
    model = scripted(otherwise=answers)
    async with opened(tmp_path, model, clock) as agent:
        facts = await lived(agent, TOLD)
        preview = await agent.forget_fact(named(facts, "bakery")["id"], dry_run=True)
        await agent.forget_fact(named(facts, "bakery")["id"])
        (entry,) = await entries(agent)
        left = await agent.resources.semantic.all(agent.scope)
        found = await recalled(agent, "Where does Nina live, and when does the bakery open?")
        prompt = await shown_to(agent, model, "Where does my sister live?")
    assert {(one["kind"], one["left"]) for one in preview["memories"]} == {
        ("fact", None),
        ("episode", "My sister Nina lives in Turin."),
    }
    assert entry["content"] == "My sister Nina lives in Turin."
    assert [one["text"] for one in left] == [FACTS["Nina"]]
    assert any("Turin" in text for text in found)
    assert not [text for text in found if "bakery" in text.lower()]
    assert "Turin" in prompt
    assert "Mill Street" not in prompt
    assert holding(tmp_path, ["mill street"]) == []


async def test_the_same_said_elsewhere_goes_too(tmp_path: Path, clock: Clock) -> None:
    async with opened(tmp_path, scripted(otherwise=answers), clock) as agent:
        facts = await lived(agent, OPENS)
        await agent.ainvoke(
            said("I said the bakery on Mill Street opens at 7! I like it.", sender="Zoe", id="z")
        )
        await agent.forget_fact(named(facts, "bakery")["id"])
        journal = [one["content"] for one in await entries(agent)]
    assert journal == ["I like it."]
    assert holding(tmp_path, ["mill street"]) == []


async def fails(*args: Any, **options: Any) -> None:
    raise OSError("the disk is full")


async def test_an_entry_whose_forget_was_broken_off_goes_with_its_tick(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opening(scripted(otherwise=answers)) as agent:
        await lived(agent, OPENS)
        (entry,) = await entries(agent)
        with monkeypatch.context() as patch:
            patch.setattr("graph.use_cases.forgetting._rewrite_state", fails)
            with pytest.raises(OSError, match="the disk is full"):
                await agent.forget_entry(entry["id"])
        await agent.forget_entry(entry["id"])
        assert (await agent.aget_state()).values["messages"] == []


@pytest.mark.parametrize("broken", ["_rewrite_state", "audit.write", "_clean"])
async def test_a_forget_that_was_broken_off_is_completed(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    async with opened(tmp_path, scripted(otherwise=answers), clock) as agent:
        fact = named(await lived(agent, TOLD), "bakery")
        with monkeypatch.context() as patch:
            patch.setattr(f"graph.use_cases.forgetting.{broken}", fails)
            with pytest.raises(OSError, match="the disk is full"):
                await agent.forget_fact(fact["id"])
        left = await unfinished(agent.store, agent.scope)
        await agent.forget_fact(fact["id"])
        assert await unfinished(agent.store, agent.scope) is None
        (entry,) = await entries(agent)
    assert left is not None
    assert "forget" in left
    assert entry["content"] == "My sister Nina lives in Turin."
    assert holding(tmp_path, ["mill street"]) == []


async def test_an_entry_goes_with_what_was_made_of_it(tmp_path: Path, clock: Clock) -> None:
    model = scripted(otherwise=answers)
    async with opened(tmp_path, model, clock) as agent:
        await lived(agent, TOLD, "I planted 40 oaks by the river, at last.")
        rows = await agent.everything("Nina")
        (row,) = [one for one in rows if one["kind"] == "episode"]
        preview = await agent.forget_entry(row["id"], dry_run=True)
        # A name that is an id may leave out the kind of the entry, as every id that is typed.
        assert await agent.forget(row["id"].partition("_")[2], dry_run=True) == preview
        done = await agent.forget_entry(row["id"])
        left = await agent.resources.semantic.all(agent.scope)
        found = await recalled(agent, "Nina, Turin, the bakery")
        prompt = await shown_to(agent, model, "Where does she live?")
        with pytest.raises(InputError, match="there is no entry"):
            await agent.forget_entry(row["id"])
    assert {one["text"] for one in preview["memories"]} == {TOLD, FACTS["bakery"], FACTS["Nina"]}
    assert (done["entity"], done["counts"]["facts"], done["counts"]["journal"]) == (row["id"], 2, 1)
    assert [one["text"] for one in left] == [FACTS["oaks"]]
    assert not [text for text in found if "Turin" in text or "bakery" in text]
    assert "Turin" not in prompt
    assert holding(tmp_path, ["turin", "mill street"]) == []


async def test_everything_that_recall_finds_is_listed_with_its_id(opening: Opening) -> None:
    async with opening(scripted(otherwise=unimportant)) as agent:
        await lived(agent, "It rained a little on Tuesday.", OPENS)
        hits = await agent.recall("Did it rain on Tuesday?")
        listed: dict[str, Any] = {row["id"]: row for row in await agent.everything()}
    assert hits
    assert {hit["id"] for hit in hits} <= listed.keys()
    assert {row["consolidation"] for row in listed.values()} == {"below_threshold"}


@dreamless
def unimportant(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
    if tools == ["Scores"]:
        return scored(messages, importance=1)
    return AIMessage("Noted.")


async def test_who_is_called_by_a_number_goes_before_ids_that_begin_with_it(
    tmp_path: Path, clock: Clock
) -> None:
    number = "491701234567"
    async with opened(tmp_path, scripted(otherwise=answers), clock) as agent:
        for id_, text in ((f"{number}-1", "Hello there"), ("q7", "My code is 4711.")):
            await agent.ainvoke(said(text, sender=number, id=id_))
        assert (await agent.forget(number))["entity"] == number
        assert await recalled(agent, "code 4711") == []
