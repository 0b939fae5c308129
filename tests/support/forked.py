"""A `python` for tests that has the product imported: it forks, so that a start takes milliseconds.

`forked_python()` is the path of an executable that takes what `python` takes: `-c CODE` or
`-m MODULE`, with arguments, an environment and a working folder. It hands them, with its standard
streams, to a server that forks a process for them, and ends as that process ends; killed, it takes
that process with it. Not for tests of imports, nor for signals other than SIGKILL.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from typing import Any

from tests.support.source_files import ROOT

PRELOADED = ("graph.cli.app", "graph.agent", "memory.facts.mem0", "memory.models")
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
def forked_python() -> str:
    """The executable; its server is started with it and ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="circadian-fork-"))
    address, client = folder / "socket", folder / "python"
    client.write_text(CLIENT.format(python=sys.executable, address=str(address)))
    client.chmod(0o700)
    # One test's settings are not those of every process that is forked later.
    kept = {k: v for k, v in os.environ.items() if not k.startswith("CIRCADIAN_")}
    variables = {"MEM0_TELEMETRY": "False", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.support.forked", str(address)],
        cwd=ROOT,
        env={**kept, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n", "the server of forked processes did not start"
    atexit.register(server.communicate)
    return str(client)


def serve(address: str) -> None:
    """Fork a process for each connection, until the standard input ends."""
    for name in PRELOADED:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that supervise
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        os.write(1, b"ready\n")
        while listening.fileno() in select.select([listening.fileno(), 0], [], [])[0]:
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


if __name__ == "__main__":
    serve(sys.argv[1])
