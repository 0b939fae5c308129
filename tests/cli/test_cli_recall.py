"""`circadian recall`: searching memory, what scores are made of, and looking through all of it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graph.cli.commands.memory import memory_view, recall_view
from graph.documents import recalled_memory as recalled
from graph.use_cases.memories import list_memories
from memory.models.offline.model import OfflineChatModel
from memory.records.records import Fact, RecallHit
from tests.support.agents import opened, said
from tests.support.clock import Clock
from tests.support.commandline import Run
from tests.support.facts import draft
from tests.support.night_deeds import hit_of
from tests.support.night_memories import entry
from tests.support.screens import plain, styled

REST = "-0000-0000-0000-000000000000"
CONTRACT = ["id", "kind", "text", "score", "sources", "at", "speaker"]


@pytest.fixture
def facts(data: Path, clock: Clock) -> list[Fact]:
    """Three facts, oldest first, of which the second took the first one's place; and an entry."""

    async def make() -> list[Fact]:
        async with opened(data, OfflineChatModel(), clock) as agent:
            semantic, scope = agent.resources.semantic, agent.scope
            ada = {"speaker": "Ada", "entities": ["Ada"]}
            drafts = [
                draft("1", "Ada lives in Paris", valid_from="2026-02-01T08:00:00+00:00", **ada),
                draft("2", "Ada lives in Oslo", valid_from="2026-02-03T08:00:00+00:00", **ada),
                draft(
                    "3",
                    "The bees swarm in May",
                    speaker="Ben",
                    valid_from="2026-02-02T08:00:00+00:00",
                ),
            ]
            paris, oslo, bees = await semantic.add(scope, drafts)
            changes = {"invalid_at": oslo["valid_from"], "superseded_by": oslo["id"]}
            paris = await semantic.update(scope, paris["id"], changes)
            await agent.ainvoke(said("The greenhouse has a door"))
            return [paris, oslo, bees]

    return asyncio.run(make())


def hit(text: str, score: float = 0.5, **more: Any) -> RecallHit:
    said = entry(text, content=text, source_entity=None, sources=["e1"])
    return {**hit_of(said), "kind": "fact", "score": score, **more}  # type: ignore[typeddict-item]


def test_recall_shows_date_speaker_and_source(run: Run) -> None:
    run("send", "I moved to Oslo in March", "--from", "Zoe")
    out = run("recall", "Oslo").out
    line = next(line for line in out.splitlines() if "Zoe" in line)
    entry = line.split()[1]
    assert f"({entry}" in line
    run("forget", "--entry", entry, "--yes")
    assert "Nothing fits" in run("recall", "Oslo").out
    assert "Zoe   I moved to Oslo in March (" in line


def test_a_fact_is_shown_with_an_id_that_can_be_typed_back(run: Run, facts: list[Fact]) -> None:
    out = run("recall", "Where are the bees?").out
    line = next(line for line in out.splitlines() if "The bees swarm in May" in line)
    assert line.split()[1] == facts[2]["id"][:8]


def test_superseded_facts_are_recalled_only_on_request(run: Run, facts: list[Fact]) -> None:
    asked = ("recall", "Where does Ada live?")
    [told] = [one for one in run(*asked, "--json").document if "earlier" in one]
    assert (told["text"], told["earlier"][0]["text"]) == ("Ada lives in Oslo", "Ada lives in Paris")
    old = run(*asked, "--superseded", "--json").document
    assert {"Ada lives in Paris", "Ada lives in Oslo"} <= {one["text"] for one in old}


def test_superseded_and_disputed_hits_are_marked() -> None:
    gone, doubted = hit("gone", superseded=True), hit("doubted", disputed=True)
    seen = plain(recall_view([gone, doubted, hit("sure")]))
    assert "gone (superseded; e1)" in seen
    assert "doubted (disputed; e1)" in seen
    assert "sure (e1)" in seen
    assert "\x1b[9mgone" in styled(recall_view([gone]))
    assert "\x1b[9m" not in styled(recall_view([doubted]))
    assert list(recalled(gone)) == [*CONTRACT, "superseded"]
    assert list(recalled(hit("sure", superseded=False))) == CONTRACT


def test_a_score_is_explained_by_its_parts_the_largest_first() -> None:
    found = hit("near", parts={"recency": 0.02, "words": 0.5, "meaning": 0.3, "trust": 0.001})
    seen = plain(recall_view([found], explain=True))
    assert "words 0.50 · meaning 0.30 · recency 0.02" in seen.splitlines()[-1]
    assert "trust" not in seen
    assert "words" not in plain(recall_view([found]))
    assert recalled(found, explain=True)["parts"] == found["parts"]
    assert "parts" not in recalled(found)


def test_a_person_sees_what_fits_and_how_much_does_not(run: Run) -> None:
    said = ("Our dog Rex hates thunder", "I moved to Oslo", "The hall is blue", "The glass came")
    for text in said:
        run("send", text, "--from", "Ben")
    asked = ("recall", "dog")
    done = run(*asked)
    assert said[0] in done.out
    assert done.out.count("~0.") == 2, "the best three, of which one fits"
    assert "less (~): `circadian recall ... -k " in done.error
    every = run(*asked, "--json").document
    assert len(every) > 1
    more = run(*asked, "-k", "10")
    assert all(hit["text"] in more.out for hit in every)
    assert not more.err
    assert "Nothing fits" in run("recall", "cat").out


def test_a_score_that_rounds_to_zero_is_left_out() -> None:
    seen = plain(recall_view([hit("near", 0.61), hit("just", 0.006), hit("far", 0.004)]))
    assert ("near" in seen, "just" in seen, "far" in seen) == (True, True, False)
    assert "0.00" not in seen
    assert plain(recall_view([hit("far", 0.004)])).startswith("Nothing fits. Try other words, or")


def test_an_empty_query_is_one_line(run: Run, facts: list[Fact]) -> None:
    done = run("recall", " ")
    assert (done.status, done.out, done.error) == (
        2,
        "",
        "circadian: there is nothing to recall: the query is empty",
    )


def test_for_people_a_superseded_fact_names_the_one_that_holds(run: Run, facts: list[Fact]) -> None:
    paris, oslo, _ = facts
    done = run("recall", "--all")
    line = next(line for line in done.out.splitlines() if "Paris" in line)
    assert line.split()[1] == paris["id"][:8]
    assert f"Paris (superseded by {oslo['id'][:8]} since 3 Feb 2026;" in line
    assert "superseded" not in next(line for line in done.out.splitlines() if "Oslo" in line)
    assert done.error == "3 facts (1 superseded), 1 journal entry"
    assert "\x1b[9mAda lives in Paris" in styled(memory_view([dict(paris, **_shown(paris))]))


def _shown(fact: Fact) -> dict[str, Any]:
    return {"kind": "fact", "sources": [], "at": fact["valid_from"], "access_count": 2}


def test_all_with_a_query_keeps_memories_with_all_its_words(run: Run, facts: list[Fact]) -> None:
    def texts(query: str) -> list[str]:
        asked = ("recall", query, "--all", "--json")
        return [one["text"] for one in run(*asked).document]

    assert texts("lives") == ["Ada lives in Oslo", "Ada lives in Paris"]
    assert texts("Ada Oslo") == ["Ada lives in Oslo"]
    assert texts("ben") == ["The bees swarm in May"]
    assert texts("submarine") == []


def test_all_with_a_limit_says_how_many_are_left_out(run: Run, facts: list[Fact]) -> None:
    done = run("recall", "--all", "-k", "2")
    assert "Oslo" in done.out
    assert "bees" not in done.out
    assert done.error.endswith("; 2 older ones are left out")
    asked = ("recall", "--all", "-k", "2", "--json")
    assert len(run(*asked).document) == 2


def test_an_empty_memory_says_so(run: Run) -> None:
    run("stop")
    done = run("recall", "--all")
    assert (done.status, done.out, done.err) == (0, "Nothing is remembered yet.\n", "")


def test_listing_memory_counts_as_no_access(data: Path, facts: list[Fact]) -> None:
    async def look() -> list[dict[str, Any]]:
        async with opened(data, OfflineChatModel(), Clock()) as agent:
            await list_memories(agent.context)
            return await list_memories(agent.context, "bees")

    (found,) = asyncio.run(look())
    assert found["access_count"] == 0


def test_memories_are_cleaned_of_control_characters() -> None:
    row = {**_row("evil \x1b]0;owned\x07[bold]text"), "speaker": "Z\x1b[31moe\nBen"}
    for seen in (plain(memory_view([row])), plain(recall_view([hit("x\x1b[31m\x07")]))):
        assert "\x1b" not in seen
        assert "\x07" not in seen
    assert "[bold]text" in plain(memory_view([row]))


def _row(text: str) -> dict[str, Any]:
    made = {"invalid_at": None, "superseded_by": None, "access_count": 0}
    return {**hit(text), **made}


@pytest.mark.parametrize("width", [80, 120])
def test_on_a_narrow_screen_ids_and_dates_stay_whole(width: int) -> None:
    rows: Iterator[dict[str, Any]] = (
        {**_row("word " * 40), "id": f"{n}2345678{REST}", "speaker": "Am" * 40} for n in range(3)
    )
    lines = plain(memory_view(list(rows)), width).splitlines()
    assert max(map(len, lines)) <= width
    assert sum("2345678 " in line and "2 May 2026" in line for line in lines) == 3
