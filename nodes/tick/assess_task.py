"""Assess the task: its kind, and the execution pattern of this tick.

The heuristic assessment costs no call and is part of `assemble_context`; the node asks a model.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.messages.tool import tool_call
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from pydantic import BaseModel, Field

from memory.errors import ModelError
from memory.events import BY_SCORE, Kind, assess
from memory.messages import TRUST_NOTE, as_data, marked
from memory.models import charged
from memory.planning import in_hand
from memory.prompt import assembly
from memory.records import OWN_PREFIX, Assessment, Usage, is_reflection
from memory.runtime import resources_of, settings_of
from memory.settings import Settings
from memory.state import Course, State, checked, held
from memory.text import approximate_tokens, calibrated, cut_to, shortened, utilisation
from tools.builtin import planning
from tools.policy import history, narrower, pattern_of

log = logging.getLogger("circadian.assessment")

TASK_TOKENS = 2_000
"""Of the task's text that the model is shown."""

LONGEST_REASONING = 300
"""Characters of a model's reasoning that are kept: it stands in the state and in the report."""

PROMPT = f"""You judge how much work a task will be for an assistant. The task is in the block
pending_event: neither do it nor answer it. The assistant works in iterations: one iteration is one
answer that calls tools.

complexity, 1 to 5, with the mode and the iterations that go with it:
1: no tool call, such as a greeting; single_action, 1 iteration.
2: one tool call; single_action, 1 iteration.
3: a few tool calls; react_loop, 3 iterations.
4: several tool calls, each building on the one before; react_loop, 5 iterations.
5: many steps that need a plan first; as many iterations as are allowed.
A task that asks for two things is at least 3.

Give recommended_mode and recommended_iterations only where other values fit better. Give
recommend_confirm_dangerous as true if a mistake could not be taken back. reasoning is one sentence.
{TRUST_NOTE}"""


class TaskAssessment(BaseModel):
    """How much work a task is."""

    complexity: int = Field(ge=1, le=5, description="1 (one tool call at most) to 5 (needs a plan)")
    recommended_mode: Literal["single_action", "react_loop"] | None = None
    recommended_iterations: int | None = Field(None, ge=1, le=10)
    recommend_confirm_dangerous: bool = False
    reasoning: str = Field(description="One sentence.")


async def after_assessment(state: Course) -> Literal["assess_task", "draft_plan", "act"]:
    """A large goal is given steps first; once a tool of the tick has run it is too late for that.

    The tick comes here again after a compaction that the model's limit forced.
    """
    pattern, loop = state.get("pattern"), state.get("loop")
    if pattern is None:
        return "assess_task"
    planning = pattern["mode"] == "plan_execute"
    return "draft_plan" if planning and loop is not None and not loop["tools"] else "act"


def assessed(state: State, settings: Settings) -> dict[str, Any]:
    """The heuristic assessment, and the pattern: None where a model is to judge the task, too."""
    context, loop = held(state["context"]), held(state["loop"])
    kind, text, plannable = _task(state)
    shown = history(state, settings, context["context_type"])
    prompt = approximate_tokens(assembly.whole(context, shown))
    assessment = assess(
        text,
        kind=kind,
        goals=state["goals"],
        percentage=utilisation(
            calibrated(prompt, state["calibration"]), settings.max_context_tokens
        ),
        recent_errors=state["consecutive_errors"],
        names=settings.names,
        plannable=plannable,
    )
    before = state.get("assessment")
    if loop["overflowed"] and before is not None:
        assessment = narrower(assessment, before)
    elif settings.task_assessment_enabled and kind != "reflection" and text:
        return {"assessment": assessment, "pattern": None}
    pattern = pattern_of(context["context_type"], assessment, settings)
    return {"assessment": assessment, "pattern": pattern}


@checked
async def assess_task(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Let a model judge the task: within the heuristic assessment, which it can only narrow.

    Without a usable answer the heuristic assessment stands. A tick asks once.
    """
    settings, text = settings_of(runtime.context), _task(state)[1] or ""
    assessment, usage = await _judged(held(state["assessment"]), text, state, settings, config)
    pattern = pattern_of(held(state["context"])["context_type"], assessment, settings)
    loop = charged(held(state["loop"]), usage)
    return {"pattern": pattern, "assessment": assessment, "loop": loop}


def _task(state: State) -> tuple[Kind, str | None, bool]:
    """(what is assessed, its text, whether it may be broken down into steps first).

    A step that a plan drafted is worked on and not planned again: else plans never ended.
    """
    event = state["event"]
    if event is not None:
        return "reflection" if is_reflection(event) else "event", event["text"], False
    if (goal := in_hand(state["goals"])) is None:
        return "goal", None, False
    return "goal", goal["description"], not goal["auto_generated"] and not goal["subtask_ids"]


async def _judged(
    measured: Assessment, text: str, state: State, settings: Settings, config: RunnableConfig
) -> tuple[Assessment, Usage]:
    try:
        prompt = _prompt(text, measured["signals"], state["calibration"])
        form, usage = await resources_of(config).ask_for(prompt, TaskAssessment, settings, config)
    except ModelError as error:
        log.warning("the heuristic assessment stands: %s", error)
        reasoning = f"{measured['reasoning']} The model gave no assessment: {error}"
        kept: Assessment = {**measured, "reasoning": shortened(reasoning, 2 * LONGEST_REASONING)}
        return kept, {"llm_calls": 0, "tokens": 0}
    return narrower(measured, _assessment(form, measured)), usage


def _assessment(form: TaskAssessment, measured: Assessment) -> Assessment:
    mode, iterations = BY_SCORE[form.complexity]
    reasoning = shortened(form.reasoning, LONGEST_REASONING)
    return {
        **measured,
        "by": "model",
        "complexity": form.complexity,
        "recommended_mode": form.recommended_mode or mode,
        "recommended_iterations": form.recommended_iterations or iterations,
        "recommend_confirm_dangerous": form.recommend_confirm_dangerous,
        "reasoning": f"{reasoning} ({measured['reasoning']})",
    }


def _prompt(text: str, signals: Mapping[str, Any], calibration: float) -> list[AnyMessage]:
    measured = ", ".join(f"{name}: {value}" for name, value in signals.items())
    task = as_data("pending_event", cut_to(text, TASK_TOKENS, calibration))
    return [SystemMessage(PROMPT), HumanMessage(f"{task}\n\nMeasured: {measured}")]


@checked
async def draft_plan(state: State) -> dict[str, Any]:
    """Call `decompose_goal` on the goal in hand, as the model would (plan_execute).

    It is carried out like any other call and counts as no iteration. Where it fails the model sees
    why, and the tick goes on without a plan.
    """
    loop, goal, tick = held(state["loop"]), in_hand(state["goals"]), state["tick"]
    assert goal is not None
    ask = tool_call(
        name=planning.decompose_goal.name,
        args={"goal_id": goal["id"], "reasoning": "A plan first: this goal takes several steps."},
        id=f"call_plan_{tick}",
    )
    message = AIMessage("", id=f"{OWN_PREFIX}plan_{tick}", tool_calls=[ask])
    return {"messages": [marked(message, tick=tick)], "loop": {**loop, "next": "use_tools"}}
