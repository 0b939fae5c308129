"""Headers that claim another sender, host or page: none of them makes anybody somebody else."""

from collections.abc import Mapping

import pytest
from langgraph_sdk import get_sync_client

from tests.server.test_server_auth import http, said, token
from tests.support.fuzz import FORGED, resolved
from tests.support.server import Server

ADA, BEN = "ada-of-the-forged", "ben-of-the-forged"
SAID = "Remember that my sister Ottoline is allergic to walnuts"
CLAIMS = [
    *FORGED,
    {"X-Forwarded-For": "circadian"},
    {"X-Forwarded-For": "127.0.0.1, 10.0.0.1", "X-Real-IP": "127.0.0.1"},
    {"X-Authenticated-User": "{ada}", "X-Auth-Request-User": "{ada}", "Remote-User": "{ada}"},
    {"X-Auth-Scheme": "langsmith", "X-Tenant-Id": "{ada}", "X-Organization-Id": "{ada}"},
    {"X-Service-Key": "x", "X-Langgraph-Auth-User": "{ada}", "X-Langgraph-Auth-User-Id": "{ada}"},
    {"Cookie": "circadian_inspect={ada}"},
]


@pytest.fixture(scope="module")
def thread(token_server: Server) -> str:
    """Of Ada's agent, which knows something."""
    return said(token_server, ADA, "home", SAID)


def asks(thread: str) -> list[tuple[str, str, object]]:
    """What would show Ada's memory, or change it."""
    run = {"assistant_id": "agent", "input": {"request": "stop"}}
    return [
        ("GET", "/circadian/agents/home/journal", None),
        ("GET", "/circadian/agents/home/export", None),
        ("GET", "/circadian/users", None),
        ("POST", "/circadian/agents/home/events", {"text": "Hi"}),
        ("GET", f"/threads/{thread}/state", None),
        ("POST", "/threads/search", {}),
        ("POST", f"/threads/{thread}/runs/wait", run),
        ("POST", "/store/items/search", {"namespace_prefix": [ADA]}),
        ("GET", f"/noauth/threads/{thread}/state", None),
        ("GET", "/noauth/circadian/agents/home/journal", None),
    ]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda one: ",".join(one))
@pytest.mark.parametrize("user", [BEN, None])
def test_no_header_makes_one_somebody_else(
    token_server: Server, thread: str, user: str | None, claim: Mapping[str, str]
) -> None:
    headers = {name: resolved(value, {"ada": ADA}) for name, value in claim.items()}
    with get_sync_client(url=token_server.url, api_key=token(ADA)) as api:
        before = api.threads.get_state(thread)["checkpoint"]
        with http(token_server, user) as client:
            for method, path, body in asks(thread):
                answer = client.request(method, path, json=body, headers=headers)
                told = (method, path, answer.status_code, answer.text[:300])
                assert answer.status_code < 500, told
                assert "ottoline" not in answer.text.lower(), told
                if user is None or "/threads/" in path.removesuffix("/search"):
                    assert answer.status_code in (401, 403, 404), told
        assert api.threads.get_state(thread)["checkpoint"] == before
