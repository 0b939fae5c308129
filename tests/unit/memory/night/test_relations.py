"""Relations of new facts to their neighbours: the operations that claims lead to."""

from itertools import permutations
from typing import Any

import pytest

from memory.night import Thought
from memory.night.relations import Pair, Relation, evolve, settle
from memory.records import end_doubts
from memory.records.records import Fact, Operation
from nodes.night.dream import Dream, decided
from tests.support import night_memories
from tests.support.night_answers import described, pair

NOW = "2026-05-03T02:00:00+00:00"


def fact(op: str, text: str, **fields: Any) -> Fact:
    made = {"source_entries": [f"entry-{op}"], "source_events": [f"event-{op}"]}
    return night_memories.fact(op, text, **{**made, "speaker": "Ana", **fields})


OLD = fact("old", "Ana lives in Bergen.")
LATER = "2026-05-02T00:00:00+00:00"
NEW = fact("new", "Ana lives in Oslo now.", valid_from=LATER)


def settling(claims: list[Pair], *facts: Any, new: Any = ("new",), **more: Any) -> Thought:
    return settle(claims, {one["op"]: one for one in facts}, list(new), now=NOW, **more)


def claimed(said: str, **more: Any) -> Pair:
    first, relation, second = said.split()
    claim = {"fact": first, "other": second, "relation": relation, **more}
    return Pair.model_validate(claim)


def settled(one: Fact, other: Fact, relation: Relation) -> list[Operation]:
    return settling([pair(one["op"], other["op"], relation, "because")], one, other).operations


def relation_of(operations: list[Operation]) -> str:
    return str(operations[0]["after"]["relation"])


def changed(operations: list[Operation]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for one in operations:
        if one["kind"] == "change_fact":
            found.setdefault(one["target"], {}).update(one["after"])
    return found


ENDED = {"old": {"invalid_at": NOW, "superseded_by": "new"}}
DISPUTED = {"old": {"disputed": ["new"]}, "new": {"disputed": ["old"]}}


@pytest.mark.parametrize(
    ("one", "other", "relation", "changes"),
    [
        (NEW, OLD, "supersedes", ENDED),
        (OLD, NEW, "contradicts", DISPUTED),
        ({**NEW, "speaker": "Mallory", "trust": 0.3}, OLD, "contradicts", DISPUTED),
        (fact("new", "Ana lives in Oslo.", speaker="Ben"), OLD, "contradicts", DISPUTED),
        ({**NEW, "trust": 0.5}, OLD, "supersedes", ENDED),
    ],
)
def test_a_fact_is_ended_by_a_newer_one_of_its_speaker_or_of_somebody_trusted_as_much(
    one: Any, other: Any, relation: Relation, changes: dict[str, Any]
) -> None:
    operations = settled(one, other, "supersedes")
    assert relation_of(operations) == relation
    assert changed(operations) == changes
    assert {o["kind"] for o in operations} == {"link", "change_fact"}


@pytest.mark.parametrize(
    ("speaker", "said", "relation"),
    [
        ("Tom", "Tom says that Mira told him that her sister Ada bakes.", "supersedes"),
        ("Tom", "Tom sagt, dass Mira ihre Schwester Ada backen lässt.", "supersedes"),
        ("Tom", "Tom says that Ada bakes.", "contradicts"),
        ("Tom", "Tom says that Mira told him that Ada bakes for Tom.", "contradicts"),
        ("local", "local says that Mira told him that her sister Ada bakes.", "contradicts"),
    ],
)
def test_what_was_passed_on_of_somebody_that_person_may_take_back(
    speaker: str, said: str, relation: Relation
) -> None:
    old = fact("old", said, speaker=speaker, entities=["Ada"])
    new = fact("new", "Mira's sister Ada bakes nothing.", speaker="Mira", entities=["Ada"])
    new = {**new, "valid_from": LATER}
    claims = [pair("new", "old", "supersedes", "because")]
    made = settling(claims, old, new, owners=["local"]).operations
    assert relation_of(made) == relation


@pytest.mark.parametrize(
    ("fields", "by"),
    [
        ({}, "own"),
        ({"source_entries": ["entry-other"]}, None),
        ({"text": "Ana bakes.", "entities": []}, None),
        ({"speaker": "Mallory", "trust": 0.3}, None),
    ],
)
def test_what_may_be_anybodys_word_supersedes_by_what_its_source_was_found_to_say(
    fields: dict[str, Any], by: str | None
) -> None:
    unsure: Any = {"speaker": None, "trust": 0.3, "origins": ["Ana", "Olaf"]}
    awake = {**NEW, **unsure, "entities": ["Oslo"]}
    own = {**NEW, "op": "own", "text": "Ana wohnt in Oslo.", "entities": ["Bergen"], **fields}
    old = {**OLD, "entities": ["Oslo", "Bergen"]}
    claims = [pair("new", "old", "supersedes", "because")]
    changes = changed(settling(claims, old, awake, own, new=["new", "own"]).operations)
    assert changes["old"].get("superseded_by") == by
    assert ("disputed" in changes["old"]) is (by is None)


def test_duplicates_become_one_fact_with_the_sources_of_both() -> None:
    twin = fact("new", "Ana lives in Bergen!", valid_from=LATER, importance=8)
    changes = changed(settled(twin, OLD, "duplicates"))
    assert changes["old"]["source_events"] == ["event-old", "event-new"]
    assert changes["old"]["source_entries"] == ["entry-old", "entry-new"]
    assert changes["old"]["importance"] == 8
    assert changes["new"] == {"invalid_at": NOW, "superseded_by": "old"}


@pytest.mark.parametrize(
    ("text", "trust", "stays"),
    [
        ("Ana lives in Bergen with her dog Balu.", 0.9, "new"),
        ("Ana has lived in Bergen since 2019.", 0.9, "new"),
        ("Ana lives in Bergen, a town by the sea.", 0.9, "new"),
        ("Ana wohnt in Bergen.", 0.9, "old"),
        ("Ana lives in Bergen.", 0.95, "new"),
    ],
)
def test_the_duplicate_stays_that_says_all_that_both_say_or_is_trusted_more(
    text: str, trust: float, stays: str
) -> None:
    twin = fact("new", text, valid_from=LATER, trust=trust)
    changes = changed(settled(twin, OLD, "duplicates"))
    goes = {"new": "old", "old": "new"}[stays]
    assert (changes[goes]["superseded_by"], "invalid_at" in changes[stays]) == (stays, False)


SECRET = fact("old", "Ana's boss, Frau Brandt, knows nothing of Ana's application, a secret.")
NOBODY = fact("new", "Nobody at Ana's work or in her family may know of the interview.")


@pytest.mark.parametrize(
    ("second", "relation"), [(None, ""), ("relates", "relates"), ("duplicates", "duplicates")]
)
def test_a_join_that_loses_words_holds_only_if_the_model_says_it_again(
    second: Relation | None, relation: str
) -> None:
    shown = {one["op"]: one for one in (NOBODY, SECRET)}
    answers = [Dream(relations=[pair("2", "1", one, "")]) for one in ("duplicates", second) if one]
    made = decided(answers, shown, ["new"], now=NOW, night="night_1")
    assert [one["after"]["relation"] for one in made.operations[:1]] == [relation] * bool(relation)
    assert made.refused == []
    assert bool(changed(made.operations)) == (relation == "duplicates")


@pytest.mark.parametrize(
    ("other", "claimed"),
    [
        (fact("new", "Ana lives in Bergen.", speaker="Ben"), "duplicates"),
        (fact("new", "The glass arrives on Friday."), "duplicates"),
        (fact("new", "Tom has a red kite.", entities=["Tom"], valid_from=NOW), "supersedes"),
    ],
)
def test_other_speakers_words_and_subjects_are_neither_merged_nor_superseded(
    other: Fact, claimed: Relation
) -> None:
    operations = settled(other, OLD, claimed)
    assert relation_of(operations) == "relates"
    assert changed(operations) == {}


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        (pair("new", "ghost", "relates", ""), "unknown id: ghost"),
        (pair("new", "new", "relates", ""), "related to itself"),
        (
            pair("old", "third", "supersedes", ""),
            "neither 'Ana lives in Bergen.' nor 'Ana likes tea.' is new",
        ),
    ],
)
def test_claims_about_unknown_ids_are_refused(claim: Pair, why: str) -> None:
    made = settling([claim], NEW, OLD, fact("third", "Ana likes tea."))
    assert made.operations == []
    assert why in made.refused[0]


def test_a_pair_counts_once_and_no_fact_is_its_own_heir() -> None:
    facts = [fact(op, f"Ana lives in {op}.") for op in ("old", "new", "third")]
    claims = [
        pair("new", "old", "supersedes", ""),
        pair("old", "new", "contradicts", ""),
        pair("old", "third", "supersedes", ""),
        pair("third", "new", "supersedes", ""),
        pair("new", "old", "duplicates", ""),
    ]
    made = settling(claims, *facts, new=["new", "third"])
    ends = {op: one["superseded_by"] for op, one in changed(made.operations).items()}
    assert ends == {"old": "new", "new": "third"}
    assert made.refused[2:] == [
        "other claims deny it: 'Ana lives in old.' supersedes 'Ana lives in third.'"
    ]


def oven(op: str, hour: int, day: str, **fields: Any) -> Fact:
    at = f"2026-05-02T{hour:02}:00:00+00:00"
    return fact(op, f"The oven comes on {day}.", valid_from=at, entities=["oven"], **fields)


OVEN = {
    "friday": oven("friday", 1, "Friday"),
    "friday_again": oven("friday_again", 2, "Friday then"),
    "monday": oven("monday", 3, "Monday"),
    "friday_after_all": oven("friday_after_all", 4, "Friday"),
    "wednesday": oven("wednesday", 5, "Wednesday"),
    "wednesday_again": oven("wednesday_again", 6, "Wednesday then"),
}


@pytest.mark.parametrize(
    ("said", "ends"),
    [
        (
            ["wednesday supersedes monday", "monday supersedes friday"],
            {"friday": "monday", "monday": "wednesday"},
        ),
        (
            ["wednesday supersedes monday", "wednesday supersedes friday"],
            {"friday": "wednesday", "monday": "wednesday"},
        ),
        (
            ["friday_again duplicates friday", "wednesday supersedes friday"],
            {"friday_again": "friday", "friday": "wednesday"},
        ),
        (
            ["friday_again duplicates friday", "wednesday supersedes friday_again"],
            {"friday_again": "friday", "friday": "wednesday"},
        ),
        (
            ["wednesday_again duplicates wednesday", "wednesday_again supersedes friday"],
            {"wednesday_again": "wednesday", "friday": "wednesday"},
        ),
        (
            ["friday_after_all duplicates friday", "friday_after_all supersedes monday"],
            {"friday": "friday_after_all", "monday": "friday_after_all"},
        ),
        (
            ["friday_after_all duplicates friday", "monday supersedes friday"],
            {"friday": "monday", "monday": "friday_after_all"},
        ),
        (
            [
                "friday duplicates friday_after_all",
                "monday supersedes friday",
                "friday_after_all supersedes monday",
                "wednesday supersedes friday_after_all",
            ],
            {"friday": "monday", "monday": "friday_after_all", "friday_after_all": "wednesday"},
        ),
        # It was said before what it is to supersede.
        (
            ["friday_after_all duplicates friday", "monday supersedes friday_after_all"],
            {"friday": "friday_after_all"},
        ),
    ],
)
def test_the_order_of_claims_does_not_decide_and_what_was_said_last_holds(
    said: list[str], ends: dict[str, str]
) -> None:
    for each in permutations(said):
        made = settling([*map(claimed, each)], *OVEN.values(), new=OVEN)
        changes = changed(made.operations)
        assert made.refused == []
        assert {op: by for op, one in changes.items() if (by := one.get("superseded_by"))} == ends
        assert len({one["id"] for one in made.operations}) == len(made.operations)


def test_what_follows_one_another_in_one_message_ends_in_any_order() -> None:
    facts = [fact(op, f"Ana lives in {op}.") for op in ("bergen", "oslo", "paris")]
    said = ["paris supersedes bergen", "bergen supersedes oslo"]
    for each in permutations(said):
        made = settling([*map(claimed, each)], *facts, new=["bergen", "oslo", "paris"])
        assert made.refused == []
        assert changed(made.operations) == {
            "bergen": {"invalid_at": NOW, "superseded_by": "paris"},
            "oslo": {"invalid_at": NOW, "superseded_by": "bergen"},
        }


def test_a_repeat_of_what_an_owner_replaced_is_a_contradiction() -> None:
    facts = {**OVEN, "monday": oven("monday", 3, "Monday", speaker="Ben")}
    said = ["friday_after_all duplicates friday", "monday supersedes friday"]
    for each in permutations(said):
        made = settling([*map(claimed, each)], *facts.values(), new=OVEN, owners=["Ben"])
        changes = changed(made.operations)
        assert changes["friday"]["superseded_by"] == "monday"
        assert changes["monday"] == {"disputed": ["friday_after_all"]}


@pytest.mark.parametrize("relation", ["contradicts", "relates"])
def test_what_is_claimed_of_a_duplicate_counts_for_the_one_that_stays(relation: Relation) -> None:
    claims = [pair("new", "same", relation, ""), pair("same", "old", "duplicates", "")]
    for each in permutations(claims):
        made = settling([*each], OLD, SAME, BENS, new=["new", "same"])
        links = [one for one in made.operations if one["kind"] == "link"]
        assert made.refused == []
        assert [(one["target"], one["after"]["other"]) for one in links] == [
            ("old", "same"),
            ("new", "old"),
        ]
        disputed = {"disputed": ["old"]} if relation == "contradicts" else None
        assert changed(made.operations).get("new") == disputed


def test_what_contradicts_a_superseded_fact_is_only_linked_to_it() -> None:
    bens = fact("ben", "Ana lives in Rome.", speaker="Ben")
    said = ["new supersedes old", "ben contradicts old"]
    for each in permutations(said):
        made = settling([*map(claimed, each)], OLD, NEW, bens, new=["new", "ben"])
        assert made.refused == []
        assert changed(made.operations) == ENDED


@pytest.mark.parametrize("shown", [("old", "same", "new"), ("old", "same")])
def test_a_repeat_in_more_words_leaves_a_contradiction_open(shown: tuple[str, ...]) -> None:
    old = fact("old", "Ana lives in Bergen.", disputed=["new"])
    more = fact("same", "Ana lives in Bergen, a town by the sea.", valid_from=LATER)
    bens = fact("new", "Ana lives in Oslo.", speaker="Ben", disputed=["old"])
    facts = [one for one in (old, more, bens) if one["op"] in shown]
    made = settling([pair("same", "old", "duplicates", "")], *facts, new=["same"])
    changes = changed(made.operations)
    assert changes["old"]["superseded_by"] == "same"
    assert changes["same"]["disputed"] == ["new"]
    assert changes.get("new") == ({"disputed": ["old", "same"]} if "new" in shown else None)


def test_a_new_context_keeps_the_earlier_one() -> None:
    known = fact("new", "Ana lives in Oslo.", context="Where Ana lives", tags=["home"])
    shown = {"new": known}
    given = [described("new", "Ana moved for her work", ["Home", "work", "home"])]
    made = evolve(given, shown, now=NOW, night="night_1")
    [operation] = made.operations
    assert operation["after"]["tags"] == ["home", "work"]
    assert operation["after"]["earlier"] == [
        {"context": "Where Ana lives", "tags": ["home"], "until": NOW, "night": "night_1"}
    ]
    assert operation["before"] == {"context": "Where Ana lives", "tags": ["home"], "earlier": []}


def test_an_unchanged_or_unknown_context_changes_nothing() -> None:
    known = fact("new", "Ana lives in Oslo.", context="Where Ana lives", tags=["home"])
    same = described("new", "Where Ana lives", ["home"])
    made = evolve([same, described("ghost", "x", [])], {"new": known}, now=NOW, night="n")
    assert made.operations == []
    assert made.refused == ["unknown id: ghost, described as 'x'"]


def test_claims_build_on_the_claims_before_them() -> None:
    new = fact("new", "Ana lives in Bergen!", importance=8, valid_from=LATER)
    third = fact("third", "Ana lives in Bergen, too.", importance=7, valid_from=LATER)
    claims = [pair("new", "old", "duplicates", "same"), pair("third", "new", "duplicates", "")]
    made = settling(claims, OLD, new, third, new=["new", "third"])
    assert made.refused == []
    kept = changed(made.operations)
    assert kept["old"]["source_events"] == ["event-old", "event-new", "event-third"]
    assert kept["old"]["importance"] == 8
    assert [kept[op]["superseded_by"] for op in ("new", "third")] == ["old", "old"]
    assert len({one["id"] for one in made.operations}) == len(made.operations)


def test_every_contradiction_of_a_fact_is_kept() -> None:
    facts = [fact(op, f"Ana lives in {op}.") for op in ("a", "b", "c")]
    claims = [pair("a", "b", "contradicts", ""), pair("a", "c", "contradicts", "")]
    operations = settling(claims, *facts, new=["a"]).operations
    assert changed(operations)["a"] == {"disputed": ["b", "c"]}
    assert len({one["id"] for one in operations}) == len(operations)


SUM = fact("sum", "The budget is 900 euros, with the rent of Bergen.")


BOTH = ["same", "old"]
SAME = fact("same", "Ana lives in Bergen!", valid_from=LATER)
AGAIN = fact("again", f"{SUM['text']} So!", valid_from="2026-05-03T00:00:00+00:00")
BENS = fact("new", "Ana lives in Oslo.", speaker="Ben", valid_from=NOW)


@pytest.mark.parametrize(
    ("claim", "facts", "on", "after"),
    [
        (pair("new", "old", "supersedes", "moved"), (NEW, OLD), ["old"], {"doubtful": ["old"]}),
        # Of two that contradict each other, the one that the claim disproves may have fallen.
        (pair("old", "new", "supersedes", "older"), (NEW, OLD), ["old"], None),
        (pair("new", "old", "supersedes", "moved"), (BENS, OLD), ["old"], {"doubtful": ["old"]}),
        # It depends on the duplicate that stays.
        (
            pair("old", "same", "duplicates", ""),
            (OLD, SAME),
            ["same"],
            {"depends_on": ["same", "old"]},
        ),
    ],
)
def test_what_depends_on_a_fact_that_falls_is_in_doubt(
    claim: Pair, facts: tuple[Fact, ...], on: list[str], after: dict[str, Any] | None
) -> None:
    made = settling([claim], *facts, {**SUM, "depends_on": on}, new=["new", "same"])
    assert changed(made.operations).get("sum") == after


def test_what_is_found_to_depend_on_it_now_or_was_in_an_earlier_night_is_in_doubt() -> None:
    moved, reckoned = (pair("new", "old", "supersedes", ""), pair("sum", "old", "depends_on", ""))
    now = changed(settling([moved, reckoned], NEW, OLD, SUM, new=["new", "sum"]).operations)
    assert now["sum"] == {"depends_on": ["old"], "doubtful": ["old"]}
    assert "new" not in now
    earlier = {"sum": {**SUM, "depends_on": ["old"]}, "gone": {**SUM, "invalid_at": NOW}}
    then = changed(settling([moved], NEW, OLD, dependents=earlier).operations)
    assert then["sum"] == {"doubtful": ["old"]}


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ({}, {}, ["tax"]),
        ({"invalid_at": NOW}, {}, ["old", "tax"]),
        ({"disputed": ["new"]}, {}, ["old", "tax"]),
        ({}, {"disputed": ["old"]}, ["old", "tax"]),
        ({"disputed": ["new"]}, {"invalid_at": NOW}, ["tax"]),
        ({}, {"disputed": ["old"], "invalid_at": NOW}, ["tax"]),
        ({"disputed": ["who"]}, {}, ["old", "tax"]),
    ],
)
def test_a_doubt_ends_when_what_is_behind_it_holds_and_is_not_contradicted(
    old: dict[str, Any], new: dict[str, Any], left: list[str]
) -> None:
    """Nothing is known of `tax` and `who`."""
    rests: Any = {**SUM, "doubtful": ["old", "tax"]}
    facts: Any = {"old": {**OLD, **old}, "new": {**NEW, **new}, "sum": rests}
    after = changed(end_doubts(facts, [], "")).get("sum", rests)
    assert after["doubtful"] == left
    rests["invalid_at"] = NOW
    assert end_doubts(facts, [], "") == []


@pytest.mark.parametrize(
    ("text", "speaker", "left"),
    [
        ("The committee meets in Oslo on 4 May.", "Ben", ["ours"]),
        ("The committee meets in Oslo on 22 April.", "Ben", []),
        ("The mill is old.", "Ben", []),
        ("The committee meets in Oslo on 4 May.", "Ana", []),
    ],
)
def test_what_is_said_in_place_of_a_contradiction_may_go_on(
    text: str, speaker: str, left: list[str]
) -> None:
    ours = fact("ours", "The committee meets in Oslo on 22 April.", disputed=["theirs"])
    gone: Any = {"speaker": "Ben", "invalid_at": NOW, "superseded_by": "instead"}
    theirs = fact("theirs", "The committee meets in Oslo on 24 April.", **gone)
    rests = {**SUM, "depends_on": ["ours"], "doubtful": ["ours"]}
    every = (ours, theirs, fact("instead", text, speaker=speaker), rests)
    facts: Any = {one["op"]: one for one in every}
    assert changed(end_doubts(facts, [], "")).get("sum", rests)["doubtful"] == left


def test_what_contradicts_a_duplicate_contradicts_the_fact_that_stays() -> None:
    same = {**SAME, "disputed": ["theirs", "old"]}
    rests = {**SUM, "depends_on": BOTH, "doubtful": BOTH}
    claims = [pair("old", "same", "duplicates", "")]
    after = changed(settling(claims, OLD, same, rests, new=["same"]).operations)
    assert (after["old"]["disputed"], after["sum"]["doubtful"]) == (["theirs"], ["old"])


def test_a_claim_that_is_no_contradiction_leaves_nothing_in_doubt() -> None:
    oven = fact("new", "The oven comes on Friday.", speaker="Ben", valid_from=NOW)
    claims = [pair("new", "old", "supersedes", "wrong")]
    made = settling(claims, oven, OLD, {**SUM, "depends_on": ["old"]})
    assert relation_of(made.operations) == "relates"
    assert changed(made.operations) == {}


def test_what_is_said_again_is_in_doubt_no_more() -> None:
    doubtful = {**SUM, "depends_on": ["old", "tax"], "doubtful": ["old"]}
    made = settling([pair("sum", "again", "duplicates", "")], doubtful, AGAIN, new=["again"])
    after = changed(made.operations)["sum"]
    assert (after["doubtful"], after["depends_on"]) == ([], ["tax"])


def test_a_later_night_may_end_what_an_earlier_one_overlooked_of_the_same_entity() -> None:
    one = fact("one", "The choir meets on Tuesday.", entities=["choir"])
    two = fact("two", "The choir meets on Friday.", entities=["Choir"], valid_from=NOW)
    claims = [pair("two", "one", "supersedes", "moved")]
    assert changed(settling(claims, one, two, new=[]).operations)["one"]["superseded_by"] == "two"
    assert settling(claims, {**one, "entities": ["band"]}, two, new=[]).refused
