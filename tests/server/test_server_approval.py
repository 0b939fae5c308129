"""Questions about dangerous tools on LangGraph's own server, through its client."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, cast

import httpx
import pytest
from langgraph_sdk import get_sync_client

from graph.agent import open_agent
from memory.errors import BusyError
from memory.records.records import LOCAL_USER, thread_id
from tests.server.test_server import Thread
from tests.support import launching
from tests.support.agents import handled, replies
from tests.support.api_client import ApiClient
from tests.support.launching import LAUNCH, Launches, asking
from tests.support.openai_server import OpenAIServer, Reply, text
from tests.support.server import Server, until

FLIES = text("It flies.")
MARS = asking(("launch", {"target": "Mars"}))
YES = {"decision": "approve"}


class Model(OpenAIServer):
    """A model whose next replies a test names; one of them can be held back."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.go.set()
        self.held = threading.Event()
        """Set once a request is held back."""

    def says(self, *replies: Reply) -> None:
        """These and no others from here on."""
        self.replies[len(self.requests) :] = replies

    def next_reply(self, body: dict[str, Any]) -> Reply:
        if not self.go.is_set():
            self.held.set()
            self.go.wait(60)
        return super().next_reply(body)


class Desk:
    """One server with its model and its rockets, as a client of it sees them."""

    def __init__(self, server: Server, model: Model, launches: Launches) -> None:
        self.server, self.model, self._launches = server, model, launches
        self._before: list[str] = []
        self.clients = ExitStack()

    @property
    def launched(self) -> list[str]:
        return self._launches.done[len(self._before) :]

    def begin(self) -> None:
        self._before = self._launches.done

    def thread(self, known: str | None = None) -> Asked:
        return Asked(self.clients.enter_context(get_sync_client(url=self.server.url)), known)

    def until_runs_are_kept(self) -> None:
        """Wait until the server has written down which runs it is doing."""
        file, now = self.server.folder / ".langgraph_api" / ".langgraph_ops.pckl", time.time()
        until(lambda: file.exists() and file.stat().st_mtime > now, self.server.log)

    def times_done(self, run: str) -> int:
        """How often the server came to the end of a run."""
        told = [(one["event"], one.get("run_id")) for one in self.server.records()]
        return told.count(("Background run succeeded", run))

    def restart(self, thread: Asked) -> Asked:
        """Kill the server and start it again; the thread, as a new client finds it."""
        self.server.kill()
        self.server.start()
        return self.thread(thread.id)


class Asked(Thread):
    def say(self, **message: Any) -> dict[str, Any]:
        given: Any = {"messages": [{"type": "human", "name": "Ada", **message}]}
        return cast(dict[str, Any], self.client.runs.wait(self.id, "agent", input=given))

    def answer(self, answer: Any = YES) -> dict[str, Any]:
        """Answer the question that stands, and wait for the end of the run."""
        command: Any = {"resume": answer}
        return cast(dict[str, Any], self.client.runs.wait(self.id, "agent", command=command))

    @property
    def status(self) -> str:
        return str(self.client.threads.get(self.id)["status"])

    @property
    def asked(self) -> dict[str, Any]:
        """The question that stands: the value of its interrupt."""
        [interrupt] = self.client.threads.get_state(self.id)["interrupts"]
        return cast(dict[str, Any], interrupt["value"])

    def leased(self) -> list[str]:
        """The events in the inbox that no tick has done with."""
        found = self.client.store.search_items((LOCAL_USER, self.id, "inbox"), limit=100)
        done = {mark["id"] for mark in self.values["handled"]}
        return [item["key"] for item in found["items"] if item["key"] not in done]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """One server for all tests; each has a thread, that is an agent, of its own."""
    folder = tmp_path_factory.mktemp("approval")
    with pytest.MonkeyPatch.context() as patch, Model() as model:
        launches = launching.set_up(patch, folder)
        patch.setenv("OPENAI_BASE_URL", model.base_url)
        with Server(folder / "server") as server:
            yield Desk(server, model, launches)


@pytest.fixture
def desk(opened: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    launching.set_up(monkeypatch, opened.server.folder.parent)
    monkeypatch.setenv("OPENAI_BASE_URL", opened.model.base_url)
    opened.model.says()
    opened.model.held.clear()
    opened.begin()
    with opened.clients:
        yield opened
    opened.model.go.set()


def test_a_question_is_an_interrupt_for_clients_and_studio(desk: Desk) -> None:
    desk.model.says(LAUNCH)
    thread = desk.thread()
    out = thread.say(content="Launch it", id="e1")
    [question] = out["report"]["questions"]
    assert thread.status == "interrupted"
    assert desk.launched == []
    assert (question["tool"], question["args"]["target"]) == ("launch", "the moon")
    assert (question["reason"], question["sender"], question["event_id"]) == (
        "Ada wants it",
        "Ada",
        "e1",
    )
    [shown] = out["__interrupt__"]
    assert shown["value"] == thread.asked
    assert {key: thread.asked[key] for key in question} == question
    [request] = thread.asked["action_requests"]
    assert (request["name"], request["args"]) == ("launch", question["args"])
    state = thread.client.threads.get_state(thread.id, subgraphs=True)
    [task] = state["tasks"]
    inside = cast(dict[str, Any], task["state"])
    assert (state["next"], inside["next"]) == (["awake"], ["confirm"])
    assert [one["name"] for one in inside["tasks"]] == ["confirm"]
    assert inside["tasks"][0]["interrupts"][0]["value"] == thread.asked
    assert [m["type"] for m in inside["values"]["messages"]] == ["human", "ai"]
    assert inside["values"]["resuming"] == question["id"]


def test_a_message_is_answered_while_a_question_waits(desk: Desk) -> None:
    desk.model.says(LAUNCH, text("Hello."), FLIES)
    thread = desk.thread()
    thread.say(content="Launch it", id="e1")
    first = thread.asked
    out = thread.say(content="Hello", id="e2")
    assert (handled(out), replies(out)) == (["e2"], ["Hello."])
    assert (thread.status, thread.asked, thread.leased()) == ("interrupted", first, ["e1"])
    assert (desk.launched, len(thread.values["parked"])) == ([], 1)
    out = thread.answer()
    assert (handled(out)[-1], replies(out)[-1]) == ("e1", "It flies.")
    assert (desk.launched, thread.status, thread.leased()) == (["the moon"], "idle", [])
    assert thread.journal() == ["e1", "e2"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "launched"),
    [
        ({"decision": "edit", "args": {"target": "Mars"}}, ["Mars"]),
        ({"decisions": [{"type": "reject", "message": "too early"}]}, []),
    ],
)
def test_answers_in_the_forms_of_clients_are_understood(
    desk: Desk, answer: Any, launched: list[str]
) -> None:
    desk.model.says(LAUNCH, text("So be it."))
    thread = desk.thread()
    thread.say(content="Launch it")
    out = thread.answer(answer)
    assert (desk.launched, replies(out), thread.status) == (launched, ["So be it."], "idle")


def test_an_answer_after_a_kill_and_restart_runs_the_tool_once(desk: Desk) -> None:
    desk.model.says(LAUNCH, text("Hello."), FLIES, text("Good."))
    before = desk.thread()
    before.say(content="Launch it", id="e1")
    first = before.asked
    thread = desk.restart(before)
    assert thread.asked == first
    out = thread.say(content="Hello", id="e2")
    assert (handled(out), desk.launched, thread.asked) == (["e2"], [], first)
    out = thread.answer()
    assert (handled(out)[-1], replies(out)[-1], desk.launched) == ("e1", "It flies.", ["the moon"])
    thread = desk.restart(thread)
    out = thread.say(content="Hello again", id="e3")
    # The server may have done the run before once more by itself; the tool it does not.
    assert (replies(out), desk.launched) == (["Good."], ["the moon"])
    assert thread.journal() == ["e1", "e2", "e3"]


def test_an_answer_from_the_command_line_is_stored_while_the_server_runs(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIRCADIAN_LOCK_TIMEOUT", "0.1")
    desk.model.says(LAUNCH, FLIES, text("Hello."))
    thread = desk.thread(thread_id(LOCAL_USER, "default"))
    thread.say(content="Launch it", id="e1")
    with open_agent(desk.server.data) as agent, pytest.raises(BusyError, match="server"):
        agent.approve(thread.asked["id"])
    assert desk.launched == []
    out = thread.say(content="Hello", id="e2")
    assert (handled(out), replies(out)) == (["e1", "e2"], ["It flies.", "Hello."])
    assert (desk.launched, thread.status) == (["the moon"], "idle")


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["rollback", "interrupt"])
def test_a_tool_runs_once_when_the_next_run_interrupts_the_answering_one(
    desk: Desk, strategy: Any
) -> None:
    desk.model.says(LAUNCH, FLIES, FLIES, text("Hello."))
    thread = desk.thread()
    thread.say(content="Launch it", id="e1")
    desk.model.go.clear()
    command: Any = {"resume": YES}
    thread.client.runs.create(thread.id, "agent", command=command)
    assert desk.model.held.wait(30)
    assert desk.launched == ["the moon"]
    given: Any = {"messages": [{"type": "human", "content": "Hello", "id": "e2"}]}
    second = thread.client.runs.create(thread.id, "agent", input=given, multitask_strategy=strategy)
    desk.model.go.set()
    out = cast(dict[str, Any], thread.client.runs.join(thread.id, second["run_id"]))
    assert (handled(out), replies(out)) == (["e1", "e2"], ["It flies.", "Hello."])
    assert (desk.launched, thread.status, thread.leased()) == (["the moon"], "idle", [])
    assert thread.journal() == ["e1", "e2"]


@pytest.mark.slow
def test_a_retried_run_answers_no_other_question(desk: Desk) -> None:
    """It keeps its runs on disk now and then, and goes on after a crash with what stands there."""
    desk.model.says(LAUNCH, MARS, FLIES, text("Both fly."))
    thread = desk.thread()
    thread.say(content="Launch it", id="e1")
    thread.say(content="And another to Mars", id="e2")
    desk.model.go.clear()
    command: Any = {"resume": YES}
    run = thread.client.runs.create(thread.id, "agent", command=command)
    desk.until_runs_are_kept()
    desk.model.go.set()
    thread.client.runs.join(thread.id, run["run_id"])
    assert (desk.launched, thread.asked["args"]) == (["the moon"], {"target": "Mars"})
    thread = desk.restart(thread)
    until(lambda: desk.times_done(run["run_id"]) == 2, desk.server.log)
    assert (desk.launched, thread.asked["args"]) == (["the moon"], {"target": "Mars"})
    thread.answer()
    assert desk.launched == ["the moon", "Mars"]


@pytest.mark.parametrize(
    ("operation", "body", "launched"),
    [
        ("approve_question", None, ["the moon"]),
        ("approve_question", {"args": {"target": "Mars"}}, ["Mars"]),
        ("refuse_question", {"reason": "It rains."}, []),
    ],
)
def test_a_question_is_answered_by_its_id(
    desk: Desk, operation: str, body: Any, launched: list[str]
) -> None:
    desk.model.says(LAUNCH, FLIES)
    with httpx.Client(base_url=desk.server.url, timeout=60) as http:
        api = ApiClient(http, http.get("/openapi.json").json())
        agent: dict[str, Any] = {"name": f"{operation} {launched}"}
        thread = desk.thread(api.agent(**agent)["thread_id"])
        thread.say(content="Launch it", id="e1")
        [question] = api.list_questions(**agent)
        assert api.show_question(**agent, id=question["id"]) == question
        wrong = {"args": {"target": 7}}
        api.ask("approve_question", wrong, **agent, id=question["id"], expected=422)
        kept = api.withdraw_event(**agent, id="e1", expected=422)
        assert question["id"] in kept["detail"]
        started = api.ask(operation, body, **agent, id=question["id"])[1]
        thread.client.runs.join(thread.id, started["run_id"])
        assert (desk.launched, api.list_questions(**agent)) == (launched, [])
        api.ask(operation, body, **agent, id=question["id"], expected=404)
