"""Questions about dangerous tools: how a person reads one, and how it is answered."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from graph.cli.console import Screen, clock_time, date, one_line, visible
from graph.cli.options import Options
from graph.cli.turn import Turn, asking, shown, still_waiting, tell, turn_of, why_not
from graph.decisions import decide
from graph.handle import AsyncAgent
from memory import approvals
from memory.errors import BusyError, InputError
from memory.models.words import shortened
from memory.settings import Deployment
from memory.tick import Decision, ParkedTick, Question

MOST, MOST_LINES = 10_000, 200
"""Characters and lines of one argument that are shown."""
SHORT = 60
"""Characters of an argument beside a difference, which shows it better."""

_DIFF_STYLE = {"+": "green", "-": "red", "@": "cyan"}
_SAID = {
    "approve": ("approved", "green"),
    "edit": ("approved", "green"),
    "refuse": ("refused", "yellow"),
}


async def answered(
    options: Options,
    agent: AsyncAgent,
    screen: Screen,
    question: Question,
    answer: Mapping[str, Any],
) -> Turn:
    """Write the answer down, then go on with the tick and show it.

    Raises:
        InputError: the answer does not fit the tool; the question still waits.
        BusyError: another process holds the agent; the answer is kept.
    """
    await decide(agent.context, question["id"], dict(answer))
    screen.show(_answer_line(question, answer))
    doing = "thinking" if answer["decision"] == "refuse" else question["tool"]
    try:
        report = await shown(options, agent, screen, {}, doing)
    except BusyError as error:
        raise BusyError(f"{error}; the answer is kept, and the next run acts on it") from error
    turn = await turn_of(agent, report, question["event_id"])
    most = agent.settings.max_failed_ticks
    tell(screen, turn, why_not(turn, question["event_id"], most, "The answer is kept"))
    return turn


async def chosen(agent: AsyncAgent, given: str | None) -> Question:
    """The question that `given` names, or its beginning; without it the only one that waits.

    Raises:
        InputError: none does, or several do; says which wait, or how it was answered before.
    """
    parked: list[ParkedTick] = (await agent.aget_state()).values.get("parked", [])
    decided = await approvals.answers(agent.store, agent.scope, parked)
    known = [one["question"] for one in parked]
    waiting = [one for one in known if one["id"] not in decided]
    fits = [one for one in waiting if given is None or _named(one, given)]
    if len(fits) == 1:
        return fits[0]
    before = [one["id"] for one in known if given and _named(one, given) and one not in waiting]
    raise InputError(
        _answered_before(before[0], decided[before[0]])
        if before and not fits
        else _not_one(waiting, given, len(fits))
    )


def edit(args: str) -> dict[str, Any]:
    """The answer that lets a tool run with `args`, a JSON object.

    Raises:
        InputError: it is none.
    """
    try:
        given = json.loads(args)
    except ValueError as error:
        raise InputError(f"the arguments are not JSON: {error}") from None
    if not isinstance(given, dict):
        raise InputError('the arguments must be a JSON object, such as {"name": "value"}')
    return {"decision": "edit", "args": given}


def refusal(reason: str | None) -> dict[str, Any]:
    """The answer no, with the reason that the model is told."""
    return {"decision": "refuse", "reason": (reason or "").strip() or None}


def arguments(question: Question) -> dict[str, Any]:
    """The arguments without the model's reasoning, which is told on its own."""
    return {key: value for key, value in question["args"].items() if key != "reasoning"}


def question_view(question: Question) -> RenderableType:
    """What would be done, with what, what it changes, why and for whom."""
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim", no_wrap=True)
    rows.add_column()
    difference = question["difference"]
    for name, value in arguments(question).items():
        rows.add_row(one_line(name), _value(value, short=difference is not None))
    if difference:
        rows.add_row("change", _difference(difference))
    if question["reason"]:
        rows.add_row("why", Text(one_line(question["reason"])))
    rows.add_row("for", Text(f"{_for(question)}, {when(question)}"))
    tool = (one_line(question["tool"]), "bold")
    head = Text.assemble(("? ", "bold yellow"), "It wants to run ", tool, ":")
    return Group(head, Padding(rows, (0, 0, 0, 2)))


def when(question: Question) -> str:
    """`2 Mar 2026 09:00`, UTC."""
    return f"{date(question['asked_at'])} {clock_time(question['asked_at'])}"


def show_question(options: Options, screen: Screen, question: Question) -> None:
    """The question, and the commands that answer it."""
    screen.show("", question_view(question), "Nothing is done before you answer:")
    for command in ("approve", "refuse"):
        screen.line(f"  {_command(options, command, question['id'])}")


async def say_waiting(agent: AsyncAgent, screen: Screen) -> None:
    """Say it when questions wait."""
    waiting = [one["question"] for one in await asking(agent)]
    if waiting and not screen.json:
        screen.note(still_waiting(waiting))


def _named(question: Question, given: str) -> bool:
    """Whether `given` is its id or the beginning of it, with or without `ask_`."""
    whole = question["id"]
    return whole.startswith(given) or whole.removeprefix("ask_").startswith(given)


def _not_one(waiting: Sequence[Question], given: str | None, fits: int) -> str:
    """Why no question was chosen."""
    if not waiting:
        return "no question waits for an answer"
    problem = f"no question {given!r:.80} waits for an answer"
    if given is None:
        problem = f"{len(waiting)} questions wait; name one"
    elif fits:
        problem = f"{fits} questions begin with {given!r:.80}"
    listed = (f"{one['id']} ({shortened(one_line(one['what']), SHORT)})" for one in waiting)
    return f"{problem}; waiting: {', '.join(listed)}"


def _answered_before(question: str, decision: Decision) -> str:
    return (
        f"{question} was answered before ({decision['decision']}, by {decision['by']}); "
        "the next run, such as `circadian tick`, acts on it"
    )


def _answer_line(question: Question, answer: Mapping[str, Any]) -> Text:
    """`approved launch(target='the moon')`."""
    said, style = _SAID[answer["decision"]]
    args = answer["args"] if answer["decision"] == "edit" else arguments(question)
    told = ", ".join(f"{name}={value!r}" for name, value in args.items())
    what = f"{question['tool']}({told})"
    return Text.assemble((f"{said} ", style), (shortened(visible(what), SHORT), "dim"))


def _command(options: Options, name: str, question: str) -> str:
    """The command that answers, with the options that led to this agent where they are needed."""
    usual = Deployment()
    words = ["circadian", name, question]
    words += ["--data", str(options.data)] if options.data is not None else []
    words += ["--agent", options.agent] if options.agent != usual.agent else []
    words += ["--model", options.model] if options.model and options.model != usual.model else []
    return shlex.join(words)


def _for(question: Question) -> str:
    return one_line(question["sender"]) if question["sender"] else "its own goals"


def _value(value: Any, *, short: bool) -> Text:
    """An argument, with what cannot be seen made visible; a very long one is cut, and says so."""
    text = visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    if short:
        return Text(shortened(text, SHORT))
    seen = "\n".join(text.split("\n")[:MOST_LINES])[:MOST]
    left = len(text) - len(seen)
    more = f"\n… {left:,} more characters (circadian status --json has all)" if left else ""
    return Text.assemble(seen, (more, "yellow"))


def _difference(text: str) -> Text:
    """A unified diff in colours, whole: a person decides on what is shown."""
    shown = Text()
    for number, line in enumerate(visible(text).split("\n")):
        heading = line.startswith(("--- ", "+++ ")) and number < 2
        style = "dim" if heading else _DIFF_STYLE.get(line[:1], "")
        shown.append(line, style).append("\n")
    shown.rstrip()
    return shown
