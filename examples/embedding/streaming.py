"""The words of the reply as the model says them, as LangGraph's users stream them."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from graph.agent import open_agents


class Speaker(GenericFakeChatModel):
    """Stands for a real model: it gives its answer word by word."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> BaseChatModel:
        """This model calls no tools."""
        return self


model = Speaker(messages=iter([AIMessage("The bakery opens at seven.")]))
with open_agents(".circadian/streaming", model=model, settings={"names": ["baker"]}) as agents:
    agent = agents.agent("default", user="ada")
    asked = {"messages": "When does the bakery open?"}
    for chunk, _ in agent.stream(asked, stream_mode="messages"):
        print(chunk.text, end="|")
    print()
