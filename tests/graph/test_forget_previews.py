"""A preview of a forget reads little, and tells the same as a reading of the whole memory."""

import json
import random
import sqlite3
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.lives import live
from graph.api import AsyncAgent
from graph.use_cases import forgetting
from memory import journal
from memory.forgetting import carrying_out
from memory.forgetting.erasure import ForgetTarget
from memory.forgetting.scrubbing import Names, Statement
from memory.operations import apply_operations
from memory.records import add_entry, add_fact, link, link_facts, operation_id
from memory.storage.sqlite import MentionIndex
from memory.text import TextPrefilter
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


LETTERS = [*"abO1'\u2019`_-.\\\"\n\u0001\u200b \u00e9\u00df\ufb01\u05e9", *"我住สุซ서"]
TEXTS = st.lists(st.sampled_from([*LETTERS, *WORDS.split(), "dont", "story"]), max_size=6).map(
    "".join
)
INDEXED = "CREATE TABLE rows (number INTEGER PRIMARY KEY, key TEXT, value TEXT)"


def index_of(*values: object) -> tuple[sqlite3.Connection, MentionIndex]:
    connection = sqlite3.connect(":memory:")
    connection.execute(INDEXED)
    index = MentionIndex(connection, "rows", "key", "value", "{row}key >= ''")
    index.make()
    rows = [(f"k{number}", orjson.dumps(value)) for number, value in enumerate(values)]
    connection.executemany("INSERT INTO rows (key, value) VALUES (?, ?)", rows)
    index.catch_up()
    return connection, index


@example("שberries", "oaks feet ", "", "don't{}")
@example("berries", "oaks\u200b", "", "{}")
@given(TEXTS, TEXTS, TEXTS, st.sampled_from([*SPELLED, "l'{}", "\\{}", "我{}", "don't{}"]))
def test_an_index_misses_nothing(said: str, before: str, after: str, spelled: str) -> None:
    """Whatever names a person, says a statement or has an id is found, as JSON and within JSON."""
    text = before + spelled.format(said) + after
    whole = {"at": [text]}
    _, index = index_of(whole, {"told": json.dumps(whole, ensure_ascii=False)}, ["two words", said])
    for wanted in (Statement([f"{said} {before}"]), Names([said])):
        quick, wanted.prefilter = wanted.prefilter, TextPrefilter(frozenset([()]))
        found = index.having(quick)
        if wanted.within(text):
            assert quick.within(json.dumps(whole, ensure_ascii=False))
            assert found is None or found >= {1, 2}
    found = index.having(TextPrefilter(frozenset(), frozenset([said])))
    assert found is None or 3 in found


def test_an_index_has_each_row_as_it_is_whoever_wrote_it() -> None:
    """A trigger notes what is written: such rows are read until some write indexes them."""
    connection, index = index_of("Ben has a boat", "Cleo")
    ben, cleo = (TextPrefilter(Names([name]).prefilter.sayings) for name in ("Ben", "Cleo"))
    assert (index.having(ben), index.having(cleo)) == ({1}, {2})
    connection.execute("INSERT OR REPLACE INTO rows VALUES (2, 'k', 'Ben'), (3, 'k', 'Dan')")
    connection.execute("UPDATE rows SET value = 'Cleo' WHERE number = 1")
    assert index.having(ben) == {1, 2, 3}
    index.catch_up(4)
    assert index.having(cleo) == {1, 2, 3}
    index.catch_up(3)
    assert (index.having(ben), index.having(cleo)) == ({1, 2}, {1, 2})
    index.clear()
    assert index.having(ben) == {1, 2, 3}
    index.catch_up()
    assert (index.having(ben), index.having(cleo)) == ({2}, {1})
