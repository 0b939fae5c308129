"""The goal tools: a tree of outcomes with progress (architecture-self-management, section 2)."""

from __future__ import annotations

from typing import Annotated, Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from pydantic import BaseModel, Field

from memory import assembly
from memory import goals as rules
from memory.decomposition import check_decomposable, decompose
from memory.errors import ModelError, Refusal
from memory.models.ask import ask_for
from memory.records import Goal, GoalStatus, Priority, Usage
from memory.resources import resources_of, settings_of
from memory.session_memory import complete
from memory.trust import one_line
from tools.answers import Answer, Reasoning, Runtime, answer, now_of, refusals_answered
from tools.material import material

GoalId = Annotated[str, Field(description="The goal's id, such as 'goal_42_0'.")]


class Subtasks(BaseModel):
    """The subtasks that together reach the goal."""

    subtasks: list[str] = Field(description="3-7 actionable subtasks, each one short sentence.")


@tool
@refusals_answered
async def add_goal(
    description: Annotated[str, Field(description="What is to be reached, in one sentence.")],
    runtime: Runtime,
    priority: Priority = "medium",
    parent_id: Annotated[
        str | None, Field(description="The goal that this one is a subtask of.")
    ] = None,
    reasoning: Reasoning = None,
) -> Answer:
    """Add a goal whose progress can be tracked, or a subtask of one."""
    before = runtime.state["goals"]
    index = rules.next_index(before, runtime.state["goal_index"])
    after, goal_id = rules.add(
        before,
        description=description,
        priority=priority,
        parent_id=parent_id,
        tick=runtime.state["tick"],
        index=index,
        now=now_of(runtime),
    )
    goal = after[goal_id]
    result = {
        "goal_id": goal_id,
        "description": goal["description"],
        "priority": priority,
        "parent_id": parent_id,
    }
    return answer(runtime, result, goals=rules.changed(before, after), goal_index=index + 1)


@tool
@refusals_answered
async def update_goal(
    goal_id: GoalId,
    runtime: Runtime,
    status: GoalStatus | None = None,
    progress: Annotated[
        int | None,
        Field(strict=True, description="Percent, 0 to 100. Only for a goal without subtasks."),
    ] = None,
    reasoning: Reasoning = None,
) -> Answer:
    """Update a goal's status or progress. Its parents are computed anew."""
    before = runtime.state["goals"]
    after = rules.update(before, goal_id, status, progress)
    changed = rules.changed(before, after)
    result = {
        "goal_id": goal_id,
        "message": "Goal updated",
        "status": after[goal_id]["status"],
        "progress": after[goal_id]["progress"],
        "also_changed": [_line(goal) for one, goal in changed.items() if one != goal_id],
    }
    update: dict[str, Any] = {"goals": changed}
    if done := rules.completions(before, after, now_of(runtime)):
        update["session_memory"] = complete(runtime.state["session_memory"], done)
    return answer(runtime, result, **update)


@tool
@refusals_answered
async def decompose_goal(goal_id: GoalId, runtime: Runtime, reasoning: Reasoning = None) -> Answer:
    """Break a goal down into 3-7 subtasks, by a model call of its own."""
    before = runtime.state["goals"]
    texts, usage = await _asked(runtime, check_decomposable(before, goal_id))
    paid = {"usage": usage}
    tick, now = runtime.state["tick"], now_of(runtime)
    index = rules.next_index(before, runtime.state["goal_index"])
    try:
        after, made = decompose(before, goal_id, texts, tick=tick, index=index, now=now)
    except Refusal as refusal:
        return answer(runtime, refusal.result(), artifact=paid)
    result = {
        "goal_id": goal_id,
        "subtasks_created": len(made),
        "subtasks": [{"id": one, "description": after[one]["description"]} for one in made],
    }
    changed = rules.changed(before, after)
    return answer(runtime, result, artifact=paid, goals=changed, goal_index=index + len(made))


async def _asked(runtime: Runtime, goal: Goal) -> tuple[list[str], Usage]:
    """The subtasks that the model gives, and what the call cost. Refusal when it gives none."""
    resources = resources_of(runtime.config)
    try:
        given, usage = await ask_for(
            resources.chat_model,
            _prompt(runtime, goal),
            Subtasks,
            config=runtime.config,
            breaker=resources.breakers.model,
        )
    except ModelError as error:
        raise Refusal(
            f"The model gave no subtasks: {error}",
            "Add the subtasks with add_goal and parent_id, or try again later.",
        ) from error
    return given.subtasks, usage


def _prompt(runtime: Runtime, goal: Goal) -> list[BaseMessage]:
    """The goal_decompose context: system prompt, goals, and the goal as the pending event."""
    made = material(
        runtime.state,
        settings_of(runtime.context),
        resources_of(runtime.config),
        "goal_decompose",
        now=now_of(runtime).isoformat(),
    )
    return [
        SystemMessage(assembly.system_message(assembly.blocks(made))),
        HumanMessage(f"Goal: {one_line(goal['description'])}"),
    ]


def _line(goal: Goal) -> str:
    return f"{goal['id']} ({goal['status']}, {goal['progress']}%)"
