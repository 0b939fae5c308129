"""What a failing model costs: nothing is lost, and the next run answers what waits."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult

from graph.agent import open_agent
from memory.errors import ModelError


class Unsteady(GenericFakeChatModel):
    """A chat model that is down for its first calls."""

    down: int

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        if self.down:
            self.down -= 1
            raise ValueError("the service has no answer")
        return super()._generate(messages, *args, **kwargs)

    def bind_tools(self, tools: Any, **kwargs: Any) -> BaseChatModel:
        """This model calls no tools."""
        return self


model = Unsteady(messages=iter([AIMessage("Good morning, Ada.")]), down=1)
with open_agent(".circadian/failures", model=model) as agent:
    try:
        agent.invoke({"messages": "Good morning!"})
    except ModelError as error:
        print("failed:", str(error).partition(" (")[0])
    out = agent.invoke(None)  # goes on with what waits
    print("answered:", out["messages"][-1].text)
