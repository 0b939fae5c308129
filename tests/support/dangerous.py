"""A dangerous tool for tests, the model that asks for it, and the questions that stand."""

from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, tool

from graph.api import AsyncAgent
from graph.use_cases.status import status
from memory.settings import Settings
from tests.support.agents import said
from tests.support.scripted import ScriptedChatModel, call, scripted
from tools.registry import registered

ARGS = {"target": "the moon"}
ASK = call("launch", **ARGS, reasoning="Ada wants it")
UNASKED = Settings(owners=["Ada"], dangerous_requires_confirm=False)


class Launches:
    def __init__(self) -> None:
        self.done: list[str] = []

    @property
    def tool(self) -> BaseTool:
        @tool
        async def launch(target: str, reasoning: str | None = None) -> str:
            """Launch a rocket."""
            self.done.append(target)
            return f"launched to {target}"

        return registered(launch, "dangerous")


def asking(*more: Any) -> ScriptedChatModel:
    return scripted(ASK, *more)


async def questions(agent: AsyncAgent) -> list[dict[str, Any]]:
    return [dict(one) for one in (await status(agent.context))["approvals"]]


async def asked(agent: AsyncAgent, **event: Any) -> dict[str, Any]:
    """The question after Ada wants a launch."""
    await agent.ainvoke(said("Launch it", **event))
    [question] = await questions(agent)
    return question


def results(model: ScriptedChatModel, nth: int = -1) -> list[str]:
    shown = model.calls[nth].messages
    return [str(message.text) for message in shown if isinstance(message, ToolMessage)]
