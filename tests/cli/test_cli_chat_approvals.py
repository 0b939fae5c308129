"""Questions in a conversation: asked at once, on a terminal and on a pipe."""

import io
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from graph.cli.commands.chat import CHOICES, UNCLEAR
from tests.cli.test_cli_approvals import waiting
from tests.support.commandline import Done, Run
from tests.support.launching import LAUNCH, Launches, asking
from tests.support.openai_server import Serve, error, text

Patch = pytest.MonkeyPatch
Typed = str | type[BaseException]
FLIES, HELLO = text("It flies."), text("Hello.")
PROMPT = f"Run launch? {CHOICES}: "


class Terminal(io.StringIO):
    """A person who types these lines, and sees the prompts."""

    def __init__(self, *lines: Typed) -> None:
        super().__init__()
        self.prompts: list[str] = []
        self._lines: Iterator[Typed] = iter([*lines, EOFError])

    def isatty(self) -> bool:
        return True

    def line(self, prompt: str = "") -> str:
        self.prompts.append(prompt)
        typed = next(self._lines)
        if isinstance(typed, str):
            return typed
        raise typed


def typing(run: Run, monkeypatch: Patch, *lines: Typed) -> tuple[Done, Terminal]:
    """A conversation on a terminal; Ctrl-D ends it."""
    person = Terminal(*lines)
    monkeypatch.setattr(sys, "stdin", person)
    monkeypatch.setattr("builtins.input", person.line)
    return run("chat"), person


def piped(run: Run, monkeypatch: Patch, *lines: str) -> Done:
    """A conversation whose lines stand in a file."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    return run("chat")


@pytest.mark.parametrize("answer", ["y", "Yes", " YES "])
def test_yes_lets_it_run_and_the_answer_follows(
    run: Run, serve: Serve, launches: Launches, monkeypatch: Patch, answer: str
) -> None:
    serve(LAUNCH, FLIES)
    done, person = typing(run, monkeypatch, "Launch it", answer)
    assert (done.status, launches.done) == (0, ["the moon"])
    assert person.prompts == ["> ", PROMPT, "> "]
    assert "? It wants to run launch:\n  target  the moon\n" in done.out
    assert "approved launch(target='the moon')\n  ✓ launch\nIt flies.\ntick 1 ·" in done.out
    assert "circadian approve" not in done.out


def test_no_may_say_why(run: Run, serve: Serve, launches: Launches, monkeypatch: Patch) -> None:
    server = serve(LAUNCH, text("Then not."), LAUNCH, text("Not now."))
    done, _ = typing(run, monkeypatch, "Launch it", "n too early", "Launch it now", "No")
    assert launches.done == []
    assert ("Then not.\n" in done.out, "Not now.\n" in done.out) == (True, True)
    assert "local refused it: too early" in server.requests[1]["messages"][-1]["content"]
    assert '"local refused it"' in server.requests[3]["messages"][-1]["content"]


def test_an_unclear_answer_is_asked_again(
    run: Run, serve: Serve, launches: Launches, monkeypatch: Patch
) -> None:
    serve(LAUNCH, FLIES)
    done, person = typing(run, monkeypatch, "Launch it", "", "perhaps", "yes please", "y")
    assert person.prompts == ["> ", *[PROMPT] * 4, "> "]
    assert done.err.splitlines().count(UNCLEAR) == 3
    assert launches.done == ["the moon"]


def test_the_arguments_can_be_edited_on_a_line_that_holds_them(
    run: Run, serve: Serve, launches: Launches, monkeypatch: Patch
) -> None:
    import readline

    held: list[str] = []
    hooks: list[Any] = []

    def hook(given: Any = None) -> None:
        hooks.append(given)
        if given is not None:
            given()

    monkeypatch.setattr(readline, "set_startup_hook", hook)
    monkeypatch.setattr(readline, "insert_text", held.append)
    edits = ("e", "{", "edit", '{"aim": "Mars"}', "e", '{"target": "Mars"}')
    serve(LAUNCH, FLIES)
    done, person = typing(run, monkeypatch, "Launch it", *edits)
    assert person.prompts == ["> ", *[PROMPT, "arguments: "] * 3, "> "]
    assert held == ['{"target": "the moon"}'] * 3
    assert [one is None for one in hooks] == [False, True] * 3
    assert "circadian: the arguments are not JSON: " in done.err
    assert "circadian: the arguments do not fit launch: target: Field required" in done.err
    assert launches.done == ["Mars"]


@pytest.mark.parametrize("leaving", ["l", "Later", KeyboardInterrupt, EOFError])
def test_a_question_can_be_left_for_later(
    run: Run, serve: Serve, launches: Launches, monkeypatch: Patch, leaving: Typed
) -> None:
    serve(LAUNCH, HELLO)
    done, person = typing(run, monkeypatch, "Launch it", leaving, "Hello")
    [question] = waiting(run)
    assert (done.status, launches.done) == (0, [])
    assert person.prompts == ["> ", PROMPT, "> ", "> "]
    assert f"it waits: /approve {question['id']}, or /refuse {question['id']}" in done.err
    assert f"a question waits: {question['what']} (approve or refuse" in done.err
    assert "Hello.\n" in done.out


def test_an_edit_that_is_left_empty_asks_again(
    run: Run, serve: Serve, launches: Launches, monkeypatch: Patch
) -> None:
    serve(LAUNCH)
    _, person = typing(run, monkeypatch, "Launch it", "e", KeyboardInterrupt, "l")
    assert person.prompts == ["> ", PROMPT, "arguments: ", PROMPT, "> "]
    assert launches.done == []


def test_chat_starts_with_the_waiting_question_and_a_command_answers_it(
    run: Run, serve: Serve, launches: Launches, monkeypatch: Patch
) -> None:
    serve(LAUNCH, asking(("launch", {"target": "Mars"})), FLIES, FLIES)
    typing(run, monkeypatch, "Launch it", "l", "And to Mars", "l")
    first, second = (one["id"] for one in waiting(run))
    done, _ = typing(run, monkeypatch, "/approve", f"/approve {second[:9]}", "/approve")
    assert f"2 questions wait: {first}, {second} (status shows them)" in done.err
    assert "circadian: 2 questions wait; name one; waiting: " in done.err
    assert launches.done == ["Mars", "the moon"]


def test_a_command_takes_arguments_and_a_reason(
    run: Run, serve: Serve, launches: Launches, monkeypatch: Patch
) -> None:
    server = serve(LAUNCH, FLIES, LAUNCH, text("Then not."))
    typing(run, monkeypatch, "Launch it", "l")
    [question] = waiting(run)
    edited = f'/approve {question["id"]} {{"target": "Mars"}}'
    typing(run, monkeypatch, edited, "Launch it", "l")
    [question] = waiting(run)
    typing(run, monkeypatch, f"/refuse {question['id'][:8]} too early")
    assert launches.done == ["Mars"]
    assert "local refused it: too early" in server.requests[-1]["messages"][-1]["content"]


def test_on_a_pipe_a_question_waits_until_a_command_answers_it(
    run: Run, serve: Serve, launches: Launches, monkeypatch: Patch
) -> None:
    serve(LAUNCH, HELLO, error(400, "this request is wrong"))
    asked = piped(run, monkeypatch, "Launch it", "y")
    assert (asked.status, launches.done) == (0, [])
    assert f"it waits: /approve {waiting(run)[0]['id']}" in asked.err
    ended = piped(run, monkeypatch, "/approve")
    assert (ended.status, launches.done) == (1, ["the moon"])
    assert "this request is wrong (kept in the inbox, attempt 1 of 3)" in ended.err
