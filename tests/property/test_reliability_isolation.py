"""Whatever is done with the memory of one agent, that of every other stays as it is, and unread.

Facts alone here, with ids and operations that several agents have in common; whole agents in
`test_reliability_agents`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from memory.errors import InputError
from memory.facts.semantic import SemanticMemory
from memory.records.records import Scope
from tests.support.facts import draft, nearest_facts
from tests.support.writers import Where

PROFILE = settings(
    deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
WHO = st.integers(0, 3)
WHICH = st.integers(0, 20)
WORDS = st.sampled_from(["copper", "lantern", "meadow"])


@pytest.fixture(params=["a folder", "a database"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Where:
    url = request.getfixturevalue("postgres_url") if request.param == "a database" else None
    return Where(tmp_path, url)


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as opened:
        yield opened


class Facts(RuleBasedStateMachine):
    """Two users with two agents each, in one memory; what each should hold is kept beside it."""

    def __init__(self, runner: asyncio.Runner, memory: SemanticMemory, example: int) -> None:
        super().__init__()
        self.runner, self.memory = runner, memory
        users = (f"ana{example}", f"ben{example}")
        self.scopes = [Scope(user, thread) for user in users for thread in ("one", "two")]
        self.held: dict[Scope, dict[str, str]] = {scope: {} for scope in self.scopes}
        self.made: dict[tuple[Scope, str], str] = {}
        """Scope and operation -> the id of its fact, as long as it is there."""

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    def one_of_all(self, which: int) -> str:
        """A fact's id, whosever it is; one that never was where there is none."""
        ids = [one for facts in self.held.values() for one in facts]
        return ids[which % len(ids)] if ids else "nobody's"

    @rule(who=WHO, op=st.integers(0, 5), word=WORDS)
    def add(self, who: int, op: int, word: str) -> None:
        scope = self.scopes[who]
        [fact] = self.run(self.memory.add(scope, [draft(f"op{op}", f"{word} {op}")]))
        standing = self.made.get((scope, f"op{op}"))
        if standing is not None:
            assert (fact["id"], fact["text"]) == (standing, self.held[scope][standing])
            return
        assert all(fact["id"] not in facts for facts in self.held.values())
        self.made[scope, f"op{op}"] = fact["id"]
        self.held[scope][fact["id"]] = fact["text"]

    @rule(who=WHO, which=WHICH, word=WORDS)
    def change(self, who: int, which: int, word: str) -> None:
        scope, fact_id = self.scopes[who], self.one_of_all(which)
        if fact_id not in self.held[scope]:
            with pytest.raises(InputError, match="no fact"):
                self.run(self.memory.update(scope, fact_id, {"text": f"stolen {word}"}))
            return
        text = f"{word} changed {which}"
        changed = self.run(self.memory.update(scope, fact_id, {"text": text}))
        assert (changed["id"], changed["text"]) == (fact_id, text)
        self.held[scope][fact_id] = text

    @rule(who=WHO, which=WHICH)
    def remove(self, who: int, which: int) -> None:
        scope, fact_id = self.scopes[who], self.one_of_all(which)
        if fact_id not in self.held[scope]:
            with pytest.raises(InputError, match="no fact"):
                self.run(self.memory.delete(scope, fact_id))
            return
        self.run(self.memory.delete(scope, fact_id))
        del self.held[scope][fact_id]
        self.made = {key: one for key, one in self.made.items() if one != fact_id}

    @rule(who=WHO, which=WHICH, word=WORDS)
    def find(self, who: int, which: int, word: str) -> None:
        scope, fact_id = self.scopes[who], self.one_of_all(which)
        own = self.held[scope]
        fact = self.run(self.memory.get(scope, fact_id))
        assert (fact["text"] if fact else None) == own.get(fact_id)
        near = self.run(nearest_facts(self.memory, scope, word, 50))
        assert {one["id"]: one["text"] for one, _ in near} == own
        worded = self.run(self.memory.keywords(scope, word, 50))
        assert {one["id"] for one, _ in worded} == {
            one for one, text in own.items() if word in text.split()
        }
        by_op = self.run(self.memory.by_op(scope, [f"op{number}" for number in range(6)]))
        assert {(scope, op): one["id"] for op, one in by_op.items()} == {
            key: one for key, one in self.made.items() if key[0] == scope
        }

    @invariant()
    def each_holds_its_own(self) -> None:
        for scope, own in self.held.items():
            facts = self.run(self.memory.all(scope))
            assert {one["id"]: one["text"] for one in facts} == own
            assert self.run(self.memory.count(scope)) == len(own)


@pytest.mark.parametrize(
    "examples", [pytest.param(3), pytest.param(80, marks=pytest.mark.slow)], ids=str
)
def test_facts_are_closed_to_every_other_agent_and_user(
    where: Where, runner: asyncio.Runner, examples: int
) -> None:
    home = where.open()
    try:
        steps = settings(PROFILE, max_examples=examples, stateful_step_count=25)
        made = run(lambda number: Facts(runner, home.semantic(), number), steps)
    finally:
        home.close()
    assert made >= examples


def run(make: Callable[[int], RuleBasedStateMachine], steps: settings) -> int:
    """Run machines, each made with a number of its own; how many were."""
    numbers = count()
    # Its annotation says a class; it calls what it is given.
    factory = cast(type[RuleBasedStateMachine], lambda: make(next(numbers)))
    run_state_machine_as_test(factory, settings=steps)
    return next(numbers)
