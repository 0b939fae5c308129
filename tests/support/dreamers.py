"""A life of a few days for tests of nights, and a model that answers everything a night asks.

The model reads what it is shown and answers by rules, so that a night does all that nights do.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from graph.api import AsyncAgent
from memory import audit
from memory.journal import entries as journal
from memory.messages.trust import event_text
from memory.night.record import NIGHTS, OPEN
from memory.settings import Settings
from tests.support.agents import EXTRACTING, WHEN, said, shown_lines
from tests.support.clock import Clock
from tests.support.night_memories import Memory
from tests.support.scripted import ScriptedChatModel, call, calls, scripted

SETTINGS = Settings(
    min_observations=2,
    reflection_threshold=20,
    probes_kept=0,
    dream_batch_size=3,
    score_batch_size=3,
    consolidate_batch_size=3,
    night_calls_per_100=1_000,
    faded_kept=0,
)
SATURDAY = [
    ("Ben", "The glass arrives on Friday."),
    ("Ada", "I live in Bergen with my two cats."),
    ("Ben", "My sister Lila is allergic to strawberries."),
    ("Ada", "Trivial: it rained a little."),
    ("Ada", "Note: Ben built a greenhouse."),
]
SUNDAY = [
    ("Ben", "The glass arrives on Monday."),
    ("Ada", "I live in Oslo with my two cats."),
    ("Ben", "The glass really arrives on Monday."),
    ("Ada", "Lila is not allergic to strawberries."),
    ("Ben", "The glass is for the greenhouse."),
    ("Ada", "Note: Ben waters the greenhouse."),
]
RELATED = [
    ("arrives on Monday", "arrives on Friday", "supersedes"),
    ("lives in Oslo", "lives in Bergen", "supersedes"),
    ("live in Oslo", "live in Bergen", "supersedes"),
    ("really arrives on Monday", "glass arrives on Monday", "duplicates"),
    ("not allergic", "is allergic", "contradicts"),
    ("for the greenhouse", "arrives on", "relates"),
]
"""Words of a fact, words of another, and how they stand to each other."""
OWN = (NIGHTS, OPEN, "night", audit.AUDIT, journal.UNINDEXED)
"""Namespaces of a night's own records, and of what the index is still to be told of."""
_SHOWN = re.compile(rf"^\[(?P<id>[^\]]+)\] {WHEN} (?P<text>.*)$", re.MULTILINE)


Related = Sequence[tuple[str, str, str]]


def dreamer(*related: tuple[str, str, str], delay: float = 0.0) -> ScriptedChatModel:
    """A model for nights that relates facts by RELATED and `related`."""

    def answered(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        return answer(messages, tools, (*RELATED, *related))

    return scripted(otherwise=answered, delay=delay)


def answer(
    messages: list[BaseMessage], tools: list[str], related: Related = RELATED
) -> AIMessage | str:
    told = str(messages[1].text) if len(messages) > 1 else ""
    match tools:
        case ["Scores"]:
            return calls(("Scores", {"scores": [_score(*one) for one in shown(told).items()]}))
        case ["Dream"]:
            return calls(("Dream", _dream(shown(told), related)))
        case ["Attributes"]:
            return calls(("Attributes", {"attributes": _attributes(told)}))
        case ["Questions"]:
            return calls(("Questions", {"questions": ["What is known of the glass?"]}))
        case ["Insights"]:
            evidence = list(shown(told))[:2]
            one = {"text": "The glass is late.", "evidence": evidence, "importance": 8}
            return calls(("Insights", {"insights": [one]}))
    if tools == EXTRACTING:
        return calls(("noop", {}))
    if "Summarise" in str(messages[0].text):
        return "They spoke of glass and cats."
    if told.startswith("Entries:"):
        return "Done." if isinstance(messages[-1], ToolMessage) else _facts(messages)
    said_last = event_text(messages[-1])
    if "Note: " in said_last and not isinstance(messages[-1], ToolMessage):
        noted = said_last.partition("Note: ")[2].partition("\n")[0]
        return call("update_entity_observation", entity="Ben", observation=noted)
    return "I see."


def shown(text: str) -> dict[str, str]:
    """The lines of a prompt, by the ids shown."""
    return {found["id"]: found["text"] for found in _SHOWN.finditer(text)}


SCORES = {"Trivial": 2, "weighty": 8, "vital": 9}


def _score(id_: str, text: str) -> dict[str, Any]:
    given = [score for word, score in SCORES.items() if word in text]
    return {"id": id_, "importance": given[0] if given else 7}


def _facts(messages: Sequence[BaseMessage]) -> AIMessage:
    facts = [
        {"text": text, "source_ids": [id_], "speaker": who, "entities": [who]}
        for id_, who, text in shown_lines(messages)
    ]
    return calls(("store_memory", {"facts": facts}))


def _dream(facts: Mapping[str, str], related: Related) -> dict[str, Any]:
    relations = []
    for one, text in facts.items():
        for other, words in facts.items():
            for first, second, relation in related:
                if one != other and first in text and second in words and first not in words:
                    pair = {"fact": one, "other": other, "relation": relation}
                    relations.append({**pair, "reason": f"{relation} it"})
    contexts = [
        {"fact": one, "context": "Of the greenhouse.", "tags": ["glass"]}
        for one, text in facts.items()
        if "glass" in text
    ]
    return {"relations": relations, "contexts": contexts}


def _attributes(told: str) -> list[dict[str, Any]]:
    made = []
    for block in told.split("Entity [")[1:]:
        for id_, line in list(shown(block).items())[:1]:
            value = line.partition(": ")[2]
            one = {"entity": block.partition("]")[0], "name": "home", "value": value}
            made.append({**one, "evidence": [id_]})
    return made


async def day(
    agent: AsyncAgent, clock: Clock, heard: Sequence[tuple[str, str]], *, first: int = 0
) -> None:
    """A day with these messages; ids are counted from `first`, so that lives are equal."""
    await agent.ainvoke({"request": "wake"})
    for number, (who, text) in enumerate(heard, first):
        clock.advance(minutes=5)
        # What nobody is asked is no message of the conversation: a night may forget it.
        asked = not text.startswith("Trivial")
        await agent.ainvoke(said(text, who, id=f"said-{number}", addressed=asked))
    clock.advance(hours=10)


async def whole(agent: AsyncAgent) -> dict[str, Any]:
    """All memory by kind and id, without the nights' own records."""
    memory = Memory(agent.resources.semantic, agent.scope, agent.store)
    ours = f"{'/'.join(agent.scope.namespace())}/"
    kept = ((key.removeprefix(ours), one) for key, one in (await memory.everything()).items())
    return {key: one for key, one in kept if re.split("[/ ]", key)[0] not in OWN}
