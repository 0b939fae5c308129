"""Ctrl-C: one line on stderr and status 130, wherever it comes; in chat a half-typed line goes."""

import os
import pty
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.cli.commands import chat
from graph.cli.commands.chat import HELP, _read
from tests.support.commandline import circadian
from tests.support.forked import ForkedPython, forked_python, started

Capture = pytest.CaptureFixture[str]
LINE = "circadian: interrupted; whatever was received is kept, the next run goes on"
IMPORTED = """
import sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from graph.cli.__main__ import main
sys.exit(main(["chat", "--data", {data!r}]))
"""


@pytest.mark.parametrize("name", ["typer", "langgraph"])
def test_an_interrupted_import_says_so_in_one_line(tmp_path: Path, name: str) -> None:
    code = IMPORTED.format(name=name, data=str(tmp_path / "data"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()) == (130, [LINE])


def test_an_interrupted_send_says_so_in_one_line(capsys: Capture, tmp_path: Path) -> None:
    """The server never answers; Ctrl-C ends the wait with status 130."""
    command = ["-m", "graph.cli", "send", "hi", "--data", str(tmp_path / "data")]
    command += ["--model", "openai:none", "--embedder", "offline"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        process = ForkedPython(command, {"OPENAI_BASE_URL": url})
        asked, _ = server.accept()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        asked.close()
    assert process.stderr.read().splitlines() == [LINE]
    process.close()
    status = circadian(capsys, "status", "--data", tmp_path / "data", "--json").document
    assert status["inbox"]["waiting"] == 1


def test_a_reader_that_has_left_ends_a_send_without_a_traceback(
    capsys: Capture, tmp_path: Path
) -> None:
    """As `circadian send ... | head -0` does; the message waits."""
    command = [forked_python(), "-m", "graph.cli", "send", "The tea is green."]
    command += ["--data", str(tmp_path / "data"), "--model", "offline", "--embedder", "offline"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if not line.startswith("model: ")] == []
    status = circadian(capsys, "status", "--data", tmp_path / "data", "--json").document
    assert status["inbox"]["waiting"] == 1


def test_the_demo_interrupted_says_so_once(tmp_path: Path) -> None:
    """Ctrl-C in a terminal reaches every process of the group."""
    command = ["-m", "graph.cli", "demo", "--data", str(tmp_path / "data")]
    command += ["--model", "openai:none", "--embedder", "offline"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        env = {**os.environ, "OPENAI_BASE_URL": f"http://127.0.0.1:{server.getsockname()[1]}/v1"}
        process = started(command, env, tmp_path, tmp_path / "log", cold=False)
        asked, _ = server.accept()
        assert process.pid is not None
        os.killpg(process.pid, signal.SIGINT)
        process.join(60)
        asked.close()
    told = (tmp_path / "log").read_text().splitlines()
    assert (process.exitcode, told.count(LINE), told[-1]) == (130, 1, LINE)
    assert "Traceback" not in "".join(told)


def test_a_part_of_the_demo_has_a_process_group_of_its_own(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in a terminal must not reach it twice: from the terminal, and from the demo."""
    script = tmp_path / "part"
    script.write_text(f"#!{sys.executable}\nimport os\nexit(os.getpgrp() != os.getpid())\n")
    script.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(script))
    done = circadian(capsys, "demo", "--model", "offline", "--data", tmp_path / "data")
    assert "no data folder" in done.err.splitlines()[-1], "the part did not end with status 0"


def test_in_chat_a_half_typed_line_is_dropped_and_an_empty_one_ends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typed: Iterator[str | type[KeyboardInterrupt]] = iter(
        [KeyboardInterrupt, " Hello ", KeyboardInterrupt]
    )

    def line(prompt: str) -> str:
        one = next(typed)
        if isinstance(one, str):
            return one
        raise one

    half = iter([True, False])
    monkeypatch.setattr("builtins.input", line)
    monkeypatch.setattr(chat, "_half_typed", lambda: next(half))
    assert _read() == "Hello"
    with pytest.raises(KeyboardInterrupt):
        _read()


@pytest.mark.slow  # a terminal in real time: on a busy machine the signal may come between prompts
def test_in_chat_it_clears_a_half_typed_line_and_leaves_on_an_empty_one(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "graph.cli", "chat", "--data", str(tmp_path / "data")]
    with subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "dumb", "COLUMNS": "200"},
    ) as process:
        try:
            _read_until(ours, HELP)
            _read_until(ours, "> ")
            os.write(ours, b"half a li")
            _read_until(ours, "half a li")
            time.sleep(0.5)  # the terminal echoes before the prompt waits again
            process.send_signal(signal.SIGINT)
            _read_until(ours, "> ")
            os.write(ours, b"Hello\n")
            _read_until(ours, "tick 1")
            _read_until(ours, "> ")
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            last = _read_until(ours, LINE)
            assert process.wait(timeout=20) == 130
        finally:
            process.kill()
            os.close(theirs)
            os.close(ours)
    assert "Traceback" not in last


def _read_until(terminal: int, wanted: str) -> str:
    """What the terminal shows up to `wanted`."""
    seen = b""
    while wanted.encode() not in seen:
        assert select.select([terminal], [], [], 20)[0], f"{seen!r} without {wanted!r}"
        seen += os.read(terminal, 1)
    return seen.decode()
