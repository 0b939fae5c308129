"""A tick that asks a person, killed at any point: the tool runs once, and never unasked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from graph.handle import AsyncAgent
from memory import approvals, audit, inbox
from memory.store_access import list_items
from memory.tick import ParkedTick
from tests.agents import entries
from tests.crash_worker import START, Job, Point, Points, Run, running
from tests.scripted import logged_calls
from tests.workers import workers

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
    writes: int
    """Durable writes, undisturbed."""
    events: tuple[str, ...] = ("e1",)
    answer: Any = "yes"
    launched: tuple[str, ...] = ("the moon",)
    """In the order in which the questions are answered."""
    said: tuple[str, ...] = ("launched",)
    ticks: int = 1
    calls: int = 2
    calls_at_a_time: int = 1
    """Model calls at most between two questions: on a server they are done again together."""

    @property
    def answers(self) -> list[int]:
        """The places of the inputs that answer a question."""
        return [at for at, one in enumerate(self.inputs) if "resume" in one or "decide" in one]


APPROVED = Story(({"events": [MOON]}, {"resume": "yes"}), writes=62)
EDITED = replace(
    APPROVED,
    inputs=({"events": [MOON]}, {"resume": TO_MARS}),
    answer=TO_MARS,
    launched=("Mars",),
)
REFUSED = Story(
    ({"events": [MOON]}, {"resume": "no"}), writes=58, answer="no", launched=(), said=("refused",)
)
OWN = Story(
    ({"events": [PLAN]}, {"request": "tick"}, {"resume": "yes"}),
    writes=89,
    events=("e0",),
    launched=("Venus",),
    said=("It is planned.", "launched"),
    ticks=2,
    calls=4,
    calls_at_a_time=2,
)
TWO = Story(
    ({"events": [MOON]}, {"events": [MARS]}, {"decide": [1, "yes"]}, {"decide": [0, "yes"]}),
    writes=149,
    events=("e1", "e2"),
    launched=("Mars", "the moon"),
    said=("launched", "launched"),
    ticks=2,
    calls=4,
)
STORIES = {"approved": APPROVED, "edited": EDITED, "refused": REFUSED, "own": OWN, "two": TWO}

WHEN = {
    "the model has asked for the tool": ("approved", Point("puts", 2)),
    "the question is in the log": ("approved", Point("puts", 4)),
    "the question stands": ("approved", Point("write", 37)),
    "the answer arrived": ("approved", Point("puts", 5, "before")),
    "the answer is kept": ("approved", Point("puts", 5)),
    "the tool is not begun": ("approved", Point("puts", 7, "before")),
    "its outcome is kept": ("approved", Point("puts", 8)),
    "its outcome is in a checkpoint": ("approved", Point("write", 45)),
    "the tick is done": ("approved", Point("write", 58)),
    "the event is settled": ("approved", Point("puts", 10)),
    "the changed arguments are kept": ("edited", Point("puts", 5)),
    "it ran with the changed arguments": ("edited", Point("puts", 8)),
    "the refusal is kept": ("refused", Point("puts", 5)),
    "the refusal is in a checkpoint": ("refused", Point("write", 41)),
    "a tick of its own asks": ("own", Point("write", 58)),
    "a tick of its own got its answer": ("own", Point("puts", 7)),
    "a tick of its own ran the tool": ("own", Point("puts", 10)),
    "the second question is answered": ("two", Point("puts", 9)),
    "the second one's tool ran": ("two", Point("puts", 12)),
    "the first question is answered": ("two", Point("puts", 16)),
    "the first one's tool ran": ("two", Point("puts", 19)),
}


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(data=str(tmp_path / "data"))


def told(job: Job, story: Story, point: Point | None = None, **more: Any) -> Job:
    return replace(job, inputs=list(story.inputs), point=point, **more)


@pytest.mark.parametrize("name", STORIES)
async def test_an_undisturbed_story_has_these_points_and_this_end(job: Job, name: str) -> None:
    story = STORIES[name]
    counts = workers().done(told(job, story))["counts"]
    assert (counts["model"], counts["write"]) == (story.calls, story.writes)
    await ends(job, story, "no input")


@pytest.mark.parametrize("name", WHEN)
async def test_killed_when(job: Job, name: str) -> None:
    of, point = WHEN[name]
    workers().killed(told(job, STORIES[of], point))
    await ends(job, STORIES[of], NEXT[len(name) % 3])


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


@pytest.mark.parametrize("point", [12, 29, 36, 39, 45, 52])
async def test_killed_on_a_server(job: Job, point: int) -> None:
    workers().killed(told(job, APPROVED, Point("write", point), plain=True))
    await ends(replace(job, plain=True), APPROVED, NEXT[point % 3])


@pytest.mark.slow
@pytest.mark.parametrize("given", NEXT)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("nth", range(1, APPROVED.writes + 1))
async def test_killed_at_any_write(job: Job, nth: int, when: str, given: str) -> None:
    if (nth, when) == (1, "before"):
        pytest.skip("nothing was accepted yet")
    workers().killed(told(job, APPROVED, Point("write", nth, when)))
    unknown = (nth, when) in [(42, "after"), (43, "before")]
    await ends(job, APPROVED, given, unknown=unknown)


@pytest.mark.slow
@pytest.mark.parametrize("given", NEXT)
@pytest.mark.parametrize("nth", range(4, 57))
async def test_killed_at_any_write_on_a_server(job: Job, nth: int, given: str) -> None:
    workers().killed(told(job, APPROVED, Point("write", nth), plain=True))
    await ends(replace(job, plain=True), APPROVED, given, unknown=None)


@pytest.mark.slow
@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    ("name", "nth"),
    [
        (name, n)
        for name in STORIES
        if name != "approved"
        for n in range(5, STORIES[name].writes - 1)
    ],
)
async def test_killed_at_any_write_of_another_story(
    job: Job, name: str, nth: int, plain: bool
) -> None:
    job = replace(job, plain=plain)
    workers().killed(told(job, STORIES[name], Point("write", nth)))
    await ends(job, STORIES[name], NEXT[nth % 3], unknown=None)


async def ends(job: Job, story: Story, given: str, *, unknown: bool | None = False) -> None:
    """Go on in this process, give all of the story again, answer what waits: all is there once.

    `unknown`: the process died inside the tool; None: it may have.
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
    repeated = story.calls_at_a_time if job.plain else 1
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
    assert story.calls <= len(logged_calls(job.log)) - len(more) <= story.calls + repeated
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
