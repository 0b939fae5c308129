"""`circadian chat`: a conversation at a prompt, or without a terminal a message per line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from graph.api import Agent
from graph.cli.access import Session, opening
from graph.cli.commands.approvals import APPROVAL, chosen, edit, refusal
from graph.cli.commands.nights import go_to_sleep
from graph.cli.commands.status import print_status
from graph.cli.options import Options, command
from graph.cli.turn import answered, converse, event_of, unanswered
from graph.cli.views import Screen, arguments, one_line, question_view, still_waiting
from memory.errors import CircadianError, InputError
from memory.records import Question

PROMPT = "> "


HELP = "/status, /sleep, /approve ID, /refuse ID, /help, /quit, or Ctrl-D to leave"


WORDS = {"help": "/help", "quit": "/quit", "exit": "/quit", "/exit": "/quit"}
"""Lines that stand for a command."""


CHOICES = "[y]es / [n]o / [e]dit / [l]ater"


UNCLEAR = "y, n (and why, if you like), e to change the arguments, or l to leave it for later"


class Typed(NamedTuple):
    """What a person typed at a question."""

    answer: dict[str, Any] | None
    """As `graph.use_cases.approvals.decide` takes it; None leaves the question for later."""
    line: str | None = None
    """A line that was no answer: it is the next message."""


@command(json=False)
def chat(options: Options) -> int:
    """Talk with the agent. Ctrl-D leaves."""
    # Blocking, so that Ctrl-C reaches the prompt: the agent runs on a thread of its own.
    with opening(options) as agent:
        session = Session(options, Screen(json=False), agent.handle)
        session.say_model()
        if sys.stdin.isatty():
            import readline  # noqa: F401 - importing it gives `input` line editing and a history

            session.screen.note(HELP)
        if waiting := agent.call(unanswered(agent.handle)):
            session.screen.note(still_waiting([parked["question"] for parked in waiting]))
        status = _Chat(session, agent).run()
        return 0 if sys.stdin.isatty() else status


class _Chat:
    """One conversation. A message that fails is reported, and the conversation goes on."""

    def __init__(self, session: Session, agent: Agent) -> None:
        self._session, self._agent, self._screen = session, agent, session.screen
        self._kept: str | None = None
        """A line that was read as an answer and was none: it comes next."""

    def run(self) -> int:
        """Carry out line after line; returns the exit status of the last one."""
        status = 0
        while (line := self._line()) not in (None, "/quit"):
            if line:
                status = self._carry_out(line)
        return status

    def _line(self) -> str | None:
        line, self._kept = self._kept, None
        return _read() if line is None else line

    def _carry_out(self, line: str) -> int:
        try:
            return self._command(line) if line.startswith("/") else self._message(line)
        except CircadianError as error:
            self._screen.problem(str(error))
            return 1

    def _command(self, line: str) -> int:
        name, _, rest = line.partition(" ")
        match name:
            case "/status" if not rest.strip():
                self._agent.call(print_status(self._session))
                return 0
            case "/help" if not rest.strip():
                self._screen.note(HELP)
                return 0
            case "/sleep" if not rest.strip():
                return self._agent.call(go_to_sleep(self._session))
            case "/approve" | "/refuse":
                return self._named_question(name, rest.strip())
        self._screen.note(f"unknown: {line}; known are {HELP}")
        return 2

    def _message(self, text: str) -> int:
        turn = self._agent.call(converse(self._session, event_of(text)))
        return turn.status if turn.parked is None else self._ask(turn.parked["question"])

    def _named_question(self, name: str, rest: str) -> int:
        """`/approve [ID [JSON]]`, `/refuse [ID [why]]`."""
        question_id, _, more = rest.partition(" ")
        question = self._agent.call(chosen(self._session.agent, question_id or None))
        if name == "/refuse":
            return self._answer(question, refusal(more))
        return self._answer(question, edit(more) if more.strip() else APPROVAL)

    def _answer(self, question: Question, answer: dict[str, Any]) -> int:
        return self._agent.call(answered(self._session, question, answer)).status

    def _ask(self, question: Question) -> int:
        """Ask until an answer fits, or the question is left for later."""
        self._screen.show("", question_view(question))
        while True:
            person = sys.stdin.isatty()
            typed = _ask_person(question, self._screen) if person else take_line(_read)
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


def take_line(read: Callable[[], str | None]) -> Typed:
    """Without a terminal: a line answers the question only if it can be nothing else."""
    line: str | None = ""
    while line == "":
        line = read()
    match line.lower() if line is not None else "later":
        case "y" | "yes":
            return Typed(APPROVAL)
        case "n" | "no":
            return Typed(refusal(""))
        case "later":
            return Typed(None)
        case _:
            return Typed(None, line)


def _ask_person(question: Question, screen: Screen) -> Typed:
    """Ask on the terminal until there is an answer. Ctrl-C and Ctrl-D leave it for later."""
    while (line := _typed(f"Run {one_line(question['tool'])}? {CHOICES}: ")) is not None:
        word, _, rest = line.partition(" ")
        match word.lower():
            case "y" | "yes" if not rest:
                return Typed(APPROVAL)
            case "n" | "no":
                return Typed(refusal(rest))
            case "e" | "edit" if not rest:
                if answer := _edited(question, screen):
                    return Typed(answer)
            case "l" | "later" if not rest:
                break
            case _:
                screen.note(UNCLEAR)
    return Typed(None)


def _edited(question: Question, screen: Screen) -> dict[str, Any] | None:
    """The arguments as a person edits them on one line; None for an empty line or no JSON."""
    import readline

    standing = json.dumps(arguments(question), ensure_ascii=False)
    readline.set_startup_hook(lambda: readline.insert_text(standing))
    try:
        line = _typed("arguments: ")
    finally:
        readline.set_startup_hook()
    try:
        return edit(line) if line else None
    except InputError as error:
        screen.problem(str(error))
        return None


def _typed(prompt: str) -> str | None:
    """A line without surrounding space; None after Ctrl-C or Ctrl-D."""
    try:
        return input(prompt).strip()
    except (EOFError, KeyboardInterrupt):
        sys.stdout.write("\n")
        return None


def _read() -> str | None:
    """The next line without surrounding space; None where the input ends.

    Ctrl-C drops a half-typed line; on an empty line it is raised.
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
    """Whether the interrupted line held anything."""
    if not sys.stdin.isatty():
        return False
    import readline

    return readline.get_line_buffer() != ""
