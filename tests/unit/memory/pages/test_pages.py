"""Which facts stand on a page, in what order, what is shown, and what settles a contradiction."""

from datetime import UTC
from typing import Any

import pytest

from memory.pages import pages
from memory.records import Attribute, EntityProfile, Page, met, new_profile
from memory.records.records import Fact
from memory.text import approximate_tokens
from tests.support.night_memories import fact

DAY = "2026-05-{:02}T09:00:00+00:00"


def dated(op: str, day: int, text: str = "", **fields: Any) -> Fact:
    return fact(op, text or f"Ada grows bean {op}.", valid_from=DAY.format(day), **fields)


def attribute(value: str, *evidence: str) -> Attribute:
    return {"value": value, "evidence": list(evidence), "at": DAY.format(1), "replaced": []}


def made(attributes: dict[str, Attribute], *facts: Fact) -> list[tuple[str | None, list[str]]]:
    page = pages.page_of("ada", attributes, facts)
    return [(line["attribute"], line["facts"]) for line in page["lines"]] if page else []


def shown(page: Page, attributes: dict[str, Attribute], *facts: Fact) -> list[str]:
    lines = pages.lines_of(page, attributes, {one["op"]: one for one in facts})
    return [line.text for line in lines]


def test_attributes_come_first_then_facts_none_of_them_attributes_the_newest_first() -> None:
    known = {"home": attribute("Lives in Oslo.", "a"), "work": attribute("Bakes.", "b")}
    facts = [dated("a", 1), dated("b", 2), dated("c", 3), dated("d", 4)]
    assert made(known, *facts) == [("work", ["b"]), ("home", ["a"]), (None, ["d"]), (None, ["c"])]


def test_an_attribute_in_the_words_of_a_fact_is_shown_as_that_fact() -> None:
    assert made({"x": attribute("Ada bakes.", "a")}, dated("a", 1, "Ada bakes.")) == [(None, ["a"])]


def test_an_attribute_without_a_fact_that_holds_has_no_line() -> None:
    assert made({"home": attribute("Lives in Oslo.", "o1", "gone")}) == []
    assert pages.page_of("ada", {}, []) is None


def test_a_full_page_keeps_what_is_important_and_then_what_is_new() -> None:
    weighty = dated("w", 1, importance=9)
    many = [dated(f"f{n}", 2 + n % 20, "Ada grows beans " * 12) for n in range(40)]
    lines = made({}, weighty, *many)
    assert (None, ["w"]) in lines
    assert len(lines) < 10
    newest = max(one["valid_from"] for one in many)
    assert lines[0][1][0] in {one["op"] for one in many if one["valid_from"] == newest}
    told = pages.ShownPage("ada", "Ada", tuple(lines_of(lines, weighty, *many)))
    assert approximate_tokens(pages.text_of(told, UTC)) <= pages.MOST_TOKENS


def lines_of(lines: list[tuple[str | None, list[str]]], *facts: Fact) -> list[pages.ShownLine]:
    page: Page = {"id": "ada", "lines": [{"attribute": a, "facts": f} for a, f in lines]}
    return pages.lines_of(page, {}, {one["op"]: one for one in facts})


CLAIM: Any = {"text": "Nora has resigned as chair, according to Guru.", "speaker": "Guru"}


@pytest.mark.parametrize(
    ("more", "speaks", "stands"),
    [
        (CLAIM, True, False),
        (CLAIM, False, True),
        ({**CLAIM, "speaker": "Mira"}, True, True),
        ({**CLAIM, "speaker": "Mira", "disputed": ["a"]}, True, False),
        ({**CLAIM, "speaker": None, "origins": ["Guru"], "trust": 0.3}, True, False),
        ({"speaker": "local"}, True, True),
        ({"speaker": "Nora", "disputed": ["a"]}, True, True),
        ({"speaker": "Guru and Nora"}, True, True),
    ],
)
def test_what_strangers_say_of_somebody_who_speaks_does_not_stand_on_the_page(
    more: dict[str, Any], speaks: bool, stands: bool
) -> None:
    def known(name: str, days: int) -> EntityProfile:
        profile: EntityProfile = {**new_profile(name, name, DAY.format(1)), "senders": [name]}
        for day in range(1, 1 + days):
            at = DAY.format(day)
            profile = met(profile, sender=name, event_id=f"m{day}", at=at, now=at)
        return profile

    senders = {name: known(name, days) for name, days in (("Mira", 9), ("Guru", 1), ("Nora", 1))}
    nora = senders["Nora"] if speaks else new_profile("Nora", "Nora", DAY.format(1))
    said = dated("c", 9, **more)
    assert pages.borne_out([said], nora, senders, ["local"]) == ([said] if stands else [])
    # Once what contradicts it fell, the words of an acquaintance count.
    fell: Any = {**dated("a", 1), "invalid_at": DAY.format(3)}
    counts = stands or "disputed" in more
    found = pages.borne_out([said], nora, senders, ["local"], known={"a": fell})
    assert found == ([said] if counts else [])


@pytest.mark.parametrize(
    ("speaker", "stands"), [("local", True), ("Mira", True), ("Guru", False), (None, False)]
)
def test_what_only_strangers_say_does_not_stand_on_the_page_of_a_project(
    speaker: str | None, stands: bool
) -> None:
    senders = {name: new_profile(name, name, DAY.format(1)) for name in ("Mira", "Guru")}
    senders["Mira"]["relationship"]["state"] = "friend"
    said = dated("c", 9, speaker=speaker)
    assert pages.borne_out([said], None, senders, ["local"]) == ([said] if stands else [])


@pytest.mark.parametrize("fallen", ["a", "b"])
def test_a_line_whose_facts_fell_is_not_shown(fallen: str) -> None:
    known = {"home": attribute("Lives in Oslo.", "a", "b")}
    facts = [dated("a", 1), dated("b", 2), dated("c", 3)]
    page = pages.page_of("ada", known, facts)
    assert page is not None
    assert shown(page, known, *facts) == ["home: Lives in Oslo.", "Ada grows bean c."]
    after = [{**one, "invalid_at": DAY.format(9)} if one["op"] == fallen else one for one in facts]
    assert shown(page, known, *after) == ["Ada grows bean c."]  # type: ignore[arg-type]
    assert shown(page, {}, *facts) == ["Ada grows bean c."]


def test_contradictions_stand_on_a_page_while_both_hold() -> None:
    one, other = dated("a", 1, disputed=["b"]), dated("b", 2, disputed=["a"])
    assert pages.page_of_disputes([one, other]) == {
        "id": pages.DISPUTES,
        "lines": [{"attribute": None, "facts": ["b", "a"]}],
    }
    assert pages.page_of_disputes([one, {**other, "invalid_at": DAY.format(9)}]) is None


def test_facts_that_name_a_day_stand_on_a_page_whatever_the_day_is() -> None:
    facts = [dated("a", 1, "Ada pays on 6 May 2026."), dated("b", 1), dated("c", 1, "Due 7 May.")]
    page = pages.page_of_dated(facts)
    assert page is not None
    assert [line["facts"] for line in page["lines"]] == [["c"], ["a"]]


def test_facts_in_doubt_stand_on_a_page_with_what_fell() -> None:
    fell = {**dated("a", 1), "invalid_at": DAY.format(3)}
    doubtful = dated("b", 2, depends_on=["a"], doubtful=["a"])
    assert pages.page_of_doubts([fell, doubtful]) == {  # type: ignore[list-item] # a fact that fell
        "id": pages.DOUBTS,
        "lines": [{"attribute": None, "facts": ["b", "a"]}],
    }
    assert pages.page_of_doubts([{**doubtful, "invalid_at": DAY.format(9)}]) is None
    (line,) = lines_of([(None, ["b"])], doubtful)
    assert line.doubtful
    page = pages.ShownPage("ada", "Ada", (line,))
    assert ", in doubt)" in pages.text_of(page, UTC)


def pair(new: str = "a" * 12, old: str = "b" * 12) -> tuple[Fact, Fact]:
    return (
        fact(f"n{new}", "The loan is taken.\n- [cccccccc] no (x)", id=new, speaker="Goran"),
        fact(f"o{old}", "The loan is not taken.", id=old, speaker="Nadja"),
    )


def test_a_contradiction_takes_two_lines_below_the_heading() -> None:
    (page,) = pages.of_disputes([pair(), pair("c" * 12, "d" * 12)])
    text = pages.text_of(page, UTC)
    marks = [line.partition("]")[0] for line in text.splitlines()[1:]]
    assert marks == ["- [aaaaaaaa", "  or [bbbbbbbb", "- [cccccccc", "  or [dddddddd"]


def test_a_doubt_is_shown_with_the_fallen_fact_that_it_rests_on() -> None:
    one, fallen = pair()
    fallen["invalid_at"] = "2026-05-03T02:00:00+00:00"
    (page,) = pages.of_disputes([pair("c" * 12, "d" * 12)], [(one, fallen)])
    lines = pages.text_of(page, UTC).splitlines()
    marks = [line.partition("]")[0] for line in lines[1:]]
    assert marks == ["- [cccccccc", "  or [dddddddd", "- [aaaaaaaa", "  rests on [bbbbbbbb"]
    assert "in doubt" not in "".join(lines)


@pytest.mark.parametrize(
    ("text", "value", "whole"),
    [
        ("Ada lives in Oslo and bakes.", "Ada lives in Oslo", False),
        ("Mateo es vegetariano, pero Ines come pescado.", "Ines come pescado.", False),
        ("Ada does not eat fish.", "Ada does eat fish", False),
        ("\u5979\u4e0d\u5403\u9c7c\u3002", "\u5979\u5403\u9c7c", False),
        ("\u5979\u5403\u9c7c\u3002", "\u5979\u5403\u9c7c", True),
        ("Ada grows beans.", "", True),
        ("Ada " + "grows beans " * 30, "", False),
        ("Ada works as a nurse in Bergen.", "works as a nurse in Bergen", True),
        ("Ada's rank is captain.", "captain", True),
        ("Ada and Ben work as nurses in Bergen.", "work as nurses in Bergen", False),
    ],
)
def test_a_page_says_a_fact_whole_if_its_lines_have_every_word(
    text: str, value: str, whole: bool
) -> None:
    known = {"rank": attribute(value, "a")} if value else {}
    page: Page = {"id": "ada", "lines": [{"attribute": "rank" if value else None, "facts": ["a"]}]}
    lines = pages.lines_of(page, known, {"a": dated("a", 1, text)}, "Ada")
    assert lines[0].whole == (lines[0].ids if whole else ())
