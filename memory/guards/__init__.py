"""Guards on memory: a fact is grounded in its sources, and not about the assistant itself."""

from memory.guards import persona
from memory.guards.grounding import (
    OWN,
    Said,
    cited_in_vain,
    copied,
    from_elsewhere,
    said_in,
    share,
    speaker_of,
    worded,
)
from memory.guards.persona import (
    ERROR,
    SUGGESTION,
    is_assistant,
    is_courtesy,
    speaks_of_oneself,
    violation,
)

__all__ = [
    "ERROR",
    "OWN",
    "SUGGESTION",
    "Said",
    "cited_in_vain",
    "copied",
    "from_elsewhere",
    "is_assistant",
    "is_courtesy",
    "persona",
    "said_in",
    "share",
    "speaker_of",
    "speaks_of_oneself",
    "violation",
    "worded",
]
