"""A tick that asks a person, killed at any point: the tool runs once, and never unasked."""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from graph.api import AsyncAgent
from memory import audit
from memory.events import approvals, inbox
from memory.records.tick import ParkedTick
from memory.storage.access import list_items
from tests.support.agents import entries
from tests.support.crash_worker import START, Job, Point, Points, Run, running
from tests.support.kills import kill_at_each, points, workers
from tests.support.scripted import logged_calls

LATER = "2026-03-02T11:00:00+00:00"
MOON = {"id": "e1", "text": "Launch to the moon", "sender": "Ada", "at": START}
MARS = {"id": "e2", "text": "Launch to Mars", "sender": "Ada", "at": START}
PLAN = {"id": "e0", "text": "Plan a launch", "sender": "Ada", "at": START}
AND_NOW = {"id": "e9", "text": "And now?", "sender": "Ada", "at": START}
TO_MARS = {"decision": "edit", "args": {"target": "Mars"}}
NEXT = ["a new message", "no input", "the answer again"]


@dataclass(frozen=True)
class Story:
    """What a process is told, and what has come of it in the end."""

    inputs: tuple[Any, ...]
    events: tuple[str, ...] = ("e1",)
    answer: Any = "yes"
    launched: tuple[str, ...] = ("the moon",)
    """In the order in which the questions are answered."""
    said: tuple[str, ...] = ("launched",)
    ticks: int = 1
    calls: int = 2
    calls_at_a_time: int = 1
    """Model calls at most between two questions: they are done again together."""

    @property
    def answers(self) -> list[int]:
        """The places of the inputs that answer a question."""
        return [at for at, one in enumerate(self.inputs) if "resume" in one or "decide" in one]


APPROVED = Story(({"events": [MOON]}, {"resume": "yes"}))
EDITED = replace(
    APPROVED, inputs=({"events": [MOON]}, {"resume": TO_MARS}), answer=TO_MARS, launched=("Mars",)
)
REFUSED = Story(({"events": [MOON]}, {"resume": "no"}), answer="no", launched=(), said=("refused",))
OWN = Story(
    ({"events": [PLAN]}, {"request": "tick"}, {"resume": "yes"}),
    events=("e0",),
    launched=("Venus",),
    said=("It is planned.", "launched"),
    ticks=2,
    calls=4,
    calls_at_a_time=2,
)
TWO = Story(
    ({"events": [MOON]}, {"events": [MARS]}, {"decide": [1, "yes"]}, {"decide": [0, "yes"]}),
    events=("e1", "e2"),
    launched=("Mars", "the moon"),
    said=("launched", "launched"),
    ticks=2,
    calls=4,
)
STORIES = {"approved": APPROVED, "edited": EDITED, "refused": REFUSED, "own": OWN, "two": TWO}


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(data=str(tmp_path / "data"))


def told(job: Job, story: Story, point: Point | None = None, **more: Any) -> Job:
    return replace(job, inputs=list(story.inputs), point=point, **more)


@pytest.mark.parametrize("name", STORIES)
async def test_an_undisturbed_story_has_this_end(job: Job, name: str) -> None:
    story = STORIES[name]
    assert workers().done(told(job, story))["counts"]["model"] == story.calls
    await ends(job, story, "no input")


@pytest.mark.parametrize("part", ["1/2", "2/2"])
async def test_killed_when_the_store_is_written(job: Job, part: str) -> None:
    job = told(job, APPROVED)
    where = points(job, "puts", part=part)
    opened = await kill_at_each(job, where, story_ends(APPROVED))
    # The tool is left open only by a death between the two writes around it.
    assert sum(opened) <= 1


@pytest.mark.parametrize("name", ["edited", "refused", "own", "two"])
async def test_killed_in_another_story(job: Job, name: str) -> None:
    job = told(job, STORIES[name])
    where = points(job, "puts", first=4, part="2/4")
    await kill_at_each(job, where, story_ends(STORIES[name]))


@pytest.mark.parametrize(
    ("when", "given"), [("before", "no input"), ("after", "a new message"), ("after", "no input")]
)
async def test_killed_inside_the_tool_it_is_not_run_again_and_the_model_is_told(
    job: Job, when: str, given: str
) -> None:
    workers().killed(told(job, APPROVED, Point("tool", 1, when)))
    assert launched(job) == ([] if when == "before" else ["the moon"])
    await ends(job, APPROVED, given, unknown=True)
    assert launched(job) == ([] if when == "before" else ["the moon"])


@pytest.mark.parametrize("given", NEXT[:2])
async def test_killed_in_the_model_call_that_follows(job: Job, given: str) -> None:
    workers().kill_at_hold(told(job, APPROVED, Point("model", 2, "before", hold=True)))
    await ends(job, APPROVED, given)


@pytest.mark.parametrize("plain", [False, True])
async def test_what_nobody_was_asked_about_is_not_run_again_either(job: Job, plain: bool) -> None:
    job = told(job, OWN, plain=plain, settings={"dangerous_requires_confirm": False})
    workers().killed(replace(job, point=Point("tool", 1, "after")))
    job = replace(job, now=LATER)
    async with running(job, Points(job)) as (_, run):
        report = (await run({"request": "tick"}))["report"]
    assert (launched(job), report["ticks"][-1]["reply"]) == (["Venus"], "nobody knows")


async def test_killed_on_a_server(job: Job) -> None:
    job = told(job, APPROVED, plain=True)
    where = points(job, "write", first=12, last=2, part="1/7")
    await kill_at_each(job, where, story_ends(APPROVED))


@pytest.mark.slow
@pytest.mark.parametrize("given", NEXT)
@pytest.mark.parametrize("when", ["before", "after"])
async def test_killed_at_any_write(job: Job, when: str, given: str) -> None:
    job = told(job, APPROVED)
    # Before the first write nothing is accepted.
    where = points(job, "write", when=when, first=2 if when == "before" else 1)
    opened = await kill_at_each(job, where, story_ends(APPROVED, given))
    assert sum(opened) == 1


@pytest.mark.slow
@pytest.mark.parametrize("given", NEXT)
async def test_killed_at_any_write_on_a_server(job: Job, given: str) -> None:
    job = told(job, APPROVED, plain=True)
    where = points(job, "write", first=4, last=2)
    await kill_at_each(job, where, story_ends(APPROVED, given))


@pytest.mark.slow
@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("name", [name for name in STORIES if name != "approved"])
async def test_killed_at_any_write_of_another_story(job: Job, name: str, plain: bool) -> None:
    job = told(job, STORIES[name], plain=plain)
    where = points(job, "write", first=5, last=2)
    await kill_at_each(job, where, story_ends(STORIES[name]))


def story_ends(story: Story, given: str | None = None) -> Callable[[Job, Point], Awaitable[bool]]:
    """Check how a story ends with this next input, or with another one for each point."""

    async def check(job: Job, point: Point) -> bool:
        return await ends(job, story, given or NEXT[point.nth % 3], unknown=None)

    return check


async def ends(job: Job, story: Story, given: str, *, unknown: bool | None = False) -> bool:
    """Go on in this process, give all of the story again, answer what waits: all is there once.

    `unknown`: the process died inside the tool; None: it may have. Returns whether it did.
    """
    places = [int(line) for line in job.given.read_text().split()]
    asked = set(story.launched[: sum(at in places for at in story.answers)])
    job = replace(job, now=LATER)
    async with running(job, Points(job)) as (agent, run):
        shown = [one.value for one in (await agent.aget_state()).interrupts]
        stood = {one["id"]: one["asked_at"] for one in shown}
        opened = await left_open(agent)
        assert unknown in (opened, None)
        if given != "the answer again":
            await run({"events": [AND_NOW]} if given == "a new message" else None)
            assert set(launched(job)) <= asked
            for at, one in enumerate(story.inputs):
                await run(one) if at not in story.answers else None
            assert set(launched(job)) <= asked
        await answer(agent, run, story, stood)
        for at, one in enumerate(story.inputs):
            await run(one) if at not in story.answers else None
        await answer(agent, run, story, stood)
        await run({"request": "wake"})
        more = ["e9"] if given == "a new message" else []
        await contains(agent, job, story, more, unknown=opened)
    return opened


async def answer(agent: AsyncAgent, run: Run, story: Story, stood: dict[str, str]) -> None:
    """Answer what is asked, one after the other. A question that stood is the same."""
    while waiting := await parked(agent):
        snapshot = await agent.aget_state()
        if not snapshot.interrupts:
            await run(None)
            continue
        [asked] = snapshot.interrupts
        assert asked.value["id"] == waiting[0]["question"]["id"]
        for question in [one["question"] for one in waiting]:
            assert stood.setdefault(question["id"], question["asked_at"]) == question["asked_at"]
        await run({"resume": story.answer})


async def contains(
    agent: AsyncAgent, job: Job, story: Story, more: list[str], *, unknown: bool
) -> None:
    """What the agent knows and did is what the story brings, once each."""
    events, said = (
        [*story.events, *more],
        Counter([*story.said, *(["Heard: And now?"] * len(more))]),
    )
    did = Counter(launched(job))
    if unknown:
        said += Counter(["nobody knows"])
        said -= Counter(["launched"])
    assert did <= Counter(story.launched) if unknown else did == Counter(story.launched)
    state = (await agent.aget_state()).values
    spoken = Counter(str(one.text) for one in state["messages"] if isinstance(one, AIMessage))
    del spoken[""]
    assert spoken == said
    heard = Counter(one.id for one in state["messages"] if one.type == "human")
    assert {one: heard[one] for one in events} == dict.fromkeys(events, 1)
    journaled = Counter(one["sources"][0] for one in await entries(agent) if "event" in one["id"])
    assert journaled == Counter(events)
    assert (state["tick"], state["parked"]) == (story.ticks + len(more), [])
    assert await inbox.waiting(agent.store, agent.scope, state["handled"]) == []
    assert await inbox.set_aside(agent.store, agent.scope) == []
    for kind in (approvals.ANSWERS, approvals.DEEDS, approvals.PASSED_OVER):
        assert await list_items(agent.store, agent.scope.namespace(kind)) == []
    made = len(logged_calls(job.log)) - len(more)
    assert story.calls <= made <= story.calls + story.calls_at_a_time
    lines = await audit.read(agent.store, agent.scope)
    ran = [
        one["outcome"] for one in lines if (one["what"], one["target"]) == ("tool_call", "launch")
    ]
    assert Counter(ran) == Counter(ok=len(story.launched) - unknown, error=int(unknown))
    answered = [one for one in lines if one["what"] == "question_answered"]
    assert len(answered) == len(story.answers)


async def parked(agent: AsyncAgent) -> list[ParkedTick]:
    found: list[ParkedTick] = (await agent.aget_state()).values.get("parked", [])
    return found


async def left_open(agent: AsyncAgent) -> bool:
    """Whether a tool was begun, and no outcome is kept."""
    deeds = await list_items(agent.store, agent.scope.namespace(approvals.DEEDS))
    return any(one.value["outcome"] is None for one in deeds)


def launched(job: Job) -> list[str]:
    return job.launched.read_text().splitlines() if job.launched.exists() else []
