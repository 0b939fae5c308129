"""`circadian chat`: a prompt, an answer, and so on. Also without a terminal: a message a line."""

from __future__ import annotations

import sys

from graph.blocking import Agent
from graph.cli.access import opening
from graph.cli.commands import converse, event_of, go_to_sleep, print_status, say_model
from graph.cli.console import Screen
from graph.cli.options import Options
from memory.errors import CircadianError

PROMPT = "> "
HELP = "/status, /sleep, /help, /quit, or Ctrl-D to leave"
WORDS = {"help": "/help", "quit": "/quit", "exit": "/quit", "/exit": "/quit"}
"""What alone on a line is a command too."""


def chat(options: Options) -> int:
    """Talk until the input ends. A message that fails is reported, and the talk goes on.

    Blocking, so that the prompt can be interrupted: the agent runs on a thread of its own.
    """
    screen = Screen(json=False)
    with opening(options) as agent:
        say_model(screen, agent.handle)
        if sys.stdin.isatty():
            import readline  # noqa: F401 - importing it gives `input` line editing and a history

            screen.note(HELP)
        status = 0
        while (line := _read()) not in (None, "/quit"):
            if line:
                status = _answer(agent, screen, options, line)
        return 0 if sys.stdin.isatty() else status


def _read() -> str | None:
    """The next line without the space around it; None where the input ends.

    Ctrl-C drops what is half typed; on an empty line it is raised.
    """
    while True:
        try:
            line = input(PROMPT if sys.stdin.isatty() else "").strip()
            return WORDS.get(line.lower(), line)
        except EOFError:
            return None
        except KeyboardInterrupt:
            sys.stdout.write("\n")
            if not _half_typed():
                raise


def _half_typed() -> bool:
    """Whether the line that was interrupted held anything."""
    if not sys.stdin.isatty():
        return False
    import readline

    return readline.get_line_buffer() != ""


def _answer(agent: Agent, screen: Screen, options: Options, line: str) -> int:
    try:
        if line == "/status":
            agent.call(print_status(options, agent.handle, screen))
            return 0
        if line == "/help":
            screen.note(HELP)
            return 0
        if line == "/sleep":
            return agent.call(go_to_sleep(options, agent.handle, screen))
        if line.startswith("/"):
            screen.note(f"unknown: {line}; known are {HELP}")
            return 2
        return agent.call(converse(options, agent.handle, screen, event_of(line)))
    except CircadianError as error:
        screen.problem(str(error))
        return 1
