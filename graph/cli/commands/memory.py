"""`circadian recall`, `correct`, `forget`, `export`, `import` and `reindex`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TextIO

from rich.console import RenderableType
from rich.table import Column, Table
from rich.text import Text
from typer import Argument, Option

from graph.cli.access import (
    Session,
    home_as_recorded,
    must_be_here,
    must_be_made,
    opening,
    reading,
    standard_input,
)
from graph.cli.exits import INTERRUPTED
from graph.cli.program import Options, Yes, command
from graph.console import Screen, counted, date, one_line, ruled_table, short_id
from graph.documents import FLAGS, corrected, recalled_memory, weighty_parts
from graph.use_cases import (
    COUNTED,
    FileLines,
    Forgotten,
    Reindexing,
    export_memory,
    import_memory,
    list_agents,
    meant_by,
    names_like,
)
from graph.use_cases import reindex as embed_anew
from memory import transfer
from memory.errors import CircadianError, InputError
from memory.forgetting import ErasedMemory
from memory.models import OFFLINE
from memory.recall import repair
from memory.records import Fact, RecallHit, Scope
from memory.settings import replacing

MOST = 1_000
"""Most memories that a search returns."""

FACT_ID = "A fact's id, or its beginning (`circadian recall --all` shows it)."
ENTRY_ID = "A journal entry's id, or its beginning (`circadian recall --all` shows it)."

STANDARD = "-"
"""The file name that means standard input or output."""

RESUMES = "`circadian reindex` goes on from there, and until then memories are found by their words"


@command()
async def recall(
    options: Options,
    query: Annotated[str | None, Argument(metavar="QUERY", help="What to look for.")] = None,
    limit: Annotated[
        int | None,
        Option(
            "-k",
            metavar="N",
            min=1,
            max=1_000_000,
            help="At most N memories [10; with --all, no limit].",
        ),
    ] = None,
    everything: Annotated[
        bool,
        Option("--all", help="All memories, newest first; with QUERY, all that have its words."),
    ] = False,
    explain: Annotated[
        bool, Option("--explain", help="Also show what each score is made of.")
    ] = False,
    superseded: Annotated[
        bool, Option("--superseded", help="Also show what no longer holds.")
    ] = False,
) -> int:
    """Search long-term memory, or look through it."""
    if everything and explain:
        raise InputError("--explain explains the ranking, and --all ranks nothing: leave one out")
    if not everything and query is None:
        raise InputError("say what to look for, or see everything with --all")
    if not everything and (limit or 0) > MOST:
        raise InputError(f"a search gives at most {MOST:,} memories; --all gives all")
    async with reading(options) as session:
        if everything:
            await _show_all(session, query, limit)
            return 0
        await show_recalled(session, query or "", limit, explain=explain, superseded=superseded)
    return 0


LEAST = 3
"""The best N memories are shown also where they do not fit by themselves."""


async def show_recalled(
    session: Session,
    query: str,
    limit: int | None = None,
    *,
    explain: bool = False,
    superseded: bool = False,
) -> None:
    """Search, and print the best and what fits by itself, or with `limit` all that is found."""
    hits = await session.agent.recall(query, limit, include_superseded=superseded)
    shown = [recalled_memory(hit, explain=explain) for hit in hits]
    told = weighty(hits)
    seen = [hit for n, hit in enumerate(told) if limit or n < LEAST or not hit.get("faint")]
    session.screen.result(shown, recall_view(seen, explain=explain))
    if (left := len(told) - len(seen)) and not session.screen.json:
        others = counted(left, "more memory fits", "more memories fit")
        session.screen.note(f"{others} less (~): `circadian recall ... -k {len(hits)}` shows all")


async def _show_all(session: Session, query: str | None, limit: int | None) -> None:
    found = await session.agent.everything(query)
    shown = found[:limit]
    session.screen.result(shown, memory_view(shown))
    if shown and not session.screen.json:
        left = len(found) - len(shown)
        session.screen.note(
            memory_counts(shown) + (f"; {left:,} older ones are left out" if left else "")
        )


@command()
async def correct(
    options: Options,
    fact: Annotated[str, Argument(metavar="FACT", help=FACT_ID)],
    text: Annotated[str, Argument(metavar="TEXT", help="What is true.")],
    by: Annotated[
        str | None, Option("--by", metavar="NAME", help="Who says so [the owner].")
    ] = None,
) -> int:
    """Replace a fact that is wrong with what is true."""
    async with reading(options) as session, session.waiting():
        done = await corrected(session.agent.context, fact, text, by)
    session.screen.result(done, correction_view(done["fact"], done["superseded"]))
    return 0


@command()
async def forget(
    options: Options,
    entity: Annotated[
        str | None, Argument(metavar="ENTITY", help="A person, place or thing.")
    ] = None,
    fact: Annotated[str | None, Option("--fact", metavar="ID", help=FACT_ID)] = None,
    entry: Annotated[str | None, Option("--entry", metavar="ID", help=ENTRY_ID)] = None,
    yes: Yes = False,
) -> int:
    """Erase a person, a thing, a fact or a journal entry."""
    given = {None: entity, "--fact": fact, "--entry": entry}
    named = [(flag, value) for flag, value in given.items() if value is not None]
    if len(named) != 1:
        raise InputError("name whom to forget, or a fact (--fact ID), or an entry (--entry ID)")
    ((flag, what),) = named
    async with reading(options) as session:
        agent = session.agent
        if flag is None and (target := await meant_by(agent.context, what)).kind != "entity":
            flag, what = f"--{target.kind}", target.name
        ways = {None: agent.forget, "--fact": agent.forget_fact, "--entry": agent.forget_entry}
        if yes:
            async with session.waiting():
                done = await ways[flag](what)
        else:
            done = await ways[flag](what, dry_run=True)
        session.screen.result(done, *_forgotten_view(done, flag))
        if not yes:
            near = [] if flag else await names_like(agent.context, what)
            if kept := [name for name in near if name not in done["names"]]:
                session.screen.note(f"Similar names, which are kept: {', '.join(kept)}")
            which = (flag, done["entity"]) if flag else (what,)
            line = session.options.command_line("forget", *which, "--yes")
            session.screen.note(f"Nothing was changed. To erase it for good: {line}")
    return 0


def _forgotten_view(done: Forgotten, flag: str | None) -> list[RenderableType]:
    """The counts above 0, and erased texts: all for a fact or an entry, examples for others."""
    counts = {kind: number for kind, number in done["counts"].items() if number}
    if not done["dry_run"] and not counts:
        return [Text("An earlier forget that was broken off is now complete.")]
    rows = Table.grid(Column(justify="right", style="cyan"), Column(), padding=(0, 2))
    for kind, number in counts.items():
        singular, plural, which = COUNTED[kind]
        which = "" if flag and kind == "events" else which  # a fact or an entry is no person
        rows.add_row(f"{number:,}", f"{singular if number == 1 else plural} {which}".strip())
    head = "Would be forgotten" if done["dry_run"] else "Forgotten"
    what = f"what the {flag.strip('-')} {done['entity']} says" if flag else done["entity"]
    names = ", ".join(map(one_line, done["names"])) or one_line(what)
    parts: list[RenderableType] = [Text.assemble((f"{head}: ", "bold"), names), rows]
    if flag:
        return [*parts, *map(_erased_line, done["memories"])]
    examples = [Text(f"  {one_line(text)}", style="dim") for text in done["examples"]]
    return [*parts, Text("such as"), *examples] if examples else parts


def _erased_line(memory: ErasedMemory) -> Text:
    line = Text.assemble(("- ", "red"), (f"{one_line(memory['id'])}  ", "dim"))
    line.append(one_line(memory["text"]), "strike")
    if memory["left"] is not None:
        line.append("  stays: ", "yellow").append(one_line(memory["left"]))
    return line


@command()
async def export(
    options: Options,
    file: Annotated[
        Path | None, Argument(metavar="FILE", help="Where to write; without it, memory is printed.")
    ] = None,
) -> int:
    """Write the agent's whole memory as JSON Lines."""
    printed = file is None or str(file) == STANDARD
    async with reading(options, announce=printed) as session:
        if file is None or printed:
            await _write(session, sys.stdout)
            return 0
        await must_be_here(session)  # an agent that is not there replaces no earlier export
        number = await _write_file(session, file)
    message = f"{counted(number, 'record')} exported to {one_line(str(file))}."
    session.screen.result({"file": str(file), "records": number}, Text(message))
    return 0


@command("import")
async def import_(
    options: Options,
    file: Annotated[
        Path, Argument(metavar="FILE", help="A file that `export` wrote; - reads standard input.")
    ],
) -> int:
    """Take in an exported memory."""
    given = standard_input().split("\n") if str(file) == STANDARD else None
    lines = given or FileLines(file)
    # Before the agent is opened: a wrong line must not leave a new data folder behind.
    await asyncio.to_thread(transfer.check, lines)
    screen = Screen(json=options.json)
    async with opening(replace(options, model=OFFLINE), mcp=False) as agent:
        session = Session(options, screen, agent)
        with screen.progress() as progress:
            async with session.waiting():
                done = await import_memory(agent.context, lines, progress=progress)
    into = one_line(options.agent)
    message = f"{counted(done['records'], 'record')} imported into the agent {into}."
    if done["already"]:
        message = f"The agent {into} has this memory already: nothing was changed."
    screen.result(done, Text(message))
    return 0


async def _write(session: Session, out: TextIO) -> int:
    options, _, agent = session
    home = await asyncio.to_thread(home_as_recorded, options)
    try:
        embedder = home.embedder
    finally:
        await asyncio.to_thread(home.close)
    number = 0
    async for record in export_memory(agent.context, name=options.agent, embedder=embedder):
        out.write(transfer.line_of(record) + "\n")
        number += 1
    out.flush()
    return number - 2


async def _write_file(session: Session, file: Path) -> int:
    if await asyncio.to_thread(lambda: file.exists() and not file.is_file()):
        raise InputError(f"{file} is a folder or a device: name a file, or - to print")
    try:
        with replacing(file, private=True) as out:
            return await _write(session, out)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}") from error


@command()
async def reindex(options: Options) -> int:
    """Make missing vectors, or all with a new --embedder."""
    await must_be_made(options)
    with suppress(InputError):  # another embedder than the recorded one is asked for
        async with reading(options, announce=False) as (_, _, agent):
            for one in await list_agents(agent.context):
                scope = Scope(agent.scope.user, one["thread"])
                await repair(agent.store, agent.resources.semantic, scope)
    screen, reached = Screen(json=options.json), (0, 0)
    try:
        with screen.progress() as progress:
            progress("waiting until no agent runs", 0, None)

            def tell(done: int, total: int) -> None:
                nonlocal reached
                reached = done, total
                progress("embedding", done, total)

            done = await embed_anew(
                options.data, options.embedder, deployment=options.deployment, progress=tell
            )
    except asyncio.CancelledError:
        screen.problem(f"interrupted: {_extent(*reached)}; {RESUMES}")
        return INTERRUPTED
    except CircadianError as error:
        if not reached[0]:
            raise
        raise CircadianError(f"{error}; {_extent(*reached)}, and {RESUMES}") from error
    screen.result(done._asdict(), *map(Text, _lines(done)))
    return 0


def _extent(done: int, total: int) -> str:
    return f"{done:,} of {total:,} memories have their vectors"


def _lines(done: Reindexing) -> list[str]:
    embedder = one_line(done.embedder)
    lines = []
    if done.was != done.embedder:
        before = f"was {one_line(done.was)} and " if done.was is not None else ""
        lines.append(f"The embedder {before}is {embedder} now.")
    if done.embedded:
        lines.append(f"{counted(done.embedded, 'memory', 'memories')} embedded ({embedder}).")
    elif not done.left:
        lines.append(f"Nothing waits: every memory has its vector ({embedder}).")
    if done.left:
        waits = counted(done.left, "memory waits", "memories wait")
        lines.append(f"{waits} for a vector: `circadian reindex` once more.")
    return lines


# Memories for people: recalled, listed, corrected


NAME = 20
"""Columns of a speaker's name."""


def recall_view(hits: Sequence[RecallHit], *, explain: bool = False) -> RenderableType:
    """Recalled memories, best first; `~` marks a score that does not fit by itself."""
    hits = weighty(hits)
    if not hits:
        return Text("Nothing fits. Try other words, or `circadian recall --all WORD`.")
    table = _table("score")
    for hit in hits:
        what = _what(hit, [flag for flag in FLAGS if hit.get(flag)], hit.get("earlier", ()))
        if explain and (parts := weighty_parts(hit.get("parts", {}))):
            told = " · ".join(f"{name} {value:.2f}" for name, value in parts)
            what.append(f"\n{told}", "not strike cyan")
        near, style = ("~", "dim") if hit.get("faint") else ("", None)
        table.add_row(f"{near}{hit['score']:.2f}", *_about(hit), what, style=style)
    return table


def weighty(hits: Iterable[RecallHit]) -> list[RecallHit]:
    """The hits without those whose score rounds to 0.00."""
    return [hit for hit in hits if round(hit["score"], 2) > 0]


def memory_view(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Everything in memory, newest first, as `AsyncAgent.everything` gives it."""
    if not rows:
        return Text("Nothing is remembered yet.")
    table = _table("used")
    for row in rows:
        used = f"{row['access_count']:,}" if row["kind"] == "fact" else ""
        table.add_row(used, *_about(row), _what(row, [] if _holds(row) else [_gone(row)]))
    return table


def _table(figure: str) -> Table:
    table = ruled_table(right=(figure,))
    for name, most in (("id", None), ("when", None), ("who", NAME)):
        table.add_column(name, no_wrap=True, max_width=most)
    table.add_column("what (sources)")
    return table


def memory_counts(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many facts and journal entries a list has."""
    facts = [row for row in rows if row["kind"] == "fact"]
    gone = len([row for row in facts if not _holds(row)])
    counts = [counted(len(facts), "fact") + (f" ({gone:,} superseded)" if gone else "")]
    if entries := len(rows) - len(facts):
        counts.append(counted(entries, "journal entry", "journal entries"))
    return ", ".join(counts)


def correction_view(new: Fact, old: Fact | None) -> RenderableType:
    """The superseded fact crossed out, and the new one below it."""
    if old is None:
        return Text("The fact says so already: nothing was changed.")
    rows = Table.grid(padding=(0, 2))
    since = f" superseded, {date(new['valid_from'])}"
    gone = Text.assemble((one_line(old["text"]), "strike"), (since, "yellow"))
    holds = Text.assemble(one_line(new["text"]), (f" ({one_line(new['speaker'] or '-')})", "dim"))
    rows.add_row(Text("-", "red"), Text(_typed(old["id"]), "dim"), gone)
    rows.add_row(Text("+", "green"), Text(_typed(new["id"]), "cyan"), holds)
    return rows


def _typed(memory_id: str) -> str:
    """An id as a person types it: a uuid by its beginning, an entry without its kind and day."""
    return short_id(memory_id.split("_", 2)[-1]).rstrip("…")


def _about(row: Mapping[str, Any]) -> tuple[Text, Text, Text]:
    id_ = Text(_typed(row["id"]), "cyan" if row["kind"] == "fact" else "dim")
    return id_, Text(date(row["at"])), Text(one_line(row["speaker"] or "-"))


def _what(
    row: Mapping[str, Any], marks: Sequence[str], earlier: Sequence[Mapping[str, Any]] = ()
) -> Text:
    """The text, crossed out if it no longer holds, with what it superseded, marks and sources."""
    what = Text(one_line(row["text"]), "" if _holds(row) else "strike")
    for old in earlier:
        what.append(f" (until {date(old['until'])}: {one_line(old['text'])})", "dim")
    notes = [(mark, "not strike yellow") for mark in marks]
    if row["sources"]:
        notes.append((", ".join(map(short_id, row["sources"])), "not strike dim"))
    for place, (text, style) in enumerate(notes):
        what.append("; " if place else " (", "not strike dim").append(text, style)
    return what.append(")", "not strike dim") if notes else what


def _holds(row: Mapping[str, Any]) -> bool:
    return not row.get("superseded") and row.get("invalid_at") is None


def _gone(row: Mapping[str, Any]) -> str:
    by = row["superseded_by"]
    instead = f"superseded by {_typed(by)}" if by else "does not hold"
    return f"{instead} since {date(row['invalid_at'])}"
