"""The offline chat model: embedded rules, not a language model.

It needs no key, no network and no download, and gives the same answer to the same prompt. Its rules
stand in `offline_rules` (sentences that become tool calls), `offline_quotes` (answers),
`offline_reflection` (a look at its own work), `offline_night` (scores, facts, summaries), and
`offline_dreaming`, `offline_attributes` and `offline_insights` (what a night makes of facts,
observations and days). What no rule fits is acknowledged, not understood.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from memory.models.offline.prompt import Call
from memory.models.offline.talk import decide
from memory.text import approximate_tokens

_WORD = re.compile(r"\s*\S+\s*$|\s*\S+(?=\s)")


class OfflineChatModel(BaseChatModel):
    """Deterministic, embedded, free of charge; says so in `model_name`.

    Tools, structured output (through a bound tool) and streaming work as with any chat model. Token
    usage is approximate.
    """

    @property
    def _llm_type(self) -> str:
        return "offline"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Offer tools. A `tool_choice` changes nothing: the rules choose."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_answer(messages, kwargs))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        """The text word by word, then the tool calls and the usage."""
        for message in _chunks(_answer(messages, kwargs)):
            chunk = ChatGenerationChunk(message=message)
            if run_manager is not None:
                run_manager.on_llm_new_token(str(message.text), chunk=chunk)
            yield chunk


def _answer(messages: Sequence[BaseMessage], options: dict[str, Any]) -> AIMessage:
    tools = [tool["function"]["name"] for tool in options.get("tools", [])]
    decision = decide(messages, tools)
    calls = [_tool_call(messages, at, call) for at, call in enumerate(decision.calls)]
    message = AIMessage(
        content=decision.text,
        tool_calls=calls,
        response_metadata={"model_name": "offline", "finish_reason": "stop"},
    )
    read, written = approximate_tokens(messages), approximate_tokens([message])
    message.usage_metadata = UsageMetadata(
        input_tokens=read, output_tokens=written, total_tokens=read + written
    )
    return message


def _tool_call(messages: Sequence[BaseMessage], at: int, call: Call) -> ToolCall:
    """The call, with an id from the prompt and its place in the answer."""
    seen = "\x1f".join(f"{one.type}:{one.id}:{one.text}" for one in messages)
    digest = hashlib.sha256(f"{seen}\x1f{at}\x1f{call.tool}".encode()).hexdigest()
    return ToolCall(name=call.tool, args=call.args, id=f"call_{digest[:24]}", type="tool_call")


def _chunks(message: AIMessage) -> Iterator[AIMessageChunk]:
    for word in _WORD.findall(str(message.text)):
        yield AIMessageChunk(content=word)
    yield AIMessageChunk(
        content="",
        tool_call_chunks=[
            tool_call_chunk(
                name=call["name"],
                args=json.dumps(call["args"], ensure_ascii=False),
                id=call["id"],
                index=at,
            )
            for at, call in enumerate(message.tool_calls)
        ],
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
        chunk_position="last",
    )
