"""The inspector on a real server: sign-in by token, and two users who each see their own agents."""

import re
import time
from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest

from tests.server.test_server_auth import http, said, token
from tests.support.server import Server
from tests.support.visiting import OURS, text_of

ADA, BEN = "ada-of-the-pages", "ben-of-the-pages"
PAGES = "/circadian/inspect"
SAID = "My canary Zeno sings in Frisian"


class Browser:
    def __init__(self, server: Server, user: str, agent: str) -> None:
        self.http = httpx.Client(base_url=server.url, timeout=120)
        self.agent = f"{PAGES}/{agent}"
        self.signed = self.http.post(f"{PAGES}/sign-in", data={"token": token(user)}, headers=OURS)

    def get(self, path: str, status: int = 200) -> str:
        answer = self.http.get(f"{self.agent}{path}")
        assert answer.status_code == status, answer.text
        return answer.text

    def post(self, path: str, status: int = 303, **fields: str) -> httpx.Response:
        answer = self.http.post(f"{self.agent}{path}", data=fields, headers=OURS)
        assert answer.status_code == status, answer.text
        return answer

    def ended(self) -> str:
        """The page of the work that a form started, once it has ended."""
        assert self.http.get(f"{self.agent}/progress/events").status_code == 200
        while "It is going on." in (page := self.get("/progress")):
            time.sleep(0.1)
        return page

    def fact(self, word: str) -> str:
        link = rf'"{self.agent}/memory/([^"]+)">([^<]*)<'
        found = re.findall(link, self.get("/memory?kind=fact"))
        return str(next(id_ for id_, text in found if word in text))


def say(server: Server, user: str, agent: str, words: str) -> None:
    """Say something to a user's agent, which then sleeps over it."""
    thread, asleep = said(server, user, agent, words), {"request": "sleep"}
    with http(server, user) as client:
        body = {"assistant_id": "agent", "input": asleep}
        client.post(f"/threads/{thread}/runs/wait", json=body).raise_for_status()


@pytest.fixture(scope="module")
def ada(token_server: Server) -> Iterator[Browser]:
    say(token_server, ADA, "aviary", SAID)
    browser = Browser(token_server, ADA, "aviary")
    with closing(browser.http):
        yield browser


@pytest.fixture(scope="module")
def ben(token_server: Server) -> Iterator[Browser]:
    say(token_server, BEN, "garden", "My hedge is made of hazel")
    browser = Browser(token_server, BEN, "garden")
    with closing(browser.http):
        yield browser


def test_the_cookie_is_for_the_pages_alone(token_server: Server, ada: Browser) -> None:
    assert (ada.signed.status_code, ada.signed.headers["location"]) == (303, f"{PAGES}/")
    cookie = ada.signed.headers["set-cookie"].lower()
    for part in ("httponly", "samesite=strict", f"path={PAGES}"):
        assert part in cookie
    value = {"Cookie": f"circadian_inspect={token(ADA)}"}
    other = httpx.get(f"{token_server.url}/circadian/agents", headers=value)
    assert other.status_code == 401


@pytest.mark.parametrize("path", ["", "/", "/aviary/today", "/aviary/circadian/ready", "/ok"])
def test_who_is_not_signed_in_sees_the_form(token_server: Server, path: str) -> None:
    answer = httpx.get(f"{token_server.url}{PAGES}{path}", follow_redirects=True)
    assert answer.status_code == 401
    assert "Sign in" in text_of(answer.text)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    style = httpx.get(f"{token_server.url}{PAGES}/static/inspector.css")
    assert style.headers["content-type"].startswith("text/css")
    for method, file, status in (("GET", "none.css", 404), ("GET", "", 404), ("POST", "a", 405)):
        told = httpx.request(method, f"{token_server.url}{PAGES}/static/{file}", headers=OURS)
        assert (told.status_code, "<main" in told.text) == (status, True)


@pytest.mark.parametrize("given", ["", "nonsense", "\u00e9", "one; path=/"])
def test_a_wrong_token_signs_nobody_in(token_server: Server, given: str) -> None:
    where = f"{token_server.url}{PAGES}/sign-in"
    answer = httpx.post(where, data={"token": given}, headers=OURS)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    late = httpx.post(where, data={"token": token(ADA, days=-1)}, headers=OURS)
    assert "expired" in text_of(late.text)


def test_other_sites_neither_sign_in_nor_change_anything(ada: Browser) -> None:
    for path in (f"{PAGES}/sign-in", f"{PAGES}/sign-out", f"{ada.agent}/preview"):
        for headers in ({}, {"sec-fetch-site": "cross-site"}, {"origin": "https://else.example"}):
            assert ada.http.post(path, headers=headers).status_code == 403
    assert "Today" in ada.get("/today")


def test_each_sees_the_own_agents_and_no_other(ada: Browser, ben: Browser) -> None:
    first = ada.http.get(f"{PAGES}/")
    assert first.headers["location"] == f"{PAGES}/aviary/today"
    assert "Zeno" in text_of(ada.get("/memory"))
    fact = ada.fact("Zeno")
    assert ben.http.get(f"{PAGES}/aviary/memory").status_code == 404
    for path in (f"/memory/{fact}", f"/correct/{fact}", f"/forget/{fact}"):
        assert "Zeno" not in ben.get(path, 404)
    ben.post(f"/forget/{fact}", 404)
    assert "Zeno" not in "".join(ben.get(path) for path in ("/today", "/memory", "/log", "/people"))
    assert "Zeno" in ada.get(f"/memory/{fact}")


def test_nights_are_previewed_applied_and_taken_back(token_server: Server, ada: Browser) -> None:
    said(token_server, ADA, "aviary", "My parrot Otto lives by the window")
    ada.post("/preview")
    done = ada.ended()
    assert "make facts" in text_of(done)
    [night] = re.findall(rf"{ada.agent}/nights/(night_\w+)", done)
    assert "nothing of it is in memory" in text_of(ada.get(f"/nights/{night}"))
    ada.post(f"/nights/{night}/apply")
    assert "It is done." in text_of(ada.ended())
    assert "window" in text_of(ada.get("/memory?kind=fact"))
    page = ada.post(f"/nights/{night}/undo").headers["location"]
    assert "Taken back" in text_of(ada.http.get(page).text)
    assert "window" not in text_of(ada.get("/memory?kind=fact"))


def test_a_fact_is_mended_and_forgotten(ada: Browser) -> None:
    ada.post(f"/correct/{ada.fact('Zeno')}", text="My canary Zeno sings in Danish")
    fact = ada.fact("Danish")
    assert "What would be forgotten" in text_of(ada.get(f"/forget/{fact}"))
    ada.post(f"/forget/{fact}")
    assert "this is for good" in text_of(ada.ended())
    ada.get(f"/memory/{fact}", 404)
    assert ada.post("/forget/nothing", 404).headers["content-type"].startswith("text/html")


def test_who_has_no_agent_is_told_how_to_make_one_and_can_sign_out(token_server: Server) -> None:
    with closing(Browser(token_server, "nobody-yet", "garden").http) as http:
        for path in ("/", "/garden/today"):
            page = http.get(f"{PAGES}{path}")
            assert (page.status_code, f'action="{PAGES}/sign-out"' in page.text) == (404, True)
            assert f'href="{PAGES}/"' in page.text
        assert "PUT /circadian/agents/NAME" in text_of(http.get(f"{PAGES}/").text)
        http.post(f"{PAGES}/sign-out", headers=OURS)
        assert http.get(f"{PAGES}/").status_code == 401
