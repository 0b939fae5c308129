"""What every tool has in common: the time and place of its call, and the form of its answer."""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, TypeAlias

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolArg
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command
from pydantic import Field, GetPydanticSchema, PlainSerializer

from memory.errors import Refusal
from memory.records import Event

_AS_IT_IS = GetPydanticSchema(
    lambda _type, schema: schema(Annotated[Any, PlainSerializer(lambda _runtime: None)])
)
"""Taken as it is, and nothing where arguments are dumped: LangChain dumps those of every call, and
by a runtime's own schema the whole state would be copied for each."""

Runtime: TypeAlias = Annotated[ToolRuntime[Any, Any], InjectedToolArg, _AS_IT_IS]
"""Injected: the state, settings, store and config of the call. The model never sees it."""

Answer: TypeAlias = Command[str]
Reasoning: TypeAlias = Annotated[
    str | None, Field(description="Why you call this tool now, in one sentence.")
]


def answer(
    runtime: Runtime,
    result: Mapping[str, Any],
    *,
    artifact: Any = None,
    **state_update: Any,
) -> Answer:
    """A tool's result as the model reads it (JSON), with the change of state that goes with it.

    A result without `success` succeeded. `artifact` is for the loop and not shown to the model.
    """
    told = {"success": True, **result}
    message = ToolMessage(
        json.dumps(told, ensure_ascii=False),
        tool_call_id=runtime.tool_call_id,
        status="success" if told["success"] else "error",
        artifact=artifact,
    )
    return Command(update={**state_update, "messages": [message]})


def refusals_answered(
    tool: Callable[..., Awaitable[Answer]],
) -> Callable[..., Awaitable[Answer]]:
    """Make a Refusal the tool's answer, with nothing changed."""

    @functools.wraps(tool)
    async def answered(*, runtime: Runtime, **arguments: Any) -> Answer:
        try:
            return await tool(runtime=runtime, **arguments)
        except Refusal as refusal:
            return answer(runtime, refusal.result())

    return answered


def now_of(runtime: Runtime) -> datetime:
    """The time (UTC) that every write of the tick or night carries."""
    return datetime.fromisoformat(runtime.state["context"]["now"])


def event_of(runtime: Runtime) -> Event | None:
    """The event in hand; None in an autonomous tick and in a night."""
    event: Event | None = runtime.state.get("event")
    return event
