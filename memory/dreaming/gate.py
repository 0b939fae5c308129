"""The gate: a night that would take too much from memory waits for a person. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from typing_extensions import TypedDict

from memory.fact_changes import facts_after
from memory.records import Fact, Operation
from memory.settings import Settings

TOP = 10
"""The best memories of a recall, which count as found."""


class Probe(TypedDict):
    """A real recall of the agent that was kept: its query, and what it found."""

    query: str
    found: list[str]
    """Source ids of its best memories."""
    at: str


class Verdict(TypedDict):
    """What the gate measured, and its decision."""

    facts: int
    """Facts that held before."""
    leaving: int
    """How many of those would no longer hold."""
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
    """For each source of a superseded fact, the sources of the fact that holds in its place.

    `facts`: the stored facts by operation id.
    """
    after, found = facts_after(facts, operations), dict[str, set[str]]()
    for op, fact in facts.items():
        heir = _heir(op, after) if fact["invalid_at"] is None else None
        if heir is not None:
            for source in fact["source_events"]:
                found.setdefault(source, set()).update(heir["source_events"])
    return found


def _heir(op: str, facts: Mapping[str, Fact]) -> Fact | None:
    """The fact that holds in the place of `op`: itself, or the last that superseded it."""
    heir, seen = facts.get(op), {op}
    while heir is not None and (by := heir["superseded_by"]) is not None:
        heir = facts.get(by) if by not in seen else None
        seen.add(by)
    return heir


def finds(
    probe: Probe,
    sources: Sequence[str],
    heirs: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> bool:
    """Whether a recall with these `sources` (of its best memories) finds what the probe found.

    Finding what took its place (`heirs`, as above) is no loss.
    """
    wanted = {one for found in probe["found"] for one in (found, *heirs.get(found, ()))}
    return bool(wanted & set(sources)) or not wanted


def judged(
    *, facts: int, leaving: int, before: Sequence[bool], after: Sequence[bool], settings: Settings
) -> Verdict:
    """The decision. With few facts, no night is held back for the share that would leave."""
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
