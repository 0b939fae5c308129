"""Chat models that cost nothing, so that benchmarks measure the agent's own work."""

from __future__ import annotations

import asyncio
import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr


class FixedModel(BaseChatModel):
    """Answers every prompt with the same sentence after `delay` seconds."""

    delay: float = 0.0

    @property
    def _llm_type(self) -> str:
        return "fixed"

    def bind_tools(
        self, tools: Sequence[Any], **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Ignore the tools."""
        return self.bind(**kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("I see."))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        await asyncio.sleep(self.delay)
        return self._generate(messages)


class NamingModel(FixedModel):
    """Answers with the distinct matches of `names` in its prompt, sorted."""

    names: str

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        found = {name for one in messages for name in re.findall(self.names, one.text)}
        answer = AIMessage(" ".join(sorted(found)))
        return ChatResult(generations=[ChatGeneration(message=answer)])


@dataclass(frozen=True)
class Sent:
    """A call that the model got."""

    messages: list[BaseMessage]
    tools: list[dict[str, Any]]
    """In the form that a provider gets."""


class ToolModel(BaseChatModel):
    """Offers its tools in a provider's form, made at each call as providers' models do."""

    def bind_tools(
        self, tools: Sequence[Any], **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Convert the tools."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        answer = self._answer(messages, kwargs.get("tools", []))
        return ChatResult(generations=[ChatGeneration(message=answer)])

    @abstractmethod
    def _answer(self, messages: list[BaseMessage], tools: list[dict[str, Any]]) -> AIMessage:
        """The answer to a prompt; `tools` in a provider's form."""


class OneToolModel(ToolModel):
    """Answers each message with a call of `tool` and then a text, at no cost.

    If `tool` is not offered, it answers at once.
    """

    tool: str

    _sent: list[Sent] = PrivateAttr(default_factory=list)
    _answers: int = PrivateAttr(default=0)

    @property
    def _llm_type(self) -> str:
        return "one-tool"

    def taken(self) -> list[Sent]:
        """The calls since the last `taken`, oldest first."""
        sent, self._sent = self._sent, []
        return sent

    def _answer(self, messages: list[BaseMessage], tools: list[dict[str, Any]]) -> AIMessage:
        self._sent.append(Sent(messages, tools))
        self._answers += 1
        offered = any(tool["function"]["name"] == self.tool for tool in tools)
        if offered and isinstance(messages[-1], HumanMessage):
            return AIMessage("", tool_calls=[self._call()])
        return AIMessage("Twelve pages, first printed in 1911 and revised twice since then.")

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, **kwargs)

    def _call(self) -> ToolCall:
        number = self._answers
        return ToolCall(name=self.tool, args={"subject": f"subject {number}"}, id=f"call_{number}")
