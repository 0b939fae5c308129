"""The nodes of a night, one step each."""

from nodes.night.begin_night import begin_night, next_in_night
from nodes.night.consolidate import consolidate
from nodes.night.consolidate_entities import consolidate_entities
from nodes.night.dream import dream
from nodes.night.prune import prune, prune_links
from nodes.night.record_night import night_failed, record_night
from nodes.night.reflect import reflect
from nodes.night.score_importance import score_importance
from nodes.night.weigh_night import apply_operations, weigh_night
from nodes.night.write_pages import write_pages

__all__ = [
    "apply_operations",
    "begin_night",
    "consolidate",
    "consolidate_entities",
    "dream",
    "next_in_night",
    "night_failed",
    "prune",
    "prune_links",
    "record_night",
    "reflect",
    "score_importance",
    "weigh_night",
    "write_pages",
]
