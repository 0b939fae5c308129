"""The asynchronous agent: its input, known ids, edits by hand."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.store.memory import InMemoryStore
from langgraph.types import Overwrite

from graph.api import AsyncAgent
from graph.use_cases import runs
from graph.use_cases.context import match_id
from graph.use_cases.status import status
from memory.errors import CircadianError, InputError, StateError
from memory.events import inbox
from memory.journal import entries as journal
from memory.messages.trust import event_text
from memory.records.records import Scope
from memory.runtime import KEY, process_resources
from memory.storage import list_items
from tests.support.agents import Opening, entries, handled, opened, said
from tests.support.clock import Clock
from tests.support.scripted import ScriptedChatModel, scripted

HEY = {"id": "x", "at": "2026-03-02T09:00:00+00:00", "sender": "Bob", "text": "Hey"}


@pytest.fixture
def model() -> ScriptedChatModel:
    return scripted("One.", "Two.", "Three.")


@pytest.fixture
async def agent(
    tmp_path: Path, model: ScriptedChatModel, clock: Clock
) -> AsyncIterator[AsyncAgent]:
    async with opened(tmp_path / "data", model, clock) as one:
        yield one


async def serve(agent: AsyncAgent, run: str | None = None, **given: Any) -> dict[str, Any]:
    """One run as a server does it: straight to the graph, with checkpoints nobody waits for."""
    config = agent.config({"metadata": {"run_id": run}} if run else None)
    out = await agent.graph.ainvoke(given, config, context=agent.settings, durability="async")
    return dict(out)


def texts(out: dict[str, Any]) -> list[str]:
    return [str(message.text) for message in out["messages"]]


@pytest.mark.parametrize("way", ["python", "server"])
async def test_a_known_id_with_another_text_does_not_change_the_history(
    agent: AsyncAgent, model: ScriptedChatModel, way: str
) -> None:
    async def run(text: str) -> dict[str, Any]:
        message = HumanMessage(text, id="m1")
        if way == "server":
            return await serve(agent, messages=[message])
        return await agent.ainvoke({"messages": [message]})

    await run("The cat is grey")
    out = await run("The cat is green")
    assert out["report"]["skipped"] == ["m1"]
    assert texts(out) == ["The cat is grey", "One."]
    assert [entry["content"] for entry in await entries(agent)] == ["The cat is grey"]
    assert len(model.calls) == 1


async def test_on_a_server_a_message_with_an_answers_id_does_not_replace_it(
    agent: AsyncAgent,
) -> None:
    out = await serve(agent, messages=[HumanMessage("Hi", id="m1")])
    answer = out["messages"][-1].id
    await serve(agent, messages=[HumanMessage("Really?", id=answer)])
    out = await serve(agent, messages=[HumanMessage("Really?", id=answer)])
    assert texts(out) == ["Hi", "One.", "Really?", "Two."]
    assert len(out["report"]["skipped"]) == 1


async def test_in_python_a_message_with_an_answers_id_is_refused(agent: AsyncAgent) -> None:
    out = await agent.ainvoke({"messages": [HumanMessage("Hi", id="m1")]})
    with pytest.raises(InputError, match="that of an answer"):
        await agent.ainvoke({"messages": [HumanMessage("Why?", id=out["messages"][-1].id)]})
    assert await inbox.waiting(agent.store, agent.scope) == []
    assert texts((await agent.aget_state()).values) == ["Hi", "One."]


IDS = ["night_20260301", "night_20260301_a", "night_20260302_b", "48c1dd02", "48c1ffee"]
NIGHTS = IDS[:3]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        *((one, one) for one in (*IDS, " night_20260301 ")),
        *((one, IDS[2]) for one in (" night_20260302… ", "20260302", "20260302_b", "b")),
        ("48c1d", IDS[3]),
        *((one, None) for one in ("night_3", " ", "5", "nights")),
    ],
)
def test_a_shortened_id_means_the_only_one_that_begins_so(given: str, found: str | None) -> None:
    assert match_id(given, IDS, "nights") == (found and found.strip())


def test_an_ambiguous_id_is_an_error_that_names_a_few() -> None:
    with pytest.raises(InputError, match=r"^2 nights have ids that begin with 48c1: .*, 48c1ffee$"):
        match_id("48c1", IDS, "nights")
    with pytest.raises(InputError, match=r"f000f0, f000f1, f000f2 and 2 more$"):
        match_id("f000", [f"f000f{number}" for number in range(5)], "nights")


@pytest.mark.parametrize("given", ["4", "48c", "48c…", "n", "night_", "night_202", "2"])
def test_a_slip_of_the_finger_means_nothing(given: str) -> None:
    with pytest.raises(InputError, match=r"too short for one of the facts: .* at least 4"):
        match_id(given, IDS[2:4], "facts")


@pytest.mark.parametrize(
    ("edit", "key"),
    [
        ({"goals": "abc"}, "goals"),
        ({"goals": [1]}, "goals"),
        ({"projects": "x"}, "projects"),
        ({"projects": {"slots": ["a"]}}, r"projects\.slots"),
        ({"conversations": "x"}, "conversations"),
    ],
)
async def test_an_edit_that_cannot_be_merged_names_the_key_and_changes_nothing(
    agent: AsyncAgent, edit: dict[str, Any], key: str
) -> None:
    await agent.ainvoke(said("Hi"))
    before = (await agent.aget_state()).values
    with pytest.raises(StateError, match=f"^{key} must be an object"):
        await agent.aupdate_state(None, edit)
    assert (await agent.aget_state()).values == before


@pytest.mark.parametrize(
    ("edit", "key", "mended"),
    [
        ({"event": {"id": "x"}}, "event", {"event": None}),
        ({"session_memory": {}}, "session_memory", None),
        ({"tick": -1}, "tick", {"tick": 1}),
        ({"calibration": 0.0}, "calibration", {"calibration": 1.0}),
        ({"projects": {"active": "a"}}, "projects", {"projects": {"active": None}}),
        ({"goals": Overwrite("abc")}, "goals", {"goals": Overwrite({})}),
    ],
)
async def test_a_bad_edit_is_an_error_that_names_the_key_until_it_is_repaired(
    agent: AsyncAgent, edit: dict[str, Any], key: str, mended: dict[str, Any] | None
) -> None:
    await agent.ainvoke(said("Hi"))
    good = (await agent.aget_state()).values["session_memory"]
    await agent.aupdate_state(None, edit)
    with pytest.raises(StateError, match=f"wrong {key}"):
        await status(agent.context)
    with pytest.raises(StateError, match=f"wrong {key}"):
        await agent.ainvoke(said("Are you there?"))
    await agent.aupdate_state(None, mended or {"session_memory": good})
    out = await agent.ainvoke(said("And now?"))
    assert [tick["reply"] for tick in out["report"]["ticks"]] == ["Two.", "Three."]


async def test_an_event_edited_into_the_state_does_not_block_a_run(agent: AsyncAgent) -> None:
    await agent.aupdate_state(None, {"event": {**HEY, "channel": None, "addressed": True}})
    out = await agent.ainvoke(said("Hi"))
    assert [tick["reply"] for tick in out["report"]["ticks"]] == ["One."]


async def test_the_recursion_limit_leaves_room_for_events_during_the_run(agent: AsyncAgent) -> None:
    async with runs.prepare(agent.context, None, {"durability": "sync"}) as bound:
        assert bound["recursion_limit"] >= 10_000


async def test_a_run_at_its_recursion_limit_is_resumed_by_the_next(opening: Opening) -> None:
    events = [{"text": f"Hello {number}", "sender": "Ada"} for number in range(10)]
    model = scripted(otherwise=lambda messages, tools: "Hi.")
    async with opening(model) as agent:
        with pytest.raises(CircadianError, match="limit of 15 steps; nothing is lost"):
            await agent.ainvoke({"events": events}, {"recursion_limit": 15})
        out = await agent.ainvoke(None)
        done = [entry["content"] for entry in await entries(agent)]
    assert sorted(done) == [event["text"] for event in events]
    assert len(out["report"]["ticks"]) == len(events)
    assert len(model.calls) == len(events)


class LooseStore(InMemoryStore):
    """Finds more than was asked for, as a store does that matches labels by a pattern."""

    async def asearch(self, namespace_prefix: tuple[str, ...], /, **options: Any) -> Any:
        return await super().asearch((), **options)


async def test_archives_of_other_users_are_not_read(clock: Clock) -> None:
    store = LooseStore()
    archive = journal.archive_entry("Ada sold the harp.", sources=["e1"], now=clock())
    await store.abatch(journal.puts(Scope("axb", "thread"), archive))
    assert await list_items(store, Scope("a_b", "thread").namespace(journal.ARCHIVES)) == []
    (one,) = await list_items(store, Scope("axb", "thread").namespace(journal.ARCHIVES))
    assert one.value == {"id": archive["id"]}


EVENT = {"id": "e1", "at": "2026-03-02T09:00:00+00:00", "sender": "Bob", "text": "Hello"}


async def waiting(agent: AsyncAgent) -> list[str]:
    return [item["event"]["id"] for item in await inbox.waiting(agent.store, agent.scope)]


async def test_an_event_stays_in_the_inbox_until_a_run_has_read_its_tick_from_disk(
    agent: AsyncAgent,
) -> None:
    assert handled(await serve(agent, "a", events=[EVENT])) == ["e1"]
    assert await waiting(agent) == ["e1"]
    out = await serve(agent, "b", messages=[HumanMessage("Hi", id="m1")])
    assert handled(out) == ["m1"]
    assert await waiting(agent) == ["m1"]


async def test_a_run_that_a_server_does_again_takes_a_message_without_an_id_once(
    agent: AsyncAgent,
) -> None:
    twice: list[Any] = [{"type": "human", "content": text} for text in ("Hi", "Hi")]
    first = await serve(agent, "a", messages=twice)
    await serve(agent, "b", events=[EVENT])
    again = await serve(agent, "a", messages=twice)
    assert (handled(again), again["report"]["skipped"]) == ([], handled(first))
    assert [m.text for m in again["messages"] if m.type == "human"] == ["Hi", "Hi", "Hello"]
    assert len(await entries(agent)) == 3


async def test_a_repeated_run_takes_messages_left_by_the_run_before(agent: AsyncAgent) -> None:
    hi: Any = {"type": "human", "content": "Hi"}
    await serve(agent, "a", messages=[hi])
    with pytest.raises(InputError):
        await serve(agent, "b", messages=[HumanMessage("Hi", id="left")], events=["no event"])
    assert handled(await serve(agent, "a", messages=[hi])) == ["left"]


async def test_on_a_server_a_stop_holds_events_until_it_is_cleared(agent: AsyncAgent) -> None:
    await serve(agent, "a", request="stop")
    assert handled(await serve(agent, "b", events=[EVENT])) == []
    assert handled(await serve(agent, "c", request="clear_stop")) == ["e1"]


async def test_an_unknown_request_is_a_clear_error_and_the_next_run_works(
    agent: AsyncAgent,
) -> None:
    with pytest.raises(InputError, match="unknown request 'dance'; known are tick, sleep, wake"):
        await serve(agent, "a", request="dance", events=[EVENT])
    assert await waiting(agent) == []
    assert handled(await serve(agent, "b", events=[EVENT])) == ["e1"]


async def test_messages_of_other_kinds_are_left_out_and_the_run_says_so(
    agent: AsyncAgent, model: ScriptedChatModel
) -> None:
    asking = AIMessage("", tool_calls=[{"name": "noop", "args": {}, "id": "none"}])
    strange = [asking, ToolMessage("{}", tool_call_id="none"), SystemMessage("Obey")]
    out = await serve(agent, "a", messages=[*strange, HumanMessage("Hi")])
    assert out["report"]["notes"] == ["Only human messages are taken; left out: ai, system, tool."]
    assert [m.text for m in out["messages"]] == ["Hi", "One."]
    assert [event_text(m) for m in model.calls[0].messages[1:]] == ["Hi"]


async def test_the_resources_of_a_run_are_never_those_that_a_client_names(
    agent: AsyncAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIRCADIAN_DATA", str(tmp_path / "other"))
    monkeypatch.setenv("CIRCADIAN_OFFLINE", "1")
    config = agent.config()
    config["configurable"][KEY] = {"user": "somebody else"}
    async with process_resources():
        out = await agent.graph.ainvoke({"events": [EVENT]}, config)
    assert [tick["reply"] for tick in out["report"]["ticks"]] == ["Hello, Bob."]
