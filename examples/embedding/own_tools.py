"""A tool of your own that asks first: the call waits, a person approves it, the tool runs once."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolCall

from graph.agent import open_agent
from tools.registry import registered


def water(bed: int, litres: int) -> str:
    """Water a bed."""
    return f"bed {bed} has had {litres} litres"


class Gardener(GenericFakeChatModel):
    """In place of a real model: it calls `water`, then reports."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> BaseChatModel:
        """The calls are scripted below."""
        return self


call = ToolCall(name="water", args={"bed": 3, "litres": 10}, id="call_1")
model = Gardener(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("Bed 3 is watered.")]))
with open_agent(".circadian/tools", model=model, tools=[registered(water, "dangerous")]) as agent:
    out = agent.invoke({"messages": "Please water bed 3."})
    [question] = out["report"]["questions"]
    print("asks:", question["what"])
    out = agent.approve(question["id"])
    print("says:", out["messages"][-1].text)
