"""Entity profiles: observations, relationship, aliases, and the overlay of operations."""

from datetime import date, timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.entities.entities import after
from memory.records.operations import meet_entity, observe_entity
from memory.records.profiles import (
    MOST_ALIASES,
    Attribute,
    EntityProfile,
    Observation,
    bonus_of,
    entity_id,
    is_blank,
    met,
    names_of,
    new_profile,
    observation_id,
    observed,
    speaks_as,
    state_of,
)
from memory.records.records import Operation
from tests.support.night_memories import observation
from tests.support.tool_calls import EVENT

AT = "2026-03-02T09:00:00+00:00"


def profile(name: str = "Ana", **changes: Any) -> EntityProfile:
    made = new_profile(entity_id(name.casefold()), name, AT)
    return cast(EntityProfile, {**made, **changes})


def having(*observations: Observation, **changes: Any) -> EntityProfile:
    return profile(observations=list(observations), **changes)


def ids(one: EntityProfile) -> list[str]:
    return [observation["id"] for observation in one["observations"]]


def meeting(one: EntityProfile, event: str, day: str) -> EntityProfile:
    return met(one, sender="Ana", event_id=event, at=f"{day}T08:00", now=f"{day}T09:00")


def days(count: int) -> list[str]:
    return [str(date(2026, 3, 1) + timedelta(days=n)) for n in range(count)]


@pytest.mark.parametrize(
    ("favorability", "state"),
    [
        (0.0, "stranger"),
        (0.2499, "stranger"),
        (0.25, "acquaintance"),
        (0.4999, "acquaintance"),
        (0.5, "friend"),
        (0.7499, "friend"),
        (0.75, "close"),
        (1.0, "close"),
    ],
)
def test_a_state_holds_from_its_threshold_on(favorability: float, state: str) -> None:
    assert state_of(favorability) == state


def test_acquaintance_on_day_3_friend_on_day_7_close_on_day_14() -> None:
    one, states = profile(), []
    for day in days(14):
        one = meeting(one, day, day)
        states.append(one["relationship"]["state"])
    assert [states.index(name) + 1 for name in ("acquaintance", "friend", "close")] == [3, 7, 14]
    assert one["relationship"]["interactions"] == 14


def test_a_thousand_messages_on_one_day_count_as_one_day() -> None:
    once = many = meeting(profile(), "first", "2026-03-02")
    for number in range(1_000):
        many = meeting(many, f"e{number}", "2026-03-02")
    assert many["relationship"]["favorability"] == once["relationship"]["favorability"] == 0.1
    assert many["relationship"]["interactions"] == 1_001
    assert len(many["relationship"]["answered"]) == 20


def test_a_clock_that_goes_back_and_forth_adds_nothing() -> None:
    one = meeting(profile(), "a", "2026-03-02")
    back = meeting(one, "b", "2026-03-01")
    again = meeting(back, "c", "2026-03-02")
    assert again["relationship"]["favorability"] == one["relationship"]["favorability"]
    assert back["relationship"]["last_at"] == "2026-03-02T08:00"


def test_a_sender_is_met_once_an_event_and_a_person_unless_it_was_something_else() -> None:
    one = meeting(profile(), "a", "2026-03-02")
    assert meeting(one, "a", "2026-03-02") is one
    assert meeting(one, "a", "2026-03-09") is one
    assert one["entity_type"] == "person"
    assert meeting(profile(entity_type="thing"), "a", "2026-03-02")["entity_type"] == "thing"


@given(st.lists(st.integers(0, 400), max_size=60), st.floats(0, 1))
def test_favorability_stays_between_0_and_1_and_never_falls(on: list[int], start: float) -> None:
    first = profile()
    one: EntityProfile = {**first, "relationship": {**first["relationship"], "favorability": start}}
    for number, day in enumerate(on):
        before = one["relationship"]["favorability"]
        one = meeting(one, str(number), str(date(2026, 1, 1) + timedelta(days=day)))
        assert before <= one["relationship"]["favorability"] <= 1
        assert one["relationship"]["state"] == state_of(one["relationship"]["favorability"])


def test_friends_and_close_ones_add_to_importance_and_nobody_else() -> None:
    def state(name: str) -> EntityProfile:
        return profile(relationship={**profile()["relationship"], "state": name})

    names = ("stranger", "acquaintance", "friend", "close")
    assert [bonus_of(state(name)) for name in names] == [0, 0, 1, 2]
    assert bonus_of(None) == 0


def test_observations_stand_oldest_first_whatever_order_they_come_in() -> None:
    one = having()
    for number in (2, 1, 3):
        one = observed(one, observation(number), kept=10, now=AT)
    assert ids(one) == ["o1", "o2", "o3"]
    # Also when the words are known from another source, or old.
    again = observation(2, observation(1)["text"])
    assert ids(observed(having(observation(1)), again, kept=10, now=AT)) == ["o1", "o2"]
    full = having(observation(5), observation(6))
    assert "o1" in ids(observed(full, observation(1), kept=2, now=AT))


@pytest.mark.parametrize(
    "again",
    [
        observation(1, text="other words"),
        observation(9, text="ADA  likes tea number 1", sources=["journal", "e1"]),
    ],
    ids=["the same id", "the same words from the same source"],
)
def test_the_same_observation_twice_is_one(again: Observation) -> None:
    one = having(observation(1))
    assert observed(one, again, kept=10, now="later") is one


def test_the_oldest_consolidated_observations_go_first() -> None:
    one = having(
        observation(1), observation(2, consolidated=True), observation(3, consolidated=True)
    )
    one = observed(one, observation(4), kept=3, now=AT)
    assert ids(one) == ["o1", "o3", "o4"]
    one = observed(one, observation(5), kept=3, now=AT)
    assert ids(one) == ["o1", "o4", "o5"]
    one = observed(one, observation(6), kept=3, now=AT)
    assert ids(one) == ["o4", "o5", "o6"]


def cites(*ids_: str) -> dict[str, Attribute]:
    return {"taste": {"value": "tea", "evidence": list(ids_), "at": AT, "replaced": []}}


def test_cited_observations_stay() -> None:
    standing = (observation(1), observation(2, consolidated=True), observation(3))
    one = observed(having(*standing, attributes=cites("o1", "o2")), observation(4), kept=3, now=AT)
    assert ids(one) == ["o1", "o2", "o4"]
    one = {**one, "attributes": cites("o1", "o2", "o4")}
    assert len(observed(one, observation(5), kept=3, now=AT)["observations"]) == 4


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=80), st.integers(1, 20))
def test_observations_are_bounded(given_: list[tuple[int, bool]], kept: int) -> None:
    one = having()
    for number, done in given_:
        one = observed(one, observation(number, consolidated=done), kept=kept, now=AT)
        assert f"o{number}" in ids(one)
    assert len(one["observations"]) <= kept


def test_an_observation_id_derives_from_sources_and_position() -> None:
    first = observation_id("entity_a", ["e1"], "likes tea", [])
    assert observation_id("entity_a", ["e1"], "likes coffee", []) == first
    standing = [observation(1, id=first, text="likes tea")]
    assert observation_id("entity_a", ["e1"], "Likes  tea.", standing) == first
    other = observation_id("entity_a", ["e1"], "likes coffee", standing)
    assert other not in (first, observation_id("entity_a", ["e2"], "likes coffee", standing))
    assert observation_id("entity_b", ["e1"], "likes tea", []) != first


def test_the_first_sender_with_a_name_owns_it_and_an_alias_makes_no_sender() -> None:
    one = profile("Bea")
    assert speaks_as(one, "bea")
    one = {**one, "senders": ["Bea"]}
    assert speaks_as(one, "Bea")
    assert not speaks_as(one, "bea")
    assert not speaks_as(one, "@Bea")
    assert not speaks_as(profile("Bea", aliases=["Queen"]), "Queen")


def test_a_profile_is_found_under_its_name_and_aliases() -> None:
    known = profile("Bea", aliases=["Bee", "bea", "Queen B."])
    assert names_of(known) == ["bea", "bee", "queen b."]


def test_a_profile_with_only_a_name_is_blank() -> None:
    assert is_blank(None)
    assert is_blank(profile())
    assert not is_blank(having(observation(1)))
    assert not is_blank(profile(aliases=["A."]))


def observe(name: str, number: int = 1, *aliases: str) -> Operation:
    target = entity_id(name.casefold())
    return observe_entity(
        target, name, observation(number), aliases=aliases, kept=10, now=AT, reason="test"
    )


def meet(sender: str, event: str = "e") -> Operation:
    target = entity_id(sender.casefold())
    return meet_entity(target, {**EVENT, "id": event, "sender": sender}, now=AT, reason="test")


def test_operations_make_profiles_and_claim_their_names() -> None:
    found, names = after({}, {}, [observe("Bea", 1, "Bee"), observe("Bea", 2), meet("Ana")])
    bea, ana = found[entity_id("bea")], found[entity_id("ana")]
    assert (bea["name"], bea["aliases"], ids(bea)) == ("Bea", ["Bee"], ["o1", "o2"])
    assert (ana["senders"], ana["relationship"]["interactions"]) == (["Ana"], 1)
    assert names == {"bea": bea["id"], "bee": bea["id"], "ana": ana["id"]}


def test_operations_applied_twice_change_nothing_more() -> None:
    operations = [observe("Bea", 1, "Bee"), meet("Bea"), observe("Ana", 2)]
    once = after({}, {}, operations)
    assert after(*once, operations) == once


def test_a_taken_alias_is_not_claimed_and_aliases_are_bounded() -> None:
    found, names = after({}, {}, [observe("Bea", 1, "Bee"), observe("Ana", 2, "bee", "Bea", "A.")])
    assert found[entity_id("ana")]["aliases"] == ["A."]
    assert names["bee"] == names["bea"] == entity_id("bea")
    many = [observe("Bea", n, f"alias {n}") for n in range(MOST_ALIASES + 5)]
    assert len(after({}, {}, many)[0][entity_id("bea")]["aliases"]) == MOST_ALIASES
