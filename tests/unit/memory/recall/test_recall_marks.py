"""What holds: entries with the marks of their facts, and facts in place of entries."""

from dataclasses import replace
from typing import Any

import pytest

from memory.facts import Row
from memory.recall.merging import _lifted, lifted_by_links
from memory.recall.ranking import Candidate
from memory.records.records import Fact, JournalEntry
from tests.support.facts import ANA
from tests.support.recalling import Asking, fell, link

SAID = "Landlord phoned: from April it is 1,900 euros for the shop, up from 1,700, alas"
OLD = "The landlord asks 1,700 for the shop since last winter, he says, as agreed with Nadja"


async def made(asking: Asking, text: str, entry: Any, **fields: Any) -> Fact:
    fact = await asking.learn(
        text, source_entries=[entry["id"]], source_events=entry["sources"], **fields
    )
    await link(asking, entry["id"], fact["id"])
    return fact


async def rents(asking: Asking) -> tuple[Fact, Fact]:
    before, after = await asking.hear(OLD), await asking.hear(SAID)
    old = await made(asking, "The rent of the shop is 1,700 euros", before)
    new = await made(asking, "The rent of the shop is 1,900 euros", after)
    return old, new


async def test_an_entry_falls_with_its_fact(asking: Asking) -> None:
    old, new = await rents(asking)
    assert OLD in await asking.texts("What does the landlord ask, 1,700 or more?")
    await fell(asking, old, new)
    for query in ("What does the landlord ask for the shop?", "What is the rent of the shop?"):
        hits = await asking.ask(query)
        assert hits[0]["text"] in (new["text"], SAID)
        assert all(hit.get("superseded") for hit in hits if "1,700" in hit["text"][:40])
    hits = await asking.ask("What is the rent of the shop?")
    assert [hit["text"] for hit in hits] == [new["text"]]


async def test_a_fallen_entry_is_shown_when_the_past_is_asked_for(asking: Asking) -> None:
    old, new = await rents(asking)
    await fell(asking, old, new)
    hits = await asking.ask("What was the rent of the shop before?")
    [gone] = [hit for hit in hits if hit["text"] in (OLD, old["text"])]
    assert (gone["superseded"], gone["superseded_by"]) == (True, new["id"])
    assert gone["sources"] == old["source_events"]


async def test_an_entry_whose_facts_were_all_superseded_is_far_below_where_it_says_more(
    asking: Asking,
) -> None:
    old, new = await rents(asking)
    await fell(asking, old, new)
    hits = await asking.ask("What did the landlord agree on with Nadja for the shop?")
    [gone] = [hit for hit in hits if hit["text"] == OLD]
    assert gone["superseded"] is True
    assert gone["superseded_by"] == new["id"]
    assert hits[0] != gone


async def test_an_entry_of_which_some_facts_hold_stands_below_what_holds_instead(
    asking: Asking,
) -> None:
    before = await asking.hear("The shop costs us 1,700, and the oven gets mended on Friday, Ilir")
    after = await asking.hear("1,900 it is now")
    old = await made(asking, "The rent of the shop is 1,700 euros", before)
    await made(asking, "The oven is mended on Friday", before)
    new = await made(asking, "The rent of the shop is 1,900 euros", after)
    await fell(asking, old, new)
    hits = await asking.ask("What does the shop cost us, Ilir?")
    place = {hit["text"]: number for number, hit in enumerate(hits)}
    assert place[new["text"]] < place[before["content"]]
    assert hits[place[before["content"]]]["partly_superseded"] is True


async def test_what_superseded_a_found_memory_comes_in_its_place(asking: Asking) -> None:
    said = await asking.hear("The assembly is on the thirteenth", speaker="Ruth")
    old = await made(asking, "The assembly is on 13 March", said)
    for number in range(20):
        await asking.learn(f"An assembly of chairs, number {number}")
    new = await asking.learn("All meet six days later, in the courtyard")
    await fell(asking, old, new)
    assert (await asking.texts("When is the assembly on the thirteenth?"))[0] == new["text"]


async def test_a_doubtful_memory_brings_what_holds_in_place_of_what_it_rests_on(
    asking: Asking,
) -> None:
    rent = await asking.learn("The shop costs 1,700 a month")
    for number in range(20):
        await asking.learn(f"A budget of chairs, number {number}")
    between = await asking.learn("1,800 are demanded")
    lease = await asking.learn("The lease is signed at 1,900")
    budget = await asking.learn("Nadja's budget for April is 2,300")
    doubts: Any = {"depends_on": [rent["op"]], "doubtful": [rent["op"]]}
    await asking.memory.update(ANA, budget["id"], doubts)
    await link(asking, budget["id"], rent["id"], relation="depends_on")
    await fell(asking, rent, between)
    await fell(asking, between, lease)
    found = await asking.texts("Does Nadja's budget for April hold?")
    assert found[:2] == [budget["text"], lease["text"]]


BUDGET = "The budget is 1,500 euros now"
RETIRES = "Frau Brandt retires in December"


async def at_once(asking: Asking) -> tuple[Fact, Fact, Fact]:
    first = await asking.hear("The budget of the party is 1,200 euros, for Brandt and the guests")
    said = await asking.hear(f"{BUDGET}, Ines adds 300. And {RETIRES}; Tarek will be the boss.")
    old = await made(asking, "The budget of the party is 1,200 euros for Brandt", first)
    new, other = await made(asking, BUDGET, said), await made(asking, RETIRES, said)
    await fell(asking, old, new)
    return old, new, other


@pytest.mark.parametrize(
    "query", ["When does Brandt retire?", "Who is Brandt, of the party?", "The party, December"]
)
async def test_what_was_replaced_is_told_with_its_successor_and_not_beside_it(
    query: str, asking: Asking
) -> None:
    old, new, _ = await at_once(asking)
    hits = await asking.ask(query)
    told = {hit["text"]: [one["text"] for one in hit.get("earlier", ())] for hit in hits}
    assert told.pop(new["text"], None) in (None, [old["text"]])
    assert not any(told.values())
    assert RETIRES in told or not told


async def test_a_dispute_marks_no_other_fact_of_the_entry(asking: Asking) -> None:
    _, new, other = await at_once(asking)
    claim = await asking.learn("The budget is 900 euros")
    for fact, by in ((new, claim), (claim, new)):
        await asking.memory.update(ANA, fact["id"], {"disputed": [by["op"]]})
    hits = {hit["id"]: hit for hit in await asking.ask("When does Frau Brandt retire?")}
    assert "disputed" not in hits[other["id"]]


async def test_what_an_entry_said_is_told_as_its_fact_with_what_holds(asking: Asking) -> None:
    said = await asking.hear("Ines moves to Bern in two weeks, with Mateo")
    later = await asking.hear("It is Basel now, on the 18th")
    old = await made(asking, "Ines moves to Bern with Mateo on 22 June 2026", said)
    new = await made(asking, "Ines moves to Basel on 18 June 2026", later)
    await fell(asking, old, new)
    hits = await asking.ask("Ines moves in two weeks to?")
    [told] = [hit for hit in hits if hit["text"] == new["text"]]
    assert [one["text"] for one in told["earlier"]] == [old["text"]]
    assert said["content"] not in [hit["text"] for hit in hits]
    never = {"invalid_at": old["valid_from"], "superseded_by": new["id"]}
    await asking.memory.update(ANA, old["id"], never)
    hits = await asking.ask("Ines moves in two weeks to?")
    assert not any("earlier" in hit for hit in hits)


async def joined_at(asking: Asking, relation: str) -> tuple[JournalEntry, Fact, Fact]:
    """A fact that ended, and the one that stays, which has the sources of both."""
    first = await asking.hear("Brandt may not hear of the interview, says Ana")
    second = await asking.hear("And not a word of my job at the station to Brandt")
    goes = await made(asking, "Nobody may know of the interview", second)
    sources = [first, second]
    stays = await asking.learn(
        "Brandt does not know of the job",
        source_entries=[one["id"] for one in sources],
        source_events=[event for one in sources for event in one["sources"]],
    )
    await link(asking, goes["id"], stays["id"], relation=relation)
    await fell(asking, goes, stays)
    return second, goes, stays


@pytest.mark.parametrize("facts_only", [False, True])
@pytest.mark.parametrize(
    "query", ["Who could know of the interview before?", "The interview is no longer secret"]
)
async def test_what_was_joined_into_another_fact_never_fell(
    query: str, facts_only: bool, asking: Asking
) -> None:
    _, goes, stays = await joined_at(asking, "duplicates")
    hits = await asking.ask(query, facts_only=facts_only)
    assert stays["id"] in [hit["id"] for hit in hits]
    assert goes["id"] not in [hit["id"] for hit in hits]
    assert not any("superseded" in hit or "partly_superseded" in hit for hit in hits)


@pytest.mark.parametrize("facts_only", [False, True])
async def test_what_changed_in_the_words_of_one_entry_did_fall(
    facts_only: bool, asking: Asking
) -> None:
    _, goes, _ = await joined_at(asking, "supersedes")
    hits = await asking.ask("Who could know of the interview before?", facts_only=facts_only)
    assert {hit["id"]: hit.get("superseded", False) for hit in hits}[goes["id"]] is True


async def test_an_entry_that_tells_of_a_change_itself_does_not_fall(asking: Asking) -> None:
    said = await asking.hear("The fair moves from the hall to the barn, says Ana on the phone")
    old = await made(asking, "The fair is in the hall", said)
    new = await made(asking, "The fair moves to the barn", said)
    await link(asking, old["id"], new["id"], relation="supersedes")
    await fell(asking, old, new)
    hits = {hit["text"]: hit for hit in await asking.ask("Who is on the phone about the hall?")}
    assert not {"superseded", "partly_superseded"} & hits[said["content"]].keys()


async def test_a_duplicate_takes_no_entry_down(asking: Asking) -> None:
    first = await asking.hear("Our oven is broken since Monday, says Goran")
    second = await asking.hear("Goran told me the oven broke")
    one = await made(asking, "The oven broke on Monday", first)
    kept = await asking.learn(
        "The oven is broken",
        source_entries=[second["id"], first["id"]],
        source_events=[*second["sources"], *first["sources"]],
    )
    await fell(asking, one, kept)
    hits = await asking.ask("What happened to the oven on Monday, Goran?")
    assert {event for hit in hits for event in hit["sources"]} == {"v0", "v1"}
    assert not any(hit.get("superseded") for hit in hits)


async def test_a_fact_stands_in_place_of_the_entry_that_it_was_made_from(asking: Asking) -> None:
    said = await asking.hear(SAID)
    fact = await made(asking, "The shop's landlord wants 1,900 euros of rent from April", said)
    [hit] = await asking.ask("What does the landlord of the shop want?")
    assert (hit["id"], hit["sources"]) == (fact["id"], said["sources"])


async def test_a_fact_that_no_word_finds_stands_in_place_of_its_entry(asking: Asking) -> None:
    asked = await asking.hear("Which town by the sea?")
    said = await asking.hear("The second.", speaker="Ana")
    fact = await made(asking, "Ana will move to Porto", said)
    hits = await asking.ask("town by the sea")
    assert [hit["id"] for hit in hits] == [asked["id"], fact["id"]]


async def test_an_entry_with_more_of_the_query_than_its_facts_stays(asking: Asking) -> None:
    said = await asking.hear(SAID)
    await made(asking, "The rent of the shop is 1,900 euros", said)
    assert SAID in await asking.texts("Which landlord phoned?")


async def test_a_dispute_ends_when_one_side_falls(asking: Asking) -> None:
    said = await asking.hear("Goran says the loan is taken")
    one = await made(asking, "The loan is taken", said)
    other = await asking.learn("The loan is open", speaker="Nadja")
    for fact, by in ((one, other), (other, one)):
        await asking.memory.update(ANA, fact["id"], {"disputed": [by["op"]]})
    assert all(hit.get("disputed") for hit in await asking.ask("Which loan is taken or open?"))
    [first, *_] = await asking.ask("Who says loan?")
    assert first["disputed"] is True
    newer = await asking.learn("The loan was refused")
    await fell(asking, other, newer)
    hits = await asking.ask("Which loan is taken or open?")
    assert not any(hit.get("disputed") for hit in hits)


async def test_a_dispute_ends_when_one_side_is_removed(asking: Asking) -> None:
    one = await asking.learn("The loan is taken")
    other = await asking.learn("The loan is open")
    await asking.memory.update(ANA, one["id"], {"disputed": [other["op"]]})
    await asking.memory.delete(ANA, other["id"])
    [hit] = await asking.ask("Is the loan taken?")
    assert "disputed" not in hit


async def test_what_is_visible_is_not_repeated(asking: Asking) -> None:
    said = await asking.hear("The harp is in Porto")
    await made(asking, "Ana's harp stands in Porto", said)
    both = await asking.learn("Two harps in Porto", source_events=[*said["sources"], "elsewhere"])
    other = await asking.hear("A harp in Lisbon")
    hits = await asking.ask("Where is the harp in Porto?", visible={*said["sources"]})
    assert {hit["id"] for hit in hits} == {both["id"], other["id"]}


@pytest.mark.parametrize(("also", "shown"), [([], True), (["e1"], False)])
async def test_a_visible_fact_is_shown_with_what_it_superseded_unless_that_is_visible(
    also: list[str], shown: bool, asking: Asking
) -> None:
    said = "The dentist Dr. Weiss expects Ana on Tuesday at 15:00"
    old = await asking.learn(said, source_events=["e1"])
    new = await asking.learn("The dentist is moved to Thursday", source_events=["e2"])
    await fell(asking, old, new)
    for seen in ("e2", new["id"]):
        hits = await asking.ask("When is the dentist?", visible=[seen, *also])
        assert [hit["earlier"][0]["text"] for hit in hits] == [said] * shown


async def test_a_visible_fact_is_shown_beside_the_older_one_that_it_replaces(
    asking: Asking,
) -> None:
    old, new = "2026-05-01T09:00:00+00:00", "2026-05-02T09:00:00+00:00"
    older = await asking.learn("The open day is on 9 May", speaker="Nora", valid_from=old)
    given = {"valid_from": new, "source_events": ["seen"]}
    newer = await asking.learn("The open day moves to 16 May", speaker="Nora", **given)
    await asking.learn("The open day bores him on 16 May", speaker="Tom", **given)
    await asking.learn("A walk in May", speaker="Nora", **given)
    hits = await asking.ask("When is the open day in May?", visible=["seen"])
    assert {hit["id"] for hit in hits} == {older["id"], newer["id"]}


async def test_a_fact_is_found_by_its_other_words_and_shown_without_them(asking: Asking) -> None:
    entry = await asking.hear("The welder locks up on Saturdays")
    await made(asking, "The welder locks up on Saturdays", entry, other_words=["caretaker, Bo"])
    await asking.hear("The glazier came by")
    (hit, *_) = await asking.ask("Who is our caretaker?")
    assert hit["text"] == "The welder locks up on Saturdays"


async def test_of_an_open_contradiction_the_later_side_stands_first(asking: Asking) -> None:
    first, second = await asking.hear(OLD), await asking.hear(SAID)
    one = await made(asking, "The rent of the shop is 1,700 euros, a month", first)
    other = await made(
        asking, "It is 1,900 euros for that shop", second, valid_from="2030-01-01T00:00:00+00:00"
    )
    for fact, by in ((one, other), (other, one)):
        await asking.memory.update(ANA, fact["id"], {"disputed": [by["op"]]})
    texts = await asking.texts("What is the rent of the shop, a month?")
    assert texts.index(other["text"]) < texts.index(one["text"])


LATER = "2030-01-01T00:00:00+00:00"


async def refuted(asking: Asking) -> tuple[Fact, Fact]:
    """A fact that somebody contradicted, and what that is by now."""
    one = await asking.learn("The board meets on Friday, says Ana", speaker="Ana")
    other = await asking.learn("The board meets on Monday")
    for fact, by in ((one, other), (other, one)):
        await asking.memory.update(ANA, fact["id"], {"disputed": [by["op"]]})
    last = await asking.learn("The board meets on Tuesday", valid_from=LATER)
    await fell(asking, other, last)
    return one, last


async def test_what_superseded_one_side_of_a_contradiction_stands_before_the_other(
    asking: Asking,
) -> None:
    one, last = await refuted(asking)
    texts = await asking.texts("When does the board meet, says Ana?")
    assert texts.index(last["text"]) < texts.index(one["text"])


async def test_a_doubtful_memory_brings_what_was_said_last_of_what_it_rests_on(
    asking: Asking,
) -> None:
    one, last = await refuted(asking)
    doubtful = await asking.learn("Zoe booked a projector around that")
    await asking.memory.update(ANA, doubtful["id"], {"doubtful": [one["op"]]})
    await link(asking, doubtful["id"], one["id"], relation="depends_on")
    texts = await asking.texts("Who booked a projector?")
    assert texts[:2] == [doubtful["text"], last["text"]]


def _fact(number: int, id_: str) -> Row:
    known = {"source_events": [], "valid_from": "2026-05-02T09:00:00+00:00"}
    return Row(number, id_, {"kind": "fact", "op": id_, "data": id_, **known})


def test_a_memory_is_lifted_to_a_score_whatever_lifted_it_before() -> None:
    once = _lifted(Candidate(_fact(1, "a"), {"words": 0.2}, ()), 0.5)
    assert _lifted(once, 0.9).score == pytest.approx(0.9)


@pytest.mark.parametrize("contradicts", [False, True])
def test_a_link_lifts_nothing_past_what_was_said_or_contradicts_it_later(contradicts: bool) -> None:
    best, later, older = (
        Candidate(_fact(number, id_), {"words": 0.5}, ()) for number, id_ in enumerate("abc")
    )
    if contradicts:
        later.row.payload["valid_from"] = "2026-05-03T09:00:00+00:00"
        later, older = (
            replace(one, disputes=frozenset(id_)) for one, id_ in ((later, "c"), (older, "b"))
        )
    else:
        older = replace(older, parts={"words": 0.5, "superseded": -0.01})
    higher = lifted_by_links([best, later, older], [["b", "c"]], 0.1)
    assert ["link" in one.parts for one in higher] == [False, True, False]
