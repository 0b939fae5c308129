"""What a user may keep, what a thread takes along when it goes, and who waits for whom."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.server.test_server_auth import http
from tests.support import launching
from tests.support.openai_server import OpenAIServer, text
from tests.support.server import SECRET, Server

MOST, AT_ONCE = 12, 8
SAID = "My parrot is called Quetzalcoatl"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "files").mkdir()
    with Server(
        folder,
        CIRCADIAN_TOKEN_SECRET=SECRET,
        CIRCADIAN_MEMORIES_PER_USER=str(MOST),
        CIRCADIAN_EVENTS_PER_REQUEST=str(AT_ONCE),
        CIRCADIAN_EVENTS_WAITING=str(AT_ONCE + 1),
        CIRCADIAN_FOLDER=str(folder / "files"),
    ) as running:
        yield running


class User:
    def __init__(self, client: httpx.Client, name: str, agent: str) -> None:
        self.client, self.name, self.agent = client, name, agent
        made = self.client.put(f"/circadian/agents/{agent}")
        self.thread = str(made.json()["thread_id"])

    def run(self, *said: str, **given: Any) -> httpx.Response:
        if said:
            given["messages"] = [{"role": "user", "content": one} for one in said]
        body = {"assistant_id": "agent", "input": given}
        return self.client.post(f"/threads/{self.thread}/runs/wait", json=body)

    def own_journal(self) -> list[dict[str, Any]]:
        """As the store has it, also of a thread without a name."""
        asked = {"namespace_prefix": [self.name, self.thread, "journal"], "limit": 1000}
        found: list[dict[str, Any]] = self.client.post("/store/items/search", json=asked).json()[
            "items"
        ]
        return found

    def journal(self) -> list[dict[str, Any]]:
        path = f"/circadian/agents/{self.agent}/journal"
        found: list[dict[str, Any]] = self.client.get(path).json()["items"]
        return found


Users = Callable[..., User]


@pytest.fixture
def user() -> Iterator[Users]:
    with ExitStack() as opened:

        def make(server: Server, name: str, agent: str = "default") -> User:
            return User(opened.enter_context(http(server, name)), name, agent)

        yield make


def test_who_is_full_may_still_stop_sleep_forget_and_delete(server: Server, user: Users) -> None:
    hoarder = user(server, "hoarder")
    assert hoarder.run(*["Jam."] * (AT_ONCE + 1)).status_code == 422
    # Marks, runs and links do not count: half a dozen messages are half a dozen.
    for number in range(MOST // 2):
        assert hoarder.run(f"Shelf {number} holds jam.").status_code == 200
    assert len(hoarder.journal()) <= MOST
    while (answer := hoarder.run("One more.")).status_code == 200:
        assert len(hoarder.journal()) <= MOST + 2
    assert (answer.status_code, "memories are kept" in answer.text) == (507, True)
    events = f"/circadian/agents/{hoarder.agent}/events"
    assert hoarder.client.post(events, json={"text": "Hi"}).status_code == 507
    for request in ("stop", "clear_stop", "sleep", "wake", "tick"):
        assert hoarder.run(request=request).status_code == 200, request
    entry = hoarder.journal()[-1]["id"]
    gone = hoarder.client.post(f"/circadian/agents/{hoarder.agent}/forget", json={"entry": entry})
    assert gone.status_code == 200, gone.text
    assert hoarder.client.delete(f"/threads/{hoarder.thread}").status_code == 204
    assert hoarder.client.put("/circadian/agents/default").status_code == 200
    assert hoarder.run("A new beginning.").status_code == 200


def test_what_somebody_said_counts_once_also_when_it_is_answered_and_a_night_has_passed(
    server: Server, user: Users
) -> None:
    ida, iris = user(server, "ida"), user(server, "iris")
    home = f"/circadian/agents/{ida.agent}"
    for half in "AB":
        said = [{"text": f"Bread {half}{n} is in the oven"} for n in range(MOST // 2)]
        assert ida.client.post(f"{home}/events", json=said).status_code == 202
        assert len(ida.run(request="tick").json()["report"]["ticks"]) == MOST // 2
    exported = ida.client.get(f"{home}/export").content
    for agent, status in (("one", 200), ("two", 507)):
        brought = iris.client.post(f"/circadian/agents/{agent}/import", content=exported)
        assert brought.status_code == status, brought.text
    assert f"the file has {MOST} memories" in brought.text
    assert ida.run(request="sleep").json()["report"]["night"]["status"] == "complete"
    assert ida.client.get(f"{home}/facts").json()["total"] > 0
    ida.client.post(f"{home}/forget", json={"entry": ida.journal()[-1]["id"]})
    for status in (202, 507):
        assert ida.client.post(f"{home}/events", json={"text": "Hi"}).status_code == status


@pytest.mark.parametrize("way", ["state", "supersteps", "start"])
def test_messages_put_into_the_state_are_bound_by_the_same_limits(
    server: Server, user: Users, way: str
) -> None:
    """The hooks on requests are not shown them: a run takes in what fits, and leaves the rest."""
    eve = user(server, f"eve-{way}")
    said = [{"type": "human", "content": f"Jar {number} holds jam."} for number in range(100)]
    if way == "supersteps":
        step = {"updates": [{"values": {"messages": said}, "as_node": "__start__"}]}
        body: dict[str, Any] = {"metadata": {"graph_id": "agent"}, "supersteps": [step]}
        eve.thread = str(eve.client.post("/threads", json=body).json()["thread_id"])
    else:
        assert eve.run(request="tick").status_code == 200
        body = {
            "values": {"messages": said},
            "as_node": "__start__" if way == "start" else "intake",
        }
        assert eve.client.post(f"/threads/{eve.thread}/state", json=body).status_code == 200
    seen = []
    for request in ("tick", "tick", "sleep", "stop", "clear_stop"):
        state = eve.run(request=request).json()
        report = state["report"]
        seen.append((len(report["ticks"]), report["notes"][0], len(state["messages"])))
        assert len(eve.own_journal()) <= MOST, request
    left, why = 100 - AT_ONCE, f"at most {AT_ONCE} events in one request"
    assert seen[0][:2] == (AT_ONCE, f"Messages that stay in the thread: {left} ({why}).")
    assert seen[1][0] == MOST - AT_ONCE
    assert "memories are kept" in seen[1][1]
    assert seen[-1][2] == 100 + MOST  # the rest is in the thread, and nothing is doubled


def test_a_thread_takes_the_agents_memory_and_files_along(server: Server, user: Users) -> None:
    ada, ben = user(server, "ada"), user(server, "ben")
    named, other = user(server, "ada", "named"), user(server, "ada", "other")
    for one in (ada, named, other, ben):
        assert one.run(SAID).status_code == 200
    files = server.folder / "files" / "ada" / ada.thread
    files.mkdir(parents=True)
    (files / "diary.txt").write_text(SAID)
    assert ben.client.delete(f"/threads/{ada.thread}").status_code == 404
    assert ada.client.delete(f"/threads/{ben.thread}").status_code == 404
    assert len(ada.journal()) >= 1
    assert ada.client.delete(f"/threads/{ada.thread}").status_code == 204
    assert not files.exists()
    pruned = ada.client.post("/threads/prune", json={"thread_ids": [named.thread]})
    assert pruned.status_code == 200, pruned.text
    for gone in (ada, named):
        spaces = gone.client.post("/store/namespaces", json={"prefix": ["ada", gone.thread]})
        assert spaces.json()["namespaces"] == []
        # Made anew by its name, it knows nothing.
        assert gone.client.put(f"/circadian/agents/{gone.agent}").json()["thread_id"] == gone.thread
        assert gone.journal() == []
    for left in (other, ben):
        assert any("Quetzalcoatl" in one["content"] for one in left.journal())


def test_deletions_at_once_delete_nobody_elses_thread(server: Server, user: Users) -> None:
    leaving = [user(server, f"leaver-{number}") for number in range(8)]
    staying = [user(server, "stayer", str(number)) for number in range(8)]
    for one in leaving:
        assert one.run(SAID).status_code == 200
    with ThreadPoolExecutor(len(leaving)) as pool:
        answers = pool.map(lambda one: one.client.delete(f"/threads/{one.thread}"), leaving)
        assert [one.status_code for one in answers] == [204] * len(leaving)
    for some, status in ((leaving, 404), (staying, 200)):
        seen = [one.client.get(f"/threads/{one.thread}").status_code for one in some]
        assert seen == [status] * len(some)


def test_what_deletes_no_thread_takes_no_memory_along(server: Server, user: Users) -> None:
    """The server asks `delete` also for a run, and for all threads of a prune at once."""
    eve, ben = user(server, "eve"), user(server, "ben", "beside")
    assert eve.run(SAID).status_code == 200
    [run] = eve.client.get(f"/threads/{eve.thread}/runs").json()
    assert eve.client.delete(f"/threads/{eve.thread}/runs/{run['run_id']}").status_code == 204
    for others, strategy, status in (
        ([ben.thread], "delete", 404),
        ([str(uuid4())], "delete", 404),
        ([], "keep_latest", 422),
    ):
        asked = {"thread_ids": [eve.thread, *others], "strategy": strategy}
        refused = eve.client.post("/threads/prune", json=asked)
        assert refused.status_code == status, refused.text
    assert [one["content"] for one in eve.journal()] == [SAID]


def test_a_thread_whose_agent_works_is_not_deleted_under_it(
    user: Users, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does a second user's run wait for the first's: seen on the same server."""
    launching.set_up(monkeypatch, tmp_path)
    monkeypatch.delenv("TZ")  # a server that learns its zone from the machine's files
    with OpenAIServer(text("Well, ...", delay=5.0), text("At once."), text("I see.")) as model:
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        with Server(tmp_path / "server", CIRCADIAN_TOKEN_SECRET=SECRET) as slow:
            ada, ben = user(slow, "ada"), user(slow, "ben")
            body = {
                "assistant_id": "agent",
                "input": {"messages": [{"role": "user", "content": SAID}]},
            }
            runs = f"/threads/{ada.thread}/runs"
            begun = ada.client.post(runs, json=body).json()["run_id"]
            while not model.requests:
                assert ada.client.get(f"{runs}/{begun}").json()["status"] in ("pending", "running")
            assert ben.run("Are you there?").json()["report"]["failures"] == []
            assert ada.client.get(f"{runs}/{begun}").json()["status"] == "running"
            idle = user(slow, "ada", "idle")
            assert idle.run(SAID).status_code == 200
            both = {"thread_ids": [idle.thread, ada.thread]}
            for refused in (
                ada.client.delete(f"/threads/{ada.thread}"),
                ada.client.post("/threads/prune", json=both),
            ):
                assert (refused.status_code, "running" in refused.text) == (409, True)
            assert idle.journal() != []
            assert ada.client.get(f"{runs}/{begun}/join").status_code == 200
            assert ada.client.delete(f"/threads/{ada.thread}").status_code == 204
