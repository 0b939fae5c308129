"""The delegate subgraph: sub-agents side by side, in a parent that sends them their calls."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.store.memory import InMemoryStore

from graph.builder import delegate
from memory import runtime as resources
from memory.errors import CircuitOpen, ContextOverflow, ModelError
from memory.facts.semantic import SemanticMemory
from memory.models.retry import Breakers
from memory.records.tick import DelegateResult
from memory.runtime import Resources
from memory.settings import Settings
from memory.state.schema import State
from nodes.delegate import fan_out
from tests.support.scripted import Reply, ScriptedChatModel, call, calls, scripted
from tests.support.tool_calls import NOW, THREAD, Shelf, tick_state
from tools.answers import Answer, Runtime, answer


async def ask(state: State) -> dict[str, Any]:
    """Stands for the nodes before: the state holds the model's answer already."""
    return {}


def parent() -> Any:
    """A graph that delegates as a tick does, with a saver as strict as the product's."""
    builder = StateGraph(State, context_schema=Settings)
    builder.add_node(ask)
    builder.add_node("delegate", delegate)
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", fan_out, ["delegate"])
    builder.add_edge("delegate", END)
    serde = JsonPlusSerializer(allowed_msgpack_modules=None)
    return builder.compile(checkpointer=InMemorySaver(serde=serde), store=InMemoryStore())


@dataclass
class Requesting:
    """An assistant whose newest answer delegates these tasks; all of them are due."""

    asked: Sequence[Any]
    """Tasks, or the arguments of a call."""
    model: Any
    settings: Settings = field(default_factory=Settings)
    tools: tuple[BaseTool, ...] = ()
    changes: dict[str, Any] = field(default_factory=dict)
    breakers: Breakers = field(default_factory=Breakers.of)
    graph: Any = field(default_factory=parent)

    @property
    def state(self) -> State:
        wanted = [
            {
                "name": "delegate_task",
                "args": one if isinstance(one, dict) else {"task": one},
                "id": f"c{at}",
            }
            for at, one in enumerate(self.asked)
        ]
        said = HumanMessage("Which wood?", name="Alice", id="m1")
        state = tick_state(messages=[said, AIMessage("", tool_calls=wanted, id="m2")])
        loop = {**cast(Any, state["loop"]), "delegating": [one["id"] for one in wanted]}
        return cast(State, {**state, "loop": loop, **self.changes})

    @property
    def run(self) -> dict[str, Any]:
        given = Resources(
            model=lambda: self.model,
            semantic=cast(SemanticMemory, Shelf()),
            clock=lambda: NOW,
            tools=self.tools,
            breakers=self.breakers,
        )
        config: RunnableConfig = {"configurable": {"thread_id": THREAD, resources.KEY: given}}
        return {"config": config, "context": self.settings}

    async def results(self) -> dict[str, DelegateResult]:
        after = await self.graph.ainvoke(self.state, **self.run)
        return cast(dict[str, DelegateResult], after["delegated"])

    async def told(self) -> dict[str, Any]:
        (result,) = (await self.results()).values()
        return content(result)


def content(result: DelegateResult) -> dict[str, Any]:
    return cast(dict[str, Any], json.loads(result["content"]))


LONG = "word " * 400


def by_task(**replies: Reply | Exception | Callable[[], Reply]) -> ScriptedChatModel:
    def reply_to(messages: list[BaseMessage], tools: list[str]) -> Reply:
        task = str(messages[1].text).rpartition("<delegated_task>")[2]
        reply = next(reply for word, reply in replies.items() if word in task)
        if isinstance(reply, Exception):
            raise reply
        return reply() if callable(reply) else reply

    return scripted(otherwise=reply_to)


@tool
async def weigh(thing: str) -> str:
    """Weigh a thing."""
    return f"{thing}: 3 kg"


async def test_sub_agents_answer_by_call_and_the_rest_of_the_state_is_untouched() -> None:
    asking = Requesting(["oak", "pine"], by_task(oak="Oak is hard.", pine="Pine is soft."))
    after = await asking.graph.ainvoke(asking.state, **asking.run)
    found = {key: content(one)["result"] for key, one in after.pop("delegated").items()}
    assert found == {"c0": "Oak is hard.", "c1": "Pine is soft."}
    assert after.pop("messages") == asking.state["messages"]
    before = cast(dict[str, Any], asking.state)
    assert after == {key: before[key] for key in after}
    assert {"goals", "projects", "loop", "context"} <= after.keys()


async def test_two_sub_agents_with_one_task_have_a_result_each() -> None:
    found = await Requesting(["oak", "oak"], scripted("First.", "Second.")).results()
    assert sorted(content(one)["result"] for one in found.values()) == ["First.", "Second."]


async def test_only_the_calls_that_are_due_are_carried_out() -> None:
    asking = Requesting(["oak", "pine"], by_task(pine="Soft."))
    loop = {**cast(Any, asking.state["loop"]), "delegating": ["c1"]}
    asking.changes = {"loop": loop}
    assert list(await asking.results()) == ["c1"]
    asking.changes = {"loop": {**loop, "delegating": []}}
    with pytest.raises(RuntimeError, match="no call of the newest answer"):
        await asking.results()


@pytest.mark.parametrize(
    "error", [ModelError("no answer"), CircuitOpen("left alone"), ContextOverflow("too long")]
)
async def test_a_failed_sub_agent_does_not_stop_the_others(error: Exception) -> None:
    oak = {"task": "oak", "reasoning": "To know."}
    found = await Requesting([oak, "pine"], by_task(oak=error, pine="Soft.")).results()
    [call] = found["c0"]["calls"]
    assert (call["ok"], call["args"], call["reasoning"]) == (False, {"task": "oak"}, "To know.")
    assert call["error"] == f"the sub-agent failed: {error}"
    assert (found["c0"]["ok"], found["c1"]["ok"]) == (False, True)
    assert content(found["c0"]) == {
        "success": False,
        "error": f"the sub-agent failed: {error}",
        "suggestion": "Do it yourself, give it a smaller task, or go on without it.",
    }


async def test_while_the_model_is_left_alone_nothing_is_asked() -> None:
    async def fails() -> str:
        raise ModelError("no")

    asking = Requesting(["oak"], scripted(), breakers=Breakers.of(failures=1))
    with pytest.raises(ModelError):
        await asking.breakers.model.call(fails, failure=ModelError)
    assert "is left alone for now" in (await asking.told())["error"]
    assert asking.model.calls == []


async def test_a_crash_in_one_leaves_the_results_of_the_others() -> None:
    ended = asyncio.Event()

    class Crashing(ScriptedChatModel):
        async def _agenerate(self, messages: list[BaseMessage], *a: Any, **k: Any) -> Any:
            made = await super()._agenerate(messages, *a, **k)
            if "oak" in str(messages[1].text) and not ended.is_set():
                await ended.wait()
                raise AssertionError("a bug")
            return made

    asking = Requesting(["oak", "pine"], Crashing(otherwise=lambda messages, tools: "Wood."))

    async def follow() -> None:
        async for part in asking.graph.astream(asking.state, stream_mode="updates", **asking.run):
            if "delegate" in part:
                assert list(part["delegate"]["delegated"]) == ["c1"]
                ended.set()

    with pytest.raises(AssertionError, match="a bug"):
        await follow()
    after = await asking.graph.ainvoke(None, **asking.run)
    assert sorted(after["delegated"]) == ["c0", "c1"]
    asked = ["oak" if "oak" in one.text else "pine" for one in asking.model.calls]
    assert sorted(asked) == ["oak", "oak", "pine"]


async def test_a_sub_agent_calls_tools_in_messages_of_its_own() -> None:
    model = scripted(call("weigh", thing="oak"), "Three kilograms.")
    (result,) = (await Requesting(["oak"], model, tools=(weigh,)).results()).values()
    assert content(result) == {
        "success": True,
        "result": "Three kilograms.",
        "iterations": 1,
        "tools_used": ["weigh"],
        "summarised": False,
    }
    assert [one["name"] for one in result["calls"]] == ["delegate_task", "weigh"]
    assert result["usage"]["llm_calls"] == 2
    assert [one.tools for one in model.calls] == [["weigh"], ["weigh"]]
    assert [one.type for one in model.calls[1].messages] == ["system", "human", "ai", "tool"]
    assert model.calls[1].messages[-1].text == (
        '<tool_result name="weigh">\noak: 3 kg\n</tool_result>'
    )


async def test_tools_of_a_sub_agent_see_little_state_and_change_none() -> None:
    seen: list[dict[str, Any]] = []

    @tool
    async def mark(runtime: Runtime) -> Answer:
        """Mark a goal."""
        seen.append(dict(runtime.state))
        return answer(runtime, {}, goals={"goal_9_9": {}}, tick=99, projects={"active": None})

    asking = Requesting(["oak"], scripted(call("mark"), "Marked."), tools=(mark,))
    shelf = {"active": "secret", "slots": {}}
    asking.changes = {"goals": {"goal_1_0": {"description": "secret"}}, "projects": shelf}
    after = await asking.graph.ainvoke(asking.state, **asking.run)
    assert content(after["delegated"]["c0"])["result"] == "Marked."
    assert (list(after["goals"]), after["tick"]) == (["goal_1_0"], 42)
    assert (seen[0]["tick"], seen[0]["event"], seen[0]["goals"]) == (42, None, {})
    assert seen[0]["context"]["now"] == NOW.isoformat()
    assert "secret" not in str(seen)


@pytest.mark.parametrize("mode", ["none", "orchestrator", "delegate"])
async def test_the_requester_s_memory_is_within_reach_only_without_insulation(mode: Any) -> None:
    slot = {"summary": "Build a tavern", "context": "", "status": "active", "last_active": "x"}
    projects = {"active": "tavern", "slots": {"tavern": {**slot, "created_at": "x"}}}
    model = scripted(call("list_projects"), "Done.")
    settings = Settings(personality_insulation=mode)
    asking = Requesting(["oak"], model, settings, changes={"projects": projects})
    assert (await asking.told())["result"] == "Done."
    shared = mode == "none"
    assert model.calls[0].tools == (
        ["list_projects", "review_journal", "recall_memories"] if shared else []
    )
    assert ("Build a tavern" in model.calls[1].text) is shared
    assert ("there is no tool 'list_projects'" in model.calls[1].text) is not shared


async def test_at_the_cap_one_last_call_without_tools_gives_the_result() -> None:
    model = scripted(
        *(call("weigh", thing=str(at)) for at in range(2)), calls(("weigh", {}), text="Enough.")
    )
    asking = Requesting(["oak"], model, Settings(sub_agent_iterations=2), tools=(weigh,))
    told = await asking.told()
    assert (told["result"], told["iterations"]) == ("Enough.", 2)
    assert [one.tools for one in model.calls] == [["weigh"], ["weigh"], []]


async def test_no_result_is_a_failure() -> None:
    model = scripted(call("weigh", thing="oak"), calls(("weigh", {})))
    asking = Requesting(["oak"], model, Settings(sub_agent_iterations=1), tools=(weigh,))
    (result,) = (await asking.results()).values()
    assert content(result)["error"] == "the sub-agent gave no result"
    assert (result["ok"], result["usage"]["llm_calls"]) == (False, 2)
    assert [one["name"] for one in result["calls"]] == ["delegate_task", "weigh"]


async def test_a_sub_agent_of_a_single_action_tick_has_one_tool_call() -> None:
    two = calls(("weigh", {"thing": "oak"}), ("weigh", {"thing": "pine"}))
    model = scripted(two, "Three kilograms.")
    asking = Requesting(["oak"], model, tools=(weigh,))
    asking.changes = {"pattern": {**cast(Any, asking.state["pattern"]), "mode": "single_action"}}
    (result,) = (await asking.results()).values()
    assert [one["ok"] for one in result["calls"]] == [True, True, False]
    assert model.calls[1].tools == []
    assert "pine: 3 kg" not in model.calls[1].text


async def test_calls_without_ids_are_told_apart() -> None:
    twice = calls(("weigh", {"thing": "oak"}), ("weigh", {"thing": "pine"}))
    for one in twice.tool_calls:
        one["id"] = None
    model = scripted(twice, "Done.")
    await Requesting(["oak"], model, tools=(weigh,)).results()
    answers = [one for one in model.calls[1].messages if isinstance(one, ToolMessage)]
    asked = cast(AIMessage, model.calls[1].messages[2]).tool_calls
    assert [one.tool_call_id for one in answers] == [one["id"] for one in asked]
    assert len({one["id"] for one in asked}) == 2


@pytest.mark.parametrize(
    ("reply", "result", "summarised", "llm_calls"),
    [
        ("Short.", "Short.", True, 2),
        (LONG, f"{LONG[:1_499]}\n... 500 more characters left out", False, 2),
        (ModelError("no"), f"{LONG[:1_499]}\n... 500 more characters left out", False, 1),
    ],
)
async def test_a_long_result_is_shortened_once_and_cut_where_that_fails(
    reply: Any, result: str, summarised: bool, llm_calls: int
) -> None:
    model = scripted(LONG, reply)
    (found,) = (await Requesting(["oak"], model).results()).values()
    told = content(found)
    assert (told["result"], told["summarised"]) == (result, summarised)
    assert (found["ok"], found["usage"]["llm_calls"]) == (True, llm_calls)
    shown = model.calls[1].messages
    assert [one.type for one in shown] == ["system", "human"]
    assert model.calls[1].tools == []
    assert shown[1].text == (
        "<delegated_task>\noak\n</delegated_task>\n\n"
        f"<delegated_result>\n{LONG.strip()}\n</delegated_result>"
    )


async def test_with_summaries_off_a_long_result_stays_whole() -> None:
    model = scripted(LONG)
    told = await Requesting(["oak"], model, Settings(result_summarization=False)).told()
    assert (told["result"], told["summarised"]) == (LONG.strip(), False)


async def test_after_the_briefing_the_requester_is_nowhere_in_its_state() -> None:
    asking = Requesting(["oak"], scripted("Hard."))
    asking.changes = {"goals": {"goal_1_0": {"description": "secret", "status": "completed"}}}
    await asking.results()
    saver = asking.graph.checkpointer
    (inner,) = (one for one in saver.storage[THREAD] if one.startswith("delegate:"))
    place = {"configurable": {"thread_id": THREAD, "checkpoint_ns": inner}}
    newest_first = [one.checkpoint["channel_values"] for one in saver.list(place)]
    briefed = [one for one in newest_first if "messages" in one]
    assert len(briefed) >= 3
    assert "secret" in str(newest_first)
    assert "secret" not in str(briefed)


async def test_words_of_a_sub_agent_are_streamed_under_its_own_node_names() -> None:
    asking = Requesting(["oak"], scripted(call("weigh", thing="oak"), LONG, "Short."))
    asking.tools = (weigh,)
    modes = ["messages", "updates"]
    parts = asking.graph.astream(
        asking.state, stream_mode=modes, subgraphs=True, version="v2", **asking.run
    )
    speakers, steps = set(), []
    async for part in parts:
        assert not part["ns"] or part["ns"][0].startswith("delegate:")
        if part["type"] == "messages" and isinstance(part["data"][0], AIMessage):
            speakers.add(part["data"][1]["langgraph_node"])
        elif part["type"] == "updates" and part["ns"]:
            steps += list(part["data"])
    assert speakers == {"ask_delegate", "report_result"}
    loop = ["ask_delegate", "use_delegate_tools", "ask_delegate"]
    assert steps == ["brief_delegate", *loop, "report_result"]
