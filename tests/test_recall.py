"""Recall: facts by meaning and words, episodes by words, best first."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from memory import journal
from memory.errors import InputError
from memory.models.hashing import DIMENSION, HashingEmbeddings
from memory.recall import fuse, rank_episodes, ranked, recall, scaled, telling
from memory.records import Fact, JournalEntry, RecallHit
from memory.semantic import SemanticMemory
from tests.facts import ANA, BEN, draft
from tests.tool_calls import SCOPE, Bench, shown_entry
from tools import recall as recall_tool

NOW = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[SemanticMemory]:
    opened = SemanticMemory(
        tmp_path / "facts.db",
        mem0_dir=tmp_path / "mem0",
        dimension=DIMENSION,
        embeddings=HashingEmbeddings,
    )
    yield opened
    opened.close()


def entry(entry_id: str, content: str, **changes: Any) -> JournalEntry:
    record = {
        "id": entry_id,
        "timestamp": "2026-03-05T10:00:00+00:00",
        "content": content,
        "source_entity": None,
        "sources": [f"event_{entry_id}"],
    }
    return cast(JournalEntry, {**record, **changes})


def fact(fact_id: str) -> Fact:
    return {
        **draft(fact_id, fact_id),
        "id": fact_id,
        "invalid_at": None,
        "superseded_by": None,
        "access_count": 0,
        "last_access": None,
    }


def hit(hit_id: str, score: float, at: str = "2026-03-01T00:00:00+00:00") -> RecallHit:
    return {
        "id": hit_id,
        "kind": "fact",
        "text": hit_id,
        "score": score,
        "sources": [],
        "at": at,
        "speaker": None,
    }


async def ask(memory: SemanticMemory, query: str, **options: Any) -> list[RecallHit]:
    return await recall(query, scope=ANA, now=NOW, semantic=memory, **options)


async def test_a_fact_is_recalled_with_its_source_time_and_speaker(memory: SemanticMemory) -> None:
    [written] = await memory.add(
        ANA, [draft("a", "Ana keeps bees", speaker="Ana", source_events=["v2", "v1"])]
    )
    [found] = await ask(memory, "Who keeps bees?")
    assert 0.5 < found["score"] <= 1.0
    assert found == {
        "id": written["id"],
        "kind": "fact",
        "text": "Ana keeps bees",
        "score": found["score"],
        "sources": ["v2", "v1"],
        "at": written["valid_from"],
        "speaker": "Ana",
    }


async def test_the_fact_that_answers_comes_first(memory: SemanticMemory) -> None:
    told = ["Ana keeps bees in Porto", "Ben keeps a boat", "Porto is warm in May", "Cy likes tea"]
    await memory.add(ANA, [draft(text, text) for text in told])
    hits = await ask(memory, "What does Ana keep in Porto?")
    assert hits[0]["text"] == told[0]
    assert "Cy likes tea" not in [one["text"] for one in hits]
    assert [one["score"] for one in hits] == sorted((one["score"] for one in hits), reverse=True)
    assert await ask(memory, "What does Ana keep in Porto?", limit=1) == hits[:1]


async def test_what_matches_nothing_is_no_hit(memory: SemanticMemory) -> None:
    assert await ask(memory, "bees") == []
    await memory.add(ANA, [draft("a", "Ana keeps bees")])
    assert await ask(memory, "?!") == []
    assert await ask(memory, "?!", episodes=[entry("e", "Ben sings")]) == []


@pytest.mark.parametrize("query", ["", "  \n"])
async def test_an_empty_query_is_an_error(memory: SemanticMemory, query: str) -> None:
    with pytest.raises(InputError, match="empty"):
        await ask(memory, query)


async def test_a_limit_below_one_is_an_error(memory: SemanticMemory) -> None:
    with pytest.raises(InputError, match="at least 1"):
        await ask(memory, "bees", limit=0)


async def test_another_agents_facts_are_not_recalled(memory: SemanticMemory) -> None:
    await memory.add(BEN, [draft("a", "Ana keeps bees")])
    assert await ask(memory, "Ana keeps bees") == []


async def test_a_superseded_fact_is_recalled_only_when_asked_for(memory: SemanticMemory) -> None:
    old, new = await memory.add(
        ANA, [draft("a", "Ana lives in Porto"), draft("b", "Ana lives in Rome")]
    )
    await memory.update(ANA, old["id"], {"invalid_at": "2026-03-04", "superseded_by": new["id"]})
    assert [one["id"] for one in await ask(memory, "Where does Ana live?")] == [new["id"]]
    both = await ask(memory, "Where does Ana live?", include_superseded=True)
    assert {one["id"] for one in both} == {old["id"], new["id"]}


async def test_what_was_heard_today_is_recalled_beside_the_facts(memory: SemanticMemory) -> None:
    await memory.add(ANA, [draft("a", "Ana keeps bees in Porto")])
    heard = [
        entry("e1", "The bees of Ana swarmed this morning", source_entity="Ben"),
        entry("e2", "Cy wants tea"),
    ]
    hits = await ask(memory, "When did the bees swarm?", episodes=heard)
    assert [(one["kind"], one["text"]) for one in hits] == [
        ("episode", "The bees of Ana swarmed this morning"),
        ("fact", "Ana keeps bees in Porto"),
    ]
    assert hits[0] == {
        "id": "e1",
        "kind": "episode",
        "text": heard[0]["content"],
        "score": hits[0]["score"],
        "sources": ["event_e1"],
        "at": heard[0]["timestamp"],
        "speaker": "Ben",
    }
    assert all(0 < one["score"] <= 1 for one in hits)


def test_the_words_that_tell_texts_apart_are_kept() -> None:
    assert telling("What did Ana say about the BEES?") == "ana say bees"
    assert telling("Who was he?") == "Who was he?"


def test_the_best_match_by_words_counts_one_and_equals_count_alike() -> None:
    assert scaled([(fact("a"), 4.0), (fact("b"), 1.0)]) == {"a": 1.0, "b": 0.25}
    assert scaled([(fact("a"), 0.1), (fact("b"), 0.1)]) == {"a": 1.0, "b": 1.0}
    assert scaled([(fact("a"), 0.0)]) == scaled([]) == {}


def test_meaning_and_words_count_half_each() -> None:
    near = [(fact("both"), 0.8), (fact("near"), 0.6), (fact("opposite"), -0.5)]
    worded = [(fact("word"), 4.0), (fact("both"), 2.0)]
    scores = {one["id"]: score for one, score in fuse(near, worded)}
    assert scores == pytest.approx({"both": 0.65, "near": 0.3, "opposite": 0.0, "word": 0.5})


def test_a_rare_word_says_more_than_a_common_one() -> None:
    episodes = [entry("1", "bees today"), entry("2", "tea tonight"), entry("3", "bees tonight")]
    scores = {one["id"]: score for one, score in rank_episodes("tea or bees", episodes)}
    assert scores["2"] > scores["1"] == scores["3"] > 0


def test_an_episode_with_all_the_words_scores_more_than_one_with_some() -> None:
    episodes = [
        entry("some", "bees in Rome"),
        entry("all", "bees in Porto"),
        entry("no", "tea there"),
    ]
    scores = {one["id"]: score for one, score in rank_episodes("bees in Porto", episodes)}
    assert 1 >= scores["all"] > scores["some"] > scores["no"] == 0
    assert rank_episodes("bees", []) == []
    assert [score for _, score in rank_episodes("bees", [entry("blank", "")])] == [0.0]


def test_of_equal_hits_the_newer_comes_first_then_the_lower_id() -> None:
    hits = [
        hit("b", 0.5, "2026-03-01T00:00:00+00:00"),
        hit("a", 0.5, "2026-03-01T00:00:00Z"),
        hit("new", 0.5, "2026-03-01T02:30:00+02:00"),
        hit("naive", 0.5, "2026-03-01T00:20:00"),
        hit("best", 0.6, "2020-01-01T00:00:00+00:00"),
        hit("none", 0.0, "2026-03-04T00:00:00+00:00"),
    ]
    assert [one["id"] for one in ranked(hits, NOW)] == ["best", "new", "naive", "a", "b"]


async def test_the_tool_reads_all_that_is_pending_and_the_archives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []

    async def asked(
        query: str, *, episodes: list[JournalEntry], **others: object
    ) -> list[RecallHit]:
        read.extend(one["id"] for one in episodes)
        return []

    monkeypatch.setattr(recall_tool, "recall", asked)
    monkeypatch.setattr(journal, "RECENT", 1)
    bench = Bench()
    heard = [shown_entry(f"event_20251203_{one}", sources=[]) for one in ("m1", "m2")]
    archive = journal.archive_entry("The harp came back.", sources=["m0"], now=NOW)
    for one in (*heard, archive):
        await bench.store.abatch(journal.puts(SCOPE, one))
    await bench.call("recall_memories", query="harp")
    assert read == [heard[0]["id"], heard[1]["id"], archive["id"]]
