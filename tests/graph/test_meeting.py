"""People through real ticks and nights: what is noticed of them, and how they come to stand."""

from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage

from graph.api import AsyncAgent
from memory.entities import entities
from memory.errors import ModelError
from memory.night.record import plans_of
from memory.records.operations import observe_entity
from memory.records.profiles import EntityProfile, entity_id
from memory.settings import Settings
from tests.support.agents import EXTRACTING, Opening, entries, night_model, said
from tests.support.clock import Clock
from tests.support.night_memories import observation
from tests.support.scripted import RecordedCall, call, calls, scripted

TULIPS = call("update_entity_observation", entity="Bea", observation="Bea likes tulips.")


async def people(agent: AsyncAgent) -> dict[str, EntityProfile]:
    return {one["name"]: one for one in await entities.everyone(agent.store, agent.scope)}


def shown(made: RecordedCall) -> list[str]:
    said = [str(one.text) for one in made.messages if isinstance(one, HumanMessage)]
    return (
        said[-1].partition("<entity_context>\n")[2].partition("\n</entity_context>")[0].splitlines()
    )


async def test_an_observation_is_shown_to_later_ticks_and_after_a_restart(opening: Opening) -> None:
    model = scripted(TULIPS, "Noted.", "Tulips.")
    async with opening(model) as agent:
        await agent.ainvoke(said("My sister Bea likes tulips"))
        await agent.ainvoke(said("What does Bea like?"))
    line = "  Mon 2026-03-02 Ada said: Bea likes tulips."
    assert line not in shown(model.calls[0])
    assert line in shown(model.calls[2])
    again = scripted("Tulips.", "I do not know.")
    async with opening(again) as agent:
        await agent.ainvoke(said("And what does Bea like?"))
        await agent.ainvoke(said("What does Beatrice like?", "Carl"))
    assert line in shown(again.calls[0])
    assert line not in shown(again.calls[1])
    assert shown(again.calls[0])[1] == "- [stranger] Bea"


async def test_an_owner_who_writes_on_a_channel_is_shown_as_owner(opening: Opening) -> None:
    owned = Settings(owners=["local", "Irena"])
    noticed = call("update_entity_observation", entity="Irena", observation="Irena likes tulips.")
    model = scripted(noticed, "Yes.", "Yes.", "Yes.")
    async with opening(model, settings=owned) as agent:
        await agent.ainvoke(said("I like tulips", "Irena", channel="slack"))
        await agent.ainvoke(said("Good morning", "Irena", channel="slack"))
        await agent.ainvoke(said("Does Irena like tulips?", "Ada", channel="slack"))
    assert [shown(one)[1] for one in model.calls[2:]] == ["- [owner] Irena"] * 2


async def test_daily_contact_makes_a_friend_whose_messages_weigh_more(
    opening: Opening, clock: Clock
) -> None:
    async with opening(scripted(otherwise=lambda *_: "Yes.")) as agent:
        for day in range(15):
            await agent.ainvoke(said(f"It rains on day {day}", id=f"e{day}"))
            await agent.ainvoke(said("Still", id=f"again{day}"))
            clock.advance(days=1)
        ada = (await people(agent))["Ada"]
        first = {one["sources"][0]: one["importance"] for one in await entries(agent)}
    assert (ada["relationship"]["state"], ada["relationship"]["interactions"]) == ("close", 30)
    assert [first[f"e{day}"] for day in range(15)] == [5] * 7 + [6] * 7 + [7]


async def test_neither_overheard_nor_automatic_senders_get_a_profile(opening: Opening) -> None:
    settings = Settings(assistants=["Robot"], permitted_senders=["Dan"])
    model = scripted("Hm.", "Hm.", "Hm.")
    async with opening(model, settings=settings) as agent:
        await agent.ainvoke(said("The gate opened", "system"))
        await agent.ainvoke(said("Who are you?", "Robot"))
        await agent.ainvoke(said("Nice day", "Carl", channel="garden", addressed=False))
        await agent.ainvoke(said("Nice day", "Dan", channel="garden", addressed=False))
        assert await people(agent) == {}


async def test_a_sender_gets_a_profile_only_when_answered(opening: Opening) -> None:
    model = scripted(ModelError("broken"), "At nine.")
    async with opening(model) as agent:
        await agent.ainvoke(said("When does the gate close?", id="e1"), raise_on_failure=False)
        assert await people(agent) == {}
        await agent.ainvoke(None)
        assert (await people(agent))["Ada"]["relationship"]["interactions"] == 1


async def test_the_name_of_somebody_known_by_an_alias_adds_to_a_texts_importance(
    opening: Opening, clock: Clock
) -> None:
    noted = observation(1, "bakes", at=clock().isoformat(), speaker="Ada", sources=["e0"])
    operation = observe_entity(
        entity_id("bea"), "Bea", noted, aliases=["Queen B."], kept=10, now=noted["at"], reason=""
    )
    texts = ["I saw Queen B. today", "I saw a queen today"]
    async with opening(scripted("Yes.", "No.")) as agent:
        puts = await entities.puts_after(agent.store, agent.scope, [operation])
        await agent.store.abatch(puts)
        for text in texts:
            await agent.ainvoke(said(text))
        heard = [said(text, channel="garden", addressed=False)["events"][0] for text in texts]
        await agent.ainvoke({"events": heard})
        found = [(one["content"], one["importance"]) for one in await entries(agent)]
    assert sorted(found) == sorted([(texts[0], 6), (texts[1], 5), (texts[0], 3), (texts[1], 2)])


def noticing(messages: list[BaseMessage], tools: list[str]) -> Any:
    """Journals two facts and notes one thing, then one more of each, in an extraction."""
    if tools == EXTRACTING:
        told = sum(message.type == "tool" for message in messages)
        wall = ("add_journal_entry", {"content": "The wall is blue."})
        gate = ("add_journal_entry", {"content": "The gate is red."})
        words = {"entity": "Ada", "observation": "Ada says many words."}
        more = {"entity": "Ada", "observation": "Ada numbers every message."}
        first = calls(wall, gate, ("update_entity_observation", words))
        roof = ("add_journal_entry", {"content": "The roof is green."})
        again = calls(
            roof, ("update_entity_observation", words), ("update_entity_observation", more)
        )
        return (first, again, call("noop"))[(told + 2) // 3]
    if not tools:
        return "They spoke."
    return night_model(messages, tools) if "Entries:" in str(messages[1].text) else "I see."


async def extracted(agent: AsyncAgent) -> tuple[list[str], list[str], EntityProfile]:
    ada = (await people(agent))["Ada"]
    notes = [one["content"] for one in await entries(agent) if one["id"].startswith("note_")]
    return [one["text"] for one in ada["observations"]], notes, ada


NOTICED = ["Ada says many words.", "Ada numbers every message."]
NOTES = ["The gate is red.", "The roof is green.", "The wall is blue."]


@pytest.mark.parametrize("asleep", [True, False], ids=["asleep", "in an emergency"])
async def test_an_extraction_notes_and_journals_each_once(opening: Opening, asleep: bool) -> None:
    settings = Settings(max_context_tokens=2_000, compact_preserve_window=4)
    async with opening(scripted(otherwise=noticing), settings=settings) as agent:
        for number in range(9 if asleep else 12):
            await agent.ainvoke(said(f"Message {number}: " + "word " * 126, id=f"m{number}"))
        if asleep:
            assert (await extracted(agent))[0] == []
            night = (await agent.ainvoke({"request": "sleep"}))["report"]["night"]
            plans = await plans_of(agent.store, agent.scope, night["id"])
            planned = [one["id"] for plan in plans for one in plan["operations"]]
            assert planned == [one["id"] for one in night["operations"]]
        texts, notes, ada = await extracted(agent)
    assert sorted(texts) == sorted(NOTICED)
    assert sorted(notes) == NOTES
    assert {one["speaker"] for one in ada["observations"]} == {"Ada"}
