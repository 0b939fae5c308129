"""Use cases: what a person does with an agent, each a function of the agent's context."""

from graph.use_cases import nights, reindexing, transfer
from graph.use_cases.approvals import approve, decide, refuse
from graph.use_cases.context import AgentContext, complete_state
from graph.use_cases.forgetting import (
    COUNTED,
    Forgotten,
    forget,
    forget_agent,
    forget_entry,
    forget_fact,
)
from graph.use_cases.memories import correct, find_fact, list_memories, recall
from graph.use_cases.nights import (
    Labels,
    NightLine,
    applying,
    broke_off,
    find_night,
    labels_for,
    of_run,
    previewing,
    want_preview,
)
from graph.use_cases.reindexing import Reindexing
from graph.use_cases.runs import Input, post, run, stop_answer, stream, tick_of, withdraw
from graph.use_cases.scheduler import Scheduler
from graph.use_cases.status import (
    AgentHoldings,
    Status,
    agent_held,
    briefing,
    half_done,
    list_agents,
    losses,
    lost_ticks,
    new_briefing,
    overview,
    prompt_of,
    rollback,
    status,
)
from graph.use_cases.transfer import export_memory, import_memory

__all__ = [
    "COUNTED",
    "AgentContext",
    "AgentHoldings",
    "Forgotten",
    "Input",
    "Labels",
    "NightLine",
    "Reindexing",
    "Scheduler",
    "Status",
    "agent_held",
    "applying",
    "approve",
    "briefing",
    "broke_off",
    "complete_state",
    "correct",
    "decide",
    "export_memory",
    "find_fact",
    "find_night",
    "forget",
    "forget_agent",
    "forget_entry",
    "forget_fact",
    "half_done",
    "import_memory",
    "labels_for",
    "list_agents",
    "list_memories",
    "losses",
    "lost_ticks",
    "new_briefing",
    "nights",
    "of_run",
    "overview",
    "post",
    "previewing",
    "prompt_of",
    "recall",
    "refuse",
    "reindexing",
    "rollback",
    "run",
    "status",
    "stop_answer",
    "stream",
    "tick_of",
    "transfer",
    "want_preview",
    "withdraw",
]
