"""`circadian recall`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from graph.cli.access import Session, reading
from graph.cli.options import Options, command
from graph.cli.views import FLAGS, memory_counts, memory_view, recall_view
from memory.errors import InputError
from memory.records import RecallHit

FOUND, MOST = 10, 1_000
"""Memories that a search gives by default, and at most."""


RECALL_KEYS = ("id", "kind", "text", "score", "sources", "at")


@command()
async def recall(
    options: Options,
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="What to look for.")] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "-k",
            metavar="N",
            min=1,
            max=1_000_000,
            help="At most N memories [10; with --all, every one].",
        ),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--all", help="All there is, newest first; with QUERY, what has its words."),
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also what each score is made of.")
    ] = False,
    superseded: Annotated[
        bool, typer.Option("--superseded", help="Also what no longer holds.")
    ] = False,
) -> int:
    """Search long-term memory, or look through it."""
    if everything and explain:
        raise InputError("--explain is about a search, and --all ranks nothing: leave one out")
    if not everything and query is None:
        raise InputError("say what to look for, or see everything with --all")
    if not everything and (limit or 0) > MOST:
        raise InputError(f"a search gives at most {MOST:,} memories; --all gives every one")
    async with reading(options, announce=True) as session:
        if everything:
            await _show_all(session, query, limit)
            return 0
        hits = await session.agent.recall(
            query or "", limit or FOUND, include_superseded=superseded
        )
        shown = [recalled(hit, explain=explain) for hit in hits]
        session.screen.result(shown, recall_view(hits, explain=explain))
    return 0


async def _show_all(session: Session, query: str | None, limit: int | None) -> None:
    found = await session.agent.everything(query)
    shown = found[:limit]
    session.screen.result(shown, memory_view(shown))
    if shown and not session.screen.json:
        left = f"; {len(found) - len(shown):,} older ones are left out" * (len(found) > len(shown))
        session.screen.note(f"{memory_counts(shown)}{left}")


def recalled(hit: RecallHit, *, explain: bool = False) -> dict[str, Any]:
    """A memory as `recall --json` prints it: the contract's keys first; flags only if set."""
    told: dict[str, Any] = {key: value for key, value in hit.items() if key in RECALL_KEYS}
    told |= {flag: True for flag in FLAGS if hit.get(flag)}
    return told | ({"parts": hit.get("parts", {})} if explain else {})
