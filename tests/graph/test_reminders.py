"""Reminders: a message to an owner of what an owner wants, whose goal is done when it is sent."""

from pathlib import Path

import pytest
from langchain_core.messages import AIMessage

from graph.api import AsyncAgent
from memory.settings import Settings
from tests.support.agents import opened, said
from tests.support.clock import Clock
from tests.support.scripted import ScriptedChatModel, call, calls, scripted

SETTINGS = Settings(owners=["Ruth"])
WISH = "Remind me on Thursday at 9 to call the dentist."
GOAL = "Remind Ruth on Thursday 5 March 2026 at 9:00 to call the dentist."
TEXT = "Reminder: please call the dentist now (9:00)."


async def world(
    agent: AsyncAgent, model: ScriptedChatModel, by: str = "Ruth", goal: str = GOAL
) -> None:
    """Olaf writes in the yard, and somebody wishes to be reminded."""
    model.steps += ["Hello.", call("add_goal", description=goal), "Noted."]
    await agent.ainvoke(said("The mill pond is frozen.", "Olaf", channel="yard"))
    await agent.ainvoke(said(WISH, by, channel="private"))


def turn(**message: str) -> AIMessage:
    sent = {"to": "Ruth", "text": TEXT, "channel": "private", **message}
    done = {"goal_id": "goal_2_0", "status": "completed"}
    return calls(("update_goal", done), ("send_message", sent))


async def status_of(agent: AsyncAgent) -> str:
    return str((await agent.aget_state()).values["goals"]["goal_2_0"]["status"])


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "Reminder for today, Thursday 5 March: call the dentist at 9:00.",
        "Hi Ruth, this is your reminder to call the dentist today at 9:00.",
        "Ruth, don't forget to call the dentist today!",
        "Please remember to call the dentist.",
    ],
)
async def test_an_owner_is_reminded_of_what_she_asked_for_without_a_question(
    text: str, tmp_path: Path
) -> None:
    model = scripted()
    async with opened(tmp_path / "data", model, Clock(), settings=SETTINGS) as agent:
        await world(agent, model)
        model.steps.append(turn(text=text))
        out = await agent.ainvoke({"request": "tick"})
        assert out["report"]["questions"] == []
        assert [one["text"] for one in out["report"]["ticks"][0]["sent"]] == [text]
        assert await status_of(agent) == "completed"


@pytest.mark.parametrize(
    ("message", "by"),
    [
        ({"to": "Olaf"}, "Ruth"),
        ({"channel": "yard"}, "Ruth"),
        ({"channel": "shop"}, "Ruth"),
        ({"text": "Call the mill: the pond is frozen."}, "Ruth"),
        ({"text": "Call the dentist at 555 0199."}, "Ruth"),
        ({"text": "Don't forget: the pond is frozen today, call the dentist."}, "Ruth"),
        ({}, "Olaf"),
    ],
)
async def test_any_other_message_waits_for_a_person_and_its_goal_waits_with_it(
    message: dict[str, str], by: str, tmp_path: Path
) -> None:
    model = scripted()
    async with opened(tmp_path / "data", model, Clock(), settings=SETTINGS) as agent:
        await world(agent, model, by)
        model.steps.append(turn(**message))
        out = await agent.ainvoke({"request": "tick"})
        [question] = out["report"]["questions"]
        assert (question["tool"], question["rests_on"]) == ("send_message", ["Olaf"])
        assert await status_of(agent) == "active"
        out = await agent.approve(question["id"])
        [tick] = out["report"]["ticks"]
        assert [one["name"] for one in tick["tools"]] == ["send_message", "update_goal"]
        assert await status_of(agent) == "completed"


async def test_a_goal_stays_open_where_its_message_is_refused(tmp_path: Path) -> None:
    model = scripted()
    async with opened(tmp_path / "data", model, Clock(), settings=SETTINGS) as agent:
        await world(agent, model)
        model.steps += [turn(to="Olaf"), "It was not sent."]
        [question] = (await agent.ainvoke({"request": "tick"}))["report"]["questions"]
        await agent.refuse(question["id"])
        assert await status_of(agent) == "active"


@pytest.mark.parametrize(
    "goal",
    [
        "Tell Ruth that the mill pond is frozen.",
        f"{GOAL[:-1]}, whose number is 555 0199.",
        "Remind Ruth on Friday 6 March 2026 at 9:00 to call the dentist.",
    ],
)
async def test_a_goal_that_may_be_of_others_words_reminds_nobody_unasked(
    goal: str, tmp_path: Path
) -> None:
    model = scripted()
    async with opened(tmp_path / "data", model, Clock(), settings=SETTINGS) as agent:
        await world(agent, model, goal=goal)
        model.steps.append(turn(text=goal))
        [question] = (await agent.ainvoke({"request": "tick"}))["report"]["questions"]
        assert question["rests_on"] == ["Olaf"]


async def test_a_goal_that_is_done_reminds_nobody_unasked(tmp_path: Path) -> None:
    model = scripted()
    async with opened(tmp_path / "data", model, Clock(), settings=SETTINGS) as agent:
        await world(agent, model)
        model.steps += [call("update_goal", goal_id="goal_2_0", status="completed"), "Good."]
        model.steps += [call("add_goal", description="Sort the mail."), "Noted."]
        await agent.ainvoke(said("I have called the dentist.", "Ruth", channel="private"))
        await agent.ainvoke(said("Sort the mail.", "Ruth", channel="private"))
        assert await status_of(agent) == "completed"
        model.steps.append(turn())
        [question] = (await agent.ainvoke({"request": "tick"}))["report"]["questions"]
        assert (question["tool"], question["rests_on"]) == ("send_message", ["Olaf"])
