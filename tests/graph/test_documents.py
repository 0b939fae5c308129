"""What an agent knows and did, as documents: pages of lists, and details with provenance."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from graph import documents
from graph.api import AsyncAgent
from graph.documents import MemoryFilter, Paging
from graph.server import routes
from graph.use_cases import overview, status
from memory import audit, journal, night
from memory.errors import NotFoundError
from memory.models.offline.model import OfflineChatModel
from tests.support.agents import night_model, opened, said
from tests.support.clock import Clock
from tests.support.scripted import scripted

PARIS, OSLO, BERGEN = "I live in Paris", "I live in Oslo", "I live in Bergen"


@pytest.fixture
async def agent(tmp_path: Path, clock: Clock) -> AsyncIterator[AsyncAgent]:
    """Ada said where she lives, a night made a fact of it, and she mended it twice."""
    async with opened(tmp_path, scripted("Noted.", otherwise=night_model), clock) as handle:
        await handle.ainvoke(said(PARIS))
        clock.advance(hours=12)
        await handle.sleep()
        clock.advance(days=1)
        await handle.post({"text": "Are you there?", "sender": "Ben", "id": "waits"})
        yield handle


@pytest.fixture
async def living(tmp_path: Path, clock: Clock) -> AsyncIterator[AsyncAgent]:
    async with opened(tmp_path, OfflineChatModel(), clock) as handle:
        await handle.ainvoke(said(PARIS))
        clock.advance(hours=12)
        await handle.sleep()
        clock.advance(days=1)
        yield handle


async def mended(agent: AsyncAgent, clock: Clock) -> list[str]:
    """Ids of the first fact and of its two corrections."""
    [fact] = await agent.resources.semantic.all(agent.scope)
    ids = [fact["id"]]
    for text in (OSLO, BERGEN):
        clock.advance(hours=1)
        ids.append((await agent.correct(ids[-1], text, "Ada"))["id"])
    return ids


async def test_a_fact_leads_to_the_words_and_to_what_replaced_it(
    agent: AsyncAgent, clock: Clock
) -> None:
    first, second, third = await mended(agent, clock)
    old = await documents.fact_detail(agent.context, first)
    assert [entry["content"] for entry in old.sources] == [PARIS]
    assert old.events == old.sources[0]["sources"]
    assert [fact["id"] for fact in old.replaced_by] == [second, third]
    assert [touch.kind for touch in old.nights] == ["add_fact", "settle_fact"]
    assert [relation.text for relation in old.links] == [PARIS]
    new = await documents.memory_detail(agent.context, third)
    assert [fact["id"] for fact in new.replaced] == [first, second]
    assert (new.replaced_by, new.nights, new.gone) == ([], [], [])
    words = await documents.memory_detail(agent.context, old.sources[0]["id"])
    assert [fact["id"] for fact in words.made] == [first]
    assert {touch.night for touch in words.nights} == {old.nights[0].night}


async def test_memories_are_listed_by_page_and_filtered(agent: AsyncAgent, clock: Clock) -> None:
    first, second, third = await mended(agent, clock)

    async def ids(limit: int = 50, offset: int = 0, **wanted: object) -> list[str]:
        chosen = MemoryFilter(**wanted)  # type: ignore[arg-type]
        page = await documents.memory_page(agent.context, chosen, Paging(limit, offset))
        return [line.id for line in page.items]

    facts = await ids(kind="fact", sort="learned")
    assert facts == [third, second, first]
    assert await ids(kind="fact", holds=True) == [third]
    assert await ids(kind="fact", holds=False, query="oslo") == [second]
    assert await ids(1, 1, kind="fact", sort="learned") == [second]
    assert len(await ids(kind="entry", person="ada")) == len(await ids(kind="entry")) == 3
    page = await documents.memory_page(agent.context, MemoryFilter(), Paging(4, 4))
    assert (page.total, len(page.items)) == (6, 2)


async def test_people_nights_ticks_events_and_the_log(agent: AsyncAgent, clock: Clock) -> None:
    context = agent.context
    await mended(agent, clock)
    [ada] = (await documents.people_page(context, "AD")).items
    person = await documents.person_detail(context, ada.name)
    assert person.profile["id"] == ada.id
    assert person.memories.total == 6
    [night] = (await documents.night_page(context, "complete")).items
    assert (await documents.night_page(context, "undone")).items == []
    [tick] = (await documents.tick_page(context)).items
    assert (await documents.tick_detail(context, tick["tick"])).report == tick
    served: Any = SimpleNamespace(context=context)
    [event] = (await routes.list_events(served, Paging())).items
    assert (event.item["event"]["id"], event.set_aside) == ("waits", False)
    everything = await documents.log_page(context)
    corrections = await documents.log_page(context, Paging(1), what="fact_corrected")
    assert (corrections.total, corrections.items[0]) == (2, everything.items[0])
    since = datetime.fromisoformat(night["started"]) + timedelta(seconds=1)
    assert everything.total > (await documents.log_page(context, since=since)).total
    days = await routes.list_journal(served, Paging(2, 1))
    assert (days.total, [entry["content"] for entry in days.items][1]) == (3, PARIS)


async def test_ticks_of_its_own_accord_are_kept_without_their_checkpoints(
    living: AsyncAgent, clock: Clock
) -> None:
    await living.ainvoke(said("Add a goal: paint the boat before June."))
    for _ in range(2):
        clock.advance(hours=1)
        await living.ainvoke({"request": "tick"})
    context = living.context
    before = await documents.tick_page(context)
    saver: Any = context.graph.checkpointer
    await saver.adelete_thread(context.scope.thread)
    after = await documents.tick_page(context)
    assert after == before
    own = [tick["tick"] for tick in after.items if tick["event_id"] is None]
    assert len(own) == 2
    assert (await documents.tick_detail(context, own[0])).report == after.items[0]


async def test_the_log_is_read_by_page_and_by_tick(living: AsyncAgent, clock: Clock) -> None:
    clock.advance(days=1)
    await living.ainvoke(said(OSLO))
    context = living.context
    everything = (await audit.read(living.store, living.scope))[::-1]
    assert len({entry["at"][:10] for entry in everything}) > 1
    pages = [
        await documents.log_page(context, paging=Paging(2, offset))
        for offset in range(0, len(everything), 2)
    ]
    assert [entry for page in pages for entry in page.items] == everything
    assert {page.total for page in pages} == {len(everything)}
    for number in {entry["tick"] for entry in everything if entry["tick"] is not None}:
        own = [entry for entry in everything[::-1] if entry["tick"] == number]
        assert await audit.of_tick(living.store, living.scope, number) == own
    edge = datetime.fromisoformat(everything[1]["at"])
    early = await documents.log_page(context, until=edge)
    assert early.items == [one for one in everything if one["at"] < everything[1]["at"]]


async def test_a_page_of_nights_reads_the_plans_of_its_nights_alone(
    living: AsyncAgent, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await living.ainvoke(said(OSLO))
    clock.advance(hours=12)
    await living.sleep()
    newest = (await night.records(living.store, living.scope))[-1]["id"]
    read: list[str] = []
    plans_of = night.plans_of

    async def noted(*args: Any) -> Any:
        read.append(args[2])
        return await plans_of(*args)

    monkeypatch.setattr(night, "plans_of", noted)
    page = await documents.night_page(living.context, paging=Paging(1))
    assert ([one["id"] for one in page.items], page.total) == ([newest], 2)
    assert read == [newest]


async def test_the_overview_is_the_status_without_what_takes_long(
    agent: AsyncAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole: Any = await status(agent.context)

    async def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("the whole journal was read")

    monkeypatch.setattr(journal, "newest", never)
    short = await overview(agent.context)
    assert {**whole["memory"], "links": None} == {**short["memory"], "links": None}
    rest = {key: value for key, value in whole.items() if key != "cumulative_importance"}
    assert {**rest, "memory": None} == {**short, "memory": None}


async def test_an_unknown_record_is_not_found(agent: AsyncAgent) -> None:
    context = agent.context
    for asked in (
        documents.memory_detail(context, "nothing"),
        documents.entry_detail(context, "event_20260101_x"),
        documents.person_detail(context, "Zoe"),
        documents.tick_detail(context, 99),
        routes.show_question(cast(Any, SimpleNamespace(context=context)), "q"),
    ):
        with pytest.raises(NotFoundError):
            await asked
