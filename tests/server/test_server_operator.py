"""What is the operator's: settings that cost or protect, and the names and pages that may ask."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from graph.server.settings import STUDIO, USERS_OWN, Serving
from memory import runtime
from memory.errors import InputError
from memory.settings import Settings
from tests.server.test_server_auth import http
from tests.support.server import Server
from tests.support.source_files import ROOT

USER = "greta"
SEEN = ("a run that is waited for", "a stream")
COSTLY: dict[str, Any] = {
    "dangerous_requires_confirm": False,
    "foreign_words": "refuse",
    "compact_model": "openai:gpt-5-pro",
    "tokens_per_day": 10**9,
    "max_iterations_per_tick": 10,
    "owners": [USER],
    "sub_agents_enabled": True,
    "tool_timeout": 10**6,
}


@pytest.fixture(scope="module")
def greta(token_server: Server) -> Iterator[httpx.Client]:
    with http(token_server, USER) as client:
        yield client


@pytest.fixture(scope="module")
def thread(greta: httpx.Client) -> str:
    return str(greta.put("/circadian/agents/default").json()["thread_id"])


def ways(thread: str) -> dict[str, tuple[str, str]]:
    """Every way by which settings come in, each with its method and path."""
    return {
        "a run": ("POST", f"/threads/{thread}/runs"),
        "a run that is waited for": ("POST", f"/threads/{thread}/runs/wait"),
        "a stream": ("POST", f"/threads/{thread}/runs/stream"),
        "an assistant": ("POST", "/assistants"),
        "a schedule": ("POST", f"/threads/{thread}/runs/crons"),
    }


def asked(
    client: httpx.Client, way: tuple[str, str], context: dict[str, Any], key: str = "context"
) -> httpx.Response:
    given = {"context": context} if key == "context" else {"config": {"configurable": context}}
    body: dict[str, Any] = {"graph_id": "agent", **given}
    if way[1] != "/assistants":
        body = {"assistant_id": "agent", "input": {"request": "tick"}, **given}
    if "crons" in way[1]:
        body["schedule"] = "0 2 * * *"
    return client.request(*way, json=body)


@pytest.mark.parametrize("key", ["context", "configurable"])
@pytest.mark.parametrize("name", COSTLY)
def test_a_setting_that_costs_or_protects_is_refused_by_name(
    greta: httpx.Client, thread: str, name: str, key: str
) -> None:
    for told, way in ways(thread).items():
        answer = asked(greta, way, {name: COSTLY[name]}, key)
        assert (answer.status_code, name in answer.text) == (403, True), (told, answer.text)
    assert greta.get(f"/threads/{thread}/runs").json() == []


def test_a_wrong_name_or_value_is_one_clear_error(greta: httpx.Client, thread: str) -> None:
    for told, way in ways(thread).items():
        misspelt = asked(greta, way, {"personna": "A gardener."})
        assert (misspelt.status_code, "'persona'" in misspelt.text) == (422, True), told
        wrong = asked(greta, way, {"recall_limit": 0})
        assert (wrong.status_code, "recall_limit" in wrong.text) == (422, True), told
        assert "pydantic" not in wrong.text
        for name, value in {"names": ["a"] * 1_001, "channels": {"a" * 201: "act"}}.items():
            assert asked(greta, way, {name: value}).status_code == 422, name
        assert asked(greta, way, {"persona": "a" * 100_001}).status_code == 422


def test_an_unknown_key_of_a_configurable_is_never_ignored_in_silence(
    token_server: Server, greta: httpx.Client, thread: str
) -> None:
    """A `RemoteGraph` passes on its caller's keys, so that a run is not refused for them."""
    given = {"recal_limit": 3, "thread_id": thread, "user_id": "u", "x-a": "b", "ls_project": "p"}
    for told, way in ways(thread).items():
        answer = asked(greta, way, given, "configurable")
        stored = told in ("an assistant", "a schedule")
        assert (answer.status_code == 422) == stored, (told, answer.text)
        assert "did you mean 'recall_limit'?" in answer.text, told
        assert ("Ignored: there is no setting" in answer.text) == (told in SEEN), told
    after = asked(greta, ways(thread)["a run that is waited for"], {})
    assert "recal_limit" not in after.text
    line = "there is no setting 'recal_limit'; did you mean 'recall_limit'?"
    assert [one["event"] for one in token_server.records() if line in one["event"]]


def test_what_is_the_users_to_choose_is_taken(greta: httpx.Client, thread: str) -> None:
    own = {"persona": "A gardener.", "time_zone": "Europe/Vienna", "recall_limit": 5}
    answer = asked(greta, ("POST", f"/threads/{thread}/runs/wait"), own)
    assert answer.status_code == 200, answer.text
    assert "__error__" not in answer.json()


def test_an_assistant_cannot_be_given_such_a_setting_later(greta: httpx.Client) -> None:
    made = greta.post("/assistants", json={"graph_id": "agent", "context": {"persona": "A cat."}})
    path = f"/assistants/{made.json()['assistant_id']}"
    refused = greta.patch(path, json={"context": {"dangerous_requires_confirm": False}})
    assert refused.status_code == 403
    assert greta.delete(path).status_code < 300


def test_the_operator_may_leave_more_to_users() -> None:
    serving = Serving(
        token_secret="x" * 32,
        user_settings="tool_timeout, score_batch_size",
        user_models="openai:gpt-5-mini",
    )
    more = {"tool_timeout", "score_batch_size", "compact_model"}
    assert serving.users_may_set == USERS_OWN | more
    assert set(Settings.model_fields) > USERS_OWN
    with pytest.raises(ValueError, match="no setting"):
        Serving(user_settings="persona,tools")


def test_what_was_stored_earlier_is_refused_by_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as an assistant that was made while the operator let users decide."""
    process = SimpleNamespace(users_may_set=USERS_OWN, given={})
    fake: Any = lambda: process  # noqa: E731
    fake.cache_info = lambda: SimpleNamespace(currsize=1)
    monkeypatch.setattr(runtime, "process_now", fake)
    assert runtime.settings_of({"persona": "A cat."}).persona == "A cat."
    for context in ({"tool_timeout": 1.0}, Settings(tool_timeout=1.0)):
        with pytest.raises(InputError, match="operator of this server decides on tool_timeout"):
            runtime.settings_of(context)


def test_only_studio_may_talk_to_the_server_from_a_browser(server: Server) -> None:
    for origin, let in ((STUDIO, True), ("https://evil.example", False), ("null", False)):
        preflight = httpx.options(
            f"{server.url}/circadian/me",
            headers={
                "Origin": origin,
                "Access-Control-Request-Method": "DELETE",
                "Access-Control-Request-Headers": "content-type",
            },
        )
        allowed = preflight.headers.get("access-control-allow-origin")
        assert (allowed == origin) == let, (origin, preflight.headers)
        assert allowed in (origin, None)
    config = json.loads((ROOT / "langgraph.json").read_text())
    assert config["http"]["cors"]["allow_origins"] == [STUDIO]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "http://localhost.evil.example"},
        {"Origin": f"{STUDIO}.evil.example", "X-Forwarded-For": "127.0.0.1"},
        {"Host": "evil.example"},
        {"Host": "localhost.evil.example:2024", "X-Forwarded-Host": "127.0.0.1"},
    ],
    ids=str,
)
def test_a_page_elsewhere_cannot_use_an_open_server(
    server: Server, headers: dict[str, str]
) -> None:
    """Neither with a form, which needs no preflight, nor under a name that leads here."""
    sent = {"Content-Type": "text/plain", **headers}
    for method, path, body in (
        ("POST", "/circadian/agents/default/events", '{"text": "Hi"}'),
        ("POST", "/threads", "{}"),
        ("DELETE", "/circadian/me", ""),
        ("GET", "/circadian/agents", ""),
        ("GET", "/threads/00000000-0000-4000-8000-000000000000", ""),
    ):
        answer = httpx.request(method, f"{server.url}{path}", headers=sent, content=body)
        assert answer.status_code == 403, (method, path, answer.text)
    socket = f"ws{server.url.removeprefix('http')}/threads/x/stream/events"
    if "Origin" in headers:
        with pytest.raises(InvalidStatus, match="403"):
            connect(socket, additional_headers=headers)
    own = {"Origin": server.url}
    assert httpx.get(f"{server.url}/circadian/agents", headers=own).status_code == 200


def test_a_server_with_tokens_may_be_called_by_any_name_and_page(greta: httpx.Client) -> None:
    headers = {"Host": "agents.example.org", "Origin": "https://app.example.org"}
    assert greta.get("/circadian/agents", headers=headers).status_code == 200


def test_what_is_not_served_is_off(server: Server, greta: httpx.Client, thread: str) -> None:
    assert httpx.get(f"{server.url}/ui/agent").status_code == 404
    called = greta.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert called.status_code in (403, 404), called.text
    for body in ({}, {"namespace_prefix": None}, {"namespace_prefix": USER}):
        answer = greta.post("/store/items/search", json=body)
        assert (answer.status_code, "namespace_prefix" in answer.text) == (422, True), body
    for url in ("http://127.0.0.1:1/x", "http://10.0.0.1/x", "http://169.254.169.254/x", "/ok"):
        run = {"assistant_id": "agent", "input": {"request": "tick"}, "webhook": url}
        answer = greta.post(f"/threads/{thread}/runs", json=run)
        assert 400 <= answer.status_code < 500, (url, answer.text)
