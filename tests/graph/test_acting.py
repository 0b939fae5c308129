"""How a tick ends, what stops the agent, what it may spend, and its look at its own work."""

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from graph.api import AsyncAgent
from graph.use_cases.status import status
from memory import audit
from memory.errors import ModelError
from memory.events.next_action import ask_for_stop
from memory.settings import Settings
from tests.support.agents import Opening, entries, said
from tests.support.clock import Clock
from tests.support.scripted import Step, call, calls, scripted
from tools.registry import registered

CHILD = {"description": "Wash up", "parent_id": "goal_1_0"}


@tool
def break_down(reasoning: str | None = None) -> str:
    """Break."""
    raise ValueError("it broke")


BREAKS = [registered(break_down, "safe_chain")]


async def test_a_terminal_tool_ends_the_loop(opening: Opening) -> None:
    tell = calls(
        ("send_message", {"to": "Ben", "text": "Dinner at eight"}), ("noop", {}), text="I told Ben."
    )
    model, settings = scripted(tell), Settings(owners=["Ada"])
    async with opening(model, settings=settings) as agent:
        output = await agent.ainvoke(said("Tell Ben that dinner is at eight"))
    [tick] = output["report"]["ticks"]
    assert len(model.calls) == 1
    assert tick["reply"] == "I told Ben."
    assert [(one["to"], one["text"]) for one in tick["sent"]] == [("Ben", "Dinner at eight")]
    assert [one["ok"] for one in tick["tools"]] == [True, True]


async def test_a_refused_message_does_not_end_the_loop(opening: Opening) -> None:
    model = scripted(call("send_message", to="Ada", text="Hello"), "Hello Ada.")
    async with opening(model) as agent:
        output = await agent.ainvoke(said("Say hello"))
    assert output["report"]["ticks"][0]["reply"] == "Hello Ada."


async def test_five_failing_tools_in_a_row_stop_the_agent_until_a_person_clears_it(
    opening: Opening,
) -> None:
    failing = [call("break_down") for _ in range(4)]
    model = scripted(*failing, "I could not.", call("break_down"), "Nor now.", "All is well.")
    async with opening(model, tools=BREAKS) as agent:
        first = await agent.ainvoke(said("Try it"))
        assert not (await agent.aget_state()).values["emergency_stop"]
        second = await agent.ainvoke(said("Try again"))
        stopped = await agent.ainvoke(said("Hello?"))
        now = await status(agent.context)
        log = await audit.read(agent.store, agent.scope)
        cleared = await agent.ainvoke({"request": "clear_stop"})
        assert (await agent.aget_state()).values["consecutive_errors"] == 0
    assert first["report"]["ticks"][0]["reply"] == "I could not."
    assert second["report"]["ticks"][0]["reply"] == "Nor now."
    assert (now["emergency_stop"], now["inbox"]["waiting"]) == (True, 1)
    assert stopped["report"]["ticks"] == []
    assert "Emergency stop: 1 event waits" in stopped["report"]["notes"][0]
    assert [one["why"] for one in log if one["what"] == "emergency_stop"] == ["5 failures in a row"]
    assert [tick["reply"] for tick in cleared["report"]["ticks"]] == ["All is well."]


async def test_a_success_between_failures_begins_the_count_anew(opening: Opening) -> None:
    steps: list[Step] = [
        call("break_down"),
        call("break_down"),
        call("noop"),
        call("break_down"),
        "Done.",
    ]
    model = scripted(*steps, *steps)
    async with opening(model, tools=BREAKS) as agent:
        await agent.ainvoke(said("One"))
        await agent.ainvoke(said("Two"))
        state = (await agent.aget_state()).values
    assert not state["emergency_stop"]
    assert state["consecutive_errors"] == 1


async def test_five_failed_model_calls_stop_the_agent_and_nothing_raises(opening: Opening) -> None:
    model = scripted(*[ModelError("no answer") for _ in range(5)])
    async with opening(model) as agent:
        events = [{"text": f"Event {n}", "sender": "Ada"} for n in range(6)]
        output = await agent.ainvoke({"events": events}, raise_on_failure=False)
        now = await status(agent.context)
    assert len(model.calls) == 5
    assert len(output["report"]["failures"]) == 5
    assert now["emergency_stop"]
    assert now["inbox"]["waiting"] == 6


async def test_autonomous_ticks_are_limited_and_events_are_answered_beyond_the_limit(
    opening: Opening, clock: Clock
) -> None:
    settings = Settings(autonomous_ticks_per_hour=2)
    goal = call("add_goal", description="Tidy up")
    model = scripted(goal, "Noted.", otherwise=lambda m, t: "On it.")
    async with opening(model, settings=settings) as agent:
        await agent.ainvoke(said("Please tidy up"))
        for _ in range(2):
            assert (await agent.ainvoke({"request": "tick"}))["report"]["ticks"]
        third = await agent.ainvoke({"request": "tick"})
        asked = len(model.calls)
        answered = await agent.ainvoke(said("And now?"))
        clock.advance(hours=1)
        later = await agent.ainvoke({"request": "tick"})
    assert third["report"]["ticks"] == []
    assert "only events are answered" in third["report"]["notes"][0]
    assert asked == 4
    assert answered["report"]["ticks"][0]["reply"] == "On it."
    assert later["report"]["ticks"][0]["context_type"] == "tick_autonomous"


async def test_a_reflection_follows_after_reflection_interval_ticks(opening: Opening) -> None:
    settings = Settings(reflection_interval=2)
    note = call("add_journal_entry", content="Short answers were liked.", reasoning="A pattern")
    model = scripted("One.", "Two.", call("review_journal"), note, call("noop"), "Reviewed.")
    async with opening(model, settings=settings) as agent:
        await agent.ainvoke(said("First"))
        output = await agent.ainvoke(said("Second"))
        state = (await agent.aget_state()).values
        journal = await entries(agent)
    kinds = [tick["context_type"] for tick in output["report"]["ticks"]]
    assert kinds == ["tick_event", "reflection"]
    look = output["report"]["ticks"][-1]
    assert [one["name"] for one in look["tools"]] == ["review_journal", "add_journal_entry", "noop"]
    assert [one.tools for one in model.calls[2:]] == [
        *[["add_journal_entry", "review_journal", "noop"]] * 3,
        [],
    ]
    [noted] = [one for one in journal if "self" in one["tags"]]
    assert (noted["content"], noted["consolidation"]) == ("Short answers were liked.", "exempt")
    assert len(journal) == 3
    assert [m.text for m in state["messages"] if isinstance(m, HumanMessage)] == ["First", "Second"]
    assert "First" not in "".join(str(m.text) for m in model.calls[2].messages)


async def test_the_report_has_assessment_pattern_and_context_use(opening: Opening) -> None:
    async with opening(scripted("You are welcome.")) as agent:
        output = await agent.ainvoke(said("Thank you!"))
    [tick] = output["report"]["ticks"]
    assert tick["assessment"]["event_class"] == "communication"
    assert tick["pattern"]["mode"] == "single_action"
    assert tick["pattern"]["source_layers"]["mode"] == "assessment"
    assert tick["classification"]["rule"] == "direct"
    assert (tick["context"]["level"], tick["advice"]) == ("normal", "Proceed normally")
    assert tick["context"]["used"] == sum(tick["components"].values())
    assert {"system_prompt", "conversation_history", "tools"} <= set(tick["components"])


async def test_a_stop_reaches_a_run_under_way(opening: Opening, clock: Clock) -> None:
    async def stopping(agent: AsyncAgent) -> None:
        await ask_for_stop(agent.store, agent.scope, at=clock(), by="local")

    async with opening(scripted("One.", "Three.")) as agent:
        events = [{"text": f"Event {n}", "sender": "Ada"} for n in range(2)]
        async for update in agent.astream({"events": events}, stream_mode="updates"):
            if "awake" in update:
                await stopping(agent)
        now = await status(agent.context)
        assert (now["emergency_stop"], now["inbox"]["waiting"]) == (True, 1)
        cleared = await agent.ainvoke({"request": "clear_stop"})
        assert not (await status(agent.context))["emergency_stop"]
    assert [tick["reply"] for tick in cleared["report"]["ticks"]] == ["Three."]


async def test_a_disabled_agent_makes_no_autonomous_tick(opening: Opening) -> None:
    model = scripted(call("add_goal", description="Tidy up"), "Noted.")
    async with opening(model) as agent:
        await agent.ainvoke(said("Please tidy up"))
    off = scripted()
    async with opening(off, settings=Settings(enabled=False)) as agent:
        output = await agent.ainvoke({"request": "tick"})
    assert (output["report"]["ticks"], off.calls) == ([], [])
    assert "Switched off" in output["report"]["notes"][0]


async def test_a_failed_autonomous_tick_counts_towards_the_limit(opening: Opening) -> None:
    goal = call("add_goal", description="Tidy up")
    model = scripted(goal, "Noted.", *[ModelError("down") for _ in range(2)])
    settings = Settings(autonomous_ticks_per_hour=2)
    async with opening(model, settings=settings) as agent:
        await agent.ainvoke(said("Please tidy up"))
        for _ in range(2):
            await agent.ainvoke({"request": "tick"}, raise_on_failure=False)
        third = await agent.ainvoke({"request": "tick"})
    assert third["report"]["failures"] == []
    assert "only events are answered" in third["report"]["notes"][0]


async def test_a_goal_completed_by_hand_is_a_completed_task_and_in_the_log(
    opening: Opening,
) -> None:
    tree = calls(("add_goal", {"description": "Tidy up"}), ("add_goal", CHILD))
    async with opening(scripted(tree, "Noted.")) as agent:
        await agent.ainvoke(said("Please tidy up"))
        child = {"goal_1_1": {"status": "completed", "progress": 100}}
        await agent.aupdate_state(None, {"goals": child})
        await agent.ainvoke({"request": "wake"})
        log = await audit.read(agent.store, agent.scope)
        state = (await agent.aget_state()).values
    assert ("goal_completed", "goal_1_0") in [(one["what"], one["target"]) for one in log]
    assert [one["description"] for one in state["session_memory"]["completed_tasks"]] == ["Tidy up"]
