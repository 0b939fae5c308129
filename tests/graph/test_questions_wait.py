"""An unanswered question holds up nothing but its own call."""

from __future__ import annotations

from langchain_core.messages import AIMessage, BaseMessage

from memory.settings import Settings
from tests.support.agents import Opening, entries, night_model, said
from tests.support.dangerous import Launches, questions
from tests.support.scripted import call, scripted

NUMBER = 10
DREAMT = {"dream", "consolidate_entities", "write_pages"}


def asks(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
    """Awake it asks to launch, each time to another target; asleep it consolidates."""
    if "launch" in tools:
        asked = str(messages[-1].text)
        if "rocket" in asked:
            number = asked.rsplit("rocket ", 1)[1].split()[0].strip(".<")
            return call("launch", target=f"target {number}")
        return AIMessage("Noted.")
    return night_model(messages, tools)


async def test_a_night_runs_whole_beside_ten_questions(opening: Opening) -> None:
    launches = Launches()
    model = scripted(otherwise=asks)
    async with opening(model, tools=[launches.tool]) as agent:
        for number in range(NUMBER):
            await agent.ainvoke(said(f"Launch rocket {number} .", id=f"e{number}"))
        await agent.ainvoke(said("Ben planted 40 oaks by the river.", id="told"))
        waiting = await questions(agent)
        out = await agent.ainvoke({"request": "sleep"})
        facts = await agent.resources.semantic.all(agent.scope)
        still = await questions(agent)
        journal = await entries(agent)
    night = out["report"]["night"]
    assert len(waiting) == NUMBER
    assert {one["id"] for one in still} == {one["id"] for one in waiting}
    assert night["complete"]
    assert night["stopped"] is None
    assert {step["step"] for step in night["steps"]} >= DREAMT
    assert {one["consolidation"] for one in journal} == {"consolidated"}
    assert "Ben planted 40 oaks by the river." in {fact["text"] for fact in facts}
    assert launches.done == []


async def test_fatigue_does_not_wait_for_an_answer(opening: Opening) -> None:
    settings = Settings(fatigue_threshold=0.01, max_context_tokens=20_000)
    model = scripted(otherwise=asks)
    async with opening(model, settings=settings, tools=[Launches().tool]) as agent:
        await agent.ainvoke(said("Launch rocket 1 .", id="e1"))
        await agent.ainvoke(said("Ben planted oaks by the river. " * 40, id="told"))
        out = await agent.ainvoke({"request": "tick"})
    assert [one["why"] for one in out["report"]["mode_changes"]] == ["fatigue"]
    assert out["report"]["night"]["stopped"] is None
