"""The command `circadian`: arguments in, exit status out.

Exit status: 0 done, 1 failed, 2 bad usage or bad input (one line on stderr), 130 interrupted.
What takes time to import is imported inside `main`, so that Ctrl-C there is no traceback either.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer.exceptions import TyperException

INTERRUPTED = 130
QUOTED = {
    "circadian send": "message",
    "circadian recall": "query",
    "circadian correct": "text",
    "circadian forget": "name",
}
"""What is more than one word, by command."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:
        return interrupted()


def interrupted() -> int:
    """Say it; returns the exit status. A person's Ctrl-C is no error: what was received is kept."""
    return _say("interrupted; whatever was received is kept, the next run goes on", INTERRUPTED)


def _run(args: list[str]) -> int:
    from typer.exceptions import TyperException

    from graph.cli.parser.program import app, shared_options_behind
    from memory.errors import CircadianError, InputError

    try:
        command = shared_options_behind(args)
        return int(app(command, prog_name="circadian", standalone_mode=False) or 0)
    except TyperException as error:
        return _say(_usage(error), 2)
    except InputError as error:
        return _say(str(error), 2)
    except CircadianError as error:
        return _say(str(error), 1)
    except BrokenPipeError:
        # Whoever read the output has enough; what the interpreter still flushes goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _usage(error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    place = context.command_path if context is not None else "circadian"
    said = error.format_message().rstrip(".")
    if place in QUOTED and "unexpected extra argument" in said:
        said += f"; put the {QUOTED[place]} in quotes"
    return f"{said} (see `{place} --help`)"


def _say(line: str, status: int) -> int:
    """One line on stderr, whatever the message holds; returns the exit status."""
    sys.stderr.write(f"circadian: {' '.join(line.split())}\n")
    return status
