"""`circadian chat`, `approve` and `refuse`: conversations, and answers to questions about tools."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from typer import Argument, Option

from graph.api import Agent, AsyncAgent
from graph.cli.access import (
    Session,
    answered,
    confirm_new_name,
    converse,
    event_of,
    go_to_sleep,
    must_be_made,
    opening,
    running,
    unanswered,
)
from graph.cli.commands.memory import show_recalled
from graph.cli.commands.status import print_status
from graph.cli.exits import INTERRUPTED
from graph.cli.program import Options, command
from graph.cli.run_view import arguments, question_view, still_waiting
from graph.cli.status_view import briefing_view
from graph.console import Screen, one_line
from graph.use_cases import meant, new_briefing, stop_answer
from memory.errors import CircadianError, InputError
from memory.records import ParkedTick, Question
from memory.text import shortened

SHORT = 60
"""Characters of a question that an error shows."""

APPROVAL: dict[str, Any] = {"decision": "approve"}

PROMPT = "> "
HELP = "/status, /recall WORDS, /sleep, /approve ID, /refuse ID, /help, /quit, or Ctrl-D to leave"

CHAT_COMMANDS = {"help": "/help", "quit": "/quit", "exit": "/quit", "/exit": "/quit"}
"""Words that are commands without their slash."""

CHOICES = "[y]es / [n]o / [e]dit / [l]ater"
UNCLEAR = "y, n (and why, if you like), e to change the arguments, or l to leave it for later"

QuestionId = Annotated[
    str | None,
    Argument(
        metavar="ID", help="The question, or how its id begins; not needed where only one waits."
    ),
]


@command()
async def approve(
    options: Options,
    question: QuestionId = None,
    args: Annotated[
        str | None,
        Option(
            "--args",
            "--edit",
            metavar="JSON",
            help="Run it with these arguments, a JSON object, instead.",
        ),
    ] = None,
) -> int:
    """Answer a question with yes: its tool runs."""
    return await _answer(options, question, APPROVAL if args is None else edit(args))


@command()
async def refuse(
    options: Options,
    question: QuestionId = None,
    reason: Annotated[str | None, Option(metavar="TEXT", help="Why; the model is told.")] = None,
) -> int:
    """Answer a question with no: its tool does not run."""
    return await _answer(options, question, refusal(reason))


async def _answer(options: Options, question: str | None, answer: Mapping[str, Any]) -> int:
    await must_be_made(options)
    async with running(options, announce=False) as session:
        wanted = await chosen(session.agent, question)
        session.say_model()
        return (await answered(session, wanted, answer)).status


def edit(args: str) -> dict[str, Any]:
    """The answer that lets a tool run with `args`. Raises InputError unless it is a JSON object."""
    try:
        given = json.loads(args)
    except ValueError as error:
        raise InputError(f"the arguments are not JSON: {error}") from None
    if not isinstance(given, dict):
        raise InputError('the arguments must be a JSON object, such as {"name": "value"}')
    return {"decision": "edit", "args": given}


def refusal(reason: str | None) -> dict[str, Any]:
    """The answer that keeps a tool from running; the model is told the reason."""
    return {"decision": "refuse", "reason": (reason or "").strip() or None}


async def chosen(agent: AsyncAgent, given: str | None) -> Question:
    """The question whose id begins with `given`; without `given` the only one that waits.

    Raises InputError if none fits, or several do, and lists those that wait.
    """
    waiting = [tick["question"] for tick in await unanswered(agent)]
    if given is None:
        fits = waiting
    else:
        parked: list[ParkedTick] = (await agent.context.values()).get("parked", [])
        known = {tick["question"]["id"]: tick["question"] for tick in parked}
        waits = {question["id"]: question for question in waiting}
        ids = meant(given, waits, "questions") or meant(given, known, "questions")
        fits = [known[id_] for id_ in ids]
    if len(fits) == 1:
        return fits[0]
    raise InputError(_not_one(waiting, given, len(fits)))


def _not_one(waiting: Sequence[Question], given: str | None, fits: int) -> str:
    if not waiting:
        return "no question waits for an answer"
    problem = f"no question {given!r:.80} waits for an answer"
    if given is None:
        problem = f"{len(waiting)} questions wait; name one"
    elif fits:
        problem = f"{fits} questions begin with {given!r:.80}"
    listed = (
        f"{question['id']} ({shortened(one_line(question['what']), SHORT)})" for question in waiting
    )
    return f"{problem}; waiting: {', '.join(listed)}"


@command(json=False)
def chat(
    options: Options,
    sender: Annotated[
        str | None, Option("--from", metavar="NAME", help="Who speaks [the owner].")
    ] = None,
) -> int:
    """Talk with the agent. Ctrl-D leaves."""
    # Blocking, so that Ctrl-C reaches the prompt: the agent runs on a thread of its own.
    with opening(options) as agent:
        session = Session(options, Screen(json=False), agent.asynchronous)
        agent.call(confirm_new_name(session))
        session.say_model()
        if sys.stdin.isatty():
            import readline  # noqa: F401 - importing it gives `input` line editing and a history

            session.screen.note(HELP)
        if briefing := agent.call(new_briefing(agent.asynchronous.context, sender)):
            session.screen.show(briefing_view(briefing), "")
        if waiting := agent.call(unanswered(agent.asynchronous)):
            session.screen.note(still_waiting([parked["question"] for parked in waiting]))
        status = _Chat(session, agent, sender).run()
        return 0 if sys.stdin.isatty() else status


class _Chat:
    """One conversation. A message that fails is reported, and the conversation goes on."""

    def __init__(self, session: Session, agent: Agent, sender: str | None) -> None:
        self._session, self._agent, self._screen = session, agent, session.screen
        self._sender = sender

    def run(self) -> int:
        """Carry out line after line; returns the exit status of the last one."""
        status = 0
        while (line := _read()) not in (None, "/quit"):
            if line:
                status = self._carry_out(line)
        return status

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
                return self._agent.call(print_status(self._session, self._sender))
            case "/help" if not rest.strip():
                self._screen.note(HELP)
                return 0
            case "/recall" if rest.strip():
                self._agent.call(show_recalled(self._session, rest))
                return 0
            case "/sleep" if not rest.strip():
                return self._agent.call(go_to_sleep(self._session))
            case "/approve" | "/refuse":
                return self._named_question(name, rest.strip())
        self._screen.note(f"unknown: {line}; known are {HELP}")
        return 2

    def _message(self, text: str) -> int:
        event = event_of(text, self._sender)
        try:
            turn = self._agent.call(converse(self._session, event))
        except KeyboardInterrupt:
            self._agent.call(stop_answer(self._session.agent.context, event["id"]))
            self._screen.note("stopped; Ctrl-C once more leaves")
            return INTERRUPTED
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
        """Ask until an answer fits. Without a terminal the question is left for later."""
        self._screen.show("", question_view(question))
        while sys.stdin.isatty() and (answer := _ask_person(question, self._screen)):
            try:
                return self._answer(question, answer)
            except InputError as error:
                self._screen.problem(str(error))
        self._screen.note(f"it waits: /approve {question['id']}, or /refuse {question['id']}")
        return 0


def _ask_person(question: Question, screen: Screen) -> dict[str, Any] | None:
    """Ask on the terminal until there is an answer. Ctrl-C and Ctrl-D leave it for later."""
    while (line := _typed(f"Run {one_line(question['tool'])}? {CHOICES}: ")) is not None:
        word, _, rest = line.partition(" ")
        match word.lower():
            case "y" | "yes" if not rest:
                return APPROVAL
            case "n" | "no":
                return refusal(rest)
            case "e" | "edit" if not rest:
                if answer := _edited(question, screen):
                    return answer
            case "l" | "later" if not rest:
                break
            case _:
                screen.note(UNCLEAR)
    return None


def _edited(question: Question, screen: Screen) -> dict[str, Any] | None:
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
            return CHAT_COMMANDS.get(line.lower(), line)
        except EOFError:
            return None
        except KeyboardInterrupt:
            sys.stdout.write("\n")
            if not _half_typed():
                raise


def _half_typed() -> bool:
    if not sys.stdin.isatty():
        return False
    import readline

    return readline.get_line_buffer() != ""
