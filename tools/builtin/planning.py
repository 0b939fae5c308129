"""Tools for goals, projects and session memory.

Goals are a tree of outcomes with progress. Projects are contexts that are paged in and out. The
facts and patterns of session memory stand in every prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from memory.errors import ModelError, Refusal
from memory.guards import repeats
from memory.messages import prompt_lines
from memory.operations import collector_of
from memory.planning import (
    MemoryType,
    check_decomposable,
    complete,
    decompose,
    goals,
    projects,
    session_memory,
)
from memory.prompt import assembly, rendering
from memory.records import Goal, GoalStatus, Priority, Project, Projects, ProjectStatus, Usage
from memory.runtime import resources_of, settings_of
from memory.state import State
from tools.answers import (
    Absent,
    Answer,
    Runtime,
    answer,
    built_in,
    event_of,
    now_of,
)
from tools.evidence import RECALLED, WHERE_FROM, grounds, heard_from_others, in_sight, shown
from tools.origins import check_change, given_by, in_public, marks_of, other_sender
from tools.policy import as_heard, material

GoalId = Annotated[str, Field(description="Such as 'goal_42_0'.")]

MORE_TO_DO = (
    "Its parent is completed with it. If the parent says more than its subtasks, add what is left "
    "with add_goal and parent_id: it is open again then."
)


class Subtasks(BaseModel):
    """The subtasks that together reach the goal."""

    subtasks: list[str] = Field(description="3-7 actionable subtasks, each one short sentence.")


@built_in
async def add_goal(
    description: Annotated[str, Field(description="What is to be reached, in one sentence.")],
    runtime: Runtime,
    priority: Priority = "medium",
    parent_id: Annotated[str | Absent, Field(description="The goal it is a subtask of.")] = None,
) -> Answer:
    """Add a goal whose progress can be tracked, or a subtask of one."""
    before = runtime.state["goals"]
    if parent_id is not None:
        check_change(runtime, "goal", goals.known(_known_to_listeners(runtime)["goals"], parent_id))
    index = goals.next_index(before, runtime.state["goal_index"])
    after, goal_id = goals.add(
        before,
        description=description,
        priority=priority,
        parent_id=parent_id,
        tick=runtime.state["tick"],
        index=index,
        now=now_of(runtime),
        marks=await marks_of(description, runtime),
    )
    goal = after[goal_id]
    result = {
        "goal_id": goal_id,
        "description": goal["description"],
        "priority": priority,
        "parent_id": parent_id,
    }
    return answer(runtime, result, goals=goals.changed(before, after), goal_index=index + 1)


@built_in
async def update_goal(
    goal_id: GoalId,
    runtime: Runtime,
    status: GoalStatus | Absent = None,
    progress: Annotated[
        Annotated[int, Field(strict=True)] | Absent,
        Field(description="Percent; not for a goal with subtasks."),
    ] = None,
    description: Annotated[
        str | Absent, Field(description="Its new text, such as a new day.")
    ] = None,
) -> Answer:
    """Change a goal's text, status or progress; its parents follow."""
    before = after = runtime.state["goals"]
    seen = _known_to_listeners(runtime)["goals"]
    goal = goals.known(seen, goal_id)
    check_change(runtime, "goal", goal)
    if description is not None:
        marks = await marks_of(description, runtime, goal.get("origins", ()))
        after = goals.reword(after, goal_id, description, marks)
    if status is not None or progress is not None or description is None:
        after = goals.update(after, goal_id, status, progress)
    changed = goals.changed(before, after)
    result = {
        "goal_id": goal_id,
        "message": "Goal updated",
        "status": after[goal_id]["status"],
        "progress": after[goal_id]["progress"],
        "also_changed": [
            f"{id_} ({other['status']}, {other['progress']}%)"
            for id_, other in changed.items()
            if id_ != goal_id and id_ in seen
        ],
    }
    others = (other for id_, other in changed.items() if id_ != goal_id)
    if status == "completed" and any(other["status"] == "completed" for other in others):
        result["suggestion"] = MORE_TO_DO
    update: dict[str, Any] = {"goals": changed}
    if done := goals.completions(before, after, now_of(runtime)):
        update["session_memory"] = complete(runtime.state["session_memory"], done)
    return answer(runtime, result, **update)


@built_in
async def decompose_goal(goal_id: GoalId, runtime: Runtime) -> Answer:
    """Break a goal down into 3-7 subtasks."""
    before = runtime.state["goals"]
    goals.known(_known_to_listeners(runtime)["goals"], goal_id)
    goal = check_decomposable(before, goal_id)
    check_change(runtime, "goal", goal)
    texts, usage = await _ask_for_subtasks(runtime, goal)
    marks = await marks_of("", runtime, goal.get("origins", ()), told=texts)
    paid = {"usage": usage}
    tick, now = runtime.state["tick"], now_of(runtime)
    index = goals.next_index(before, runtime.state["goal_index"])
    try:
        after, made = decompose(
            before, goal_id, texts, tick=tick, index=index, now=now, marks=marks
        )
    except Refusal as refusal:
        return answer(runtime, refusal.result(), artifact=paid)
    result = {
        "goal_id": goal_id,
        "subtasks_created": len(made),
        "subtasks": [{"id": one, "description": after[one]["description"]} for one in made],
    }
    changed = goals.changed(before, after)
    return answer(runtime, result, artifact=paid, goals=changed, goal_index=index + len(made))


async def _ask_for_subtasks(runtime: Runtime, goal: Goal) -> tuple[list[str], Usage]:
    resources = resources_of(runtime.config)
    try:
        given, usage = await resources.ask_for(
            _prompt(runtime, goal), Subtasks, settings_of(runtime.context), runtime.config
        )
    except ModelError as error:
        raise Refusal(
            f"The model gave no subtasks: {error}",
            "Add the subtasks with add_goal and parent_id, or try again later.",
        ) from error
    return given.subtasks, usage


def _prompt(runtime: Runtime, goal: Goal) -> list[BaseMessage]:
    """The goal_decompose context: rules and goals; then the clock, the project and the goal."""
    made = material(
        runtime.state,
        settings_of(runtime.context),
        resources_of(runtime.config),
        "goal_decompose",
        now=now_of(runtime).isoformat(),
    )
    work = rendering.projects(
        made.state["projects"],
        tokens=made.settings.project_tokens,
        calibration=runtime.state["calibration"],
    )
    parts = [
        assembly.front(made, {"projects": rendering.block("projects", work)} if work else {}),
        prompt_lines.goal_to_split(goal["description"]),
    ]
    return [
        SystemMessage(assembly.system_message(assembly.blocks(made))),
        HumanMessage("\n\n".join(parts)),
    ]


REPLACE = "Replace the whole context instead."

Key = Annotated[str, Field(description="Such as 'build_tavern'.")]


@built_in
async def create_project(
    project_key: Key,
    summary: Annotated[str, Field(description="What it is for, in one sentence.")],
    runtime: Runtime,
    initial_context: Annotated[str, Field(description="What is known and decided so far.")] = "",
) -> Answer:
    """Create a project for work that spans sessions, and make it the active one."""
    before = runtime.state["projects"]
    check_change(runtime, "project", _active(runtime))
    marks, now = await marks_of(f"{summary}\n{initial_context}", runtime), now_of(runtime)
    public = in_public(runtime)
    after = projects.create(
        before, project_key, summary, initial_context, now, marks=marks, public=public
    )
    result = {
        "project_key": after["active"],
        "summary": summary,
        "status": "active",
        "previous_project": _known_to_listeners(runtime)["projects"]["active"],
    }
    return answer(runtime, result, projects=after)


@built_in
async def list_projects(runtime: Runtime) -> Answer:
    """List all projects with summary and status, and say which one is active."""
    known = _known_to_listeners(runtime)["projects"]
    rows = [
        {
            "project_key": key,
            "summary": slot["summary"],
            "status": slot["status"],
            "last_active": slot["last_active"],
        }
        for key, slot in known["slots"].items()
    ]
    result = {"active_project": known["active"], "projects": rows, "total": len(rows)}
    if known["active"] is None:
        result["message"] = "No active project"
    return answer(runtime, result)


@built_in
async def swap_project(
    project_key: Key,
    runtime: Runtime,
    current_project_update: Annotated[
        str | Absent, Field(description="What is new of the current project: joins its context.")
    ] = None,
    replace: Annotated[bool, Field(description=REPLACE)] = False,
) -> Answer:
    """Switch to another project: the current one is paused, the other's context comes back."""
    before = runtime.state["projects"]
    check_change(runtime, "project", _active(runtime))
    after, result = projects.swap(
        before,
        project_key,
        current_project_update,
        now_of(runtime),
        replace=replace,
        public=in_public(runtime),
    )
    if current_project_update:
        others = await given_by(current_project_update, runtime)
        after = projects.resting_on(after, result["old_project"], others)
    return answer(runtime, result, projects=after)


@built_in
async def update_project(
    runtime: Runtime,
    context_update: Annotated[str | Absent, Field(description="What is new.")] = None,
    status: Annotated[
        ProjectStatus | Absent, Field(description="paused and completed end the work on it.")
    ] = None,
    replace: Annotated[bool, Field(description=REPLACE)] = False,
) -> Answer:
    """Add to the active project's context, or pause or complete it, without switching."""
    before = runtime.state["projects"]
    check_change(runtime, "project", _active(runtime))
    public = in_public(runtime)
    after, done = projects.update(
        before, context_update, status, now_of(runtime), replace=replace, public=public
    )
    key = str(before["active"])
    if context_update:
        after = projects.resting_on(after, key, await given_by(context_update, runtime))
    replaced = projects.replaced(before, after, key, public=public)
    result = {
        "project_key": key,
        "status": after["slots"][key]["status"],
        "active_project": after["active"],
        "message": "Project updated",
        **({} if replaced is None else {"replaced_context": replaced}),
    }
    if done is None:
        return answer(runtime, result, projects=after)
    memory = complete(runtime.state["session_memory"], [done])
    return answer(runtime, result, projects=after, session_memory=memory)


def _active(runtime: Runtime) -> Project | None:
    known: Projects = runtime.state["projects"]
    return known["slots"].get(str(known["active"]))


@built_in
async def add_session_memory(
    memory_type: Annotated[
        MemoryType, Field(description="pattern: how people behave; fact: all else.")
    ],
    content: Annotated[str, Field(description="One sentence in the third person.")],
    runtime: Runtime,
) -> Answer:
    """Keep a fact or pattern about people or the world in sight; never about you."""
    _check_said([content], runtime)
    by = other_sender(runtime)
    rests_on = [] if by else await given_by(content, runtime)
    memory, private = runtime.state["session_memory"], not in_public(runtime)
    after, result = session_memory.add(
        memory, memory_type, content, by=by, rests_on=rests_on, private=private
    )
    return answer(runtime, result, session_memory=after)


@built_in
async def compact_session_memory(
    new_facts: Annotated[list[str], Field(description="All facts that are to stay.")],
    new_patterns: Annotated[list[str], Field(description="All patterns that are to stay.")],
    summary: Annotated[str, Field(description="What was consolidated, in one sentence.")],
    runtime: Runtime,
) -> Answer:
    """Replace the facts and patterns of session memory by fewer, consolidated ones."""
    _check_said([*new_facts, *new_patterns], runtime)
    memory, by = runtime.state["session_memory"], other_sender(runtime)
    standing = [*memory["key_facts"], *memory["learned_patterns"]]
    reworded = [one for one in (*new_facts, *new_patterns) if not repeats(one, standing)]
    others = await given_by("\n".join(reworded), runtime) if reworded else []
    after, result = session_memory.compact(
        memory,
        new_facts,
        new_patterns,
        summary,
        now_of(runtime),
        by=by,
        rests_on=dict.fromkeys(reworded, others),
        private=not in_public(runtime),
    )
    return answer(runtime, result, session_memory=after)


def _known_to_listeners(runtime: Runtime) -> State:
    return as_heard(runtime.state, "public" if in_public(runtime) else "private")


def _check_said(texts: Sequence[str], runtime: Runtime) -> None:
    memory, event = runtime.state["session_memory"], event_of(runtime)
    standing = [*memory["key_facts"], *memory["learned_patterns"]]
    entries = in_sight(runtime, collector_of(runtime.config, runtime.store))
    said, prompt = [*grounds(entries), *standing], shown(runtime)
    if event is not None:
        prompt.own += heard_from_others(event["sender"], runtime)
    for text in texts:
        if prompt.recalls(text, said) or prompt.returns(text, said):
            raise Refusal(RECALLED, WHERE_FROM, rejected_content=text)
