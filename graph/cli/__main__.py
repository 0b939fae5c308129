"""The command `circadian`, also `python -m graph.cli`: arguments in, exit status out.

Exit status: 0 done, 1 failed, 2 bad usage or bad input (one line on stderr), 130 interrupted.
Everything slow to import is imported inside `main`, so that Ctrl-C there is no traceback either.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graph.cli.exits import fail, interrupted

if TYPE_CHECKING:
    from typer.exceptions import TyperException


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:
        return interrupted()


def _run(args: list[str]) -> int:
    from typer.exceptions import TyperException

    from graph.cli.program import program, shared_options_last
    from memory.errors import CircadianError, InputError
    from memory.text import redact

    try:
        ordered = shared_options_last(args)
        status = int(program(ordered, prog_name="circadian", standalone_mode=False) or 0)
        sys.stdout.flush()
        return status
    except TyperException as error:
        return fail(_usage(error), 2)
    except CircadianError as error:
        return fail(redact(str(error), os.environ), 2 if isinstance(error, InputError) else 1)
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still flushed
        if isinstance(error, BrokenPipeError):  # the reader has seen enough
            return 1
        return fail(f"{error.filename or 'the output could not be written'}: {error.strerror}", 1)


def _usage(error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    place = context.command_path if context is not None else "circadian"
    problem = error.format_message().rstrip(".")
    if "unexpected extra argument" in problem:
        problem += "; several words that belong together stand in quotes"
    return f"{problem} (see `{place} --help`)"


if __name__ == "__main__":
    sys.exit(main())
