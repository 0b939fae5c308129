"""`langgraph dev` as a forked process on a free loopback port: started, killed, started again.

Two servers are shared by all tests of a process, as fixtures that conftest.py registers: a start
takes seconds. Each test has an agent, or users, of its own.

- `server`: no users but the local one.
- `token_server`: users with tokens signed by `SECRET`.

A test that needs other variables, or that kills its server, starts one of its own.
"""

import json
import os
import random
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Self

import pytest

from tests.support.forked import started
from tests.support.source_files import ROOT

SECRET = "a secret for tests that is long enough"
START_SECONDS = 90.0
"""At most so long until it answers; alone on a machine it takes four."""


class Server:
    """The graph that langgraph.json names, over `folder / "data"`, with neither key nor network.

    It works in `folder`, where it keeps its own files. The environment is the test's: of the
    configuration it leaves out `env`, since a person's file would come before it. The application
    is the product's, through `tests.support.served`, which lets no run wait.
    """

    def __init__(self, folder: Path, *, cold: bool = False, **variables: str) -> None:
        self.folder = folder
        self._cold = cold
        self._variables = variables
        self.data = folder / "data"
        self.url = ""
        self._log = folder / "server.log"
        self._process: BaseProcess | None = None

    def start(self) -> Self:
        assert self._process is None, "it runs already"
        self._configure()
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}"
        command = ["-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
        command += ["--n-jobs-per-worker", "10"]  # as `make studio` does
        command += ["--host", "127.0.0.1", "--port", str(port)]
        self._process = started(
            command, self._environment(), self.folder, self._log, cold=self._cold
        )
        try:
            self._wait(time.monotonic() + START_SECONDS)
        except BaseException:
            self.kill()
            raise
        return self

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """SIGKILL: it has no chance to write anything more. Does nothing where it does not run."""
        process, self._process = self._process, None
        if process is not None:
            _kill(process)

    def terminate(self, seconds: float = 60.0) -> None:
        """SIGTERM, as an operator stops it; waits for its end."""
        process, self._process = self._process, None
        assert process is not None, "it does not run"
        process.terminate()
        _end_of(process, seconds)

    def ended(self, seconds: float) -> int:
        process, self._process = self._process, None
        assert process is not None, "it does not run"
        return _end_of(process, seconds)

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log().split("\n") if line.startswith("{")]

    def _configure(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        config = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
        del config["env"]
        config["dependencies"] = [str(ROOT)]
        parts = ("checkpointer", "store", "auth")
        for part in (config["graphs"]["agent"], *(config[name] for name in parts)):
            part["path"] = str(ROOT / part["path"])
        config["http"]["app"] = str(ROOT / "tests/support/served.py:app")
        (self.folder / "langgraph.json").write_text(json.dumps(config), encoding="utf-8")

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "CIRCADIAN_DATA": str(self.data),
            "CIRCADIAN_OFFLINE": "1",
            "LANGGRAPH_CLI_NO_ANALYTICS": "1",
            "LANGGRAPH_NO_VERSION_CHECK": "1",
            "LOG_JSON": "true",
            **self._variables,
        }

    def _wait(self, deadline: float) -> None:
        assert self._process is not None
        while not self._answers():
            if self._process.exitcode is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start:\n{self.log()[-4000:]}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/ok", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False


def until(reached: Callable[[], bool], told: Callable[[], object]) -> None:
    """Wait until it is as asked, for half a minute at most; `told`: what to say where it is not."""
    deadline = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < deadline, told()
        time.sleep(0.02)


def _end_of(process: BaseProcess, seconds: float) -> int:
    process.join(seconds)
    status = process.exitcode
    _kill(process)
    assert status is not None, f"the server did not end in {seconds} s"
    return status


def _kill(process: BaseProcess) -> None:
    if process.exitcode is None:
        assert process.pid is not None
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.join()


def _free_port() -> int:
    """A port below those that the kernel hands out by itself.

    A server takes seconds to listen. Meanwhile the kernel may give a port of its own range to
    another test's server, which would then answer in place of this one.
    """
    for port in random.SystemRandom().sample(range(20_000, 32_000), k=100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise RuntimeError("no free port between 20000 and 32000")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server without users."""
    with Server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="session")
def token_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose users have tokens."""
    folder = tmp_path_factory.mktemp("token-server")
    with Server(folder, CIRCADIAN_TOKEN_SECRET=SECRET) as running:
        yield running
