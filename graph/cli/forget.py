"""`circadian forget`: erase a person, or one fact; without --yes only say what would go."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from graph.cli.access import opened_without_running
from graph.cli.console import Screen, one_line
from graph.cli.options import Options
from graph.cli.waiting import telling_waits
from graph.corrections import find_fact
from graph.forgetting import Forgotten, Step, forget_fact
from graph.forgetting import forget as forget_person
from memory.errors import InputError
from memory.settings import Deployment

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
"""How the counts of a forget are called: one, several, and which."""


async def forget(options: Options, entity: str | None, fact: str | None, yes: bool) -> int:
    """Erase what is named; without `yes` print what would go, and change nothing."""
    if (entity is None) == (fact is None):
        raise InputError("name whom to forget, or one fact with --fact ID")
    if fact is not None:
        return await _fact(options, fact, yes)
    screen, wanted = Screen(json=options.json), entity or ""
    async with opened_without_running(options) as agent:
        if not yes:
            done = await forget_person(agent.context, wanted, dry_run=True)
        else:
            async with telling_waits(options, screen):
                with _steps(screen) as tell:
                    done = await forget_person(agent.context, wanted, on_step=tell)
    screen.result(done, *_view(done))
    if not yes:
        _hint(screen, options, wanted)
    return 0


async def _fact(options: Options, given: str, yes: bool) -> int:
    screen = Screen(json=options.json)
    async with opened_without_running(options) as agent:
        if yes:
            async with telling_waits(options, screen):
                done = await forget_fact(agent.context, given)
            screen.result(done, Text(f"The fact {done['entity']} is forgotten."))
            return 0
        fact = await find_fact(agent.context, given)
    preview: Forgotten = {
        "entity": fact["id"],
        "names": [],
        "dry_run": True,
        "counts": {"facts": 1},
        "examples": [fact["text"]],
    }
    screen.result(preview, Text(f"This would be forgotten: {one_line(fact['text'])}"))
    _hint(screen, options, "--fact", fact["id"])
    return 0


@contextmanager
def _steps(screen: Screen) -> Iterator[Step]:
    """On a terminal, what is done now."""
    if not screen.live:
        yield lambda step: None
        return
    with screen.out.status(Text("forgetting", style="dim"), spinner="dots") as status:
        yield lambda step: status.update(Text(f"forgetting: {step}", style="dim"))


def _view(done: Forgotten) -> list[RenderableType]:
    """The counts that are not 0, and of a preview some of the texts."""
    names = ", ".join(map(one_line, done["names"]))
    some = {kind: number for kind, number in done["counts"].items() if number}
    if not done["dry_run"] and not some:
        return [Text("What an earlier forget had left undone is done.")]
    what = "Would be forgotten" if done["dry_run"] else "Forgotten"
    rows = Table.grid(padding=(0, 2))
    rows.add_column(justify="right", style="cyan")
    rows.add_column()
    for kind, number in some.items():
        one, many, which = KINDS[kind]
        rows.add_row(f"{number:,}", f"{one if number == 1 else many} {which}".strip())
    examples = [Text(f"  {one_line(one)}", style="dim") for one in done["examples"]]
    head = Text.assemble((f"{what}: ", "bold"), names)
    return [head, rows, *([Text("such as"), *examples] if examples else [])]


def _hint(screen: Screen, options: Options, *what: str) -> None:
    """The command that does it."""
    usual = Deployment()
    words = ["circadian", "forget", *what, "--yes"]
    words += ["--data", str(options.data)] if options.data is not None else []
    words += ["--agent", options.agent] if options.agent != usual.agent else []
    screen.note(f"Nothing was changed. It cannot be undone once done: {shlex.join(words)}")
