"""A night killed at any point: every entry is consolidated once and no answer is paid for twice."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from graph.api.async_agent import AsyncAgent
from memory.events import inbox
from memory.journal.entries import PENDING
from memory.night import record as night
from memory.operations.apply import LINKS
from memory.storage.access import list_items
from tests.support.agents import entries
from tests.support.crash_worker import START, Job, Point, Points, running
from tests.support.kills import counts, kill_at_each, points, workers
from tests.support.scripted import logged_calls

HEARD = [
    {
        "id": f"e{n:02d}",
        "text": f"Ada grows bean number {n} on plot 7",
        "sender": "Ada",
        "at": START,
        "addressed": False,
    }
    for n in range(24)
]
SLEEP = {"request": "sleep"}
HELLO = {"events": [{"id": "hello", "text": "Good morning", "sender": "Ada", "at": START}]}
NEXT: dict[str, Any] = {"a new message": HELLO, "request: sleep": SLEEP, "no input": None}
SETTINGS = {
    "score_batch_size": 8,
    "consolidate_batch_size": 4,
    "dream_batch_size": 8,
    "night_calls_per_100": 100,
    "reflection_threshold": 10_000,
}
COMPACTING, DREAMING = 3 + 6, 3 + 1
"""Calls: batches to score and to consolidate; batches to dream of, and one for attributes."""
CALLS = COMPACTING + DREAMING
REQUESTED = 3
"""The write with which the request is kept; on a server the night itself has to be begun."""
BEGUN, ENDING = 13, 5
"""On a server: the write that begins a night, and how many come when it has ended."""
LATER = "2026-03-02T11:00:00+00:00"


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose agent has heard two dozen things."""
    data = tmp_path_factory.mktemp("night") / "data"
    job = Job(data=str(data), inputs=[{"events": HEARD}])
    assert len(workers().done(job)["reports"][0]["context_only"]) == len(HEARD)
    return data


@pytest.fixture
def job(evening: Path, tmp_path: Path) -> Job:
    data = tmp_path / "data"
    shutil.copytree(evening, data)
    return Job(data=str(data), inputs=[SLEEP], settings=SETTINGS)


async def test_an_undisturbed_night_makes_a_fact_of_each_entry(job: Job) -> None:
    assert (counts(job)["model"], counts(job)["fact"]) == (CALLS, len(HEARD))


@pytest.mark.parametrize(("plain", "calls"), [(False, {1, 4, 9, 12}), (True, {2, 7})])
async def test_killed_while_the_model_is_asked(job: Job, plain: bool, calls: set[int]) -> None:
    await killed_while_asked(replace(job, plain=plain), calls)


@pytest.mark.slow
@pytest.mark.parametrize("given", NEXT)
@pytest.mark.parametrize("plain", [False, True], ids=["", "on a server"])
async def test_killed_while_any_answer_is_awaited(job: Job, plain: bool, given: str) -> None:
    await killed_while_asked(replace(job, plain=plain), range(1, CALLS + 1), given)


async def killed_while_asked(job: Job, calls: Iterable[int], given: str | None = None) -> None:
    where = [Point("model", call, "before", hold=True) for call in calls]
    await kill_at_each(job, where, partial(all_is_there_once, repeated=1, given=given))


@pytest.mark.parametrize("plain", [False, True], ids=["", "on a server"])
async def test_killed_when_the_store_is_written(job: Job, plain: bool) -> None:
    """Every sixth write as a server runs it, and every sixth other one as a program does."""
    job = replace(job, plain=plain)
    where = points(job, "puts", first=3, part="1/6" if plain else "4/6")
    await kill_at_each(job, where, partial(all_is_there_once, repeated=0))


@pytest.mark.parametrize("plain", [False, True], ids=["", "on a server"])
async def test_killed_among_the_facts(job: Job, plain: bool) -> None:
    where = [Point("fact", 13), Point("facts", 1, "before"), Point("facts", 1)]
    await kill_at_each(replace(job, plain=plain), where, partial(all_is_there_once, repeated=0))


@pytest.mark.slow
@pytest.mark.parametrize("given", NEXT)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("plain", [False, True], ids=["", "on a server"])
async def test_killed_at_any_write(job: Job, plain: bool, when: str, given: str) -> None:
    job = replace(job, plain=plain)
    first, last = (BEGUN, ENDING) if plain else (REQUESTED, 1)
    where = points(job, "write", when=when, first=first, last=last)
    await kill_at_each(job, where, partial(all_is_there_once, repeated=1, given=given))


async def all_is_there_once(
    job: Job, point: Point, *, repeated: int, given: str | None = None
) -> None:
    """Run once more in this process: the night is complete and was paid for once.

    `given`: the next run's input; None: another one for each point.
    """
    given = given or list(NEXT)[point.nth % 3]
    job = replace(job, now=LATER)
    async with running(job, Points(job)) as (agent, run):
        ended = await night.unfinished(agent.store, agent.scope) is None
        report = (await run(NEXT[given]))["report"]
        await consolidated(agent)
    assert report["failures"] == []
    assert [tick["event_id"] for tick in report["ticks"]] == ["hello"] * ("message" in given)
    if not (ended and job.plain):  # a server's next run knows nothing of a night that had ended
        assert (report["night"]["complete"], report["night"]["held"]) == (True, [])
        operations = Counter(one["kind"] for one in report["night"]["operations"])
        settled = operations.pop("settle_fact", 0)
        of_ada = [operations.pop(kind, 0) for kind in ("add_entity", "change_entity", "write_page")]
        # A message may come before the attributes of Ada, or between them and her page.
        assert of_ada == [1, 1, 1] or ("message" in given and of_ada in ([0, 0, 0], [1, 1, 0]))
        each = ("score_entry", "add_fact", "link", "mark_entry")
        assert operations == dict.fromkeys(each, len(HEARD))
        assert settled == len(HEARD) or ("message" in given and settled < len(HEARD))
    batches = Counter(str(call) for call in shown(job))
    # A message ends the dreaming; what is left is the next night's.
    least = COMPACTING if "message" in given else CALLS
    assert least <= len(batches) <= CALLS
    assert sum(batches.values()) <= len(batches) + repeated


def shown(job: Job) -> list[tuple[str, str]]:
    """The calls of the night: what was asked for, and the beginning of the batch."""
    calls = logged_calls(job.log)
    of_a_night = ("Entries:", "<new_facts>", "<entities>")
    return [(",".join(c["tools"]), c["last"]) for c in calls if c["last"].startswith(of_a_night)]


async def consolidated(agent: AsyncAgent) -> None:
    """As many entries, each scored and made into one fact, linked both ways; one night, ended."""
    store, scope = agent.store, agent.scope
    journal = [one for one in await entries(agent) if one["sources"] != ["hello"]]
    facts = await agent.resources.semantic.all(scope)
    assert Counter(one["sources"][0] for one in journal) == Counter(one["id"] for one in HEARD)
    assert {(one["consolidation"], one["scoring_method"]) for one in journal} == {
        ("consolidated", "llm")
    }
    made_of = {fact["source_entries"][0]: fact["id"] for fact in facts}
    assert (len(facts), set(made_of)) == (len(HEARD), {one["id"] for one in journal})
    ends = await list_items(store, scope.namespace(LINKS))
    links = {item.key: item.value["linked_to"] for item in ends}
    assert links == {
        **{entry: [fact] for entry, fact in made_of.items()},
        **{fact: [entry] for entry, fact in made_of.items()},
    }
    ids = await night.all_ids(store, scope)
    record = await night.load(store, scope, ids[0])
    assert (len(ids), await night.unfinished(store, scope)) == (1, None)
    assert record is not None
    assert (record["complete"], record["applied"]) == (True, ["compacting", "dreaming"])
    waiting = await list_items(store, scope.namespace(PENDING))
    assert [item.key for item in waiting if not item.key.endswith("_hello")] == []
    state = (await agent.aget_state()).values
    assert await inbox.waiting(store, scope, state["handled"]) == []
