"""Who may look into the inspector, and what other sites can make a browser do."""

import html
import re
from pathlib import Path

import httpx
import pytest

from graph.inspector.app import POLICY
from tests.support.clock import Clock
from tests.support.visiting import ADDRESS, OURS, PORT, TOKEN, visiting


async def test_without_the_token_nothing_is_shown(data: Path, clock: Clock) -> None:
    async with visiting(data, clock, sign_in=False) as visitor:
        for path in ("/", "/default/today", "/default/memory/a/static/b", "/no/where"):
            answer = await visitor.client.get(path)
            assert answer.status_code == 401
            assert "circadian inspect" in answer.text


async def test_the_token_gives_a_cookie_that_scripts_and_other_sites_do_not_get(
    data: Path, clock: Clock
) -> None:
    async with visiting(data, clock, sign_in=False) as visitor:
        assert "set-cookie" not in (await visitor.client.head("/", params={"token": TOKEN})).headers
        answer = await visitor.client.get("/", params={"token": TOKEN})
        cookie = answer.headers["set-cookie"].lower()
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert f"circadian_inspect_{PORT}=" in cookie
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert TOKEN not in cookie
        await visitor.get("/today")


async def test_the_token_is_used_up_by_the_first_browser(data: Path, clock: Clock) -> None:
    async with visiting(data, clock) as visitor:
        second = httpx.AsyncClient(transport=visitor.client._transport, base_url=ADDRESS)
        answer = await second.get("/", params={"token": TOKEN})
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("token", ["", "wrong", "one-tim", "one-timé", TOKEN[:-1]])
async def test_a_wrong_token_or_cookie_signs_nobody_in(
    data: Path, clock: Clock, token: str
) -> None:
    async with visiting(data, clock, sign_in=False) as visitor:
        answer = await visitor.client.get("/", params={"token": token})
        assert answer.status_code == 401
        forged = {b"Cookie": f"circadian_inspect_{PORT}={token}".encode()}
        assert (await visitor.client.get("/default/today", headers=forged)).status_code == 401
        assert (await visitor.client.get("/", params={"token": TOKEN})).status_code == 303


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "none"}, 403),
        ({"origin": "https://elsewhere.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site", "origin": ADDRESS}, 403),
        (OURS, 404),
        ({"origin": ADDRESS}, 404),
    ],
)
async def test_a_change_is_heard_that_our_own_page_asks_for_and_no_other_site(
    data: Path, clock: Clock, headers: dict[str, str], status: int
) -> None:
    async with visiting(data, clock) as visitor:
        answer = await visitor.client.post("/default/forget/x", headers=headers)
        assert answer.status_code == status
        assert answer.text.startswith("Refused: ") is (status == 403)


async def test_another_host_name_of_this_machine_and_another_agent_are_not_shown(
    data: Path, clock: Clock
) -> None:
    rebound = {"host": f"rebound.example:{PORT}"}
    async with visiting(data, clock) as visitor:
        today = await visitor.client.get("/default/today", headers=rebound)
        assert today.status_code == 403
        assert (await visitor.client.get("/other/today")).status_code == 404


async def test_every_answer_keeps_other_sites_out(data: Path, clock: Clock) -> None:
    async with visiting(data, clock) as visitor:
        for path in ("/default/today", "/default/nothing", "/static/inspector.css"):
            headers = (await visitor.client.get(path)).headers
            assert headers["content-security-policy"] == POLICY
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "no-referrer"
        assert "unsafe" not in POLICY
        assert (await visitor.client.get("/default/today")).headers["cache-control"] == "no-store"


@pytest.mark.parametrize("agent", ["team/ada", "..", "50%2F", "Ä b?#", "static"])
async def test_an_agent_is_found_whatever_its_name(data: Path, clock: Clock, agent: str) -> None:
    async with visiting(data, clock, agent=agent) as visitor:
        today = await visitor.client.get("/", follow_redirects=True)
        assert (today.status_code, f"Today · {html.escape(agent)}" in today.text) == (200, True)
        [memory] = re.findall(r'href="([^"]+)">Memory<', today.text)
        assert (await visitor.client.get(html.unescape(memory))).status_code == 200
