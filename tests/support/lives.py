"""A life with two people in it, of whom one is to be forgotten; and looking through bytes."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from graph.agent import open_agent
from graph.api import AsyncAgent
from memory.errors import ModelError
from memory.messages.trust import event_text
from memory.settings import Settings
from tests.support.agents import EXTRACTING, dreamless, scored, shown_lines
from tests.support.clock import Clock
from tests.support.dangerous import Launches
from tests.support.scripted import ScriptedChatModel, call, calls, scripted

SETTINGS = Settings(
    max_context_tokens=1_500,
    compact_preserve_window=6,
    compact_sleep_threshold=0.1,
    max_failed_ticks=1,
)

ZORAS = ("zora", "quibbles", "parrot", "valparaiso", "durian", "walnut", "telescope", "lantern")
"""The forgotten one's name, and what only that one brought up."""
BENS = ("tomato", "turin", "balcony")

SAID: dict[str, tuple[AIMessage | None, str]] = {
    "My parrot Quibbles": (
        calls(
            ("add_goal", {"description": "Find a vet for the parrot in Valparaiso"}),
            ("add_session_memory", {"memory_type": "fact", "content": "A parrot lives there"}),
            ("update_entity_observation", {"entity": "Zora", "observation": "Keeps a parrot."}),
        ),
        "Welcome to Valparaiso, Zora and Quibbles.",
    ),
    "borrowed my telescope": (
        call("create_project", key="telescope", summary="Zora has the telescope", context="Ask"),
        "I will remind Zora of the telescope.",
    ),
    "grow tomatoes": (
        calls(
            ("add_goal", {"description": "Water the tomatoes on the balcony"}),
            (
                "add_session_memory",
                {"memory_type": "pattern", "content": "Tomatoes on a balcony dry out."},
            ),
        ),
        "Tomatoes like the sun.",
    ),
    "which fruit": (
        call("recall_memories", query="allergic fruit durian"),
        "Leave the durian out. Apples are fine.",
    ),
    "train to Turin": (None, "Have a good trip to Turin."),
    "lantern festival": (call("launch", target="the lantern festival"), "Done."),
}
FAILS = "nothing of this works"


def model() -> ScriptedChatModel:
    """Does what SAID says, makes a fact of each entry, and sums up what it is shown."""
    return scripted(otherwise=_answer)


class Lived(NamedTuple):
    """A data folder in which an agent has lived, to be copied."""

    data: Path
    now: datetime


def lived_in(folder: Path) -> Lived:
    clock = Clock()

    async def once() -> None:
        async with at_home(folder / "data", clock) as agent:
            await live(agent, clock)

    asyncio.run(once())
    return Lived(folder / "data", clock.now)


def copied(lived: Lived, to: Path) -> Path:
    shutil.copytree(lived.data, to)
    return to


@asynccontextmanager
async def at_home(
    data: Path | None, clock: Clock, agent: str = "default"
) -> AsyncIterator[AsyncAgent]:
    """The agent that lives there, or another one; without `data` where the variables say."""
    opening = open_agent(
        data,
        agent=agent,
        model=model(),
        embedder="offline",
        settings=SETTINGS,
        tools=[Launches().tool],
        clock=clock,
    )
    async with opening as handle:
        yield handle


async def live(agent: AsyncAgent, clock: Clock) -> None:
    """Two people for a day, a night, and a morning with what is left open."""
    await _say(agent, clock, "Zora", "My parrot Quibbles moved with me to Valparaiso on Tuesday.")
    await _say(agent, clock, "Zora", "I am allergic to durian and to walnuts.", addressed=False)
    await _say(agent, clock, "Ben", "Zora borrowed my telescope and wants to keep it for a week.")
    await _say(agent, clock, "Ben", "I grow tomatoes on my balcony.")
    await _say(agent, clock, "Ben", "Tell me which fruit is good for the party.")
    await _say(agent, clock, "Ben", "My train to Turin leaves on Friday at nine.")
    await agent.ainvoke({"request": "sleep"})
    clock.advance(hours=8)
    await _say(agent, clock, "Zora", "Please book the lantern festival for the two of us.")
    await _say(agent, clock, "Zora", f"Quibbles says that {FAILS}.")
    await agent.post({"id": "zora_9", "sender": "Zora", "text": "Are the walnuts gone?"})
    await agent.post({"id": "ben-9", "sender": "Ben", "text": "Is it warm in Turin?"})


async def _say(agent: AsyncAgent, clock: Clock, sender: str, text: str, **more: Any) -> None:
    clock.advance(minutes=5)
    event = {"sender": sender, "text": text, "channel": "hall", **more}
    await agent.ainvoke({"events": [event]}, raise_on_failure=False)


@dreamless
def _answer(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
    first, last = str(messages[0].text), messages[-1]
    if tools == ["Scores"]:
        return scored(messages)
    if tools == EXTRACTING:
        return "Nothing more."
    if "Summarise" in first:
        return (
            "Zora moved to Valparaiso. One guest cannot eat durian or walnuts. "
            "Ben grows tomatoes on his balcony."
        )
    if len(messages) > 1 and "Entries:" in str(messages[1].text):
        return _facts(messages)
    asked = next(m for m in reversed(messages) if isinstance(m, HumanMessage))
    if FAILS in event_text(asked):
        raise ModelError("Quibbles was right")
    for words, (wanted, reply) in SAID.items():
        if words in event_text(asked):
            return reply if isinstance(last, ToolMessage) or wanted is None else wanted
    return "I see."


def _facts(messages: list[BaseMessage]) -> AIMessage:
    if isinstance(messages[-1], ToolMessage):
        return AIMessage("Done.")
    facts = [
        {"text": f"{who} said: {text}", "source_ids": [id_], "speaker": who}
        for id_, who, text in shown_lines(messages)
    ]
    return calls(("store_memory", {"facts": facts}))


def holding(folder: Path, words: Iterable[str]) -> list[str]:
    """`file: word` for every file under `folder` whose bytes hold one of `words`, in any case."""
    found = []
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        content = path.read_bytes().lower()
        found += [f"{path.name}: {word}" for word in words if word.encode() in content]
    return found
