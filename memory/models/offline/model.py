"""The offline chat model: embedded rules, not a language model.

It needs no key, no network and no download, and gives the same answer to the same prompt. `decide`
tells the kinds of calls apart. Sentences become tool calls in `requests`, questions are answered in
`replies`; `night` does the work of nights. What no rule fits is acknowledged, not understood.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from memory.messages import prompt_lines
from memory.models.offline import night
from memory.models.offline.prompt import Call, Prompt, known_tools, read_prompt, states_something
from memory.models.offline.replies import answer, next_step, told, without_ids
from memory.models.offline.requests import Wishes, read_wishes
from memory.text import approximate_tokens, regex, shortened

_WORD = regex(r"\s*\S+\s*$|\s*\S+(?=\s)")


class OfflineChatModel(BaseChatModel):
    """Deterministic, embedded, free of charge; says so in `model_name`."""

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
    tools = known_tools(options.get("tools", []))
    decision = decide(messages, tools)
    calls = [_tool_call(messages, at, call) for at, call in enumerate(decision.calls)]
    message = AIMessage(
        content=decision.text,
        tool_calls=calls,
        response_metadata={"model_name": "offline", "finish_reason": "stop"},
    )
    read = approximate_tokens(messages, tools=options.get("tools", []))
    written = approximate_tokens([message])
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
        tool_calls=message.tool_calls,
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
        chunk_position="last",
    )


# What the model answers.

_STRUCTURED: Mapping[str, Callable[[Prompt], dict[str, Any]]] = {
    "Scores": night.scores,
    "TaskAssessment": night.task_assessment,
    "Subtasks": night.subtasks,
    "Dream": night.dream,
    "Attributes": night.attributes,
    "Questions": lambda _: {"questions": []},
    "Insights": lambda _: {"insights": []},
}
"""Functions that make a structured answer's arguments, by its form. A night's reflection asks
nothing: a conclusion drawn by rules would push memories out of prompts.
"""
_WHAT_NEXT = regex(r"what(?:'s| is| should \w+(?: \w+)?| comes)? next\b", re.IGNORECASE)


@dataclass(frozen=True)
class OfflineAnswer:
    """The model's text and tool calls."""

    text: str
    calls: tuple[Call, ...] = ()


def decide(messages: Sequence[BaseMessage], tools: Collection[str]) -> OfflineAnswer:
    """The answer to a prompt, given the names of the bound tools. The same in, the same out."""
    prompt = read_prompt(messages)
    names = sorted(tools)
    for form, answered in _STRUCTURED.items():
        if form in tools:
            return _called(Call(form, answered(prompt)))
    if prompt.system.startswith(prompt_lines.SUMMARISE):
        return OfflineAnswer(night.summary(prompt.human))
    entries = prompt_lines.ENTRIES in prompt.human.splitlines()
    if "store_memory" in tools and (entries or prompt.human.startswith(prompt_lines.SETTLE)):
        calls = night.consolidation(prompt, names) if entries else []
        return _called(*calls) if calls else OfflineAnswer("The batch is settled.")
    if night.reflects(prompt, tools):
        return OfflineAnswer(night.NOTHING)
    if prompt.human.startswith(prompt_lines.EXTRACTION):
        calls = night.extraction(prompt, names)
        return _called(*calls) if calls else OfflineAnswer("Nothing more is worth keeping.")
    if prompt.human.startswith(prompt_lines.TICK):
        said = without_ids(next_step(prompt.goals), prompt)
        if "noop" in tools and not prompt.done:
            return _called(Call("noop", {"reasoning": said}))
        return OfflineAnswer(said)
    wishes = read_wishes(prompt, tools)
    made = [(done.name, done.args) for done in prompt.done]
    left = [call for call in wishes.calls if (call.tool, call.args) not in made]
    return _called(*left) if left else OfflineAnswer(_reply(prompt, wishes))


def _called(*calls: Call) -> OfflineAnswer:
    return OfflineAnswer("", calls)


def _reply(prompt: Prompt, wishes: Wishes) -> str:
    """Results first, then what was unclear, then answers; small talk only when nothing else."""
    lines = [line for done in prompt.done if (line := told(done))]
    lines += dict.fromkeys(wishes.unclear)
    for question in wishes.questions:
        next_asked = prompt.goals and _WHAT_NEXT.search(question)
        lines.append(next_step(prompt.goals) if next_asked else answer(question, prompt))
    return without_ids("\n".join(lines), prompt) or _acknowledged(prompt, wishes)


def _acknowledged(prompt: Prompt, wishes: Wishes) -> str:
    telling = [one for one in wishes.remarks if states_something(one)] or wishes.remarks
    if telling:
        return f"Noted: {shortened(telling[0].rstrip('.!'), 160)}."
    if any("thank" in one.lower() for one in wishes.small_talk):
        return "You are welcome."
    if wishes.small_talk:
        name = prompt.sender.replace("_", " ")
        return "Hello." if name == "the user" else f"Hello, {name}."
    return "There is no text in this message that I can read."
