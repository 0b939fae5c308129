"""Opening agents in tests, and reading what a run did."""

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool
from langgraph.pregel import _utils as compiling

from graph.agent import open_agent
from graph.api import AsyncAgent
from memory.journal import entries as journal
from memory.messages.trust import unescaped
from memory.records.records import JournalEntry
from memory.settings import Settings
from tests.support.clock import Clock
from tests.support.scripted import ScriptedChatModel, calls

EXTRACTING = ["add_journal_entry", "update_entity_observation", "noop"]
"""The tools of an extraction, in the order in which a model is given them."""


Answer = TypeVar("Answer")
DREAMS = {
    "Dream": "relations",
    "Attributes": "attributes",
    "Questions": "questions",
    "Insights": "insights",
}
"""What dreaming asks for, and the list in which the answer stands."""

# LangGraph reads the bytecode of the same nodes whenever it compiles a graph.
compiling.get_function_nonlocals = cache(compiling.get_function_nonlocals)


@asynccontextmanager
async def opened(
    data: Path | None,
    model: BaseChatModel,
    clock: Clock,
    *,
    settings: Settings | None = None,
    tools: Sequence[BaseTool] = (),
    agent: str = "default",
) -> AsyncIterator[AsyncAgent]:
    """An agent under `data` with the hashing embedder and a clock that stands.

    None: in the database that CIRCADIAN_DATABASE_URL names.
    """
    opening = open_agent(
        data,
        agent=agent,
        model=model,
        embedder="offline",
        settings=settings,
        tools=tools,
        clock=clock,
    )
    async with opening as handle:
        yield handle


Opening = Callable[..., AbstractAsyncContextManager[AsyncAgent]]
"""`opened` in a folder of the test's own, by the test's clock: given a model and options."""


def model_of(agent: AsyncAgent) -> ScriptedChatModel:
    model = agent.resources.chat_model
    assert isinstance(model, ScriptedChatModel)
    return model


def said(text: str, sender: str = "Ada", **more: Any) -> dict[str, Any]:
    return {"events": [{"text": text, "sender": sender, **more}]}


def overheard(*texts: str, sender: str = "Ada", first: int = 0) -> dict[str, Any]:
    """An input with events that are not addressed to the assistant: e0, e1 ..."""
    given = enumerate(texts, first)
    return {
        "events": [
            {"id": f"e{n}", "text": text, "sender": sender, "addressed": False} for n, text in given
        ]
    }


def handled(out: Mapping[str, Any]) -> list[str]:
    return [tick["event_id"] for tick in out["report"]["ticks"]]


def replies(out: Mapping[str, Any]) -> list[str]:
    return [tick["reply"] for tick in out["report"]["ticks"]]


def result_of(message: BaseMessage) -> dict[str, Any]:
    """What a tool answered, as the model was shown it: JSON in a block."""
    lines = str(message.text).splitlines()
    assert (lines[0][:12], lines[-1]) == ("<tool_result", "</tool_result>")
    answered: dict[str, Any] = json.loads(unescaped("\n".join(lines[1:-1])))
    return answered


async def entries(agent: AsyncAgent) -> list[JournalEntry]:
    return list(reversed(await journal.newest(agent.store, agent.scope, limit=10_000)))


def shown_ids(messages: Sequence[BaseMessage]) -> list[str]:
    lines = str(messages[1].text).splitlines()[1:]
    return [line[1 : line.index("]")] for line in lines if line.startswith("[")]


WHEN = r"(?:\w{3} )?\d{4}-\d\d-\d\d(?: \d\d:\d\d)?"
"""A time in a prompt of a night, as a pattern."""
_LINE = re.compile(rf"^\[([^\]]+)\] {WHEN} (?:([^:]{{1,60}}): )?(.*)$", re.MULTILINE)


def shown_lines(messages: Sequence[BaseMessage]) -> list[tuple[str, str, str]]:
    """(number, speaker, text) of each entry in a night's batch."""
    return _LINE.findall(str(messages[1].text))


def scored(messages: Sequence[BaseMessage], importance: int = 7) -> AIMessage:
    scores = [{"id": one, "importance": importance} for one in shown_ids(messages)]
    return calls(("Scores", {"scores": scores}))


def dreamless(
    answer: Callable[[list[BaseMessage], list[str]], Answer],
) -> Callable[[list[BaseMessage], list[str]], Answer | AIMessage]:
    """`answer`, but what dreaming asks is answered that there is nothing."""

    def model(messages: list[BaseMessage], tools: list[str]) -> Answer | AIMessage:
        if len(tools) == 1 and tools[0] in DREAMS:
            return calls((tools[0], {DREAMS[tools[0]]: []}))
        return answer(messages, tools)

    return model


@dreamless
def night_model(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
    """Scores every entry 7, makes one fact of each, and dreams of nothing."""
    if tools == ["Scores"]:
        return scored(messages)
    lines = shown_lines(messages)
    facts = [{"text": text[:200], "source_ids": [one], "speaker": who} for one, who, text in lines]
    return calls(("store_memory", {"facts": facts}))
