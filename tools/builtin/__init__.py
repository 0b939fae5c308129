"""The built-in tools, by concern."""

from tools.builtin.communication import DELEGATE_TASK, delegate_task, send_message
from tools.builtin.disputes import settle_dispute
from tools.builtin.entities import update_entity_observation
from tools.builtin.memory import (
    add_journal_entry,
    recall_memories,
    review_journal,
    store_memory,
)
from tools.builtin.planning import (
    add_goal,
    add_session_memory,
    compact_session_memory,
    create_project,
    decompose_goal,
    list_projects,
    swap_project,
    update_goal,
    update_project,
)
from tools.builtin.self import get_system_status, go_to_sleep, noop, update_system_prompt, use_tool

__all__ = [
    "DELEGATE_TASK",
    "add_goal",
    "add_journal_entry",
    "add_session_memory",
    "compact_session_memory",
    "create_project",
    "decompose_goal",
    "delegate_task",
    "get_system_status",
    "go_to_sleep",
    "list_projects",
    "noop",
    "recall_memories",
    "review_journal",
    "send_message",
    "settle_dispute",
    "store_memory",
    "swap_project",
    "update_entity_observation",
    "update_goal",
    "update_project",
    "update_system_prompt",
    "use_tool",
]
