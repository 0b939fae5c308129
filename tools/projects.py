"""The project tools: context that is paged in and out (architecture-self-management, section 1)."""

from __future__ import annotations

from typing import Annotated

from langchain_core.tools import tool
from pydantic import Field

from memory import projects as rules
from memory.records import ProjectStatus
from memory.session_memory import complete
from tools.answers import Answer, Reasoning, Runtime, answer, now_of, refusals_answered

Key = Annotated[str, Field(description="The project's key, such as 'build_tavern'.")]


@tool
@refusals_answered
async def create_project(
    project_key: Key,
    summary: Annotated[str, Field(description="What it is for, in one sentence.")],
    runtime: Runtime,
    initial_context: Annotated[str, Field(description="What is known and decided so far.")] = "",
    reasoning: Reasoning = None,
) -> Answer:
    """Create a project for work that spans sessions, and make it the active one.

    The project that was active is paused and keeps its context.
    """
    before = runtime.state["projects"]
    after = rules.create(before, project_key, summary, initial_context, now_of(runtime))
    result = {
        "project_key": after["active"],
        "summary": summary,
        "status": "active",
        "previous_project": before["active"],
    }
    return answer(runtime, result, projects=after)


@tool
async def list_projects(runtime: Runtime, reasoning: Reasoning = None) -> Answer:
    """List all projects with summary and status, and say which one is active."""
    projects = runtime.state["projects"]
    rows = [
        {
            "project_key": key,
            "summary": slot["summary"],
            "status": slot["status"],
            "last_active": slot["last_active"],
        }
        for key, slot in projects["slots"].items()
    ]
    result = {"active_project": projects["active"], "projects": rows, "total": len(rows)}
    if projects["active"] is None:
        result["message"] = "No active project"
    return answer(runtime, result)


@tool
@refusals_answered
async def swap_project(
    project_key: Key,
    runtime: Runtime,
    current_project_update: Annotated[
        str | None,
        Field(description="Where the current project stands: replaces its context."),
    ] = None,
    reasoning: Reasoning = None,
) -> Answer:
    """Switch to another project: the current one is paused, the other's context comes back."""
    after, result = rules.swap(
        runtime.state["projects"], project_key, current_project_update, now_of(runtime)
    )
    return answer(runtime, result, projects=after)


@tool
@refusals_answered
async def update_project(
    runtime: Runtime,
    context_update: Annotated[
        str | None, Field(description="Where the project stands: replaces its context.")
    ] = None,
    status: Annotated[
        ProjectStatus | None,
        Field(description="paused or completed end work on it; completed is recorded."),
    ] = None,
    reasoning: Reasoning = None,
) -> Answer:
    """Save the active project's context, or pause or complete it, without switching."""
    before = runtime.state["projects"]
    after, done = rules.update(before, context_update, status, now_of(runtime))
    key = str(before["active"])
    result = {
        "project_key": key,
        "status": after["slots"][key]["status"],
        "active_project": after["active"],
        "message": "Project updated",
    }
    if done is None:
        return answer(runtime, result, projects=after)
    memory = complete(runtime.state["session_memory"], [done])
    return answer(runtime, result, projects=after, session_memory=memory)
