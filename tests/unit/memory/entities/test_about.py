"""Whom facts are about, who gets a profile, and what an attribute stands on by now."""

from typing import Any

import pytest

from memory.entities import evidence_now, names_about, subjects
from memory.entities.about import holding
from memory.night.dream_work import LEAST_FACTS, MOST_READ, unread, with_news
from memory.records import Attribute, part_id
from memory.records.records import Fact
from memory.settings import Settings
from nodes.night.consolidate_entities import AttributeGiven, EntityNews, consolidated, news_of
from nodes.night.write_pages import belongs, tended_to
from tests.support.night_answers import attribute_given
from tests.support.night_memories import ADA, NOW, ada, entry, fact

NAMES = ["assistant", "circadian"]


def told(text: str, op: str = "f", speaker: str | None = "Ben", *about: str) -> Fact:
    return fact(op, text, speaker=speaker, entities=list(about))


@pytest.mark.parametrize(
    ("one", "names"),
    [
        (told("The oven is broken.", "f", "Ben", "oven"), ["oven"]),
        (told("I broke the oven.", "f", "Ben", "oven"), ["oven", "Ben"]),
        (told("Ben broke the oven.", "f", "Ben", "oven"), ["oven", "Ben"]),
        (told("It rained."), ["Ben"]),
        (told("He came on Friday.", "f", None, "he", "Friday", "12 May 2026", "my sister"), []),
        (told("Circadian is late.", "f", None, "Circadian", "the assistant"), []),
    ],
)
def test_a_fact_is_about_whom_it_names_and_its_speaker_if_they_speak_of_themselves(
    one: Fact, names: list[str]
) -> None:
    assert names_about(one, NAMES) == names


def test_not_every_name_gets_a_profile() -> None:
    facts = [
        told("I bake.", "1", "Ben"),
        told("Lila sings.", "2", "Ben", "Lila"),
        told("Lila dances.", "3", "Ben", "Lila"),
        told("Once in Rome.", "4", "Ben", "Rome"),
    ]
    found = subjects(facts, {name: name for name in ("Ben", "Lila", "Rome")}, NAMES)
    new = {one["op"] for one in facts}
    assert with_news(found, {}, new) == ["Ben", "Lila"]
    assert with_news(found, {}, {"4"}) == []
    many = {f"n{n}": fact(f"x{n}", "I sing.", speaker=f"n{n}", entities=[]) for n in range(50)}
    crowd = subjects(many.values(), {name: name for name in many}, NAMES)
    assert len(with_news(crowd, {}, {one["op"] for one in many.values()})) == MOST_READ
    assert LEAST_FACTS == 2


def test_a_fact_is_read_once() -> None:
    old, new = fact("o", created="2026-05-01"), fact("n", created="2026-05-02")
    read: Any = {**ada(), "read_until": "2026-05-01"}
    assert unread(ada(), [old, new]) == [old, new]
    assert unread(read, [old, new]) == [new]
    assert unread(read, [old, new], {"o"}) == [old, new]


def attribute(*evidence: str) -> Attribute:
    return {"value": "Grows beans.", "evidence": list(evidence), "at": NOW, "replaced": []}


def test_an_attribute_falls_with_any_of_its_facts_and_follows_a_merge() -> None:
    held, fallen = fact("a"), fact("b", invalid_at=NOW, superseded_by="a")
    merged = fact("c", invalid_at=NOW, superseded_by="a", source_entries=held["source_entries"])
    fallen["source_entries"] = ["another"]
    facts = {one["op"]: one for one in (held, fallen, merged)}
    assert evidence_now(attribute("a", "o1"), {"o1"}, facts) == ["a", "o1"]
    assert evidence_now(attribute("a", "b"), set(), facts) is None
    assert evidence_now(attribute("c", "a"), set(), facts) == ["a"]
    assert evidence_now(attribute("gone"), set(), facts) is None
    profile = ada(attributes={"x": attribute("b"), "y": attribute("c"), "z": attribute("a")})
    operation = tended_to(profile, facts)
    assert operation is not None
    assert operation["after"]["attributes"] == {"x": None, "y": attribute("a")}
    assert tended_to(ada(attributes={"z": attribute("a")}), facts) is None


PARTS = [
    ("Oats on 2 May, beans on 9 May.", "The beans come on 9 May.", "Beans on 9 May.", True),
    ("Oats on 2 May, beans on 9 May.", "The beans come on 9 May.", "Oats on 2 May.", False),
    ("Oats on 2 May, beans on 9 May.", "The beans come on 9 May.", "Beans on 2 May.", False),
    ("Oats on 2 May, no beans.", "No beans come.", "Beans come.", False),
]


@pytest.mark.parametrize(("text", "part", "value", "stands"), PARTS)
def test_an_attribute_stands_on_what_remains_of_its_fact_if_that_says_it(
    text: str, part: str, value: str, stands: bool
) -> None:
    fallen = fact("b", text, invalid_at=NOW, superseded_by="new")
    newer, left = fact("new", source_entries=["x"]), fact(part_id("b", "new"), part)
    facts = {one["op"]: one for one in (fallen, newer, left)}
    given: Attribute = {**attribute("b"), "value": value}
    assert evidence_now(given, set(), facts) == ([left["op"]] if stands else None)


def test_of_a_profile_stands_what_no_fallen_fact_says() -> None:
    said = {"source_entries": ["e"]}
    fell = fact("a", "I live in Bergen.", invalid_at=NOW, superseded_by="new", **said)
    other = fact("b", "I bake bread in Oslo.", **said)
    noted: Any = {"at": NOW, "speaker": "Ada", "trust": 1.0, "consolidated": False}
    texts = ["Ada lives in Bergen.", "Ada bakes bread.", "Ada sings.", "Bergen is far."]
    sources = [["e"], ["e"], ["e"], ["another"]]
    observations: Any = [
        {**noted, "id": text, "text": text, "sources": its}
        for text, its in zip(texts, sources, strict=True)
    ]
    profile = ada(attributes={"home": attribute("a"), "work": attribute("b")})
    now = holding({**profile, "observations": observations}, {"a": fell, "b": other}, [fell, other])
    assert [*now["attributes"]] == ["work"]
    assert [one["text"] for one in now["observations"]] == texts[1:]


def test_a_value_given_again_for_one_that_fell_stands_on_its_new_evidence_alone() -> None:
    old: Attribute = {**attribute("gone"), "value": "Grows beans."}
    profile = ada(attributes={"crop": old})
    new = told("Ada grows beans.", "new", "Ada", "Ada")
    for fell, evidence in ((["crop"], ["new"]), ([], ["gone", "new"])):
        given = [attribute_given("crop", "Grows beans.", ["new"])]
        known = [] if fell else ["crop"]
        made = consolidated(EntityNews(profile, [new], known=known), given, now=NOW, prune=False)
        [operation] = made.operations
        assert operation["after"]["attributes"]["crop"]["evidence"] == evidence


def from_facts(*given: AttributeGiven, senders: list[str], facts: list[Fact]) -> list[str]:
    profile: Any = {**ada(), "senders": senders}
    made = consolidated(EntityNews(profile, facts), given, now=NOW, prune=False)
    if not made.operations:
        return made.refused
    [operation] = made.operations
    return list(operation["after"]["attributes"])


def test_what_others_say_makes_no_attribute_of_somebody_who_speaks() -> None:
    claim = [told("Ada owes Ben money.", "c", "Ben", "Ada")]
    debt = attribute_given("debt", "Ada owes Ben money.", ["c"])
    assert from_facts(debt, senders=[], facts=claim) == ["debt"]
    assert from_facts(debt, senders=["Ada"], facts=claim) == []
    # "Ada and Ben" may be anybody's own name.
    both = [told("Ada owes Ben money.", "c", "Ada and Ben", "Ada")]
    assert from_facts(debt, senders=["Ada"], facts=both) == []
    own = [told("I owe Ben money.", "c", "Ada")]
    assert from_facts(debt, senders=["Ada"], facts=own) == ["debt"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("Pays 1,800 euros.", "do not say 1,800"),
        ("Pays 1700 euros.", None),
        ("Pays rent to Oberhuber.", "do not name Oberhuber"),
        ("Values tradition.", "say nothing of it"),
        ("Paid: 1.700 euros.", None),
        ("2", None),
        ("3", "do not say 3"),
    ],
)
def test_a_value_says_no_number_no_name_and_nothing_that_its_lines_do_not(
    value: str, why: str | None
) -> None:
    rent = told("Ada pays 1,700 euros of rent for two rooms.", "r", "Ada", "Ada")
    found = from_facts(attribute_given("rent", value, ["r"]), senders=["Ada"], facts=[rent])
    assert found == ["rent"] if why is None else why in found[0]


def test_a_disputed_fact_makes_no_attribute_of_a_thing() -> None:
    disputed = told("The oven costs 5 euros.", "d", "Eve", "oven")
    disputed["disputed"] = ["x"]
    subject = subjects([disputed], {"oven": ADA}, NAMES)[ADA]
    speaking: Any = {**ada(), "senders": ["Ada"]}
    for profile, shown in ((ada(), []), (speaking, [disputed])):
        assert list(news_of(profile, subject, {}, Settings()).facts) == shown


@pytest.mark.parametrize(
    ("text", "about", "mine"),
    [
        ("The second_shop opens in May.", [], True),
        ("The lease for the shop is signed in Lendgasse.", [], True),
        ("The oven is late.", ["Lendgasse"], True),
        ("The oven is late.", ["oven"], False),
        ("Ada likes beans.", [], False),
        ("The concert is on 18 April 2027 at 17:30.", [], False),
    ],
)
def test_a_fact_belongs_to_the_project_that_it_speaks_of(
    text: str, about: list[str], mine: bool
) -> None:
    summary = "Open a second shop in Lendgasse by 30 April 2027"
    project: Any = {"summary": summary, "status": "active"}
    one = fact("f", text, entities=about)
    assert belongs(one, "second_shop", project, {}) == mine
    source = entry("e", related_projects=["second_shop"])
    named = fact("f", "It is late.", source_entries=["e"])
    assert belongs(named, "second_shop", project, {"e": source})


def test_a_fact_belongs_to_no_project_for_the_name_of_an_owner() -> None:
    project: Any = {"summary": "Second shop in Lendgasse, as Ada decided", "status": "active"}
    about = fact("f", "The loan of the bank is 9,000 euros.", entities=["Ada"], speaker="Ben")
    assert belongs(about, "second_shop", project, {})
    assert not belongs(about, "second_shop", project, {}, ["Ada"])
