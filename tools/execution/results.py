"""Results of tools, in the form that the model reads and the state can hold. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import ToolCall, ToolMessage
from langgraph.prebuilt.tool_node import ToolInvocationError
from langgraph.types import Command

from memory.errors import explained
from memory.text import safe, shortened

LONGEST_ANSWER = 50_000
"""Characters of an answer of a user's tool that the model is shown."""

_NO_OUTPUT = json.dumps({"success": True, "message": "The tool gave no output"})


def read(output: Any, call: ToolCall) -> tuple[ToolMessage, dict[str, Any]]:
    """(the answer to `call`, the change of the state) in a ToolNode's output.

    The output is a dict with the message, or a list of Commands and such dicts. Other messages
    from a tool are dropped: only the loop writes the history.
    """
    update: dict[str, Any] = {}
    messages: list[Any] = []
    for part in output if isinstance(output, list) else [output]:
        given = dict((part.update or {}) if isinstance(part, Command) else part)
        messages += given.pop("messages", [])
        update |= given
    answers = [m for m in messages if isinstance(m, ToolMessage)]
    named = [m for m in answers if m.tool_call_id == call["id"]]
    return (named or answers)[-1], update


def tidied(message: ToolMessage, call: ToolCall) -> ToolMessage:
    """The answer of a user's or an MCP server's tool as a bounded text for this call.

    An artifact is dropped: it may be anything, and would be checkpointed.
    """
    text = _text(message.content).encode("utf-8", "replace").decode()
    if text in ("", "null"):
        text = _NO_OUTPUT
    failed = message.status == "error" or _says_failure(text)
    return ToolMessage(
        _bounded(text),
        tool_call_id=call["id"] or "",
        name=call["name"],
        status="error" if failed else "success",
    )


def failure(error: Exception) -> str:
    """The answer to a call that raised or whose arguments do not fit."""
    if isinstance(error, ToolInvocationError):
        found = error.filtered_errors or error.source.errors()
        wrong = explained(found)
        more = [f"and {len(found) - len(wrong)} more"] if len(found) > len(wrong) else []
        return error_text(safe("; ".join([*wrong, *more])), "Call it again with these mended.")
    cause = innermost(error)
    return error_text(
        safe(f"{type(cause).__name__}: {cause}"),
        "Nothing is known to have changed. Go on without it, or try once more.",
    )


def error_text(error: str, suggestion: str) -> str:
    """The JSON of an error, the same for every tool."""
    told = {"success": False, "error": error, "suggestion": suggestion}
    return json.dumps(told, ensure_ascii=False)


def problem_of(message: ToolMessage) -> str | None:
    """The error on one line, or None."""
    if message.status != "error":
        return None
    told = _object(str(message.content)) or {}
    return shortened(str(told.get("error") or message.content), 300)


def size_of(args: Mapping[str, Any]) -> int | None:
    """Characters of the arguments as JSON; None if they are nested too deeply for JSON."""
    try:
        return len(json.dumps(args, ensure_ascii=False))
    except (RecursionError, ValueError, TypeError):
        return None


def innermost(error: BaseException) -> BaseException:
    """The first error within nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _text(content: str | Sequence[str | Mapping[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(one if isinstance(one, str) else _block(one) for one in content)


def _block(block: Mapping[str, Any]) -> str:
    """A content block as text; other media are only named."""
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "json":
            return json.dumps(block.get("json"), ensure_ascii=False)
        case kind:
            form = block.get("mime_type")
            return f"[{kind}{f', {form}' if form else ''}: left out, this is text only]"


def _bounded(text: str) -> str:
    left = len(text) - LONGEST_ANSWER
    if left <= 0:
        return text
    return f"{text[:LONGEST_ANSWER]}\n[{left:,} more characters were left out]"


def _says_failure(text: str) -> bool:
    """Whether the answer is a JSON object with `success: false`, as of built-in tools."""
    return (_object(text) or {}).get("success") is False


def _object(text: str) -> dict[str, Any] | None:
    if not text.startswith("{") or len(text) > LONGEST_ANSWER:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
