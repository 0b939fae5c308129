"""The nodes that extract facts from the history and replace its old part by a summary."""

from nodes.compaction.compact import compact, cut_as_planned
from nodes.compaction.extract_facts import after_extraction, extract_facts

__all__ = ["after_extraction", "compact", "cut_as_planned", "extract_facts"]
