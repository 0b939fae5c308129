"""What a night reports about its model answers: their cost, and what was refused."""

from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from memory.models.client import CORRECTIONS
from tests.support.agents import opened
from tests.support.clock import Clock
from tests.support.dreamers import SATURDAY, SETTINGS, answer, day
from tests.support.scripted import ScriptedChatModel, scripted


def model_that(step: str, instead: AIMessage | str) -> ScriptedChatModel:
    def answered(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        return instead if tools == [step] else answer(messages, tools)

    return scripted(otherwise=answered)


async def night_of(folder: Path, clock: Clock, model: ScriptedChatModel) -> dict[str, Any]:
    async with opened(folder, model, clock, settings=SETTINGS) as agent:
        await day(agent, clock, SATURDAY)
        awake = len(model.calls)
        report = dict(await agent.sleep())
    return {**report, "asked": len(model.calls) - awake}


async def test_unusable_answers_count_towards_the_night_budget(
    tmp_path: Path, clock: Clock
) -> None:
    report = await night_of(tmp_path / "data", clock, model_that("Dream", "No form at all."))
    lines = {line["step"]: line for line in report["steps"]}
    assert len(report["errors"]) == 2
    assert lines["dream"]["llm_calls"] == 2 * (1 + CORRECTIONS)
    assert lines["dream"]["tokens"] > 0
    assert sum(line["llm_calls"] for line in report["steps"]) == report["asked"]
