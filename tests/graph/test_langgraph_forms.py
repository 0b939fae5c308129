"""The agent's handles and graph take what LangGraph's users are used to give."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from langgraph.types import Command, GraphOutput, interrupt

from graph.agent import graph, make_graph, open_agent, open_agents
from graph.api import Agent
from memory.errors import InputError
from memory.models.offline.model import OfflineChatModel
from memory.settings import Settings
from tests.support.scripted import call, scripted
from tools.registry import registered

ADA: RunnableConfig = {"configurable": {"thread_id": "ada"}}


def water(bed: int, litres: int = 5) -> str:
    """Water a bed."""
    return f"bed {bed} has had {litres} litres"


def where(question: str) -> str:
    """Ask the user."""
    return "The user says: " + str(interrupt({"asks": question}))


def opened(data: Path, model: BaseChatModel, **more: Any) -> open_agent:
    return open_agent(data, model=model, embedder="offline", **more)


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    model = scripted(call("water", bed=3), "Watered.", "Again.")
    with opened(tmp_path, model, tools=[water]) as one:
        yield one


def test_a_message_of_a_snapshot_changes_by_an_edit_alone(tmp_path: Path) -> None:
    with opened(tmp_path, scripted("Good.")) as agent:
        agent.invoke({"messages": "Beans need water."})

        def changed(text: str) -> Any:
            [message, _] = agent.get_state().values["messages"]
            message.content = text
            return message

        changed("never written")
        agent.update_state(None, {"messages": [changed("Beans need sun.")]})
    with opened(tmp_path, scripted("Again.")) as agent:
        agent.invoke({"messages": "And peas?"})
        told = [str(one.content) for one in agent.get_state().values["messages"]]
    assert told == ["Beans need sun.", "Good.", "And peas?", "Again."]


def test_a_state_is_edited_with_the_config_in_front(agent: Agent) -> None:
    own: RunnableConfig = {"configurable": {"thread_id": agent.asynchronous.scope.thread}}
    goal = {"id": "goal_1_0", "description": "Plant beans"}
    agent.update_state(own, {"goal_index": 1}, "intake")
    agent.update_state(config=own, values={"goals": {"goal_1_0": goal}}, as_node="intake")
    agent.update_state(None, None)
    values = agent.get_state(own).values
    assert (values["goal_index"], values["goals"]["goal_1_0"]["id"]) == (1, "goal_1_0")
    history = list(agent.get_state_history(own, limit=2))
    assert [one.values["goal_index"] for one in history] == [1, 1]
    first = list(agent.get_state_history(own))[-1]
    assert agent.get_state(config=first.config, subgraphs=True).values.get("goals") == {}
    assert next(agent.get_state_history(before=history[1].config)).config == first.config


def test_values_before_the_config_are_an_error_that_names_the_order(agent: Agent) -> None:
    values: Any = {"goal_index": 1}
    with pytest.raises(InputError, match=r"\(config, values, as_node\): .* no 'goal_index'; put"):
        agent.update_state(values, "intake")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the state has no 'goal_indx'"):
        agent.update_state(None, {"goal_indx": 1})


def test_a_bare_function_is_a_tool_that_asks_first_and_its_interrupt_is_answered_by_id(
    agent: Agent,
) -> None:
    out = agent.invoke({"messages": "Water bed 3"})
    [asked] = out["__interrupt__"]
    assert asked.value["what"] == "Run water(bed=3)"
    assert agent.get_state().interrupts == (asked,)
    assert agent.get_state().tasks[0].interrupts == (asked,)
    assert agent.invoke(Command(resume={asked.id: "yes"}))["report"]["ticks"][0]["tools"] == [
        {"name": "water", "ok": True}
    ]


def test_version_2_gives_the_output_and_its_interrupts(agent: Agent) -> None:
    out = agent.invoke({"messages": "Water bed 3"}, version="v2")
    assert isinstance(out, GraphOutput)
    assert out.interrupts[0].value["tool"] == "water"
    done: Any = agent.invoke(Command(resume="yes"), version="v2")
    assert done.value["messages"][-1].text == "Watered."
    values = [
        part
        for part in agent.stream({"messages": "And?"}, stream_mode="values", version="v2")
        if part["type"] == "values"
    ]
    assert values[-1]["interrupts"] == ()
    assert values[-1]["data"]["messages"][-1].text == "Again."


def test_a_stream_mode_or_keys_of_invoke_are_given_as_langgraph_does(agent: Agent) -> None:
    assert agent.invoke({"messages": "Water bed 3"}, output_keys=["mode"])["mode"] == "awake"
    steps = agent.invoke(Command(resume="yes"), stream_mode="updates")
    assert [name for step in steps for name in step][-1] == "intake"


def test_a_command_changes_the_state_and_goes_somewhere(agent: Agent) -> None:
    agent.invoke(Command(update={"goal_index": 3}))
    agent.invoke(Command(goto="intake"))
    with pytest.raises(InputError, match="the command is empty"):
        agent.invoke(Command())
    assert agent.get_state().values["goal_index"] == 3


def test_a_tool_of_ones_own_may_interrupt(tmp_path: Path) -> None:
    model = scripted(call("where", question="Which town?"), "Graz it is.")
    tools = [registered(where, "safe_chain")]
    with opened(tmp_path, model, tools=tools) as agent:
        [asked] = agent.invoke({"messages": "Book it"})["__interrupt__"]
        assert asked.value == {"asks": "Which town?"}
        out = agent.invoke(Command(resume="Graz"))
    assert out["messages"][-1].text == "Graz it is."
    assert "The user says: Graz" in model.calls[1].text


@pytest.mark.parametrize("given", [Settings(persona="A pilot."), {"persona": "A pilot."}])
def test_settings_are_an_object_or_a_dict(tmp_path: Path, given: Any) -> None:
    model = scripted("Hello.", "Hi.")
    with opened(tmp_path, model, settings=given) as agent:
        agent.invoke({"messages": "Hi"})
        agent.invoke({"messages": "Hi"}, context={"persona": "A gardener."})
    assert "A pilot." in model.calls[0].text
    assert "A gardener." in model.calls[1].text


def test_a_wrong_name_of_a_setting_is_one_line() -> None:
    with pytest.raises(InputError) as raised:
        Settings(ownrs=["Ada"])  # type: ignore[call-arg]
    assert str(raised.value) == "settings: there is no setting 'ownrs'; did you mean owners?"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"personna": "A pilot."}, "no setting 'personna'; did you mean persona"),
        ({"xyzzy": 1}, r"no setting 'xyzzy'; `circadian config --explain` lists all"),
        ({"recall_limit": "many"}, "settings: recall_limit: Input should be .* got 'many'"),
        ("A pilot.", "give Settings or an object"),
    ],
)
def test_wrong_settings_are_one_line(tmp_path: Path, given: Any, told: str) -> None:
    with (
        pytest.raises(InputError, match=told) as raised,
        opened(tmp_path / "data", scripted(), settings=given),
    ):
        pass
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "data").exists()
    with opened(tmp_path / "other", scripted()) as agent:
        with pytest.raises(InputError, match=told):
            agent.invoke({"messages": "Hi"}, context=given)
        assert agent.get_state().values == {}


def test_many_agents_in_blocking_code(tmp_path: Path) -> None:
    with open_agents(tmp_path, model=OfflineChatModel(), embedder="offline") as agents:
        for user, nut in (("ada", "walnuts"), ("ben", "hazels")):
            agents.agent("default", user=user).invoke({"messages": f"I dislike {nut}."})
        ada = agents.agent("default", user="ada")
        assert "walnuts" in ada.invoke({"messages": "What do I dislike?"})["reply"]
    with pytest.raises(RuntimeError, match="the agent is closed"):
        ada.get_state()


def graph_of(data: Path, model: BaseChatModel, **more: Any) -> CompiledStateGraph[Any, Any, Any]:
    given = {"checkpointer": InMemorySaver(), "store": InMemoryStore(), **more}
    return make_graph(data, model, "offline", [water], **given)


def test_an_own_checkpointer_and_store_in_blocking_calls(tmp_path: Path) -> None:
    with (
        SqliteSaver.from_conn_string(str(tmp_path / "own.db")) as saver,
        SqliteStore.from_conn_string(str(tmp_path / "store.db")) as store,
    ):
        store.setup()
        model = scripted(call("water", bed=3), "Watered.", "Hello.")
        graph = graph_of(tmp_path / "data", model, checkpointer=saver, store=store)
        graph.invoke({"messages": "Water bed 3"}, ADA)
        out = graph.invoke(Command(resume="yes"), ADA)
        assert out["messages"][-1].text == "Watered."
        modes = graph.stream(
            {"messages": "Hi"}, ADA, stream_mode="messages", subgraphs=True, version="v2"
        )
        words = [part["data"][0].text for part in modes if part["type"] == "messages"]
        assert "".join(words).startswith("Hello.")
        graph.update_state(ADA, {"goal_index": 2}, as_node="intake")
        again = graph_of(tmp_path / "data", scripted(), checkpointer=saver, store=store)
        assert again.get_state(ADA).values["goal_index"] == 2
        assert len(list(again.get_state_history(ADA))) > 3
        assert store.search(("local", "ada"))
    assert sorted(path.name for path in (tmp_path / "data").glob("*.*[bn]")) == [
        "facts.db",
        "folder.json",
    ]


def test_a_blocking_night_makes_facts_in_the_folder(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, OfflineChatModel())
    graph.invoke({"messages": "Remember that the north gate closes at nine."}, ADA)
    night = graph.invoke({"request": "sleep"}, ADA)["report"]["night"]
    assert night["complete"]
    out = graph.invoke({"messages": "When does the north gate close?"}, ADA)
    assert "nine" in out["messages"][-1].text


async def test_the_same_graph_in_asynchronous_calls(tmp_path: Path) -> None:
    graph = await asyncio.to_thread(graph_of, tmp_path, scripted("Hello.", "Hi."))
    both = [graph.ainvoke({"messages": "Hi"}, {"configurable": {"thread_id": id_}}) for id_ in "ab"]
    assert sorted([out["messages"][-1].text for out in await asyncio.gather(*both)]) == [
        "Hello.",
        "Hi.",
    ]


def test_agents_of_two_graphs_do_not_meet(tmp_path: Path) -> None:
    one = graph_of(tmp_path / "a", scripted("One."))
    other = graph_of(tmp_path / "b", scripted("Other."))
    assert one.invoke({"messages": "Hi"}, ADA)["messages"][-1].text == "One."
    assert other.invoke({"messages": "Hi"}, ADA)["messages"][-1].text == "Other."


def test_settings_of_a_graph_are_its_context(tmp_path: Path) -> None:
    model = scripted("Hello.")
    context: Any = {"persona": "A gardener."}
    graph_of(tmp_path, model).invoke({"messages": "Hi"}, ADA, context=context)
    assert "A gardener." in model.calls[0].text


def test_an_event_in_the_form_of_a_run_needs_its_words_and_offers_nothing_that_is_refused() -> None:
    form = graph.get_input_jsonschema()["$defs"]["GivenEvent"]
    assert form["required"] == ["text"]
    assert set(form["properties"]) == {"text", "sender", "channel", "addressed", "at", "id"}
