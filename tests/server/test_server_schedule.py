"""`circadian token` and `circadian schedule`, against a real server with real users."""

import json
from collections.abc import Iterator
from contextlib import suppress
from time import time
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from graph.server.auth import count_request
from graph.server.settings import Serving, serving_variables
from memory.errors import InputError
from tests.server.test_server_auth import http
from tests.server.test_server_commands import fresh, socket, until_it_closes
from tests.support.commandline import Done, circadian
from tests.support.server import SECRET, Server

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    limits = {"CIRCADIAN_TOKEN_SECRET": SECRET, "CIRCADIAN_REQUESTS_PER_MINUTE": "60"}
    with Server(tmp_path_factory.mktemp("server"), cold=False, **limits) as running:
        yield running


@pytest.fixture
def token(capsys: Capture, monkeypatch: Patch) -> str:
    """Ada's, as the command makes it; what a scheduler of hers has in its environment."""
    monkeypatch.setenv("CIRCADIAN_TOKEN_SECRET", SECRET)
    made = circadian(capsys, "token", "ada", "--json").document
    monkeypatch.setenv("CIRCADIAN_TOKEN", made["token"])
    return str(made["token"])


def scheduled(capsys: Capture, server: Server, *args: str) -> Done:
    return circadian(capsys, "schedule", "--url", server.url, *args)


def test_schedules_are_installed_once_listed_and_removed(
    capsys: Capture, server: Server, token: str
) -> None:
    args = ("--every", "15", "--at", "03:30", "--zone", "Europe/Berlin")
    for _ in range(2):
        done = scheduled(capsys, server, *args, "--json")
        assert (done.status, done.err) == (0, "")
        found = [(one["request"], one["schedule"], one["time_zone"]) for one in done.document]
        assert found == [
            ("tick", "*/15 * * * *", "Europe/Berlin"),
            ("sleep", "30 3 * * *", "Europe/Berlin"),
        ]
    assert scheduled(capsys, server, "--list", "--json").document == done.document
    assert "falls asleep" in scheduled(capsys, server, "--list").out
    assert len(scheduled(capsys, server, "--remove", "--json").document) == 2
    assert scheduled(capsys, server, "--list").out == "Nothing is scheduled.\n"


def test_a_cron_carries_a_bare_request(capsys: Capture, server: Server, token: str) -> None:
    scheduled(capsys, server, "--every", "0", "--at", "02:00")
    headers = {"Authorization": f"Bearer {token}"}
    found: Any = httpx.post(f"{server.url}/runs/crons/search", json={}, headers=headers).json()
    (cron,) = found
    assert cron["payload"]["input"] == {"request": "sleep"}
    assert cron["user_id"] == "ada"
    scheduled(capsys, server, "--remove")


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("--every", "7"), "do not divide"),
        (("--every", "-1"), "from 0 to"),
        (("--at", "25:00"), "a time such as 02:00"),
        (("--zone", "Mars/Olympus"), "no time zone is called 'Mars/Olympus'"),
        (("--list", "--remove"), "one of them"),
    ],
)
def test_an_invalid_schedule_is_one_clear_line(
    capsys: Capture, server: Server, token: str, args: tuple[str, ...], why: str
) -> None:
    done = scheduled(capsys, server, *args)
    assert (done.status, done.out) == (2, "")
    assert why in done.error


def test_an_error_names_a_server_that_refuses(
    capsys: Capture, server: Server, monkeypatch: Patch
) -> None:
    monkeypatch.delenv("CIRCADIAN_TOKEN", raising=False)
    refused = scheduled(capsys, server)
    assert refused.status == 1
    assert "refuses (401): no token" in refused.error


@pytest.mark.parametrize("name", ["TOKEN_SECRET", "TOKEN_JWKS"])
@pytest.mark.parametrize("text", [" ", "none", "\n"])
def test_a_secret_that_says_nothing_is_refused_and_opens_no_server(
    monkeypatch: Patch, name: str, text: str
) -> None:
    monkeypatch.setenv(f"CIRCADIAN_{name}", text)
    with pytest.raises(InputError, match=f"CIRCADIAN_{name}"):
        serving_variables()


def test_tokens_need_a_secret_that_is_long_enough_and_a_user(
    capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.delenv("CIRCADIAN_TOKEN_SECRET", raising=False)
    assert "set CIRCADIAN_TOKEN_SECRET" in circadian(capsys, "token", "ada").error
    monkeypatch.setenv("CIRCADIAN_TOKEN_SECRET", "short")
    done = circadian(capsys, "token", "ada")
    assert done.status == 2
    assert "CIRCADIAN_TOKEN_SECRET: Value should have at least 32 characters" in done.error
    monkeypatch.setenv("CIRCADIAN_TOKEN_SECRET", SECRET)
    assert "is not a user" in circadian(capsys, "token", " ").error
    assert circadian(capsys, "token", "ada", "--days", "0").status == 2


def test_more_requests_than_the_limit_are_refused(server: Server) -> None:
    with http(server, "hoarder") as client, http(server, "other") as other:
        answers = [client.get("/circadian/agents") for _ in range(61)]
        assert other.get("/circadian/agents").status_code == 200
    assert answers[0].status_code == 200
    limit, left = (int(answers[0].headers[f"X-RateLimit-{n}"]) for n in ("Limit", "Remaining"))
    assert (limit, 0 < left < 60) == (60, True)
    assert answers[-1].status_code == 429
    assert answers[-1].headers["X-RateLimit-Remaining"] == "0"
    assert "more than 60 requests a minute" in answers[-1].text
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60


def test_commands_on_a_socket_count_as_requests(server: Server) -> None:
    subscribe = {"method": "subscription.subscribe", "params": {"channels": ["values"]}}
    with (
        http(server, "talker") as client,
        socket(server, "talker", fresh(client, "default")) as opened,
    ):
        for number in range(80):
            with suppress(ConnectionClosed):
                opened.send(json.dumps({"id": number, **subscribe}))
        answers = list(until_it_closes(opened))
        closed = (opened.close_code, "60 requests a minute" in str(opened.close_reason))
        assert closed == (1008, True)
        assert 0 < len(answers) < 60
        assert client.get("/circadian/agents").status_code == 429


async def test_who_asks_too_often_is_told_when_the_next_request_may_come(
    monkeypatch: Patch,
) -> None:
    serving = Serving(requests_per_minute=1)
    assert [(await count_request("hasty", serving))[0] for _ in range(2)] == [True, False]
    assert 40 < int((await count_request("hasty", serving))[1]["X-RateLimit-Reset"]) <= 60
    later = time() + 20
    monkeypatch.setattr("graph.server.auth.time", lambda: later)
    assert 1 < int((await count_request("hasty", serving))[1]["X-RateLimit-Reset"]) <= 40
