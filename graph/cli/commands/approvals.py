"""`circadian approve` and `circadian refuse`: a person answers a question about a tool."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from graph.api import AsyncAgent
from graph.cli.access import must_be_made, running
from graph.cli.options import Options, command
from graph.cli.turn import answered
from graph.cli.views import one_line
from memory.errors import InputError
from memory.events import approvals
from memory.records import Decision, ParkedTick, Question
from memory.text import shortened

SHORT = 60
"""Characters of a question that an error shows."""


APPROVAL: dict[str, Any] = {"decision": "approve"}


QuestionId = Annotated[
    str | None,
    typer.Argument(
        metavar="ID",
        help="The question, or how its id begins; not needed where only one waits.",
    ),
]


@command()
async def approve(
    options: Options,
    question: QuestionId = None,
    args: Annotated[
        str | None,
        typer.Option(
            "--args",
            "--edit",
            metavar="JSON",
            help="An object that takes the place of the arguments.",
        ),
    ] = None,
) -> int:
    """Let a tool run that a question waits for, and go on."""
    return await _answer(options, question, APPROVAL if args is None else edit(args))


@command()
async def refuse(
    options: Options,
    question: QuestionId = None,
    reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Why; the model is told.")
    ] = None,
) -> int:
    """Answer a question with no, and go on."""
    return await _answer(options, question, refusal(reason))


async def _answer(options: Options, question: str | None, answer: Mapping[str, Any]) -> int:
    await must_be_made(options)
    async with running(options, announce=False) as session:
        wanted = await chosen(session.agent, question)
        session.say_model()
        return (await answered(session, wanted, answer)).status


def edit(args: str) -> dict[str, Any]:
    """The answer that lets a tool run with `args`, a JSON object.

    Raises:
        InputError: `args` is none.
    """
    try:
        given = json.loads(args)
    except ValueError as error:
        raise InputError(f"the arguments are not JSON: {error}") from None
    if not isinstance(given, dict):
        raise InputError('the arguments must be a JSON object, such as {"name": "value"}')
    return {"decision": "edit", "args": given}


def refusal(reason: str | None) -> dict[str, Any]:
    """The answer no, with a reason for the model."""
    return {"decision": "refuse", "reason": (reason or "").strip() or None}


async def chosen(agent: AsyncAgent, given: str | None) -> Question:
    """The question whose id begins with `given`; without `given` the only one that waits.

    Raises:
        InputError: no question fits, or several do. The error lists those that wait, or tells how
            the question was answered before.
    """
    parked: list[ParkedTick] = (await agent.aget_state()).values.get("parked", [])
    decided = await approvals.answers(agent.store, agent.scope, parked)
    known = [tick["question"] for tick in parked]
    waiting = [question for question in known if question["id"] not in decided]
    fits = [question for question in waiting if given is None or _begins(question["id"], given)]
    if len(fits) == 1:
        return fits[0]
    done = [question["id"] for question in known if question not in waiting]
    before = [id_ for id_ in done if given and _begins(id_, given)]
    if before and not fits:
        raise InputError(_answered_before(before[0], decided[before[0]]))
    raise InputError(_not_one(waiting, given, len(fits)))


def _begins(question_id: str, given: str) -> bool:
    """Whether the id begins with `given`, with or without its prefix `ask_`."""
    return question_id.startswith(given) or question_id.removeprefix("ask_").startswith(given)


def _not_one(waiting: Sequence[Question], given: str | None, fits: int) -> str:
    """Why no question was chosen."""
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


def _answered_before(question: str, decision: Decision) -> str:
    return (
        f"{question} was answered before ({decision['decision']}, by {decision['by']}); "
        "the next run, such as `circadian tick`, acts on it"
    )
