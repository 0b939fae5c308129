"""Where a tool's write comes from: the part of an operation's id that tells ticks and nights apart.

Made of what the record fixes (the event, the tick's number, the night's time), never of model text.
"""

from __future__ import annotations

import re

from memory.sink import PlanSink, Sink
from tools.answers import Runtime, event_of, now_of

_WORD = re.compile(r"\w+")


def origin_of(runtime: Runtime, sink: Sink) -> str:
    """`night:<time>`, `tick:<event id>`, or `tick:autonomous:<number>` where no event is in hand.

    An event is acted on in one tick only, however often that tick is tried; other ticks may come
    between the tries, so the number would not do.
    """
    if isinstance(sink, PlanSink):
        return f"night:{now_of(runtime).isoformat()}"
    event = event_of(runtime)
    return f"tick:{event['id']}" if event else f"tick:autonomous:{runtime.state['tick']}"


def is_extracting(runtime: Runtime) -> bool:
    """Whether an emergency's extraction asks, and not the tick's own loop."""
    loop = runtime.state.get("loop")
    return loop is not None and loop["compaction"] == "forced"


def shared_words(one: str, other: str) -> int:
    """How many different words two texts have in common."""
    return len(set(_WORD.findall(one.casefold())) & set(_WORD.findall(other.casefold())))
