"""Where a tool's write comes from: the part of an operation's id that tells ticks and nights apart.

Made of what the record fixes (the event, the tick's number, the night's time), never of model text.
"""

from __future__ import annotations

from memory.sink import PlanSink, Sink
from tools.answers import Runtime, event_of, now_of


def origin_of(runtime: Runtime, sink: Sink) -> str:
    """`night:<time>`, `tick:<event id>`, or `tick:autonomous:<number>` where no event is in hand.

    An event is acted on in one tick only, however often that tick is tried; other ticks may come
    between the tries, so the number would not do.
    """
    if isinstance(sink, PlanSink):
        return f"night:{now_of(runtime).isoformat()}"
    event = event_of(runtime)
    return f"tick:{event['id']}" if event else f"tick:autonomous:{runtime.state['tick']}"
