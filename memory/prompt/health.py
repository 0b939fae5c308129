"""Prompt health: the cost of each part of a prompt, and problems with it. Pure.

After original-system, section 23: a budget per component, and checks of the whole.
"""

from __future__ import annotations

from collections.abc import Mapping

from typing_extensions import TypedDict

from memory.records import ContextUse
from memory.text import advisory, utilisation

ACTIONS = {
    "normal": "Proceed normally",
    "warning": "Consider wrapping up",
    "critical": "Respond immediately",
}
"""The recommended action at each level (architecture-self-management, section 4)."""

HISTORY, TOOLS = "conversation_history", "tools"
"""Parts of a prompt beside the blocks of its system message."""

FULL_AT = 90.0
"""Percent of a component's budget; from here on the next line would not fit."""

LARGE_AT = 40.0
"""Percent of the context that one component should stay below. The history has its own thresholds
for compaction."""

TOOLS_AT = 20.0
"""Percent of the context that tool schemas should stay below."""


class ComponentHealth(TypedDict):
    """One part of the prompt."""

    key: str
    tokens: int
    share: float
    """Percent of the context limit."""
    budget: int | None
    """Tokens; None: no bound."""
    at_budget: bool
    """It fills its budget and leaves something out."""


class PromptHealth(TypedDict):
    """The parts of a prompt, and what a person might mend."""

    components: list[ComponentHealth]
    problems: list[str]
    """One sentence each."""


def context_use(tokens: Mapping[str, int], limit: int) -> ContextUse:
    """The use of the context by parts of these sizes. `limit`: tokens, at least 1."""
    used = sum(tokens.values())
    percentage = utilisation(used, limit)
    return {
        "used": used,
        "limit": limit,
        "percentage": percentage,
        "level": advisory(percentage)["level"],
    }


def recommended_action(percentage: float) -> str:
    """The specification's advice at this use of the context (percent)."""
    return ACTIONS[advisory(percentage)["level"]]


def prompt_health(
    tokens: Mapping[str, int], budgets: Mapping[str, int | None], limit: int
) -> PromptHealth:
    """Cost and problems of a prompt. `tokens`: by part, in the prompt's order."""
    parts = [_health(key, used, budgets.get(key), limit) for key, used in tokens.items()]
    use = context_use(tokens, limit)
    problems = [sentence for part in parts for sentence in _problems(part)]
    if use["level"] != "normal":
        action = recommended_action(use["percentage"])
        problems.append(f"The prompt fills {use['percentage']} % of the context: {action.lower()}.")
    return {"components": parts, "problems": problems}


def _health(key: str, used: int, budget: int | None, limit: int) -> ComponentHealth:
    return {
        "key": key,
        "tokens": used,
        "share": utilisation(used, limit),
        "budget": budget,
        "at_budget": budget is not None and used > 0 and used * 100 >= budget * FULL_AT,
    }


def _problems(part: ComponentHealth) -> list[str]:
    key, share = part["key"], part["share"]
    found = []
    if part["at_budget"]:
        found.append(
            f"{key} fills its budget of {part['budget']:,} tokens: what does not fit is left out."
        )
    if key == TOOLS and share > TOOLS_AT:
        found.append(f"The tools' schemas take {share} % of the context; offer fewer tools.")
    elif key not in (TOOLS, HISTORY) and share > LARGE_AT:
        found.append(f"{key} takes {share} % of the context; shorten it or lower its budget.")
    return found
