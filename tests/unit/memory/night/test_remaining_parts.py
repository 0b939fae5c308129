"""What remains of a fact that a newer one supersedes in part."""

from itertools import permutations
from typing import Any

import pytest

from memory.night.relations import Relation
from memory.records import part_id
from tests.support.night_answers import pair
from tests.unit.memory.night.test_relations import (
    LATER,
    NEW,
    NOW,
    OLD,
    changed,
    claimed,
    fact,
    settling,
)

PARTY: Any = fact(
    "party", "Anas Budget sind 1.200 Euro, und es kommen 26 Gäste.", entities=["Ana", "Feier"]
)
RAISED = fact("new", "Ana's budget is 1,500 euros.", valid_from=LATER, entities=["Ana"])


def remaining(text: str, relation: Relation = "supersedes") -> tuple[list[Any], list[str]]:
    made = settling([claimed(f"new {relation} party", remains=text)], PARTY, RAISED)
    assert changed(made.operations)["party"]
    return [one["after"] for one in made.operations if one["kind"] == "add_fact"], made.refused


@pytest.mark.parametrize("text", ["26 guests will come to Ana.", "Es kommen 26 Gäste."])
def test_the_part_of_a_superseded_fact_that_still_holds_becomes_a_fact(text: str) -> None:
    [made], refused = remaining(text)
    kept = ("source_entries", "source_events", "speaker", "valid_from", "trust", "importance")
    assert made["text"] == text
    assert {name: made[name] for name in kept} == {name: dict(PARTY)[name] for name in kept}
    assert made["entities"] == (["Ana"] if "Ana" in text else [])
    assert refused == []


def test_a_part_may_be_in_the_first_person_as_its_speaker_said_it() -> None:
    old = {**OLD, "text": "My job pays 50 euros an hour. My boss is called Helga."}
    claim = claimed("new supersedes old", remains="My boss is called Helga.")
    made = settling([claim], old, {**NEW, "text": "My job now pays 60 euros an hour."})
    added = [one["after"]["speaker"] for one in made.operations if one["kind"] == "add_fact"]
    assert added == ["Ana"]


@pytest.mark.parametrize(
    "text",
    [
        "62 guests will come.",
        "Anas Budget sind 1.200 Euro, und es kommen 26 Gäste.",
        "The assistant keeps 26 guests.",
        "none",
        "Nothing remains.",
        "Es gibt Kuchen.",
    ],
)
def test_what_is_no_part_of_a_superseded_fact_is_refused(text: str) -> None:
    made, refused = remaining(text)
    assert made == []
    assert text in refused[0]


BUDGET = "The budget is 1200 euros and 26 guests come."
ALONE = "Ben brings the oven and Cora the bread."
PICNIC = "The picnic is on 14 June in the park and 40 guests come."
KILN = "The oven costs 900 euros and comes on Friday at 10."


@pytest.mark.parametrize(
    ("was", "now", "text", "stands"),
    [
        (BUDGET, "The budget is 900 euros now.", "26 guests come.", True),
        (BUDGET, "The budget is 900 euros now.", "36 guests come.", False),
        (BUDGET, "The budget is 900 euros now.", "1200 guests come.", False),
        (BUDGET, "The budget is 900 euros now.", "26 guests do not come.", False),
        (BUDGET, "The budget is 900 euros now.", "The budget is 1200 euros.", False),
        (BUDGET, "The budget is 900 euros now.", "The budget is 1200 euros for 26 guests.", False),
        (BUDGET, "The budget is 900 euros now.", "26 invitados no vienen.", False),
        (BUDGET, "30 guests come now.", "The budget is 1200 euros.", True),
        (BUDGET, "30 guests come now.", "The budget is 26 euros.", False),
        (ALONE, "Ben brings the flour now.", "Cora brings the bread.", True),
        (ALONE, "Ben brings the flour now.", "Ben brings the bread.", False),
        (KILN, "The oven costs 800 euros now.", "The oven comes on Friday at 10.", True),
        (KILN, "The oven comes on Monday now.", "The oven costs 900 euros.", True),
        (KILN, "The oven comes on Monday now.", "The oven comes on Friday.", False),
        (KILN, "The oven comes on Monday now.", "The oven comes.", False),
        (PICNIC, "The picnic is on 20 June.", "40 guests come to the picnic.", True),
        (PICNIC, "The picnic moved to the hall on 20 June.", "The picnic is in the park.", False),
        (PICNIC, "The picnic is called off.", "The picnic is on 14 June.", False),
        ("Ana's rent is 700.", "Ana's rent is 800.", "Ana's old rent was 700.", False),
        ("Ana bakes and likes tea.", "Ana likes coffee now.", "Ana likes tea.", False),
        ("Tom eats no nuts and likes tea.", "Tom likes coffee.", "Tom eats no nuts.", True),
        ("Tom eats no nuts and likes tea.", "Tom likes coffee.", "Tom eats nuts.", False),
        ("Ich wohne in Bergen und arbeite hier.", "Ich wohne in Oslo.", "Ana arbeitet hier.", True),
        ("Vivo en Bergen y trabajo aqu\u00ed.", "Ahora vivo en Oslo.", "Vivo en Bergen.", False),
    ],
)
def test_nothing_remains_that_the_newer_fact_changes(
    was: str, now: str, text: str, *, stands: bool
) -> None:
    claim = claimed("new supersedes old", remains=text)
    old, new = fact("old", was), fact("new", now, valid_from=LATER)
    named = {"entities": ["Ana", "Ben", "Cora", "Tom"]}
    made = settling([claim], {**old, **named}, {**new, **named})
    parts = [one["after"]["text"] for one in made.operations if one["kind"] == "add_fact"]
    assert parts == ([text] if stands else [])
    assert len(made.refused) == (not stands)


@pytest.mark.parametrize(
    ("text", "on"), [("We cook for 26 Gäste.", "part"), ("The budget buys wine.", "doubt")]
)
def test_what_rests_on_the_part_that_remains_is_not_in_doubt(text: str, on: str) -> None:
    claim = claimed("new supersedes party", remains="Es kommen 26 Gäste.")
    cook = fact("cook", text, depends_on=["party"])
    made = settling([claim], PARTY, RAISED, dependents={"cook": cook}).operations
    part = part_id("party", "new")
    left = {"depends_on": ["party", part]} if on == "part" else {"doubtful": ["party"]}
    assert changed(made)["cook"] == left
    linked = [one for one in made if one["kind"] == "link" and part in str(one)]
    assert any("depends_on" in str(one) for one in linked) is (on == "part")


def test_what_is_claimed_of_a_fact_counts_for_the_part_that_remains() -> None:
    claim = claimed("new supersedes party", remains="Es kommen 26 Gäste.")
    bens = fact("ben", "Es kommen 30 Gäste zur Feier.", speaker="Ben", entities=["Feier"])
    both = [claim, pair("ben", "party", "contradicts", "another number")]
    made = settling(both, PARTY, RAISED, bens, new=["new", "ben"])
    part = part_id("party", "new")
    assert made.refused == []
    assert changed(made.operations)["ben"] == {"disputed": [part]}
    assert changed(made.operations)[part] == {"disputed": ["ben"]}


def test_nothing_remains_of_a_fact_that_is_only_contradicted() -> None:
    assert remaining("26 guests will come.", "contradicts") == ([], [])


@pytest.mark.parametrize(
    ("text", "remains", "falls"),
    [
        ("Es kommen 30 Gäste zu Ana.", "", True),
        ("Ana's budget is 1,600 euros now.", "", False),
        ("Ana's budget is 1,600 euros now.", "Es kommen 26 Gäste.", False),
    ],
)
def test_what_supersedes_a_fact_that_fell_in_part_supersedes_the_part_that_it_is_about(
    text: str, remains: str, falls: bool
) -> None:
    last = fact("last", text, valid_from="2026-05-02T12:00:00+00:00", entities=["Ana"])
    raised = claimed("new supersedes party", remains="Es kommen 26 Gäste.")
    again = claimed("last supersedes party", remains=remains)
    part = part_id("party", "new")
    for each in permutations([raised, again]):
        made = settling([*each], PARTY, RAISED, last, new=["new", "last"])
        changes = changed(made.operations)
        assert made.refused == []
        assert changes["party"]["superseded_by"] == "new"
        assert changes.get(part, {}).get("superseded_by") == ("last" if falls else None)


def test_a_repeat_of_one_part_of_a_superseded_fact_ends_no_other() -> None:
    guests = fact("last", "Anas Budget: es kommen 26 Gäste.", valid_from=NOW, entities=["Ana"])
    said = ["last duplicates party", "new supersedes party"]
    for each in permutations(said):
        made = settling([*map(claimed, each)], PARTY, RAISED, guests, new=["new", "last"])
        assert changed(made.operations).keys() == {"party"}
        assert made.refused == []
