"""Questions on the command line: how one is asked, and answered with approve and refuse."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.commandline import circadian
from tests.support.homes import held
from tests.support.launching import LAUNCH, Launches, asking, serving
from tests.support.openai_server import text

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch
FLIES = text("It flies.")


def waiting(capsys: Capture, data: Path) -> list[dict[str, Any]]:
    done = circadian(capsys, "status", "--data", data, "--json")
    found: list[dict[str, Any]] = done.document["approvals"]
    return found


def asked(capsys: Capture, data: Path, text: str = "Launch it") -> str:
    """Send a message that ends in a question; its id."""
    done = circadian(capsys, "send", text, "--data", data, "--json")
    return str(done.document["approvals"][-1]["id"])


def test_send_shows_what_would_be_done_and_how_to_answer(
    capsys: Capture, data: Path, launches: Launches, monkeypatch: Patch
) -> None:
    first = asking(
        ("add_goal", {"description": "Reach the moon"}),
        ("launch", {"target": "the moon", "reasoning": "Ada wants it"}),
        said="I will.",
    )
    with serving(monkeypatch, first):
        done = circadian(capsys, "send", "Launch it", "--from", "Ada", "--data", data)
    [question] = waiting(capsys, data)
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
    capsys: Capture, data: Path, launches: Launches, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("CIRCADIAN_DATA", str(data))
    with serving(monkeypatch, LAUNCH, LAUNCH):
        plain = circadian(capsys, "send", "Launch it").out.splitlines()[-1]
        other = circadian(capsys, "send", "Launch it", "--agent", "my two").out.splitlines()[-1]
    assert plain.split()[:2] == ["circadian", "refuse"]
    assert len(plain.split()) == 3
    assert other.endswith(" --agent 'my two'")


def test_another_message_is_answered_with_a_note_on_the_waiting_question(
    capsys: Capture, data: Path, launches: Launches, monkeypatch: Patch
) -> None:
    with serving(monkeypatch, LAUNCH, text("Hello."), text("Hello again.")):
        question = asked(capsys, data)
        done = circadian(capsys, "send", "Hello", "--data", data)
        as_json = circadian(capsys, "send", "Hello", "--data", data, "--json")
    document = as_json.document
    assert (done.status, done.out.splitlines()[0]) == (0, "Hello.")
    assert "It wants to run" not in done.out
    told = "a question waits: Run launch(target='the moon') (approve or refuse"
    assert done.error == f"{told} {question})"
    assert (document["reply"], document["tick"], as_json.err) == ("Hello again.", 2, "")
    assert [one["id"] for one in document["approvals"]] == [question]
    assert launches.done == []


def test_approve_runs_the_tool_once_and_shows_the_rest_of_the_tick(
    capsys: Capture, data: Path, launches: Launches, monkeypatch: Patch
) -> None:
    goal = ("add_goal", {"description": "Reach the moon"})
    first = asking(goal, ("launch", {"target": "the moon"}), said="I will.")
    with serving(monkeypatch, first, FLIES):
        question = asked(capsys, data)
        done = circadian(capsys, "approve", question, "--data", data)
    assert (done.status, done.err, launches.done) == (0, "", ["the moon"])
    *lines, footer = done.out.splitlines()
    assert lines == ["approved launch(target='the moon')", "  ✓ launch", "It flies."]
    assert footer.startswith("tick 1 · 2 calls · ")
    assert waiting(capsys, data) == []


def test_approve_with_arguments_runs_those(
    capsys: Capture, data: Path, launches: Launches, monkeypatch: Patch
) -> None:
    for option in ("--args", "--edit"):
        with serving(monkeypatch, LAUNCH, FLIES):
            question = asked(capsys, data)
            args = ("approve", question, option, '{"target": "Mars"}', "--data", data)
            done = circadian(capsys, *args)
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
    capsys: Capture, data: Path, launches: Launches, monkeypatch: Patch, args: str, problem: str
) -> None:
    with serving(monkeypatch, LAUNCH):
        question = asked(capsys, data)
        done = circadian(capsys, "approve", question, "--args", args, "--data", data)
    assert (done.status, done.out) == (2, "")
    assert done.error.startswith(f"circadian: {problem}")
    assert [one["id"] for one in waiting(capsys, data)] == [question]
    assert launches.done == []


def test_refuse_does_not_run_the_tool_and_tells_the_model_why(
    capsys: Capture, data: Path, launches: Launches, monkeypatch: Patch
) -> None:
    with serving(monkeypatch, LAUNCH, text("Then not.")) as server:
        question = asked(capsys, data)
        args = ("refuse", question, "--reason", "too early", "--data", data)
        done = circadian(capsys, *args)
    assert (done.status, launches.done) == (0, [])
    first, second, _ = done.out.splitlines()
    assert (first, second) == ("refused launch(target='the moon')", "Then not.")
    assert "local refused it: too early" in server.requests[-1]["messages"][-1]["content"]


def test_a_question_is_named_by_a_prefix_or_not_at_all_if_it_is_alone(
    capsys: Capture, data: Path, launches: Launches, monkeypatch: Patch
) -> None:
    with serving(monkeypatch, LAUNCH, FLIES, LAUNCH, FLIES, LAUNCH, FLIES):
        question = asked(capsys, data)
        assert circadian(capsys, "approve", question[:8], "--data", data).status == 0
        question = asked(capsys, data)
        beginning = question.removeprefix("ask_")[:4]
        assert circadian(capsys, "approve", beginning, "--data", data).status == 0
        asked(capsys, data)
        assert circadian(capsys, "approve", "--data", data).status == 0
    assert len(launches.done) == 3


def test_an_ambiguous_or_unknown_question_lists_those_that_wait(
    capsys: Capture, data: Path, launches: Launches, monkeypatch: Patch
) -> None:
    with serving(monkeypatch, LAUNCH, asking(("launch", {"target": "Mars"}))):
        first, second = asked(capsys, data), asked(capsys, data, "And to Mars")
    listed = (
        f"; waiting: {first} (Run launch(target='the moon')), {second} (Run launch(target='Mars'))"
    )
    for args, problem in (
        ([], "2 questions wait; name one"),
        (["askx"], "no question 'askx' waits for an answer"),
        (["ask_x"], "no question 'ask_x' waits for an answer"),
    ):
        done = circadian(capsys, "approve", *args, "--data", data)
        assert (done.status, done.out) == (2, "")
        assert done.error == f"circadian: {problem}{listed}"
    for given in ("ask_", first[:7], first[4]):
        short = circadian(capsys, "approve", given, "--data", data)
        assert (short.status, "too short for one of the questions" in short.error) == (2, True)
        assert short.error.endswith(", ask_ not counted") == given.startswith("ask_")
    assert launches.done == []


def test_approve_without_a_waiting_question_says_so(capsys: Capture, data: Path) -> None:
    none = circadian(capsys, "approve", "--data", data)
    assert (none.status, data.exists()) == (2, False)
    assert "no data folder" in none.error
    circadian(capsys, "send", "Hello", "--data", data)
    for command in (["approve"], ["refuse", "ask_0"]):
        done = circadian(capsys, *command, "--data", data)
        assert (done.status, done.error) == (2, "circadian: no question waits for an answer")


def test_while_the_agent_is_busy_the_answer_is_kept_and_holds(
    capsys: Capture, data: Path, launches: Launches, monkeypatch: Patch
) -> None:
    with serving(monkeypatch, LAUNCH, FLIES):
        question = asked(capsys, data)
        monkeypatch.setenv("CIRCADIAN_LOCK_TIMEOUT", "0.1")
        with held(data):
            busy = circadian(capsys, "approve", question, "--data", data)
            again = circadian(capsys, "refuse", question, "--data", data)
        assert launches.done == []
        later = circadian(capsys, "tick", "--data", data)
    assert busy.status == 1
    assert busy.error.endswith("; the answer is kept, and the next run acts on it")
    assert again.status == 2
    assert f"{question} was answered before: approved by local" in again.error
    assert (later.status, later.out.splitlines()[:2]) == (0, ["  ✓ launch", "It flies."])
    assert launches.done == ["the moon"]


def test_under_the_emergency_stop_the_answer_is_kept(
    capsys: Capture, data: Path, launches: Launches, monkeypatch: Patch
) -> None:
    with serving(monkeypatch, LAUNCH, FLIES):
        question = asked(capsys, data)
        circadian(capsys, "stop", "--data", data)
        done = circadian(capsys, "approve", question, "--data", data)
        assert (done.status, launches.done) == (1, [])
        circadian(capsys, "clear-stop", "--data", data)
    assert done.error.endswith("The answer is kept; `circadian clear-stop` clears the stop")
    assert launches.done == ["the moon"]


def test_a_question_of_its_own_tick_is_shown_by_tick_and_answered(
    capsys: Capture, data: Path, launches: Launches, monkeypatch: Patch
) -> None:
    goal = asking(("add_goal", {"description": "Reach the moon"}))
    with serving(monkeypatch, goal, text("Noted."), LAUNCH, FLIES):
        circadian(capsys, "send", "Reach the moon", "--data", data)
        done = circadian(capsys, "tick", "--data", data)
        assert (done.status, launches.done) == (0, [])
        assert "? It wants to run launch:" in done.out
        assert "  for     its own goals, " in done.out
        ended = circadian(capsys, "approve", "--data", data, "--json").document
    assert (ended["context_type"], ended["reply"]) == ("tick_autonomous", "It flies.")
    assert launches.done == ["the moon"]
