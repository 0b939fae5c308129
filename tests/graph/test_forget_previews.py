"""A preview of a forget reads little, and tells the same as a reading of the whole memory."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.lives import live
from graph.api.async_agent import AsyncAgent
from graph.use_cases import forgetting
from memory import journal
from memory.forgetting import carrying_out
from memory.forgetting.erasure import ForgetTarget
from memory.forgetting.scrubbing import Names, Statement, TextPrefilter
from memory.operations import apply_operations
from memory.records import add_entry, add_fact, link, link_facts, operation_id
from tests.support.agents import dreamless, opened
from tests.support.clock import Clock
from tests.support.lives import Lived, at_home, lived_in
from tests.support.scripted import scripted

WORDS = "bought berries don't Café bakery stories Müller planned 我住在柏林 Ada's oaks feet Straße"
SPELLED = ["{}", "_{}_", "{}'s", "{}.", "ÀÉ {}", "\u200b{}", "{}\n", '"{}"']


async def same_as_whole(agent: AsyncAgent) -> int:
    """Compare the preview of each memory with the plan of its forget; returns how many."""
    context = agent.context
    facts = [ForgetTarget("fact", one["id"]) for one in await context.semantic.all(context.scope)]
    known = await journal.since(context.store, context.scope, None)
    people = {str(one["source_entity"]) for one in known if one["source_entity"]}
    statements = [*facts, *(ForgetTarget("entry", one["id"]) for one in known)]
    for wanted in [*statements, *(ForgetTarget("entity", one) for one in people)]:
        whole = await forgetting._plan(context, wanted, None)
        preview = await forgetting._forget(context, wanted, True, None)
        assert preview == forgetting._told(wanted, whole, dry_run=True)
    return len(facts) + len(known)


@pytest.fixture
def lived(tmp_path: Path) -> Lived:
    return lived_in(tmp_path / "lived")


@pytest.mark.parametrize("many", [3, carrying_out.MANY])
async def test_a_preview_equals_the_whole_plan_after_nights(
    lived: Lived, clock: Clock, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    monkeypatch.setattr(carrying_out, "MANY", many)
    clock.set(lived.now)
    async with at_home(lived.data, clock) as agent:
        assert await same_as_whole(agent) > 10


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
async def test_a_preview_equals_the_whole_plan_of_a_drawn_memory(
    tmp_path: Path, clock: Clock, seed: int
) -> None:
    """Facts of several entries, insights on both, and the same words in many spellings."""
    drawn = random.Random(seed)
    now = "2026-03-02T09:00:00+00:00"

    def text() -> str:
        words = [drawn.choice(SPELLED).format(drawn.choice(WORDS.split())) for _ in range(4)]
        return " ".join(words) + drawn.choice(["", ". Ada planned berries at a bakery"])

    events: list[Any] = [
        {
            "id": f'e{number}"',
            "at": f"2026-03-0{1 + number % 5}T09:00:00+00:00",
            "sender": drawn.choice(["Ada", "Ben"]),
            "text": text(),
            "channel": None,
            "addressed": False,
        }
        for number in range(25)
    ]
    async with opened(tmp_path, scripted(otherwise=dreamless(lambda *_: None)), clock) as agent:
        await live(agent, events)
        known = await journal.since(agent.store, agent.scope, None)
        made: list[Any] = []
        for number in range(20):
            some = drawn.sample(known, drawn.choice([1, 1, 2]))
            draft: Any = {
                "op": operation_id("drawn", str(number)),
                "text": drawn.choice([text(), some[0]["content"]]),
                "source_entries": [one["id"] for one in some],
                "source_events": [id_ for one in some for id_ in one["sources"]],
                "speaker": "Ada",
                "entities": ["Ada"],
                "trust": 0.9,
                "importance": 5,
                "created": now,
                "valid_from": now,
            }
            made += [add_fact(draft, "drawn"), link(some[0]["id"], draft["op"], now, "drawn")]
            if number % 3 == 2:
                made.append(link_facts(draft["op"], made[0]["target"], "relates", now, text()))
            insight: Any = {
                **known[0],
                "id": f"insight_20260302_{number}",
                "content": text(),
                "tags": [text()],
                "source_type": "inference",
                "source_entity": None,
                "sources": [],
                "evidence": [drawn.choice(known)["id"]],
            }
            made += [add_entry(insight, "drawn")] if number % 4 == 0 else []
        parts: Any = {"store": agent.store, "semantic": agent.resources.semantic}
        await apply_operations(made, scope=agent.scope, **parts)
        assert await same_as_whole(agent) > 40


SAID = st.lists(
    st.sampled_from([*WORDS.split(), "buying", "story", "cafe", "dont", "Mueller", "plan", "ada"]),
    min_size=2,
    max_size=5,
)


@given(SAID, SAID, st.sampled_from(SPELLED))
def test_a_quick_look_misses_nothing(said: list[str], words: list[str], spelled: str) -> None:
    """Whatever names a person or says a statement passes both prefilters."""
    text = " ".join(map(spelled.format, words))
    for wanted in (Statement([" ".join(said)]), Names(said)):
        quick, wanted.prefilter = wanted.prefilter, TextPrefilter(frozenset([()]))
        if wanted.within(text):
            assert quick.within(text)
            assert quick.within(json.dumps({"at": [text]}, ensure_ascii=False))


async def test_a_preview_looks_through_the_journal_once(
    lived: Lived, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first look at what is linked with the memory tells what the journal is searched for."""
    clock.set(lived.now)
    looks, counts = AsyncMock(side_effect=carrying_out._known), list[int]()
    monkeypatch.setattr(carrying_out, "_known", looks)
    async with at_home(lived.data, clock) as agent:
        for fact in await agent.context.semantic.all(agent.context.scope):
            await forgetting.forget_fact(agent.context, fact["id"], dry_run=True)
            counts.append(looks.await_count - sum(counts))
    assert min(counts) == 1  # others are in an archive, which is found and followed first
