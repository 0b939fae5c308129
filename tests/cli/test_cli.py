"""The command line: JSON shapes, exit statuses, one line for whatever went wrong."""

import asyncio
import io
import subprocess
import sys
from pathlib import Path

import pytest

from graph.cli.commands.chat import HELP
from graph.cli.program import COMMANDS, load, shared_options_last
from memory.models.offline.model import OfflineChatModel
from tests.support.agents import opened
from tests.support.clock import Clock
from tests.support.commandline import Run, circadian
from tests.support.forked import forked_python

Patch = pytest.MonkeyPatch

Capture = pytest.CaptureFixture[str]
NOTICE = "model: offline (embedded rules, not a language model)."


def in_a_process(*args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [forked_python(), "-m", "graph.cli", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_send_prints_the_reply_and_what_it_cost(run: Run) -> None:
    done = run("send", "Hello there")
    assert done.status == 0
    reply, footer = done.out.splitlines()
    assert reply == "Hello."
    assert footer.startswith("tick 1 · 1 call · ")
    assert "context ░░░░░░░░░░" in footer
    assert done.error.startswith(NOTICE)


def test_send_takes_a_sender_and_a_channel(run: Run) -> None:
    args = ("send", "Hello, I sold the boat", "--from", "Zoe", "--channel", "lobby")
    assert run(*args).out.startswith("Noted: Hello, I sold the boat.")
    heard = run("recall", "boat", "--json").document
    assert [(hit["text"], hit["speaker"]) for hit in heard] == [("Hello, I sold the boat", "Zoe")]


def test_sleep_prints_what_was_learned_and_from_whom(run: Run) -> None:
    run("send", "I moved to Oslo in March", "--from", "Zoe")
    out = run("sleep").out
    assert "make facts" in out
    assert "Learned 1 fact\n • I moved to Oslo in March (Zoe, " in out
    assert " · 1 entity · " in run("status").out


def test_sleep_under_the_emergency_stop_fails_and_says_why(run: Run) -> None:
    run("send", "I moved to Oslo in March")
    run("stop")
    run("send", "Good evening")
    held = run("sleep")
    assert (held.status, held.out) == (1, "")
    assert "Emergency stop: 1 event waits" in held.err


def test_a_message_that_waits_is_answered_after_the_night(
    run: Run, data: Path, clock: Clock
) -> None:
    run("send", "I moved to Oslo in March")

    async def post() -> None:
        async with opened(data, OfflineChatModel(), clock) as agent:
            await agent.post({"text": "Good evening", "sender": "Ana"})

    asyncio.run(post())
    out = run("sleep").out
    assert out.endswith("Then 1 message that waited woke the agent and got an answer.\n")


def test_a_night_with_nothing_to_do_says_so(run: Run) -> None:
    done = run("sleep")
    assert (done.status, done.out.startswith("Nothing to do tonight")) == (0, True)
    assert run("sleep", "--json").document["id"] is None


def test_reading_needs_no_model_key(run: Run, monkeypatch: Patch) -> None:
    run("send", "I moved to Oslo in March")
    monkeypatch.setenv("CIRCADIAN_MODEL", "openai:gpt-4o-mini")
    for command in (["status"], ["recall", "Oslo"]):
        assert run(*command).status == 0


def test_help_lists_every_command_with_a_whole_sentence(capsys: Capture) -> None:
    lines = circadian(capsys, "--help").out.partition("Commands:\n")[2].splitlines()
    assert len(lines) > 20
    assert [line for line in lines if not line.endswith(".") or line.endswith("...")] == []
    assert [line.split()[0] for line in lines] == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_begins_with_its_line_in_the_list(capsys: Capture, name: str) -> None:
    assert (load(name).help or "").splitlines()[0] == COMMANDS[name].help
    done = circadian(capsys, name, "--help")
    assert (done.status, COMMANDS[name].help in done.out) == (0, True)
    assert done.out.startswith(f"Usage: circadian {name} [OPTIONS]")


def test_chat_without_a_terminal_answers_line_by_line(run: Run, monkeypatch: Patch) -> None:
    lines = (
        "Hello\n\n/status\n/nonsense\nAdd a goal: mend the fence\n/recall fence\n/recall\n/sleep\n"
        "/quit\nnot read\n"
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    done = run("chat")
    assert done.status == 0
    assert done.out.startswith("Hello.\n")
    assert "Memory   1 journal entry" in done.out
    assert "Added the goal" in done.out
    assert "Add a goal: mend the fence" in done.out, "recalled"
    assert "Night of" in done.out
    assert "unknown: /nonsense" in done.err
    assert "unknown: /recall;" in done.err
    assert run("status", "--json").document["tick"] == 2


def test_the_briefing_is_shown_to_an_owner_alone(run: Run, monkeypatch: Patch) -> None:
    run("config", "set", "owners", "Ada")
    run("send", "I want to sell the mill", "--from", "Ada")
    run("sleep")

    def times_told(*who: str) -> int:
        monkeypatch.setattr(sys, "stdin", io.StringIO("/status\n"))
        return run("chat", *who).out.count("sell the mill")

    assert times_told("--from", "Ben") == 0
    assert times_told("--from", "Ada") == 2, "greeted with it, and in the status"
    assert times_told() == 1, "only the status tells it twice"


def test_chat_takes_help_and_quit_without_a_slash(run: Run, monkeypatch: Patch) -> None:
    for leave in ("quit", "Exit", "/exit"):
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"help\n{leave}\nnot read\n"))
        done = run("chat")
        assert (done.status, done.out) == (0, "")
        assert done.err.splitlines()[1:] == [HELP]
    assert run("status", "--json").document["tick"] == 0


def test_send_reads_the_message_from_standard_input(run: Run, monkeypatch: Patch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("Add a goal: mend the fence\n"))
    done = run("send", "-", "--json")
    assert done.document["tools"] == [{"name": "add_goal", "ok": True}]


def test_shared_options_may_stand_before_the_command(run: Run, capsys: Capture) -> None:
    done = run("--json", "send", "Hello")
    assert done.document["reply"] == "Hello."
    assert circadian(capsys, "--version").out == "circadian 0.1.0\n"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--json", "status"], ["status", "--json"]),
        (["--data", "x", "send", "hi"], ["send", "--data", "x", "hi"]),
        (["--data=x", "--agent", "a", "tick"], ["tick", "--data=x", "--agent", "a"]),
        (["send", "--data", "x"], ["send", "--data", "x"]),
        (["--version"], ["--version"]),
        ([], []),
    ],
)
def test_leading_shared_options_move_behind_the_command(
    given: list[str], expected: list[str]
) -> None:
    assert shared_options_last(given) == expected


def test_plain_output_has_no_escape_codes_and_no_padding(tmp_path: Path) -> None:
    data = tmp_path / "data"
    lines = [
        in_a_process(*command, "--data", data).stdout
        for command in (("send", "Add a goal: mend the fence"), ("status",), ("sleep",))
    ]
    text = "".join(lines)
    assert "mend the fence" in text.lower()
    assert "\x1b" not in text
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


def test_control_characters_of_a_message_do_not_reach_the_screen(run: Run) -> None:
    evil = "Add a goal: mend \x1b]0;owned\x07 the \x1b[31mfence"
    run("send", evil)
    out = run("status").out
    assert "fence" in out
    assert "\x1b" not in out
    assert "\x07" not in out
