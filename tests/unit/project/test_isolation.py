"""No test reaches a network but loopback, a real model, or the home of whoever runs it."""

import asyncio
import os
import pwd
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tests.support.loopback.sitecustomize import is_loopback

OUTSIDE = "203.0.113.1"  # an address reserved for documentation
REFUSED = "tests reach loopback only"


@pytest.mark.parametrize(
    "leave",
    [
        lambda: socket.socket().connect((OUTSIDE, 80)),
        lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"", (OUTSIDE, 53)),
        lambda: socket.socket(type=socket.SOCK_DGRAM).sendmsg([b""], [], 0, (OUTSIDE, 53)),
        lambda: socket.getaddrinfo("example.com", 80),
        lambda: socket.gethostbyname("example.com"),
    ],
    ids=["connection", "datagram", "message", "address", "name"],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_another_machine_is_neither_reached_nor_looked_up(leave: Callable[[], object]) -> None:
    with pytest.raises(RuntimeError, match=REFUSED):
        leave()


async def test_an_asynchronous_connection_to_another_machine_is_refused() -> None:
    with pytest.raises(RuntimeError, match=REFUSED):
        await asyncio.open_connection(OUTSIDE, 80)


def test_loopback_and_unix_sockets_are_open(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(("localhost", server.getsockname()[1])).close()
    left, right = socket.socketpair()
    left.sendall(b"x")
    assert right.recv(1) == b"x"
    left.close()
    right.close()


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        *((host, True) for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost", b"127.0.0.1")),
        *((host, False) for host in ("localhost.example.com", "10.0.0.1", "::", b"example.com")),
        (None, True),
    ],
)
def test_loopback_is_known_by_name_or_address(host: object, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_a_python_started_by_a_test_is_refused_too(tmp_path: Path) -> None:
    code = f"import socket; socket.socket().connect(({OUTSIDE!r}, 80))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert REFUSED in done.stderr


async def test_a_real_chat_model_with_a_key_is_not_reached() -> None:
    model = ChatOpenAI(model="gpt-4o-mini", api_key=SecretStr("none"), max_retries=0)
    with pytest.raises(RuntimeError, match=REFUSED):
        await model.ainvoke("hello")


def test_no_key_setting_or_proxy_of_this_machine_is_seen() -> None:
    seen = [name for name in os.environ if name.startswith(("OPENAI_", "CIRCADIAN_", "LANGSMITH_"))]
    assert seen == []
    assert not any(name.upper().endswith(("_API_KEY", "_PROXY")) for name in os.environ)


def test_the_home_is_not_that_of_whoever_runs_the_tests() -> None:
    assert Path.home() != Path(pwd.getpwuid(os.getuid()).pw_dir)
    assert Path.home().name.startswith("circadian-home-")
