"""The records of working and long-term memory. All are plain JSON; times are ISO 8601, UTC."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

Priority = Literal["high", "medium", "low"]
GoalStatus = Literal["active", "completed", "abandoned"]
ProjectStatus = Literal["active", "paused", "completed"]
SourceType = Literal["direct", "observation", "inference", "environmental", "compaction"]
ScoringMethod = Literal["heuristic", "llm", "manual"]


class Project(TypedDict):
    """A context slot that can be paged in and out (architecture-self-management, section 1)."""

    summary: str
    context: str
    status: ProjectStatus
    created_at: str
    last_active: str


class Projects(TypedDict):
    """All slots by key, and the key of the one paged in."""

    active: str | None
    slots: dict[str, Project]


class Goal(TypedDict):
    """A node of the goal tree (architecture-self-management, section 2)."""

    id: str
    """`goal_{tick of creation}_{index}`; the index is one counter of the agent, never reused."""
    description: str
    priority: Priority
    status: GoalStatus
    progress: int
    """0..100, percent."""
    created: str
    parent_id: str | None
    subtask_ids: list[str]
    auto_generated: bool


class CompletedTask(TypedDict):
    """A root goal or project that was completed."""

    description: str
    timestamp: str


class SessionMemory(TypedDict):
    """Facts and patterns always in the prompt (architecture-self-management, section 3)."""

    key_facts: list[str]
    learned_patterns: list[str]
    completed_tasks: list[CompletedTask]
    last_compacted: str | None
    said_by: NotRequired[dict[str, str]]
    """Fact or pattern -> who said it, where that was no owner."""


class Conversation(TypedDict):
    """An open conversation: working memory, cleared in the night when idle for an hour."""

    entity: str
    channel: str | None
    last_event: str
    last_at: str
    pending_actions: list[str]


class Event(TypedDict):
    """Something that reached the agent from outside."""

    id: str
    at: str
    sender: str
    text: str
    channel: str | None
    addressed: bool
    """True: acted on. False: taken as context only."""
    content: NotRequired[list[Any]]
    """The content blocks of a chat message that is more than text (images, ...)."""
    kind: NotRequired[Literal["chat", "reflection"]]
    """Set by the product and never by who posts: a chat message without a `name`, or the event
    that sets off the assistant's look at its own work."""


class InboxItem(TypedDict):
    """An event that waits. Stored under its id; leaves when its tick is committed."""

    event: Event
    received_at: str
    order: str
    """Sort key: time of receipt, then a counter for those of one moment; oldest first."""
    attempts: int
    """Ticks on this event that failed. At three it is set aside."""
    error: str | None
    """Why the last attempt failed."""
    answered: NotRequired[int]
    """The tick that answered it, from then until a run finds that tick in a checkpoint."""


class JournalEntry(TypedDict):
    """An episode (data-flow-03, original-system section 11)."""

    id: str
    """`<kind>_<YYYYMMDD>_<rest>`, derived from what made it: the same write twice is one entry."""
    timestamp: str
    content: str
    source_type: SourceType
    source_trust: float
    """0..1, by source type (ruling 2)."""
    source_entity: str | None
    importance: int
    """1..10."""
    scoring_method: ScoringMethod
    tags: list[str]
    related_projects: list[str]
    sources: list[str]
    """Event ids."""
    channel: str | None
    evidence: NotRequired[list[str]]
    """Of an insight: the ids of the memories that it stands on."""
    consolidation: Literal["pending", "consolidated", "below_threshold", "exempt"]
    """`exempt`: archives, insights and self entries, which are never made into facts."""


class FactDraft(TypedDict):
    """A fact on its way into semantic memory."""

    op: str
    """The operation id: the same op twice is one fact."""
    text: str
    source_entries: list[str]
    """Journal ids."""
    source_events: list[str]
    """Event ids."""
    speaker: str | None
    entities: list[str]
    trust: float
    importance: int
    created: str
    valid_from: str


class Fact(FactDraft):
    """A fact of semantic memory, as Mem0 keeps it."""

    id: str
    invalid_at: str | None
    """Set when superseded; the record stays."""
    superseded_by: str | None
    context: NotRequired[str | None]
    """What it is about, in the light of its neighbours (A-MEM)."""
    tags: NotRequired[list[str]]
    earlier: NotRequired[list[dict[str, Any]]]
    """Contexts and tags that were replaced: {context, tags, until, night}, oldest first."""
    disputed: NotRequired[list[str]]
    """Operation ids of facts that contradict it, unsettled."""
    access_count: NotRequired[int]
    """How often recall gave it to the agent."""
    last_access: NotRequired[str | None]


OperationKind = Literal[
    "add_entry",
    "score_entry",
    "mark_entry",
    "add_fact",
    "change_fact",
    "remove_fact",
    "settle_fact",
    "link",
    "unlink",
    "observe_entity",
    "unobserve_entity",
    "meet_entity",
    "change_entity",
    "prune_entry",
    "reflected",
    "compact",
]


class Operation(TypedDict):
    """One change that a step wants. A night is a list of these (design section 2)."""

    id: str
    """Derived from sources and position, never from model text."""
    kind: OperationKind
    target: str
    """What it changes: a journal id, a fact's operation id, ..."""
    before: Any
    """The value it replaces; None where it adds."""
    after: Any
    sources: list[str]
    reason: str


class Usage(TypedDict):
    """What model work cost."""

    llm_calls: int
    tokens: int
    """Input and output, as reported by the provider; approximate where it reports none."""


class NightStep(TypedDict):
    """One line of a night's report."""

    step: str
    done: int
    skipped: int
    llm_calls: int
    tokens: int
    seconds: float


NightStatus = Literal["open", "preview", "held", "approved", "complete", "undone", "discarded"]


class NightRecord(TypedDict):
    """The head of a night's record; its operations stand in plan records beside it."""

    id: str
    """`night_YYYYMMDD_HHMMSS`."""
    dry_run: bool
    started: str
    """The `now` of the whole night."""
    ended: str | None
    complete: bool
    """True when nothing failed or was used up, and all is applied. Called away, it is, too."""
    held: list[str]
    """Journal ids left pending for the next night."""
    pending: list[str]
    """Journal ids that the night set out with, oldest first."""
    facts: NotRequired[list[str]]
    """Operation ids of the facts that dreaming sets out with; fixed when compacting is applied."""
    entities: NotRequired[list[str]]
    """Ids of the entities whose observations are consolidated."""
    reflect: NotRequired[bool]
    """Whether enough happened to reflect on."""
    status: NotRequired[NightStatus]
    stopped: NotRequired[str | None]
    """Why it stopped thinking before everything was done; the rest is for the next night."""
    calls: NotRequired[int]
    """Model calls that it may make."""
    ahead: NotRequired[int]
    """Calls that earlier nights made beyond their share: it thinks when entries came for them."""
    reduced: NotRequired[bool]
    """Its operations are ids only by now: it can no longer be undone."""
    gate: NotRequired[dict[str, Any]]
    """What was measured before it was applied."""
    phase: Literal["compacting", "dreaming"]
    applied: list[str]
    """The phases whose operations are applied; written last."""
    steps: list[NightStep]
    errors: list[str]
    forgotten: NotRequired[str]
    """When a forget took something out of it: it can no longer be undone."""


class PlanRecord(TypedDict):
    """What one visit of one step decided; kept under a key made from its inputs."""

    key: str
    order: int
    """Position in the night, from 0."""
    step: str
    phase: Literal["compacting", "dreaming"]
    operations: list[Operation]
    inputs: list[str]
    """The ids that the step worked on."""
    left: list[str]
    """Of those, the ids it could not settle."""
    errors: list[str]
    llm_calls: int
    tokens: int
    seconds: float
    exchange: list[dict[str, Any]]
    """The loop's own messages so far, where the step is a loop (serialised)."""
    finished: NotRequired[bool]
    """For a loop: whether this was its last iteration."""
    overflowed: NotRequired[bool]
    """The prompt was longer than the model takes; smaller batches follow."""
    refused: NotRequired[list[str]]
    """What of the model's answer came to nothing, and why."""
    result: NotRequired[dict[str, Any]]
    """What the step reports of itself beside its operations."""
    left_alone: NotRequired[bool]
    """A service that kept failing is left alone for now: no call was made."""


class HandledMark(TypedDict):
    """An event whose tick this state contains; `intake` takes it out of the inbox."""

    id: str
    tick: int
    at: str


class RecallHit(TypedDict):
    """One recalled memory."""

    id: str
    kind: Literal["fact", "episode"]
    text: str
    score: float
    sources: list[str]
    """Event ids, the closest source first."""
    at: str
    speaker: str | None
    """Who said it, where that is known."""
    parts: NotRequired[dict[str, float]]
    """What the score is made of, by name; the score is their sum."""
    superseded: NotRequired[bool]
    """No longer held to be true."""
    superseded_by: NotRequired[str]
    """The id of the fact that has taken its place."""
    disputed: NotRequired[bool]
    """Another memory contradicts it, and it is not settled which one holds."""
