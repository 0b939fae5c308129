"""Asking a question in a conversation: what a person types there, and what it means."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from graph.cli.approvals import arguments, edit, refusal
from graph.cli.console import Screen, one_line
from memory.errors import InputError
from memory.tick import Question

CHOICES = "[y]es / [n]o / [e]dit / [l]ater"
UNCLEAR = "y, n (and why, if you like), e to change the arguments, or l to leave it for later"
APPROVAL: dict[str, Any] = {"decision": "approve"}


class Typed(NamedTuple):
    """What came of asking."""

    answer: dict[str, Any] | None
    """As `graph.decisions.decide` takes it; None: for later."""
    line: str | None = None
    """A line that was no answer, to be taken as what it is."""


def ask(question: Question, screen: Screen) -> Typed:
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


def take_line(read: Callable[[], str | None]) -> Typed:
    """Without a terminal: the next line answers if it can be nothing else, and else comes next."""
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


def _typed(prompt: str) -> str | None:
    """A line without the space around it; None where there is none."""
    try:
        return input(prompt).strip()
    except (EOFError, KeyboardInterrupt):
        sys.stdout.write("\n")
        return None


def _edited(question: Question, screen: Screen) -> dict[str, Any] | None:
    """The arguments as a person changes them, on one line; None: not after all, or no JSON."""
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
