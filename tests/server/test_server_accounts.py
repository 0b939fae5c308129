"""The operator's side: keys that rotate, tokens that are revoked, what users use and may use."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import OKPAlgorithm
from starlette.exceptions import HTTPException
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from graph.server import auth
from graph.server.settings import Serving, _key_set, user_of
from tests.support.openai_server import LoopbackServer
from tests.support.server import Server

SAID = "My parrot is called Quetzalcoatl"
TOKENS, EVENTS, WAITING = 12_000, 5, 8


class Issuer(LoopbackServer):
    """An identity provider: it publishes its public keys, and signs with one of them."""

    def __init__(self) -> None:
        self.keys: dict[str, Ed25519PrivateKey] = {}
        self.asked = 0
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked += 1
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps({"keys": issuer.published()}).encode())

            def log_message(self, format: str, *args: Any) -> None:
                pass

        super().__init__(Handler)
        self.signs = "key-0"
        self.add()
        self.add()

    def published(self) -> list[dict[str, Any]]:
        return [
            {**OKPAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"}
            for kid, key in self.keys.items()
        ]

    def add(self) -> str:
        kid = f"key-{len(self.keys)}"
        self.keys[kid] = Ed25519PrivateKey.generate()
        return kid

    def token(self, user: str, *permissions: str, **claims: Any) -> str:
        now = time.time()
        given = {"sub": user, "iat": now, "exp": now + 600, "permissions": permissions, **claims}
        headers = {"kid": self.signs}
        return jwt.encode(given, self.keys[self.signs], algorithm="EdDSA", headers=headers)


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with Issuer() as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Iterator[Server]:
    with Server(
        tmp_path_factory.mktemp("server"),
        CIRCADIAN_TOKEN_JWKS=f"{issuer.root_url}/keys",
        CIRCADIAN_USER_TOKENS_PER_DAY=str(TOKENS),
        CIRCADIAN_TOKENS_PER_DAY="1",
        CIRCADIAN_EVENTS_PER_REQUEST=str(EVENTS),
        CIRCADIAN_EVENTS_WAITING=str(WAITING),
        CIRCADIAN_FOLDER=str(tmp_path_factory.mktemp("files")),
    ) as running:
        yield running


class Clients:
    def __init__(self, server: Server, issuer: Issuer, opened: ExitStack) -> None:
        self.server, self.issuer, self._opened = server, issuer, opened

    def of(self, user: str, *permissions: str, **claims: Any) -> httpx.Client:
        token = self.issuer.token(user, *permissions, **claims)
        client = httpx.Client(
            base_url=self.server.url, headers={"Authorization": f"Bearer {token}"}, timeout=60
        )
        return self._opened.enter_context(client)


@pytest.fixture
def clients(server: Server, issuer: Issuer) -> Iterator[Clients]:
    with ExitStack() as opened:
        yield Clients(server, issuer, opened)


def said(client: httpx.Client, *texts: str, **given: Any) -> httpx.Response:
    if texts:
        given["messages"] = [{"role": "user", "content": text} for text in texts]
    thread = client.put("/circadian/agents/default").json()["thread_id"]
    body = {"assistant_id": "agent", "input": given}
    return client.post(f"/threads/{thread}/runs/wait", json=body)


def test_a_new_key_of_the_issuer_is_taken_without_a_restart(
    clients: Clients, issuer: Issuer
) -> None:
    before = clients.of("rita")
    assert before.get("/circadian/agents").status_code == 200
    asked = issuer.asked
    assert before.get("/circadian/agents").status_code == 200
    assert issuer.asked == asked  # keys are kept
    issuer.signs = "key-1"
    assert clients.of("rita").get("/circadian/agents").status_code == 200
    assert before.get("/circadian/agents").status_code == 200
    stranger = Ed25519PrivateKey.generate()
    claims = {"sub": "rita", "iat": time.time(), "exp": time.time() + 60}
    for kid in ("key-0", "key-99", None):
        headers = {"kid": kid} if kid else {}
        forged = jwt.encode(claims, stranger, algorithm="EdDSA", headers=headers)
        answer = httpx.get(f"{clients.server.url}/circadian/agents", headers={"X-Api-Key": forged})
        assert answer.status_code == 401


def test_a_key_that_was_not_published_before_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with Issuer() as issuer:
        serving = Serving(token_jwks=f"{issuer.root_url}/keys")
        assert user_of(issuer.token("rita"), serving).name == "rita"
        keys = _key_set(f"{issuer.root_url}/keys")
        keys.cooldown_duration = 0  # an unknown key is asked for twice a minute at most
        issuer.signs = issuer.add()
        assert user_of(issuer.token("rita"), serving).name == "rita"
        del issuer.keys["key-0"]
        keys.get_jwk_set(refresh=True)
        issuer.signs = "key-1"
        assert user_of(issuer.token("rita"), serving).name == "rita"
    _key_set.cache_clear()
    # Nobody knows whether such a token holds: whoever has it should keep it.
    monkeypatch.setattr(auth, "serving", lambda: serving)
    header = {b"x-api-key": issuer.token("rita").encode()}
    with pytest.raises(HTTPException, match="503: the keys of the tokens' issuer"):
        asyncio.run(auth.authenticate(header))


def test_a_revoked_token_holds_no_longer(clients: Clients) -> None:
    root = clients.of("root", "operator")
    lost, kept = clients.of("idp/lea", jti="lost"), clients.of("idp/lea", jti="kept")
    other = clients.of("max")
    for client in (lost, kept, other):
        assert client.get("/circadian/agents").status_code == 200
    thread = lost.put("/circadian/agents/default").json()["thread_id"]
    socket = f"ws{clients.server.url.removeprefix('http')}/threads/{thread}/stream/events"
    header = {"Authorization": lost.headers["Authorization"]}
    with connect(socket, additional_headers=header) as opened:
        done = root.post("/circadian/users/idp/lea/revoke", json={"id": "lost"})
        opened.send("{}")
        with pytest.raises(ConnectionClosed, match="revoked"):
            opened.recv(timeout=10)
    assert done.json() == {"user": "idp/lea", "id": "lost"}
    assert (lost.get("/circadian/agents").status_code, kept.get("/ok").status_code) == (401, 200)
    assert "revoked" in lost.get("/circadian/agents").text
    assert kept.get("/circadian/agents").status_code == 200
    assert root.post("/circadian/users/idp/lea/revoke", json={}).status_code == 200
    assert kept.get("/threads/00000000-0000-4000-8000-000000000000").status_code == 401
    assert other.get("/circadian/agents").status_code == 200
    later = clients.of("idp/lea", iat=time.time() + 5)
    assert later.get("/circadian/agents").status_code == 200


def test_tokens_are_counted_by_user_and_have_a_ceiling(clients: Clients) -> None:
    root, spender, other = clients.of("root", "operator"), clients.of("sam"), clients.of("tom")
    for _ in range(50):
        answer = said(spender, SAID)
        if answer.status_code != 200:
            break
    asleep = spender.post("/circadian/agents/default/sleep")
    for refused in (answer, asleep):
        assert (refused.status_code, "tokens are used for today" in refused.text) == (429, True)
    assert said(spender, request="stop").status_code == 200
    assert said(other, "Hello").status_code == 200
    listed = root.get("/circadian/users").json()
    users = {one["user"]: one for one in listed["items"]}
    assert listed["total"] == len(users)
    assert users["sam"]["tokens"] >= TOKENS > users["tom"]["tokens"] > 0
    assert users["sam"]["agents"] == 1
    assert users["sam"]["memories"] >= 1
    assert SAID not in str(listed)
    # The user cannot change what was counted.
    assert spender.delete("/circadian/me").status_code == 200
    assert said(spender, SAID).status_code == 429


def test_what_a_lack_of_tokens_refuses_is_not_stored_and_a_preview_needs_none(
    clients: Clients,
) -> None:
    rose, root, home = clients.of("rose"), clients.of("root", "operator"), "agents/default"
    assert said(rose, SAID, "Please write a file list.txt: paint, brush.").status_code == 200
    started = rose.post(f"/circadian/{home}/sleep?dry_run=true").json()
    runs = f"/threads/{started['thread_id']}/runs"
    rose.get(f"{runs}/{started['run_id']}/join")
    while said(rose, "Hello").status_code == 200:
        pass
    asked, [question] = (rose.get(f"/circadian/{home}/questions").json() for _ in range(2))
    before = throttled(root)
    refused = [
        rose.post(f"/circadian/{place}/{path}", headers={"Sec-Fetch-Site": "same-origin"})
        for place, path in (
            (home, f"questions/{question['id']}/approve"),
            (home, f"questions/{question['id']}/refuse"),
            (home, "sleep?dry_run=true"),
            ("inspect/default", f"questions/{question['id']}/approve"),
            ("inspect/default", "preview"),
        )
    ]
    assert [one.status_code for one in refused] == [429] * 5
    assert refused[-1].headers["content-type"].startswith("text/html")
    assert said(rose, "And now?").status_code == 429
    assert throttled(root) == before + 6
    assert rose.get(f"/circadian/{home}/questions").json() == asked
    spaces = rose.post("/store/namespaces", json={"suffix": ["answers"]}).json()
    assert spaces == {"namespaces": []}
    applied = rose.post(f"/circadian/{home}/nights/last/apply")
    assert applied.status_code == 202, applied.text
    rose.get(f"{runs}/{applied.json()['run_id']}/join")
    [night] = rose.get(f"/circadian/{home}/nights").json()["items"]
    assert night["status"] == "complete"


def throttled(root: httpx.Client) -> float:
    found = re.search(r"^circadian_throttled\w+_total (.+)$", root.get("/metrics").text, re.M)
    assert found is not None
    return float(found[1])


def test_who_edits_what_an_agent_spent_renews_no_budget(clients: Clients) -> None:
    quinn = clients.of("quinn")
    assert said(quinn, "My goal is to build a greenhouse.").status_code == 200
    state = f"/threads/{quinn.put('/circadian/agents/default').json()['thread_id']}/state"
    spending = quinn.get(state).json()["values"]["spending"]
    reset = {"values": {"spending": {**spending, "tokens": 0}}, "as_node": "intake"}
    assert quinn.post(state, json=reset).status_code == 200
    assert quinn.get(state).json()["values"]["spending"]["tokens"] == 0
    ended = said(quinn, request="tick").json()
    assert ended["report"]["ticks"] == []
    assert "only events are answered" in ended["report"]["notes"][0]
    assert quinn.get(state).json()["values"]["spending"]["tokens"] == spending["tokens"]


def test_one_request_brings_so_many_events_and_an_inbox_holds_so_many(clients: Clients) -> None:
    una, path = clients.of("una"), "/circadian/agents/default/events"
    event = {"text": "Tick.", "addressed": False}
    many = una.post(path, json=[event] * (EVENTS + 1))
    assert (many.status_code, "at most 5" in many.text) == (422, True)
    assert said(una, *["Hello"] * (EVENTS + 1)).status_code == 422
    runs = f"/threads/{una.put('/circadian/agents/default').json()['thread_id']}/runs"
    given = [event] * (EVENTS + 1)
    for update in ({"events": given}, [["messages", "Hello"], ["events", given]]):
        body = {"assistant_id": "agent", "command": {"update": update}}
        assert una.post(runs, json=body).status_code == 422
    with ThreadPoolExecutor(8) as pool:
        at_once = pool.map(lambda _: una.post(path, json=[event] * EVENTS), range(8))
        assert sorted(one.status_code for one in at_once) == [202, *[507] * 7]
    full = una.post(path, json=[event] * EVENTS)
    assert (full.status_code, "events wait: let the agent run" in full.text) == (507, True)


def test_the_operator_erases_a_user_and_nobody_else_does(clients: Clients) -> None:
    root, vera, will = clients.of("root", "operator"), clients.of("idp/vera"), clients.of("will")
    for client in (vera, will):
        assert said(client, SAID).status_code == 200
    for method, path, body in (
        ("GET", "/circadian/users", None),
        ("DELETE", "/circadian/users/idp/vera", None),
        ("POST", "/circadian/users/idp/vera/revoke", {}),
    ):
        answer = will.request(method, path, json=body)
        assert (answer.status_code, "vera" in answer.text) == (403, False)
    erased = root.delete("/circadian/users/idp/vera").json()["erased"]
    assert (erased["threads"], erased["records"] > 0) == (1, True)
    assert vera.get("/circadian/agents").json() == []
    assert vera.post("/store/namespaces", json={}).json()["namespaces"] == []
    assert len(will.get("/circadian/agents").json()) == 1


def test_the_log_of_actions_has_no_words_of_people(clients: Clients) -> None:
    assert said(clients.of("xena"), "Remember that my sister is allergic to walnuts").is_success
    assert "walnut" not in clients.server.log()
