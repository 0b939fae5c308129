"""Every route under `/circadian`, asked with what its document allows, and with almost that.

No answer is a failure of the server, every error is a problem document, every answer has the
declared form, and none has a word of another user's memory, which stays as it is.
"""

from collections.abc import Iterator

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.server.app import app
from tests.server.test_server_auth import http
from tests.server.test_server_inspector import say
from tests.support.api_client import ApiClient
from tests.support.fuzz import Asked, Operation, operations, requests, resolved
from tests.support.server import Server

ADA, BEN, ROOT = "ada-of-the-fuzz", "ben-of-the-fuzz", "root-of-the-fuzz"
SAID = {
    ADA: "Remember that my sister Wilhelmina is allergic to walnuts",
    BEN: "Remember that my brother Konstantin grows cinnamon",
    ROOT: "Remember that the cellar is damp",
}
WORDS = ("walnut", "wilhelmina")
"""What stands in everything of Ada's memory, and in nothing that others say."""
LISTS = ("facts", "journal", "nights", "people")
KNOWN = [f"{user}-{what}" for user in ("ada", "ben") for what in LISTS]
OPERATIONS = operations(app.openapi(), "/circadian/")


class World:
    def __init__(self, server: Server) -> None:
        self.document = httpx.get(f"{server.url}/openapi.json", timeout=60).json()
        self.https = {user: http(server, user, operator=user == ROOT) for user in SAID}
        self.known = {"ada": ADA}
        for user, text in SAID.items():
            say(server, user, "home", text)
        for name, user in (("ada", ADA), ("ben", BEN)):
            for what in LISTS:
                found = self.https[user].get(f"/circadian/agents/home/{what}").json()
                self.known[f"{name}-{what}"] = found["items"][0]["id"]
        self.adas = self.memory()

    def memory(self) -> list[str]:
        """Ada's whole memory, without the line that says when it was asked for."""
        exported = self.https[ADA].get("/circadian/agents/home/export")
        assert exported.status_code == 200, exported.text
        return exported.text.splitlines()[1:]

    def send(self, user: str, asked: Asked) -> httpx.Response:
        headers = {name: resolved(one, self.known) for name, one in asked.headers.items()}
        body = None if asked.body is None else resolved(asked.body, self.known)
        content = None if body is None else body.encode("utf-8", "surrogatepass")
        # As it is: a client would take `..` for a step up.
        target = {"target": asked.target(self.known).encode()}
        return self.https[user].request(
            asked.method, "/", content=content, headers=headers, extensions=target
        )


@pytest.fixture(scope="module")
def world(token_server: Server) -> Iterator[World]:
    made = World(token_server)
    yield made
    for client in made.https.values():
        client.close()


@pytest.fixture(autouse=True)
def _nothing_of_hers_has_changed(world: World) -> Iterator[None]:
    yield
    assert world.memory() == world.adas


# Five examples of each route, and in the slow run 125.
@settings(derandomize=True, database=None, max_examples=settings().max_examples // 4)
@given(data=st.data())
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.id)
def test_no_request_fails_the_server_or_shows_anothers_words(
    world: World, operation: Operation, data: st.DataObject
) -> None:
    user = data.draw(st.sampled_from((BEN, BEN, ROOT)))
    asked = data.draw(requests(operation, app.openapi(), KNOWN))
    answer = world.send(user, asked)
    told = (asked, user, answer.status_code, answer.text[:500])
    assert answer.status_code < 500, told
    assert not [word for word in WORDS if word in answer.text.lower()], told
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json", told
        problem = answer.json()
        assert problem["status"] == answer.status_code, told
        assert problem["type"].startswith("urn:circadian:"), told
        assert problem["title"], told
        assert problem["detail"], told
    ApiClient(world.https[user], world.document).checked(operation.id, answer)
