"""Hand a subgraph's state to the parent as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.types import Overwrite

from memory.messages import changes, without_waiting
from memory.state import State, checked


@checked
async def hand_back(state: State) -> dict[str, Any]:
    """End a parked tick or a night; `record` hands back a tick itself, which saves a step."""
    return handed_back(state)


def handed_back(state: State) -> dict[str, Any]:
    """The update that overwrites the parent's reducer keys and clears what only a subgraph needs.

    The parent merges a subgraph's whole final value, so that whatever the subgraph deleted from a
    key with a reducer would come back. `returned` does the same for the messages.
    """
    return {
        "projects": Overwrite({"__overwrite__": state["projects"]}),
        "goals": Overwrite({"__overwrite__": state["goals"]}),
        "conversations": Overwrite({"__overwrite__": state["conversations"]}),
        "delegated": Overwrite({"__overwrite__": {}}),
        "returning": True,
        "event": None,
        "classification": None,
        "resuming": None,
        "context": None,
        "assessment": None,
        "pattern": None,
        "loop": None,
        "exchange": [],
    }


def lent(state: State) -> State:
    """The state for a subgraph: messages that wait for their own ticks are none of its history."""
    return {**state, "messages": [*without_waiting(state["messages"])]}


def returned(state: State, ended: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that the subgraph changed; of the messages, what it added, changed or removed."""
    before: Mapping[str, Any] = state
    changed = {
        key: value for key, value in ended.items() if key not in before or value is not before[key]
    }
    return {**changed, "messages": changes(lent(state)["messages"], ended["messages"])}
