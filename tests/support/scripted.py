"""A chat model that says what a test tells it to, and records what it was asked."""

import asyncio
import hashlib
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr

Reply: TypeAlias = AIMessage | str
Rule: TypeAlias = Callable[[list[BaseMessage], list[str]], Reply]
Step: TypeAlias = AIMessage | str | Exception | Rule

_PREFIX = "scripted_"


@dataclass(frozen=True)
class RecordedCall:
    """One call: the messages as they were, and the names of the tools that were bound."""

    messages: list[BaseMessage]
    tools: list[str]

    @property
    def text(self) -> str:
        return "\n".join(str(message.text) for message in self.messages)


class ScriptedChatModel(BaseChatModel):
    """Gives one step a call, in order; an exception is raised, a function is asked.

    After the last step `otherwise` is asked for ever, if given; else the call fails the test. Raise
    a `memory.errors.ModelError` to end a call at once: it is never tried again, so nothing waits.
    """

    steps: list[Any] = Field(default_factory=list)
    otherwise: Any = None
    """A function as in `steps`, for every call after the last step."""
    log_path: Path | None = None
    """A file that gets one JSON line a call, before the answer: counts calls across processes."""
    delay: float = 0.0
    """Seconds before each answer."""

    _calls: list[RecordedCall] = PrivateAttr(default_factory=list)

    @property
    def calls(self) -> list[RecordedCall]:
        return self._calls

    @property
    def remaining(self) -> int:
        return max(0, len(self.steps) - len(self._calls))

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(tools=[_name_of(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        at = self._record(messages, kwargs)
        time.sleep(self.delay)
        return ChatResult(generations=[ChatGeneration(message=self._reply(at))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        at = self._record(messages, kwargs)
        await asyncio.sleep(self.delay)
        return ChatResult(generations=[ChatGeneration(message=self._reply(at))])

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        at = self._record(messages, kwargs)
        await asyncio.sleep(self.delay)
        for part in _chunks(self._reply(at)):
            chunk = ChatGenerationChunk(message=part)
            if run_manager is not None:
                await run_manager.on_llm_new_token(str(part.text), chunk=chunk)
            yield chunk

    def _record(self, messages: Sequence[BaseMessage], options: dict[str, Any]) -> int:
        tools = options.get("tools", [])
        self._calls.append(RecordedCall(list(messages), tools))
        at = len(self._calls) - 1
        if self.log_path is not None:
            last = str(messages[-1].text)[:200] if messages else ""
            line = json.dumps({"call": at, "tools": tools, "last": last})
            _append(self.log_path, line)
        return at

    def _reply(self, at: int) -> AIMessage:
        call = self._calls[at]
        if at >= len(self.steps) and self.otherwise is None:
            raise AssertionError(
                f"the script has {len(self.steps)} steps and this is call {at + 1}, with the tools "
                f"{call.tools}; its last message: {str(call.messages[-1].text)[:300]!r}"
            )
        step: Step = self.steps[at] if at < len(self.steps) else self.otherwise
        if isinstance(step, Exception):
            raise step
        reply = step if isinstance(step, AIMessage | str) else step(call.messages, call.tools)
        message = AIMessage(reply) if isinstance(reply, str) else reply.model_copy(deep=True)
        for tool_call in message.tool_calls:
            if str(tool_call["id"]).startswith(_PREFIX):
                tool_call["id"] = f"{tool_call['id']}_{at}"
        return message


@dataclass
class Waits:
    """Stands for `asyncio.sleep`: waits for nothing and records the seconds."""

    seconds: list[float] = field(default_factory=list)

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def scripted(*steps: Step, **options: Any) -> ScriptedChatModel:
    return ScriptedChatModel(steps=list(steps), **options)


def call(name: str, /, **args: Any) -> AIMessage:
    """An answer that calls one tool; its id comes from name, arguments and place in the script."""
    return calls((name, args))


def calls(*wanted: tuple[str, dict[str, Any]], text: str = "") -> AIMessage:
    made = []
    for at, (name, args) in enumerate(wanted):
        digest = hashlib.sha256(json.dumps([name, args], sort_keys=True).encode()).hexdigest()[:8]
        made.append(ToolCall(name=name, args=args, id=f"{_PREFIX}{digest}_{at}", type="tool_call"))
    return AIMessage(text, tool_calls=made)


def logged_calls(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def _name_of(tool: Any) -> str:
    """Without the form of a tool, which a provider is sent: to make it takes longer than a step."""
    if isinstance(tool, BaseTool):
        return tool.name
    return str(convert_to_openai_tool(tool)["function"]["name"])


def _append(path: Path, line: str) -> None:
    """One write to a file opened for appending: lines of several processes do not mix."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


def _chunks(message: AIMessage) -> Iterator[AIMessageChunk]:
    """The text word by word, then the rest."""
    for at, word in enumerate(str(message.text).split(" ") if message.text else []):
        yield AIMessageChunk(content=f" {word}" if at else word)
    yield AIMessageChunk(
        content="",
        tool_call_chunks=[
            tool_call_chunk(name=one["name"], args=json.dumps(one["args"]), id=one["id"], index=at)
            for at, one in enumerate(message.tool_calls)
        ],
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
        chunk_position="last",
    )
