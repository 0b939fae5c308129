"""Questions about dangerous tools, for people. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from graph.cli.views.console import FIRST_WORDS, moment, one_line, visible
from memory.records import Question
from memory.text import shortened

LONGEST, MOST_LINES = 10_000, 200
"""Characters and lines of one argument that are shown."""


SHORT = 60
"""Characters of an argument that are shown beside a difference."""


_DIFF_STYLE = {"+": "green", "-": "red", "@": "cyan"}


_SAID = {
    "approve": ("approved", "green"),
    "edit": ("approved", "green"),
    "refuse": ("refused", "yellow"),
}


def question_view(question: Question) -> RenderableType:
    """The tool, its arguments, what it would change, why and for whom."""
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
    who = one_line(question["sender"]) if question["sender"] else "its own goals"
    rows.add_row("for", Text(f"{who}, {moment(question['asked_at'])}"))
    tool = (one_line(question["tool"]), "bold")
    head = Text.assemble(("? ", "bold yellow"), "It wants to run ", tool, ":")
    return Group(head, Padding(rows, (0, 0, 0, 2)))


def answer_line(question: Question, answer: Mapping[str, Any]) -> Text:
    """`approved launch(target='the moon')`."""
    said, style = _SAID[answer["decision"]]
    args = answer["args"] if answer["decision"] == "edit" else arguments(question)
    told = ", ".join(f"{name}={value!r}" for name, value in args.items())
    what = f"{question['tool']}({told})"
    return Text.assemble((f"{said} ", style), (shortened(visible(what), SHORT), "dim"))


def still_waiting(questions: Sequence[Question]) -> str:
    """One line: questions wait, and how to find them."""
    if len(questions) == 1:
        question = questions[0]
        what = shortened(one_line(question["what"]), 2 * FIRST_WORDS)
        return f"a question waits: {what} (approve or refuse {question['id']})"
    ids = ", ".join(question["id"] for question in questions)
    return f"{len(questions)} questions wait: {ids} (status shows them)"


def arguments(question: Question) -> dict[str, Any]:
    """The arguments without the model's reasoning, which is shown on its own."""
    return {key: value for key, value in question["args"].items() if key != "reasoning"}


def _value(value: Any, *, short: bool) -> Text:
    """An argument with its control characters visible; a very long one is cut, and says so."""
    text = visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    if short:
        return Text(shortened(text, SHORT))
    seen = "\n".join(text.split("\n")[:MOST_LINES])[:LONGEST]
    left = len(text) - len(seen)
    more = f"\n… {left:,} more characters (circadian status --json has all)" if left else ""
    return Text.assemble(seen, (more, "yellow"))


def _difference(text: str) -> Text:
    """A unified diff in colours. It is never cut: a person decides on it."""
    shown = Text()
    for number, line in enumerate(visible(text).split("\n")):
        heading = line.startswith(("--- ", "+++ ")) and number < 2
        style = "dim" if heading else _DIFF_STYLE.get(line[:1], "")
        shown.append(line, style).append("\n")
    shown.rstrip()
    return shown
