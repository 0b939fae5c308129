"""Models of the processes that are killed: each answer follows from the prompt alone.

`dream_of_all` finds work for every step of a night. An entry weighs what stands in brackets behind
it, and becomes a fact. Two facts that begin alike, as "Ada lives in Oslo" and "Ada lives in Rome",
are related.
"""

import os
import re
from collections.abc import Iterator
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from memory.messages.trust import event_text
from tests.support.agents import EXTRACTING, WHEN, dreamless, night_model
from tests.support.scripted import calls

LINE = re.compile(r"^\[([^\]]+)\] (.*)$", re.MULTILINE)
WEIGHT = re.compile(r"\((\d+)\)")
SAID = re.compile(rf"^{WHEN} (\w+): (.*)$")


def dream_of_all(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
    """One answer, the same whatever the process."""
    shown = str(messages[-1].text)
    match tools:
        case ["Scores"]:
            return calls(("Scores", {"scores": list(_scores(shown))}))
        case ["Dream"]:
            return calls(("Dream", _dream(shown)))
        case ["Attributes"]:
            return calls(("Attributes", {"attributes": list(attributes(shown))}))
        case ["Questions"]:
            asked = ["Where do people live?", "What do people drink?"]
            return calls(("Questions", {"questions": asked}))
        case ["Insights"]:
            return calls(("Insights", {"insights": list(_insights(shown))}))
    if tools == EXTRACTING:
        return _extraction(messages)
    if "Summarise" in str(messages[0].text):
        return "They spoke of many things."
    if len(messages) > 1 and "Entries:" in str(messages[1].text):
        return _facts(str(messages[1].text))
    return _awake(messages)


def _scores(shown: str) -> Iterator[dict[str, object]]:
    for id_, text in LINE.findall(shown):
        weight = WEIGHT.search(text)
        yield {"id": id_, "importance": int(weight[1]) if weight else 7}


def _facts(shown: str) -> AIMessage:
    facts = []
    for id_, line in LINE.findall(shown):
        if said := SAID.match(line):
            facts.append({"text": said[2], "source_ids": [id_], "speaker": said[1]})
    return calls(("store_memory", {"facts": facts}))


def _dream(shown: str) -> dict[str, object]:
    known = {id_: _told(text) for id_, text in LINE.findall(shown)}
    relations, contexts = [], []
    new = [id_ for id_, _ in LINE.findall(shown.partition("</new_facts>")[0])]
    for id_ in new:
        contexts.append({"fact": id_, "context": f"Of {known[id_][:2]}.", "tags": known[id_][:1]})
        for other in known:
            kind = _relation(known[id_], known[other])
            if kind and (other not in new or int(other) > int(id_)):
                pair = {"fact": id_, "other": other, "relation": kind, "reason": "both"}
                relations.append(pair)
    return {"relations": relations, "contexts": contexts}


def _told(line: str) -> list[str]:
    """The words of a fact: `time who: words`."""
    return line.split(": ", 1)[1].split()


def _relation(one: list[str], other: list[str]) -> str | None:
    if one[:2] != other[:2]:
        return "relates" if one[0] == other[0] else None
    if one[:4] == other[:4]:
        return "duplicates"
    return "supersedes" if "now" in one else "contradicts"


def attributes(shown: str) -> Iterator[dict[str, object]]:
    for part in shown.split("Entity [")[1:]:
        found = LINE.findall(part)
        if found:
            ids, (_, text) = [id_ for id_, _ in found], found[0]
            value = text.split(": ", 1)[1]
            entity = part.split("]", 1)[0]
            yield {"entity": entity, "name": "habit", "value": value, "evidence": ids[:2]}


def _insights(shown: str) -> Iterator[dict[str, object]]:
    for part in shown.split("Question: ")[1:]:
        found = LINE.findall(part)
        about = part.split("?", 1)[0].split()
        # Without words of what it names it would come from an earlier insight that says the same.
        text = f"People {about[-1]} in many ways: {found[0][1]}" if found else ""
        yield {"text": text, "evidence": [id_ for id_, _ in found[:3]], "importance": 8}


def _extraction(messages: list[BaseMessage]) -> AIMessage:
    if isinstance(messages[-1], ToolMessage):
        return calls(("noop", {}))
    noticed = {"entity": "Ada", "observation": "Ada walks at night."}
    entry = {"content": "The lamp by the door is broken."}
    return calls(("add_journal_entry", entry), ("update_entity_observation", noticed))


def _awake(messages: list[BaseMessage]) -> AIMessage | str:
    """Asked to notice something, it does; asked to recall or to plan, too."""
    if isinstance(messages[-1], ToolMessage):
        return "That is done."
    newest = next(one for one in reversed(messages) if isinstance(one, HumanMessage))
    text = event_text(newest)
    if text.startswith("Notice"):
        seen = ("hats", "songs", "boats", "tea", "rain", "dogs")
        notes = ({"entity": "Ada", "observation": f"Ada likes {one}."} for one in seen)
        return calls(*(("update_entity_observation", note) for note in notes))
    if text.startswith("Recall"):
        return calls(("recall_memories", {"query": "Where does Ada live?"}))
    if text.startswith("Plan"):
        project = {"key": "barn", "summary": "A barn", "context": "It needs a roof."}
        memory = {"memory_type": "fact", "content": "The barn is old."}
        return calls(
            ("create_project", project),
            ("add_goal", {"description": "Mend the roof of the barn"}),
            ("add_session_memory", memory),
        )
    return "I see."


TOO_LONG = "Summarise at length."
"""A prompt whose summary is longer than what it summarises."""


@dreamless
def behave(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
    """One answer, the same whatever the process.

    Asked to build, it calls five tools in two answers; asked to launch, a harmless tool and the
    dangerous one; any other message it repeats.
    """
    if "Entries:" in str(messages[1].text):
        return night_model(messages, tools)
    if TOO_LONG in str(messages[0].text):
        return f"Process {os.getpid()} goes on. " * 500
    if "Summarise" in str(messages[0].text):
        return f"They spoke; so says process {os.getpid()}."  # no model says the same twice
    if tools == EXTRACTING:
        if any(isinstance(one, ToolMessage) for one in messages):
            return calls(("noop", {}))
        noticed = {"entity": "Ada", "observation": "Ada numbers every message."}
        entry = {"content": "Beans grow."}
        return calls(("add_journal_entry", entry), ("update_entity_observation", noticed))
    newest = max(at for at, one in enumerate(messages) if isinstance(one, HumanMessage))
    text = event_text(messages[newest])
    if text.startswith(("Launch", "Plan", "[autonomous")):
        return launching(text, [one for one in messages[newest:] if isinstance(one, ToolMessage)])
    if not text.startswith("Build"):
        return f"Heard: {text[:40]}"
    match sum(isinstance(one, AIMessage) for one in messages[newest:]):
        case 0:
            project = {"project_key": "tavern", "summary": "A tavern", "initial_context": "North."}
            return calls(("create_project", project), ("add_goal", {"description": "Open it"}))
        case 1:
            fact = {"text": "Ada wants a tavern.", "speaker": "Ada"}
            note = {"content": "The tavern stands in the north."}
            noticed = {"entity": "Bea", "observation": "Bea pours the beer."}
            return calls(
                ("add_journal_entry", note),
                ("store_memory", {"facts": [fact]}),
                ("update_entity_observation", noticed),
            )
        case _:
            return "It is begun."


def launching(text: str, told: list[ToolMessage]) -> AIMessage | str:
    """Something harmless and the launch, in one answer; then what it was told of that.

    A launch that was planned happens in the tick of its own that works on the goal.
    """
    if told:
        said, texts = (
            ("launched", "refused", "nobody knows"),
            " ".join(str(one.text) for one in told),
        )
        return next((one for one in said if one in texts), "It is planned.")
    if text.startswith("Plan"):
        return calls(("add_goal", {"description": "Launch"}))
    target = text.removeprefix("Launch to ")
    first: tuple[str, dict[str, Any]] = ("add_journal_entry", {"content": f"Off to {target}."})
    if text.startswith("[autonomous"):
        target, first = "Venus", ("update_goal", {"goal_id": "goal_1_0", "status": "completed"})
    return calls(first, ("launch", {"target": target}))
