"""What goes wrong on the command line: one line on stderr, no traceback, the right status."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.lock import AgentLock
from memory.scope import LOCAL_USER, thread_id
from tests.commandline import circadian
from tests.openai_server import OpenAIServer, error

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def refusing_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a model whose server answers its first three calls with 400."""

    with OpenAIServer(*[error(400, "this request is wrong")] * 3) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        yield "openai:none"


@pytest.mark.parametrize(
    "args",
    [
        ["nonsense"],
        ["send"],
        ["send", "hi", "--nonsense"],
        ["recall", "x", "-k", "0"],
        ["recall", "x", "-k", "many"],
        ["--nonsense"],
        ["chat", "--json"],
    ],
)
def test_bad_usage_is_one_line_and_status_2(capsys: Capture, args: list[str]) -> None:
    done = circadian(capsys, *args)
    assert (done.status, done.out) == (2, "")
    assert done.error.startswith("circadian: ")


@pytest.mark.parametrize("command", [["status"], ["recall", "x"], ["doctor"]])
def test_reading_makes_no_data_folder(capsys: Capture, data: Path, command: list[str]) -> None:
    done = circadian(capsys, *command, "--data", data)
    assert done.status == 2
    assert done.error == f"circadian: no data folder at {data}; `circadian send` makes one"
    assert not data.exists()


def test_an_unwritable_data_folder_is_one_line_and_status_2(
    capsys: Capture, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    done = circadian(capsys, "send", "hi", "--data", file / "data")
    assert (done.status, done.out) == (2, "")
    assert str(file) in done.error


def test_a_folder_of_a_newer_schema_is_one_line_and_status_2(capsys: Capture, data: Path) -> None:
    data.mkdir()
    head = {"schema_version": 99, "embedder": "offline", "dimension": 1}
    (data / "folder.json").write_text(json.dumps(head))
    for command in (["send", "hi"], ["status"], ["sleep"]):
        done = circadian(capsys, *command, "--data", data)
        assert (done.status, done.out) == (2, "")
        assert "newer" in done.error


@pytest.mark.parametrize("name", ["nonsense", ":", "openai:", "no_such_provider:x"])
def test_an_unknown_model_name_is_one_line_and_status_2(
    capsys: Capture, data: Path, name: str
) -> None:
    done = circadian(capsys, "send", "hi", "--data", data, "--model", name)
    assert (done.status, done.out) == (2, "")
    assert "Traceback" not in done.error
    assert not (data / "checkpoints.db").exists()


def test_a_missing_key_is_one_line_and_status_2(capsys: Capture, data: Path) -> None:
    done = circadian(capsys, "send", "hi", "--data", data, "--model", "openai:gpt-4o-mini")
    assert (done.status, done.out) == (2, "")
    assert "OPENAI_API_KEY" in done.error


def test_another_embedder_is_one_line_and_status_2(capsys: Capture, data: Path) -> None:
    circadian(capsys, "send", "hi", "--data", data)
    other = ("--embedder", "openai:text-embedding-3-small")
    for command in (["send", "hi"], ["recall", "x"]):
        done = circadian(capsys, *command, "--data", data, *other)
        assert (done.status, done.out) == (2, "")
        assert "embedder" in done.error


def test_an_empty_message_is_one_line_and_status_2(capsys: Capture, data: Path) -> None:
    done = circadian(capsys, "send", "  ", "--data", data)
    assert (done.status, done.out) == (2, "")
    assert done.error == "circadian: the message is empty"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("CIRCADIAN_LOCK_TIMEOUT", "soon"),
        ("CIRCADIAN_LOG_LEVEL", "LOUD"),
        ("CIRCADIAN_LOG_FORMAT", "xml"),
    ],
)
def test_a_variable_that_is_wrong_is_named(
    capsys: Capture, data: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    done = circadian(capsys, "send", "hi", "--data", data)
    assert (done.status, done.out) == (2, "")
    assert variable in done.error


def test_an_agent_that_is_busy_keeps_the_message(
    capsys: Capture, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    circadian(capsys, "send", "Hello", "--data", data)
    monkeypatch.setenv("CIRCADIAN_LOCK_TIMEOUT", "0.1")
    lock = AgentLock(data / "locks", thread_id(LOCAL_USER, "default"))
    asyncio.run(lock.acquire())
    done = circadian(capsys, "send", "Hello again", "--data", data)
    seen = circadian(capsys, "status", "--data", data, "--json")
    lock.release()
    assert (done.status, done.out) == (1, "")
    assert "the message is kept in the inbox" in done.err
    assert seen.document["inbox"]["waiting"] == 1
    assert circadian(capsys, "tick", "--data", data, "--json").document["mode"] == "awake"
    assert circadian(capsys, "status", "--data", data, "--json").document["tick"] == 2


def test_a_tick_that_fails_says_what_happens_to_the_message(
    capsys: Capture, data: Path, refusing_model: str
) -> None:
    args = ("--data", data, "--model", refusing_model, "--embedder", "offline")
    done = circadian(capsys, "send", "Hello", *args)
    assert (done.status, done.out) == (1, "")
    assert done.error.endswith("this request is wrong (kept in the inbox, attempt 1 of 3)")
    for _ in range(2):
        circadian(capsys, "tick", *args)
    status = circadian(capsys, "status", "--data", data, "--json").document
    assert len(status["inbox"]["set_aside"]) == 1
    assert "this request is wrong" in status["inbox"]["set_aside"][0]["error"]
    assert circadian(capsys, "doctor", "--data", data).status == 1


def test_a_night_that_breaks_says_that_what_it_did_is_kept(capsys: Capture, data: Path) -> None:
    circadian(capsys, "send", "I moved to Oslo in March", "--data", data)
    for file in data.glob("facts.db*"):
        file.unlink()
    (data / "facts.db").write_bytes(b"not a database" * 100)
    done = circadian(capsys, "sleep", "--data", data, "--json")
    assert (done.status, done.out) == (1, "")
    line = done.err.splitlines()[-1]
    assert line.startswith("circadian: the night stopped: semantic memory")
    assert line.endswith("what was done is kept, and the next run goes on from there")


def test_interrupted_it_says_so_in_one_line(capsys: Capture, tmp_path: Path) -> None:
    """The server never answers; Ctrl-C ends the wait with status 130."""
    command = [sys.executable, "-m", "graph.cli", "send", "hi", "--data", str(tmp_path / "data")]
    command += ["--model", "openai:none", "--embedder", "offline"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        env = {**os.environ, "OPENAI_BASE_URL": url}
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env) as process:
            asked, _ = server.accept()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=20)
            asked.close()
    assert process.returncode == 130
    assert err.splitlines() == [
        "circadian: interrupted; whatever was received is kept, the next run goes on"
    ]
    status = circadian(capsys, "status", "--data", tmp_path / "data", "--json").document
    assert status["inbox"]["waiting"] == 1
