"""`circadian correct`: a person mends a fact, and sees what became of it."""

import asyncio
from pathlib import Path

import pytest

from graph.cli.commands.memory import correction_view
from memory.models.offline.model import OfflineChatModel
from memory.records.records import Fact
from tests.support.agents import opened
from tests.support.clock import Clock
from tests.support.commandline import Run, facts
from tests.support.facts import draft
from tests.support.screens import plain, styled

PARIS, OSLO = "Ada lives in Paris", "Ada lives in Oslo"


@pytest.fixture
def paris(data: Path, clock: Clock) -> Fact:
    async def make() -> list[Fact]:
        async with opened(data, OfflineChatModel(), clock) as agent:
            return await agent.resources.semantic.add(agent.scope, [draft("paris", PARIS)])

    (fact,) = asyncio.run(make())
    return fact


def test_correct_shows_the_superseded_fact_and_the_new_one_with_its_id(
    run: Run, paris: Fact
) -> None:
    done = run("correct", paris["id"][:8], OSLO, "--by", "Ada")
    new, old = facts(run)
    assert (done.status, done.err) == (0, "")
    first, second = done.out.splitlines()
    assert first.startswith(f"-  {paris['id'][:8]}  {PARIS} superseded, ")
    assert second == f"+  {new['id'][:8]}  {OSLO} (Ada)"
    assert (new["text"], old["superseded_by"]) == (OSLO, new["id"])


def test_correcting_a_fact_to_its_own_text_says_so(run: Run, paris: Fact) -> None:
    command = ("correct", paris["id"], PARIS)
    done = run(*command)
    assert (done.status, done.out) == (0, "The fact says so already: nothing was changed.\n")
    assert run(*command, "--json").document["superseded"] is None
    assert [fact["id"] for fact in facts(run)] == [paris["id"]]


def test_the_old_text_is_crossed_out_and_cleaned(paris: Fact) -> None:
    new: Fact = {**paris, "id": "new-id", "text": "Os\x1b[31mlo"}
    seen = styled(correction_view(new, paris))
    assert f"\x1b[9m{PARIS}" in seen
    assert "\x1b" not in plain(correction_view(new, paris))
