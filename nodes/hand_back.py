"""Hand a subgraph's state to the parent as it is."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Overwrite

from memory.state import State, checked


@checked
async def hand_back(state: State) -> dict[str, Any]:
    """Overwrite the parent's reducer keys, and clear what only the subgraph needed.

    The parent merges a subgraph's whole final value, so that whatever the subgraph deleted from a
    key with a reducer would come back.
    """
    return {
        "messages": Overwrite([RemoveMessage(id=REMOVE_ALL_MESSAGES), *state["messages"]]),
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
