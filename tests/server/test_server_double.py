"""A second run while one goes on: what each strategy of the server does to a tick, and to a night.

`enqueue` lets the first end, `reject` refuses the second, `interrupt` breaks the first off where it
is, `rollback` takes back what it did to the thread. Whichever: no event is lost, none is journaled
or answered twice in the state that stands, and the night is complete in the end.
"""

import threading
from collections.abc import Iterator
from typing import Any, Literal, cast

import httpx
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from memory.records.records import LOCAL_USER
from tests.server.test_server import Thread, event, said
from tests.support.agents import handled
from tests.support.openai_server import KEY, OpenAIServer, Reply, text
from tests.support.server import Server, until

Strategy = Literal["enqueue", "reject", "interrupt", "rollback"]
STRATEGIES: list[Strategy] = ["enqueue", "reject", "interrupt", "rollback"]
EVENTS = 8
ENTRIES = 24
SMALL = {"consolidate_batch_size": 1, "score_batch_size": 1, "night_calls_per_100": 2_000}
"""Settings of a night with many calls, and so with many places to break it off at."""
FIRST_IS = {"enqueue": "success", "reject": "success", "interrupt": "interrupted", "rollback": None}


class Model(OpenAIServer):
    """A model that answers everything alike, its third request only once it may."""

    def __init__(self) -> None:
        super().__init__()
        self.held, self.go = threading.Event(), threading.Event()

    def begin(self) -> None:
        self.requests.clear()
        self.held.clear()
        self.go.clear()

    def next_reply(self, body: dict[str, Any]) -> Reply:
        self.requests.append(body)
        if len(self.requests) == 3:
            self.held.set()
            self.go.wait(60)
        return text("Noted.")


@pytest.fixture(scope="module")
def serving() -> Iterator[Model]:
    with Model() as model:
        yield model


@pytest.fixture
def model(serving: Model) -> Model:
    """The model of the test's server, before its first request."""
    serving.begin()
    return serving


@pytest.fixture(scope="module")
def client(
    tmp_path_factory: pytest.TempPathFactory, serving: Model
) -> Iterator[SyncLangGraphClient]:
    """A client of the server of all ticks; each test has a thread, that is an agent, of its own."""
    asked: Any = {"CIRCADIAN_MODEL": "openai:none", "CIRCADIAN_EMBEDDER": "offline"}
    asked |= {"OPENAI_BASE_URL": serving.base_url, "OPENAI_API_KEY": KEY}
    folder = tmp_path_factory.mktemp("ticks")
    with Server(folder, **asked) as server, get_sync_client(url=server.url) as opened:
        yield opened
    serving.go.set()


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncLangGraphClient]:
    """The same for all nights, with the offline model."""
    folder = tmp_path_factory.mktemp("nights")
    with Server(folder) as server, get_sync_client(url=server.url) as opened:
        yield opened


class Two:
    """A first run that goes on, and a second that comes meanwhile."""

    def __init__(self, thread: Thread, given: dict[str, Any], **more: Any) -> None:
        self.thread, self._runs, self.rejected = thread, thread.client.runs, False
        self._first = self._runs.create(thread.id, "agent", input=cast(Any, given), **more)
        self._last = self._first

    def second(self, strategy: Strategy, given: dict[str, Any]) -> None:
        """Begin the second run, or be refused."""
        assert self.first in ("running", "pending"), "it was over before the second came"
        try:
            self._last = self._runs.create(
                self.thread.id, "agent", input=cast(Any, given), multitask_strategy=strategy
            )
        except httpx.HTTPStatusError as error:
            self.rejected = error.response.status_code == 409

    def end(self) -> dict[str, Any]:
        """Wait until neither goes on: what the last one returns."""
        return cast(dict[str, Any], self._runs.join(self.thread.id, self._last["run_id"]))

    @property
    def first(self) -> str | None:
        found = {run["run_id"]: run["status"] for run in self._runs.list(self.thread.id)}
        return found.get(self._first["run_id"])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_tick(client: SyncLangGraphClient, model: Model, strategy: Strategy) -> None:
    thread = Thread(client)
    events = [event(f"e{n}", f"What about item {n}?") for n in range(EVENTS)]
    two = Two(thread, {"events": events})
    assert model.held.wait(30)
    two.second(strategy, {"messages": [said("Stop", id="stop")]})
    model.go.set()
    out = two.end()
    assert (two.first, two.rejected) == (FIRST_IS[strategy], strategy == "reject")
    expected = [one["id"] for one in events] + ([] if two.rejected else ["stop"])
    assert thread.journal() == sorted(expected)
    values = thread.values
    people = [one["id"] for one in values["messages"] if one["type"] == "human"]
    # Each once, and in the order in which they came.
    assert people == expected
    assert values["tick"] == len(expected)
    answers = [one for one in values["messages"] if one["type"] == "ai" and one["content"]]
    assert len(answers) == len(expected)
    assert waiting(thread) == []
    if strategy == "rollback":
        # What the first run did is the second's now.
        assert handled(out) == expected
    assert thread.run("Hello")["report"]["ticks"][0]["tick"] == len(expected) + 1


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_night(offline: SyncLangGraphClient, strategy: Strategy) -> None:
    thread = Thread(offline)
    thread.run(events=[event(f"n{n}", said_by(n), addressed=False) for n in range(ENTRIES)])
    two = Two(thread, {"request": "sleep"}, context=SMALL)
    # It has begun to make facts, and has not applied them yet.
    until(lambda: len(facts(thread)) >= 3, lambda: thread.values)
    two.second(strategy, {"messages": [said("Hello", id="hello")]})
    two.end()
    assert (two.first, two.rejected) == (FIRST_IS[strategy], strategy == "reject")
    greeted = [one["content"] for one in thread.values["messages"] if one["type"] == "ai"]
    assert len(greeted) == (0 if two.rejected else 1)
    assert thread.values["mode"] == ("sleep" if two.rejected else "awake")
    assert thread.run(request="sleep")["report"]["night"]["complete"]
    assert items(thread, "open_night") == items(thread, "pending") == waiting(thread) == []
    assert {text: len(ids) for text, ids in facts(thread).items() if text != "Hello"} == {
        said_by(number): 1 for number in range(ENTRIES)
    }
    told = [f"n{n}" for n in range(ENTRIES)] + ([] if two.rejected else ["hello"])
    # Insights of the night stand in the journal too, and cite what they come from.
    heard = [one["value"] for one in items(thread, "journal") if one["key"].startswith("event_")]
    assert sorted(source for one in heard for source in one["sources"]) == sorted(told)


def items(thread: Thread, kind: str) -> list[Any]:
    return list(
        thread.client.store.search_items((LOCAL_USER, thread.id, kind), limit=1000)["items"]
    )


def waiting(thread: Thread) -> list[str]:
    done = {mark["id"] for mark in thread.values["handled"]}
    return [one["key"] for one in items(thread, "inbox") if one["key"] not in done]


def facts(thread: Thread) -> dict[str, set[str]]:
    """What all nights made facts of, with the ids of the facts."""
    found: dict[str, set[str]] = {}
    for batch in items(thread, "night"):
        for one in batch["value"].get("operations", ()):
            if one["kind"] == "add_fact":
                found.setdefault(one["after"]["text"], set()).add(one["target"])
    return found


def said_by(number: int) -> str:
    return f"My cousin Nina{number} lives in house number {number * 7 + 3}."
