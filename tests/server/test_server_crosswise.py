"""Every endpoint that a server says it has, asked by one user about what is another's.

The requests are made from the server's own `openapi.json`: a new endpoint is asked without
anybody's thinking of it, and fails here until it is clear what it has to answer.
"""

import hmac
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.utils import base64url_encode
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.support.server import Server

ADA, BEN, ROOT = "zuleika", "ben", "root"
WORDS = ("walnut", ADA)
"""What stands in everything of Ada's, and in nothing that Ben says."""
SAID = "Remember that my sister is allergic to walnuts"
REFUSED = (400, 401, 403, 404, 405, 409, 501)
NOBODYS = {
    ("GET", "/internal/debug/thread/{thread_id}"),
    ("GET", "/deploy/{operation_id}/stream"),
    ("GET", "/threads/{thread_id}/storage"),
    ("DELETE", "/a2a/{assistant_id}"),
    ("POST", "/threads/{thread_id}/runs/{run_id}/cancel"),
    ("DELETE", "/circadian/users/{user}"),
    ("POST", "/circadian/users/{user}/revoke"),
}
"""What is not done for any user; a run that has ended is not cancelled."""
PAGES = ("/docs", "/openapi.json")
READY = "/circadian/ready"
SAYS_NO = ("event: error", '{"jsonrpc":"2.0","id":1,"error"', '{"type":"error"')
LISTENS = "/threads/{thread_id}/stream/events"
"""Says nothing to another, and no more."""
Case = tuple[str, str]
Json = dict[str, Any]


class Issuer:
    """Who signs tokens: the private key is here alone."""

    def __init__(self, file: Path) -> None:
        self._key, self.file = Ed25519PrivateKey.generate(), file
        public = self._key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        file.write_bytes(public)

    def token(self, user: str, *permissions: str) -> str:
        claims = {"sub": user, "exp": time.time() + 600, "permissions": list(permissions)}
        return jwt.encode(claims, self._key, algorithm="EdDSA")


class Adas(NamedTuple):
    api: SyncLangGraphClient
    ids: dict[str, str]
    """By the names of the paths' parameters."""
    space: list[str]
    """The namespace of a record of her memory."""
    record: str

    def world(self) -> Json:
        """All of it that the server shows her."""
        thread, assistant = self.ids["thread_id"], self.ids["assistant_id"]
        runs = self.api.runs.list(thread)
        spaces = self.api.store.list_namespaces(limit=1000)["namespaces"]
        return {
            "thread": self.api.threads.get(thread),
            "state": self.api.threads.get_state(thread),
            "history": self.api.threads.get_history(thread, limit=1000),
            "runs": [(one["run_id"], one["status"]) for one in runs],
            "assistant": self.api.assistants.get(assistant),
            "crons": self.api.crons.search(),
            "store": [self.api.store.search_items(one, limit=1000) for one in spaces],
        }


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Issuer:
    return Issuer(tmp_path_factory.mktemp("keys") / "public.pem")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, issuer: Issuer) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    with Server(folder, CIRCADIAN_TOKEN_KEY=str(issuer.file)) as running:
        yield running


@pytest.fixture(scope="module")
def adas(server: Server, issuer: Issuer) -> Iterator[Adas]:
    with (
        get_sync_client(url=server.url, api_key=issuer.token(ADA)) as api,
        http(server, issuer.token(ADA)) as client,
    ):
        thread = client.put("/circadian/agents/default").json()["thread_id"]
        api.runs.wait(thread, "agent", input=human(SAID))
        (run,) = api.runs.list(thread)
        settings: Any = {"persona": "You love walnuts."}
        assistant = api.assistants.create("agent", context=settings, name="walnuts")
        cron: Any = api.crons.create_for_thread(
            thread, "agent", schedule="0 2 * * *", input=human("walnuts?")
        )
        item = api.store.search_items((ADA, thread, "journal"))["items"][0]
        checkpoint = api.threads.get_state(thread)["checkpoint"]["checkpoint_id"]
        ids = {
            "thread_id": thread,
            "run_id": run["run_id"],
            "assistant_id": assistant["assistant_id"],
            "cron_id": cron["cron_id"],
            "checkpoint_id": str(checkpoint),
        }
        yield Adas(api, ids, item["namespace"], item["key"])


def http(server: Server, token: str | None) -> httpx.Client:
    headers = {"Accept": "application/json, text/event-stream", "Connection": "close"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    return httpx.Client(base_url=server.url, headers=headers, timeout=4)


def human(text: str) -> Json:
    return {"messages": [{"role": "user", "content": text}]}


def cases(server: Server) -> list[Case]:
    """Method and path of every endpoint; what deletes comes last, and the most at the very end."""
    paths = httpx.get(f"{server.url}/openapi.json").json()["paths"]
    found = [(method.upper(), path) for path, methods in paths.items() for method in methods]

    def order(case: Case) -> tuple[bool, bool, int]:
        method, path = case
        return path.endswith(("/prune", "/circadian/me")), method == "DELETE", -path.count("/")

    # Backwards, so that a thread's state is asked before a run is in its way.
    return sorted(sorted(found, reverse=True), key=order)


def body(path: str, adas: Adas) -> Any:
    """A request that would be a good one of Ada's."""
    ids = adas.ids
    run = {"assistant_id": "agent", "input": human("Hi"), "metadata": {"owner": BEN}}
    message = {"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "Hi"}]}
    call = {"jsonrpc": "2.0", "id": 1}
    special: Json = {
        "/mcp": {**call, "method": "tools/list"},
        "/a2a/{assistant_id}": {
            **call,
            "method": "message/send",
            "params": {"message": {**message, "contextId": ids["thread_id"]}},
        },
        "/assistants/{assistant_id}/versions": {},
        "/runs/batch": [run],
        "/runs/crons": {**run, "schedule": "0 2 * * *"},
        "/assistants": {"graph_id": "agent", "assistant_id": ids["assistant_id"]},
        "/threads": {
            "thread_id": ids["thread_id"],
            "if_exists": "do_nothing",
            "metadata": {"agent": "default"},
        },
        "/threads/prune": {"thread_ids": [ids["thread_id"]]},
        "/runs/cancel": {"thread_id": ids["thread_id"], "run_ids": [ids["run_id"]]},
        "/threads/{thread_id}/commands": {
            **call,
            "method": "run.start",
            "params": {"assistant_id": "agent", "input": human("Hi")},
        },
        "/threads/{thread_id}/stream/events": {"channels": ["values"]},
        "/circadian/agents/{name}/events": {"id": "e1", "sender": "Ben", "text": "Hi"},
    }
    if path in special:
        return special[path]
    if path.startswith("/store"):
        item = {"key": adas.record, "value": {"a": 1}}
        where = ("namespace", "namespace_prefix", "prefix")
        return {**{name: adas.space for name in where}, **item}
    if path.endswith(("/search", "/count")):
        return {"metadata": {"owner": ADA}}
    if "/state" in path:
        checkpoint = {"checkpoint_ns": "", "checkpoint_id": ids["checkpoint_id"]}
        return {"values": {"emergency_stop": True}, "checkpoint": checkpoint}
    return {**run, "schedule": "0 2 * * *", "version": 1}


def ask(client: httpx.Client, case: Case, adas: Adas) -> tuple[int, str]:
    """The status, and what is answered until it ends or says nothing for a while."""
    method, path = case
    more = {"name": "default", "namespace": "awake", "graph_id": "agent", "operation_id": "x"}
    more |= {"id": adas.record, "number": "1", "user": ADA}
    params = (
        {"namespace": ".".join(adas.space), "key": adas.record} if path == "/store/items" else {}
    )
    given = None if method == "GET" else body(path, adas)
    url, heard = path.format(**adas.ids, **more), ""
    with client.stream(method, url, json=given, params=params) as answer:
        with suppress(httpx.ReadTimeout):
            for part in answer.iter_text():
                heard += part
        return answer.status_code, heard


def test_no_endpoint_shows_or_changes_another_users_data(
    server: Server, issuer: Issuer, adas: Adas
) -> None:
    before, asked = adas.world(), cases(server)
    assert len(asked) > 75
    with http(server, issuer.token(BEN)) as client:
        for case in asked:
            status, heard = ask(client, case, adas)
            told = (*case, status, heard[:500])
            assert status < 500 or status == 501, told
            if case[1] not in PAGES:
                assert not [word for word in WORDS if word in heard.lower()], told
            if "{" in case[1] and not case[1].startswith("/circadian") and case[1] != LISTENS:
                # What has a protocol of its own says no in that.
                assert status in REFUSED or '"error' in heard, told
    assert adas.world() == before


@pytest.mark.slow
def test_the_owner_may_make_the_same_requests(server: Server, issuer: Issuer, adas: Adas) -> None:
    """Or the refusals above would be of something else.

    Memory's own routes need more than an id, and are asked for it in test_server_api.py.
    """
    refused = set()
    with http(server, issuer.token(ADA)) as client:
        for case in cases(server):
            if case[1].startswith("/circadian/agents/"):
                continue
            status, heard = ask(client, case, adas)
            if "{" in case[1] and (status >= 300 or heard.startswith(SAYS_NO)):
                refused.add(case)
    assert refused == NOBODYS


def test_only_its_user_can_stream_a_run(server: Server, issuer: Issuer) -> None:
    """By the stream that says neither yes nor no."""
    with get_sync_client(url=server.url, api_key=issuer.token(ADA)) as api:
        thread = api.threads.create()["thread_id"]
        for user, expected in ((ADA, True), (BEN, False)):
            with listening(server, issuer.token(user), thread) as heard:
                api.runs.wait(thread, "agent", input=human(SAID))
                assert until(lambda: "walnuts" in str(heard), 3.0) == expected, heard


@contextmanager
def listening(server: Server, token: str, thread: str) -> Iterator[list[str]]:
    """What the thread's stream of events says, while it comes."""
    heard, connected = list[str](), Event()
    body = {"channels": ["values", "messages", "updates"]}

    def listen() -> None:
        headers = {"Authorization": f"Bearer {token}"}
        path = f"{server.url}/threads/{thread}/stream/events"
        with (
            suppress(httpx.ReadTimeout),
            httpx.stream("POST", path, json=body, headers=headers, timeout=4) as answer,
        ):
            connected.set()
            for part in answer.iter_text():
                heard.append(part)

    listener = Thread(target=listen, daemon=True)
    listener.start()
    assert connected.wait(30)
    yield heard
    listener.join(10)


def until(reached: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not reached() and time.monotonic() < deadline:
        time.sleep(0.05)
    return reached()


def test_without_a_token_only_public_routes_answer(server: Server, adas: Adas) -> None:
    with http(server, None) as client:
        answered = {case for case in cases(server) if ask(client, case, adas)[0] < 300}
    assert answered == {("GET", path) for path in ("/", "/ok", "/info", READY, *PAGES)}


def test_only_operators_see_the_servers_metrics(server: Server, issuer: Issuer) -> None:
    with http(server, issuer.token(ROOT, "operator")) as client:
        assert client.get("/metrics").status_code == 200
        assert client.post("/internal/truncate").status_code == 403


def test_only_the_private_keys_holder_can_sign_tokens(
    server: Server, issuer: Issuer, tmp_path: Path
) -> None:
    other, claims = Issuer(tmp_path / "other.pem"), {"sub": ADA, "exp": time.time() + 60}
    for token in (
        other.token(ADA),
        with_hmac(claims, issuer.file.read_bytes()),
        jwt.encode(claims, "", algorithm="none"),
    ):
        with http(server, token) as client:
            assert client.get("/circadian/agents").status_code == 401


def with_hmac(claims: Json, secret: bytes) -> str:
    """A token signed with what everybody knows, the public key, as if it were a shared secret."""
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256", "typ": "JWT"}, claims)]
    signed = b".".join(map(base64url_encode, parts))
    return (signed + b"." + base64url_encode(hmac.digest(secret, signed, "sha256"))).decode()
