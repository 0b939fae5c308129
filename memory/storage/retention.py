"""Which checkpoints of a thread are no longer needed; one rule for all savers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Root(NamedTuple):
    """A checkpoint of the root graph, as far as retention needs it."""

    id: str
    """Ordered by time (uuid6)."""
    source: str | None
    """input | loop | update | fork."""
    run_id: str | None
    """Set on a server only."""


class Retention(NamedTuple):
    """Checkpoints to delete once the newest root checkpoint is stored. Bounds are exclusive."""

    roots_before: str
    """Root checkpoints before this id go, except the next two fields."""
    last_step: str
    """The newest that is no edit by hand: a pending question in it can still be answered."""
    restore: str | None
    """The state before the newest run, the target of a rollback; None if there is none."""
    subgraphs_before: str | None
    """Subgraph checkpoints before this id go, except those of `restore`; None: all stay."""
    run_start: str
    """Subgraph checkpoints between `restore` and this id stay: unfinished work of `restore`."""


def retention(roots: Sequence[Root], keep: int) -> Retention:
    """Decide what to delete. `roots`: all checkpoints of a thread's root graph, newest first.

    A checkpoint of source "loop" exists only after the previous tasks finished, and one of source
    "input" abandons them: in both cases their subgraphs are never resumed. An edit by hand
    ("update", "fork") says nothing about them.
    """
    newest = roots[0]
    step = next((root for root in roots if root.source in ("loop", "input")), newest)
    start = next(i for i in range(len(roots)) if _starts_run(roots, i))
    return Retention(
        roots_before=roots[min(keep, len(roots)) - 1].id,
        last_step=step.id,
        restore=roots[start + 1].id if start + 1 < len(roots) else None,
        subgraphs_before=newest.id if newest is step else None,
        run_start=roots[start].id,
    )


def _starts_run(roots: Sequence[Root], index: int) -> bool:
    if index + 1 == len(roots) or roots[index].source == "input":
        return True
    return roots[index].run_id != roots[index + 1].run_id
