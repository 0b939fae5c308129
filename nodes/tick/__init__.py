"""The nodes of a tick, in the order in which they run."""

from nodes.tick.act import act, onward, use_tools
from nodes.tick.assemble_context import assemble_context
from nodes.tick.assess_task import after_assessment, assess_task, draft_plan
from nodes.tick.begin_tick import after_begin, begin_tick, describe, kind_of, return_event, traced
from nodes.tick.confirm import confirm, park
from nodes.tick.record import hand_back, record

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
    "hand_back",
    "kind_of",
    "onward",
    "park",
    "record",
    "return_event",
    "traced",
    "use_tools",
]
