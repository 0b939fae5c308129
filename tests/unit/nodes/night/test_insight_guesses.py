"""Insights say nothing about feelings or intentions that nobody stated."""

from datetime import UTC, datetime

import pytest

from nodes.night.reflect import insights
from tests.support.night_answers import insight
from tests.support.night_deeds import hit_of
from tests.support.night_memories import entry


def refused(text: str, *evidence: str) -> list[str]:
    shown = {f"f{n}": hit_of(entry(f"f{n}", content=said)) for n, said in enumerate(evidence)}
    given = [insight(text, list(shown), 8)]
    return insights(given, shown, night="n", now=datetime(2026, 5, 3, tzinfo=UTC)).refused


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
    (why,) = refused(text, "The rent of the shop rose to 1,900 in May.", "The lease ends in June.")
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
    assert refused(text, evidence) == []
