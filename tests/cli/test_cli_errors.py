"""What goes wrong on the command line: one line on stderr, no traceback, the right status."""

import asyncio
import io
import os
import sys
from pathlib import Path

import pytest

from graph.cli import access
from memory.models.offline.model import OfflineChatModel
from tests.support.agents import opened
from tests.support.clock import Clock
from tests.support.commandline import Run, circadian
from tests.support.homes import held
from tests.support.openai_server import Serve, error, text

Patch = pytest.MonkeyPatch

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def refusing_model(serve: Serve) -> str:
    """The name of a model whose server answers its first three calls with 400."""

    serve(*[error(400, "this request is wrong")] * 3)
    return "openai:none"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["nonsense"], "nonsense"),
        (["send"], "Missing argument 'TEXT'"),
        (["send", "hi", "--nonsense"], "--nonsense"),
        (["--nonsense"], "--nonsense"),
        (["chat", "--json"], "--json"),
        (["recall", "x", "-k", "0"], "-k"),
        (["recall", "x", "-k", "many"], "-k"),
        (["recall", "bees", "-k", "1001"], "at most 1,000 memories; --all gives all"),
        (["recall"], "say what to look for, or see everything with --all"),
        (["recall", "--explain"], "say what to look for"),
        (["recall", "--all", "--explain"], "--all ranks nothing"),
        (["forget", "--yes"], "name whom to forget, or a fact (--fact ID)"),
        (["forget", "Zora", "--fact", "x", "--yes"], "name whom to forget, or a fact (--fact ID)"),
        (["run", "--sleep-at", "24"], "--sleep-at"),
        (["run", "--sleep-hours", "3"], "give --sleep-at HOUR too"),
        (["run", "--sleep-at", "2", "--time-zone", "Mars"], "no time zone is called 'Mars'"),
        (["run", "--tick-rate", "0"], "--tick-rate"),
        (["run", "--fatigue", "2"], "--fatigue"),
        (["sleep", "--dry-run", "--apply", "x"], "--dry-run applies nothing, and --apply does"),
        (["demo", "--inspect", "--json"], "leave one out"),
        (["send", "mend", "the", "fence"], "several words that belong together stand in quotes"),
    ],
)
def test_bad_usage_is_one_line_and_status_2(
    run: Run, data: Path, args: list[str], told: str
) -> None:
    done = run(*args)
    assert (done.status, done.out) == (2, "")
    assert done.error.startswith("circadian: ")
    assert told in done.error
    assert not data.exists()


@pytest.mark.parametrize(
    "command",
    [
        *(["status"], ["recall", "x"], ["retry"], ["log"], ["nights"], ["night", "last"]),
        *(["undo", "last"], ["prompt"], ["prompt", "--rollback", "0"], ["correct", "x", "y"]),
        *(["forget", "Zora", "--yes"], ["export"], ["reindex"], ["approve"], ["refuse"]),
        ["sleep", "--apply", "last"],
    ],
)
def test_reading_makes_no_data_folder(run: Run, data: Path, command: list[str]) -> None:
    done = run(*command)
    assert done.status == 2
    assert done.error == f"circadian: no data folder at {data}; `circadian send` makes one"
    assert not data.exists()


@pytest.mark.parametrize(
    ("args", "variables", "told"),
    [
        (("hi", "--model", "nonsense"), {}, "nonsense"),
        (("hi", "--model", ":"), {}, ":"),
        (("hi", "--model", "openai:"), {}, "openai:"),
        (("hi", "--model", "no_such_provider:x"), {}, "no_such_provider"),
        (("hi", "--model", "openai:gpt-4o-mini"), {}, "OPENAI_API_KEY"),
        (("  ",), {}, "circadian: the message is empty"),
        (("hi",), {"CIRCADIAN_LOCK_TIMEOUT": "soon"}, "CIRCADIAN_LOCK_TIMEOUT"),
        (("hi",), {"CIRCADIAN_LOG_LEVEL": "LOUD"}, "CIRCADIAN_LOG_LEVEL"),
        (("hi",), {"CIRCADIAN_LOG_FORMAT": "xml"}, "CIRCADIAN_LOG_FORMAT"),
    ],
)
def test_what_cannot_be_sent_is_one_line_and_status_2(
    run: Run,
    data: Path,
    monkeypatch: Patch,
    args: tuple[str, ...],
    variables: dict[str, str],
    told: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = run("send", *args)
    assert (done.status, done.out, told in done.error) == (2, "", True)
    assert not (data / "checkpoints.db").exists()


def test_an_empty_name_is_not_the_current_folder(
    capsys: Capture, tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = circadian(capsys, "send", "Hello", "--data", "")
    assert (done.status, "'--data': it is empty" in done.error) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_an_agent_that_is_busy_keeps_the_message(run: Run, data: Path, monkeypatch: Patch) -> None:
    run("send", "Hello")
    monkeypatch.setenv("CIRCADIAN_LOCK_TIMEOUT", "0.1")
    with held(data):
        done = run("send", "Hello again")
        seen = run("status", "--json")
    assert (done.status, done.out) == (1, "")
    assert "the message is kept in the inbox" in done.err
    assert seen.document["inbox"]["waiting"] == 1
    assert run("tick", "--json").document["mode"] == "awake"
    assert run("status", "--json").document["tick"] == 2


def test_a_tick_that_fails_says_what_happens_to_the_message(run: Run, refusing_model: str) -> None:
    args = ("--model", refusing_model, "--embedder", "offline")
    done = run("send", "Hello", *args)
    assert (done.status, done.out) == (1, "")
    assert done.error.endswith("this request is wrong (kept in the inbox, attempt 1 of 3)")
    for _ in range(2):
        run("tick", *args)
    status = run("status", "--json").document
    assert len(status["inbox"]["set_aside"]) == 1
    assert "this request is wrong" in status["inbox"]["set_aside"][0]["error"]
    assert run("doctor").status == 1
    assert 'local "Hello": ' in run("status").out


def test_what_was_set_aside_is_retried_while_another_process_holds_the_agent(
    run: Run, data: Path, refusing_model: str
) -> None:
    args = ("--model", refusing_model, "--embedder", "offline")
    run("send", "Hello", *args)
    for _ in range(2):
        run("tick", *args)
    aside = run("status", "--json").document["inbox"]["set_aside"]
    assert [list(one) for one in aside] == [["id", "error"]]
    unknown = run("retry", "nonsense")
    assert (unknown.status, unknown.out) == (2, "")
    assert unknown.error == "circadian: no event nonsense is set aside"
    with held(data):
        done = run("retry", aside[0]["id"], "--json")
    assert (done.status, done.document) == (0, {"retried": [aside[0]["id"]]})
    now = run("status", "--json").document
    assert now["inbox"] == {"waiting": 1, "set_aside": []}
    assert run("retry").out == "Nothing is set aside.\n"
    assert run("tick", "--model", "offline").status == 0
    assert run("status", "--json").document["tick"] == 1


def test_send_reports_every_failure_of_its_run(
    run: Run, serve: Serve, data: Path, clock: Clock
) -> None:
    async def post() -> None:
        async with opened(data, OfflineChatModel(), clock) as agent:
            await agent.post({"id": "e1", "text": "Good evening", "sender": "Ana"})

    asyncio.run(post())
    serve(error(400, "this request is wrong"), text("Hi"))
    done = run("send", "Hello", "--model", "openai:none")
    assert (done.status, done.out.splitlines()[0]) == (0, "Hi")
    assert done.error.startswith("e1: the model call failed: ")
    assert done.error.endswith("this request is wrong (kept in the inbox, attempt 1 of 3)")


def test_a_binary_message_is_one_line_and_status_2(run: Run, monkeypatch: Patch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(b"\xff\xfe\xfd"), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", stream)
    done = run("send", "-")
    assert (done.status, done.error) == (2, "circadian: standard input is not UTF-8 text")


@pytest.mark.parametrize("command", ["send", "replay"])
def test_a_waiting_command_names_the_process_it_waits_for(
    run: Run, data: Path, monkeypatch: Patch, command: str
) -> None:
    run("send", "Hello")
    file = data / "one.jsonl"
    file.write_text('{"id": "e1", "at": "2026-03-02T09:00:00", "sender": "Ada", "text": "Hi"}\n')
    args = (command, str(file) if command == "replay" else "Hi")
    monkeypatch.setattr(access, "PATIENCE", 0.05)
    monkeypatch.setenv("CIRCADIAN_LOCK_TIMEOUT", "0.3")
    with held(data, role="test"):
        done, silent = run(*args), run(*args, "--json")
    line = f"the message is in the inbox; waiting for process {os.getpid()} (test), up to 0.3 s"
    assert (done.status, done.err.splitlines().count(line)) == (1, 1)
    assert "waiting for" not in silent.err
    assert "waiting for" not in run("tick").err


def test_a_failed_night_says_that_its_work_is_kept(run: Run, data: Path) -> None:
    run("send", "I moved to Oslo in March")
    for file in data.glob("facts.db*"):
        file.unlink()
    (data / "facts.db").write_bytes(b"not a database" * 100)
    done = run("sleep", "--json")
    assert (done.status, done.out) == (1, "")
    line = done.err.splitlines()[-1]
    assert line.startswith(f"circadian: the night stopped: {data / 'facts.db'}: ")
    assert line.endswith("what was done is kept, and the next run goes on from there")
