"""The night's reflection: which questions may be asked, and which insights become entries."""

from datetime import UTC, datetime

import pytest

from memory.night import Thought
from memory.records.records import RecallHit
from nodes.night.reflect import LEAST, MOST, InsightGiven, insights, questions
from tests.support.night_answers import insight
from tests.support.night_deeds import hit_of
from tests.support.night_memories import entry

NOW = datetime(2026, 5, 3, 2, tzinfo=UTC)


SHOWN = {
    "f1": hit_of(entry("f1", sources=["e1", "e2"])),
    "f2": hit_of(entry("f2", sources=["e2", "e3"])),
}


def reflected(*given: InsightGiven) -> Thought:
    return insights(given, SHOWN, night="night_1", now=NOW)


def test_at_most_three_different_questions() -> None:
    asked = ["What does Ada grow?", "Who is Ben?", "What  does Ada\ngrow?", "Why?", "When?"]
    assert questions(asked) == (["What does Ada grow?", "Who is Ben?", "Why?"], [])


@pytest.mark.parametrize(
    "asked",
    [
        "How did the assistant help Ada?",
        "What should this AI do for Ada?",
        "How could you help Ada?",
        "What have I learned of Ada?",
        "  ",
    ],
)
def test_no_question_is_about_the_assistant_or_empty(asked: str) -> None:
    kept, refused = questions([asked, "What does Ada grow?"])
    assert kept == ["What does Ada grow?"]
    assert len(refused) == 1


@pytest.mark.parametrize(
    "asked", ["What does the assistant manager want?", "Which AI does Ben use?", "Is Ada young?"]
)
def test_a_question_about_other_assistants_and_machines_may_be_asked(asked: str) -> None:
    assert questions([asked]) == ([asked], [])


def test_an_insight_is_an_entry_with_evidence_and_events() -> None:
    [added, *_] = reflected(
        insight("Ada grows more\nthan she eats.", ["f1", "f2", "f1"], 9)
    ).operations
    entry = added["after"]
    assert (entry["content"], entry["evidence"]) == ("Ada grows more than she eats.", ["f1", "f2"])
    assert entry["sources"] == ["e1", "e2", "e3"]
    assert (entry["importance"], entry["tags"], entry["source_type"]) == (
        9,
        ["insight"],
        "inference",
    )
    assert (entry["consolidation"], entry["scoring_method"]) == ("exempt", "llm")


def test_an_insight_rests_on_the_words_of_everybody_but_owners_that_were_shown() -> None:
    told = hit_of(entry("f3", sources=["e4"], source_entity="Olaf"))
    unsaid = hit_of(entry("f4", sources=["e5"], source_entity=None))
    laundered: RecallHit = {**unsaid, "origins": ["the tool read_page"]}
    shown = {**SHOWN, "f3": told, "f4": laundered}
    given = [insight("Ada grows beans.", ["f1", "f2"], 8)]
    [added, *_] = insights(given, shown, night="n", now=NOW, owners=("Ada",)).operations
    assert added["after"]["origins"] == ["Olaf", "the tool read_page"]
    [added, *_] = insights(given, SHOWN, night="n", now=NOW, owners=("Ada",)).operations
    assert "origins" not in added["after"]


def test_an_insight_is_linked_to_its_evidence() -> None:
    [added, *links] = reflected(insight("Ada grows beans.", ["f1", "f2"], 8)).operations
    assert [(one["kind"], one["target"], one["after"]["other"]) for one in links] == [
        ("link", added["target"], "f1"),
        ("link", added["target"], "f2"),
    ]
    assert {one["after"]["relation"] for one in links} == {"evidence"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (insight("Ada grows beans.", [], 8), "no evidence among the memories shown"),
        (insight("Ada grows beans.", ["ghost"], 8), "no evidence among the memories shown"),
        (insight(" \n", ["f1"], 8), "an empty insight"),
        (insight("The assistant helped Ada with beans.", ["f1"], 8), "speaks of the assistant"),
        (insight("I understand Ada better now.", ["f1"], 8), "first person"),
    ],
)
def test_an_insight_without_evidence_or_of_the_assistant_is_refused(
    given: InsightGiven, why: str
) -> None:
    made = reflected(given)
    assert made.operations == []
    assert [why in one for one in made.refused] == [True]


def test_unknown_evidence_beside_known_is_left_out_and_counted() -> None:
    made = reflected(insight("Ada grows beans.", ["ghost", "f2"], 8))
    [added, *links] = made.operations
    assert added["after"]["evidence"] == ["f2"]
    assert len(links) == 1
    assert made.refused == ["unknown id: ghost, under 'Ada grows beans.'"]


@pytest.mark.parametrize(("given", "kept"), [(-5, LEAST), (8, 8), (9, 9), (10, MOST), (99, MOST)])
def test_importance_is_8_or_9(given: int, kept: int) -> None:
    [added, *_] = reflected(insight("Ada grows beans.", ["f1"], given)).operations
    assert added["after"]["importance"] == kept


def test_insight_ids_come_from_night_and_position() -> None:
    def ids(*texts: str, night: str = "night_1") -> list[str]:
        given = [insight(text, ["f1"], 8) for text in texts]
        made = insights(given, SHOWN, night=night, now=NOW).operations
        return [one["target"] for one in made if one["kind"] == "add_entry"]

    first = ids("Ada grows beans.", "Ben grows peas.")
    assert ids("Ada grows leeks.", "Ben grows kale.") == first
    assert len({*first, *ids("Ada grows beans.", night="night_2")}) == 3
    assert all(one.startswith("insight_20260503_") for one in first)


def guesses(text: str, *evidence: str) -> list[str]:
    """Why an insight is refused that stands on entries with these texts."""
    shown = {f"f{n}": hit_of(entry(f"f{n}", content=said)) for n, said in enumerate(evidence)}
    return insights([insight(text, list(shown), 8)], shown, night="n", now=NOW).refused


@pytest.mark.parametrize(
    "text",
    [
        "Nadja is worried about the rent of the second shop.",
        "Nadja feels that the rent is too high.",
        "Nadja intends to leave because of the rent.",
        "Nadja secretly wants another shop.",
    ],
)
def test_a_guess_at_what_goes_on_inside_somebody_is_refused(text: str) -> None:
    (why,) = guesses(text, "The rent of the shop rose to 1,900 in May.", "The lease ends in June.")
    assert why.startswith("it guesses at feelings or intentions")


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("The rent rose and the lease ends in June.", "The rent of the shop rose in May."),
        ("Nadja is worried about the rent.", "I am worried about the rent of the shop."),
        ("Nadja fears that the rent rises.", "She is afraid of what the rent will be."),
        # What evidence in another language states, no English rule can tell.
        ("Nadja is worried about the rent.", "Wegen der Miete mache ich mir grosse Sorgen."),
    ],
)
def test_what_somebody_stated_or_what_can_be_seen_is_concluded(text: str, evidence: str) -> None:
    assert guesses(text, evidence) == []
