"""Ticks that delegate: results in the order of the calls, a few at once, and only where allowed."""

import asyncio
import json
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import tool

from graph.following import Listener, follow
from memory import audit
from memory.errors import ModelError
from memory.records.tick import ToolOutcome
from memory.settings import Settings
from tests.support.agents import Opening, entries, said
from tests.support.clock import Clock
from tests.support.scripted import Reply, ScriptedChatModel, call, calls, scripted

ON = Settings(sub_agents_enabled=True)


def delegating(*answers: Reply, **options: Any) -> ScriptedChatModel:
    """Gives `answers` to the assistant, in order; a sub-agent does what its task says."""
    waiting = list(answers)

    def reply(messages: list[BaseMessage], tools: list[str]) -> Reply:
        if "<delegated_task>" in str(messages[1].text):
            return "Done: " + str(messages[1].text).splitlines()[-2]
        return waiting.pop(0)

    return scripted(otherwise=reply, **options)


def tasks(*words: str) -> AIMessage:
    return calls(*(("delegate_task", {"task": word}) for word in words))


def answers(messages: list[Any]) -> list[Any]:
    found = [one for one in messages if isinstance(one, ToolMessage)]
    return [json.loads(str(one.content)) for one in found]


async def test_two_results_come_back_in_the_order_of_the_calls_and_all_is_counted(
    opening: Opening,
) -> None:
    mixed = calls(
        ("delegate_task", {"task": "oak"}),
        ("add_goal", {"description": "Build a table"}),
        ("delegate_task", {"task": "pine"}),
    )
    model = delegating(mixed, "Oak, then.")
    async with opening(model, settings=ON) as agent:
        out = await agent.ainvoke(said("Which wood?"))
        state = (await agent.aget_state()).values
    told = [one.get("result", one.get("goal_id")) for one in answers(out["messages"])]
    assert told == ["Done: oak", "goal_1_0", "Done: pine"]
    tick = out["report"]["ticks"][0]
    assert (tick["reply"], tick["llm_calls"]) == ("Oak, then.", 4)
    assert [one["name"] for one in tick["tools"]] == ["delegate_task", "add_goal", "delegate_task"]
    assert [one.type for one in out["messages"]] == ["human", "ai", "tool", "tool", "tool", "ai"]
    assert state["delegated"] == {}
    assert tick["tokens"] > 0


async def test_five_tasks_run_three_at_once_and_then_two(opening: Opening) -> None:
    three, two = asyncio.Barrier(3), asyncio.Barrier(2)
    gates = [three, three, three, two, two]

    class Meeting(ScriptedChatModel):
        async def _astream(self, messages: list[BaseMessage], *a: Any, **k: Any) -> Any:
            if "<delegated_task>" in str(messages[1].text):
                await asyncio.wait_for(gates.pop(0).wait(), 10)
            async for part in super()._astream(messages, *a, **k):
                yield part

    words = ("one", "two", "three", "four", "five")
    model = Meeting(otherwise=delegating(tasks(*words), "All done.").otherwise)
    steps: list[str] = []
    async with opening(model, settings=ON) as agent:
        modes = ["updates", "messages"]
        async for part in agent.astream(
            said("Do five things."), stream_mode=modes, subgraphs=True, version="v2"
        ):
            if part["type"] == "updates" and len(part["ns"]) == 1:
                steps += part["data"]
        messages = (await agent.aget_state()).values["messages"]
    told = [one["result"] for one in answers(messages)]
    assert told == [f"Done: {word}" for word in words]
    begin, end = steps.index("act"), steps.index("record")
    waves = [*["delegate"] * 3, "use_tools", *["delegate"] * 2, "use_tools"]
    assert steps[begin:end] == ["act", *waves, "act"]


async def test_a_sub_agent_that_fails_is_a_tool_that_failed_and_the_tick_goes_on(
    opening: Opening,
) -> None:
    def reply(messages: list[BaseMessage], tools: list[str]) -> Reply:
        if "<delegated_task>" in str(messages[1].text):
            raise ModelError("the model gave no usable answer")
        return tasks("oak") if len(messages) == 2 else "I do not know."

    async with opening(scripted(otherwise=reply), settings=ON) as agent:
        out = await agent.ainvoke(said("Which wood?"))
    tick = out["report"]["ticks"][0]
    assert (tick["reply"], tick["tools"]) == (
        "I do not know.",
        [{"name": "delegate_task", "ok": False}],
    )
    assert answers(out["messages"])[0]["success"] is False
    assert out["report"]["failures"] == []


async def test_a_call_that_is_no_task_is_answered_without_a_sub_agent(opening: Opening) -> None:
    wrong: list[dict[str, Any]] = [
        {},
        {"task": ""},
        {"task": " \n"},
        {"task": "x" * 4_001},
        {"task": {"a": [1]}, "reasoning": {"a": [1]}},
        {"task": "oak", "context": "x" * 20_001},
    ]
    asked = calls(*(("delegate_task", args) for args in (*wrong, {"task": "pine"})))
    model = delegating(asked, "Pine, then.")
    async with opening(model, settings=ON) as agent:
        out = await agent.ainvoke(said("Which wood?"))
    *refused, done = answers(out["messages"])
    assert done["result"] == "Done: pine"
    assert [one["error"].partition(":")[0] for one in refused] == [*["task"] * 5, "context"]
    assert {one["suggestion"] for one in refused} == {"Call it again with these mended."}
    assert len(model.calls) == 3


async def test_switched_off_it_is_not_offered_and_a_call_is_an_unknown_tool(
    opening: Opening,
) -> None:
    model = scripted(tasks("oak"), "Never mind.")
    async with opening(model) as agent:
        out = await agent.ainvoke(said("Which wood?"))
    assert "delegate_task" not in model.calls[0].tools
    assert answers(out["messages"])[0]["error"] == "there is no tool 'delegate_task'"
    assert len(model.calls) == 2


async def test_words_and_writes_of_a_sub_agent_are_not_the_assistant_s(opening: Opening) -> None:
    heard: list[str] = []
    used: list[ToolOutcome] = []

    class Ear(Listener):
        def on_words(self, text: str, message_id: str) -> None:
            heard.append(text)

        def on_outcomes(self, outcomes: list[ToolOutcome]) -> None:
            used.extend(outcomes)

    async with opening(delegating(tasks("oak"), "It is oak."), settings=ON) as agent:
        await follow(agent.context, said("Which wood?", id="e1"), Ear())
        written = await entries(agent)
    assert "".join(heard) == "It is oak."
    assert used == [{"name": "delegate_task", "ok": True}]
    assert not any("Done: oak" in entry["content"] for entry in written)


async def test_a_run_that_ends_while_sub_agents_work_goes_on_with_what_they_found(
    opening: Opening,
) -> None:
    class Stuck(ScriptedChatModel):
        async def _agenerate(self, messages: list[BaseMessage], *a: Any, **k: Any) -> Any:
            if "\npine\n" in str(messages[-1].text):
                await asyncio.Event().wait()
            return await super()._agenerate(messages, *a, **k)

    first = Stuck(otherwise=delegating(tasks("oak", "pine")).otherwise)
    async with opening(first, settings=ON) as agent:
        parts = agent.astream(said("Which wood?"), stream_mode="updates", subgraphs=True)
        async for namespace, update in parts:
            if len(namespace) == 1 and "delegate" in update:
                break
        await parts.aclose()
    model = delegating("Both.")
    async with opening(model, settings=ON) as agent:
        out = await agent.ainvoke(None)
    assert out["report"]["ticks"][0]["reply"] == "Both."
    assert [one["result"] for one in answers(out["messages"])] == ["Done: oak", "Done: pine"]
    asked = [str(one.messages[-1].text) for one in model.calls]
    assert len(asked) == 2
    assert "\npine\n" in asked[0]


async def test_the_audit_log_has_the_task_and_the_tools_that_were_used_for_it(
    opening: Opening, clock: Clock
) -> None:
    @tool
    async def weigh(thing: str) -> str:
        """Weigh a thing."""
        clock.advance(seconds=3)
        return f"{thing}: 3 kg"

    def reply(messages: list[BaseMessage], tools: list[str]) -> Reply:
        if "<delegated_task>" not in str(messages[1].text):
            return tasks("Weigh the oak.") if messages[-1].type == "human" else "Three."
        return call("weigh", thing="oak") if len(messages) == 2 else "3 kg."

    model = scripted(otherwise=reply)
    async with opening(model, settings=ON, tools=[weigh]) as agent:
        await agent.ainvoke(said("What does it weigh?"))
        log = await audit.read(agent.store, agent.scope)
    told = [(one["target"], one["outcome"], one["detail"]["args"]) for one in log]
    assert told == [
        ("delegate_task", "ok", {"task": "Weigh the oak."}),
        ("weigh", "ok", {"thing": "oak"}),
    ]
    assert log[0]["duration_ms"] == 3_000


async def test_a_call_id_that_a_model_uses_again_has_a_result_of_its_own(opening: Opening) -> None:
    def same(word: str) -> AIMessage:
        before = {"name": "noop", "args": {}, "id": "call_0"}
        return AIMessage(
            "",
            tool_calls=[before, {"name": "delegate_task", "args": {"task": word}, "id": "call_1"}],
        )

    model = delegating(same("oak"), same("pine"), "Both.")
    async with opening(model, settings=ON) as agent:
        out = await agent.ainvoke(said("Which wood?"))
    told = [one["result"] for one in answers(out["messages"]) if "result" in one]
    assert told == ["Done: oak", "Done: pine"]
