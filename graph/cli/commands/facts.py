"""`circadian correct` and `circadian forget`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from graph.cli.access import Session, reading
from graph.cli.options import Options, command
from graph.cli.views import correction_view, one_line
from graph.use_cases import Forgotten, find_fact
from memory.errors import InputError

FACT_ID = "A fact's id, or how it begins (`circadian recall --all` shows it)."


KINDS = {
    "events": ("event", "events", "sent by them, or naming them"),
    "journal": ("journal entry", "journal entries", ""),
    "journal_rewritten": ("journal entry", "journal entries", "written anew"),
    "facts": ("fact", "facts", ""),
    "messages": ("message", "messages", "of the conversation"),
    "messages_rewritten": ("message", "messages", "written anew"),
    "goals": ("goal", "goals", "without text then"),
    "projects": ("project", "projects", "without text then"),
    "session_memory": ("line", "lines", "of session memory"),
    "conversations": ("open conversation", "open conversations", ""),
    "overheard": ("event", "events", "heard and not addressed"),
    "questions": ("question", "questions", "waiting for an answer"),
    "prompt_versions": ("version", "versions", "of the assistant's prompt"),
    "profiles": ("profile", "profiles", "removed or changed"),
    "links": ("end", "ends", "of links"),
    "inbox": ("event", "events", "waiting or set aside"),
    "nights": ("night", "nights", "that can no longer be undone"),
    "audit": ("line", "lines", "of the audit log, without text then"),
    "answers": ("answer or approved call", "answers and approved calls", ""),
    "other": ("other record", "other records", ""),
}
"""The counts of a forget in words: singular, plural, qualification."""


@command()
async def correct(
    options: Options,
    fact: Annotated[str, typer.Argument(metavar="FACT", help=FACT_ID)],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is true.")],
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="Who says so [the owner].")
    ] = None,
) -> int:
    """Supersede a fact with what is true."""
    async with reading(options) as session:
        _, screen, agent = session
        old = await find_fact(agent.context, fact)
        async with session.waiting():
            new = await agent.correct(old["id"], text, by)
        before = await agent.resources.semantic.get(agent.scope, old["id"])
    superseded = before if new["id"] != old["id"] else None
    screen.result({"fact": new, "superseded": superseded}, correction_view(new, superseded))
    return 0


@command()
async def forget(
    options: Options,
    entity: Annotated[
        str | None, typer.Argument(metavar="ENTITY", help="A person, place or thing.")
    ] = None,
    fact: Annotated[str | None, typer.Option("--fact", metavar="ID", help=FACT_ID)] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it without asking.")] = False,
) -> int:
    """Erase a person, a thing or one fact, and what came of it."""
    if (entity is None) == (fact is None):
        raise InputError("name whom to forget, or one fact with --fact ID")
    async with reading(options) as session:
        if fact is not None:
            await _forget_fact(session, fact, yes=yes)
        else:
            await _forget_entity(session, entity or "", yes=yes)
    return 0


async def _forget_entity(session: Session, entity: str, *, yes: bool) -> None:
    if yes:
        async with session.waiting():
            with session.screen.waiting("forgetting"):
                done = await session.agent.forget(entity)
    else:
        done = await session.agent.forget(entity, dry_run=True)
    session.screen.result(done, *_view(done))
    if not yes:
        _hint(session, entity)


async def _forget_fact(session: Session, given: str, *, yes: bool) -> None:
    _, screen, agent = session
    if yes:
        async with session.waiting():
            done = await agent.forget_fact(given)
        screen.result(done, Text(f"The fact {done['entity']} is forgotten."))
        return
    fact = await find_fact(agent.context, given)
    preview: Forgotten = {
        "entity": fact["id"],
        "names": [],
        "dry_run": True,
        "counts": {"facts": 1},
        "examples": [fact["text"]],
    }
    screen.result(preview, Text(f"This would be forgotten: {one_line(fact['text'])}"))
    _hint(session, "--fact", fact["id"])


def _view(done: Forgotten) -> list[RenderableType]:
    """The counts that are not 0; in a preview also some of the texts."""
    counts = {kind: number for kind, number in done["counts"].items() if number}
    if not done["dry_run"] and not counts:
        return [Text("An earlier forget that was broken off is now complete.")]
    rows = Table.grid(padding=(0, 2))
    rows.add_column(justify="right", style="cyan")
    rows.add_column()
    for kind, number in counts.items():
        singular, plural, which = KINDS[kind]
        rows.add_row(f"{number:,}", f"{singular if number == 1 else plural} {which}".strip())
    examples = [Text(f"  {one_line(text)}", style="dim") for text in done["examples"]]
    head = "Would be forgotten" if done["dry_run"] else "Forgotten"
    names = ", ".join(map(one_line, done["names"]))
    parts: list[RenderableType] = [Text.assemble((f"{head}: ", "bold"), names), rows]
    return [*parts, Text("such as"), *examples] if examples else parts


def _hint(session: Session, *what: str) -> None:
    """Print the command that forgets."""
    line = session.options.command_line("forget", *what, "--yes")
    session.screen.note(f"Nothing was changed. It cannot be undone once done: {line}")
