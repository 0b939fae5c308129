"""Following a run as it happens: the reply's words, the tools, the steps of a night."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

from langchain_core.messages import AIMessage

from graph.cli.console import counted
from graph.handle import AsyncAgent
from memory.night_stream import NightEvent, is_night_event
from memory.reports import Report, empty_report
from memory.tick import AssembledContext, ToolOutcome

LOOKING_BACK = ("reflection", "reflection_cont")
"""Contexts in which the assistant speaks to itself."""


class Listener(Protocol):
    """Whoever is told what a run does."""

    def words(self, text: str, message_id: str) -> None:
        """A piece of an answer; pieces with one id belong together."""
        ...

    def asked(self, tools: list[str]) -> None:
        """What is at work from now on: tools by name, or words for it such as `planning`."""
        ...

    def used(self, outcomes: list[ToolOutcome]) -> None:
        """They ran."""
        ...

    def night(self, event: NightEvent) -> None:
        """A step of a night begins, goes on or has ended."""
        ...


async def follow(agent: AsyncAgent, given: Mapping[str, Any], listener: Listener) -> Report:
    """Run the agent on `given`, telling `listener`; returns the run's report.

    Errors as `AsyncAgent.ainvoke`.
    """
    seen = _Seen(listener)
    modes = ["messages", "updates", "values", "custom"]
    parts = agent.astream(given, stream_mode=modes, subgraphs=True, version="v2")
    async for part in parts:
        seen.take(part)
    return seen.report


class _Seen:
    """What came so far of one run."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.report: Report = empty_report()
        self._told = 0
        """Tool outcomes of the tick in hand that the listener knows."""
        self._aside = False
        """The tick in hand is the assistant's look at its own work: nothing of it is an answer."""

    def take(self, part: dict[str, Any]) -> None:
        """One part of the stream."""
        if part["type"] == "messages":
            self._message(*part["data"])
        elif part["type"] == "custom":
            if is_night_event(part["data"]):
                self.listener.night(part["data"])
        elif part["type"] == "updates":
            for node, update in part["data"].items():
                self._node(part["ns"], node, update)
        elif not part["ns"]:
            self.report = cast(Report, part["data"].get("report") or self.report)

    def _message(self, message: Any, metadata: Mapping[str, Any]) -> None:
        """Only what the model says in a tick: other calls are not for the reader."""
        spoken = metadata.get("langgraph_node") == "act" and isinstance(message, AIMessage)
        if spoken and not self._aside and (text := str(message.text)):
            self.listener.words(text, message.id or "")

    def _node(self, namespace: tuple[str, ...], node: str, update: Any) -> None:
        tick = len(namespace) == 1 and not namespace[0].startswith("sleep:")
        if tick and isinstance(update, Mapping):
            self._step(node, update)

    def _step(self, node: str, update: Mapping[str, Any]) -> None:
        """A step of a tick."""
        if node == "begin_tick":
            # One that waited for a person has told of these before.
            self._told = len(update["loop"]["tools"])
        if "context" in update:
            self._look(update["context"])
        if self._aside:
            return
        if node == "draft_plan":
            self.listener.asked(["planning"])
        elif node == "act" and update.get("messages"):
            self._asked(update)
        elif node == "use_tools":
            outcomes = update["loop"]["tools"]
            self.listener.used(outcomes[self._told :])
            self._told = len(outcomes)
        if node in ("act", "use_tools", "confirm") and update["loop"]["next"] == "delegate":
            tasks = counted(len(update["loop"]["delegating"]), "task")
            self.listener.asked([f"delegating {tasks}"])

    def _look(self, context: AssembledContext | None) -> None:
        """Which kind of tick it is."""
        before = self._aside
        self._aside = context is not None and context["context_type"] in LOOKING_BACK
        if self._aside and not before:
            self.listener.asked(["looking back"])

    def _asked(self, update: Mapping[str, Any]) -> None:
        """Tools are about to run; one that a person is asked about is not."""
        calls = getattr(update["messages"][-1], "tool_calls", [])
        if calls and update["loop"]["next"] == "use_tools":
            self.listener.asked([call["name"] for call in calls])
