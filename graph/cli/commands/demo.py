"""`circadian demo`: the story in `graph/cli/story`, each part played in a process of its own.

The code does not know the story. What it shows at the end comes from the agent: the memory that it
recalls for the last question, and its projects and goals.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from graph.cli.access import NO_LANGUAGE_MODEL, reading
from graph.cli.commands.replay import steps
from graph.cli.commands.status import serve_inspector
from graph.cli.exits import INTERRUPTED
from graph.cli.program import Options, command
from graph.cli.status_view import goals_view, projects_view
from graph.console import Screen, date, day, one_line
from graph.documents import recalled_memory
from graph.use_cases import Status, status
from memory.errors import CircadianError, FolderError, InputError
from memory.models import choose_model, is_offline
from memory.records import Event, RecallHit

ROOT = Path(__file__).resolve().parents[3]
STORY = Path(__file__).resolve().parents[1] / "story"


@dataclass(frozen=True)
class Ending:
    """The last question of the story, the answer, and the memory behind it."""

    question: Event
    reply: str
    hit: RecallHit
    told: Event
    """The event of the first day that the recalled memory came from."""


@command()
async def demo(
    options: Options,
    inspect: Annotated[
        bool, typer.Option("--inspect", help="Then show its memory in the browser.")
    ] = False,
) -> int:
    """Play the built-in story: three days, two nights, a restart."""
    if inspect and options.json:
        raise InputError("--inspect ends in the browser, --json in a document: leave one out")
    screen = Screen(json=options.json)
    parts = _parts()
    fresh = _fresh_folder(options.data)
    options = replace(options, data=fresh, folder=fresh)
    files = await asyncio.to_thread(_working_folder, options, fresh)
    if is_offline(choose_model(options.model, offline=options.deployment.offline)):
        screen.note(NO_LANGUAGE_MODEL)
    processes: list[int] = []
    states: list[Status] = []
    for part in parts:
        if processes:
            told = f"process {processes[-1]} has ended; a new one goes on from what is on disk"
            rule = Rule(Text(told, style="bold magenta"), style="magenta", characters="═")
            screen.show("", rule)
        processes.append(await _play(options, part, files))
        async with reading(options) as (_, _, agent):
            states.append(await status(agent.context))
    events = [event for part in parts for step in steps(part) for event in step.events]
    ending = await _ending(options, events)
    screen.result(
        _document(options, processes, states, ending),
        "",
        _heading("Recalled"),
        _recalled_view(ending),
        "",
        _heading("Survived the restart"),
        projects_view(states[-1]["projects"]),
        goals_view(states[-1]["goals"]),
        "",
    )
    screen.line(f"To look around: {_circadian()} chat --data {options.folder}")
    if states[-1]["approvals"]:
        screen.line("One call waits for your approval. To let the agent write the file:")
        approve = f"{_circadian()} approve --data {options.folder}"
        screen.line(f"  CIRCADIAN_FOLDER={files} {approve}")
    if inspect:
        await serve_inspector(options, files=files)
    return 0


def _circadian() -> str:
    if shutil.which("circadian"):
        return "circadian"
    return os.path.relpath(Path(sys.executable).with_name("circadian"))


def _parts() -> list[Path]:
    parts = sorted(STORY.glob("*.jsonl"))
    if not parts:
        raise InputError(f"the story is missing: {STORY} holds no .jsonl file; install it again")
    return parts


def _fresh_folder(given: Path | None) -> Path:
    """The folder given, which must be empty, or a new temporary one."""
    if given is None:
        return Path(tempfile.mkdtemp(prefix="circadian-demo-"))
    if given.exists() and (not given.is_dir() or any(given.iterdir())):
        raise FolderError(f"{given} is not an empty folder; the demo begins with a new one")
    return given


def _working_folder(options: Options, data: Path) -> Path:
    if named := options.deployment.folder:
        return named
    files = data.with_name(f"{data.name}-files")
    files.mkdir(parents=True, exist_ok=True)
    return files


async def _play(options: Options, part: Path, files: Path) -> int:
    """Replay one part in a new process, with `files` as working folder; returns its id.

    The process has a group of its own, so that Ctrl-C reaches it only once, from here.
    """
    shared = {
        "--data": str(options.folder),
        "--agent": options.agent,
        "--model": options.model,
        "--embedder": options.embedder,
        "--config": str(options.config.absolute()) if options.config else None,
    }
    given = [word for name, value in shared.items() if value for word in (name, value)]
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "graph.cli", "replay", str(part), *given),
        "--json" if options.json else "--conversation",
        stdout=asyncio.subprocess.DEVNULL if options.json else None,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "CIRCADIAN_FOLDER": str(files),
        },
        process_group=0,
    )
    try:
        status = await process.wait()
    except asyncio.CancelledError:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        if await process.wait() == INTERRUPTED:
            raise typer.Exit(INTERRUPTED) from None  # the part has said so
        raise
    if status:
        raise CircadianError(f"{part.name} was not played to its end; see above")
    return process.pid


async def _ending(options: Options, events: Sequence[Event]) -> Ending:
    """The last question, its answer, and a memory of the story's first day recalled for it."""
    question = [event for event in events if event["addressed"]][-1]
    first_day = {event["id"]: event for event in events if day(event["at"]) == day(events[0]["at"])}
    async with reading(options) as (_, _, agent):
        messages = (await agent.aget_state()).values["messages"]
        hits = await agent.recall(question["text"])
    for hit in hits:
        told = [first_day[source] for source in hit["sources"] if source in first_day]
        if told:
            return Ending(question, str(messages[-1].text), hit, told[0])
    raise CircadianError("nothing of the first day was recalled for the last question")


def _document(
    options: Options, processes: list[int], states: Sequence[Status], ending: Ending
) -> dict[str, Any]:
    told = ending.told
    return {
        "data": str(options.folder),
        "processes": processes,
        "question": ending.question["text"],
        "reply": ending.reply,
        "recalled": recalled_memory(ending.hit),
        "told": {k: told[k] for k in ("id", "at", "sender", "text", "channel")},
        "before_restart": states[0],
        "after": states[-1],
    }


def _recalled_view(ending: Ending) -> RenderableType:
    question, told = ending.question, ending.told
    place = f", {told['channel']}" if told["channel"] else ""
    asked = f"{question['text']}  ({question['sender']}, {date(question['at'])})"
    source = f"event {told['id']}, told by {told['sender']} on {date(told['at'])}{place}"
    rows = Table.grid(padding=(0, 2))
    rows.add_row(Text("Asked", "bold"), one_line(asked))
    rows.add_row(Text("Recalled", "bold"), one_line(ending.hit["text"]))
    rows.add_row(Text("Source", "bold"), Text(one_line(source), style="green"))
    return rows


def _heading(text: str) -> Rule:
    return Rule(Text(text, style="bold"), align="left", style="dim")
