"""`circadian run` as a process of its own, with a model behind a socket that a test holds up.

The processes are forked; `tests/frozen/test_processes.py` starts the command itself.
"""

import asyncio
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from graph.agent import open_agent
from graph.cli.commands.run import _until_told
from graph.following import Listener
from tests.support.commandline import Run
from tests.support.forked import ForkedPython
from tests.support.openai_server import OpenAIServer, Reply, text, tool_call

HI = {"id": "e1", "text": "What is up?", "sender": "Ada"}


class Held(OpenAIServer):
    def __init__(self, *replies: Reply) -> None:
        super().__init__(*replies)
        self.let_go = threading.Event()

    def next_reply(self, body: dict[str, Any]) -> Reply:
        reply = super().next_reply(body)
        self.let_go.wait(30)
        return reply


class Runner:
    """A `circadian run --json`, and the lines it wrote so far."""

    def __init__(self, data: Path, *options: str, model: OpenAIServer | None = None) -> None:
        command = ["-m", "graph.cli", "run", "--json", "--data", str(data)]
        command += ["--embedder", "offline", "--tick-rate", "0.1", "--tick-rate-sleep", "0.1"]
        command += ["--model", "openai:none" if model else "offline", *options]
        url = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "none"} if model else {}
        self.lines: list[dict[str, Any]] = []
        self.process = ForkedPython(command, url)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.append(json.loads(line))

    def of(self, what: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["what"] == what]

    def ended(self, told: signal.Signals | None = None) -> int:
        if told is not None:
            self.process.send_signal(told)
        status = self.process.wait(30)
        self._reader.join(5)
        return status

    def error(self) -> str:
        return self.process.stderr.read()

    def close(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self._reader.join(10)
        self.process.close()


@pytest.fixture
def running() -> Iterator[Callable[..., Runner]]:
    made: list[Runner] = []

    def start(data: Path, *options: str, model: OpenAIServer | None = None) -> Runner:
        made.append(Runner(data, *options, model=model))
        return made[-1]

    yield start
    for runner in made:
        runner.close()


def until(true: Callable[[], object], seconds: float = 60) -> None:
    last = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < last, "it did not come to that"
        time.sleep(0.02)


def post(data: Path, *events: dict[str, Any]) -> None:
    with open_agent(data, model="offline", embedder="offline") as agent:
        agent.post(list(events))


def state(data: Path) -> dict[str, Any]:
    with open_agent(data, model="offline", embedder="offline") as agent:
        return dict(agent.get_state().values)


def test_it_answers_what_is_posted_and_what_is_sent_beside_it(
    run: Run, tmp_path: Path, running: Callable[..., Runner]
) -> None:
    data = tmp_path / "data"
    runner = running(data)
    until(lambda: runner.of("resting"))
    post(data, HI)
    until(lambda: len(runner.of("resting")) == 2)
    sent = run("send", "Hello", "--model", "offline", "--json")
    until(lambda: runner.lines[-1]["what"] == "resting")
    assert runner.ended(signal.SIGTERM) == 0
    assert sent.status == 0
    assert sent.document["reply"]
    told = [line["what"] for line in runner.lines]
    assert told[:5] == ["started", "resting", "event", "tick", "resting"]
    assert told[-2:] == ["ending", "ended"]
    assert runner.of("event")[0]["text"] == "What is up?"
    assert runner.of("tick")[0]["event_id"] == "e1"
    assert state(data)["tick"] == 2
    assert "Traceback" not in runner.error()


async def test_it_ends_also_where_its_reader_has_left() -> None:
    class Left(Listener):
        def ending(self) -> None:
            raise BrokenPipeError

        def ended(self, *, at_once: bool) -> None:
            raise BrokenPipeError

    class Waiting:
        def __init__(self) -> None:
            self.told = asyncio.Event()
            self.end = self.told.set

        async def run(self) -> None:
            await self.told.wait()

    asyncio.get_running_loop().call_later(0.01, signal.raise_signal, signal.SIGTERM)
    scheduler, watcher = cast(Any, Waiting()), cast(Any, Left())
    with pytest.raises(BrokenPipeError):
        await asyncio.wait_for(_until_told(scheduler, watcher), 10)


@pytest.mark.parametrize("how", ["once", "twice", "kill"])
def test_a_signal_in_a_slow_model_call_loses_nothing_and_the_first_keeps_the_answer(
    tmp_path: Path, running: Callable[..., Runner], how: str
) -> None:
    data = tmp_path / "data"
    post(data, HI)
    answer = tool_call("noop", {}) if how == "once" else text("lost")
    with Held(answer, text("Not much.")) as model:
        runner = running(data, model=model)
        until(lambda: model.requests)
        if how == "kill":
            assert runner.ended(signal.SIGKILL) == -signal.SIGKILL
        else:
            runner.process.send_signal(signal.SIGTERM)
            until(lambda: runner.of("ending"))
            assert runner.process.poll() is None
        if how == "once":
            model.let_go.set()
            assert (runner.ended(), len(model.requests)) == (0, 1)
        elif how == "twice":
            assert runner.ended(signal.SIGTERM) == 130
            assert runner.of("ended")[0]["at_once"] is True
            assert "Traceback" not in runner.error()
        model.let_go.set()
        again = running(data, model=model)
        until(lambda: again.of("tick"))
        assert again.ended(signal.SIGINT) == 0
    assert (again.of("tick")[0]["reply"], len(model.requests)) == ("Not much.", 2)
    assert state(data)["tick"] == 1


def test_started_within_its_hours_it_sleeps_and_a_message_wakes_it(
    tmp_path: Path, running: Callable[..., Runner]
) -> None:
    data = tmp_path / "data"
    post(data, {"id": "h1", "text": "Ada moved to Oslo", "sender": "Ben", "addressed": False})
    hour = str(datetime.now(UTC).hour)
    runner = running(data, "--sleep-at", hour, "--sleep-hours", "2")
    until(lambda: runner.of("night"))
    until(lambda: runner.lines[-1]["what"] == "resting")
    assert runner.ended(signal.SIGTERM) == 0
    again = running(data, "--sleep-at", hour, "--sleep-hours", "2")
    until(lambda: again.of("resting"))
    post(data, HI)
    until(lambda: again.of("tick"))
    assert again.ended(signal.SIGTERM) == 0
    (night,) = runner.of("night")
    assert (night["complete"], night["operations"] > 0) == (True, True)
    assert runner.of("fell_asleep")[0]["why"] == "schedule"
    assert again.of("night") == [], "once in a window, also after a restart"
    assert again.of("woke")[0]["why"] == "event"
