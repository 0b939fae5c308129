"""One process that has the product imported and forks the others: a start takes milliseconds.

`forks()` is the multiprocessing context for functions of the tests. `forked_python()` is the path
of an executable that takes what `python` takes: `-c CODE` or `-m MODULE`, with arguments, an
environment and a working folder. It hands them, with its standard streams, to a forked process, and
ends as that one ends; killed, it takes that process with it. It passes no signal on: a test that
sends one starts a `ForkedPython`. Neither is for tests of imports.
"""

import atexit
import contextlib
import functools
import gc
import importlib.util
import json
import multiprocessing
import os
import runpy
import select
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

PRELOADED = (
    "graph.cli.program",
    "graph.agent",
    "memory.facts.mem0",
    "memory.models",
    "tests.support.crash_worker",
    "tests.support.writers",
    "tests.support.lived_in",
)
CLIENT = """#!{python} -IS
import json, os, signal, socket, sys
asking = socket.socket(socket.AF_UNIX)
asking.connect({address!r})
told = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode()
socket.send_fds(asking, [len(told).to_bytes(8, "big")], [0, 1, 2])
asking.sendall(told)
for file in (0, 1, 2):
    os.close(file)
status = int(asking.recv(16) or b"1")
if status < 0:
    signal.signal(-status, signal.SIG_DFL) if status != -9 else None
    os.kill(os.getpid(), -status)
os._exit(status)
"""


@functools.cache
def forks() -> ForkServerContext:
    """The context whose processes are forked from the one with everything imported."""
    # The server itself ignores a module that it cannot import.
    assert all(importlib.util.find_spec(name) for name in PRELOADED)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOADED])
    with pytest.MonkeyPatch.context() as patch:
        # One test's settings are not those of every process that is forked later.
        for name in [name for name in os.environ if name.startswith("CIRCADIAN_")]:
            patch.delenv(name)
        for name, value in (
            ("MEM0_TELEMETRY", "False"),  # read when Mem0 is imported
            ("OPENBLAS_NUM_THREADS", "1"),
            ("OMP_NUM_THREADS", "1"),
        ):
            patch.setenv(name, value)
        forkserver.ensure_running()
    return context


@functools.cache
def forked_python() -> str:
    """The executable; what serves it is started with it and ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="circadian-fork-"))
    address, client = folder / "socket", folder / "python"
    client.write_text(CLIENT.format(python=sys.executable, address=str(address)))
    client.chmod(0o700)
    started, starts = forks().Pipe(duplex=False)
    forks().Process(target=serve, args=(str(address), starts), daemon=True).start()
    starts.close()
    assert started.poll(60), "the server of forked processes did not start"
    started.close()
    return str(client)


class ForkedPython:
    """A forked `python` as `subprocess.Popen` would start it; it takes any signal."""

    def __init__(self, arguments: list[str], variables: dict[str, str] | None = None) -> None:
        (out, out_end), (err, err_end) = (forks().Pipe(duplex=False) for _ in range(2))
        given = (out_end, err_end, arguments, {**os.environ, **(variables or {})}, os.getcwd())
        self._process = forks().Process(target=_become, args=given, daemon=True)
        self._process.start()
        self.stdout, self.stderr = (os.fdopen(os.dup(end.fileno())) for end in (out, err))
        for end in (out, out_end, err, err_end):
            end.close()

    def send_signal(self, sent: signal.Signals) -> None:
        """Send a signal, or do nothing once the process has ended."""
        if self.poll() is None:
            assert self._process.pid is not None
            os.kill(self._process.pid, sent)

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while the process runs."""
        return self._process.exitcode

    def wait(self, seconds: float) -> int:
        """Wait for the exit status. Raises AssertionError when the process does not end."""
        self._process.join(seconds)
        status = self.poll()
        assert status is not None, f"the process did not end in {seconds} s"
        return status

    def close(self) -> None:
        """Kill the process if it still runs, and close its streams."""
        self._process.kill()
        self._process.join(60)
        self.stdout.close()
        self.stderr.close()


def started(
    arguments: list[str], variables: dict[str, str], folder: Path, log: Path, *, cold: bool
) -> BaseProcess:
    """A `python` with an environment and a session of its own; it logs.

    A cold one imports everything anew.
    """
    given = (arguments, variables, str(folder), str(log), cold)
    process = forks().Process(target=_become_leader, args=given, daemon=True)
    process.start()
    return process


def _become_leader(
    arguments: list[str], variables: dict[str, str], folder: str, log: str, cold: bool
) -> None:
    os.setsid()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    told = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    files = [os.open(os.devnull, os.O_RDONLY), told, os.dup(told)]
    if not cold:
        run(files, arguments, variables, folder)
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.chdir(folder)
    os.execve(sys.executable, [sys.executable, *arguments], variables)


def _become(
    out: Connection, err: Connection, arguments: list[str], variables: dict[str, str], folder: str
) -> None:
    gc.freeze()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    run(
        [os.open(os.devnull, os.O_RDONLY), out.fileno(), err.fileno()], arguments, variables, folder
    )


def serve(address: str, starts: Connection) -> None:
    """Fork a process for each connection, until the process that started this one ends."""
    gc.freeze()  # no forked process looks for garbage in what was imported
    parent = multiprocessing.parent_process()
    assert parent is not None
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that supervise
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        starts.send(None)
        starts.close()
        waited = [listening.fileno(), parent.sentinel]
        while listening.fileno() in select.select(waited, [], [])[0]:
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                supervise(connection)
            connection.close()


def supervise(connection: socket.socket) -> None:
    """Run what is asked for in a process of its own, and tell how it ended; never returns."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, files, _, _ = socket.recv_fds(connection, 8, 3)
    told = b""
    while len(told) < int.from_bytes(size, "big"):
        told += connection.recv(1 << 16)
    pid = os.fork()
    if pid == 0:
        connection.close()
        run(files, *json.loads(told))
    for file in (0, 1, 2, *files):
        os.close(file)
    child = os.pidfd_open(pid)
    asking = connection.fileno()
    if asking in select.select([asking, child], [], [])[0]:
        os.kill(pid, signal.SIGKILL)  # who asked was killed
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(OSError):
        connection.sendall(str(status).encode())
    os._exit(0)


def run(files: list[int], arguments: list[str], variables: dict[str, str], folder: str) -> None:
    """Be the process that was asked for; never returns."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(variables)
    time.tzset()
    os.chdir(folder)
    more = variables.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [folder, *(part for part in more if part and part not in sys.path)]
    status: Any = 1
    try:
        status = interpret(arguments)
    except SystemExit as ended:
        status = ended.code
    except BaseException:
        traceback.print_exc()
    if isinstance(status, str):
        sys.stderr.write(f"{status}\n")
    with contextlib.suppress(Exception):
        threading._shutdown()  # type: ignore[attr-defined]  # as an interpreter does at its end
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))


def interpret(arguments: list[str]) -> int:
    """Run `-c CODE` or `-m MODULE` with its arguments."""
    rest = [one for one in arguments[:1] if one != "-P"] + arguments[1:]
    kind, what, sys.argv = rest[0], rest[1], ["-c", *rest[2:]]
    if kind == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
        return 0
    assert kind == "-c", f"neither code nor a module: {arguments}"
    names = {"__name__": "__main__", "__builtins__": __builtins__}
    exec(compile(what, "<string>", "exec"), names)
    return 0
