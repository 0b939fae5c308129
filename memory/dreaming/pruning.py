"""Which journal entries a night prunes (data-flow-03, 4.4). Pure.

Old entries of little importance go, unless they became facts, are cited by anything, or an open
goal or project refers to them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from memory.importance import names_project
from memory.operations import prune_entry
from memory.records import Conversation, Goal, JournalEntry, Operation, Projects
from memory.settings import Settings


def prunable(
    entries: Iterable[JournalEntry],
    *,
    cited: Collection[str],
    open_projects: Collection[str],
    open_goals: str,
    now: datetime,
    settings: Settings,
) -> list[Operation]:
    """An operation for every entry to prune, oldest first.

    `cited`: ids of entries and events that facts, insights, observations or links stand on;
    `open_projects`: keys of projects that are not completed; `open_goals`: the words of all active
    goals and of those projects.
    """
    before = (now - timedelta(days=settings.prune_days)).isoformat()
    words = open_goals.casefold()
    gone = [
        entry
        for entry in entries
        if entry["timestamp"] < before
        and entry["importance"] <= settings.prune_importance
        and entry["consolidation"] not in ("consolidated", "exempt")
        and not _needed(entry, cited, open_projects, words)
    ]
    gone.sort(key=lambda entry: (entry["timestamp"], entry["id"]))
    why = f"importance <= {settings.prune_importance}, older than {settings.prune_days} days"
    return [prune_entry(entry, why) for entry in gone]


def _needed(
    entry: JournalEntry, cited: Collection[str], open_projects: Collection[str], goals: str
) -> bool:
    if entry["id"] in cited or any(source in cited for source in entry["sources"]):
        return True
    if any(key in entry["related_projects"] for key in open_projects):
        return True
    if any(names_project(entry["content"], key) for key in open_projects):
        return True
    return entry["id"].casefold() in goals or any(
        source.casefold() in goals for source in entry["sources"] if len(source) > 3
    )


def open_words(goals: Mapping[str, Goal], projects: Projects) -> str:
    """The texts of all active goals and of the projects that are not completed."""
    words = [one["description"] for one in goals.values() if one["status"] == "active"]
    slots = (projects["slots"][key] for key in open_keys(projects))
    return "\n".join(
        [*words, *(text for one in slots for text in (one["summary"], one["context"]))]
    )


def open_keys(projects: Projects) -> list[str]:
    """The keys of the projects that are not completed."""
    return [key for key, slot in projects["slots"].items() if slot["status"] != "completed"]


def stale(
    conversations: Mapping[str, Conversation], *, now: datetime, settings: Settings
) -> list[str]:
    """The keys of conversations that are idle for long and have no pending action."""
    before = now - timedelta(hours=settings.stale_conversation_hours)
    return [
        key
        for key, one in conversations.items()
        if datetime.fromisoformat(one["last_at"]) < before and not one["pending_actions"]
    ]
