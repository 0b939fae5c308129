"""No test reaches a network but loopback, a real model, or the home of whoever runs it."""

from __future__ import annotations

import asyncio
import os
import pwd
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import SecretStr

from tests.support.clock import Clock
from tests.support.loopback.sitecustomize import is_loopback
from tests.support.places import in_memory

OUTSIDE = "203.0.113.1"  # an address reserved for documentation
REFUSED = "tests reach loopback only"


def test_a_connection_to_another_machine_is_refused() -> None:
    with socket.socket() as plain, pytest.raises(RuntimeError, match=REFUSED):
        plain.connect((OUTSIDE, 80))


def test_a_datagram_to_another_machine_is_refused() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as plain:
        with pytest.raises(RuntimeError, match=REFUSED):
            plain.sendto(b"", (OUTSIDE, 53))
        with pytest.raises(RuntimeError, match=REFUSED):
            plain.sendmsg([b""], [], 0, (OUTSIDE, 53))


def test_a_name_is_not_looked_up() -> None:
    with pytest.raises(RuntimeError, match=REFUSED):
        socket.getaddrinfo("example.com", 80)
    with pytest.raises(RuntimeError, match=REFUSED):
        socket.gethostbyname("example.com")


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


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost", b"127.0.0.1", None])
def test_loopback_is_known_by_its_name_or_address(host: object) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["localhost.example.com", "10.0.0.1", "::", b"example.com"])
def test_whatever_else_is_not_loopback(host: object) -> None:
    assert not is_loopback(host)


def test_a_python_started_by_a_test_is_refused_too(tmp_path: Path) -> None:
    code = f"import socket; socket.socket().connect(({OUTSIDE!r}, 80))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert REFUSED in done.stderr


def test_a_real_model_asks_for_a_key_that_no_test_has() -> None:
    with pytest.raises(Exception, match="OPENAI_API_KEY"):
        ChatOpenAI(model="gpt-4o-mini")


def test_a_real_chat_model_with_a_key_is_not_reached() -> None:
    model = ChatOpenAI(model="gpt-4o-mini", api_key=SecretStr("none"), max_retries=0)
    with pytest.raises(RuntimeError, match=REFUSED):
        model.invoke("hello")


async def test_a_real_chat_model_with_a_key_is_not_reached_asynchronously() -> None:
    model = ChatOpenAI(model="gpt-4o-mini", api_key=SecretStr("none"), max_retries=0)
    with pytest.raises(RuntimeError, match=REFUSED):
        await model.ainvoke("hello")


def test_a_real_embedding_model_with_a_key_is_not_reached() -> None:
    model = OpenAIEmbeddings(
        openai_api_key=SecretStr("none"), max_retries=0, check_embedding_ctx_length=False
    )
    with pytest.raises(RuntimeError, match=REFUSED):
        model.embed_query("hello")


def test_no_key_setting_or_proxy_of_this_machine_is_seen() -> None:
    seen = [name for name in os.environ if name.startswith(("OPENAI_", "CIRCADIAN_", "LANGSMITH_"))]
    assert seen == []
    assert not any(name.upper().endswith(("_API_KEY", "_PROXY")) for name in os.environ)


def test_the_home_is_not_that_of_whoever_runs_the_tests() -> None:
    assert Path.home() != Path(pwd.getpwuid(os.getuid()).pw_dir)
    assert Path.home().name.startswith("circadian-home-")


def test_files_are_in_memory_only_where_there_is_room(tmp_path: Path) -> None:
    assert in_memory(tmp_path / "none") is None
    assert in_memory(tmp_path, room=1) == tmp_path
    assert in_memory(tmp_path, room=1 << 60) is None


def test_the_clock_stands_still_until_it_is_moved(clock: Clock) -> None:
    assert clock() == clock() == datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
    assert clock.advance(hours=1) == clock() == datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
    clock.set(datetime.fromisoformat("2026-03-03T12:00:00+02:00"))
    assert clock() == datetime(2026, 3, 3, 10, 0, tzinfo=UTC)
    with pytest.raises(ValueError, match="zone"):
        clock.set(datetime(2026, 3, 3))  # noqa: DTZ001 - the time without a zone is the point
