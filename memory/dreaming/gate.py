"""The gate: a night that would take too much from memory waits for a person. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from typing_extensions import TypedDict

from memory.fact_changes import facts_after
from memory.records import Fact, Operation
from memory.settings import Settings

TOP = 10
"""Memories of a recall that count as found."""


class Probe(TypedDict):
    """A recall of the agent's own that was kept: what it asked, and what it found."""

    query: str
    found: list[str]
    """Source ids of its best memories."""
    at: str


class Verdict(TypedDict):
    """What the gate measured."""

    facts: int
    """Facts that held before."""
    leaving: int
    """Of those, how many would no longer hold."""
    probes: int
    found_before: int
    found_after: int
    held: str | None
    """Why the night is held back; None: it may be applied."""


def leaving(operations: Sequence[Operation], holding: Collection[str]) -> set[str]:
    """The facts among `holding` (operation ids) that would be removed or no longer hold."""
    found: set[str] = set()
    for one in operations:
        invalid = one["kind"] == "change_fact" and (one["after"] or {}).get("invalid_at")
        if one["target"] in holding and (invalid or one["kind"] == "remove_fact"):
            found.add(one["target"])
    return found


def heirs(operations: Sequence[Operation], facts: Mapping[str, Fact]) -> dict[str, set[str]]:
    """Of what would be superseded: by its sources, those of what holds in its place.

    `facts`: those that are stored, by operation id.
    """
    after, found = facts_after(facts, operations), dict[str, set[str]]()
    for op, fact in facts.items():
        heir = after.get(op)
        while heir is not None and heir["superseded_by"] is not None:
            heir = after.get(heir["superseded_by"])
        if heir is not None and fact["invalid_at"] is None:
            for source in fact["source_events"]:
                found.setdefault(source, set()).update(heir["source_events"])
    return found


def finds(
    probe: Probe,
    sources: Sequence[str],
    heirs: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> bool:
    """Whether a recall that gave `sources` (of its best memories) found what the probe had.

    Or what has taken its place: `heirs`, as above. That something changed is no loss.
    """
    wanted = {one for found in probe["found"] for one in (found, *heirs.get(found, ()))}
    return bool(wanted & set(sources)) or not wanted


def judged(
    *, facts: int, leaving: int, before: Sequence[bool], after: Sequence[bool], settings: Settings
) -> Verdict:
    """The verdict. With few facts a night is never held back for the share that leaves."""
    held = None
    if facts >= settings.gate_facts and leaving > settings.gate_share * facts:
        held = f"{leaving} of {facts} facts would no longer hold"
    elif sum(after) < sum(before):
        held = f"of {len(before)} kept recalls {sum(after)} would find, and {sum(before)} do now"
    return {
        "facts": facts,
        "leaving": leaving,
        "probes": len(before),
        "found_before": sum(before),
        "found_after": sum(after),
        "held": held,
    }
