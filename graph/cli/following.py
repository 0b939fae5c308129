"""Following a run as it happens: the reply's words, the tools, the steps of a night."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

from langchain_core.messages import AIMessage

from graph.handle import AsyncAgent
from memory.reports import Report, empty_report
from memory.tick import ToolOutcome


class Listener(Protocol):
    """Whoever is told what a run does."""

    def words(self, text: str, message_id: str) -> None:
        """A piece of an answer; pieces with one id belong together."""
        ...

    def asked(self, tools: list[str]) -> None:
        """The model asked for these tools; they are about to run."""
        ...

    def used(self, outcomes: list[ToolOutcome]) -> None:
        """They ran."""
        ...

    async def night(self, node: str) -> None:
        """A step of a night has ended."""
        ...


async def follow(agent: AsyncAgent, given: Mapping[str, Any], listener: Listener) -> Report:
    """Run the agent on `given`, telling `listener`; returns the run's report.

    Errors as `AsyncAgent.ainvoke`.
    """
    seen = _Seen(listener)
    modes = ["messages", "updates", "values"]
    parts = agent.astream(given, stream_mode=modes, subgraphs=True, version="v2")
    async for part in parts:
        await seen.take(part)
    return seen.report


class _Seen:
    """What came so far of one run."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.report: Report = empty_report()
        self._told = 0
        """Tool outcomes of the tick in hand that the listener knows."""

    async def take(self, part: dict[str, Any]) -> None:
        """One part of the stream."""
        if part["type"] == "messages":
            self._message(*part["data"])
        elif part["type"] == "updates":
            for node, update in part["data"].items():
                await self._node(part["ns"], node, update or {})
        elif not part["ns"]:
            self.report = cast(Report, part["data"].get("report") or self.report)

    def _message(self, message: Any, metadata: Mapping[str, Any]) -> None:
        """Only what the model says in a tick: other calls are not for the reader."""
        spoken = metadata.get("langgraph_node") == "act" and isinstance(message, AIMessage)
        if spoken and (text := str(message.text)):
            self.listener.words(text, message.id or "")

    async def _node(self, namespace: tuple[str, ...], node: str, update: Any) -> None:
        if namespace and namespace[0].startswith("sleep:"):
            return await self.listener.night(node)
        if node == "begin_tick":
            self._told = 0
        elif node == "act" and update.get("messages"):
            calls = getattr(update["messages"][-1], "tool_calls", [])
            if calls:
                self.listener.asked([call["name"] for call in calls])
        elif node == "use_tools":
            outcomes = update["loop"]["tools"]
            self.listener.used(outcomes[self._told :])
            self._told = len(outcomes)
        return None
