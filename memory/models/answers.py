"""Reading a model's answer as it is: thinking, refusals, broken calls, JSON among words. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, Literal

from langchain_core.messages import AIMessage, InvalidToolCall, ToolCall

from memory.text import regex, shortened

MALFORMED = "malformed_arguments"
"""Key in the arguments of a call that cannot be run: what is wrong with them, for the model."""

CUT_OFF = "[cut off: the model reached its output limit]"
"""Ends a reply that the output limit cut."""

_LONGEST = 200
"""Characters of malformed arguments that the model is shown."""

_TRIES = 200
"""Most places at which JSON is looked for in a text."""

_REASONS = ("finish_reason", "stop_reason", "done_reason", "finishReason", "stopReason")
_LENGTH = {"length", "max_tokens", "max_output_tokens", "model_length", "token_limit"}
_FILTER = {"content_filter", "refusal", "safety", "recitation", "prohibited_content", "blocklist"}


def ended_by(message: AIMessage) -> Literal["length", "filter"] | None:
    """What ended the answer early: the output limit, or the provider's filter; None if nothing."""
    told = message.response_metadata
    incomplete = told.get("incomplete_details") or {}
    given = {str(told.get(key)).lower() for key in _REASONS} | {str(incomplete.get("reason"))}
    if given & _LENGTH:
        return "length"
    return "filter" if given & _FILTER else None


def refusal_of(message: AIMessage) -> str | None:
    """Why the model declines to answer; None where it answers."""
    if message.tool_calls or str(message.text).strip():
        return None
    blocks = message.content if isinstance(message.content, list) else []
    told = [message.additional_kwargs.get("refusal")]
    told += [one.get("refusal") for one in blocks if isinstance(one, dict)]
    for why in told:
        if isinstance(why, str) and why.strip():
            return " ".join(why.split())
    return "it gave no reason" if ended_by(message) == "filter" else None


def as_read(message: AIMessage) -> AIMessage:
    """The answer without its thinking, but for blocks; calls that cannot be run say so."""
    content = message.content
    if isinstance(content, str):
        content = without_thinking(content)
    else:
        content = [
            {**block, "text": without_thinking(block["text"])}
            if isinstance(block, dict) and isinstance(block.get("text"), str)
            else block
            for block in content
        ]
    calls = [*message.tool_calls, *map(_unusable, message.invalid_tool_calls)]
    if calls and ended_by(message) == "length":
        # A streamed call whose end is missing is completed by the client: its text may be half.
        cut = "the output limit cut this call off in the middle; give less in one call"
        calls[-1] = {**calls[-1], "args": {MALFORMED: cut}}
    update = {"content": content, "tool_calls": calls, "invalid_tool_calls": []}
    return message.model_copy(update=update)


def _unusable(call: InvalidToolCall) -> ToolCall:
    raw = shortened(" ".join(str(call.get("args")).split()), _LONGEST)
    told = f"the arguments must be a JSON object, and these are not: {raw}"
    name = re.sub(r"[^\w-]", "_", call.get("name") or "") or "unnamed"
    return ToolCall(name=name[:64], args={MALFORMED: told}, id=call.get("id"), type="tool_call")


_OPENING = regex(r"<(think|thinking|thought|reasoning)>", re.IGNORECASE)
_LONE = regex(
    r"(?im)</(?:think|thinking|thought|reasoning)>[ \t]*\n|^[ \t]*</(?:think|thinking)>\s*\Z"
)


def without_thinking(text: str) -> str:
    """The text without `<think>...</think>`, which is no part of the answer. Tags in code stay.

    A text is dropped that begins with an endless thought. Some servers send only the closing tag.
    """
    if "<" not in text:
        return text
    kept = "".join(_outside(text, ended=True))
    lone = _LONE.search(kept)
    if lone and not _in_code(kept, 0, lone.start()):
        kept = kept[lone.end() :]
    return kept if kept == text else kept.strip()


def _outside(text: str, *, ended: bool) -> Iterator[str]:
    """The pieces outside of thinking; of an unfinished text those that are sure to be."""
    at = search = 0
    while opening := _OPENING.search(text, search):
        search = opening.end()
        if _in_code(text, at, opening.start()):
            continue
        closing = re.compile(f"</{opening[1]}>", re.IGNORECASE).search(text, opening.end())
        if closing is None:
            if ended and text[at : opening.start()].strip():
                continue
            yield text[at : opening.start()]
            return
        yield text[at : opening.start()]
        at = search = closing.end()
    yield text[at:]


def _in_code(text: str, begin: int, at: int) -> bool:
    line = text[text.rfind("\n", begin, at) + 1 : at]
    return text.count("```", begin, at) % 2 == 1 or line.count("`") % 2 == 1


_DOUBTFUL = regex(
    # Where JSON, a block of it, or a tag of calls begins.
    r"(?i)(?:^|\n)\s*[\[{]|```\s*(?:json|tool)|```\s*[\[{]|<\|?(?:tool_|function)|\[TOOL_CALLS"
    # What may become that: the text ends in the middle of such a mark.
    r"|`{1,3}\w*\s*\Z|<[/|]?\w*\Z|\[\w*\Z"
)


def sure_words(text: str) -> str:
    """The beginning of an unfinished answer that is surely no thinking and no printed call."""
    words = "".join(_outside(text, ended=False)).lstrip() if "<" in text else text.lstrip()
    doubtful = _DOUBTFUL.search(words)
    return words[: doubtful.start()] if doubtful else words


def json_values(text: str) -> Iterator[Any]:
    """The JSON objects and lists in a text, outermost ones, in order."""
    decoder, at = json.JSONDecoder(strict=False), 0
    for _ in range(_TRIES):
        found = re.compile(r"[\[{]").search(text, at)
        if found is None:
            return
        try:
            value, at = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            at = found.end()
        else:
            yield value


_NAMES = ("name", "tool", "tool_name", "function", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input", "action_input")
_TAG = regex(r"<\|?(?:tool_calls?|function_calls?)\b|<function=|\[TOOL_CALLS\]", re.IGNORECASE)


def calls_in(value: Any) -> Iterator[tuple[str, Any]]:
    """(tool, arguments) of JSON in the form of tool calls."""
    if isinstance(value, list):
        for item in value:
            yield from calls_in(item)
    if not isinstance(value, dict):
        return
    if isinstance(inner := value.get("tool_calls", value.get("function")), dict | list):
        yield from calls_in(inner)
        return
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    found = [value[key] for key in _ARGUMENTS if key in value]
    if name is None or (not found and len(value) > 1):
        return
    args = found[0] if found else {}
    if isinstance(args, str):
        args = next(json_values(args), args)
    yield name, args


def printed_call(text: str, tools: Collection[str]) -> str | None:
    """The tool that a text calls, where a model prints a call in place of making it; else None."""
    if not tools or not text.strip():
        return None
    for value in json_values(text):
        for name, _ in calls_in(value):
            if name in tools:
                return name
    tag = _TAG.search(text)
    return "a tool" if tag and not _in_code(text, 0, tag.start()) else None


def forms_in(text: str, form: str, fields: Collection[str]) -> list[Any]:
    """The arguments for a form that stand in a text: as they are, or as a call of the form."""
    found: list[Any] = []
    for value in json_values(text):
        called = [args for name, args in calls_in(value) if name == form]
        if not called and isinstance(value, dict):
            inner = value.get(form)
            called = [inner if isinstance(inner, dict) else value]
        if not called and isinstance(value, list) and len(fields) == 1:
            called = [{next(iter(fields)): value}]
        found += [args for args in called if isinstance(args, dict) and args.keys() & set(fields)]
    return [args for at, args in enumerate(found) if args not in found[:at]]
