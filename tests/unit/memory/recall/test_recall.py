"""Recall: facts and episodes together, by meaning and words, with what is linked to them."""

import asyncio
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest
from langgraph.store.memory import InMemoryStore

from memory.errors import InputError
from memory.journal import entries as journal
from memory.night import keep_probe, kept_probes
from memory.recall.episodes import index_entries
from memory.recall.recall import BESIDE, IN_PROMPT, within
from memory.records.records import SELF, RecallHit
from memory.settings import Settings
from memory.text.tokens import approximate_tokens, best_sentences
from nodes.tick.record import facts_used
from tests.support.facts import ANA, BEN, memory_at
from tests.support.memories import Memories
from tests.support.recalling import NOW, Asking, Failing, entry, fell, rows, write
from tests.support.tool_calls import NOW as TOOL_NOW
from tests.support.tool_calls import SCOPE, Bench, night
from tools.builtin import facts as recall_tool


async def stored(store: InMemoryStore) -> list[dict[str, Any]]:
    return [item.dict() for item in await store.asearch((), limit=1_000)]


async def test_a_fact_is_recalled_with_its_source_time_speaker_and_parts(asking: Asking) -> None:
    written = await asking.learn("Ana keeps bees", speaker="Ana", source_events=["v2", "v1"])
    [found] = await asking.ask("Who keeps bees?")
    assert found == {
        "id": written["id"],
        "kind": "fact",
        "text": "Ana keeps bees",
        "score": found["score"],
        "sources": ["v2", "v1"],
        "at": written["valid_from"],
        "speaker": "Ana",
        "parts": found["parts"],
    }
    assert 0.5 < found["score"] <= 1.0
    assert sum(found["parts"].values()) == pytest.approx(found["score"])
    assert {"words", "meaning", "recency", "importance", "trust"} <= found["parts"].keys()


async def test_facts_and_episodes_are_ranked_together(asking: Asking) -> None:
    await asking.learn("Ana keeps bees in Porto")
    heard = await asking.hear("The bees of Ana swarmed this morning")
    await asking.hear("Tea?", speaker="Cy")
    hits = await asking.ask("When did the bees swarm?")
    assert [(hit["kind"], hit["text"]) for hit in hits[:2]] == [
        ("episode", "The bees of Ana swarmed this morning"),
        ("fact", "Ana keeps bees in Porto"),
    ]
    assert (hits[0]["id"], hits[0]["sources"], hits[0]["speaker"]) == (heard["id"], ["v0"], "Ben")
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
    assert [hit["id"] for hit in await asking.ask("When did the bees swarm?", limit=1)] == [
        heard["id"]
    ]


@pytest.mark.parametrize(("replaced", "visits"), [(False, 1), (True, 2)])
async def test_a_recall_goes_to_a_thread_and_again_where_a_fact_leads_to_others(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, *, replaced: bool, visits: int
) -> None:
    said = [await asking.hear(f"The bees of Ana swarmed {n} times") for n in range(9)]
    gone = await asking.learn("Ana keeps bees", source_entries=[said[0]["id"]])
    heir = await asking.learn("Ana sold her bees", source_entries=[said[1]["id"]])
    await fell(asking, gone, heir if replaced else None)
    monkeypatch.setattr(asyncio, "to_thread", sent := Mock(wraps=asyncio.to_thread))
    assert await asking.ask("When did the bees of Ana swarm?")
    assert sent.call_count == visits


async def test_both_databases_recall_alike(memories: Memories, store: InMemoryStore) -> None:
    asking = Asking(memories.open(), store)
    said = await asking.hear("I sold the harp in Porto", speaker="Ana")
    await asking.hear("To whom?", speaker="Ben")
    await asking.hear("To Cy.", speaker="Ana")
    await asking.learn("Cy owns a harp and sells it", source_entries=[said["id"]])
    assert await asking.texts("What did Ana sell?") == [
        "Cy owns a harp and sells it",
        "To Cy.",
        "To whom?",
    ]


async def test_what_stands_beside_a_find_comes_behind_it(
    tmp_path: Path, store: InMemoryStore
) -> None:
    memory = memory_at(tmp_path, Failing())
    asking = Asking(memory, store)
    await asking.hear("It rains", speaker="Ana")
    for number in range(5):
        await asking.hear(f"Tea number {number}", speaker="Ana")
    await asking.hear("The harp stands in Porto", speaker="Ana")
    found = await asking.texts("harp")
    assert found[0] == "The harp stands in Porto"
    assert set(found[1:]) == {"Tea number 3", "Tea number 4"}
    memory.close()


async def test_small_talk_and_questions_about_something_else_are_no_hits(asking: Asking) -> None:
    await asking.hear("We open at 8")
    await asking.hear("When do we open?")
    await asking.hear("Thanks a lot!")
    await asking.hear("What is the date today?")
    assert set(await asking.texts("open")) == {"We open at 8", "When do we open?"}


async def test_small_talk_neither_finds_nor_lends_anything(asking: Asking) -> None:
    await asking.hear("Lovely, thanks, good night!")
    await asking.hear("The harp stands in Porto")
    assert await asking.texts("Lovely, good night!") == []
    assert await asking.texts("A good night for harps") == ["The harp stands in Porto"]
    assert await asking.texts("night") == []


async def test_what_matches_nothing_is_no_hit(asking: Asking) -> None:
    assert await asking.ask("bees") == []
    await asking.learn("Ana keeps bees")
    await asking.hear("Ben sings")
    assert await asking.ask("wholly otherwise") == []


@pytest.mark.parametrize(
    ("query", "limit", "why"), [("", 10, "empty"), ("  \n", 10, "empty"), ("bees", 0, "at least 1")]
)
async def test_an_empty_query_or_a_limit_below_one_is_an_error(
    query: str, limit: int, why: str, asking: Asking
) -> None:
    with pytest.raises(InputError, match=why):
        await asking.ask(query, limit=limit)


async def test_another_agents_memories_are_not_recalled(asking: Asking) -> None:
    await asking.learn("Ana keeps bees")
    await asking.hear("Ana keeps bees, too")
    assert await asking.ask("Ana keeps bees", scope=BEN) == []
    assert len(await asking.ask("Ana keeps bees")) == 2


async def test_what_is_trusted_less_than_a_setting_is_left_out(asking: Asking) -> None:
    await asking.learn("The harp is in Porto", trust=0.3)
    await asking.hear("The harp is old", source_trust=0.9)
    await asking.hear("The harp is stolen", source_trust=0.2)
    assert len(await asking.ask("Where is the harp?")) == 3
    least = Settings(min_source_trust=0.5)
    assert await asking.texts("Where is the harp?", settings=least) == ["The harp is old"]


async def test_archives_are_recalled_and_notes_on_oneself_are_not(asking: Asking) -> None:
    archive = journal.archive_entry("Ana sold the harp.", sources=["v1"], now=NOW)
    await asking.store.abatch(journal.puts(ANA, archive))
    await asking.hear("I answered well about the harp", tags=[SELF])
    [hit] = await asking.ask("Who sold the harp?")
    assert (hit["id"], hit["kind"], hit["sources"]) == (archive["id"], "episode", ["v1"])


async def test_a_recall_writes_nothing(asking: Asking) -> None:
    await asking.learn("Ana keeps bees")
    await asking.hear("Bees!")
    await write(asking.store, entry("unindexed"))
    before = (await asking.memory.all(ANA), rows(asking.memory), await stored(asking.store))

    for options in ({}, {"max_tokens": 100}, {"facts_only": True}):
        assert await asking.ask("bees", **options)
    assert before == (await asking.memory.all(ANA), rows(asking.memory), await stored(asking.store))


async def test_a_recall_is_kept_as_a_probe_and_its_use_counted(asking: Asking) -> None:
    fact = await asking.learn("Ana keeps bees")
    for query, most in (("bees", 9), ("otherwise", 9), ("bees " * 200, 9), ("bees?", 0)):
        hits = await asking.ask(query)
        await keep_probe(query, hits, store=asking.store, scope=ANA, now=NOW, most=most)
        await asking.memory.touch(ANA, [one["id"] for one in hits], NOW)
        assert bool(hits) == (query != "otherwise")
    [known] = await asking.memory.all(ANA)
    assert (known["access_count"], known["last_access"]) == (3, NOW.isoformat())
    [probe] = await kept_probes(asking.store, ANA)
    assert probe == {"query": "bees", "found": fact["source_events"], "at": NOW.isoformat()}


async def test_a_night_recalls_facts_alone(asking: Asking) -> None:
    await asking.learn("Ana keeps bees")
    await asking.hear("Bees!")
    assert await asking.texts("bees", facts_only=True) == ["Ana keeps bees"]


async def test_the_tokens_decide_how_many_memories_a_prompt_shows(asking: Asking) -> None:
    for number in range(40):
        await asking.learn(f"harp number {number} " + "and so on " * (2 if number % 2 else 40))
    everything = await asking.ask("harp", limit=IN_PROMPT)
    used = await asking.ask("harp", limit=IN_PROMPT, max_tokens=Settings().recall_tokens)
    assert len(everything) == 30
    assert 15 < len(used) < 30
    size = sum(approximate_tokens(hit["text"]) + BESIDE for hit in used)
    assert Settings().recall_tokens - 100 < size <= Settings().recall_tokens
    assert [hit["id"] for hit in used] == [hit["id"] for hit in everything[: len(used)]]


async def test_a_prompt_shows_no_conclusion_that_says_what_its_evidence_says(
    asking: Asking,
) -> None:
    said = await asking.hear("The harp is sold")
    other = await asking.hear("The piano stays")
    drawn = await asking.hear("Of harps: the harp, the harp", source_type="inference")
    both = [*said["sources"], *other["sources"]]
    drawn = {**drawn, "sources": both}
    await write(asking.store, drawn)
    await index_entries(asking.store, asking.memory, ANA)
    found = [hit["id"] for hit in await asking.ask("harp")]
    shown = [hit["id"] for hit in await asking.ask("harp", max_tokens=1_300)]
    assert drawn["id"] in found
    assert said["id"] in shown
    assert drawn["id"] not in shown


async def test_of_a_long_memory_a_prompt_shows_the_best_sentences(asking: Asking) -> None:
    around = [f"On day {number} it rained on the old mill as before." for number in range(40)]
    said = "Then my aunt sold her harp to a stranger from Porto."
    text = " ".join([*around[:20], said, *around[20:]])
    await asking.hear(text)
    [whole] = await asking.ask("Who sold a harp?")
    [line] = await asking.ask("Who sold a harp?", max_tokens=1_300)
    assert whole["text"] == text
    assert said in line["text"]
    assert line["text"].startswith("... ")
    assert approximate_tokens(line["text"]) < 80
    assert line["id"] == whole["id"]


def test_a_memory_without_a_word_of_the_query_is_shown_by_its_beginning() -> None:
    text = " ".join(
        f"This is sentence {number}, and it is as long as it is." for number in range(20)
    )
    shown = best_sentences(text, {"harp": 1.0}, 40)
    assert shown.startswith("This is sentence 0, ")
    assert shown.endswith(" ...")
    assert best_sentences("Short.", {}, 40) == "Short."


def test_what_fits_no_more_is_left_out_or_cut() -> None:
    def hit(text: str) -> RecallHit:
        return cast(RecallHit, {"id": text[:3], "text": text})

    hits = [hit("one " * 50), hit("two " * 50), hit("six")]
    assert [one["id"] for one in within(hits, 3 * BESIDE + 103)] == ["one", "two", "six"]
    cut = within(hits, 2 * BESIDE + 80)
    assert [one["id"] for one in cut] == ["one", "two"]
    assert cut[1]["text"].endswith(" ...")
    assert [one["id"] for one in within(hits, 2 * BESIDE + 60)] == ["one"]
    assert within(hits, 0) == []


async def test_where_the_embedder_fails_words_alone_decide(
    tmp_path: Path, store: InMemoryStore
) -> None:
    embeddings = Failing()
    embeddings.down = False
    memory = memory_at(tmp_path, embeddings)
    asking = Asking(memory, store)
    await asking.learn("Ana keeps bees")
    await asking.learn("Ana sails")
    embeddings.down = True
    [hit] = await asking.ask("bees")
    assert hit["text"] == "Ana keeps bees"
    assert "meaning" not in hit["parts"]
    memory.close()


async def test_a_name_in_a_query_puts_first_what_its_bearer_said(asking: Asking) -> None:
    await asking.hear("I keep bees, Ana", speaker="Ben")
    await asking.hear("I keep goats", speaker="Ana")
    await asking.hear("Good morning, Ana!", speaker="Ben")
    first, *_ = await asking.ask("Which animals does Ana keep?")
    assert (first["text"], "speaker" in first["parts"]) == ("I keep goats", True)


async def test_the_tool_asks_for_the_agent_in_peoples_time_and_in_a_night_for_facts_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[dict[str, Any]] = []
    hit = {"id": "f1", "kind": "fact", "text": "Tea", "score": 1.0, "parts": {"words": 1.0}}
    hit |= {"at": "2026-11-23T10:05:00+00:00", "sources": [], "speaker": None}
    milk: dict[str, Any] = {"id": "f0", "text": "Milk", "speaker": None, "sources": []}
    hit["earlier"] = [{**milk, "until": "2026-11-22T23:30:00+00:00"}]

    async def answer(queries: list[str], **arguments: Any) -> list[list[RecallHit]]:
        asked.extend({**arguments, "query": query} for query in queries)
        return [[cast(RecallHit, hit)] for _ in queries]

    monkeypatch.setattr(recall_tool, "recall", answer)
    bench = Bench(settings=Settings(time_zone="Europe/Vienna"))
    called = await bench.call("recall_memories", query="tea", limit=3, include_superseded=True)
    bare = {key: value for key, value in hit.items() if key != "parts"}
    milk["until"] = "Mon 2026-11-23"
    bare |= {"at": "Mon 2026-11-23 11:05", "earlier": [milk]}
    assert called.result == {"success": True, "query": "tea", "memories": [bare], "count": 1}
    await night().call("recall_memories", query="tea")
    awake, asleep = asked
    assert (awake["query"], awake["limit"], awake["include_superseded"]) == ("tea", 3, True)
    assert (awake["scope"], awake["now"], awake["store"]) == (SCOPE, TOOL_NOW, bench.store)
    assert awake["settings"] == bench.settings
    assert [one["max_tokens"] for one in asked] == [bench.settings.recall_tokens] * 2
    assert [one["facts_only"] for one in asked] == [False, True]
    assert (asleep["limit"], asleep["include_superseded"]) == (10, False)


@pytest.mark.parametrize("query", ["Thanks", "Thanks, Ben!", "ok cool", "Good morning!", "Danke"])
async def test_nothing_is_recalled_for_thanks(asking: Asking, query: str) -> None:
    await asking.hear("Thanks, Ana! That is cool, ok. Good morning. Danke.")
    await asking.learn("Ana says thanks")
    assert await asking.ask(query) == []


async def test_a_score_says_how_far_a_match_is_from_chance(asking: Asking) -> None:
    for number in range(60):
        await asking.learn(f"The shop sold bread on day number {number}")
    await asking.learn("The oven of the shop came from Porto")
    [sure, *_] = await asking.ask("Which oven came from Porto?")
    [chance, *_] = await asking.ask("Which bread shop has a pool?")
    assert sure["score"] > 0.9
    assert chance["score"] < 0.2


async def test_nothing_fits_where_only_a_common_word_of_many_meets(asking: Asking) -> None:
    for number in range(60):
        await asking.learn(f"The shop sold bread on day number {number}")
    assert (
        await asking.ask("Which airline flies the nephew of Serkan from our shop to Bristol?") == []
    )
    assert len(await asking.ask("shop")) == 10


async def test_function_words_of_a_language_prove_nothing(asking: Asking) -> None:
    await asking.hear("Im Keller reifen sechzig Laibe, die wir verkauft haben.")
    assert await asking.ask("Wie viele Ziegen haben wir?") == []
    assert len(await asking.ask("Wie viele Laibe haben wir?")) == 1


async def test_a_word_of_everybody_is_found_when_it_is_all_that_is_asked(asking: Asking) -> None:
    for number in range(300):
        await asking.learn(f"Ana met guest {number}", speaker="Ana")
    first, *_ = await asking.ask("Ana")
    assert first["score"] >= 0.005


async def test_a_prompt_has_what_a_night_found_unimportant_among_the_first_alone(
    asking: Asking,
) -> None:
    for number in range(30):
        await asking.learn(f"The old harp number {number} is in Porto")
    await asking.hear("A harp, somewhere", consolidation="below_threshold", importance=2)
    await asking.hear("My harp is in the attic", consolidation="below_threshold", importance=2)
    found = await asking.ask("old harp in Porto", limit=40, max_tokens=2_000)
    assert {hit["kind"] for hit in found} == {"fact"}
    assert len(await asking.ask("old harp in Porto", limit=40)) == 32
    hits = await asking.ask("Is there a harp in the attic?", limit=40, max_tokens=2_000)
    assert hits[0]["text"] == "My harp is in the attic"


async def test_a_faded_entry_is_found_when_nothing_fits_better(asking: Asking) -> None:
    old = await asking.hear("The harp is in the attic", consolidation="faded", importance=2)
    new = await asking.hear("A harp is in the attic", importance=2)
    assert [hit["id"] for hit in await asking.ask("harp attic")] == [new["id"], old["id"]]
    alone = await asking.hear("The oven broke", consolidation="faded", importance=1)
    assert (await asking.ask("Which oven broke?"))[0]["id"] == alone["id"]


SHOWN = {
    "a1b2c3d4e5": "Ada lives in Bergen with two cats.",
    "b1b2c3d4e5": "Ada plays the harp on Sundays.",
    "c1b2c3d4e5": "Ada pays 1,150 a month.",
    "d1b2c3d4e5": "阿达住在卑尔根",
}


@pytest.mark.parametrize(
    ("answer", "asked", "expected"),
    [
        ("In Bergen.", "Where does Ada live?", ["a1b2c3d4e5"]),
        ("She lives with Ada.", "Where does Ada live?", []),
        ("Ada does.", "Who?", []),
        ("I do not know.", "Where does Ada live?", []),
        ("Bergen it is.", "Does Ada live in Bergen?", []),
        ("See b1b2c3d4.", "What does she play?", ["b1b2c3d4e5"]),
        ("1,150.", "What does Ada pay?", ["c1b2c3d4e5"]),
        ("卑尔根", "Where?", ["d1b2c3d4e5"]),
        ("The harp, and two cats.", "What has she?", ["a1b2c3d4e5", "b1b2c3d4e5"]),
        ("", "", []),
    ],
)
def test_a_fact_is_used_if_it_is_cited_or_its_own_words_are_said(
    answer: str, asked: str, expected: list[str]
) -> None:
    assert facts_used(SHOWN, answer, asked=asked) == expected


def test_a_word_of_all_facts_proves_the_use_of_none() -> None:
    shown = {str(n): f"The mill ground {n * 111} sacks." for n in range(1, 9)}
    assert facts_used(shown, "The mill ground 333.", asked="How many?") == ["3"]
    assert facts_used(shown, "The mill ground nothing.", asked="How many?") == []


FILLERS = ["ok", "Yes please", "Danke, super!", "Guten Morgen zusammen", "Sure, thanks!"]


async def test_fillers_are_never_recalled(asking: Asking) -> None:
    for text in (*FILLERS, "The harp stands in Porto", "Yes, on Thursday"):
        await asking.hear(text)
    for query in ("Where is the harp in Porto?", "Thanks for the harp", *FILLERS):
        found = await asking.texts(query, max_tokens=1_300)
        assert {*found} <= {"The harp stands in Porto", "Yes, on Thursday"}


async def test_where_nothing_is_asked_a_prompt_shows_only_what_matches_by_itself(
    asking: Asking,
) -> None:
    for text in ("The harp stands in Porto", "The rent rises", "Bea plants tulips", "It is cold"):
        await asking.hear(text)
    old = await asking.learn("The harp is in Lisbon", source_events=["e1"])
    new = await asking.learn("It stands in Porto since May", source_events=["e2"])
    await fell(asking, old, new)
    heard: Any = {"max_tokens": 1_300, "heard": True}
    said = await asking.texts("I tuned the harp", **heard)
    assert {*said} == {"The harp stands in Porto", new["text"]}
    asked = await asking.texts("Who tuned the harp? It was out of tune.", **heard)
    assert {*said} < {*asked} == {*await asking.texts("tuned harp", max_tokens=1_300)}
