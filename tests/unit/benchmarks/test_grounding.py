"""The benchmark of grounding: the rules alone, and a chat model's verdicts over them."""

from langchain_core.messages import AIMessage, BaseMessage

from benchmarks.grounding import Proposal, Scene, judge
from tests.support.scripted import call, scripted

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


async def test_without_a_model_the_rules_decide() -> None:
    first, second, third = await judge(SCENE)
    assert "the fact says 22,900" in (first.error or "")
    assert second.error is None
    assert "Goran did" in (third.error or "")


async def test_a_verdict_overrules_the_rules_but_not_on_whose_words_they_are() -> None:
    def verdicts(shown: list[BaseMessage], tools: list[str]) -> AIMessage:
        assert tools == ["Verdicts"]
        assert DERIVED in shown[-1].text
        assert OTHERS not in shown[-1].text
        told = [{"fact": "1", "follows": True}, {"fact": "2", "follows": False, "why": "no size"}]
        return call("Verdicts", verdicts=told)

    first, second, third = await judge(SCENE, scripted(otherwise=verdicts))
    assert first.error is None
    assert second.error == "it does not follow from what it cites: no size"
    assert "Goran did" in (third.error or "")
