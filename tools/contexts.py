"""The context types: what the model is shown and how it may act (architecture-context-system)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from memory import components
from memory.records import Event
from memory.reflection import is_reflection
from tools.prompts import AUTONOMOUS, CONSOLIDATE, DECOMPOSE, EXTRACT, REFLECT

ExecutionMode = Literal["single_action", "react_loop", "plan_execute"]
Row: TypeAlias = tuple[
    str, list[int], list[str] | None, ExecutionMode, int, bool, bool, bool, bool, str | None
]


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
    allows_sub_agents: bool = True

    def get_component_content_override(self, component_key: str) -> str | None:
        """The text that stands in place of a component's own, if any."""
        override = self.component_overrides.get(component_key, {})
        if isinstance(override, dict):
            return override.get("content")
        return None


FULL_COMPONENTS = [component.id for component in components.STATIC]

REFLECTION_TOOLS = ["noop", "add_journal_entry", "review_journal"]
SLEEP_TOOLS = [*REFLECTION_TOOLS, "recall_memories", "store_memory"]
PRE_COMPACTION_TOOLS = ["noop", "add_journal_entry", "update_entity_observation"]

SLEEP_CONTEXTS = frozenset({"sleep_consolidate", "pre_compaction"})
"""Capped by max_iterations_sleep; the others by max_iterations_per_tick (ruling 4)."""
GUIDED_CONTEXTS = frozenset({"tick_event", "tick_autonomous"})
"""These show the assistant's own guidelines."""

# The columns of the table: components by id, from 0 system_prompt to 7000 tool_result
# (memory/components.py); n: iterations; e: a TERMINAL tool ends the loop; a: a person is asked
# before a DANGEROUS tool, whatever the settings say (N: they decide); m: several tool calls;
# s: sub-agents; and what stands in place of the default system prompt.
ALL: list[str] | None = None
journal, night, extract = REFLECTION_TOOLS, SLEEP_TOOLS, PRE_COMPACTION_TOOLS
none: list[str] = []
one: ExecutionMode = "single_action"
loop: ExecutionMode = "react_loop"
plan: ExecutionMode = "plan_execute"
Y, N = True, False
# fmt: off
_TABLE: tuple[Row, ...] = (
    # context             components             tools    mode   n  e  a  m  s  system_prompt
    ("tick_event",        FULL_COMPONENTS,       ALL,     loop,  5, Y, N, Y, Y, None),
    ("tick_autonomous",   FULL_COMPONENTS,       ALL,     plan,  5, Y, N, Y, Y, AUTONOMOUS),
    ("reflection",        [0, 6000, 7000],       journal, loop,  3, Y, N, Y, N, REFLECT),
    ("reflection_cont",   [0, 7000],             journal, loop,  2, Y, N, Y, N, REFLECT),
    ("sleep_consolidate", [0, 2000],             night,   loop, 10, Y, N, Y, N, CONSOLIDATE),
    ("goal_decompose",    [0, 4000, 6000],       none,    one,   1, Y, N, N, N, DECOMPOSE),
    ("pre_compaction",    [0, 5000, 6000, 7000], extract, loop,  5, Y, N, Y, N, EXTRACT),
)
# fmt: on
# reflection_cont keeps the text of reflection, and its caller the human message: the prompt's
# beginning stays byte-identical, and a provider's cache holds.

OURS = frozenset(
    {
        *((context, "terminal_ends_loop") for context, *_ in _TABLE),
        *((context, "dangerous_requires_confirm") for context, *_ in _TABLE),
        *((context, "allowed_tool_categories") for context, *_ in _TABLE),
        *((context, "token_budget") for context, *_ in _TABLE),
        *(
            (context, cell)
            for context in ("tick_autonomous", "reflection_cont", "pre_compaction")
            for cell in ("execution_mode", "allows_multi_tool", "allows_sub_agents")
        ),
        *((context, "component_overrides") for context, *_ in _TABLE if context != "reflection"),
    }
)
"""The cells that the specification's page leaves open: (context, field). Ours: an autonomous tick
may plan (the assessment narrows it); a TERMINAL tool always ends the loop; whether a person is
asked is the settings' to say; all categories; no token budget beside the settings' own."""

_ABOUT = {
    "tick_event": ("Event tick", "Answer one event"),
    "tick_autonomous": ("Autonomous tick", "Work on the goals while nothing is pending"),
    "reflection": ("Reflection", "Look at its own work, every reflection_interval ticks"),
    "reflection_cont": ("Reflection, continued", "Go on with it after the journal has answered"),
    "sleep_consolidate": ("Sleep consolidation", "Make journal entries into long-term facts"),
    "goal_decompose": ("Goal decomposition", "Break a goal down into subtasks"),
    "pre_compaction": (
        "Extraction before compaction",
        "Journal what must not be lost before the history is cut",
    ),
}


def _config(row: Row) -> ContextConfig:
    context_type, shown, tools, mode, iterations, ends, asks, multi, agents, prompt = row
    name, description = _ABOUT[context_type]
    return ContextConfig(
        context_type=context_type,
        name=name,
        description=description,
        enabled_components=shown,
        component_overrides={"system_prompt": {"content": prompt}} if prompt else {},
        tool_filter=tools,
        execution_mode=mode,
        max_iterations=iterations,
        terminal_ends_loop=ends,
        dangerous_requires_confirm=asks,
        allows_multi_tool=multi,
        allows_sub_agents=agents,
    )


CONTEXTS: Mapping[str, ContextConfig] = {row[0]: _config(row) for row in _TABLE}
"""The context types by name."""


def context_type_for(event: Event | None) -> str:
    """The context of a tick, by the event in hand; None is an autonomous tick."""
    if event is None:
        return "tick_autonomous"
    return "reflection" if is_reflection(event) else "tick_event"


def continued(context_type: str) -> str:
    """The context in which a tick goes on once tools have answered."""
    return "reflection_cont" if context_type == "reflection" else context_type
