"""Recall with what belongs together: facts, the entries they come from, and what replaced them."""

from datetime import UTC, datetime

import pytest

from memory.messages import prompt_lines
from memory.records.records import SELF
from memory.settings import Settings
from tests.support.facts import ANA
from tests.support.recalling import Asking, fell, link


async def test_a_superseded_fact_is_recalled_only_when_asked_for_and_marked(asking: Asking) -> None:
    old, new = await asking.learn("Ana lives in Porto"), await asking.learn("Ana lives in Rome")
    await fell(asking, old, new)
    [only] = await asking.ask("Where does Ana live?")
    assert only["id"] == new["id"]
    assert "superseded" not in only
    for hits in (
        await asking.ask("Where does Ana live?", include_superseded=True),
        await asking.ask("Where did Ana live before?"),
    ):
        assert {hit["id"]: hit.get("superseded", False) for hit in hits} == {
            old["id"]: True,
            new["id"]: False,
        }
        by = {hit["id"]: hit.get("superseded_by") for hit in hits}
        assert by == {old["id"]: new["id"], new["id"]: None}


async def test_what_a_fact_superseded_is_told_with_it(asking: Asking) -> None:
    old = await asking.learn("Ana lives in Porto", source_events=["e1"], speaker="Ben")
    new = await asking.learn("Ana lives in Rome", source_events=["e2"], speaker="Ana")
    await fell(asking, old, new)
    [hit] = await asking.ask("Where does Ana live?")
    assert hit["text"] == "Ana lives in Rome"
    assert hit["sources"] == ["e2", "e1"]
    assert hit["origins"] == ["Ben"]
    assert [one["text"] for one in hit["earlier"]] == ["Ana lives in Porto"]
    line = prompt_lines.with_earlier(hit, UTC)
    day = f"{datetime.fromisoformat(new['valid_from']):%a %Y-%m-%d}"
    assert line == f"Ana lives in Rome (until {day}: Ana lives in Porto)"


async def test_what_says_the_same_is_not_told_as_earlier(asking: Asking) -> None:
    old = await asking.learn("Ana lives in Rome, Italy", source_events=["e1"])
    new = await asking.learn("Ana lives in Rome", source_events=["e2", "e1"])
    await fell(asking, old, new)
    [hit] = await asking.ask("Where does Ana live in Italy?")
    assert "earlier" not in hit


async def test_a_fact_that_only_a_link_finds_is_one_hit_with_the_entry_that_says_the_same(
    asking: Asking,
) -> None:
    said = await asking.hear("I moved to Oslo", speaker="Ana")
    fact = await asking.learn(
        "I moved to Oslo", speaker="Ana", source_entries=[said["id"]], source_events=["v9"]
    )
    await link(asking, said["id"], fact["id"])
    [hit] = await asking.ask("What of Ana?")
    assert hit["id"] == fact["id"]
    assert sorted(hit["sources"]) == ["v0", "v9"]
    assert "link" not in hit["parts"]


async def test_an_entry_whose_fact_no_longer_holds_is_left_out_though_no_word_finds_the_fact(
    asking: Asking,
) -> None:
    said = await asking.hear("I moved to Oslo", speaker="Ana")
    old = await asking.learn("I moved to Oslo", speaker="Ana", source_entries=[said["id"]])
    await link(asking, said["id"], old["id"])
    assert await asking.texts("What of Ana?") == ["I moved to Oslo"]
    await asking.memory.update(ANA, old["id"], {"invalid_at": "2026-03-04T00:00Z"})
    assert await asking.texts("What of Ana?") == []
    [hit] = await asking.ask("What of Ana?", include_superseded=True)
    assert (hit["id"], hit["superseded"]) == (old["id"], True)


async def test_what_is_linked_to_a_hit_comes_with_it_at_a_share_of_its_score(
    asking: Asking,
) -> None:
    said = await asking.hear("Rex barks at night", speaker="Ana")
    fact = await asking.learn("Ana owns an old dog", source_entries=["none"])
    await link(asking, said["id"], fact["id"])
    first, second = await asking.ask("Which dog is old?")
    assert (first["id"], second["id"]) == (fact["id"], said["id"])
    assert second["parts"] == {"link": pytest.approx(first["score"] / 2)}
    first, second = await asking.ask("Who barks?")
    assert (first["id"], second["id"]) == (said["id"], fact["id"])
    assert second["parts"] == {"link": pytest.approx(first["score"] / 2)}


@pytest.mark.parametrize("why", ["superseded", "self", "untrusted", "gone"])
async def test_a_link_does_not_bring_in_what_recall_leaves_out(asking: Asking, why: str) -> None:
    settings = Settings(min_source_trust=0.5)
    fact = await asking.learn("Ana owns an old dog", source_entries=["none"])
    linked = "event_20260305_none"
    if why == "superseded":
        linked = (await asking.learn("Rex barks"))["id"]
        await asking.memory.update(ANA, linked, {"invalid_at": "2026-03-04T00:00Z"})
    elif why != "gone":
        changes = {"tags": [SELF]} if why == "self" else {"source_trust": 0.3}
        linked = (await asking.hear("Rex barks", **changes))["id"]
    await link(asking, fact["id"], linked)
    assert await asking.texts("Which dog is old?", settings=settings) == ["Ana owns an old dog"]


async def test_a_fact_is_found_by_the_context_and_the_tags_that_a_night_gave_it(
    asking: Asking,
) -> None:
    async def worded(query: str) -> list[str]:
        return [one["id"] for one, _ in await asking.memory.keywords(ANA, query, 9)]

    fact = await asking.learn("Ana practises her scales every morning")
    await asking.learn("Ben sells violins")
    assert await worded("cello music") == []
    told = {"context": "How Ana learns the cello.", "tags": ["music"]}
    await asking.memory.update(ANA, fact["id"], told)
    assert await worded("cello") == await worded("music") == [fact["id"]]
    assert await asking.texts("cello") == ["Ana practises her scales every morning"]
    await asking.memory.update(ANA, fact["id"], {"context": None, "tags": []})
    assert await worded("cello music") == []


async def test_a_word_of_the_fact_itself_counts_for_more_than_one_of_its_context(
    asking: Asking,
) -> None:
    described = await asking.learn("Ana practises scales")
    await asking.memory.update(ANA, described["id"], {"context": "Ana and the cello."})
    own = await asking.learn("Ben mends cello")
    worded = await asking.memory.keywords(ANA, "cello", 9)
    assert [fact["id"] for fact, _ in worded] == [own["id"], described["id"]]


async def test_what_the_best_is_linked_to_is_lifted_where_it_was_found_too(asking: Asking) -> None:
    best = await asking.learn("Ana keeps bees on the roof in Lisbon")
    near = await asking.learn("Lisbon has trams")
    far = await asking.learn("Lisbon has trains")
    question = "Where does Ana keep her bees, in Lisbon?"
    before = {hit["id"]: hit["score"] for hit in await asking.ask(question)}
    await link(asking, best["id"], far["id"])
    hits = await asking.ask(question)
    assert [hit["id"] for hit in hits] == [best["id"], far["id"], near["id"]]
    after = {hit["id"]: hit["score"] for hit in hits}
    assert after[near["id"]] == before[near["id"]]
    assert after[far["id"]] == pytest.approx(before[far["id"]] + 0.1 * before[best["id"]])
    assert hits[1]["parts"]["link"] == pytest.approx(0.1 * before[best["id"]])
    unlinked = await asking.ask(question, settings=Settings(recall_weight_links=0))
    assert {hit["id"]: hit["score"] for hit in unlinked} == before


async def test_links_of_a_fact_are_followed_from_the_entry_that_it_is_one_with(
    asking: Asking,
) -> None:
    said = await asking.hear("I sold the harp that my grandmother left me", speaker="Ana")
    fact = await asking.learn("Ana sold the harp", speaker="Ana", source_entries=[said["id"]])
    bound = await asking.learn("The money paid for a boat")
    await link(asking, fact["id"], bound["id"])
    found = await asking.texts("Who sold a harp?")
    assert found == ["Ana sold the harp", "The money paid for a boat"]


async def test_an_insight_is_not_lifted_by_what_it_was_drawn_from(asking: Asking) -> None:
    said = await asking.hear("I keep bees on the roof", speaker="Ana")
    drawn = await asking.hear("The roof is used", speaker="Ana", source_type="inference")
    question = "Who keeps bees on a roof?"
    before = {hit["id"]: hit["score"] for hit in await asking.ask(question)}
    await link(asking, said["id"], drawn["id"])
    after = {hit["id"]: hit["score"] for hit in await asking.ask(question)}
    assert after[drawn["id"]] <= before[drawn["id"]]
    assert after[said["id"]] > before[said["id"]], "but that it was drawn from is lifted by it"
