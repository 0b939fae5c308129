"""The nodes of a tick, in the order in which they run."""

from nodes.tick.act import act, onward
from nodes.tick.assemble_context import assemble_context
from nodes.tick.assess_task import after_assessment, assess_task
from nodes.tick.begin_tick import after_begin, begin_tick
from nodes.tick.confirm import confirm
from nodes.tick.draft_plan import draft_plan
from nodes.tick.park import park
from nodes.tick.record import record
from nodes.tick.return_event import describe, kind_of, return_event, traced
from nodes.tick.use_tools import use_tools

__all__ = [
    "act",
    "after_assessment",
    "after_begin",
    "assemble_context",
    "assess_task",
    "begin_tick",
    "confirm",
    "describe",
    "draft_plan",
    "kind_of",
    "onward",
    "park",
    "record",
    "return_event",
    "traced",
    "use_tools",
]
