"""Two users of one server: each sees and changes what is theirs, whatever endpoint they ask."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from pydantic import SecretStr

from graph.server.settings import Serving, token_for
from memory.records.records import thread_id
from tests.support.server import SECRET, Server

ADA, BEN = "ada@example.org", "ben"
SAID = "Remember that my sister is allergic to walnuts"
Api = SyncLangGraphClient


def token(user: str, *, operator: bool = False, days: float = 1.0, secret: str = SECRET) -> str:
    serving = Serving(token_secret=SecretStr(secret))
    return token_for(user, serving, now=datetime.now(UTC), days=days, operator=operator)


def http(server: Server, user: str | None, **more: Any) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token(user, **more)}"} if user else {}
    return httpx.Client(base_url=server.url, headers=headers, timeout=60)


def said(server: Server, user: str, agent: str, words: str) -> str:
    with http(server, user) as client:
        thread = str(client.put(f"/circadian/agents/{agent}").json()["thread_id"])
        given = {"messages": [{"role": "user", "content": words}]}
        body = {"assistant_id": "agent", "input": given}
        client.post(f"/threads/{thread}/runs/wait", json=body).raise_for_status()
    return thread


@pytest.fixture(scope="module")
def ada(token_server: Server) -> Iterator[Api]:
    with get_sync_client(url=token_server.url, api_key=token(ADA)) as client:
        yield client


@pytest.fixture(scope="module")
def ben(token_server: Server) -> Iterator[Api]:
    with get_sync_client(url=token_server.url, api_key=token(BEN)) as client:
        yield client


@pytest.fixture(scope="module")
def adas(token_server: Server) -> str:
    """The thread of Ada's agent, in which something was said."""
    return said(token_server, ADA, "default", SAID)


def test_a_name_gives_the_same_thread_every_time(token_server: Server, adas: str) -> None:
    with http(token_server, ADA) as client:
        assert client.put("/circadian/agents/default").json()["thread_id"] == adas
        assert client.get("/circadian/agents").json() == [
            {"agent": "default", "thread_id": adas, "status": "idle"}
        ]
        # Neither a copy nor another name in its metadata hides it or passes for it.
        client.post(f"/threads/{adas}/copy")
        client.patch(f"/threads/{adas}", json={"metadata": {"agent": "another"}})
        listed = client.get("/circadian/agents").json()
        assert [(one["agent"], one["thread_id"]) for one in listed] == [("default", adas)]
    assert adas == thread_id(ADA, "default")
    with http(token_server, BEN) as client:
        assert client.get("/circadian/agents").json() == []


def test_the_memory_lies_under_the_users_name(ada: Api, adas: str) -> None:
    mine = "ada@example%2Eorg"
    spaces = ada.store.list_namespaces()["namespaces"]
    assert spaces
    assert {one[0] for one in spaces} == {mine}
    found = ada.store.search_items((mine, adas, "journal"))["items"]
    assert any(SAID in item["value"]["content"] for item in found)


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({}, "no token"),
        ({"Authorization": "Bearer nonsense"}, "not valid"),
        ({"Authorization": f"Bearer {token(ADA, days=-1)}"}, "expired"),
        ({"X-Api-Key": token(ADA, secret="another secret that is long enough")}, "not valid"),
        ({"x-auth-scheme": "langsmith"}, "no token"),
    ],
)
def test_who_shows_no_good_token_is_refused(
    token_server: Server, headers: dict[str, str], why: str
) -> None:
    for method, path in (("POST", "/threads/search"), ("GET", "/circadian/agents")):
        answer = httpx.request(method, f"{token_server.url}{path}", headers=headers, json={})
        assert answer.status_code == 401
        assert why in answer.text


def test_nobody_takes_the_id_of_anothers_thread(token_server: Server, ada: Api, adas: str) -> None:
    run = {"assistant_id": "agent", "input": {"request": "tick"}, "if_not_exists": "create"}
    with http(token_server, BEN) as client:
        for path, body in (
            (f"/threads/{adas}/runs", run),
            ("/threads", {"thread_id": adas, "if_exists": "do_nothing"}),
            ("/assistants", {"graph_id": "agent", "metadata": {"created_by": "system"}}),
        ):
            answer = client.post(path, json=body)
            assert answer.status_code in (403, 404, 409), (path, answer.text)
    assert ada.threads.get(adas)["metadata"]["owner"] == ADA  # type: ignore[index]


def test_the_store_is_read_by_its_user_and_written_by_the_agent(
    ada: Api, ben: Api, adas: str
) -> None:
    theirs = ("ada@example%2Eorg", adas, "journal")
    asks: list[Callable[[], object]] = [
        lambda: ben.store.search_items(theirs),
        lambda: ben.store.search_items(()),
        lambda: ben.store.get_item(theirs, "x"),
        lambda: ben.store.put_item(theirs, "x", {"a": 1}),
        lambda: ben.store.delete_item(theirs, "x"),
        lambda: ben.store.list_namespaces(prefix=[theirs[0]]),
        lambda: ada.store.put_item(theirs, "x", {"a": 1}),
        lambda: ada.store.delete_item(theirs, "x"),
    ]
    for ask in asks:
        with pytest.raises(httpx.HTTPStatusError) as refused:
            ask()
        assert refused.value.response.status_code == 403
    assert ben.store.list_namespaces()["namespaces"] == []


def test_a_tried_name_does_not_tell_whether_its_agent_has_memory(
    token_server: Server, adas: str
) -> None:
    with http(token_server, BEN) as client:
        tried = [{"thread_id": adas}, {"thread_id": thread_id(ADA, "never made")}]
        answers = [client.post("/threads", json=one) for one in tried]
    assert [one.status_code for one in answers] == [403, 403]
    assert answers[0].json() == answers[1].json()


def test_neither_input_nor_context_names_the_user(token_server: Server, adas: str) -> None:
    body: dict[str, Any] = {"assistant_id": "agent", "input": {"request": "tick"}}
    with http(token_server, BEN) as client:
        mine = client.put("/circadian/agents/mine").json()["thread_id"]
        for config in (
            {"langgraph_auth_user_id": ADA},
            {"langgraph_auth_user": {"identity": ADA}},
            {"circadian": {"user": ADA}},
        ):
            answer = client.post(
                f"/threads/{mine}/runs/wait", json={**body, "config": {"configurable": config}}
            )
            assert answer.status_code in (200, 422), answer.text
        for context, status in (({"user": ADA}, 422), ({"owners": [ADA]}, 403)):
            answer = client.post(f"/threads/{mine}/runs/wait", json={**body, "context": context})
            assert answer.status_code == status, answer.text
        spaces = client.post("/store/namespaces", json={}).json()["namespaces"]
    assert {one[0] for one in spaces} <= {BEN}


def test_a_run_without_a_thread_is_refused(token_server: Server) -> None:
    body = {"assistant_id": "agent", "input": {"request": "tick"}}
    with http(token_server, BEN) as client:
        for path in ("/runs", "/runs/wait", "/runs/stream", "/runs/batch"):
            given: Any = [body] if path.endswith("batch") else body
            answer = client.post(path, json=given)
            assert answer.status_code == 422, (path, answer.text)


def test_metrics_and_health_are_for_operators(token_server: Server) -> None:
    for path in ("/circadian/health", "/circadian/metrics"):
        with http(token_server, BEN) as client:
            assert client.get(path).status_code == 403
        with http(token_server, "root", operator=True) as client:
            answer = client.get(path)
            assert answer.status_code == 200, answer.text
    assert "circadian_events_waiting" in answer.text


def test_events_are_put_into_the_callers_inbox(token_server: Server, ada: Api, adas: str) -> None:
    event = {"id": "e1", "text": "The kettle whistles.", "sender": "kitchen", "addressed": False}
    with http(token_server, ADA) as client:
        answer = client.post("/circadian/agents/default/events", json=[event])
        assert (answer.status_code, answer.json()["accepted"]) == (202, ["e1"])
        for broken in ("{", b"\xff"):
            assert client.post("/circadian/agents/x/events", content=broken).status_code == 400
        for wrong in ({"id": "e"}, "The kettle", {"text": "Hi", "kind": "chat"}, {"text": " "}):
            answer = client.post("/circadian/agents/x/events", json=wrong)
            assert (answer.status_code, "event" in answer.text) == (422, True)
    ada.runs.wait(adas, "agent", input={"request": "tick"})
    found = ada.store.search_items(("ada@example%2Eorg", adas, "journal"), limit=100)["items"]
    assert any("kettle" in item["value"]["content"] for item in found)
    ada.runs.wait(adas, "agent", input={"request": "tick"})
    with http(token_server, ADA) as client:
        again = client.post("/circadian/agents/default/events", json=event)
        assert again.json() == {"thread_id": adas, "accepted": [], "skipped": ["e1"]}


def test_an_event_brings_a_text_and_gets_the_rest(token_server: Server, ada: Api) -> None:
    with http(token_server, ADA) as client:
        thread = client.put("/circadian/agents/bare").json()["thread_id"]
        path = "/circadian/agents/bare/events"
        twice = [client.post(path, json={"text": "The bell rings."}).json() for _ in range(2)]
    # Two posts are two events: only an id makes them one.
    assert len({one for body in twice for one in body["accepted"]}) == 2
    [named] = ada.store.search_items(("ada@example%2Eorg", thread, "agent"))["items"]
    assert named["value"] == {"name": "bare"}, "for `circadian agents`"
    waiting = ada.store.search_items(("ada@example%2Eorg", thread, "inbox"))["items"]
    events = [item["value"]["event"] for item in waiting]
    assert {(one["sender"], one["addressed"], one["channel"]) for one in events} == {
        (ADA, True, None)
    }
    assert sorted(one["id"] for one in events) == sorted(
        one for body in twice for one in body["accepted"]
    )
    # No owner's word: only a chat message of the authenticated user is.
    assert {one.get("kind") for one in events} == {None}
