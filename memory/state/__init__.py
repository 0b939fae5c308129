"""The graph's state: its keys, the rules they keep, and changes of mode."""

from memory.state.mode import counted_failure, fallen_asleep, filled, rolled_up, woken
from memory.state.schema import (
    REDUCED_KEYS,
    AgentInput,
    AgentOutput,
    Mode,
    NightCursor,
    Request,
    SessionMetrics,
    SleepCause,
    SleepWish,
    Slumber,
    Spending,
    State,
    WakeCause,
    at_rest,
    fresh_state,
    merge_by_id,
    merge_projects,
)
from memory.state.stopping import STEPS
from memory.state.validation import checked, kept_problem, report_so_far, state_problem

__all__ = [
    "REDUCED_KEYS",
    "STEPS",
    "AgentInput",
    "AgentOutput",
    "Mode",
    "NightCursor",
    "Request",
    "SessionMetrics",
    "SleepCause",
    "SleepWish",
    "Slumber",
    "Spending",
    "State",
    "WakeCause",
    "at_rest",
    "checked",
    "counted_failure",
    "fallen_asleep",
    "filled",
    "fresh_state",
    "kept_problem",
    "merge_by_id",
    "merge_projects",
    "report_so_far",
    "rolled_up",
    "state_problem",
    "woken",
]
