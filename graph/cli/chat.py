"""`circadian chat`: a prompt, an answer, and so on. Also without a terminal: a message a line."""

from __future__ import annotations

import sys
from typing import Any

from graph.blocking import Agent
from graph.cli.access import opening, say_model
from graph.cli.approvals import answered, chosen, edit, question_view, refusal, say_waiting
from graph.cli.asking import APPROVAL, ask, take_line
from graph.cli.commands import event_of, go_to_sleep, print_status
from graph.cli.console import Screen
from graph.cli.options import Options
from graph.cli.turn import converse
from memory.errors import CircadianError, InputError
from memory.tick import Question

PROMPT = "> "
HELP = "/status, /sleep, /approve ID, /refuse ID, /help, /quit, or Ctrl-D to leave"
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
        agent.call(say_waiting(agent.handle, screen))
        status = _Chat(options, agent, screen).run()
        return 0 if sys.stdin.isatty() else status


class _Chat:
    """One conversation at the prompt."""

    def __init__(self, options: Options, agent: Agent, screen: Screen) -> None:
        self._options, self._agent, self._screen = options, agent, screen
        self._kept: str | None = None
        """A line that was read as an answer and was none: it comes next."""

    def run(self) -> int:
        """Take line after line; the exit status of the last one."""
        status = 0
        while (line := self._line()) not in (None, "/quit"):
            if line:
                status = self._take(line)
        return status

    def _line(self) -> str | None:
        line, self._kept = self._kept, None
        return _read() if line is None else line

    def _take(self, line: str) -> int:
        """Carry one line out; what goes wrong is told."""
        try:
            return self._command(line) if line.startswith("/") else self._message(line)
        except CircadianError as error:
            self._screen.problem(str(error))
            return 1

    def _command(self, line: str) -> int:
        name, _, rest = line.partition(" ")
        agent, screen, rest = self._agent, self._screen, rest.strip()
        match name:
            case "/status" if not rest:
                agent.call(print_status(self._options, agent.handle, screen))
                return 0
            case "/help" if not rest:
                screen.note(HELP)
                return 0
            case "/sleep" if not rest:
                return agent.call(go_to_sleep(self._options, agent.handle, screen))
            case "/approve" | "/refuse":
                return self._named_question(name, rest)
        screen.note(f"unknown: {line}; known are {HELP}")
        return 2

    def _message(self, text: str) -> int:
        """Say it; where that ends in a question, ask."""
        event = event_of(text)
        turn = self._agent.call(converse(self._options, self._agent.handle, self._screen, event))
        if turn.parked is None:
            return turn.status
        return self._ask(turn.parked["question"])

    def _named_question(self, command: str, rest: str) -> int:
        """`/approve [ID [JSON]]`, `/refuse [ID [why]]`."""
        name, _, more = rest.partition(" ")
        question = self._agent.call(chosen(self._agent.handle, name or None))
        if command == "/refuse":
            return self._answer(question, refusal(more))
        return self._answer(question, edit(more) if more.strip() else APPROVAL)

    def _answer(self, question: Question, answer: dict[str, Any]) -> int:
        turn = self._agent.call(
            answered(self._options, self._agent.handle, self._screen, question, answer)
        )
        return turn.status

    def _ask(self, question: Question) -> int:
        """Ask until there is an answer that fits, or the question is left for later."""
        self._screen.show("", question_view(question))
        while True:
            person = sys.stdin.isatty()
            typed = ask(question, self._screen) if person else take_line(_read)
            self._kept = typed.line
            if typed.answer is None:
                waits = f"it waits: /approve {question['id']}, or /refuse {question['id']}"
                self._screen.note(waits)
                return 0
            try:
                return self._answer(question, typed.answer)
            except InputError as error:
                if not person:
                    raise
                self._screen.problem(str(error))


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
