"""Following a run: its stream, part by part, as calls to a listener."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Self, cast

from langchain_core.messages import AIMessage

from graph.console import counted
from graph.use_cases import AgentContext, stream
from memory.events import ASLEEP, NO_GOAL
from memory.models import sure_words
from memory.night import NightEvent, is_night_event
from memory.records import Report, ToolOutcome, empty_report
from memory.state import Mode

if TYPE_CHECKING:
    from langgraph.runtime import RunControl

LOOKING_BACK = ("reflection", "reflection_cont")
"""Contexts in which the assistant speaks to itself."""

MODES = ["messages", "updates", "values", "custom"]

News = tuple[str, Any]
"""The kind of news, and the record."""

_NEWS = {
    "context_only": "overheard",
    "ignored": "ignored",
    "ticks": "tick",
    "questions": "question",
    "failures": "failure",
    "mode_changes": "mode",
    "notes": "note",
}
"""The lists of a report, in the order in which they are told, and the kind of news in each."""


STEP_NAMES = {
    "score_importance": "score what happened",
    "consolidate": "make facts",
    "settle": "settle the unimportant",
    "dream": "compare with what is known",
    "prune_links": "look for loose links",
    "consolidate_entities": "update people and things",
    "write_pages": "update pages",
    "reflect": "reflect",
    "prune": "let the unimportant fade",
    "extract_facts": "journal conclusions from the history",
    "compact": "compact the history",
    "weigh_night": "weigh what would change",
    "apply_operations": "apply the changes",
    "record_night": "end the night",
}


class Listener:
    """Reads a run's stream and calls its own hooks; a subclass overrides what it shows."""

    report: Report

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Take away what the listener shows in passing."""

    def begins(self) -> None:
        """A run starts; it may have to wait for another process first."""
        self.report = empty_report()
        self.begun = False
        """Whether the run has got the lock."""
        self.mode: Mode | None = None
        """The mode, as far as the run told it."""
        self._known = empty_report()
        """The last report, whose contents are not reported again."""
        self._told = 0
        """How many tool outcomes of the current tick were passed on."""
        self._passed: dict[str, tuple[str, str]] = {}
        """By message id: an answer's text so far, and the part that was passed on."""
        self._aside = False
        """Whether the tick reviews the assistant's own work: nothing of it is an answer."""

    async def part(self, part: Mapping[str, Any]) -> None:
        """Take one part of the stream, as LangGraph gives it (version 2, with subgraphs)."""
        self.begun = True
        if part["type"] == "messages":
            self._chunk(*part["data"])
        elif part["type"] == "custom":
            if is_night_event(part["data"]):
                self.on_night(part["data"])
        elif part["type"] == "updates":
            news = [
                item
                for node, update in part["data"].items()
                for item in self._updated(part["ns"], node, update)
            ]
            await self.on_news(news)
        elif not part["ns"]:
            self.report = cast(Report, part["data"].get("report") or self.report)
            self.mode = part["data"].get("mode", self.mode)

    def on_words(self, text: str, message_id: str) -> None:
        """A piece of an answer; pieces with one id belong together."""

    def on_work(self, tools: list[str]) -> None:
        """Work begins: names of tools, or words such as `planning`."""

    def on_outcomes(self, outcomes: list[ToolOutcome]) -> None:
        """Tools have run."""

    def on_night(self, event: NightEvent) -> None:
        """A step of a night begins, goes on or has ended."""

    def on_step(self, graph: str, node: str) -> None:
        """A node of `awake` or `sleep` has run."""

    async def on_news(self, news: Sequence[News]) -> None:
        """News in one part of the stream: events that a tick takes, and items of the report."""

    def _chunk(self, message: Any, metadata: Mapping[str, Any]) -> None:
        """Pass on what the model says in a tick; its other calls are not for the reader."""
        spoken = metadata.get("langgraph_node") == "act" and isinstance(message, AIMessage)
        if spoken and not self._aside and (text := str(message.text)):
            id_ = message.id or ""
            text = self._passed.get(id_, ("", ""))[0] + text
            self._pass_on(id_, text, sure_words(text))

    def _pass_on(self, id_: str, text: str, shown: str) -> None:
        before = self._passed.get(id_, ("", ""))[1]
        more = shown[len(before) :] if shown.startswith(before) else ""
        self._passed[id_] = (text, before + more)
        if more:
            self.on_words(more, id_)

    def _updated(self, namespace: Sequence[str], node: str, update: Any) -> Iterator[News]:
        graph = namespace[0].partition(":")[0] if namespace else ""
        if len(namespace) == 1:
            self.on_step(graph, node)
        if not isinstance(update, Mapping):
            return
        if len(namespace) == 1 and graph != "sleep":
            self._ticked(node, update)
        elif not namespace:
            yield from self._reported(update.get("report"))
            event, takes = update.get("event"), update.get("turn") == "tick"
            if node == "intake" and takes and event and not update.get("resuming"):
                yield "event", event

    def _reported(self, report: Report | None) -> Iterator[News]:
        if report is None:
            return
        before, self._known = self._known, report
        for key, what in _NEWS.items():
            told, now = cast(Any, before)[key], cast(Any, report)[key]
            yield from ((what, item) for item in now[len(told) :] if item not in (ASLEEP, NO_GOAL))
        if report["night"] is not None and before["night"] is None:
            yield "night", report["night"]

    def _ticked(self, node: str, update: Mapping[str, Any]) -> None:
        if node == "begin_tick":
            # Outcomes from before a tick waited for a person were passed on then.
            self._told = len(update["loop"]["tools"])
        if "context" in update:
            before, context = self._aside, update["context"]
            self._aside = context is not None and context["context_type"] in LOOKING_BACK
            if self._aside and not before:
                self.on_work(["looking back"])
        if self._aside:
            return
        if node == "draft_plan":
            self.on_work(["planning"])
        elif node == "act" and update.get("messages"):
            answer = update["messages"][-1]
            self._pass_on(answer.id or "", "", str(answer.text).strip())
            calls = getattr(answer, "tool_calls", [])
            # The calls run next, unless a person is asked about them first.
            if calls and update["loop"]["next"] == "use_tools":
                self.on_work([call["name"] for call in calls])
        elif node == "use_tools":
            outcomes = update["loop"]["tools"]
            self.on_outcomes(outcomes[self._told :])
            self._told = len(outcomes)
        if node in ("act", "use_tools", "confirm") and update["loop"]["next"] == "delegate":
            tasks = len(update["loop"]["delegating"])
            self.on_work([f"delegating {tasks} {'task' if tasks == 1 else 'tasks'}"])


async def follow(
    context: AgentContext,
    given: Mapping[str, Any],
    listener: Listener,
    control: RunControl | None = None,
) -> Report:
    """Run an agent on `given` and tell `listener`; returns the run's report, failures included."""
    listener.begins()
    parts = stream(
        context,
        given,
        raise_on_failure=False,
        stream_mode=MODES,
        subgraphs=True,
        version="v2",
        control=control,
    )
    # Closed here, because a listener may fail, such as when nobody reads its output any more.
    async with aclosing(parts):
        async for part in parts:
            await listener.part(part)
    return listener.report


def progress(event: NightEvent) -> str:
    """`score what happened: 20 of 52, 2 calls`, with the counts that are known."""
    counts = [f"{event['done']:,} of {event['of']:,}"] if event["of"] else []
    counts += [counted(event["llm_calls"], "call")] if event["llm_calls"] else []
    name = STEP_NAMES.get(event["step"], event["step"])
    return f"{name}: {', '.join(counts)}" if counts else name
