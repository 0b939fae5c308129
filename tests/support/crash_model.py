"""What the model of the processes that are killed says: it follows from the prompt alone."""

from __future__ import annotations

import os
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from memory.messages.trust import as_said
from tests.support.agents import EXTRACTING, dreamless, night_model
from tests.support.scripted import calls

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
    text = as_said(str(messages[newest].text))
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
        said = ("launched", "refused", "nobody knows")
        return next((one for one in said if one in str(told[-1].text)), "It is planned.")
    if text.startswith("Plan"):
        return calls(("add_goal", {"description": "Launch"}))
    target = text.removeprefix("Launch to ")
    first: tuple[str, dict[str, Any]] = ("add_journal_entry", {"content": f"Off to {target}."})
    if text.startswith("[autonomous"):
        target, first = "Venus", ("update_goal", {"goal_id": "goal_1_0", "status": "completed"})
    return calls(first, ("launch", {"target": target}))
