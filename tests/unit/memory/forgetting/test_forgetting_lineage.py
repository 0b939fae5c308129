from typing import Any, cast

import pytest

from memory.forgetting.erasure import (
    Acts,
    Erasure,
    ForgetTarget,
    KnownMemory,
    acts_of,
    decide,
    events_of,
    fact_after,
    names_of,
    start_of,
)
from memory.forgetting.store_changes import profile_after
from memory.records.profiles import EntityProfile, new_profile
from memory.records.records import Event, Fact, JournalEntry
from tests.support import night_memories
from tests.support.night_memories import observation

NOTHING = Acts(frozenset(), frozenset())


def entry(id_: str, content: str, who: str | None, *sources: str, **more: Any) -> JournalEntry:
    kind = "direct" if id_.startswith("event_") else "inference"
    made = {"content": content, "source_type": kind, "source_entity": who, "sources": [*sources]}
    return night_memories.entry(id_, **{**made, **more})


def fact(id_: str, text: str, entries: list[str], events: list[str], **more: Any) -> Fact:
    made = {"id": id_, "speaker": None, "source_entries": entries, "source_events": events}
    return night_memories.fact(f"op_{id_}", text, **{**made, **more})


SAID = [
    entry("event_20260302_z1", "I keep a parrot in my kitchen.", "Zora", "z1"),
    entry("event_20260302_z2", "Zora has a parrot, I hear.", "Ben", "z2"),
    entry("event_20260302_b1", "I grow beans on the roof.", "Ben", "b1"),
]


def erasure(*more: JournalEntry, facts: tuple[Fact, ...] = (), **given: Any) -> Erasure:
    links = given.pop("links", {})
    known = KnownMemory([*SAID, *more], list(facts), given.pop("profiles", []), [], [], links)
    return decide(
        known, start_of(ForgetTarget("entity", "Zora"), known), given.pop("acts", NOTHING)
    )


def test_events_from_the_person_or_naming_them_are_erased() -> None:
    waiting = [
        {"id": "w1", "at": "", "sender": "zora", "text": "Hi"},
        {"id": "w2", "at": "", "sender": "Ben", "text": "Where is Zora?"},
        {"id": "w3", "at": "", "sender": "Ben", "text": "Where is the roof?"},
        {"id": "zora_3", "at": "", "sender": "Ben", "text": "Where is the roof?"},
    ]
    known = KnownMemory(SAID, [], [], cast(list[Event], waiting), [])
    names, _ = names_of("Zora", known)
    assert events_of(known, names) == {"z1", "z2", "w1", "w2", "zora_3"}


STAND: list[tuple[JournalEntry, str | None]] = [
    (entry("note_20260302_1", "A parrot eats seeds.", None, "z1"), None),
    (entry("note_20260302_2", "A parrot eats seeds.", None, "z1", "z2"), None),
    (entry("note_20260302_3", "Beans need water.", "Zora", "b1"), None),
    (entry("note_20260302_4", "There is a parrot. Beans grow.", None, "b1", "z1"), None),
    (entry("note_20260302_6", "Zora came.\nBeans grow.", None), "Beans grow."),
    (entry("note_20260302_7", "There is a parrot. Beans grow.", None, "b1"), "same"),
    (entry("compact_20260302_1", "[CONTEXT SYNTHESIS]\nBeans.", None, "b1", "z1"), None),
    (
        entry("compact_20260302_2", "[CONTEXT SYNTHESIS]\nBeans.\nZora.", None, "b1"),
        "[CONTEXT SYNTHESIS]\nBeans.",
    ),
    (entry("compact_20260302_3", "[CONTEXT SYNTHESIS]\nZora.", None, "b1"), None),
    (
        entry(
            "correction_20260302_1",
            "Correction: Zora owns the parrot",
            "Ben",
            "c1",
            source_type="direct",
        ),
        None,
    ),
]


@pytest.mark.parametrize(("made", "content"), STAND)
def test_an_entry_goes_with_any_of_its_sources_or_loses_lines_with_the_name(
    made: JournalEntry, content: str | None
) -> None:
    after = erasure(made).entries[made["id"]]
    if content is None:
        assert after is None
    else:
        assert after is not None
        assert after["content"] == (made["content"] if content == "same" else content)
        assert after["sources"] == made["sources"]


GOING = [
    fact("f1", "A parrot lives there.", ["event_20260302_z1"], ["z1"]),
    fact("f2", "Beans grow.", ["event_20260302_b1", "event_20260302_z1"], ["b1", "z1"]),
    fact("f3", "Beans grow.", [], ["b1", "z1"]),
    fact("f4", "Beans grow.", ["event_20260302_b1"], ["b1"], speaker="zora"),
    fact("f5", "Beans grow.", ["event_20260302_b1"], ["b1"], entities=["Zora"]),
    fact("f6", "Zora likes beans.", ["event_20260302_b1"], ["b1"]),
    fact("f7", "There is a parrot.", ["note_20260302_4"], ["b1"]),
]
NOTE = entry("note_20260302_4", "There is a parrot. Beans grow.", None, "b1", "z1")


@pytest.mark.parametrize("one", GOING, ids=lambda one: str(one["id"]))
def test_a_fact_goes_with_any_of_its_sources_or_with_a_name(one: Fact) -> None:
    assert list(erasure(NOTE, facts=(one,)).facts) == [one["id"]]


def test_a_fact_stays_if_its_sources_stay() -> None:
    one = fact("s1", "Beans grow.", ["event_20260302_b1"], ["b1"])
    assert erasure(NOTE, facts=(one,)).facts == {}


def test_a_superseded_fact_is_valid_again_when_its_successor_goes() -> None:
    old = fact("s1", "Beans grow.", [], ["b1"], superseded_by="f1", invalid_at="2026")
    old["disputed"] = ["op_f1", "op_x"]
    assert fact_after(old, erasure(facts=(GOING[0], old))) == {
        "superseded_by": None,
        "invalid_at": None,
        "disputed": ["op_x"],
    }
    assert fact_after({**old, "superseded_by": "s2", "disputed": []}, erasure()) == {}


NOTED = {"context": "Beside a bird.", "tags": ["beans", "bird"], "earlier": [{"context": ""}]}
CLEARED: dict[str, Any] = {"context": None, "tags": [], "earlier": []}


@pytest.mark.parametrize(
    ("noted", "links", "changes"),
    [
        (NOTED, {"s1": ["f1"]}, CLEARED),
        (NOTED, {"s1": ["s9"]}, {}),
        ({**NOTED, "context": "Zora's beans."}, {}, CLEARED),
        ({**NOTED, "earlier": [{"context": "Zora's"}]}, {}, CLEARED),
        ({}, {"s1": ["f1"]}, {}),
        ({"context": None, "tags": [], "earlier": []}, {"s1": ["f1"]}, {}),
    ],
)
def test_a_note_on_a_fact_goes_if_an_erased_memory_is_linked_or_named(
    noted: dict[str, Any], links: dict[str, list[str]], changes: dict[str, Any]
) -> None:
    one = cast(Fact, {**fact("s1", "Beans grow.", [], ["b1"]), **noted})
    assert fact_after(one, erasure(facts=(GOING[0], one), links=links)) == changes


def test_an_insight_goes_with_any_of_its_evidence() -> None:
    fallen = entry("insight_20260302_1", "Birds live here.", None, "b1", evidence=["f1"])
    on_it = entry("insight_20260302_2", "Birds fly.", None, evidence=[fallen["id"], "s1"])
    staying = entry("insight_20260302_3", "Beans grow.", None, "b1", evidence=["s1"])
    after = erasure(fallen, on_it, staying, facts=(GOING[0],)).entries
    assert (after[fallen["id"]], after[on_it["id"]]) == (None, None)
    assert after[staying["id"]] == staying


def test_a_second_attempt_follows_the_lineage_of_facts_already_erased() -> None:
    insight = entry("insight_20260302_1", "Birds live here.", None, evidence=["f1"])
    known = KnownMemory([*SAID, insight], [], [], [], [])
    start = start_of(ForgetTarget("entity", "Zora"), known)
    made = decide(known, start._replace(memories=frozenset(("f1", "op_f1"))), NOTHING)
    assert made.entries[insight["id"]] is None
    assert {"f1", "op_f1"} <= made.gone
    old = fact("s1", "Beans grow.", [], ["b1"], superseded_by="f1", invalid_at="2026")
    assert fact_after(old, made) == {"superseded_by": None, "invalid_at": None}


def test_the_audit_log_tells_what_was_made_and_written() -> None:
    def line(what: str, target: str, args: Any = None) -> Any:
        return {"origin": "z1", "what": what, "target": target, "detail": {"args": args}}

    log = [
        line("goal_created", "goal_1_1"),
        line("tool_call", "add_goal", {"description": "Feed it", "steps": ["Buy seeds"]}),
    ]
    assert acts_of(log) == Acts(frozenset(("goal_1_1",)), frozenset(("Feed it", "Buy seeds")))


def test_other_profiles_lose_observations_and_attributes_from_the_person() -> None:
    ben = cast(
        EntityProfile,
        {
            **new_profile("e2", "Ben", ""),
            "aliases": ["Benny", "Zora's neighbour"],
            "observations": [
                observation(1, "Grows beans.", sources=["b1"]),
                observation(2, "Likes birds.", sources=["z1"]),
                observation(3, "Is a friend of Zora.", sources=["b1"]),
            ],
            "attributes": {
                "both": {"value": "x", "evidence": ["o1", "o2"], "at": "", "replaced": []},
                "garden": {"value": "beans", "evidence": ["o1"], "at": "", "replaced": []},
                "birds": {"value": "likes", "evidence": ["o2"], "at": "", "replaced": []},
                "friend": {"value": "Zora", "evidence": ["o1"], "at": "", "replaced": []},
            },
        },
    )
    zora = new_profile("e1", "Zora", "")
    known = erasure(profiles=[zora, ben])
    after = profile_after(ben, known)
    assert after is not None
    assert after["aliases"] == ["Benny"]
    assert [one["id"] for one in after["observations"]] == ["o1"]
    assert list(after["attributes"]) == ["garden"]
    assert profile_after(zora, known) is None
