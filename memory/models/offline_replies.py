"""What the offline model says of tool results: one sentence a call, from its fields. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memory.models.offline_prompt import Done, GoalLine, Source
from memory.models.offline_quotes import NOT_KNOWN, quote
from memory.models.words import shortened

_LONGEST = 200
_MOST_MEMORIES = 3

Result = Mapping[str, Any]
Say = Callable[[Result, Done], str]


def told(done: Done) -> str:
    """The result of one call in a sentence; "" for a noop that went well."""
    result = done.result
    if result is None:
        return f"{done.name} was not carried out."
    if isinstance(result, str):
        return f"{done.name}: {shortened(result, _LONGEST)}"
    if result.get("success") is False or "error" in result:
        return _failed(done, result)
    return _SAY.get(done.name, _any)(result, done)


def next_step(goals: list[GoalLine]) -> str:
    """The next open goal in a sentence: the first open leaf below the most important root."""
    active = [goal for goal in goals if goal.status == "active"]
    if not active:
        return "No goal is open."
    order = {"high": 0, "medium": 1, "low": 2}
    roots = [goal for goal in active if goal.depth == 0] or active
    root = min(roots, key=lambda goal: order.get(goal.priority, 1))
    leaf = root
    for other in goals[goals.index(root) + 1 :]:
        if other.depth <= leaf.depth:
            break
        if other.status == "active":
            leaf = other
    return (
        f"Next is goal {leaf.id} [{leaf.priority}]: {shortened(leaf.description, 120)} "
        f"({leaf.progress}% done)."
    )


def _failed(done: Done, result: Result) -> str:
    error = shortened(str(result.get("error", "it failed")), _LONGEST).rstrip(".")
    suggestion = shortened(str(result.get("suggestion") or ""), _LONGEST)
    return f"{done.name} did not work: {error}." + (f" {suggestion}" if suggestion else "")


def _create_project(result: Result, done: Done) -> str:
    key = result.get("project_key") or done.args.get("project_key")
    return f"Started project {key}: {shortened(str(done.args.get('summary', '')), _LONGEST)}."


def _list_projects(result: Result, done: Done) -> str:
    found = result.get("projects")
    if isinstance(found, Mapping):
        found = [{"key": key, **value} for key, value in found.items()]
    rows = [one for one in found or [] if isinstance(one, Mapping)]
    if not rows:
        return "There is no project yet."
    lines = [
        f"- {one.get('key') or one.get('project_key')} ({one.get('status')}): "
        f"{shortened(str(one.get('summary', '')), _LONGEST)}"
        for one in rows
    ]
    return "\n".join(["Projects:", *lines])


def _swap_project(result: Result, done: Done) -> str:
    new, old = result.get("new_project"), result.get("old_project")
    context = shortened(str(result.get("new_project_context") or ""), _LONGEST)
    moved = f"Switched from {old} to {new}" if old and old != new else f"{new} is active"
    summary = shortened(str(result.get("new_project_summary", "")), _LONGEST)
    return f"{moved}: {summary}." + (f" Where it stands: {context}" if context else "")


def _update_project(result: Result, done: Done) -> str:
    if done.args.get("status"):
        return f"The project is {done.args['status']}."
    return "Saved the note on the project."


def _add_goal(result: Result, done: Done) -> str:
    what = shortened(str(done.args.get("description", "")), _LONGEST)
    return f"Added goal {result.get('goal_id')}: {what}."


def _decompose_goal(result: Result, done: Done) -> str:
    rows = [one for one in result.get("subtasks") or [] if isinstance(one, Mapping)]
    lines = [f"- {one.get('id')}: {one.get('description')}" for one in rows]
    goal = result.get("goal_id") or done.args.get("goal_id")
    return "\n".join([f"Split goal {goal} into {len(rows)} subtasks:", *lines])


def _update_goal(result: Result, done: Done) -> str:
    status, progress = done.args.get("status"), done.args.get("progress")
    change = {"completed": "is completed", "abandoned": "is abandoned", "active": "is open again"}
    said = change.get(str(status)) or f"is at {progress}%"
    others = ", ".join(str(one) for one in result.get("also_changed") or [])
    return f"Goal {done.args.get('goal_id')} {said}." + (f" With it: {others}." if others else "")


def _add_session_memory(result: Result, done: Done) -> str:
    added = result.get("added")
    return f"I will remember: {added}." if added else str(result.get("message", "Known already."))


def _observed(result: Result, done: Done) -> str:
    about, known = result.get("entity"), result.get("total_observations")
    return f"Noted about {about}: {done.args.get('observation')} ({known} in all)."


def _status(result: Result, done: Done) -> str:
    usage = result.get("token_usage") or {}
    advice = result.get("token_advisory") or {}
    metrics = result.get("session_metrics") or {}
    return (
        f"Context {usage.get('usage_percentage')}% used ({advice.get('level')}); tool calls in "
        f"this session: {metrics.get('total_tool_calls')}, failed: {metrics.get('failed_calls')}."
    )


def _recalled(result: Result, done: Done) -> str:
    lists = [value for value in result.values() if isinstance(value, list)]
    rows = [one for one in (lists[0] if lists else []) if isinstance(one, Mapping)]
    texts = [(one, str(one.get("text") or one.get("content") or "")) for one in rows]
    quotes = [
        quote(Source(_memory_label(one), text)) for one, text in texts[:_MOST_MEMORIES] if text
    ]
    return "\n".join(quotes) or NOT_KNOWN


def _memory_label(row: Result) -> str:
    at = str(row.get("at") or row.get("timestamp") or "")[:10]
    speaker = row.get("speaker")
    return ", ".join(part for part in (f"memory [{row.get('id')}]", at, speaker) if part)


def _noop(result: Result, done: Done) -> str:
    return ""


def _any(result: Result, done: Done) -> str:
    fields = {name: value for name, value in result.items() if name != "success"}
    message = fields.get("message") or ", ".join(f"{name}: {one}" for name, one in fields.items())
    return f"{done.name}: {shortened(str(message) or 'done', _LONGEST)}"


_SAY: dict[str, Say] = {
    "create_project": _create_project,
    "list_projects": _list_projects,
    "swap_project": _swap_project,
    "update_project": _update_project,
    "add_goal": _add_goal,
    "decompose_goal": _decompose_goal,
    "update_goal": _update_goal,
    "add_session_memory": _add_session_memory,
    "update_entity_observation": _observed,
    "get_system_status": _status,
    "recall_memories": _recalled,
    "noop": _noop,
}
