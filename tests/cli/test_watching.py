"""What `circadian run` shows a person, and the lines that a program reads."""

import json
from functools import partial
from pathlib import Path

import pytest

from graph.api import AsyncAgent
from graph.cli.commands.run import Lines, Watch
from graph.console import Screen, times_in
from graph.following import follow
from graph.use_cases.nights import labels_for
from memory.errors import ModelError
from tests.support.agents import night_model, opened, said
from tests.support.clock import Clock
from tests.support.scripted import calls, scripted

Capture = pytest.CaptureFixture[str]
SLEEP = calls(("go_to_sleep", {"reasoning": "All is done\x1b[2J"}), text="Good \x07night.")
OVERHEARD = {"id": "h1", "text": "The gate closes", "sender": "Ben", "addressed": False}


def watching(agent: AsyncAgent) -> Watch:
    names = partial(labels_for, agent.context)
    return Watch(Screen(json=False), agent.settings, agent.resources.clock, names)


async def test_watch_shows_messages_tools_replies_and_why_it_sleeps(
    tmp_path: Path, clock: Clock, capsys: Capture
) -> None:
    async with opened(tmp_path, scripted(SLEEP, otherwise=night_model), clock) as agent:
        with times_in("Asia/Tokyo"), watching(agent) as watch:
            await agent.post(OVERHEARD)
            await follow(agent.context, said("Good night,\nall", channel="#home"), watch)
            watch.rests("Asleep. A message or `wake` wakes the agent.", "sleep")
    out = capsys.readouterr().out
    assert [line.partition(" call ·")[0] for line in out.splitlines() if line.strip()][:7] == [
        "Monday 2 Mar 2026 (JST) " + "─" * 76,
        "18:00 Ada        Good night, all (#home)",
        "                 overheard 1 message",
        "                   ✓ go_to_sleep",
        "      Circadian  Good night.",
        "                 tick 1 · 1",
        "18:00            falls asleep of its own accord · All is done[2J",
    ]
    assert "Learned" in out
    assert "\x1b" not in out


async def test_watch_shows_a_night_with_texts_in_place_of_ids(
    tmp_path: Path, clock: Clock, capsys: Capture
) -> None:
    model = scripted("Hello.", otherwise=night_model)
    async with opened(tmp_path, model, clock) as agent:
        await agent.ainvoke(said("I grow beans on plot 7", "Ada", id="e1"))
        capsys.readouterr()
        with watching(agent) as watch:
            await follow(agent.context, {"request": "sleep"}, watch)
    scored = capsys.readouterr().out.partition("Scored 1 journal entry")[2].splitlines()[1]
    assert "I grow beans on plot 7" in scored
    assert "event_" not in scored


async def test_watch_shows_a_repeated_error_once(
    tmp_path: Path, clock: Clock, capsys: Capture
) -> None:
    model = scripted(*[ModelError("no answer")] * 2, "Here I am.")
    async with opened(tmp_path, model, clock) as agent:
        with watching(agent) as watch:
            await agent.post({"id": "e1", "text": "Hi", "sender": "Ada"})
            for _ in range(3):
                await follow(agent.context, {}, watch)
            for _ in range(3):
                watch.failed("the disk is full")
    lines = capsys.readouterr().out.splitlines()
    assert sum("no answer" in line for line in lines) == 2, "each attempt has its number"
    assert sum("the disk is full" in line for line in lines) == 1


async def test_lines_are_one_json_object_each(
    tmp_path: Path, clock: Clock, capsys: Capture
) -> None:
    model = scripted(SLEEP, otherwise=night_model)
    async with opened(tmp_path, model, clock) as agent:
        with Lines(Screen(json=True), clock) as lines:
            lines.started("default", "scripted", "Looks every 5 s", "Works for 9 tokens")
            await agent.post(OVERHEARD)
            await follow(agent.context, said("Good night", id="e1"), lines)
            for _ in range(3):
                lines.rests("Asleep.", "sleep")
            lines.ended(at_once=False)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    steps = [one for one in told if one["what"] == "step"]
    assert [one["what"] for one in told if one not in steps] == [
        *("started", "overheard", "event", "tick", "fell_asleep", "night", "resting", "ended")
    ]
    by_kind = {one["what"]: one for one in told}
    assert all(one["at"] == clock.now.isoformat() for one in told)
    assert by_kind["tick"]["event_id"] == "e1"
    assert (by_kind["fell_asleep"]["why"], by_kind["overheard"]["event_id"]) == (
        *("go_to_sleep", "h1"),
    )
    assert by_kind["night"]["complete"] is True
    assert "begin_night" in [one["step"] for one in steps]
