"""Run the tool calls of one model answer in order; each sees what the call before it changed.

Their results get the form that the model reads and the state can hold.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolInvocationError
from langgraph.types import Command

from memory import telemetry
from memory.errors import explained
from memory.messages import REFUSED, marked
from memory.models import MALFORMED, total
from memory.records import CachedAnswer, CallRecord, Loop, ToolOutcome, Usage
from memory.state import State, held, merge_by_id, merge_projects, state_problem
from memory.text import safe, shortened
from tools.registry import BUILT_IN, ToolCategory, ToolKind, kind_of

MOST_CACHED = 50
"""Cached answers, the newest."""

LONGEST_CACHED = 20_000
"""Characters of an answer that is cached."""

MOST_NODES = 512
"""Tools that are kept ready to run, of all agents of a process."""


def cache_key(name: str, args: Mapping[str, Any], kind: ToolKind, state: Mapping[str, Any]) -> str:
    """A digest of the tool, its arguments without `reasoning`, and the state keys that it reads."""
    asked = {key: value for key, value in args.items() if key != "reasoning"}
    read = {key: state.get(key) for key in kind.reads}
    text = json.dumps([name, asked, read], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def with_answer(
    cache: Mapping[str, CachedAnswer],
    key: str,
    content: str,
    kind: ToolKind,
    *,
    tick: int,
    now: datetime,
) -> dict[str, CachedAnswer]:
    """`cache` with a new answer, and without the answers that expired."""
    assert kind.cache is not None
    entry: CachedAnswer = {
        "content": content,
        "scope": kind.cache,
        "tick": tick,
        "expires": None if kind.ttl is None else (now + timedelta(seconds=kind.ttl)).isoformat(),
    }
    kept = [(k, one) for k, one in cache.items() if k != key and _holds(one, tick, now)]
    return {**dict(kept[-(MOST_CACHED - 1) :]), key: entry}


def _holds(entry: CachedAnswer, tick: int, now: datetime) -> bool:
    if entry["scope"] == "tick" and entry["tick"] != tick:
        return False
    return entry["expires"] is None or now < datetime.fromisoformat(entry["expires"])


MOST_ARGUMENTS = 100_000
"""Characters of a call's arguments as JSON; longer calls are refused."""


@dataclass
class Executed:
    """The answers of calls, and what the calls changed."""

    messages: list[ToolMessage] = field(default_factory=list)
    update: dict[str, Any] = field(default_factory=dict)
    """State keys that changed, with their full values."""
    outcomes: list[ToolOutcome] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    """Ids of journal entries and facts."""
    usage: Usage = field(default_factory=lambda: Usage(llm_calls=0, tokens=0))
    """Model calls that tools made themselves."""
    raised: int = 0
    """Tools that raised or timed out: these count as failures in a row, and wrong calls do not."""
    calls: list[CallRecord] = field(default_factory=list)


@dataclass
class _Answered:
    message: ToolMessage
    update: dict[str, Any] = field(default_factory=dict)
    raised: bool = False
    cached: bool = False


async def execute(
    calls: Sequence[ToolCall],
    tools: Sequence[BaseTool],
    state: State,
    config: RunnableConfig,
    *,
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
) -> Executed:
    """Run `calls` one after the other; every call gets exactly one answer.

    Calls do not run in parallel, because a rollup or a project swap must see what the call before
    it changed. A tool that raises or times out, an unknown tool and bad arguments become errors
    that the model reads. Cancellation and an interrupt of the graph pass through; when the graph is
    resumed after such an interrupt, the calls before it run again.

    `seconds`: a tool's time limit, unless it has its own; `clock`: monotonic, in seconds, for
    durations. Cached answers expire by the tick's time.
    """
    done = Executed()
    offered = {tool.name: tool for tool in tools}
    now = datetime.fromisoformat(held(state["context"])["now"])
    working = dict(state)
    for call in calls:
        began = clock()
        tool = offered.get(call["name"])
        answered = _refusal(call, tool, offered)
        if answered is None:
            with telemetry.execute_tool(call["name"], call["id"]) as span:
                answered = await _cached_or_run(
                    call, offered[call["name"]], working, config, seconds, now
                )
                if answered.message.status == "error":
                    telemetry.failed(span, "tool_error")
        _take(done, working, call, answered, round(1000 * (clock() - began)))
    return done


def refuse(calls: Sequence[ToolCall], error: str, suggestion: str) -> Executed:
    """Answer `calls` without running them."""
    done = Executed()
    for call in calls:
        _take(done, {}, call, _error(call, error, suggestion), 0)
    return done


def as_answered(call: ToolCall, content: str, *, ok: bool) -> Executed:
    """The answer to a call that did not run here, such as a sub-agent's; it is not logged."""
    return Executed(
        messages=[_message(call, content, "success" if ok else "error")],
        outcomes=[ToolOutcome(name=call["name"], ok=ok)],
    )


def _refusal(
    call: ToolCall, tool: BaseTool | None, offered: dict[str, BaseTool]
) -> _Answered | None:
    if tool is None:
        known = ", ".join(sorted(offered)) or "none"
        name = shortened(call["name"], 64)
        return _error(call, f"there is no tool {name!r}", f"Tools here: {known}.")
    if MALFORMED in call["args"]:
        return _error(call, str(call["args"][MALFORMED]), "Call it again with these mended.")
    size = _size_of(call["args"])
    if size is None:
        return _error(call, "the arguments are nested too deeply", "Give them flat.")
    if size > MOST_ARGUMENTS:
        told = f"the arguments have {size:,} characters, more than {MOST_ARGUMENTS:,}"
        return _error(call, told, "Give less at a time.")
    return None


async def _cached_or_run(
    call: ToolCall,
    tool: BaseTool,
    working: dict[str, Any],
    config: RunnableConfig,
    seconds: float,
    now: datetime,
) -> _Answered:
    kind = kind_of(tool)
    # A tool that calls a model or an outside store takes as long as it takes.
    unbounded = kind.timeout is not None or kind.category == ToolCategory.ASYNC_REQUIRED
    limit = kind.timeout if unbounded else seconds
    if kind.cache is None:
        return await _run(call, tool, working, config, limit)
    key = cache_key(tool.name, call["args"], kind, working)
    cache, tick = working.get("tool_cache") or {}, working.get("tick", 0)
    if (kept := cache.get(key)) and _holds(kept, tick, now):
        message = _message(call, kept["content"], "success")
        message.artifact = {"cached": True}
        return _Answered(message, cached=True)
    answered = await _run(call, tool, working, config, limit)
    if _cacheable(answered):
        content = str(answered.message.content)
        cache = with_answer(cache, key, content, kind, tick=tick, now=now)
        answered.update = {"tool_cache": cache}
    return answered


def _cacheable(answered: _Answered) -> bool:
    message = answered.message
    plain = isinstance(message.content, str) and len(message.content) <= LONGEST_CACHED
    return plain and message.status != "error" and not answered.update and message.artifact is None


async def _run(
    call: ToolCall,
    tool: BaseTool,
    working: dict[str, Any],
    config: RunnableConfig,
    limit: float | None,
) -> _Answered:
    """Run the tool. After a timeout, a tool in a thread goes on until it ends by itself."""
    errors: list[Exception] = []

    def failed(error: Exception) -> str:
        errors.append(error)
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

    _explain.set(failed)
    form, args = tool.args_schema, call["args"]
    if isinstance(form, dict) and "reasoning" not in form.get("properties", {}):
        # Models give it to every tool, as to the built-in ones, and an MCP server may refuse it.
        args = _without_reasoning(args)
    given = ToolCall(name=call["name"], args=args, id=call["id"] or "", type="tool_call")
    asked = AIMessage("", tool_calls=[given])
    seen = {**working, "messages": [*working.get("messages", []), asked]}
    try:
        async with asyncio.timeout(limit):
            message, update = _read(await _node_of(tool).ainvoke(seen, config), call)
    except TimeoutError:
        late = f"{call['name']} did not answer within {limit:g} s"
        return _error(call, late, "Go on without it, or ask for less.", raised=True)
    if tool.name not in BUILT_IN:
        message = _tidied(message, call)
        if wrong := _problem_of_update(working, update):
            told = f"{call['name']} returned a change of the state that breaks it: {wrong}"
            return _error(call, told, "Nothing was changed. Go on without it.", raised=True)
    raised = any(not isinstance(error, ToolInvocationError) for error in errors)
    return _Answered(message, update, raised)


_explain: ContextVar[Callable[[Exception], str]] = ContextVar("_explain")
"""Gives the model's text for an error of the call that runs now."""

_nodes: dict[int, ToolNode] = {}
"""LangGraph's node of each tool, by identity: making a node reads the tool's whole signature."""


def _node_of(tool: BaseTool) -> ToolNode:
    node = _nodes.get(id(tool))
    if node is None or tool.name not in node.tools_by_name:
        if len(_nodes) >= MOST_NODES:
            _nodes.clear()
        node = ToolNode([tool], handle_tool_errors=lambda error: _explain.get()(error))
        _nodes[id(tool)] = node  # the node keeps the tool alive, so no other tool gets its id
    return node


def _problem_of_update(working: dict[str, Any], update: dict[str, Any]) -> str | None:
    unknown = [key for key in update if key not in State.__annotations__]
    if unknown:
        return f"there is no key {unknown[0]!r}"
    merged = {key: _merged(key, working.get(key), value) for key, value in update.items()}
    problem = state_problem(merged) if merged else None
    return problem and problem.partition(". Mend it")[0]  # the rest is for people


def _error(call: ToolCall, error: str, suggestion: str, *, raised: bool = False) -> _Answered:
    answer = _message(call, error_text(error, suggestion), "error")
    return _Answered(marked(answer, **{REFUSED: True}), raised=raised)


def _message(call: ToolCall, content: str, status: Any) -> ToolMessage:
    return ToolMessage(content, tool_call_id=call["id"] or "", name=call["name"], status=status)


def _take(
    done: Executed, working: dict[str, Any], call: ToolCall, answered: _Answered, milliseconds: int
) -> None:
    message, ok = answered.message, answered.message.status != "error"
    outcome = ToolOutcome(name=call["name"], ok=ok)
    telemetry.TOOL_CALLS.labels("ok" if ok else "failed").inc()
    done.messages.append(message)
    done.outcomes.append(outcome)
    done.raised += answered.raised
    done.calls.append(_record(call, answered, milliseconds))
    told = message.artifact if isinstance(message.artifact, dict) else {}
    done.written += told.get("written", [])
    done.usage = total(done.usage, told.get("usage", {"llm_calls": 0, "tokens": 0}))
    for key, value in answered.update.items():
        working[key] = _merged(key, working.get(key), value)
        done.update[key] = working[key]
    loop = cast(Loop | None, working.get("loop"))
    if loop is not None:
        working["loop"] = {**loop, "tools": [*loop["tools"], outcome]}
    else:
        working["exchange"] = [*(working.get("exchange") or []), message]


def _record(call: ToolCall, answered: _Answered, milliseconds: int) -> CallRecord:
    size = _size_of(call["args"])
    small = size is not None and size <= MOST_ARGUMENTS
    reasoning = call["args"].get("reasoning")
    return {
        "name": call["name"],
        "args": _without_reasoning(call["args"]) if small else {},
        "reasoning": str(reasoning) if reasoning is not None and small else None,
        "ok": answered.message.status != "error",
        "error": _problem_of(answered.message),
        "duration_ms": milliseconds,
        "cached": answered.cached,
    }


def _without_reasoning(args: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in args.items() if name != "reasoning"}


def _merged(key: str, old: Any, new: Any) -> Any:
    if key == "goals":
        return merge_by_id(old, new)
    return merge_projects(old, new) if key == "projects" else new


# Results of tools.

LONGEST_ANSWER = 50_000
"""Characters of an answer of a user's tool that the model is shown."""

_NO_OUTPUT = json.dumps({"success": True, "message": "The tool gave no output"})


def _read(output: Any, call: ToolCall) -> tuple[ToolMessage, dict[str, Any]]:
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


def _tidied(message: ToolMessage, call: ToolCall) -> ToolMessage:
    """The answer of a user's or an MCP server's tool as a bounded text for this call.

    An artifact is dropped: it may be anything, and would be checkpointed.
    """
    content = message.content
    if not isinstance(content, str):
        content = "\n".join(one if isinstance(one, str) else _block(one) for one in content)
    text = content.encode("utf-8", "replace").decode()
    if text in ("", "null"):
        text = _NO_OUTPUT
    failed = message.status == "error" or (_object(text) or {}).get("success") is False
    return ToolMessage(
        _bounded(text),
        tool_call_id=call["id"] or "",
        name=call["name"],
        status="error" if failed else "success",
    )


def error_text(error: str, suggestion: str) -> str:
    """The JSON of an error, the same for every tool."""
    told = {"success": False, "error": error, "suggestion": suggestion}
    return json.dumps(told, ensure_ascii=False)


def _problem_of(message: ToolMessage) -> str | None:
    if message.status != "error":
        return None
    told = _object(str(message.content)) or {}
    return shortened(str(told.get("error") or message.content), 300)


def _size_of(args: Mapping[str, Any]) -> int | None:
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


def _block(block: Mapping[str, Any]) -> str:
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


def _object(text: str) -> dict[str, Any] | None:
    if not text.startswith("{") or len(text) > LONGEST_ANSWER:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
