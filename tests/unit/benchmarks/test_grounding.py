"""The benchmark of grounding: the rules decide what a night may store."""

from benchmarks.grounding import Proposal, Scene, judge

AT = "2026-11-20T09:00:00+00:00"
DERIVED, MADE_UP, OTHERS = (
    "The rent of the second shop is 22,900 a year.",
    "The second shop is too small.",
    "The rent of the second shop is 1,900 a month.",
)
SCENE: Scene = {
    "id": "s1",
    "entries": [
        {
            "id": "e1",
            "at": AT,
            "speaker": "Goran",
            "text": "The second shop's rent is 1,900 a month.",
        }
    ],
    "elsewhere": [],
    "proposals": [
        Proposal(text=DERIVED, sources=["e1"], speaker="Goran", label="right", kind="merged"),
        Proposal(text=MADE_UP, sources=["e1"], speaker="Goran", label="wrong", kind="invented"),
        Proposal(text=OTHERS, sources=["e1"], speaker="Nadja", label="wrong", kind="attribution"),
    ],
}


async def test_the_rules_decide() -> None:
    first, second, third = await judge(SCENE)
    assert "the fact says 22,900" in (first.error or "")
    assert second.error is None
    assert "Goran did" in (third.error or "")
