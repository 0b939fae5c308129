"""Guards on memory: a fact is grounded in its sources, and not about the assistant itself."""

from memory.guards import persona
from memory.guards.dates import days_of, weekdays_in
from memory.guards.figures import is_of_another
from memory.guards.grounding import Doubt, is_plain, ungrounded
from memory.guards.lexicon import fold, languages, telling
from memory.guards.mood import negates, without_reminder
from memory.guards.numbers import in_digits
from memory.guards.overlap import (
    BORNE,
    COPIED,
    OWN,
    Said,
    about_the_same,
    cited_in_vain,
    copied,
    from_elsewhere,
    joining,
    lost_in,
    may_be_one,
    may_supersede,
    of_oneself,
    repeats,
    rests_on,
    rewords,
    said_in,
    share,
    speaker_of,
    speakers_of,
    stands_near,
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
    "Doubt",
    "Said",
    "Source",
    "about_the_same",
    "cited_in_vain",
    "copied",
    "days_of",
    "fold",
    "from_elsewhere",
    "in_digits",
    "is_assistant",
    "is_courtesy",
    "is_of_another",
    "is_plain",
    "joining",
    "languages",
    "lost_in",
    "may_be_one",
    "may_supersede",
    "negates",
    "of_oneself",
    "persona",
    "repeats",
    "rests_on",
    "rewords",
    "said_in",
    "share",
    "speaker_of",
    "speakers_of",
    "speaks_of_oneself",
    "stands_near",
    "telling",
    "ungrounded",
    "violation",
    "weekdays_in",
    "without_reminder",
    "worded",
]
