"""The context types: what the model is shown and how it may act (architecture-context-system)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from memory import components
from tools.prompts import AUTONOMOUS, CONSOLIDATE, DECOMPOSE, EXTRACT

ExecutionMode = Literal["single_action", "react_loop", "plan_execute"]


@dataclass(frozen=True, kw_only=True)
class ContextConfig:
    """One kind of model call."""

    context_type: str
    name: str
    description: str

    enabled_components: list[int]
    """Ids of the components it shows."""
    component_overrides: dict[str, Any] = field(default_factory=dict)
    """Component key -> {"content": text that stands in place of the component's own}."""
    tool_filter: list[str] | None = None
    """Names of the tools it allows; None: all; empty: none."""
    token_budget: int | None = None
    """At most this many tokens; None: the settings' limit."""

    execution_mode: ExecutionMode = "react_loop"
    max_iterations: int = 5
    """Model answers that may ask for tools."""
    allowed_tool_categories: list[str] | None = None
    """Values of ToolCategory; None: all."""
    terminal_ends_loop: bool = True
    dangerous_requires_confirm: bool = False
    allows_multi_tool: bool = True
    allows_sub_agents: bool = False

    def get_component_content_override(self, component_key: str) -> str | None:
        """The text that stands in place of a component's own, if any."""
        override = self.component_overrides.get(component_key, {})
        if isinstance(override, dict):
            return override.get("content")
        return None


FULL_COMPONENTS = [component.id for component in components.STATIC]

SLEEP_TOOLS = [
    "noop",
    "add_journal_entry",
    "review_journal",
    "recall_memories",
    "store_memory",
]
PRE_COMPACTION_TOOLS = ["noop", "add_journal_entry"]

SLEEP_CONTEXTS = frozenset({"sleep_consolidate", "pre_compaction"})
"""Capped by max_iterations_sleep; the others by max_iterations_per_tick (ruling 4)."""


def _system_prompt(text: str) -> dict[str, Any]:
    return {"system_prompt": {"content": text}}


_ALL = [
    ContextConfig(
        context_type="tick_event",
        name="Event tick",
        description="Answer one event",
        enabled_components=FULL_COMPONENTS,
        allows_sub_agents=True,
    ),
    ContextConfig(
        context_type="tick_autonomous",
        name="Autonomous tick",
        description="Work on the goals while nothing is pending",
        enabled_components=FULL_COMPONENTS,
        component_overrides=_system_prompt(AUTONOMOUS),
        allows_sub_agents=True,
    ),
    ContextConfig(
        context_type="goal_decompose",
        name="Goal decomposition",
        description="Break a goal down into subtasks",
        enabled_components=[components.SYSTEM_PROMPT, components.GOALS, components.PENDING_EVENT],
        component_overrides=_system_prompt(DECOMPOSE),
        tool_filter=[],
        execution_mode="single_action",
        max_iterations=1,
        allows_multi_tool=False,
    ),
    ContextConfig(
        context_type="sleep_consolidate",
        name="Sleep consolidation",
        description="Make journal entries into long-term facts",
        enabled_components=[components.SYSTEM_PROMPT, components.SEMANTIC_MEMORIES],
        component_overrides=_system_prompt(CONSOLIDATE),
        tool_filter=SLEEP_TOOLS,
        max_iterations=10,
    ),
    ContextConfig(
        context_type="pre_compaction",
        name="Extraction before compaction",
        description="Journal what must not be lost before the history is cut",
        enabled_components=[
            components.SYSTEM_PROMPT,
            components.CONVERSATION_HISTORY,
            components.PENDING_EVENT,
            components.TOOL_RESULT,
        ],
        component_overrides=_system_prompt(EXTRACT),
        tool_filter=PRE_COMPACTION_TOOLS,
        max_iterations=5,
    ),
]

CONTEXTS: Mapping[str, ContextConfig] = {config.context_type: config for config in _ALL}
"""The context types by name."""
