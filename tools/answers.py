"""What all tools share: the runtime of a call, and the form of an answer."""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, TypeAlias

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolArg, tool
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command
from pydantic import Field, GetPydanticSchema, PlainSerializer
from pydantic.json_schema import SkipJsonSchema

from memory.errors import Refusal
from memory.records import Event

_AS_IT_IS = GetPydanticSchema(
    lambda _type, schema: schema(Annotated[Any, PlainSerializer(lambda _runtime: None)])
)
"""Accepts the runtime as it is and dumps it as None. LangChain dumps the arguments of every call,
and the runtime's own schema would copy the whole state each time."""

Runtime: TypeAlias = Annotated[ToolRuntime[Any, Any], InjectedToolArg, _AS_IT_IS]
"""State, settings, store and config of the call. Injected; the model never sees it."""

Answer: TypeAlias = Command[str]
Absent: TypeAlias = SkipJsonSchema[None]
"""None for an argument that is left out. The schema that the model reads does not name it."""

Reasoning: TypeAlias = Annotated[
    str | Absent, Field(description="Why you call this tool now, in one sentence.")
]
"""Why a tool is called, where something depends on it. Every other tool accepts it, too, as it
ignores arguments that it does not know; the audit log keeps it."""


def answer(
    runtime: Runtime, result: Mapping[str, Any], *, artifact: Any = None, **state_update: Any
) -> Answer:
    """A tool's result as JSON, with a change of the state.

    `success` is True unless the result says otherwise. `artifact` is for the loop; the model does
    not see it.
    """
    told = {"success": True, **result}
    message = ToolMessage(
        json.dumps(told, ensure_ascii=False),
        tool_call_id=runtime.tool_call_id,
        status="success" if told["success"] else "error",
        artifact=artifact,
    )
    return Command(update={**state_update, "messages": [message]})


def built_in(function: Callable[..., Awaitable[Answer]]) -> BaseTool:
    """Make a tool of a function. A Refusal that it raises is its answer, and nothing changes."""

    @functools.wraps(function)
    async def answered(*, runtime: Runtime, **arguments: Any) -> Answer:
        try:
            return await function(runtime=runtime, **arguments)
        except Refusal as refusal:
            return answer(runtime, refusal.result())

    return tool(answered)


def now_of(runtime: Runtime) -> datetime:
    """The time (UTC) of the tick or night, which all its writes carry."""
    return datetime.fromisoformat(runtime.state["context"]["now"])


def event_of(runtime: Runtime) -> Event | None:
    """The event of the tick; None in an autonomous tick and in a night."""
    event: Event | None = runtime.state.get("event")
    return event
