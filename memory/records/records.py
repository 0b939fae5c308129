"""Records of working and long-term memory: plain JSON; times are ISO 8601, UTC.

Every store namespace and every fact belongs to one scope, which is an agent of a user.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypeAlias
from urllib.parse import quote
from uuid import UUID, uuid5

from pydantic import AfterValidator
from typing_extensions import TypedDict


def _is_time(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("it has no offset from UTC")
    return text


Time: TypeAlias = Annotated[str, AfterValidator(_is_time)]
"""ISO 8601 with an offset; validated where a record comes from outside."""


class Probe(TypedDict):
    """A recall kept as a test for nights: its query, and what it found."""

    query: str
    found: list[str]
    """Source ids of its best memories."""
    at: str


ASIDE = "set_aside"
"""Tag of an event whose ticks all failed; tools may have written memories based on it."""

SELF = "self"
"""Tag of notes on the assistant's own work; never made into facts, recalled or counted."""

OWN_PREFIX = "~"
"""First character of the ids of the product's own messages and events, and of no others."""

OPENING = "[reflection]"
"""First word of a reflection event's text, by which the offline model recognises it."""


def is_reflection(event: Event | None) -> bool:
    """Whether the event starts a reflection. Nobody said it, so it is not journaled as heard."""
    return event is not None and event.get("kind") == "reflection"


class PromptVersion(TypedDict):
    """One version of the assistant's own prompt."""

    version: int
    """From 1; 0 is the initial empty prompt."""
    text: str
    at: str
    reason: str
    by: str
    """Whose event caused the change, and who approved it."""


class AssistantPrompt(TypedDict):
    """The assistant's own guidelines; the user's prompt is a setting and comes before them."""

    version: int
    """The current version."""
    text: str
    versions: list[PromptVersion]
    """Oldest first, bounded."""


AGENTS = UUID("6f1f8a3e-2f0e-5a37-9d0c-5b1d2a0c7e11")
"""The uuid5 namespace of agents. Never change it: thread ids derive from it."""

LOCAL_USER = "local"
"""The user where no server authenticates users."""


def thread_id(user: str, agent: str) -> str:
    """The thread id (a uuid) of the user's agent of this name."""
    return str(uuid5(AGENTS, f"{user}\n{agent}"))


class Scope(NamedTuple):
    """One agent of one user."""

    user: str
    thread: str

    def namespace(self, *labels: str) -> tuple[str, ...]:
        """The store namespace `(user, thread, *labels)`, escaped."""
        return tuple(map(_label, (self.user, self.thread, *labels)))


@lru_cache(maxsize=256)
def _label(text: str) -> str:
    """A store label: not empty and without dots (LangGraph's rules), readable if possible."""
    return quote(text, safe=" @:+-_").replace(".", "%2E") or "%00"


Priority = Literal["high", "medium", "low"]
GoalStatus = Literal["active", "completed", "abandoned"]
ProjectStatus = Literal["active", "paused", "completed"]
SourceType = Literal["direct", "observation", "inference", "environmental", "compaction"]
ScoringMethod = Literal["heuristic", "llm", "manual"]


class Marks(TypedDict, total=False):
    """To whom a goal or project belongs, and who may know it; empty if that is an owner alone."""

    by: str
    """The person to whom it belongs, unless that is an owner."""
    origins: list[str]
    """People other than owners on whose words it rests."""
    public: list[str]
    """Of its text what was told where others listen: a goal's text, a project's summary and lines.
    Without this key it is from before the key was kept."""


class Project(Marks):
    """A context slot that can be paged in and out."""

    summary: str
    context: str
    status: ProjectStatus
    created_at: str
    last_active: str


class Projects(TypedDict):
    """All slots by key, and the key of the active one."""

    active: str | None
    slots: dict[str, Project]


class Goal(Marks):
    """A node of the goal tree."""

    id: str
    """`goal_{tick of creation}_{index}`; the index counts all goals of the agent."""
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
    """A completed root goal or project."""

    description: str
    timestamp: str


class SessionMemory(TypedDict):
    """Facts and patterns in every prompt."""

    key_facts: list[str]
    learned_patterns: list[str]
    completed_tasks: list[CompletedTask]
    last_compacted: str | None
    said_by: NotRequired[dict[str, str]]
    """Fact or pattern -> who said it, unless an owner did."""
    origins: NotRequired[dict[str, list[str]]]
    """Fact or pattern of an owner's tick -> those besides owners on whose words it may rest."""
    private: NotRequired[list[str]]
    """Facts and patterns from an owner's private talk: no prompt shows them if others listen."""


class Conversation(TypedDict):
    """An open conversation; cleared in the night after an hour without a word."""

    entity: str
    channel: str | None
    last_event: str
    last_at: str
    pending_actions: list[str]


class Event(TypedDict):
    """Something from outside that reached the agent."""

    id: str
    at: Time
    sender: str
    text: str
    channel: str | None
    addressed: bool
    """True: acted on. False: taken as context only."""
    content: NotRequired[list[Any]]
    """Content blocks of a chat message with more than text (images, ...)."""
    kind: NotRequired[Literal["chat", "reflection"]]
    """Set by the product only: a chat message without a `name`, or the event that starts the
    assistant's review of its own work."""


class InboxItem(TypedDict):
    """A waiting event, stored under its id; removed when its tick is committed."""

    event: Event
    received_at: str
    order: str
    """Sort key, oldest first: time of receipt, then a counter."""
    attempts: int
    """Failed ticks on this event; after three it is set aside."""
    error: str | None
    """Why the last attempt failed."""
    answered: NotRequired[int]
    """The tick that answered it, until a run finds that tick in a checkpoint."""


class JournalEntry(TypedDict):
    """An episode, such as a message or an insight."""

    id: str
    """`<kind>_<YYYYMMDD>_<rest>`, derived from its origin: a repeated write makes one entry."""
    timestamp: Time
    content: str
    source_type: SourceType
    source_trust: float
    """0..1, by source type."""
    source_entity: str | None
    importance: int
    """1..10."""
    scoring_method: ScoringMethod
    tags: list[str]
    related_projects: list[str]
    sources: list[str]
    """Event ids."""
    channel: str | None
    origins: NotRequired[list[str]]
    """People other than owners on whose words it rests, unless that is the speaker alone."""
    evidence: NotRequired[list[str]]
    """For an insight: ids of the memories behind it."""
    consolidation: Literal["pending", "consolidated", "below_threshold", "exempt", "faded"]
    """`exempt`: archives, insights and self notes, which never become facts. `faded`: old and of
    little importance; found when nothing fits better, and in no prompt unless it fits very well."""


class End(TypedDict):
    """All links of one memory, which is a journal entry or a fact."""

    linked_to: list[str]
    """Ids of the other ends, sorted."""
    created: Time
    relations: dict[str, dict[str, str]]
    """Other end -> {relation, reason, at}."""


LONGEST_FACT = 10_000
"""Most characters of a fact. Embedders read about as much, and cut off the rest."""


class FactDraft(TypedDict):
    """A fact before semantic memory stores it."""

    op: str
    """Operation id; a repeated operation makes one fact."""
    text: str
    source_entries: list[str]
    """Journal ids."""
    source_events: list[str]
    """Event ids."""
    speaker: str | None
    entities: list[str]
    trust: float
    importance: int
    created: Time
    valid_from: Time
    other_words: NotRequired[list[str]]
    """Words by which people may ask for it, such as nicknames and roles: indexed, never shown."""
    origins: NotRequired[list[str]]
    """People other than owners on whose words it rests, unless that is the speaker alone."""


class Fact(FactDraft):
    """A fact of semantic memory, as Mem0 stores it."""

    id: str
    invalid_at: Time | None
    """Set when superseded."""
    superseded_by: str | None
    context: NotRequired[str | None]
    """Description in the light of neighbouring facts (A-MEM)."""
    tags: NotRequired[list[str]]
    earlier: NotRequired[list[dict[str, Any]]]
    """Replaced contexts and tags: {context, tags, until, night}, oldest first."""
    disputed: NotRequired[list[str]]
    """Operation ids of contradicting facts, unsettled."""
    depends_on: NotRequired[list[str]]
    """Operation ids of the facts because of which it was calculated, planned or bought."""
    doubtful: NotRequired[list[str]]
    """Ids in `depends_on` of facts that fell or are contradicted; nobody has confirmed this one."""
    access_count: NotRequired[int]
    """Times that the agent recalled it."""
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
    "add_entity",
    "remove_entity",
    "observe_entity",
    "unobserve_entity",
    "meet_entity",
    "change_entity",
    "write_page",
    "prune_entry",
    "reflected",
    "compact",
]


class Operation(TypedDict):
    """One change to long-term memory. A night is a list of these."""

    id: str
    """Derived from sources and position, never from model text."""
    kind: OperationKind
    target: str
    """Id of the record: a journal id, a fact's operation id, ..."""
    before: Any
    """The replaced value; None for an addition."""
    after: Any
    sources: list[str]
    reason: str


class Usage(TypedDict):
    """Cost of model calls."""

    llm_calls: int
    tokens: int
    """Input and output, as the provider reports them, else approximate."""


class NightStep(TypedDict):
    """One line of a night's report."""

    step: str
    done: int
    skipped: int
    llm_calls: int
    tokens: int
    seconds: float


NightStatus = Literal[
    "open", "preview", "held", "approved", "complete", "partial", "undone", "discarded"
]
"""`partial`, of a night that was applied and is not complete, is reported and never stored."""


class NightRecord(TypedDict):
    """A night's head record; its operations are in plan records."""

    id: str
    """`night_YYYYMMDD_HHMMSS`."""
    dry_run: bool
    started: Time
    """Every step of the night takes this for the present time."""
    ended: Time | None
    complete: bool
    """Nothing failed, no budget ran out, and all is applied; also if it was woken early."""
    held: list[str]
    """Journal ids left pending for the next night."""
    pending: list[str]
    """Journal ids to process, oldest first."""
    facts: NotRequired[list[str]]
    """Operation ids of the facts to dream about; fixed when compacting is applied."""
    entities: NotRequired[list[str]]
    """Ids of the entities whose observations to consolidate."""
    reflect: NotRequired[bool]
    """Whether enough happened to reflect on."""
    status: NotRequired[NightStatus]
    stopped: NotRequired[str | None]
    """Why it stopped early; the rest is left for the next night."""
    left: NotRequired[dict[str, int]]
    """For each step the number of items that it did not come to."""
    calls: NotRequired[int]
    """Allowed model calls."""
    ahead: NotRequired[int]
    """Calls that earlier nights made in advance, still to be covered by new entries."""
    reduced: NotRequired[bool]
    """Its operations have lost their values: it can no longer be undone."""
    gate: NotRequired[dict[str, Any]]
    """Measurements before it was applied."""
    phase: Literal["compacting", "dreaming"]
    applied: list[str]
    """Applied phases; written last."""
    steps: list[NightStep]
    errors: list[str]
    forgotten: NotRequired[str]
    """When a forget removed something from it: it can no longer be undone."""


class PlanRecord(TypedDict):
    """The decision of one visit to a night's step, stored under a key made from its inputs."""

    key: str
    order: int
    """Position in the night, from 0."""
    step: str
    phase: Literal["compacting", "dreaming"]
    operations: list[Operation]
    inputs: list[str]
    """Ids that the step worked on."""
    left: list[str]
    """Inputs that the step could not settle."""
    errors: list[str]
    llm_calls: int
    tokens: int
    seconds: float
    exchange: list[dict[str, Any]]
    """Messages of a loop so far, serialised."""
    mending: NotRequired[int]
    """Model calls that mended an earlier answer."""
    finished: NotRequired[bool]
    """Whether this was the last iteration of a loop."""
    overflowed: NotRequired[bool]
    """The prompt was too long for the model; smaller batches follow."""
    refused: NotRequired[list[str]]
    """Rejected parts of the model's answer, with reasons."""
    result: NotRequired[dict[str, Any]]
    """What the step reports besides its operations."""
    left_alone: NotRequired[bool]
    """No call was made, because the circuit breaker of a failing service is open."""


class HandledMark(TypedDict):
    """An event whose tick the state contains; `intake` removes it from the inbox."""

    id: str
    tick: int
    at: str


class Earlier(TypedDict):
    """A fact that a recalled memory superseded; shown with that memory, never as its own hit."""

    id: str
    text: str
    until: str
    """When its successor was said, ISO 8601."""
    speaker: str | None
    sources: list[str]
    """Event ids, which the sources of the hit include."""


INSIGHT = "insight_"
"""Prefix of the ids of insights."""


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
    """Who said it, if known."""
    origins: NotRequired[list[str]]
    """People other than owners on whose words it rests, unless that is the speaker alone."""
    parts: NotRequired[dict[str, float]]
    """The parts of the score by name; the score is their sum."""
    inference: NotRequired[bool]
    """An insight: the assistant's conclusion, and nobody's words."""
    superseded: NotRequired[bool]
    """No longer true."""
    superseded_by: NotRequired[str]
    """Id of the superseding fact."""
    earlier: NotRequired[list[Earlier]]
    """Superseded facts that help to answer, newest first."""
    partly_superseded: NotRequired[bool]
    """A journal entry some of whose facts no longer hold."""
    disputed: NotRequired[bool]
    """Another memory contradicts it, and nobody has said which one holds."""
    doubtful: NotRequired[bool]
    """It rests on something that no longer holds, and nobody has said whether it still does."""
    faint: NotRequired[bool]
    """It has too little of the query itself: what stands beside it found it, or common words."""
