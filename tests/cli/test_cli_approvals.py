"""Questions on the command line: how one is asked, and answered with approve and refuse."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.commandline import Run, circadian
from tests.support.homes import held
from tests.support.launching import LAUNCH, Launches, asking
from tests.support.openai_server import Serve, text

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
FLIES = text("It flies.")


def waiting(run: Run) -> list[dict[str, Any]]:
    done = run("status", "--json")
    found: list[dict[str, Any]] = done.document["approvals"]
    return found


def asked(run: Run, text: str = "Launch it") -> str:
    """Send a message that ends in a question; its id."""
    done = run("send", text, "--json")
    return str(done.document["approvals"][-1]["id"])


def test_send_shows_what_would_be_done_and_how_to_answer(
    run: Run, serve: Serve, data: Path, launches: Launches
) -> None:
    first = asking(
        ("add_goal", {"description": "Reach the moon"}),
        ("launch", {"target": "the moon", "reasoning": "Ada wants it"}),
        said="I will.",
    )
    serve(first)
    done = run("send", "Launch it", "--from", "Ada")
    [question] = waiting(run)
    lines = done.out.splitlines()
    assert (done.status, done.err, launches.done) == (0, "", [])
    assert lines[:4] == ["I will.", "  ✓ add_goal", "", "? It wants to run launch:"]
    assert lines[4:6] == ["  target    the moon", "  why       Ada wants it"]
    assert lines[6] == "  rests on  words of Ada"
    assert lines[7].startswith("  for       Ada, ")
    assert lines[8:] == [
        "Nothing is done before you answer:",
        f"  circadian approve {question['id']} --data {data}",
        f"  circadian refuse {question['id']} --data {data}",
    ]


def test_the_commands_repeat_the_options_that_were_given_and_no_others(
    capsys: Capture, data: Path, launches: Launches, monkeypatch: Patch, serve: Serve
) -> None:
    monkeypatch.setenv("CIRCADIAN_DATA", str(data))
    serve(LAUNCH, LAUNCH)
    plain = circadian(capsys, "send", "Launch it").out.splitlines()[-1]
    other = circadian(capsys, "send", "Launch it", "--agent", "my two").out.splitlines()[-1]
    assert plain.split()[:2] == ["circadian", "refuse"]
    assert len(plain.split()) == 3
    assert other.endswith(" --agent 'my two'")


def test_another_message_is_answered_with_a_note_on_the_waiting_question(
    run: Run, serve: Serve, launches: Launches
) -> None:
    serve(LAUNCH, text("Hello."), text("Hello again."))
    question = asked(run)
    done = run("send", "Hello")
    as_json = run("send", "Hello", "--json")
    document = as_json.document
    assert (done.status, done.out.splitlines()[0]) == (0, "Hello.")
    assert "It wants to run" not in done.out
    told = "a question waits: Run launch(target='the moon') (approve or refuse"
    assert done.error == f"{told} {question})"
    assert (document["reply"], document["tick"], as_json.err) == ("Hello again.", 2, "")
    assert [one["id"] for one in document["approvals"]] == [question]
    assert launches.done == []


def test_approve_runs_the_tool_once_and_shows_the_rest_of_the_tick(
    run: Run, serve: Serve, launches: Launches
) -> None:
    goal = ("add_goal", {"description": "Reach the moon"})
    first = asking(goal, ("launch", {"target": "the moon"}), said="I will.")
    serve(first, FLIES)
    question = asked(run)
    done = run("approve", question)
    assert (done.status, done.err, launches.done) == (0, "", ["the moon"])
    *lines, footer = done.out.splitlines()
    assert lines == ["approved launch(target='the moon')", "  ✓ launch", "It flies."]
    assert footer.startswith("tick 1 · 2 calls · ")
    assert waiting(run) == []


def test_approve_with_arguments_runs_those(run: Run, serve: Serve, launches: Launches) -> None:
    for option in ("--args", "--edit"):
        serve(LAUNCH, FLIES)
        question = asked(run)
        args = ("approve", question, option, '{"target": "Mars"}')
        done = run(*args)
        assert (done.status, done.out.splitlines()[0]) == (0, "approved launch(target='Mars')")
    assert launches.done == ["Mars", "Mars"]


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ("{", "the arguments are not JSON: "),
        ("[1]", "the arguments must be a JSON object"),
        ("{}", "the arguments do not fit launch: target: Field required"),
    ],
)
def test_approve_with_unfit_arguments_changes_nothing(
    run: Run, serve: Serve, launches: Launches, args: str, problem: str
) -> None:
    serve(LAUNCH)
    question = asked(run)
    done = run("approve", question, "--args", args)
    assert (done.status, done.out) == (2, "")
    assert done.error.startswith(f"circadian: {problem}")
    assert [one["id"] for one in waiting(run)] == [question]
    assert launches.done == []


def test_refuse_does_not_run_the_tool_and_tells_the_model_why(
    run: Run, serve: Serve, launches: Launches
) -> None:
    server = serve(LAUNCH, text("Then not."))
    question = asked(run)
    args = ("refuse", question, "--reason", "too early")
    done = run(*args)
    assert (done.status, launches.done) == (0, [])
    first, second, _ = done.out.splitlines()
    assert (first, second) == ("refused launch(target='the moon')", "Then not.")
    assert "local refused it: too early" in server.requests[-1]["messages"][-1]["content"]


def test_a_question_is_named_by_a_prefix_or_not_at_all_if_it_is_alone(
    run: Run, serve: Serve, launches: Launches
) -> None:
    serve(LAUNCH, FLIES, LAUNCH, FLIES, LAUNCH, FLIES)
    question = asked(run)
    assert run("approve", question[:8]).status == 0
    question = asked(run)
    beginning = question.removeprefix("ask_")[:4]
    assert run("approve", beginning).status == 0
    asked(run)
    assert run("approve").status == 0
    assert len(launches.done) == 3


def test_an_ambiguous_or_unknown_question_lists_those_that_wait(
    run: Run, serve: Serve, launches: Launches
) -> None:
    serve(LAUNCH, asking(("launch", {"target": "Mars"})))
    first, second = asked(run), asked(run, "And to Mars")
    listed = (
        f"; waiting: {first} (Run launch(target='the moon')), {second} (Run launch(target='Mars'))"
    )
    for args, problem in (
        ([], "2 questions wait; name one"),
        (["askx"], "no question 'askx' waits for an answer"),
        (["ask_x"], "no question 'ask_x' waits for an answer"),
    ):
        done = run("approve", *args)
        assert (done.status, done.out) == (2, "")
        assert done.error == f"circadian: {problem}{listed}"
    for given in ("ask_", first[:7], first[4]):
        short = run("approve", given)
        assert (short.status, "too short for one of the questions" in short.error) == (2, True)
        assert short.error.endswith(", ask_ not counted") == given.startswith("ask_")
    assert launches.done == []


def test_approve_without_a_waiting_question_says_so(run: Run, data: Path) -> None:
    none = run("approve")
    assert (none.status, data.exists()) == (2, False)
    assert "no data folder" in none.error
    run("send", "Hello")
    for command in (["approve"], ["refuse", "ask_0"]):
        done = run(*command)
        assert (done.status, done.error) == (2, "circadian: no question waits for an answer")


def test_while_the_agent_is_busy_the_answer_is_kept_and_holds(
    run: Run, serve: Serve, data: Path, launches: Launches, monkeypatch: Patch
) -> None:
    serve(LAUNCH, FLIES)
    question = asked(run)
    monkeypatch.setenv("CIRCADIAN_LOCK_TIMEOUT", "0.1")
    with held(data):
        busy = run("approve", question)
        again = run("refuse", question)
    assert launches.done == []
    later = run("tick")
    assert busy.status == 1
    assert busy.error.endswith("; the answer is kept, and the next run acts on it")
    assert again.status == 2
    assert f"{question} was answered before: approved by local" in again.error
    assert (later.status, later.out.splitlines()[:2]) == (0, ["  ✓ launch", "It flies."])
    assert launches.done == ["the moon"]


def test_under_the_emergency_stop_the_answer_is_kept(
    run: Run, serve: Serve, launches: Launches
) -> None:
    serve(LAUNCH, FLIES)
    question = asked(run)
    run("stop")
    done = run("approve", question)
    assert (done.status, launches.done) == (1, [])
    run("clear-stop")
    assert done.error.endswith("The answer is kept; `circadian clear-stop` clears the stop")
    assert launches.done == ["the moon"]


def test_a_question_of_its_own_tick_is_shown_by_tick_and_answered(
    run: Run, serve: Serve, launches: Launches
) -> None:
    goal = asking(("add_goal", {"description": "Reach the moon"}))
    serve(goal, text("Noted."), LAUNCH, FLIES)
    run("send", "Reach the moon")
    done = run("tick")
    assert (done.status, launches.done) == (0, [])
    assert "? It wants to run launch:" in done.out
    assert "  for     its own goals, " in done.out
    ended = run("approve", "--json").document
    assert (ended["context_type"], ended["reply"]) == ("tick_autonomous", "It flies.")
    assert launches.done == ["the moon"]
