"""The HTTP API on a real server: each route by a client made from its OpenAPI document."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client

from graph.server.problems import LARGEST_BODY
from tests.server.test_server_auth import http, said, token
from tests.support.api_client import ApiClient
from tests.support.server import Server

ADA, BEN = "ada-of-the-api", "ben-of-the-api"
NAME = {"name": "home"}
SAID = "Remember that my sister Wilma is allergic to walnuts"
WORDS = ("walnut", "wilma", ADA)
"""What stands in everything of Ada's, and in nothing that Ben says."""
OTHERS = (
    "ready",
    "health",
    "show_metrics",
    "erase_me",
    "list_users",
    "erase_a_user",
    "revoke_tokens",
)
"""Routes of operators, and the one that ends it all: they have tests of their own."""


class Home:
    """Ada's agent on the server, and the clients of both users."""

    def __init__(self, server: Server) -> None:
        document = httpx.get(f"{server.url}/openapi.json", timeout=60).json()
        self.https = {user: http(server, user) for user in (ADA, BEN)}
        self.ada = ApiClient(self.https[ADA], document)
        self.ben = ApiClient(self.https[BEN], document)
        self.thread = self.ada.agent(**NAME)["thread_id"]
        self.server = server

    def say(self, text: str) -> None:
        said(self.server, ADA, NAME["name"], text)

    def finish(self, started: dict[str, str]) -> None:
        with get_sync_client(url=self.server.url, api_key=token(ADA)) as client:
            client.runs.join(started["thread_id"], started["run_id"])

    def night(self, **how: Any) -> dict[str, Any]:
        self.finish(self.ada.sleep(**NAME, **how))
        found: dict[str, Any] = self.ada.show_night(**NAME, id="last")
        return found

    def facts(self, **how: Any) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.ada.list_facts(**NAME, **how)["items"]
        return items


@pytest.fixture(scope="module")
def home(token_server: Server) -> Iterator[Home]:
    """Ada said something, and slept over it."""
    made = Home(token_server)
    made.say(SAID)
    made.night()
    yield made
    for client in made.https.values():
        client.close()


def test_every_reading_shows_her_memory_to_her(home: Home) -> None:
    ada = home.ada
    assert ada.show_status(**NAME)["memory"]["facts"] == len(home.facts()) > 0
    assert ada.agents()[-1]["agent"] == "home"
    assert ada.list_goals(**NAME) == []
    assert ada.list_projects(**NAME)["slots"] == {}
    assert ada.list_questions(**NAME) == []
    fact = home.facts(q="walnuts")[0]
    detail = ada.show_fact(**NAME, id=fact["id"])
    assert SAID in detail["sources"][0]["content"]
    assert detail["nights"][0]["kind"] == "add_fact"
    assert ada.show_memory(**NAME, id=fact["id"]) == detail
    entry = ada.show_entry(**NAME, id=detail["sources"][0]["id"])
    assert fact["id"] in [made["id"] for made in entry["made"]]
    everything = ada.list_memories(**NAME)
    assert everything["total"] > len(home.facts())
    assert ada.list_memories(**NAME, kind="insight")["total"] == 0
    [hit] = ada.recall_memories(**NAME, q="What is Wilma allergic to?", limit=1)
    assert sum(hit["parts"].values()) == pytest.approx(hit["score"])
    journal = ada.list_journal(**NAME)
    assert SAID in [one["content"] for one in journal["items"]]
    for person in ada.list_people(**NAME)["items"]:
        assert ada.show_person(**NAME, id=person["id"])["profile"]["name"] == person["name"]
    [night] = ada.list_nights(**NAME, status="complete")["items"]
    assert ada.show_night(**NAME, id=night["id"])["operations"]
    newest = ada.list_ticks(**NAME)["items"][0]
    assert ada.show_tick(**NAME, number=newest["tick"])["report"] == newest
    log = ada.show_log(**NAME, what="night")
    assert {one["what"] for one in log["items"]} == {"night"}


def test_lists_are_pages_that_together_are_whole(home: Home) -> None:
    whole = home.ada.list_memories(**NAME, sort="oldest")["items"]
    pages = [
        home.ada.list_memories(**NAME, sort="oldest", limit=1, offset=place)["items"][0]
        for place in range(len(whole))
    ]
    assert pages == whole


def test_what_is_unchanged_is_not_sent_again(home: Home) -> None:
    path = "/circadian/agents/home/facts"
    first = home.https[ADA].get(path)
    again = home.https[ADA].get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert home.https[ADA].get(path, headers={"If-None-Match": '"other"'}).status_code == 200


def test_a_night_is_previewed_discarded_applied_and_undone(home: Home) -> None:
    ada = home.ada
    home.say("Remember that Wilma moved to Bergen")
    preview = home.night(dry_run=True)
    assert preview["status"] == "preview"
    assert home.facts(q="Bergen") == []
    assert ada.discard_night(**NAME, id=preview["id"])["status"] == "discarded"
    second = home.night(dry_run=True)
    home.finish(ada.apply_night(**NAME, id=second["id"]))
    assert ada.show_night(**NAME, id=second["id"])["status"] == "complete"
    assert len(home.facts(q="Bergen")) == 1
    assert ada.undo_night(**NAME, id=second["id"])["status"] == "undone"
    assert home.facts(q="Bergen") == []
    assert ada.apply_night(**NAME, id=second["id"], expected=422)["type"] == "urn:circadian:input"


def test_a_fact_is_mended_and_its_successor_forgotten(home: Home) -> None:
    ada = home.ada
    old = home.facts(q="walnuts", holds=True)[0]
    done = ada.correct_fact({"text": "Wilma is allergic to hazelnuts"}, **NAME, id=old["id"])
    new = done["fact"]
    assert done["superseded"]["superseded_by"] == new["id"]
    assert [one["id"] for one in ada.show_fact(**NAME, id=new["id"])["replaced"]] == [old["id"]]
    preview = ada.forget_memory({"fact": new["id"]}, **NAME, preview=True)
    assert (preview["dry_run"], new["text"] in preview["examples"]) == (True, True)
    assert {one["id"] for one in preview["memories"]} == {new["id"], *new["source_entries"]}
    assert len(home.facts(q="hazelnuts")) == 1
    assert ada.forget_memory({"fact": new["id"]}, **NAME)["counts"]["facts"] == 1
    assert home.facts(q="hazelnuts") == []
    assert ada.show_fact(**NAME, id=new["id"], expected=404)["status"] == 404
    assert home.facts(q="walnuts", holds=True)[0]["id"] == old["id"]


def test_an_entry_is_forgotten_with_its_message_and_what_was_made_of_it(home: Home) -> None:
    home.say("Remember that the plumber Zacharias charges ninety crowns")
    home.night()
    assert len(home.facts(q="Zacharias")) == 1
    [entry] = home.ada.list_memories(**NAME, q="Zacharias plumber", kind="entry")["items"]
    done = home.ada.forget_memory({"entry": entry["id"]}, **NAME)
    assert (done["counts"]["facts"], done["counts"]["journal"]) == (1, 1)
    with get_sync_client(url=home.server.url, api_key=token(ADA)) as client:
        shown = str([client.threads.get(home.thread), client.threads.get_state(home.thread)])
    assert "Zacharias" not in shown
    assert home.ada.list_memories(**NAME, q="Zacharias")["total"] == 0


def test_an_event_that_waits_is_withdrawn(home: Home) -> None:
    ada = home.ada
    posted = ada.post_events([{"id": "w1", "text": "Never mind"}, {"text": "Hello"}], **NAME)
    assert (posted["accepted"][0], len(posted["accepted"])) == ("w1", 2)
    assert "w1" in [one["item"]["event"]["id"] for one in ada.list_events(**NAME)["items"]]
    assert ada.withdraw_event(**NAME, id="w1")["event"]["text"] == "Never mind"
    assert ada.withdraw_event(**NAME, id="w1", expected=404)["title"] == "Not Found"
    assert ada.withdraw_event(**NAME, id=posted["accepted"][1])
    two = [{"id": "w2", "text": "One"}, {"id": "w2", "text": "Another"}]
    assert "'w2'" in ada.post_events(two, **NAME, expected=422)["detail"]
    assert ada.post_events(two[:1] * 2, **NAME)["accepted"] == ["w2"]
    assert ada.withdraw_event(**NAME, id="w2")
    ada.post_events({"id": "mail/2026", "text": "An id with a slash"}, **NAME)
    assert ada.withdraw_event(**NAME, id="mail/2026")["event"]["id"] == "mail/2026"
    assert ada.list_events(**NAME)["total"] == 0


def test_a_memory_is_exported_forgotten_and_imported(home: Home) -> None:
    ada, other = home.ada, {"name": "other"}
    home.say(SAID)
    exported = ada.export_memory(**NAME)
    assert ada.import_memory(exported, **other, expected=422)["type"] == "urn:circadian:input"
    before = home.facts()
    counted = ada.forget_memory({"agent": True}, **NAME, preview=True)["counts"]
    assert counted["facts"] == len(before)
    ada.forget_memory({"agent": True}, **NAME)
    assert home.facts() == []
    assert "home" not in [one["agent"] for one in ada.agents()]
    assert ada.import_memory(exported, **NAME)["already"] is False
    assert [one["status"] for one in ada.agents() if one["agent"] == "home"] == ["idle"]
    assert [one["text"] for one in home.facts()] == [one["text"] for one in before]


def test_a_change_waits_for_no_run_and_says_so(home: Home) -> None:
    home.ada.post_events([{"text": f"Item {n} is heavy"} for n in range(20)], **NAME)
    started = home.ada.sleep(**NAME)
    told = home.ada.forget_memory({"person": "Zoe"}, **NAME, expected=409)
    assert (told["type"], told["status"]) == ("urn:circadian:busy", 409)
    home.finish(started)
    assert home.ada.forget_memory({"person": "Zoe"}, **NAME, expected=404)["errors"] == []


def test_every_route_is_driven_by_a_test(home: Home) -> None:
    """By this file, or by the one with a model that asks to be let do something dangerous."""
    here = Path(__file__)
    tests = here.read_text() + (here.parent / "test_server_approval.py").read_text()
    left = [name for name in home.ada.operations if not re.search(rf"\b{name}\b", tests)]
    assert left == []


DEEP = "[" * 100_000
JUNK: list[Any] = [
    DEEP,
    '{"text": ' + DEEP,
    b"\xff\xfe",
    "{",
    "NaN",
    '{"text": "\\ud800"}',
    '{"text": "a\\u0000b", "person": "\\u0000"}',
    '{"text": 3, "fact": [], "args": 7}',
    '[{"text": {"a": []}}]',
    "[]",
    "null",
]


def test_what_is_malformed_is_refused_in_one_shape(home: Home) -> None:
    client = home.https[ADA]
    for operation, (method, path, declared) in home.ada.operations.items():
        if method == "get" or path == "/circadian/me":
            continue
        url = path.format(name="junk", id="%ff%00'\"", number=1, user=ADA)
        for body in JUNK if "requestBody" in declared else [None]:
            answer = client.request(
                method, url, content=body, headers={"Content-Type": "application/json"}
            )
            told = (operation, str(body)[:40], answer.status_code, answer.text[:300])
            assert answer.status_code < 500, told
            if answer.status_code >= 400:
                assert answer.headers["content-type"] == "application/problem+json", told
                assert answer.json()["status"] == answer.status_code, told


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/agents/home/facts?limit=0", 422),
        ("/agents/home/facts?since=yesterday", 422),
        ("/agents/home/facts?since=0001-01-01T00:00:00%2B14:00", 422),
        ("/agents/home/log?since=9999-12-31T23:59:59-14:00", 422),
        ("/agents/home/facts?offset=99999999999999999999", 422),
        ("/agents/home/facts?persn=Ada", 422),
        ("/agents?limit=1", 422),
        ("/agents/home/recall", 422),
        ("/agents/home/recall?q=%20", 422),
        ("/agents/home/journal?day=..", 422),
        ("/agents/home/ticks/99999999", 404),
        ("/agents/home/people/nobody", 404),
        ("/agents/home/nights/nothing", 404),
        ("/agents/home/questions/q", 404),
        ("/agents/home/journal/x_20260101_y", 404),
        ("/agents/home/journal/x_20260101_a%2Fb", 404),
        ("/agents/home/memories/x_20260101_a%2Fb", 404),
        ("/agents/home/people/a%2Fb", 404),
        ("/agents/%20/facts", 422),
        ("/nowhere", 404),
        ("/metrics", 403),
    ],
)
def test_a_refusal_says_what_is_wrong(home: Home, path: str, status: int) -> None:
    answer = home.https[ADA].get(f"/circadian{path}")
    assert (answer.status_code, answer.headers["content-type"]) == (
        status,
        "application/problem+json",
    )
    assert answer.json()["detail"] not in ("", "Not Found") or path == "/nowhere"
    assert "circadian " not in answer.json()["detail"]  # a command


@pytest.mark.parametrize(
    ("method", "path", "status", "allowed"),
    [
        ("PUT", "/agents/home/facts", 405, "GET, HEAD"),
        ("PATCH", "/agents/home/events", 405, "GET, HEAD, POST"),
        ("OPTIONS", "/agents/home/facts", 405, "GET, HEAD"),
        ("TRACE", "/agents/home/facts", 405, "GET, HEAD"),
        ("POST", "/me", 405, "DELETE"),
        ("PUT", "/nowhere", 404, None),
    ],
)
def test_a_method_that_a_route_does_not_take_is_named(
    home: Home, method: str, path: str, status: int, allowed: str | None
) -> None:
    answer = home.https[ADA].request(method, f"/circadian{path}")
    assert (answer.status_code, answer.headers.get("allow")) == (status, allowed)
    assert answer.headers["content-type"] == "application/problem+json"


def test_head_answers_as_get_does_without_the_body(home: Home) -> None:
    for path in ("ready", "agents", "agents/home/facts", "agents/home/export", "metrics", "me"):
        read, asked = (home.https[ADA].request(m, f"/circadian/{path}") for m in ("GET", "HEAD"))
        assert (asked.status_code, asked.content) == (read.status_code, b""), path
        assert asked.headers.get("etag") == read.headers.get("etag"), path


def test_a_condition_on_a_change_does_not_hold(home: Home) -> None:
    for condition in ("If-Match", "If-None-Match"):
        path, headers = "/circadian/agents/home/facts/x/correct", {condition: '"stale"'}
        answer = home.https[ADA].post(path, json={"text": "Yes"}, headers=headers)
        assert (answer.status_code, answer.json()["title"]) == (412, "Precondition Failed")


def test_a_large_body_is_not_read_to_its_end(home: Home) -> None:
    large = b"x" * (LARGEST_BODY + 1)
    for path in ("forget", "events"):
        for body in (large, iter([large])):
            answer = home.https[ADA].post(f"/circadian/agents/home/{path}", content=body)
            told = (answer.status_code, answer.headers["content-type"])
            assert told == (413, "application/problem+json")
    imported = home.https[ADA].post("/circadian/agents/home/import", content=large)
    assert imported.status_code == 422


def test_the_document_says_how_to_sign_in_and_keeps_what_langgraph_says(home: Home) -> None:
    document = home.https[ADA].get("/openapi.json").json()
    schemes = document["components"]["securitySchemes"]
    assert {next(iter(one)) for one in document["security"]} == schemes.keys()
    assert {one["type"] for one in schemes.values()} == {"http", "apiKey"}
    assert document["paths"]["/circadian/ready"]["get"]["security"] == []
    assert "requestBody" in document["paths"]["/threads"]["post"]


def test_a_misspelt_parameter_changes_nothing(home: Home) -> None:
    agent = "/circadian/agents/home"
    for path, body in (("forget?previw=true", {"agent": True}), ("sleep?dryrun=true", {})):
        answer = home.https[ADA].post(f"{agent}/{path}", json=body)
        assert answer.status_code == 422, path
        assert "the parameters here are" in answer.json()["detail"]
    assert home.https[ADA].get(f"{agent}/facts").json()["total"]


def test_without_a_token_the_problem_has_the_same_shape(token_server: Server) -> None:
    answer = httpx.get(f"{token_server.url}/circadian/agents/home/facts", timeout=60)
    assert (answer.status_code, answer.json()["title"]) == (401, "Unauthorized")
    assert answer.headers["content-type"] == "application/problem+json"
