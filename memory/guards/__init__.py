"""Guards on memory: a fact is grounded in its sources, and not about the assistant itself."""

from memory.guards import persona
from memory.guards.grounding import is_plain, ungrounded
from memory.guards.lexicon import languages
from memory.guards.overlap import (
    BORNE,
    COPIED,
    OWN,
    Said,
    cited_in_vain,
    copied,
    from_elsewhere,
    said_in,
    share,
    speaker_of,
    speakers_of,
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
from memory.guards.reading import Source

__all__ = [
    "BORNE",
    "COPIED",
    "ERROR",
    "OWN",
    "SUGGESTION",
    "Said",
    "Source",
    "cited_in_vain",
    "copied",
    "from_elsewhere",
    "is_assistant",
    "is_courtesy",
    "is_plain",
    "languages",
    "persona",
    "said_in",
    "share",
    "speaker_of",
    "speakers_of",
    "speaks_of_oneself",
    "ungrounded",
    "violation",
    "worded",
]
