"""Arrangement of the settings in Studio's form: each under the node it concerns."""

from __future__ import annotations

from typing import Any

GROUPS = {
    "intake": "enabled names assistants permitted_senders channels room_default"
    " sleep_schedule_enabled sleep_start_hour sleep_duration_hours time_zone fatigue_threshold"
    " tick_rate tick_rate_sleep autonomous_ticks_per_hour tokens_per_day reflection_interval"
    " max_failed_ticks max_consecutive_errors checkpoints_kept",
    "assemble_context": "user_prompt persona owners max_context_tokens context_buffer_size"
    " context_buffer_tokens recall_tokens recall_limit recall_weight_recency"
    " recall_weight_importance recall_weight_trust recall_weight_links min_source_trust"
    " project_tokens session_memory_tokens entity_tokens goals_tokens conversation_history_tokens",
    "assess_task": "task_assessment_enabled multi_action_enabled max_iterations_per_tick",
    "use_tools": "tool_timeout",
    "confirm": "dangerous_requires_confirm max_questions",
    "brief_delegate": "sub_agents_enabled sub_agent_budget sub_agent_iterations"
    " personality_insulation result_summarization",
    "record": "observations_kept probes_kept",
    "extract_facts": "pre_compact_extraction_enabled pre_compact_max_iterations pre_compact_prompt",
    "compact": "compact_enabled compact_sleep_threshold compact_emergency_threshold"
    " compact_preserve_window compact_model compact_prompt",
    "begin_night": "memory_enabled max_iterations_sleep night_calls_per_100 night_batch_tokens"
    " night_tokens night_minutes stale_conversation_hours",
    "score_importance": "score_batch_size",
    "consolidate": "min_importance consolidate_batch_size",
    "dream": "dream_batch_size dream_neighbours",
    "consolidate_entities": "min_observations prune_observations",
    "reflect": "reflection_threshold reflection_memories",
    "prune": "prune_importance prune_days",
    "weigh_night": "gate_share gate_facts nights_kept",
}
"""Node -> its settings."""
KINDS = {
    "user_prompt": "prompt",
    "persona": "prompt",
    "compact_prompt": "prompt",
    "pre_compact_prompt": "prompt",
    "compact_model": "model",
}
"""Settings with a special kind of form field."""


def arrange(schema: dict[str, Any]) -> None:
    """Add LangGraph Studio's form hints to the settings' JSON schema."""
    fields = schema["properties"]
    for node, names in GROUPS.items():
        for name in names.split():
            fields[name]["langgraph_nodes"] = [node]
    for name, kind in KINDS.items():
        fields[name]["langgraph_type"] = kind
