"""The agent on LangGraph's own server, as Studio and deployments use it."""

import re
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from langgraph_sdk.errors import UnprocessableEntityError

from graph.agent import open_agent
from memory.errors import BusyError
from memory.records.records import LOCAL_USER, thread_id
from memory.settings import Settings
from tests.support.agents import handled, replies
from tests.support.server import Server, until

PROJECT = "Start a project to build a shed in the garden"
GOAL = "Add a goal: fix the roof"
SUBTASKS = "Break the roof goal down into steps"
REMEMBER = "Remember that my sister is allergic to nuts"


@pytest.fixture
def client(server: Server) -> Iterator[SyncLangGraphClient]:
    with get_sync_client(url=server.url) as opened:
        yield opened


class Thread:
    def __init__(self, client: SyncLangGraphClient, known: str | None = None) -> None:
        made = client.threads.create(
            thread_id=known, if_exists="do_nothing", graph_id="agent" if known else None
        )
        self.client, self.id = client, made["thread_id"]

    def run(self, *texts: str, **more: Any) -> dict[str, Any]:
        given: Any = {"messages": [said(text) for text in texts], **more}
        found = self.client.runs.wait(self.id, "agent", input=given)
        assert isinstance(found, dict)
        return found

    @property
    def values(self) -> dict[str, Any]:
        return cast(dict[str, Any], self.client.threads.get_state(self.id)["values"])

    def edit(self, **values: Any) -> None:
        """Edit the state by hand, as Studio does."""
        self.client.threads.update_state(self.id, values)

    def wait_for(self, reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The state of a run that goes on, once it is as asked."""
        until(lambda: reached(self.values), lambda: self.values)
        return self.values

    def journal(self) -> list[str]:
        """The events that were journaled, one for each entry."""
        found = self.client.store.search_items((LOCAL_USER, self.id, "journal"), limit=1000)
        return sorted(source for item in found["items"] for source in item["value"]["sources"])


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "human", "content": text, "name": "Ada", **more}


def event(name: str, text: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "at": "2026-03-02T09:00:00Z", "sender": "Bob", "text": text, **more}


def agent_id(client: SyncLangGraphClient) -> str:
    (assistant,) = client.assistants.search(graph_id="agent")
    assert assistant["name"] == "agent"
    return assistant["assistant_id"]


def test_the_input_is_a_small_form_and_every_setting_has_a_default_and_a_description(
    client: SyncLangGraphClient,
) -> None:
    schemas = cast(dict[str, Any], client.assistants.get_schemas(agent_id(client)))
    assert set(schemas["input_schema"]["properties"]) == {"messages", "events", "request"}
    assert set(schemas["output_schema"]["properties"]) == {"messages", "mode", "report"}
    form = schemas["context_schema"]["properties"]
    assert {name: field["default"] for name, field in form.items()} == Settings().model_dump()
    assert [name for name, field in form.items() if not field["description"]] == []


def test_the_graph_is_drawn_with_both_subgraphs_open_and_true_edges(
    client: SyncLangGraphClient,
) -> None:
    drawn = cast(dict[str, Any], client.assistants.get_graph(agent_id(client), xray=True))
    nodes = {node["id"] for node in drawn["nodes"]}
    assert {"intake", "awake:act", "awake:use_tools", "sleep:consolidate"} <= nodes
    ways: dict[str, set[str]] = {}
    for edge in drawn["edges"]:
        ways.setdefault(edge["source"], set()).add(edge["target"])
    assert ways["intake"] == {"awake:begin_tick", "sleep:begin_night", "refuse", "__end__"}
    assert ways["awake:act"] == {
        "awake:use_tools",
        "awake:delegate:brief_delegate",
        "awake:park",
        "awake:extract_facts",
        "awake:record",
    }
    assert ways["awake:park"] == {"awake:hand_back"}
    # A night goes on from anywhere, and each of its steps may be the last one.
    assert max(len(ways[one]) for one in ways if not one.startswith("sleep:")) <= 6
    assert ways["sleep:weigh_night"] == {"sleep:apply_operations", "sleep:record_night"}
    assert "sleep:consolidate" not in ways["sleep:dream"]


def test_a_run_answers_each_message_and_what_it_made_is_in_the_state(
    client: SyncLangGraphClient,
) -> None:
    thread = Thread(client)
    out = thread.run(PROJECT, GOAL, SUBTASKS, REMEMBER)
    assert len(replies(out)) == 4
    assert [m["content"] for m in out["messages"] if m["type"] == "ai" and m["content"]] == (
        replies(out)
    )
    values = thread.values
    assert values["projects"]["active"] == "build_shed_garden"
    assert list(values["goals"])[:2] == ["goal_2_0", "goal_3_1"]
    assert values["session_memory"]["key_facts"] == ['Ada: "my sister is allergic to nuts"']
    assert thread.journal() == sorted(handled(out))
    history = client.threads.get_history(thread.id, limit=100)
    assert len(history) > 10
    assert history[0]["values"]["tick"] == 4  # type: ignore[call-overload]  # may be a list


def test_a_stream_shows_what_the_subgraph_does_and_the_reply_as_it_comes(
    client: SyncLangGraphClient,
) -> None:
    thread = Thread(client)
    given: Any = {"messages": [said("I collect old maps of Lisbon")]}
    seen: dict[str, list[Any]] = {}
    for part in client.runs.stream(
        thread.id,
        "agent",
        input=given,
        stream_mode=["updates", "messages-tuple", "custom"],
        stream_subgraphs=True,
    ):
        seen.setdefault(part.event.partition(":")[0], []).append(part.data)
    assert "error" not in seen
    assert [name for update in seen["updates"] for name in update] == ["intake", "awake", "intake"]
    inside = [name for update in seen["updates|awake"] for name in update]
    assert inside[:3] == ["begin_tick", "assemble_context", "act"]
    chunks = [m["content"] for m, _ in seen["messages|awake"] if m["type"] == "AIMessageChunk"]
    assert len(chunks) > 3
    assert "".join(chunks) == thread.values["report"]["ticks"][0]["reply"]


def test_a_chat_client_keeps_the_typed_messages_and_is_sent_no_removals(
    client: SyncLangGraphClient,
) -> None:
    thread = Thread(client)
    thread.run("My dog is called Rex")
    typed = [said("I collect old maps", id="m1"), said("I live in Porto", id="m2")]
    seen: dict[str, list[Any]] = {}
    given: Any = {"messages": typed}
    for part in client.runs.stream(
        thread.id, "agent", input=given, stream_mode=["values", "messages-tuple"]
    ):
        seen.setdefault(part.event, []).append(part.data)
    shown = [[one["id"] for one in values["messages"]] for values in seen["values"]]
    assert all(ids.count("m1") == ids.count("m2") == 1 for ids in shown), shown
    kinds = [one["type"] for one in seen["values"][-1]["messages"]]
    assert kinds == ["human", "ai", "human", "ai", "human", "ai"]
    assert [message["type"] for message, _ in seen["messages"]] == ["ai", "ai"]


def test_a_fork_answers_nothing_that_another_branch_answered(client: SyncLangGraphClient) -> None:
    thread, places = Thread(client), []
    for text in ("My dog is called Rex", "I live in Porto", "I collect maps"):
        thread.run(text)
        places.append(client.threads.get_state(thread.id)["checkpoint"]["checkpoint_id"])
    for place, text in ((places[1], "Hello"), (places[0], "Where do I live?")):
        given: Any = {"messages": [said(text)]}
        out: Any = client.runs.wait(thread.id, "agent", input=given, checkpoint_id=place)
        assert len(handled(out)) == 1
        assert [m["content"] for m in out["messages"]][-2:] == [text, *replies(out)]
    assert len(replies(thread.run("Goodbye"))) == 1
    history = client.threads.get_history(thread.id)
    leased = next(one for one in history if one["next"] == ["awake"])["checkpoint"]
    again: Any = client.runs.wait(thread.id, "agent", checkpoint_id=leased["checkpoint_id"])
    assert [m["content"] for m in again["messages"]][-2:] == ["Goodbye", *replies(again)]


def test_what_was_heard_is_a_fact_after_the_night_and_recalled_by_the_one_who_wakes_it(
    client: SyncLangGraphClient,
) -> None:
    thread = Thread(client)
    (heard,) = handled(thread.run("My sister Nina lives in Lisbon with her dog Rex"))
    night = thread.run(request="sleep")
    assert night["mode"] == "sleep"
    report = night["report"]["night"]
    assert report["complete"]
    assert [step["step"] for step in report["steps"]][:2] == ["score_importance", "consolidate"]
    facts = [one["after"] for one in report["operations"] if one["kind"] == "add_fact"]
    assert [fact["source_events"] for fact in facts] == [[heard]]
    morning = thread.run("What do you remember about my sister?")
    assert morning["mode"] == "awake"
    assert "Nina lives in Lisbon" in replies(morning)[0]


def test_an_edit_by_hand_is_rolled_up_and_a_bad_one_is_named_and_loses_nothing(
    client: SyncLangGraphClient,
) -> None:
    thread = Thread(client)
    thread.run(GOAL, SUBTASKS)
    child = "goal_2_1"
    thread.edit(goals={child: {"progress": 50}})
    thread.run("Hello")
    assert thread.values["goals"]["goal_1_0"]["progress"] == 10
    thread.edit(goals={child: {"progress": "half"}})
    with pytest.raises(Exception, match=rf"^StateError: .*goals\.{child}\.progress"):
        thread.run("I moved to Porto")
    thread.edit(goals={child: {"progress": 60}})
    assert replies(thread.run("Hello again")) == ["Noted: I moved to Porto.", "Hello, Ada."]
    assert thread.values["goals"]["goal_1_0"]["progress"] == 12


def test_an_event_not_addressed_is_context_and_a_malformed_one_is_a_clear_error(
    client: SyncLangGraphClient,
) -> None:
    thread = Thread(client)
    out = thread.run(events=[event("e1", "The bakery closes on Monday", addressed=False)])
    assert out["report"]["context_only"] == ["e1"]
    assert replies(out) == []
    with pytest.raises(Exception, match=r"^InputError: event e2: text: Field required"):
        thread.run(events=[{"id": "e2", "sender": "nobody"}])
    for given in ({"messages": 7}, {"events": 7}):
        with pytest.raises(Exception, match=rf"^InputError: {next(iter(given))}"):
            client.runs.wait(thread.id, "agent", input=given)
    with pytest.raises(UnprocessableEntityError, match="messages"):
        thread.edit(messages=7)
    assert handled(thread.run(events=[event("e2", "Hello")])) == ["e2"]
    assert thread.journal() == ["e1", "e2"]


def test_an_event_without_an_id_is_the_users_and_of_its_run(client: SyncLangGraphClient) -> None:
    thread = Thread(client)
    for _ in range(2):
        thread.run(events=[{"text": "The glass arrives on Friday.", "addressed": False}])
    assert len(set(thread.journal())) == 2


def test_the_agent_of_the_command_line_is_the_same_and_one_writer_at_a_time_runs_it(
    server: Server, client: SyncLangGraphClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIRCADIAN_LOCK_TIMEOUT", "0.1")
    monkeypatch.setenv("CIRCADIAN_OFFLINE", "1")
    with open_agent(server.data) as agent:
        agent.post({"id": "posted", "text": REMEMBER, "sender": "Ada"})
        with pytest.raises(BusyError, match=r"in use by process \d+ \(server\)"):
            agent.invoke({"messages": [{**said("My dog is called Rex"), "id": "waits"}]})
        thread = Thread(client, thread_id(LOCAL_USER, "default"))
        assert handled(thread.run("Hello"))[:2] == ["posted", "waits"]
        assert agent.get_state().values["tick"] == 3
        assert [hit["text"] for hit in agent.recall("dog", limit=1)] == ["My dog is called Rex"]


def test_killed_in_a_run_and_started_again_it_goes_on_as_if_nothing_had_been(
    server: Server, client: SyncLangGraphClient
) -> None:
    thread = Thread(client)
    told = handled(thread.run(PROJECT, GOAL, REMEMBER))
    before = thread.values
    # Some seconds of work: a tick for each event.
    given: Any = {"events": [event(f"long{n}", f"Item {n} is heavy") for n in range(20)]}
    client.runs.create(thread.id, "agent", input=given)
    thread.wait_for(lambda values: values["tick"] >= 6)
    server.kill()
    server.start()
    with get_sync_client(url=server.url) as again:
        thread = Thread(again, thread.id)
        after = thread.values
        for key in ("projects", "goals", "session_memory"):
            assert after[key] == before[key]
        assert after["tick"] >= 6
        assert set(told) <= set(thread.journal())
        # The server may have gone on with the interrupted run by itself: this one comes after it.
        assert thread.run("Hello")["report"]["ticks"][-1]["tick"] == 24
        people = [m["id"] for m in thread.values["messages"] if m["type"] == "human"]
        assert len(people) == len(set(people)) == 24
        assert thread.journal() == sorted(people)


def test_the_server_starts_and_works_without_a_complaint(server: Server) -> None:
    log = server.log()
    for words in ("BlockingError", "checkpointer missing", "checkpointer does not", "Failed to"):
        assert words not in log
    events = [(record["level"], record["event"]) for record in server.records()]
    assert [event for _, event in events if re.search(r" 5\d\d \d+ms$", event)] == []
    ready = [event.startswith("Application started up") for _, event in events].index(True)
    told = [one for one in events[:ready] if one[0] not in ("info", "debug")]
    # How long a machine takes is not what this is about.
    slow = re.compile("longer than expected|exceeded the expected")
    assert [one for one in told if not slow.search(one[1])] == []
    assert any(event.startswith("model offline") for _, event in events[:ready])
