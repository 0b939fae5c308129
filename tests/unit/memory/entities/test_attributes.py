"""Attributes from observations, with their evidence, and nothing lost."""

from collections.abc import Sequence
from typing import Any

import pytest

from memory.entities.entities import after, changed
from memory.night import ripe
from memory.records.profiles import Attribute, EntityProfile
from nodes.night.consolidate_entities import (
    MOST_ATTRIBUTES,
    MOST_REPLACED,
    AttributeGiven,
    Consolidated,
    consolidated,
)
from tests.support.night_answers import attribute_given
from tests.support.night_memories import ADA, NOW, ada, news, noticed, observation

FIVE = [observation(n) for n in range(1, 6)]
TEA = attribute_given("Preference  Drink", " Prefers\ntea. ", ["o1", "o2"])


def made_of(
    *given: AttributeGiven,
    profile: EntityProfile | None = None,
    prune: bool = False,
    owners: Sequence[str] = ("Ben",),
) -> Consolidated:
    one = profile or ada(*FIVE)
    return consolidated(news(one), given, now=NOW, prune=prune, owners=owners)


def applied(made: Consolidated, profile: EntityProfile | None = None) -> EntityProfile:
    return after({ADA: profile or ada(*FIVE)}, {}, made.operations)[0][ADA]


def attribute(value: str, *evidence: str, **fields: Any) -> Attribute:
    made: Attribute = {"value": value, "evidence": list(evidence), "at": "before", "replaced": []}
    return {**made, **fields}  # type: ignore[typeddict-item] # made of parts


def test_five_waiting_observations_are_ripe_and_four_are_not() -> None:
    done = observation(6, consolidated=True)
    assert ripe(ada(*FIVE, done), 5) == FIVE
    assert ripe(ada(*FIVE[:4], done), 5) == []


def test_an_attribute_has_a_plain_name_one_line_and_its_evidence() -> None:
    profile = applied(made_of(TEA))
    assert profile["attributes"] == {
        "preference_drink": attribute("Prefers tea.", "o1", "o2", at=NOW)
    }
    assert [one["consolidated"] for one in profile["observations"]] == [True] * 5


def test_an_attribute_rests_on_the_words_of_everybody_but_owners_in_its_evidence() -> None:
    [stated] = applied(made_of(TEA, owners=("Ada",)))["attributes"].values()
    assert stated["origins"] == ["Ben"]
    more = attribute_given("Preference drink", "Prefers tea.", ["o7"])
    laundered = observation(7, "Ada prefers tea.", origins=["the tool read_page"])
    before = ada(*FIVE[1:], laundered, attributes={"preference_drink": stated})
    told = made_of(more, profile=before, owners=("Ada", "Ben"))
    [again] = applied(told, before)["attributes"].values()
    assert again["origins"] == ["Ben", "the tool read_page"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (attribute_given("home", "In Oslo.", []), "home (In Oslo.): no evidence among"),
        (attribute_given("home", "In Oslo.", ["o9"]), "home (In Oslo.): no evidence among"),
        (attribute_given("home", "In Oslo.", ["o6"]), "home (In Oslo.): no evidence among"),
        (attribute_given(" ", "Lives in Oslo.", ["o1"]), "without a name"),
        (attribute_given("home", "\n", ["o1"]), "without a name or a value"),
        (attribute_given("walk", "Walks an old dog at dawn.", ["o1"]), "other lines than the ones"),
        (attribute_given("bond", "The assistant helped Ada.", ["o1"]), "speaks of the assistant"),
    ],
    ids=["none", "unknown", "not shown", "no name", "no value", "other lines", "assistant"],
)
def test_attributes_without_evidence_or_about_the_assistant_are_refused(
    given: AttributeGiven, why: str
) -> None:
    other = observation(7, "Ada walks an old dog at dawn.")
    before = ada(*FIVE, observation(6, consolidated=True), other)
    made = made_of(given, profile=before)
    assert made.operations == []
    assert [why in one for one in made.refused] == [True]


def test_one_refused_attribute_does_not_take_the_others_with_it() -> None:
    made = made_of(attribute_given("home", "Oslo", ["ghost"]), TEA)
    assert list(applied(made)["attributes"]) == ["preference_drink"]
    assert len(made.refused) == 1
    assert made_of().operations == []


def drinks(value: str, **fields: Any) -> Any:
    before = ada(*FIVE, attributes={"preference_drink": attribute(value, "o0", **fields)})
    return applied(made_of(TEA, profile=before), before)["attributes"]["preference_drink"]


def test_a_changed_attribute_keeps_its_earlier_values_the_newest_ones() -> None:
    made = drinks("Prefers coffee.")
    assert made["value"] == "Prefers tea."
    assert made["replaced"] == [{"value": "Prefers coffee.", "evidence": ["o0"], "at": "before"}]
    old = [{"value": str(n), "evidence": [], "at": "then"} for n in range(MOST_REPLACED)]
    many = drinks("Cocoa.", replaced=old)["replaced"]
    assert [one["value"] for one in many] == [*map(str, range(1, 10)), "Cocoa."]
    assert drinks("Prefers tea.") == attribute("Prefers tea.", "o0", "o1", "o2")


def test_a_full_profile_accepts_only_known_attributes() -> None:
    full = {f"a{n}": attribute("x", "o0") for n in range(MOST_ATTRIBUTES)}
    made = made_of(
        TEA, attribute_given("a3", "Likes tea.", ["o3"]), profile=ada(*FIVE, attributes=full)
    )
    assert "there are 40 attributes already" in made.refused[0]
    assert [list(one["after"]["attributes"]) for one in made.operations] == [["a3"]]


def test_only_shown_observations_without_citation_are_pruned() -> None:
    old = observation(6, consolidated=True)
    before = ada(*FIVE, old)
    profile = applied(made_of(TEA, profile=before, prune=True), before)
    assert [one["id"] for one in profile["observations"]] == ["o1", "o2", "o6"]


def test_observations_made_meanwhile_stay_pending() -> None:
    for prune in (False, True):
        late = after({ADA: ada(*FIVE)}, {}, [noticed(observation(9))])[0]
        profile = applied(made_of(TEA, prune=prune), late[ADA])
        assert [o["consolidated"] for o in profile["observations"] if o["id"] == "o9"] == [False]
        assert "preference_drink" in profile["attributes"]


def test_a_missing_observation_conflicts_only_as_evidence_and_a_changed_attribute_stays() -> None:
    made = made_of(TEA)
    [operation] = made.operations
    without_five = changed(ada(*FIVE[:4]), operation)
    assert without_five is not None
    assert [one["id"] for one in without_five["observations"]] == ["o1", "o2", "o3", "o4"]
    assert changed(ada(*FIVE[1:]), operation) is None
    other = ada(*FIVE, attributes={"preference_drink": attribute("Prefers cocoa.", "o5")})
    assert changed(other, operation) is None
    assert applied(made, other) == other
