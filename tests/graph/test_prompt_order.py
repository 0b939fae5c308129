"""The prompt of a tick: what stays the same for a provider's cache, and what stands late."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from graph.agent import open_agent
from memory import audit
from memory.messages import data_in
from memory.messages.trust import event_text, front_of
from memory.prompt.components import component
from memory.settings import Settings
from memory.text import approximate_tokens
from tests.support.agents import Opening, opened, said
from tests.support.clock import Clock
from tests.support.facts import draft
from tests.support.scripted import RecordedCall, call, calls, scripted
from tools.policy import CONTEXTS, select_execution_pattern
from tools.registry import EXTRA_TOKENS, shown_tools, tools_for

DATED = re.compile(r"\d{4}-\d\d|\d\d:\d\d|\b20\d\d\b")
VIENNA = Settings(time_zone="Europe/Vienna")


def system(made: RecordedCall) -> str:
    return str(made.messages[0].text)


def newest(made: RecordedCall) -> HumanMessage:
    return next(one for one in reversed(made.messages) if isinstance(one, HumanMessage))


def front(made: RecordedCall) -> str:
    message = newest(made)
    return str(message.text)[: front_of(message)]


def plain(messages: list[BaseMessage]) -> list[tuple[str, str]]:
    return [(one.type, str(one.text)) for one in messages]


async def life(data: Path, clock: Clock) -> list[RecordedCall]:
    """Twelve ticks in which everything that a prompt shows changes; the first call of each."""
    steps: list[Any] = []
    for n in range(4):
        steps += [
            calls(
                ("add_goal", {"description": f"Bake bread number {n}"}),
                ("add_session_memory", {"memory_type": "fact", "content": f"Likes rye {n}"}),
                ("create_project", {"project_key": f"oven_{n}", "summary": f"Mend oven {n}"}),
            ),
            f"Done {n}.",
            "Hello.",
            f"Nothing to do {n}.",
        ]
    model = scripted(*steps)
    firsts: list[RecordedCall] = []
    async with opened(data, model, clock, settings=VIENNA) as agent:
        await agent.resources.semantic.add(agent.scope, [draft("1", "The rye comes from Ada.")])
        for n in range(4):
            for given in (
                said(f"I like rye number {n}; set up a project", "local", id=f"a{n}"),
                said("Hello", f"Guest {n}", id=f"b{n}", channel=f"shop {n}"),
                {"request": "tick"},
            ):
                clock.advance(hours=9)
                before = len(model.calls)
                await agent.ainvoke(given)
                firsts.append(model.calls[before])
    return firsts


async def test_the_beginning_of_a_prompt_stays_byte_identical_from_tick_to_tick(
    tmp_path: Path, clock: Clock
) -> None:
    firsts = await life(tmp_path, clock)
    assert len(firsts) == 12
    assert len({system(one) for one in firsts}) == 1
    assert len({tuple(one.tools) for one in firsts}) == 1
    assert DATED.search(system(firsts[0])) is None
    guests = firsts[1::3]
    for audience in (guests, [one for one in firsts if one not in guests]):
        for before, after in pairwise(audience):
            history = plain(before.messages)[:-1]
            assert plain(after.messages)[: len(history)] == history
    assert len({front(one) for one in firsts}) == 12
    # What earlier ticks were shown is not kept.
    last = firsts[-1]
    people = [one for one in last.messages if isinstance(one, HumanMessage)]
    assert [front_of(one) > 0 for one in people] == [False] * 11 + [True]
    assert last.text.count("Now: ") == last.text.count("<projects>") == 1
    assert "Bake bread number 3" in front(last)


async def test_looked_up_memories_are_shown_only_in_their_tick(opening: Opening) -> None:
    model = scripted(call("recall_memories", query="rye"), "From Ada.", "As I said.", "Yes.")
    async with opening(model) as agent:
        fact = draft("1", "The rye comes from Ada, who lives beyond the river with seven cats.")
        await agent.resources.semantic.add(agent.scope, [fact])
        for text in ("Where is the rye from?", "Thanks", "Thanks again"):
            await agent.ainvoke(said(text, "local"))
        kept = (await agent.aget_state()).values["messages"]
    _, second, third, fourth = model.calls
    found = [
        [str(one.text) for one in made.messages if isinstance(one, ToolMessage)]
        for made in (second, third, fourth)
    ]
    assert "seven cats" in found[0][0]
    assert found[1] == found[2]
    assert "call the tool again" in found[1][0]
    assert "seven cats" in next(str(one.text) for one in kept if isinstance(one, ToolMessage))


async def test_within_a_tick_everything_before_stays_the_same(opening: Opening) -> None:
    model = scripted(call("add_goal", description="Bake bread"), call("noop"), "Done.")
    async with opening(model) as agent:
        await agent.ainvoke(said("Please bake", "local"))
    for before, after in pairwise(model.calls):
        assert plain(after.messages)[: len(before.messages)] == plain(before.messages)
        assert after.tools == before.tools


async def test_the_clock_stands_in_the_newest_message_in_the_zone_that_is_set(
    opening: Opening, clock: Clock
) -> None:
    model = scripted(call("add_goal", description="Bake"), "Hello.", "Hello again.", "Late.")
    async with opening(model, settings=VIENNA) as agent:
        await agent.ainvoke(said("Hi", "local"))
        clock.advance(hours=15)
        await agent.ainvoke(said("Hi", "Bea", channel="shop"))
        await agent.ainvoke({"request": "tick"})
    first, _, second, alone = model.calls
    assert front(first).startswith("Now: Monday 2026-03-02 10:00 (Europe/Vienna)\n\n")
    assert front(second).startswith("Now: Tuesday 2026-03-03 01:00 (Europe/Vienna)\n\n")
    assert front(alone).startswith("Now: Tuesday 2026-03-03 01:00 (Europe/Vienna)\n\n")
    assert (
        '<event from="Bea" owner="no" channel="shop" audience="public" at="Tue 2026-03-03 01:00">'
        in str(newest(second).text)
    )
    assert 'at="Mon 2026-03-02 10:00"' in str(alone.messages[1].text)
    assert event_text(newest(alone)).startswith("[autonomous tick] Tue 2026-03-03 01:00\n\n")


async def test_a_deadline_within_three_days_stands_out(opening: Opening) -> None:
    model = scripted(call("add_goal", description="Send the offer by 4 March"), "Yes.", "Well.")
    async with opening(model) as agent:
        fact = draft("1", "The offer is read on 2026-03-05 by Goran.")
        await agent.resources.semantic.add(agent.scope, [fact])
        await agent.ainvoke(said("Please send the offer by 4 March", "local"))
        await agent.ainvoke(said("What of the offer?", "local"))
    assert "Send the offer by 4 March (in 2 days) (active, 0%)" in front(model.calls[-1])
    assert "The offer is read on 2026-03-05 (in 3 days) by Goran." in front(model.calls[-1])


@pytest.mark.parametrize(
    ("sender", "channel", "audience"),
    [
        ("local", None, "private"),
        ("Bea", None, "public"),
        ("Bea", "garden", "public"),
        ("local", "shop", "public"),
        ("Bea", "family", "private"),
    ],
)
async def test_a_channel_is_private_or_public_as_set_and_else_by_the_sender(
    opening: Opening, sender: str, channel: str | None, audience: str
) -> None:
    model = scripted("Hello.")
    settings = Settings(channel_privacy={"shop": "public", "family": "private"})
    async with opening(model, settings=settings) as agent:
        await agent.ainvoke(said("Hi", sender, channel=channel))
    assert f'audience="{audience}"' in str(newest(model.calls[0]).text)


async def test_session_memory_from_private_talk_is_shown_in_private_alone(opening: Opening) -> None:
    secret = {"memory_type": "fact", "content": "Jonas and Lena have parted."}
    model = scripted(call("add_session_memory", **secret), "Noted.", *["Hello."] * 3)
    async with opening(model) as agent:
        await agent.ainvoke(said("Jonas and Lena have parted.", "local"))
        before = len(model.calls)
        for sender, channel in (("Bea", None), ("local", "shop"), ("local", None)):
            await agent.ainvoke(said("Who is at home?", sender, channel=channel))
    memory = [data_in(front(one), "session_memory") or "" for one in model.calls[before:]]
    assert [secret["content"] in one for one in memory] == [False, True, True]


async def test_a_users_text_that_stays_is_in_the_system_message_and_one_that_changes_is_late(
    tmp_path: Path, clock: Clock
) -> None:
    model = scripted("Hello.")
    extra = [
        component(1, "manner", "{agent} never shouts."),
        component(2, "date", "It is {now_date}."),
        component(3, "count", lambda state: f"Tick {state['tick']}."),
    ]
    opening = open_agent(tmp_path, model=model, embedder="offline", clock=clock, components=extra)
    async with opening as agent:
        await agent.ainvoke(said("Hi", "local"))
    (made,) = model.calls
    late = ("It is 2026-03-02.", "Tick 1.")
    assert "circadian never shouts." in system(made)
    assert all(text in front(made) and text not in system(made) for text in late)


async def test_a_rarer_tool_is_asked_for_by_its_own_name_and_nobody_is_passed_over(
    opening: Opening, clock: Clock
) -> None:
    change = {"new_prompt": "Be brief.", "reasoning": "The owner wants it"}
    model = scripted(call("use_tool", name="update_system_prompt", arguments=change), "Brief.")
    async with opening(model) as agent:
        await agent.ainvoke(said("Be brief from now on.", "local"))
        state = (await agent.aget_state()).values
        (question,) = [one["question"] for one in state["parked"]]
        assert (question["tool"], question["args"]) == ("update_system_prompt", change)
        assert state["assistant_prompt"]["version"] == 0
        clock.advance(minutes=5)
        await agent.approve(question["id"])
        state = (await agent.aget_state()).values
        assert state["assistant_prompt"]["text"] == "Be brief."
        logged = await audit.read(agent.store, agent.scope)
    assert [one["target"] for one in logged if one["what"] == "tool_call"] == [
        "update_system_prompt"
    ]
    assert front(model.calls[-1]).startswith("Now: Monday 2026-03-02 09:05")
    answered = [one.name for one in state["messages"] if isinstance(one, ToolMessage)]
    assert answered == ["update_system_prompt"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"name": "list_projects"}, '"total": 0'),
        ({"name": "decompose_goal", "goal_id": "goal_9_9"}, "goal_9_9"),
        ({"name": "review_journal", "arguments": '{"limit": 0}'}, "Limit 0 is out of range"),
        ({"name": "decompose_goal"}, "goal_id"),
        ({"name": "fly"}, "there is no tool 'fly'"),
        ({"name": "use_tool"}, "in the description of use_tool"),
        ({}, "name"),
    ],
)
async def test_use_tool_answers_as_the_tool_that_it_names(
    opening: Opening, arguments: dict[str, Any], told: str
) -> None:
    model = scripted(call("use_tool", **arguments), "Well.")
    async with opening(model) as agent:
        await agent.ainvoke(said("Go on", "local"))
    shown = [str(one.text) for one in model.calls[-1].messages if isinstance(one, ToolMessage)]
    assert len(shown) == 1
    assert told in shown[0]


def test_the_schemas_of_a_tick_stay_small_and_reach_every_tool() -> None:
    context = CONTEXTS["tick_event"]
    offered = tools_for(context, select_execution_pattern(Settings(), context), ())
    shown = shown_tools(offered)
    assert approximate_tokens([], tools=shown) <= 2_000
    listed = shown[-1].description
    names = {one.name for one in shown} | set(re.findall(r"^- (\w+)\(", listed, re.MULTILINE))
    assert names == {one.name for one in offered}


def test_a_users_tools_are_shown_until_there_are_too_many() -> None:
    @tool
    def lamp(room: str, brightness: int = 5) -> str:
        """Switch on a lamp. It takes a second."""
        return room

    own = [lamp.model_copy(update={"name": f"lamp_{n}"}) for n in range(60)]
    context = CONTEXTS["tick_event"]
    shown = shown_tools(tools_for(context, select_execution_pattern(Settings(), context), own))
    names = [one.name for one in shown]
    each = approximate_tokens([], tools=[lamp])
    fitting = EXTRA_TOKENS // each
    assert abs(sum(name.startswith("lamp_") for name in names) - fitting) <= 2
    assert "- lamp_59(room, brightness?): Switch on a lamp." in shown[-1].description
