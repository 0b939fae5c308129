"""A fact is in doubt while what it rests on fell or is contradicted, and no longer."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from graph.api import AsyncAgent
from graph.use_cases import briefing
from memory import pages
from memory.entities import entities
from memory.errors import ConflictError
from memory.operations import apply_operations
from memory.records import Operation, add_fact, change_fact, link_facts, supersede_fact
from memory.records.records import Fact
from tests.support.agents import model_of, opened, result_of, said
from tests.support.clock import Clock
from tests.support.dreamers import SETTINGS, answer, day
from tests.support.facts import draft
from tests.support.scripted import call, scripted

NOW = "2026-03-01T02:00:00+00:00"
TEXTS = {
    "rent": "The rent is 700 euros.",
    "other": "The rent is 800 euros.",
    "heating": "The heating is 60 euros.",
    "budget": "The budget is 900 euros, with the rent and the heating.",
}
DISPUTED = {"rent": {"disputed": ["other"]}, "other": {"disputed": ["rent"]}}
OWNED = SETTINGS.model_copy(update={"owners": ["Ada"]})
RELATED = [("tea is bad", "tea is good", "contradicts"), ("not bad", "tea is bad", "supersedes")]


def settles(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
    """Settle what an owner says: `SETTLE <holds> over <falls>!`, by operation ids or texts."""
    last = str(messages[-1].text)
    words = re.search(r"SETTLE (.+) over (.+?)!", last)
    if not words or isinstance(messages[-1], ToolMessage):
        return answer(messages, tools, RELATED)
    holds, falls = (TEXTS.get(one, f"The {one}.") for one in words.groups())
    return call("settle_dispute", holds=holds, falls=falls)


@pytest.fixture
async def agent(tmp_path: Path, clock: Clock) -> AsyncIterator[AsyncAgent]:
    async with opened(tmp_path, scripted(otherwise=settles), clock, settings=OWNED) as handle:
        yield handle


async def counted(agent: AsyncAgent, *behind: str, fell: Any = (), **marks: Any) -> None:
    """A budget that rests on the rent and the heating and is in doubt because of `behind`."""
    await changed(agent, [add_fact(draft(op, text), "told") for op, text in TEXTS.items()])
    facts = await known(agent)
    rests: dict[str, Any] = {"depends_on": ["rent", "heating"], "doubtful": [*behind]}
    made = [change_fact(facts[op], mark, [], "told") for op, mark in marks.items()]
    made += [supersede_fact(facts[op], by, NOW, [], "it rose") for op, by in fell]
    made += [link_facts("budget", op, "depends_on", NOW, "told") for op in rests["depends_on"]]
    await changed(agent, [*made, change_fact(facts["budget"], rests, [], "told")])
    page = pages.page_of_doubts((await known(agent)).values())
    assert page is not None
    await agent.store.aput(agent.scope.namespace(pages.PAGES), pages.DOUBTS, {**page})


async def changed(agent: AsyncAgent, operations: list[Operation]) -> None:
    semantic, scope = agent.resources.semantic, agent.scope
    await apply_operations(operations, store=agent.store, semantic=semantic, scope=scope)


async def known(agent: AsyncAgent) -> dict[str, Fact]:
    """All facts by operation id, but for how often they were recalled."""
    unread: Any = {"access_count": 0, "last_access": None}
    found = await agent.resources.semantic.all(agent.scope)
    return {one["op"]: {**one, **unread} for one in found}


async def doubts(agent: AsyncAgent) -> tuple[list[str], list[str]]:
    """What leaves the budget in doubt, and what an owner is asked about it."""
    asked = await pages.open_questions(agent.store, agent.resources.semantic, agent.scope)
    return list((await known(agent))["budget"].get("doubtful", ())), [
        behind["op"] for _, behind in asked.doubts
    ]


async def settle(agent: AsyncAgent, holds: str, falls: str) -> dict[str, Any]:
    """What the tool answers an owner who says which fact holds."""
    await agent.ainvoke(said(f"SETTLE {holds} over {falls}!", "Ada"))
    told: dict[str, Any] = result_of(model_of(agent).calls[-1].messages[-1])
    return told


@pytest.mark.parametrize("is_on_a_page", [True, False])
@pytest.mark.parametrize("fell", [[], [("rent", "other")]])
async def test_a_doubt_that_an_owner_settles_ends_nothing_that_holds(
    agent: AsyncAgent, fell: list[tuple[str, str]], is_on_a_page: bool
) -> None:
    await counted(agent, "rent", fell=fell, **DISPUTED)
    if not is_on_a_page:
        await agent.store.adelete(agent.scope.namespace(pages.PAGES), pages.DOUBTS)
    before = await known(agent)
    told = await settle(agent, "budget", "rent")
    assert ("  rests on [" in model_of(agent).calls[-1].text) is is_on_a_page
    assert ("no_longer_holds" in told) is bool(fell)
    after = await known(agent)
    assert await doubts(agent) == ([], [])
    assert after["budget"]["depends_on"] == ["heating"]
    assert {**after, "budget": {}} == {**before, "budget": {}}


async def test_what_a_doubtful_fact_rests_on_is_no_fact_that_contradicts_it(
    agent: AsyncAgent,
) -> None:
    await counted(agent, "rent", **DISPUTED)
    before = await known(agent)
    assert "rests on" in (await settle(agent, "rent", "budget"))["error"]
    assert await known(agent) == before


OTHERS: dict[str, Any] = {**DISPUTED, "rent": {"disputed": ["other", "heating"]}}
ITSELF: dict[str, Any] = {"rent": {"disputed": ["budget"]}, "budget": {"disputed": ["rent"]}}


@pytest.mark.parametrize(
    ("behind", "fell", "marks", "settled", "left"),
    [
        ("rent", [], DISPUTED, ("rent", "other"), []),
        ("rent", [], DISPUTED, ("other", "rent"), ["rent"]),
        ("rent", [], OTHERS, ("rent", "other"), ["rent"]),
        ("heating", [("heating", "other")], ITSELF, ("budget", "rent"), ["heating"]),
    ],
    ids=["for it", "against it", "another contradicts", "for what rests on it"],
)
async def test_a_doubt_ends_when_an_owner_settles_the_contradiction_behind_it(
    agent: AsyncAgent, behind: str, fell: Any, marks: Any, settled: Any, left: list[str]
) -> None:
    await counted(agent, behind, fell=fell, **marks)
    await settle(agent, *settled)
    assert await doubts(agent) == (left, left)


@pytest.mark.parametrize(("corrected", "left"), [("other", 0), ("rent", 1)])
async def test_a_doubt_ends_when_what_contradicted_is_corrected(
    agent: AsyncAgent, corrected: str, left: int
) -> None:
    marks = {**DISPUTED, "rent": {"disputed": ["heating", "other"]}}
    await counted(agent, "rent", fell=[("heating", "budget")], **marks)
    await agent.correct((await known(agent))[corrected]["id"], "The rent is 720 euros.", "Ada")
    assert await doubts(agent) == (["rent"] * left, ["rent"] * left)


@pytest.mark.parametrize("fell", [[], [("rent", "other")]])
async def test_a_doubt_ends_when_forgetting_leaves_what_it_rests_on_as_it_was(
    agent: AsyncAgent, fell: list[tuple[str, str]]
) -> None:
    await counted(agent, "rent", fell=fell, **({} if fell else DISPUTED))
    await agent.forget_fact((await known(agent))["other"]["id"])
    assert (await known(agent))["rent"]["invalid_at"] is None
    assert await doubts(agent) == ([], [])


@pytest.mark.parametrize(("forgotten", "left"), [("rent", "heating"), ("heating", "rent")])
async def test_of_two_doubts_the_other_one_is_asked_about_when_one_is_forgotten(
    agent: AsyncAgent, forgotten: str, left: str
) -> None:
    fell = [("rent", "other"), ("heating", "other")]
    await counted(agent, "rent", "heating", fell=fell)
    assert (await doubts(agent))[1] == ["heating"]
    await agent.forget_fact((await known(agent))[forgotten]["id"])
    assert await doubts(agent) == ([left], [left])


async def test_a_night_ends_a_doubt_whose_cause_is_gone_and_its_undo_restores_it(
    agent: AsyncAgent, clock: Clock
) -> None:
    await counted(agent, "rent", fell=[("other", "heating")], **DISPUTED)
    await day(agent, clock, [("Ada", "I live in Bergen with my two cats.")])
    before = await known(agent)
    await agent.sleep(dry_run=True)
    assert await known(agent) == before
    await agent.sleep()
    assert await doubts(agent) == ([], [])
    assert pages.DOUBTS not in await pages.everything(agent.store, agent.scope)
    await agent.undo_night("last")
    assert await known(agent) == before


async def test_a_briefing_says_of_nothing_contradicted_that_it_changed(
    agent: AsyncAgent, clock: Clock
) -> None:
    await day(agent, clock, [("Ada", "I live in Bergen with my two cats.")])
    await agent.sleep()
    for fell, asked in (([], 0), ([("rent", "other")], 1)):
        await counted(agent, "rent", fell=fell, **DISPUTED)
        told = await briefing(agent.context)
        assert told is not None
        assert len(told["questions"]) == asked


async def test_a_line_is_disputed_while_the_contradiction_is_open(
    agent: AsyncAgent, clock: Clock
) -> None:
    await day(agent, clock, [("Ben", "The tea is good."), ("Ben", "The mill is old.")])
    await agent.sleep()
    await day(agent, clock, [("Cora", "The tea is bad.")], first=10)
    await agent.sleep()
    assert await lines(agent) == {"The tea is good.": True, "The mill is old.": False}
    await day(agent, clock, [("Cora", "The tea is not bad.")], first=20)
    await agent.sleep()
    assert await lines(agent) == {"The tea is good.": False, "The mill is old.": False}


async def lines(agent: AsyncAgent) -> dict[str, bool]:
    """The lines of Ben's page, and whether they are shown as disputed."""
    people = await entities.everyone(agent.store, agent.scope)
    shown = await pages.shown(agent.store, agent.resources.semantic, agent.scope, people)
    return {line.text: line.disputed for page in shown if page.name == "Ben" for line in page.lines}


async def test_an_undo_is_refused_if_an_owner_has_ended_a_fact_by_what_the_night_made(
    agent: AsyncAgent, clock: Clock
) -> None:
    await day(agent, clock, [("Ben", "The tea is good.")])
    await agent.sleep()
    await day(agent, clock, [("Cora", "The tea is bad.")], first=10)
    await agent.sleep()
    assert (await settle(agent, "tea is bad", "tea is good"))["success"]
    before = await known(agent)
    with pytest.raises(ConflictError, match=r"the fact .The tea is bad\.. was changed since"):
        await agent.undo_night("last")
    assert await known(agent) == before
