"""Projects: context slots paged in and out, like processes. Pure.

A change that the rules do not allow raises Refusal.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from memory.errors import Refusal
from memory.planning.goals import is_public, lines_of
from memory.records import CompletedTask, Marks, Project, Projects, ProjectStatus

LONGEST_CONTEXT = 20_000
"""Characters of a project's context: every checkpoint copies it."""


def create(
    projects: Projects,
    key: str,
    summary: str,
    context: str,
    now: datetime,
    *,
    marks: Marks | None = None,
    public: bool = False,
) -> Projects:
    """Create a project and make it active; the previous one is paused.

    White space around the key is removed. `marks`: to whom it belongs, and on whose words it rests.
    `public`: others than owners listen, and are told of no project that they may not know.
    """
    key = key.strip()
    if not key:
        raise Refusal("A project needs a key", "Give a short key such as 'build_tavern'.")
    if key in projects["slots"]:
        seen = known_to(projects, public)["slots"]
        advice = (
            "Use swap_project to switch to it, or create the new project under another key."
            if key in seen
            else "It was begun in private and is not shown here: its owner can go on with it in "
            "private. Or take another key."
        )
        raise Refusal(f"Project '{key}' already exists", advice, available_projects=list(seen))
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
    return {"active": key, "slots": {**_paged_out(projects, None, stamp), key: slot}}


def swap(
    projects: Projects,
    key: str,
    current_project_update: str | None,
    now: datetime,
    *,
    replace: bool = False,
    public: bool = False,
) -> tuple[Projects, dict[str, Any]]:
    """Page the active project out and `key` in; an update joins the old project's context.

    Returns all projects and the tool's result. With `replace` the update replaces that context,
    which the result then holds. A swap to the active project only saves the update. `public`: as
    in `create`.
    """
    seen = known_to(projects, public)
    old = seen["active"]
    key = key if key in seen["slots"] else key.strip()
    if key not in seen["slots"]:
        raise Refusal(
            f"Project does not exist: '{key}'",
            "Choose one of available_projects, or make it with create_project.",
            available_projects=list(seen["slots"]),
        )
    given = current_project_update if old is not None and _given(current_project_update) else None
    after = projects
    if key != old:
        stamp = now.isoformat()
        slots = _paged_out(projects, given, stamp, replace=replace, public=public)
        slots[key] = {**slots[key], "status": "active", "last_active": stamp}
        after = {"active": key, "slots": slots}
    elif given is not None:
        after = update(projects, given, None, now, replace=replace, public=public)[0]
    slot = known_to(after, public)["slots"][key]
    result: dict[str, Any] = {
        "old_project": old,
        "new_project": key,
        "new_project_summary": slot["summary"],
        "new_project_context": slot["context"],
    }
    if old is not None and (gone := replaced(projects, after, old, public=public)) is not None:
        result["replaced_context"] = gone
    return after, result


def update(
    projects: Projects,
    context_update: str | None,
    status: ProjectStatus | None,
    now: datetime,
    *,
    replace: bool = False,
    public: bool = False,
) -> tuple[Projects, CompletedTask | None]:
    """Change the active project; None or a blank update keeps its context.

    An update is appended to the context, or replaces it with `replace`. A status other than active
    frees the slot; `completed` also returns a task. `public`: private lines stay as they are.
    """
    seen = known_to(projects, public)
    key = seen["active"]
    if key is None or key not in seen["slots"]:
        raise Refusal(
            "No project is active",
            "Page one in with swap_project, or make one with create_project.",
            available_projects=list(seen["slots"]),
        )
    if not _given(context_update) and status is None:
        raise Refusal("Nothing to change", "Give context_update, status, or both.")
    stamp = now.isoformat()
    slot = _updated(projects["slots"][key], context_update, stamp, replace=replace, public=public)
    slot = {**slot, "status": status or "active"}
    done: CompletedTask | None = None
    if slot["status"] == "completed":
        done = {"description": slot["summary"], "timestamp": stamp}
    active = key if slot["status"] == "active" else None
    return {"active": active, "slots": {**projects["slots"], key: slot}}, done


def replaced(before: Projects, after: Projects, key: str, *, public: bool = False) -> str | None:
    """The project's context before the change; None if the new context still has all of it.

    `public`: as far as others than owners may know it.
    """
    old, new = (known_to(one, public)["slots"][key]["context"] for one in (before, after))
    return None if _within(old, new) else old


def known_to(projects: Projects, public: bool) -> Projects:
    """All projects; for a public audience the projects and lines that were told in public."""
    if not public:
        return projects
    slots: dict[str, Project] = {
        key: {**slot, "context": _public_context(slot)}
        for key, slot in projects["slots"].items()
        if (text := slot["summary"].strip() or slot["context"].strip()) and is_public(slot, text)
    }
    return {"active": projects["active"] if projects["active"] in slots else None, "slots": slots}


def _public_context(slot: Project) -> str:
    return "\n".join(one for one in slot["context"].splitlines() if is_public(slot, one))


def _paged_out(
    projects: Projects,
    context: str | None,
    stamp: str,
    *,
    replace: bool = False,
    public: bool = False,
) -> dict[str, Project]:
    slots = dict(projects["slots"])
    key = projects["active"]
    if key is not None and key in slots:
        slots[key] = {
            **_updated(slots[key], context, stamp, replace=replace, public=public),
            "status": "paused",
        }
    return slots


def _updated(
    slot: Project, update: str | None, stamp: str, *, replace: bool, public: bool
) -> Project:
    if update is None or not _given(update):
        return {**slot, "last_active": stamp}
    context = _joined(slot, update, replace, public)
    said_lines = lines_of(update) if public else set()
    before, after = (lines_of(f"{slot['summary']}\n{one}") for one in (slot["context"], context))
    still_public = {line for line in before if is_public(slot, line)}
    public_lines = sorted(after & (said_lines | still_public))
    return {**slot, "context": context, "last_active": stamp, "public": public_lines}


def _joined(slot: Project, update: str, replace: bool, public: bool) -> str:
    """The context with the update appended; an update that repeats the context replaces it.

    Lines that a public audience may not know come first and stay.
    """
    standing = _public_context(slot) if public else slot["context"]
    known = {*lines_of(standing), *lines_of(update)}
    hidden = lines_of(slot["context"]) - known if public else set()
    whole = replace or _within(standing, update)
    if not whole and lines_of(update) <= lines_of(standing):
        return slot["context"]
    shown = update if whole else f"{standing.rstrip()}\n{update}"
    kept = [one for one in slot["context"].splitlines() if one.strip() in hidden]
    context = "\n".join([*kept, shown])
    if len(context) > LONGEST_CONTEXT:
        raise Refusal(
            f"The project's context would have {len(context):,} characters, "
            f"more than {LONGEST_CONTEXT:,}",
            "Give a shorter account of where the whole project stands, with replace=true.",
        )
    return context


def _within(part: str, text: str) -> bool:
    return " ".join(part.split()) in " ".join(text.split())


def _given(text: str | None) -> bool:
    return text is not None and bool(text.strip())


def resting_on(projects: Projects, key: str | None, others: Sequence[str]) -> Projects:
    """The projects, with `others` (people who are not owners) among the origins of `key`."""
    if key is None or not others:
        return projects
    slot = projects["slots"][key]
    origins = list(dict.fromkeys([*slot.get("origins", ()), *others]))
    joined: Project = {**slot, "origins": origins}
    return {**projects, "slots": {**projects["slots"], key: joined}}
