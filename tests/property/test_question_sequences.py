"""Whatever comes in whatever order: no event is lost, and what runs is what was approved."""

import random
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from graph.api import AsyncAgent
from memory.events import inbox
from memory.records.tick import ParkedTick
from memory.state.validation import state_problem
from tests.crash.test_crash_confirm import launched
from tests.support.agents import entries
from tests.support.crash_worker import START, Job, Points, running

MOST = 3
"""Questions that may wait."""
OWN = "Venus"
"""Where the agent's own goal leads."""


@dataclass
class Expected:
    """What should have come of the steps so far."""

    waiting: list[str] = field(default_factory=list)
    """Targets, the oldest question first."""
    launched: list[str] = field(default_factory=list)
    handled: list[str] = field(default_factory=list)
    """Events whose ticks are done, in order."""
    mode: str = "awake"
    planned: bool = True
    """Whether the agent's own goal is still to be worked on."""

    def answered(self, target: str) -> None:
        """A tick that waited is done; answering wakes the agent."""
        self.waiting.remove(target)
        self.mode = "awake"
        if target != OWN:
            self.handled.append(f"to_{target}")


class Steps:
    """The real agent and what is expected of it, step by step."""

    def __init__(self, job: Job, seed: int) -> None:
        self.job = replace(job, settings={"max_questions": MOST})
        self.choice = random.Random(seed)
        self.expected = Expected()
        self.stack = AsyncExitStack()
        self.agent: AsyncAgent
        self.taken: list[str] = []

    async def open(self) -> None:
        self.agent, _ = await self.stack.enter_async_context(running(self.job, Points(self.job)))

    async def take(self, name: str) -> None:
        """One step, and a look at everything after it."""
        self.taken.append(name)
        await getattr(self, name)()
        await self.holds()

    async def message(self) -> None:
        name = f"hello_{len(self.taken)}"
        await self.say(name, "Hello")
        self.expected.handled.append(name)

    async def ask(self) -> None:
        target = f"moon_{len(self.taken)}"
        full = len(self.expected.waiting) == MOST
        await self.say(f"to_{target}", f"Launch to {target}")
        if full:
            self.expected.handled.append(f"to_{target}")
        else:
            self.expected.waiting.append(target)

    async def say(self, name: str, text: str) -> None:
        event = {"id": name, "text": text, "sender": "Ada", "at": START}
        await self.agent.ainvoke({"events": [event]})
        self.expected.mode = "awake"

    async def approve_oldest(self) -> None:
        await self.answer(0, approve=True)

    async def approve_newest(self) -> None:
        await self.answer(-1, approve=True)

    async def refuse(self) -> None:
        await self.answer(self.choice.randrange(MOST), approve=False)

    async def answer(self, place: int, *, approve: bool) -> None:
        waiting = [one["question"] for one in await self.parked()]
        if not waiting:
            return
        question = waiting[place if place < len(waiting) else -1]
        target = question["args"]["target"]
        if approve:
            await self.agent.approve(question["id"])
            self.expected.launched.append(target)
        else:
            await self.agent.refuse(question["id"])
            self.expected.planned |= target == OWN  # Nothing was launched: its goal stays open.
        self.expected.answered(target)

    async def night(self) -> None:
        await self.agent.ainvoke({"request": "sleep"})
        self.expected.mode = "sleep"

    async def tick(self) -> None:
        """The agent's own goal asks once; asleep it does not, nor where too many wait."""
        await self.agent.ainvoke({"request": "tick"})
        if self.expected.mode == "awake" and self.expected.planned:
            self.expected.planned = False
            if len(self.expected.waiting) < MOST:
                self.expected.waiting.append(OWN)

    async def restart(self) -> None:
        await self.stack.aclose()
        self.stack = AsyncExitStack()
        await self.open()

    async def parked(self) -> list[ParkedTick]:
        found: list[ParkedTick] = (await self.agent.aget_state()).values.get("parked", [])
        return found

    async def holds(self) -> None:
        snapshot, expected = await self.agent.aget_state(), self.expected
        state = snapshot.values
        assert state_problem(state) is None, self.taken
        assert launched(self.job) == expected.launched, self.taken
        asked = [one["question"]["args"]["target"] for one in state["parked"]]
        assert (asked, state["mode"]) == (expected.waiting, expected.mode), self.taken
        left = await inbox.waiting(self.agent.store, self.agent.scope, state["handled"])
        events = [f"to_{target}" for target in expected.waiting if target != OWN]
        assert [item["event"]["id"] for item in left] == events, self.taken
        heard = [one["sources"][0] for one in await entries(self.agent) if "event" in one["id"]]
        assert sorted(heard) == sorted(["plan", *expected.handled]), self.taken
        standing = [one.value["args"]["target"] for one in snapshot.interrupts]
        awake = expected.mode == "awake"
        assert standing == (expected.waiting[:1] if awake else []), self.taken


NAMES = ["message", "ask", "approve_oldest", "approve_newest", "refuse", "night", "restart", "tick"]


async def follow(folder: Path, seed: int, steps: int) -> None:
    """A random sequence, the same for a seed."""
    going = Steps(Job(data=str(folder / "data")), seed)
    await going.open()
    try:
        await going.say("plan", "Plan a launch")
        weights = [2, 4, 2, 2, 1, 1, 1, 1]
        for name in going.choice.choices(NAMES, weights, k=steps):
            await going.take(name)
    finally:
        await going.stack.aclose()


@pytest.mark.parametrize("seed", range(3))
async def test_any_order_of_steps_leads_where_it_should(tmp_path: Path, seed: int) -> None:
    await follow(tmp_path, seed, steps=20)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 130))
async def test_long_sequences_lead_where_they_should(tmp_path: Path, seed: int) -> None:
    await follow(tmp_path, seed, steps=60)
