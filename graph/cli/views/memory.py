"""Memories for people: recalled, listed, corrected. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from graph.cli.views.console import counted, date, one_line, ruled_table, short_id
from memory.records import Fact, RecallHit

FLAGS = ("superseded", "partly_superseded", "disputed")

SHORT = 8
"""Characters of an id that are shown where they tell it from the others."""

NAME = 20
"""Columns of a speaker's name."""

JOURNAL = "journal"
"""Shown in place of an id for a journal entry."""


def recall_view(hits: Sequence[RecallHit], *, explain: bool = False) -> RenderableType:
    """Recalled memories, best first; a score that rounds to 0.00 is left out."""
    hits = [hit for hit in hits if round(hit["score"], 2) > 0]
    if not hits:
        return Text("Nothing fits: nothing is remembered about that.")
    table = ruled_table(right=("score",))
    _about_columns(table)
    table.add_column("what (sources)")
    shortened = short_ids(hit["id"] for hit in hits if hit["kind"] == "fact")
    for hit in hits:
        what = _what(hit, [flag for flag in FLAGS if hit.get(flag)])
        if explain and (parts := _parts(hit.get("parts", {}))):
            what.append(f"\n{parts}", "not strike cyan")
        table.add_row(f"{hit['score']:.2f}", *_about(hit, shortened), what)
    return table


def memory_view(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Everything in memory, newest first, as `AsyncAgent.everything` gives it."""
    if not rows:
        return Text("Nothing is remembered yet.")
    table = ruled_table()
    _about_columns(table)
    table.add_column("used", justify="right")
    table.add_column("what (sources)")
    facts = [row for row in rows if row["kind"] == "fact"]
    shortened = short_ids(id_ for row in facts for id_ in (row["id"], row["superseded_by"]) if id_)
    for row in rows:
        used = f"{row['access_count']:,}" if row["kind"] == "fact" else ""
        what = _what(row, [] if _holds(row) else [_gone(row, shortened)])
        table.add_row(*_about(row, shortened), used, what)
    return table


def memory_counts(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many facts and journal entries a list holds."""
    facts = [row for row in rows if row["kind"] == "fact"]
    gone = len([row for row in facts if not _holds(row)])
    told = [counted(len(facts), "fact") + (f" ({gone:,} superseded)" if gone else "")]
    if waiting := len(rows) - len(facts):
        entries = counted(waiting, "journal entry", "journal entries")
        told.append(f"{entries} that no fact stands for yet")
    return ", ".join(told)


def correction_view(new: Fact, old: Fact | None) -> RenderableType:
    """The superseded fact crossed out, and the new one below it."""
    if old is None:
        return Text("The fact says so already: nothing was changed.")
    shortened = short_ids([old["id"], new["id"]])
    rows = Table.grid(padding=(0, 2))
    told = f" superseded, {date(new['valid_from'])}"
    gone = Text.assemble((one_line(old["text"]), "strike"), (told, "yellow"))
    holds = Text.assemble(one_line(new["text"]), (f" ({one_line(new['speaker'] or '-')})", "dim"))
    rows.add_row(Text("-", "red"), Text(shortened[old["id"]], "dim"), gone)
    rows.add_row(Text("+", "green"), Text(shortened[new["id"]], "cyan"), holds)
    return rows


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """The beginning of each id, long enough to tell all of them apart."""
    distinct = set(ids)
    length = SHORT
    while len({id_[:length] for id_ in distinct}) < len(distinct):
        length += 1
    return {id_: one_line(id_[:length]) for id_ in distinct}


def _about_columns(table: Table) -> None:
    table.add_column("id", no_wrap=True)
    table.add_column("when", no_wrap=True)
    table.add_column("who", no_wrap=True, max_width=NAME)


def _about(row: Mapping[str, Any], shortened: Mapping[str, str]) -> tuple[Text, Text, Text]:
    fact = row["kind"] == "fact"
    id_ = Text(shortened[row["id"]], "cyan") if fact else Text(JOURNAL, "dim")
    return id_, Text(date(row["at"])), Text(one_line(row["speaker"] or "-"))


def _what(row: Mapping[str, Any], marks: Sequence[str]) -> Text:
    """The text, crossed out if it no longer holds; in parentheses the marks and sources."""
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
    by = row["superseded_by"]
    instead = f"superseded by {shortened[by]}" if by else "does not hold"
    return f"{instead} since {date(row['invalid_at'])}"


def _parts(parts: Mapping[str, float]) -> str:
    told = sorted(parts.items(), key=lambda part: -abs(part[1]))
    return " · ".join(f"{name} {value:.2f}" for name, value in told if round(value, 2))
