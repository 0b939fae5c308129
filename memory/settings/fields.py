"""Settings: the graph's context schema (Studio's form), and typed deployment variables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from memory.errors import InputError

GROUPS = {
    "intake": "enabled names assistants permitted_senders channels room_default"
    " sleep_schedule_enabled sleep_start_hour sleep_duration_hours time_zone fatigue_threshold"
    " tick_rate tick_rate_sleep goal_pause_minutes autonomous_ticks_per_hour tokens_per_day"
    " reflection_interval max_failed_ticks max_consecutive_errors checkpoints_kept",
    "assemble_context": "user_prompt persona owners max_context_tokens context_buffer_size"
    " context_buffer_tokens recall_tokens recall_limit recall_weight_recency"
    " recall_weight_importance recall_weight_trust recall_weight_links min_source_trust"
    " project_tokens session_memory_tokens entity_tokens page_tokens goals_tokens"
    " conversation_history_tokens earlier_history_tokens channel_privacy"
    " multi_action_enabled max_iterations_per_tick",
    "assess_task": "task_assessment_enabled",
    "act": "model_timeout model_attempts",
    "use_tools": "tool_timeout",
    "confirm": "dangerous_requires_confirm foreign_words max_questions",
    "brief_delegate": "sub_agents_enabled sub_agent_budget sub_agent_iterations"
    " personality_insulation result_summarization",
    "record": "observations_kept probes_kept prompts_kept",
    "extract_facts": "pre_compact_extraction_enabled pre_compact_max_iterations pre_compact_prompt",
    "compact": "compact_enabled compact_sleep_threshold compact_emergency_threshold"
    " compact_preserve_window compact_model compact_prompt",
    "begin_night": "memory_enabled max_iterations_sleep night_calls_per_100 night_batch_tokens"
    " night_tokens night_minutes stale_conversation_hours",
    "score_importance": "score_batch_size",
    "consolidate": "min_importance consolidate_batch_size judge_facts",
    "dream": "dream_batch_size dream_neighbours",
    "consolidate_entities": "min_observations prune_observations",
    "reflect": "reflection_threshold reflection_memories",
    "prune": "prune_importance prune_days faded_kept",
    "weigh_night": "gate_share gate_facts nights_kept",
}
"""Node -> names of its settings, for Studio."""

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


Verdict = Literal["act", "context", "ignore"]
"""An event is answered, taken as context only, or ignored."""

Audience = Literal["private", "public"]
"""Who reads what is said on a channel."""

# Users of a server set these: names are compared with each event, and prompts are paid for.
Most = Field(max_length=1_000)
Name = Annotated[str, Field(max_length=200)]
Names = Annotated[list[Name], Most]
Prompt = Annotated[str, Field(max_length=100_000)]


class Settings(BaseModel):
    """How the agent behaves. Names and defaults are those of the original design."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, json_schema_extra=arrange
    )

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        names = sorted(given, key=str) if isinstance(given, Mapping) else ()
        for name in (one for one in names if one not in cls.model_fields):
            close = get_close_matches(str(name), cls.model_fields, n=1)
            known = [f"did you mean {one}?" for one in close]
            known += ["`circadian config --explain` lists all"]
            raise InputError(f"settings: there is no setting {name!r:.80}; {known[0]}")
        return given

    user_prompt: Prompt = Field(
        "", description="The user's own system prompt; the assistant never changes it."
    )
    persona: Prompt = Field(
        "You are Circadian, a long-running assistant. You are exact, friendly and brief.",
        description="Who the assistant is.",
    )
    owners: list[str] = Field(
        ["local"],
        description="Ids of the people whose word the assistant's own prompt may follow. On a "
        "server that is the authenticated user alone, whatever this setting says.",
    )
    enabled: bool = Field(True, description="Off: every event is ignored, and reports say so.")
    names: Names = Field(
        ["circadian"], description="What the assistant is called: `@name` in a text mentions it."
    )
    assistants: Names = Field(
        [], description="Sender ids of other assistants: heard, and answered only when they ask."
    )
    permitted_senders: Names = Field(
        [], description="Sender ids that are answered even when they address nobody."
    )
    channels: Annotated[dict[Name, Verdict], Most] = Field(
        {}, description="Channel -> act | context | ignore, for messages on it that address nobody."
    )
    channel_privacy: Annotated[dict[Name, Audience], Most] = Field(
        {},
        description="Channel -> private | public: whether to repeat there what an owner said in "
        "private. Default: private where owners alone write, public where anybody else does.",
    )
    room_default: Verdict = Field(
        "context",
        description="act | context | ignore: messages that address nobody in any other channel.",
    )
    reflection_interval: int = Field(
        25, ge=0, description="Ticks between two reviews of the assistant's own work. 0: none."
    )
    max_context_tokens: int = Field(
        100_000, ge=500, description="Context limit, tokens. Thresholds are shares of it."
    )
    context_buffer_size: int = Field(
        20, ge=0, le=500, description="Newest unaddressed events kept in the prompt."
    )
    recall_tokens: int = Field(
        1_300, ge=0, description="At most this many tokens of recalled memory in a prompt."
    )
    recall_limit: int = Field(
        10, ge=1, le=100, description="Memories that a search returns by default."
    )
    recall_weight_recency: float = Field(
        0.02, ge=0, le=10, description="Weight of recency in recall; relevance has 1."
    )
    recall_weight_importance: float = Field(
        0.02, ge=0, le=10, description="Weight of importance in recall; relevance has 1."
    )
    recall_weight_trust: float = Field(
        0.02, ge=0, le=10, description="Weight of the source's trust in recall; relevance has 1."
    )
    recall_weight_links: float = Field(
        0.1,
        ge=0,
        le=1,
        description="Share of a memory's score that each linked memory gains. 0: no links.",
    )
    min_source_trust: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Least trust (0..1) in the source of a memory that recall shows.",
    )
    context_buffer_tokens: int = Field(
        2_000, ge=0, description="At most this many tokens of unaddressed events in a prompt."
    )
    project_tokens: int = Field(
        4_000, ge=0, description="At most this many tokens of projects in a prompt."
    )
    session_memory_tokens: int = Field(
        2_000, ge=0, description="At most this many tokens of session memory in a prompt."
    )
    entity_tokens: int = Field(
        1_000, ge=0, description="At most this many tokens of people and conversations in a prompt."
    )
    observations_kept: int = Field(
        100, ge=10, le=1_000, description="Observations kept of one person, place or thing."
    )
    page_tokens: int = Field(
        1_200,
        ge=0,
        description="At most this many tokens of pages on people and projects in a prompt.",
    )
    goals_tokens: int = Field(
        2_000, ge=0, description="At most this many tokens of goals in a prompt."
    )
    conversation_history_tokens: int | None = Field(
        None, ge=100, description="Most tokens of history in a prompt. None: all that are left."
    )
    earlier_history_tokens: int | None = Field(
        1_000,
        ge=0,
        description="At most this many tokens of history from before the last waking, which "
        "memory covers. None: all.",
    )
    autonomous_ticks_per_hour: int = Field(
        60, ge=0, description="Autonomous ticks per hour; beyond them only events are answered."
    )
    goal_pause_minutes: float = Field(
        240.0,
        ge=0,
        description="Longest wait before another look at unchanged goals, in minutes. Waits "
        "double from one minute; a change, an event or a new day ends a wait. 0: no wait.",
    )
    tokens_per_day: int = Field(
        1_000_000,
        ge=0,
        description="Model tokens per day (UTC) after which only events are answered.",
    )
    compact_enabled: bool = Field(
        True,
        description="Whether thresholds start a compaction. A prompt that the provider refuses "
        "as too long is compacted once even if this is off.",
    )
    compact_sleep_threshold: float = Field(
        0.7, gt=0, le=1, description="Asleep, compact when the history fills this share (0..1)."
    )
    compact_emergency_threshold: float = Field(
        0.8, gt=0, le=1, description="Awake, compact before a tick at this share (0..1)."
    )
    compact_preserve_window: int = Field(
        20, ge=0, description="Newest messages that compaction keeps as they are."
    )
    compact_model: str | None = Field(
        None, description="Model for the summary. None: the agent's model."
    )
    compact_prompt: str | None = Field(None, description="Summary prompt. None: the default.")
    pre_compact_extraction_enabled: bool = Field(
        True, description="Journal facts before compaction cuts the history."
    )
    pre_compact_max_iterations: int = Field(
        5, ge=1, le=10, description="Extraction iterations asleep; 3 in an emergency."
    )
    pre_compact_prompt: str | None = Field(
        None, description="Extraction prompt. None: the default."
    )
    multi_action_enabled: bool = Field(
        True, description="Whether a tick may loop over tools at all."
    )
    max_iterations_per_tick: int = Field(
        5, ge=1, le=10, description="Awake: model answers per tick that may ask for tools."
    )
    max_iterations_sleep: int = Field(
        10, ge=1, le=10, description="Asleep: model answers per loop that may ask for tools."
    )
    dangerous_requires_confirm: bool = Field(
        True, description="Ask a person before a dangerous tool runs."
    )
    foreign_words: Literal["ask", "refuse"] = Field(
        "ask",
        description="Ask a person about, or refuse, a dangerous call or a message to somebody "
        "other than the asker, if it rests on words of somebody who is not an owner.",
    )
    max_questions: int = Field(
        10, ge=1, le=100, description="Questions that may wait for a person at a time."
    )
    task_assessment_enabled: bool = Field(
        False, description="Let a model assess the task too: one more call a tick."
    )
    sub_agents_enabled: bool = Field(False, description="Allow delegation.")
    sub_agent_budget: int = Field(3, ge=1, le=10, description="Sub-agents at once.")
    sub_agent_iterations: int = Field(
        5, ge=1, le=10, description="A sub-agent's model answers that may ask for tools."
    )
    personality_insulation: Literal["none", "orchestrator", "delegate"] = Field(
        "orchestrator",
        description="What a sub-agent is told: none = goals, recent messages and system state; "
        "orchestrator = the task alone; delegate = the task and the top three goals.",
    )
    result_summarization: bool = Field(
        True, description="Shorten a sub-agent's long result by one more model call."
    )
    sleep_schedule_enabled: bool = Field(
        False, description="Sleep at sleep_start_hour, by `circadian run` or a server's schedule."
    )
    sleep_start_hour: int = Field(
        2, ge=0, le=23, description="Local hour at which the agent falls asleep."
    )
    sleep_duration_hours: float = Field(
        4.0, gt=0, le=23, description="Hours after which it wakes, if it fell asleep on schedule."
    )
    time_zone: str | None = Field(
        None,
        description="The time zone of times that are shown and of hours in settings, such as "
        "Europe/Vienna. None: the machine's own.",
    )
    fatigue_threshold: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Fall asleep when the history fills this share (0..1) and nothing waits. None: "
        "never.",
    )
    tick_rate: float = Field(5.0, gt=0, description="Seconds between two ticks of `circadian run`.")
    tick_rate_sleep: float = Field(60.0, gt=0, description="Seconds between two ticks asleep.")
    memory_enabled: bool = Field(True, description="Whether nights make long-term memory.")
    min_importance: int = Field(
        4, ge=1, le=10, description="Importance (1..10) from which journal entries become facts."
    )
    score_batch_size: int = Field(50, ge=1, le=200, description="Journal entries scored per call.")
    consolidate_batch_size: int = Field(
        25, ge=1, le=100, description="Journal entries consolidated per call."
    )
    judge_facts: bool = Field(
        False,
        description="Whether the chat model judges that each new fact of a night follows from the "
        "fact's sources. Its verdict overrules the rules on numbers, days, names and "
        "negations. One call a batch; the offline model judges nothing.",
    )
    night_batch_tokens: int = Field(
        8_000, ge=100, description="At most this many tokens of the journal in one call of a night."
    )
    dream_batch_size: int = Field(
        20, ge=1, le=100, description="New facts related to their neighbours per call."
    )
    dream_neighbours: int = Field(5, ge=1, le=20, description="Neighbours shown of each new fact.")
    min_observations: int = Field(
        5, ge=1, description="Observations of one entity from which a night makes attributes."
    )
    prune_observations: bool = Field(
        False, description="Drop observations once attributes are made from them."
    )
    reflection_threshold: int = Field(
        150, ge=1, description="Summed importance of new entries at which a night reflects."
    )
    reflection_memories: int = Field(
        10, ge=1, le=50, description="Memories shown with each question of a reflection."
    )
    prune_importance: int = Field(
        3, ge=0, le=10, description="Old journal entries up to this importance fade (0: none)."
    )
    faded_kept: int | None = Field(
        None, ge=0, description="Most faded entries kept; the oldest are removed first. None: all."
    )
    prune_days: int = Field(30, ge=1, description="Days after which a journal entry is old.")
    stale_conversation_hours: float = Field(
        1.0, gt=0, description="Hours without a word after which a conversation is over."
    )
    night_calls_per_100: int = Field(
        15,
        ge=1,
        description="Most model calls of nights per 100 journal entries; up to 8 in advance.",
    )
    night_tokens: int | None = Field(
        None, ge=1, description="Most model tokens of a night. None: no limit."
    )
    night_minutes: float | None = Field(
        None, gt=0, description="Most minutes that a night thinks. None: no limit."
    )
    nights_kept: int = Field(
        7, ge=0, description="Newest nights that can be undone; what older nights removed is gone."
    )
    gate_share: float = Field(
        0.25, gt=0, le=1, description="A night that removes a larger share of facts is held back."
    )
    gate_facts: int = Field(20, ge=1, description="Facts below which no night is held back.")
    probes_kept: int = Field(
        20, ge=0, description="Real recalls kept to test a night with before it is applied."
    )
    prompts_kept: int | None = Field(
        None,
        ge=0,
        le=256,
        description="Newest ticks whose prompts are kept for the inspector. None: 20, and on a "
        "server that authenticates users, none.",
    )
    max_failed_ticks: int = Field(
        3, ge=1, description="Failed ticks after which an event is set aside."
    )
    max_consecutive_errors: int = Field(
        5, ge=1, description="Failures in a row that set the emergency stop."
    )
    checkpoints_kept: int = Field(
        50, ge=1, description="Checkpoints of the root thread that are kept."
    )
    model_timeout: float = Field(
        600.0, gt=0, description="Seconds that one try of a chat model's call may take."
    )
    model_attempts: int = Field(
        4, ge=1, le=10, description="Tries of a chat model's call, if its errors are temporary."
    )
    tool_timeout: float = Field(30.0, gt=0, description="Seconds that one tool call may take.")

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, name: str | None) -> str | None:
        if name is not None:
            from memory.text import known_zone  # not loaded for `--help`

            known_zone(name)
        return name

    @property
    def zone(self) -> tzinfo:
        """The time zone. Raises InputError if the machine's own zone is unknown."""
        from memory.text import known_zone, machine_zone

        return machine_zone() if self.time_zone is None else known_zone(self.time_zone)


class Deployment(BaseModel):
    """Where and with what the agent runs."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    data: Path = Field(Path(".circadian"), description="The data folder.")
    database_url: SecretStr | None = Field(
        None,
        description="`postgresql://...` (with pgvector): keep everything there, for several hosts.",
    )
    model: str | None = Field(
        None, description="`offline`, `openai:<model>`, `<provider>:<model>`."
    )
    embedder: str | None = Field(
        None, description="`offline`, `openai:<model>`, `fastembed:<model>`, `huggingface:<model>`."
    )
    agent: str = Field("default", min_length=1, description="The agent's name.")
    offline: bool = Field(
        False, description="Use the offline model and embedder whatever keys exist."
    )
    folder: Path | None = Field(
        None, description="A working folder whose files the agent may read, and change if approved."
    )
    extensions: str | None = Field(
        None, description="A Python module with your `tools` and `components` (lists)."
    )
    mcp: Path | None = Field(None, description="A JSON file that names MCP servers.")
    breaker_failures: int = Field(
        3, ge=1, description="Failed calls in a row after which a service is left alone."
    )
    breaker_seconds: float = Field(
        30.0, gt=0, description="Seconds before one call tries such a service again."
    )
    log_level: str = Field("WARNING", description="Log level.")
    log_format: str = Field("text", description="`text` or `json`.")
    lock_timeout: float = Field(
        30.0, ge=0, description="Seconds to wait for another process's run."
    )
