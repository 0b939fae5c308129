"""The blocking agent: in plain code, inside a running event loop, and how it closes."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage

from graph.agent import open_agent
from graph.api import Agent
from graph.blocking import BackgroundLoop
from memory.errors import InputError, StateError
from tests.support.agents import entries, said
from tests.support.clock import Clock
from tests.support.dreamers import SETTINGS, dreamer
from tests.support.scripted import ScriptedChatModel, call, scripted
from tests.support.source_files import ROOT


@contextmanager
def opened(data: Path, model: BaseChatModel) -> Iterator[Agent]:
    with open_agent(data, model=model, embedder="offline", clock=Clock()) as agent:
        yield agent


@pytest.fixture(autouse=True)
def _no_thread_stays() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def use(data: Path) -> None:
    model = scripted(call("add_goal", description="Plant beans"), "Added.", "Hello.", "Fine.")
    with opened(data, model) as agent:
        out = agent.invoke(said("Add a goal", id="e1"))
        assert out["report"]["ticks"][0]["reply"] == "Added."
        agent.update_state(None, {"goals": {"goal_1_0": {"progress": 50}}})
        assert agent.get_state().values["goals"]["goal_1_0"]["progress"] == 50
        assert agent.post({"id": "e2", "text": "Hello", "sender": "Ada"}).accepted == ["e2"]
        parts = list(agent.stream(said("How are you?", id="e3"), stream_mode="values"))
        ticks = [tick["event_id"] for tick in parts[-1]["report"]["ticks"]]
        assert ticks == ["e2", "e3"]
        assert agent.recall("goal")[0]["sources"] == ["e1"]
        newest = next(agent.get_state_history(limit=1))
        assert newest.values["tick"] == 3


def test_every_method_works_from_plain_code(data: Path) -> None:
    use(data)


async def test_every_method_works_inside_a_running_event_loop(data: Path) -> None:
    use(data)


async def test_tokens_and_steps_of_subgraphs_are_streamed(data: Path) -> None:
    with opened(data, scripted("Good morning, Ada.")) as agent:
        modes = ["messages", "updates"]
        parts = list(agent.stream(said("Hi"), stream_mode=modes, subgraphs=True, version="v2"))
    said_so_far = [part["data"][0] for part in parts if part["type"] == "messages"]
    words = [str(one.text) for one in said_so_far if isinstance(one, AIMessageChunk)]
    steps = [node for part in parts if part["type"] == "updates" for node in part["data"]]
    assert (words[:3], "".join(words)) == (["Good", " morning,", " Ada."], "Good morning, Ada.")
    assert {"intake", "act", "record"} <= set(steps)


async def test_a_tick_of_a_stream_left_early_is_finished_by_the_next_run(data: Path) -> None:
    asked = []

    def answer(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        asked.append(messages[-1].type)
        if isinstance(messages[-1], ToolMessage):
            return "Added."
        return "Hello." if "Hello" in messages[-1].text else call("add_goal", description="Beans")

    with opened(data, ScriptedChatModel(otherwise=answer)) as agent:
        given = said("Add a goal", id="e1")
        for part in agent.stream(given, stream_mode="updates", subgraphs=True):
            if "use_tools" in part[1]:
                break
        out = agent.invoke(said("Hello", id="e2"))
        assert [tick["event_id"] for tick in out["report"]["ticks"]] == ["e1", "e2"]
        assert list(agent.get_state().values["goals"]) == ["goal_1_0"]
        journal = agent.call(entries(agent.asynchronous))
    assert [entry["sources"] for entry in journal] == [["e1"], ["e2"]]
    # Of what was done nothing is done again; a call that was in flight may be.
    assert asked.count("human") == 2


@pytest.mark.parametrize("kept", [True, False], ids=["the reader keeps it", "nobody keeps it"])
async def test_an_agent_closes_with_the_streams_that_were_left_early(
    data: Path, kept: bool
) -> None:
    async with open_agent(data, model=scripted(call("noop"), "Done."), clock=Clock()) as one:
        stream: AsyncIterator[Any] | None = one.astream(said("Hi", id="e1"), stream_mode="updates")
        assert stream is not None
        await anext(stream)
        if not kept:
            stream = None
    async with open_agent(data, model=scripted(call("noop"), "Done."), clock=Clock()) as one:
        out = await asyncio.wait_for(one.ainvoke(None), 20)
    assert [tick["event_id"] for tick in out["report"]["ticks"]] == ["e1"]


def test_an_unread_stream_does_nothing(data: Path) -> None:
    with opened(data, scripted()) as agent:
        agent.stream(said("Hi"))
        assert agent.get_state().values == {}


async def test_errors_reach_the_caller_and_the_agent_stays_usable(data: Path) -> None:
    with opened(data, scripted("Hello.")) as agent:
        with pytest.raises(InputError, match="unknown request 'dance'"):
            agent.invoke({"request": "dance"})
        with pytest.raises(InputError, match="unknown input: mesages"):
            list(agent.stream({"mesages": []}))
        agent.invoke({"request": "wake"})
        agent.update_state(None, {"tick": "one"})
        with pytest.raises(StateError, match="tick"):
            list(agent.stream(said("Hi", id="e1")))
        agent.update_state(None, {"tick": 0})
        assert agent.invoke(None)["report"]["ticks"][0]["event_id"] == "e1"


async def test_another_thread_id_is_refused(data: Path) -> None:
    config: Any = {"configurable": {"thread_id": "1"}}
    with opened(data, scripted("Hello.")) as agent:
        with pytest.raises(InputError, match=r"thread '1' is not this agent's, .*agent=NAME"):
            agent.invoke(said("Hi", id="e1"), config)
        own: Any = {"configurable": {"thread_id": agent.asynchronous.scope.thread}}
        out = agent.invoke(said("Hi", id="e1"), own)
    assert [tick["event_id"] for tick in out["report"]["ticks"]] == ["e1"]


def test_ctrl_c_cancels_the_call_and_lets_its_cleanup_finish(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, cleaned = threading.Event(), threading.Event()

    async def work() -> None:
        try:
            begun.set()
            await asyncio.sleep(60)
        finally:
            for _ in range(3):
                await asyncio.sleep(0)  # as a rollback and the release of a lock
            cleaned.set()

    def interrupted(self: Future[Any], timeout: float | None = None) -> None:
        begun.wait(30)
        raise KeyboardInterrupt

    with opened(data, scripted()) as agent:
        with monkeypatch.context() as patched:
            patched.setattr(Future, "result", interrupted)
            with pytest.raises(KeyboardInterrupt):
                agent.call(work())
        assert cleaned.wait(30)
        assert agent.get_state().values == {}


def test_ctrl_c_while_it_opens_lets_the_opening_end(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), threading.Event()

    @asynccontextmanager
    async def opening() -> AsyncIterator[None]:
        try:
            begun.set()
            await asyncio.sleep(60)
            yield
        finally:
            await asyncio.sleep(0.01)
            ended.set()

    result = Future.result

    def interrupted(self: Future[Any], timeout: float | None = None) -> Any:
        monkeypatch.setattr(Future, "result", result)
        begun.wait(30)
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        BackgroundLoop().open(opening())
    assert ended.is_set()


async def test_an_exception_in_the_block_closes_the_agent(data: Path) -> None:
    with pytest.raises(ZeroDivisionError), opened(data, scripted()) as agent:
        raise ZeroDivisionError
    with pytest.raises(InputError, match="the agent is closed"):
        agent.get_state()


async def test_closing_is_idempotent(data: Path) -> None:
    with opened(data, scripted()) as agent:
        agent.close()
        agent.close()
        with pytest.raises(InputError, match="the agent is closed"):
            agent.invoke(None)


async def test_a_folder_that_cannot_be_opened_leaves_no_thread(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_text("no folder")
    with pytest.raises(Exception, match="cannot be used"), opened(file, scripted()):
        pass


def test_a_night_is_previewed_discarded_applied_and_undone(tmp_path: Path, clock: Clock) -> None:
    model = dreamer()
    opening = open_agent(tmp_path, model=model, embedder="offline", settings=SETTINGS, clock=clock)
    with opening as agent:
        agent.invoke({"events": [{"id": "e1", "sender": "Ben", "text": "The glass is late."}]})
        tried = agent.sleep(dry_run=True)
        assert agent.night("last") == tried
        assert agent.discard_night("last")["status"] == "discarded"
        with pytest.raises(InputError, match="discarded: there is nothing to apply"):
            agent.apply_night(str(tried["id"]))
        slept = agent.sleep()
        assert (slept["status"], slept["complete"]) == ("complete", True)
        assert [one["text"] for one in agent.everything()] == ["The glass is late."]
        assert agent.undo_night(str(slept["id"]))["status"] == "undone"
        assert [one["status"] for one in agent.nights()] == ["discarded", "undone"]
        assert agent.apply_night(str(agent.sleep(dry_run=True)["id"]))["status"] == "complete"
        nothing = agent.sleep(dry_run=True)
    assert (nothing["id"], nothing["dry_run"], nothing["operations"]) == (None, True, [])


FORGETS = """
import sys
from graph.agent import open_agent
said = {"events": [{"text": "Remember that Ada likes beans", "sender": "Ada"}]}
agent = open_agent(sys.argv[1] + "-1", model="offline", embedder="offline").__enter__()
agent.invoke(said)
other = open_agent(sys.argv[1] + "-2", model="offline", embedder="offline").__enter__()
next(iter(other.stream(said, stream_mode="updates")))
"""


def test_a_process_that_never_closes_exits_without_a_warning(data: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", FORGETS, str(data)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    # A slow machine is not what this is about: asyncio says so of a step that takes long.
    told = [one for one in done.stderr.splitlines() if not one.startswith("Executing <")]
    assert (done.returncode, told) == (0, [])
