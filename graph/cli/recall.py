"""`circadian recall`: what memory holds about a question, or all that it holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from graph.cli.access import opened_without_running, say_unknown
from graph.cli.console import Screen, counted, date, one_line, short_id
from graph.cli.options import Options
from graph.everything import list_memories as every_memory
from graph.handle import AsyncAgent
from memory.errors import InputError
from memory.records import RecallHit

FOUND, MOST = 10, 1_000
"""Memories that a search gives where no number is named, and at the most."""
RECALL_KEYS = ("id", "kind", "text", "score", "sources", "at")
FLAGS = ("superseded", "disputed")
SHORT = 8
"""Characters of an id that are shown where they tell it from the others."""
NAME = 20
"""Columns of a speaker's name."""
JOURNAL = "journal"
"""Stands where a fact has its id."""


@dataclass(frozen=True)
class Asked:
    """What a person wants to see."""

    query: str | None
    limit: int | None
    explain: bool = False
    superseded: bool = False


async def recall(options: Options, asked: Asked, *, everything: bool) -> int:
    """Print what is recalled, best first; with `everything` all of it, newest first."""
    _check(asked, everything=everything)
    screen = Screen(json=options.json)
    async with opened_without_running(options) as agent:
        await say_unknown(screen, agent, options.agent)
        if everything:
            await _show_all(screen, agent, asked)
        else:
            await _show_found(screen, agent, asked)
    return 0


def _check(asked: Asked, *, everything: bool) -> None:
    if everything and asked.explain:
        raise InputError("--explain is about a search, and --all ranks nothing: leave one out")
    if not everything and asked.query is None:
        raise InputError("say what to look for, or see everything with --all")
    if not everything and (asked.limit or 0) > MOST:
        raise InputError(f"a search gives at most {MOST:,} memories; --all gives every one")


async def _show_found(screen: Screen, agent: AsyncAgent, asked: Asked) -> None:
    hits = await agent.recall(
        asked.query or "", asked.limit or FOUND, include_superseded=asked.superseded
    )
    shown = [recalled(hit, explain=asked.explain) for hit in hits]
    screen.result(shown, recall_view(hits, explain=asked.explain))


async def _show_all(screen: Screen, agent: AsyncAgent, asked: Asked) -> None:
    found = await every_memory(agent.context, asked.query)
    shown = found[: asked.limit]
    screen.result(shown, memory_view(shown))
    if not screen.json and shown:
        left = f"; {len(found) - len(shown):,} older ones are left out" * (len(found) > len(shown))
        screen.note(f"{_how_many(shown)}{left}")


def recalled(hit: RecallHit, *, explain: bool = False) -> dict[str, Any]:
    """A memory as `recall --json` prints it: the contract's keys first; a flag where it is set."""
    told: dict[str, Any] = {key: value for key, value in hit.items() if key in RECALL_KEYS}
    told |= {flag: True for flag in FLAGS if hit.get(flag)}
    return told | ({"parts": hit.get("parts", {})} if explain else {})


def recall_view(hits: Sequence[RecallHit], *, explain: bool = False) -> RenderableType:
    """Recalled memories, best first, without those whose score shows as nothing."""
    hits = [hit for hit in hits if round(hit["score"], 2) > 0]
    if not hits:
        return Text("Nothing is remembered about that.")
    table = _table()
    table.add_column("score", justify="right")
    _columns(table)
    table.add_column("what (sources)")
    shortened = short_ids(hit["id"] for hit in hits if hit["kind"] == "fact")
    for hit in hits:
        what = _what(hit, [flag for flag in FLAGS if hit.get(flag)])
        if explain and (parts := _parts(hit.get("parts", {}))):
            what.append(f"\n{parts}", "not strike cyan")
        table.add_row(f"{hit['score']:.2f}", *_about(hit, shortened), what)
    return table


def memory_view(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """All that memory holds, newest first, as `graph.everything` gives it."""
    if not rows:
        return Text("Nothing is remembered yet.")
    table = _table()
    _columns(table)
    table.add_column("used", justify="right")
    table.add_column("what (sources)")
    facts = [row for row in rows if row["kind"] == "fact"]
    ids = [one for row in facts for one in (row["id"], row["superseded_by"]) if one]
    shortened = short_ids(ids)
    for row in rows:
        used = f"{row['access_count']:,}" if row["kind"] == "fact" else ""
        what = _what(row, [] if _holds(row) else [_gone(row, shortened)])
        table.add_row(*_about(row, shortened), used, what)
    return table


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Each id by its beginning, long enough that no two of them are the same."""
    distinct = set(ids)
    length = SHORT
    while len({one[:length] for one in distinct}) < len(distinct):
        length += 1
    return {one: one_line(one[:length]) for one in distinct}


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", show_edge=False)


def _columns(table: Table) -> None:
    """What is told of every memory before its text."""
    table.add_column("id", no_wrap=True)
    table.add_column("when", no_wrap=True)
    table.add_column("who", no_wrap=True, max_width=NAME)


def _about(row: Mapping[str, Any], shortened: Mapping[str, str]) -> tuple[Text, Text, Text]:
    """Its id, its day, and who said it."""
    fact = row["kind"] == "fact"
    id_ = Text(shortened[row["id"]], "cyan") if fact else Text(JOURNAL, "dim")
    return id_, Text(date(row["at"])), Text(one_line(row["speaker"] or "-"))


def _what(row: Mapping[str, Any], marks: Sequence[str]) -> Text:
    """The text, crossed out where it no longer holds; what is to be known of it; its sources."""
    what = Text(one_line(row["text"]), "" if _holds(row) else "strike")
    told = [(mark, "not strike yellow") for mark in marks]
    if row["sources"]:
        told.append((", ".join(map(short_id, row["sources"])), "not strike dim"))
    for place, (text, style) in enumerate(told):
        what.append("; " if place else " (", "not strike dim").append(text, style)
    return what.append(")", "not strike dim") if told else what


def _holds(row: Mapping[str, Any]) -> bool:
    return not row.get("superseded") and row.get("invalid_at") is None


def _gone(row: Mapping[str, Any], shortened: Mapping[str, str]) -> str:
    """Since when it does not hold, and what holds instead."""
    by = row["superseded_by"]
    instead = f"superseded by {shortened[by]}" if by else "does not hold"
    return f"{instead} since {date(row['invalid_at'])}"


def _parts(parts: Mapping[str, float]) -> str:
    """What a score is made of, the most first."""
    told = sorted(parts.items(), key=lambda part: -abs(part[1]))
    return " · ".join(f"{name} {value:.2f}" for name, value in told if round(value, 2))


def _how_many(rows: Sequence[Mapping[str, Any]]) -> str:
    facts = [row for row in rows if row["kind"] == "fact"]
    gone = len([row for row in facts if not _holds(row)])
    told = [counted(len(facts), "fact") + (f" ({gone:,} superseded)" if gone else "")]
    if waiting := len(rows) - len(facts):
        entries = counted(waiting, "journal entry", "journal entries")
        told.append(f"{entries} that no fact stands for yet")
    return ", ".join(told)
