"""Relations of new facts to their neighbours: the operations that claims lead to."""

from typing import Any

import pytest

from memory.records.records import Fact, Operation
from nodes.night.dream import Dream, Pair, Relation, decided, evolve, settle
from tests.support import night_memories
from tests.support.night_answers import described, pair

NOW = "2026-05-03T02:00:00+00:00"


def fact(op: str, text: str, **fields: Any) -> Fact:
    made = {"source_entries": [f"entry-{op}"], "source_events": [f"event-{op}"]}
    return night_memories.fact(op, text, **{**made, "speaker": "Ana", **fields})


OLD = fact("old", "Ana lives in Bergen.")
LATER = "2026-05-02T00:00:00+00:00"
NEW = fact("new", "Ana lives in Oslo now.", valid_from=LATER)


def settled(one: Fact, other: Fact, relation: Relation) -> list[Operation]:
    claims = [pair(one["op"], other["op"], relation, "because")]
    return settle(claims, {f["op"]: f for f in (one, other)}, [NEW["op"]], now=NOW).operations


def relation_of(operations: list[Operation]) -> str:
    return str(operations[0]["after"]["relation"])


def changed(operations: list[Operation]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for one in operations:
        if one["kind"] == "change_fact":
            found.setdefault(one["target"], {}).update(one["after"])
    return found


def test_a_superseded_fact_gets_an_end_and_a_pointer() -> None:
    operations = settled(NEW, OLD, "supersedes")
    assert relation_of(operations) == "supersedes"
    assert changed(operations) == {"old": {"invalid_at": NOW, "superseded_by": "new"}}
    assert {o["kind"] for o in operations} == {"link", "change_fact"}


PARTY = fact(
    "party", "Anas Budget sind 1.200 Euro, und es kommen 26 Gäste.", entities=["Ana", "Feier"]
)
RAISED = fact(
    "new", "Ana's budget is 1,500 euros.", valid_from="2026-05-02T00:00:00+00:00", entities=["Ana"]
)


def remaining(
    text: str, relation: Relation = "supersedes"
) -> tuple[list[dict[str, Any]], list[str]]:
    claim = pair("new", "party", relation, "because").model_copy(update={"remains": text})
    made = settle([claim], {"party": PARTY, "new": RAISED}, ["new"], now=NOW)
    assert changed(made.operations)["party"]
    return [one["after"] for one in made.operations if one["kind"] == "add_fact"], made.refused


@pytest.mark.parametrize("text", ["26 guests will come to Ana.", "Es kommen 26 Gäste."])
def test_the_part_of_a_superseded_fact_that_still_holds_becomes_a_fact(text: str) -> None:
    [made], refused = remaining(text)
    kept = ("source_entries", "source_events", "speaker", "valid_from", "trust", "importance")
    assert made["text"] == text
    assert {name: made[name] for name in kept} == {name: PARTY[name] for name in kept}
    assert made["entities"] == (["Ana"] if "Ana" in text else [])
    assert refused == []


def test_a_part_may_be_in_the_first_person_as_its_speaker_said_it() -> None:
    text = "My job pays 50 euros an hour. My boss is called Helga."
    old = {**OLD, "text": text, "speaker": "Ana"}
    claim = pair("new", "old", "supersedes", "because")
    claim = claim.model_copy(update={"remains": "My boss is called Helga."})
    facts: Any = {"old": old, "new": {**NEW, "text": "My job now pays 60 euros an hour."}}
    made = settle([claim], facts, ["new"], now=NOW)
    assert [one["after"]["speaker"] for one in made.operations if one["kind"] == "add_fact"] == [
        "Ana"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "62 guests will come.",
        "Anas Budget sind 1.200 Euro, und es kommen 26 Gäste.",
        "The assistant keeps 26 guests.",
    ],
)
def test_what_is_no_part_of_a_superseded_fact_is_refused(text: str) -> None:
    made, refused = remaining(text)
    assert made == []
    assert text in refused[0]


def test_nothing_remains_of_a_fact_that_is_only_contradicted() -> None:
    assert remaining("26 guests will come.", "contradicts") == ([], [])


def test_an_older_fact_does_not_supersede_a_newer_one() -> None:
    operations = settled(OLD, NEW, "supersedes")
    assert relation_of(operations) == "contradicts"
    assert changed(operations) == {"old": {"disputed": ["new"]}, "new": {"disputed": ["old"]}}


def test_a_less_trusted_speaker_contradicts_and_does_not_supersede() -> None:
    stranger = {**NEW, "speaker": "Mallory", "trust": 0.3}
    operations = settled(stranger, OLD, "supersedes")  # type: ignore[arg-type] # a fact with others
    assert relation_of(operations) == "contradicts"
    assert "invalid_at" not in changed(operations)["old"]


def test_speakers_may_take_back_their_own_words() -> None:
    overheard = {**NEW, "trust": 0.5}
    operations = settled(overheard, OLD, "supersedes")  # type: ignore[arg-type] # a fact with others
    assert changed(operations) == {"old": {"invalid_at": NOW, "superseded_by": "new"}}


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
    new = {
        **NEW,
        "text": "Mira's sister Ada bakes nothing.",
        "speaker": "Mira",
        "entities": ["Ada"],
    }
    claims = [pair("new", "old", "supersedes", "because")]
    facts: Any = {"old": old, "new": new}
    made = settle(claims, facts, ["new"], now=NOW, owners=["local"]).operations
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
    facts: Any = {"old": {**OLD, "entities": ["Oslo", "Bergen"]}, "new": awake, "own": own}
    claims = [pair("new", "old", "supersedes", "because")]
    changes = changed(settle(claims, facts, ["new", "own"], now=NOW).operations)
    assert changes["old"].get("superseded_by") == by
    assert ("disputed" in changes["old"]) is (by is None)


def test_duplicates_become_one_fact_with_the_sources_of_both() -> None:
    twin = fact("new", "Ana lives in Bergen!", valid_from="2026-05-02T00:00:00+00:00", importance=8)
    changes = changed(settled(twin, OLD, "duplicates"))
    assert changes["old"]["source_events"] == ["event-old", "event-new"]
    assert changes["old"]["source_entries"] == ["entry-old", "entry-new"]
    assert changes["old"]["importance"] == 8
    assert changes["new"] == {"invalid_at": NOW, "superseded_by": "old"}


def test_the_more_trusted_duplicate_stays() -> None:
    twin = fact("new", "Ana lives in Bergen.", trust=0.95)
    changes = changed(settled(twin, OLD, "duplicates"))
    assert changes["old"]["superseded_by"] == "new"


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        ("Ana lives in Bergen with her dog Balu.", "new"),
        ("Ana has lived in Bergen since 2019.", "new"),
        ("Ana lives in Bergen, a town by the sea.", "old"),
        ("Ana wohnt in Bergen.", "old"),
    ],
)
def test_the_duplicate_stays_that_has_the_names_and_numbers_of_both(text: str, stays: str) -> None:
    changes = changed(settled(fact("new", text, valid_from=LATER), OLD, "duplicates"))
    goes = {"new": "old", "old": "new"}[stays]
    assert (changes[goes]["superseded_by"], "invalid_at" in changes[stays]) == (stays, False)


SECRET = fact("old", "Ana's boss, Frau Brandt, knows nothing of Ana's application, a secret.")
NOBODY = fact("new", "Nobody at Ana's work or in her family may know of the interview.")


@pytest.mark.parametrize(
    ("second", "relation"),
    [(None, "relates"), ("relates", "relates"), ("duplicates", "duplicates")],
)
def test_a_join_that_loses_words_holds_only_if_the_model_says_it_again(
    second: Relation | None, relation: str
) -> None:
    shown = {one["op"]: one for one in (NOBODY, SECRET)}
    answers = [Dream(relations=[pair("2", "1", one, "")]) for one in ("duplicates", second) if one]
    made = decided(answers, shown, ["new"], now=NOW, night="night_1")
    assert (relation_of(made.operations), made.refused) == (relation, [])
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
    shown = {one["op"]: one for one in (NEW, OLD, fact("third", "Ana likes tea."))}
    made = settle([claim], shown, ["new"], now=NOW)
    assert made.operations == []
    assert why in made.refused[0]


def test_a_pair_counts_once_and_a_superseded_fact_supersedes_nothing() -> None:
    third = fact("third", "Ana lives in Paris.")
    shown = {one["op"]: one for one in (NEW, OLD, third)}
    claims = [
        pair("new", "old", "supersedes", ""),
        pair("old", "new", "contradicts", ""),
        pair("old", "third", "duplicates", ""),
        pair("new", "old", "duplicates", ""),
    ]
    made = settle(claims, shown, ["new", "third"], now=NOW)
    assert [o["kind"] for o in made.operations] == ["link", "change_fact"]
    assert len(made.refused) == 3


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
    later = "2026-05-02T00:00:00+00:00"
    shown = {
        "old": OLD,
        "new": fact("new", "Ana lives in Bergen!", importance=8, valid_from=later),
        "third": fact("third", "Ana lives in Bergen, still.", importance=7, valid_from=later),
    }
    claims = [pair("new", "old", "duplicates", "same"), pair("third", "new", "duplicates", "")]
    made = settle(claims, shown, ["new", "third"], now=NOW)
    assert made.refused == [
        "one of 'Ana lives in Bergen, still.' and 'Ana lives in Bergen!' no longer holds"
    ]
    claims[1] = pair("third", "old", "duplicates", "same")
    made = settle(claims, shown, ["new", "third"], now=NOW)
    kept = changed(made.operations)
    assert kept["old"]["source_events"] == ["event-old", "event-new", "event-third"]
    assert kept["old"]["importance"] == 8
    assert [kept[op]["superseded_by"] for op in ("new", "third")] == ["old", "old"]
    assert len({one["id"] for one in made.operations}) == len(made.operations)


def test_every_contradiction_of_a_fact_is_kept() -> None:
    shown = {op: fact(op, f"Ana lives in {op}.") for op in ("a", "b", "c")}
    claims = [pair("a", "b", "contradicts", ""), pair("a", "c", "contradicts", "")]
    operations = settle(claims, shown, ["a"], now=NOW).operations
    assert changed(operations)["a"] == {"disputed": ["b", "c"]}
    assert len({one["id"] for one in operations}) == len(operations)


SUM = fact("sum", "The budget is 900 euros, with the rent of Bergen.")


def test_what_depends_on_a_fact_that_falls_is_in_doubt() -> None:
    shown = {one["op"]: one for one in (NEW, OLD, SUM)}
    claims = [
        pair("new", "old", "supersedes", "moved"),
        pair("sum", "old", "depends_on", "reckoned with it"),
    ]
    operations = settle(claims, shown, ["new", "sum"], now=NOW).operations
    assert changed(operations)["sum"] == {"depends_on": ["old"], "doubtful": ["old"]}
    assert "new" not in changed(operations)


def test_what_was_found_to_depend_on_it_in_an_earlier_night_is_in_doubt_too() -> None:
    earlier = {"sum": {**SUM, "depends_on": ["old"]}, "gone": {**SUM, "invalid_at": NOW}}
    operations = settle(
        [pair("new", "old", "supersedes", "moved")],
        {"new": NEW, "old": OLD},
        ["new"],
        now=NOW,
        dependents=earlier,  # type: ignore[arg-type] # facts with others
    ).operations
    assert changed(operations)["sum"] == {"doubtful": ["old"]}


def test_a_contradiction_leaves_nothing_in_doubt() -> None:
    rests: Any = {**SUM, "depends_on": ["old"]}
    claims = [pair("old", "new", "supersedes", "the older one")]
    made = settle(claims, {"new": NEW, "old": OLD, "sum": rests}, ["new"], now=NOW)
    assert "sum" not in changed(made.operations)


def test_what_depends_on_a_duplicate_depends_on_the_fact_that_stays() -> None:
    rests: Any = {**SUM, "depends_on": ["same"]}
    same = fact("same", "Ana lives in Bergen!", valid_from="2026-05-02T00:00:00+00:00")
    shown = {"old": OLD, "same": same, "sum": rests}
    made = settle([pair("old", "same", "duplicates", "same")], shown, ["same"], now=NOW)
    assert changed(made.operations)["sum"] == {"depends_on": ["same", "old"]}


def test_what_is_said_again_is_in_doubt_no_more() -> None:
    doubtful: Any = {**SUM, "depends_on": ["old", "tax"], "doubtful": ["old"]}
    again = fact("again", f"{SUM['text']} Still.", valid_from="2026-05-03T00:00:00+00:00")
    shown = {"sum": doubtful, "again": again}
    made = settle([pair("sum", "again", "duplicates", "same")], shown, ["again"], now=NOW)
    after = changed(made.operations)["sum"]
    assert (after["doubtful"], after["depends_on"]) == ([], ["tax"])


def test_a_later_night_may_end_what_an_earlier_one_overlooked_of_the_same_entity() -> None:
    shown = {
        "one": fact("one", "The choir meets on Tuesday.", entities=["choir"]),
        "two": fact("two", "The choir meets on Friday.", entities=["Choir"], valid_from=NOW),
    }
    made = settle([pair("two", "one", "supersedes", "moved")], shown, [], now=NOW)
    assert changed(made.operations)["one"]["superseded_by"] == "two"
    apart: Any = {**shown, "one": {**shown["one"], "entities": ["band"]}}
    assert settle([pair("two", "one", "supersedes", "moved")], apart, [], now=NOW).refused


def test_a_name_in_the_words_of_a_fact_counts_like_one_that_it_lists() -> None:
    plan = fact("old", "In August we drive to Denmark.", entities=[])
    off = fact("new", "The Denmark trip is off.", valid_from=LATER, entities=["Denmark"])
    assert relation_of(settled(off, plan, "supersedes")) == "supersedes"
    other = fact("new", "The trip is off.", valid_from=LATER, entities=["Norway"])
    assert relation_of(settled(other, plan, "supersedes")) == "relates"


def test_what_a_contradiction_disproves_leaves_its_dependents_in_doubt() -> None:
    rests: Any = {**SUM, "depends_on": ["old"]}
    mine = fact("old", "Ana lives in Bergen.")
    theirs = fact("new", "Ana lives in Oslo.", speaker="Ben", valid_from=NOW)
    shown = {"old": mine, "new": theirs, "sum": rests}
    made = settle([pair("new", "old", "supersedes", "moved")], shown, ["new"], now=NOW)
    assert changed(made.operations)["old"] == {"disputed": ["new"]}
    assert changed(made.operations)["sum"] == {"doubtful": ["old"]}
