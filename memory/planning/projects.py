"""Projects: context slots paged in and out, like processes. Pure.

A change that the rules do not allow raises Refusal.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NotRequired

from typing_extensions import TypedDict

from memory.errors import Refusal
from memory.records import CompletedTask, Marks, Project, Projects, ProjectStatus

LONGEST_CONTEXT = 20_000
"""Characters of a project's context: every checkpoint copies it."""


class SwapResult(TypedDict):
    """Result of a swap, for the model."""

    old_project: str | None
    new_project: str
    new_project_summary: str
    new_project_context: str
    replaced_context: NotRequired[str]
    """The whole context of the old project, if it is gone."""


def create(
    projects: Projects,
    key: str,
    summary: str,
    context: str,
    now: datetime,
    *,
    marks: Marks | None = None,
) -> Projects:
    """Create a project and make it active; the previous one is paused and stamped.

    White space around the key is removed. `marks`: to whom it belongs, and on whose words it rests.
    """
    key = key.strip()
    if not key:
        raise Refusal("A project needs a key", "Give a short key such as 'build_tavern'.")
    if key in projects["slots"]:
        raise Refusal(
            f"Project '{key}' already exists",
            "Use swap_project to switch to it, or create the new project under another key.",
            available_projects=list(projects["slots"]),
        )
    stamp = now.isoformat()
    slot: Project = {
        "summary": summary,
        "context": context,
        "status": "active",
        "created_at": stamp,
        "last_active": stamp,
    }
    if marks:
        slot = {**slot, **marks}
    return {"active": key, "slots": {**_put_away(projects, None, stamp), key: slot}}


def swap(
    projects: Projects,
    key: str,
    current_project_update: str | None,
    now: datetime,
    *,
    replace: bool = False,
) -> tuple[Projects, SwapResult]:
    """Page the active project out and `key` in; an update joins the old project's context.

    With `replace` the update replaces that context, which the result then holds. The old project is
    always paused and stamped. A swap to the active project only saves the update.
    """
    old = projects["active"]
    key = key if key in projects["slots"] else key.strip()
    if key not in projects["slots"]:
        raise Refusal(
            f"Project does not exist: '{key}'",
            "Choose one of available_projects, or make it with create_project.",
            available_projects=list(projects["slots"]),
        )
    if key == old:
        given = _given(current_project_update)
        after = (
            update(projects, current_project_update, None, now, replace=replace)[0]
            if given
            else projects
        )
    else:
        stamp = now.isoformat()
        slots = _put_away(projects, current_project_update, stamp, replace=replace)
        slots[key] = {**slots[key], "status": "active", "last_active": stamp}
        after = {"active": key, "slots": slots}
    slot = after["slots"][key]
    result: SwapResult = {
        "old_project": old,
        "new_project": key,
        "new_project_summary": slot["summary"],
        "new_project_context": slot["context"],
    }
    if old is not None and (gone := replaced(projects, after, old)) is not None:
        result["replaced_context"] = gone
    return after, result


def update(
    projects: Projects,
    context_update: str | None,
    status: ProjectStatus | None,
    now: datetime,
    *,
    replace: bool = False,
) -> tuple[Projects, CompletedTask | None]:
    """Change the active project; None or a blank update keeps its context.

    An update is appended to the context, or replaces it with `replace`. A status other than active
    frees the active slot; `completed` also returns a completed task.
    """
    key = projects["active"]
    if key is None or key not in projects["slots"]:
        raise Refusal(
            "No project is active",
            "Page one in with swap_project, or make one with create_project.",
            available_projects=list(projects["slots"]),
        )
    if not _given(context_update) and status is None:
        raise Refusal("Nothing to change", "Give context_update, status, or both.")
    stamp = now.isoformat()
    slot = _stamped(projects["slots"][key], context_update, stamp, replace=replace)
    slot = {**slot, "status": status or "active"}
    done: CompletedTask | None = None
    if slot["status"] == "completed":
        done = {"description": slot["summary"], "timestamp": stamp}
    active = key if slot["status"] == "active" else None
    return {"active": active, "slots": {**projects["slots"], key: slot}}, done


def replaced(before: Projects, after: Projects, key: str) -> str | None:
    """The project's context before the change; None if the new context still has all of it."""
    old = before["slots"][key]["context"]
    return None if _within(old, after["slots"][key]["context"]) else old


def _put_away(
    projects: Projects, context: str | None, stamp: str, *, replace: bool = False
) -> dict[str, Project]:
    slots = dict(projects["slots"])
    key = projects["active"]
    if key is not None and key in slots:
        slots[key] = {
            **_stamped(slots[key], context, stamp, replace=replace),
            "status": "paused",
        }
    return slots


def _stamped(slot: Project, update: str | None, stamp: str, *, replace: bool) -> Project:
    if update is None or not _given(update):
        return {**slot, "last_active": stamp}
    return {**slot, "context": _joined(slot["context"], update, replace), "last_active": stamp}


def _joined(standing: str, update: str, replace: bool) -> str:
    """The context with the update appended; an update that repeats the context replaces it."""
    whole = replace or _within(standing, update)
    if not whole and _lines(update) <= _lines(standing):
        return standing
    context = update if whole else f"{standing.rstrip()}\n{update}"
    if len(context) > LONGEST_CONTEXT:
        raise Refusal(
            f"The project's context would have {len(context):,} characters, "
            f"more than {LONGEST_CONTEXT:,}",
            "Give a shorter account of where the whole project stands, with replace=true.",
        )
    return context


def _within(part: str, text: str) -> bool:
    return " ".join(part.split()) in " ".join(text.split())


def _lines(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines() if line.strip()}


def _given(text: str | None) -> bool:
    return text is not None and bool(text.strip())


def resting_on(projects: Projects, key: str | None, others: Sequence[str]) -> Projects:
    """The projects, with `others`, who are not owners, among the origins of project `key`."""
    if key is None or not others:
        return projects
    slot = projects["slots"][key]
    origins = list(dict.fromkeys([*slot.get("origins", ()), *others]))
    joined: Project = {**slot, "origins": origins}
    return {**projects, "slots": {**projects["slots"], key: joined}}
