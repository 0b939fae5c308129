"""People have profiles and pages after a night, and an owner is told what changed and asked."""

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from graph.api import AsyncAgent
from graph.use_cases import briefing, new_briefing, status
from memory import pages
from memory.entities import entities
from memory.night import lines_of
from memory.records.profiles import EntityProfile
from memory.records.records import Fact
from memory.settings import Settings
from tests.support.agents import Opening, model_of, opened, result_of, said
from tests.support.clock import Clock
from tests.support.dreamers import SATURDAY, SETTINGS, answer, day, whole
from tests.support.scripted import ScriptedChatModel, call, calls, scripted

CLAIM = ("Ada", "Lila is not allergic to strawberries.")
VIENNA = SETTINGS.model_copy(update={"time_zone": "Europe/Vienna"})
Lived = tuple[Path, datetime]
_PAIR = re.compile(r"- \[(\w{8})\] .*\n  or \[(\w{8})\] ")


def lively(settling: str = "YES") -> ScriptedChatModel:
    """A model for days and nights; told `settling`, it settles the first contradiction shown."""

    def answered(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        last = str(messages[-1].text)
        pairs = _PAIR.findall("\n".join(str(one.text) for one in messages))
        if settling in last and pairs and not isinstance(messages[-1], ToolMessage):
            holds, falls = pairs[-1]
            return call("settle_dispute", holds=holds, falls=falls)
        return answer(messages, tools)

    return scripted(otherwise=answered)


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    """A folder with `agent`, who has lived a day, and `rested`, whose night has passed as well."""
    folder, clock = tmp_path_factory.mktemp("lived"), Clock()

    async def live() -> None:
        async with opened(folder / "agent", lively(), clock, settings=VIENNA) as agent:
            await day(agent, clock, [*SATURDAY, CLAIM])
        shutil.copytree(folder / "agent", folder / "rested")
        async with opened(folder / "rested", lively(), clock, settings=VIENNA) as agent:
            await agent.sleep()

    asyncio.run(live())
    return folder, clock.now


@asynccontextmanager
async def living(lived: Lived, name: str, data: Path, clock: Clock) -> AsyncIterator[AsyncAgent]:
    clock.set(lived[1])
    shutil.copytree(lived[0] / name, data)
    async with opened(data, lively(), clock, settings=VIENNA) as handle:
        yield handle


@pytest.fixture
async def agent(lived: Lived, data: Path, clock: Clock) -> AsyncIterator[AsyncAgent]:
    async with living(lived, "agent", data, clock) as handle:
        yield handle


@pytest.fixture
async def rested(lived: Lived, data: Path, clock: Clock) -> AsyncIterator[AsyncAgent]:
    async with living(lived, "rested", data, clock) as handle:
        yield handle


async def profile(agent: AsyncAgent, name: str) -> EntityProfile:
    everyone = await entities.everyone(agent.store, agent.scope)
    return next(one for one in everyone if one["name"] == name)


async def page(agent: AsyncAgent, name: str) -> list[str]:
    shown = await pages.shown(
        agent.store, agent.resources.semantic, agent.scope, [await profile(agent, name)]
    )
    return [line.text for one in shown for line in one.lines]


async def test_people_have_attributes_and_a_page_after_their_first_night(agent: AsyncAgent) -> None:
    assert (await profile(agent, "Ada"))["attributes"] == {}
    await agent.sleep()
    ada = await profile(agent, "Ada")
    (home,) = ada["attributes"].values()
    facts = await agent.resources.semantic.by_op(agent.scope, home["evidence"])
    assert [fact["text"] for fact in facts.values()] == ["I live in Bergen with my two cats."]
    assert sorted(await page(agent, "Ada")) == [
        "I live in Bergen with my two cats.",
        "Lila is not allergic to strawberries.",
        "Note: Ben built a greenhouse.",
    ]


async def test_what_a_fact_on_a_page_superseded_is_told_beside_it(
    rested: AsyncAgent, clock: Clock
) -> None:
    await day(rested, clock, [("Ben", "The glass arrives on Monday.")], first=50)
    await rested.sleep()
    (old,) = [
        one
        for one in await rested.resources.semantic.all(rested.scope)
        if one["text"] == "The glass arrives on Friday."
    ]
    assert old["invalid_at"]
    # The conversation no longer shows it.
    long_ago = {"source_events": ["long-ago"]}
    await rested.resources.semantic.update(rested.scope, old["id"], long_ago)
    await rested.ainvoke(said("When does the glass arrive?", "Ben"))
    told = model_of(rested).calls[-1].text
    assert "The glass arrives on Monday." in told.partition("<pages>")[2].partition("</pages>")[0]
    assert "(until Mon 2026-03-02: The glass arrives on Friday.)" in told


@pytest.mark.parametrize(
    ("value", "page_tokens", "left"),
    [
        ("Bergen", 600, True),
        ("I live in Bergen without any cats", 600, True),
        ("Ada: I live in Bergen, with my two cats", 600, False),
        ("Ada: I live in Bergen, with my two cats", 0, True),
    ],
)
async def test_a_line_that_the_prompt_shows_stands_for_its_fact_if_it_says_the_whole(
    opening: Opening, clock: Clock, value: str, page_tokens: int, left: bool
) -> None:
    settings = VIENNA.model_copy(update={"page_tokens": page_tokens, "owners": ["Ada"]})
    async with opening(lively(), settings=settings) as agent:
        await day(agent, clock, SATURDAY)
        await agent.sleep()
        await shows_a_part(agent, value)
        await agent.ainvoke(said("Where do I live with cats?", "Ada"))
        told = model_of(agent).calls[-1].text
    assert (f"home: {value}" in told.partition("<pages>")[2]) is (page_tokens > 0)
    remembered = told.partition("<semantic_memories>")[2].partition("</semantic_memories>")[0]
    assert ("I live in Bergen with my two cats." in remembered) is left


async def shows_a_part(agent: AsyncAgent, value: str) -> None:
    """The page of Ada is one line, which the conversation no longer shows."""
    ada, scope = await profile(agent, "Ada"), agent.scope
    ada["attributes"]["home"]["value"] = value
    evidence = ada["attributes"]["home"]["evidence"]
    page = {"id": ada["id"], "lines": [{"attribute": "home", "facts": evidence}]}
    await agent.store.aput(scope.namespace(entities.ENTITIES), ada["id"], dict(ada))
    await agent.store.aput(scope.namespace(pages.PAGES), ada["id"], page)
    (fact,) = (await agent.resources.semantic.by_op(scope, evidence)).values()
    await agent.resources.semantic.update(scope, fact["id"], {"source_events": ["long-ago"]})


async def test_an_owner_is_told_an_attribute_once_and_a_stranger_not_at_all(
    tmp_path: Path, clock: Clock
) -> None:
    owned = SETTINGS.model_copy(update={"owners": ["Ada"]})
    async with opened(tmp_path, lively(), clock, settings=owned) as agent:
        await day(agent, clock, SATURDAY)
        await agent.sleep()
        for sender, shown in (("Ada", True), ("Mallory", False)):
            await agent.ainvoke(said("Does Ada live in Bergen with two cats?", sender))
            told = model_of(agent).calls[-1].text
            assert ("What holds now:\nAda\n- [" in told) is shown
            assert told.partition("<pages>")[2].count("I live in Bergen") == shown
            assert "home: I live in Bergen" not in told


async def test_what_was_corrected_by_day_is_no_longer_shown_of_a_person(rested: AsyncAgent) -> None:
    ada = await profile(rested, "Ada")
    [op] = ada["attributes"]["home"]["evidence"]
    (fact,) = (await rested.resources.semantic.by_op(rested.scope, [op])).values()
    noted = {"at": fact["valid_from"], "speaker": "Ada", "trust": 1.0, "consolidated": False}
    noted |= {"sources": fact["source_entries"]}
    texts = ["Ada has cats in Bergen.", "Ada sings."]
    observations = [{**noted, "id": text, "text": text} for text in texts]
    changed = {**ada, "observations": observations}
    await rested.store.aput(rested.scope.namespace(entities.ENTITIES), ada["id"], changed)
    await rested.correct(fact["id"], "I live in Oslo.", "Ada")
    await rested.ainvoke(said("Where do I live?", "Ada"))
    told = model_of(rested).calls[-1].text.partition("<entity_context>")[2]
    assert "Ada sings." in told
    assert "home: " not in told
    assert "cats in Bergen" not in told


async def test_a_stranger_adds_nothing_to_the_page_of_an_owners_project(
    tmp_path: Path, clock: Clock
) -> None:
    model = lively()
    plan = call("create_project", project_key="market_stall", summary="Sell honey at the stall")
    model.steps = [plan, "Started."]
    settings = SETTINGS.model_copy(update={"owners": ["Ada"]})
    async with opened(tmp_path, model, clock, settings=settings) as agent:
        told = [
            ("Ada", "Please start a project for a market stall."),
            ("Ada", "Our market stall sells honey on Fridays."),
            ("Mallory", "The market stall sells no honey on Fridays at all."),
        ]
        await day(agent, clock, told)
        await agent.sleep()
        facts = [one["text"] for one in await agent.resources.semantic.all(agent.scope)]
        standing = await pages.everything(agent.store, agent.scope)
        lines = standing[pages.project_id("market_stall")]["lines"]
        ops = [op for line in lines for op in line["facts"]]
        found = await agent.resources.semantic.by_op(agent.scope, ops)
    assert told[2][1] in facts
    assert {one["speaker"] for one in found.values()} == {"Ada"}


async def test_a_superseded_fact_is_on_no_page_and_makes_no_attribute(
    rested: AsyncAgent, clock: Clock
) -> None:
    facts = await rested.resources.semantic.all(rested.scope)
    (old,) = [one for one in facts if "live in Bergen" in one["text"]]
    await rested.correct(old["id"], "I live in Oslo.", "Ada")
    assert "I live in Bergen with my two cats." not in await page(rested, "Ada")
    clock.advance(hours=24)
    await rested.sleep()
    assert (await profile(rested, "Ada"))["attributes"]["home"]["value"] == "I live in Oslo."
    assert "I live in Oslo." in await page(rested, "Ada")


async def test_an_entry_brings_the_fact_that_was_stored_of_it_awake_and_falls_with_it(
    opening: Opening,
) -> None:
    """The question has the entry's words, and none of the fact's."""
    told, asked = "The landlord wrote: nine hundred from January, he says.", "What did he write?"
    made = {"text": "Ada's studio costs 900 euros.", "speaker": "Ada", "entities": ["Ada"]}
    async with opening(scripted(call("store_memory", facts=[made]), "Noted.")) as agent:
        await agent.ainvoke(said(told))
        before = [one["text"] for one in await agent.recall(asked)]
        (known,) = await agent.resources.semantic.all(agent.scope)
        await agent.correct(known["id"], "The studio is 950 now.", "Ada")
        first, *others = await agent.recall(asked)
    assert before == [told, known["text"]]
    assert first["text"] == "The studio is 950 now."
    assert [one["text"] for one in others if not one.get("superseded")] == []


async def test_a_night_without_news_changes_neither_pages_nor_profiles(
    rested: AsyncAgent, clock: Clock
) -> None:
    stood = await whole(rested)
    for number in range(2):
        clock.advance(hours=24)
        heard = said("Trivial: hm.", "Ben", id=f"hm-{number}", addressed=False)
        await rested.ainvoke(heard)
        slept = await rested.sleep()
        kinds = {one["kind"] for one in slept["operations"]}
        assert kinds <= {"score_entry", "mark_entry", "prune_entry"}
    after = await whole(rested)
    kept = [key for key in stood if key.startswith(("pages", "entities"))]
    assert {key: after[key] for key in kept} == {key: stood[key] for key in kept}


async def test_forgetting_erases_lines_and_attributes_with_their_facts(rested: AsyncAgent) -> None:
    facts = await rested.resources.semantic.all(rested.scope)
    (home,) = [one for one in facts if "live in Bergen" in one["text"]]
    await rested.forget_fact(home["id"])
    assert (await profile(rested, "Ada"))["attributes"] == {}
    assert await page(rested, "Ada") == [
        "Lila is not allergic to strawberries.",
        "Note: Ben built a greenhouse.",
    ]
    await rested.forget("Lila")
    kept = {key: value for key, value in (await whole(rested)).items() if key.startswith("pages")}
    gone = {one["op"] for one in facts if "Lila" in one["text"] or one is home}
    assert kept
    assert not any(op in json.dumps(kept) for op in gone)


async def test_a_briefing_tells_what_changed_and_asks_what_contradicts(
    agent: AsyncAgent, clock: Clock
) -> None:
    assert await briefing(agent.context) is None
    clock.advance(minutes=1)
    await agent.ainvoke(said("The deposit is due on 6 March 2026.", "Ben"))
    report = (await agent.ainvoke({"request": "sleep"}))["report"]
    told = report["briefing"]
    assert told == await briefing(agent.context)
    assert told["night"] == report["night"]["id"]
    (asked,) = told["questions"]
    assert asked["text"] == (
        'Ada says: "Lila is not allergic to strawberries." True? '
        'Ben says: "My sister Lila is allergic to strawberries."'
    )
    assert told["deadlines"] == ["Fri 2026-03-06: The deposit is due on 6 March 2026."]
    assert told["changed"][0].endswith("new facts.")
    words = " ".join(line for _, lines in lines_of(told) for line in lines).split()
    assert len(words) <= 150


async def test_a_briefing_tells_what_was_corrected_since_the_night(
    opening: Opening, clock: Clock
) -> None:
    async with opening(lively(), settings=VIENNA) as agent:
        await day(agent, clock, [("Ben", "The letter is due on 4 March 2026.")])
        await agent.sleep()
        (old,) = await agent.resources.semantic.all(agent.scope)
        await agent.correct(old["id"], "The letter is due on 5 March 2026.", "Ben")
        told = await briefing(agent.context)
    assert told is not None
    assert told["changed"][1:] == ["The letter is due on 5 March 2026."]
    assert [one.partition(": ")[2] for one in told["deadlines"]] == told["changed"][1:]


async def test_a_chat_shows_a_briefing_once_a_night(agent: AsyncAgent) -> None:
    assert await new_briefing(agent.context) is None
    await agent.sleep()
    assert await new_briefing(agent.context) is not None
    assert await new_briefing(agent.context) is None
    assert (await status(agent.context))["mode"] == "sleep"


@pytest.mark.parametrize("page_tokens", [1_200, 60])
async def test_what_contradicts_is_told_an_owner_once(
    opening: Opening, clock: Clock, page_tokens: int
) -> None:
    settings = SETTINGS.model_copy(update={"owners": ["Ben"], "page_tokens": page_tokens})
    async with opening(lively(), settings=settings) as agent:
        await day(agent, clock, [*SATURDAY, CLAIM])
        await agent.sleep()
        for fact in await agent.resources.semantic.all(agent.scope):
            # The conversation no longer shows it.
            long_ago = {"source_events": [f"before-{fact['id']}"]}
            await agent.resources.semantic.update(agent.scope, fact["id"], long_ago)
        await agent.ainvoke(said("Is Lila allergic to strawberries?", "Ben"))
        told = model_of(agent).calls[-1].text.partition("<pages>")[2]
    assert ("call settle_dispute" in told) is (page_tokens > 100)
    assert told.count(CLAIM[1]) == 1
    assert told.count("My sister Lila is allergic to strawberries.") == 1


@pytest.mark.parametrize("who", ["local", "Ada"])
async def test_only_an_owner_settles_a_contradiction(
    rested: AsyncAgent, clock: Clock, who: str
) -> None:
    clock.advance(hours=8)
    await rested.ainvoke(said("YES, she is not.", who))
    told = [str(one.text) for one in model_of(rested).calls[0].messages]
    facts = {one["text"]: one for one in await rested.resources.semantic.all(rested.scope)}
    allergic = facts["My sister Lila is allergic to strawberries."]
    not_allergic = facts["Lila is not allergic to strawberries."]
    if who != "local":
        assert "call settle_dispute" not in "\n".join(told)
        assert allergic["invalid_at"] is None
        return
    assert allergic["superseded_by"] == not_allergic["id"]
    assert await _former(rested, not_allergic) == []
    assert not not_allergic.get("disputed")
    found = await briefing(rested.context)
    assert found is not None
    assert found["questions"] == []


async def _former(agent: AsyncAgent, fact: Fact) -> list[str]:
    found = await agent.recall("Is Lila allergic to strawberries?")
    return [
        one["text"] for hit in found if hit["id"] == fact["id"] for one in hit.get("earlier", ())
    ]


@pytest.mark.parametrize(
    ("said_so", "told", "is_meant"),
    [
        ("{text}", "{text}", True),
        ("\u201c{text}.\u201d", "{text}", True),
        ("[{id}] {text}.", "- [{id}] {text} (Ada, Sun 2026-03-01, in doubt)", True),
        ("{text}. (Ada, Sun 2026-03-01)", "{text} (2026-03-01)", True),
        ("{who}: {text}.", 'Ada says: "{text}."', True),
        ("[{id}, 12345678] {text}", "{text}", True),
        ("[12345678] {text}.", "{text}", False),
        ("Mallory: {text}.", "{text}", False),
        ("{text} in jam", "{text}", False),
    ],
)
async def test_a_contradiction_on_no_page_is_settled_by_its_texts(
    rested: AsyncAgent, clock: Clock, said_so: str, told: str, *, is_meant: bool
) -> None:
    await rested.store.adelete(rested.scope.namespace(pages.PAGES), pages.DISPUTES)
    clock.advance(hours=8)
    text = "My sister Lila is allergic to strawberries"
    known = {one["text"]: one for one in await rested.resources.semantic.all(rested.scope)}
    fact = known[f"{text}."]
    holds = said_so.format(text=text, id=fact["id"][:8], who=fact["speaker"])
    falls = told.format(text=CLAIM[1].strip("."), id=known[CLAIM[1]]["id"][:8])
    model_of(rested).otherwise = lambda messages, tools: (
        "Settled."
        if isinstance(messages[-1], ToolMessage)
        else call("settle_dispute", holds=holds, falls=falls)
    )
    await rested.ainvoke(said("She is allergic.", "local"))
    facts = {one["text"]: one for one in await rested.resources.semantic.all(rested.scope)}
    heir = facts[f"{text}."]["id"] if is_meant else None
    assert facts[CLAIM[1]]["superseded_by"] == heir
    assert bool(facts[f"{text}."].get("disputed")) is not is_meant


async def test_someone_else_cannot_call_the_tool(opening: Opening) -> None:
    rude = scripted(call("settle_dispute", holds="a" * 8, falls="b" * 8), otherwise="Well.")
    async with opening(rude, settings=Settings()) as agent:
        await agent.ainvoke(said("It is settled.", "Mallory"))
        answered = result_of(rude.calls[-1].messages[-1])
    assert "not an owner" in answered["error"]


async def test_ids_and_inventions_are_told_to_the_model_once(
    opening: Opening, clock: Clock
) -> None:
    asked: list[str] = []

    def answered(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        if tools != ["Attributes"]:
            made: Any = answer(messages, tools)
            if isinstance(made, str):
                return made
            facts = made.tool_calls[0]["args"].get("facts", ()) if "store_memory" in tools else ()
            for fact in facts:
                fact["entities"] = ["Ada"]
            return made  # type: ignore[no-any-return]
        asked.append(str(messages[-1].text))
        lines = str(messages[1].text).splitlines()
        told = [line for word in ("Bergen", "walnuts") for line in lines if word in line]
        number, other = (line[1 : line.index("]")] for line in (told[0], told[-1]))
        home = {"entity": "[E1]", "name": "home", "evidence": [f"#{number}"]}
        if len(asked) == 1:
            lost = {**home, "value": "Lives in Paris since 1999."}
            cats = {**home, "name": "cats", "value": "Has two cats.", "evidence": ["99"]}
            nuts = {**home, "name": "nuts", "value": "Ada eats no walnuts.", "evidence": [other]}
            return calls(("Attributes", {"attributes": [lost, cats, nuts]}))
        return calls(("Attributes", {"attributes": [{**home, "value": "Lives in Bergen."}]}))

    async with opening(scripted(otherwise=answered), settings=SETTINGS) as agent:
        said = [("Ada", "I live in Bergen with my two cats."), ("Ben", "Ada eats no walnuts.")]
        await day(agent, clock, said)
        slept: Any = await agent.sleep()
        ada = await profile(agent, "Ada")
    assert len(asked) == 2
    assert "its lines do not say 1999" in asked[1]
    assert "no evidence among the lines shown" in asked[1]
    assert "nuts" not in asked[1]  # Only others say so: that cannot be mended.
    assert "nuts (Ada eats no walnuts.): only others say so of Ada" in slept["refused"]
    assert {name: one["value"] for name, one in ada["attributes"].items()} == {
        "home": "Lives in Bergen."
    }
    assert not [why for why in slept["refused"] if "1999" in why]
    assert slept["complete"]
