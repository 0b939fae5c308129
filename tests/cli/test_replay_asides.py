"""Replaying what gets no answer: events left alone, questions, looks back, a model that is down."""

from pathlib import Path
from typing import Any

import pytest

from graph.cli.commands.replay import Clock, Player, Step, Tally, play, steps
from memory.models.offline.model import OfflineChatModel
from memory.records.tick import Report, empty_report
from tests.cli.test_replay import event, written
from tests.cli.test_replay import file as file
from tests.support import clock as clocks
from tests.support.agents import opened
from tests.support.commandline import Done, Run
from tests.support.launching import LAUNCH, Launches, asking
from tests.support.openai_server import Serve, text

Patch = pytest.MonkeyPatch


def replayed(run: Run, file: Path, lines: list[dict[str, Any]], *more: str) -> Done:
    return run("replay", written(file, *lines), *more)


def test_ignored_events_are_counted_and_end_nothing(run: Run, file: Path) -> None:
    lines = [event(1), event(2, sender="circadian"), event(3)]
    done = replayed(run, file, lines)
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[-1] == (
        "3 events: 2 ticks, 0 overheard, 1 left alone, 0 lines skipped, 0 nights"
    )
    again = replayed(run, file, lines, "--json").document
    assert (again["skipped"], again["ignored"], again["failures"]) == (3, 0, [])


def test_the_conversation_says_why_one_is_left_alone(run: Run, file: Path) -> None:
    own = event(1, sender="circadian")
    out = replayed(run, file, [own], "--conversation").out
    assert "(left alone: circadian is the assistant itself (setting names).)" in out


def test_a_question_does_not_end_a_replay_and_is_counted_while_it_waits(
    run: Run, serve: Serve, file: Path, launches: Launches
) -> None:
    lines = [event(1), event(2), event(3)]
    mars = asking(("launch", {"target": "Mars"}))
    serve(LAUNCH, mars, text("Hi."), text("It flies."), text("Flies too."))
    done = replayed(run, file, lines)
    again = replayed(run, file, lines, "--json")
    assert launches.done == []
    questions = run("status", "--json").document["approvals"]
    for one in questions:
        assert run("approve", one["id"]).status == 0
    ended = replayed(run, file, lines, "--json").document
    assert (done.status, done.err) == (0, "")
    assert done.out.splitlines()[-1] == (
        "3 events: 1 tick, 0 overheard, 0 lines skipped, 0 nights; "
        "2 questions wait (circadian status)"
    )
    assert (again.status, again.document["questions"], again.document["failures"]) == (0, 2, [])
    assert again.document["skipped"] == 1
    assert (ended["questions"], ended["skipped"]) == (0, 3)
    assert launches.done == ["the moon", "Mars"]


def test_the_conversation_shows_each_question_once(
    run: Run, serve: Serve, file: Path, launches: Launches
) -> None:
    serve(LAUNCH, text("Hi."), text("Hi."))
    lines = [event(1), event(2), event(3)]
    out = replayed(run, file, lines, "--conversation").out
    assert out.count("(a question waits: Run launch(target='the moon') (approve or refuse") == 1
    assert out.count("Circadian  Hi.") == 2


def test_sent_messages_are_shown_without_an_empty_reply(
    run: Run, serve: Serve, file: Path, launches: Launches
) -> None:
    sent = asking(("send_message", {"to": "Ben", "text": "Dinner is\x07 at seven."}))
    serve(sent)
    out = replayed(run, file, [event(1, sender="local")], "--conversation").out
    assert "→ Ben: Dinner is at seven.\n" in out
    assert "Circadian" not in out


def test_a_look_at_its_own_work_is_no_reply(run: Run, file: Path) -> None:
    """After 25 ticks, the default, it looks back once."""
    lines = [event(number) for number in range(26)]
    told = replayed(run, file, lines, "--conversation").out
    assert told.count("(looks back at its own work") == 1
    assert told.count("Circadian  ") == 26
    assert "\n26 events: 27 ticks, " in told


class Down(Player):
    """A watcher whose runs fail as they do while the model is left alone."""

    def __init__(self, attempts: int) -> None:
        self.attempts = attempts
        self.runs = 0

    async def run(self, step: Step, given: dict[str, Any]) -> Report:
        self.runs += 1
        event_id = step.events[0]["id"]
        failure = {"event_id": event_id, "error": "left alone", "attempts": self.attempts}
        failures: Any = [{**failure, "set_aside": False}]
        return {**empty_report(), "failures": failures}


@pytest.mark.parametrize(("attempts", "runs"), [(0, 1), (1, 3)])
async def test_a_replay_ends_while_a_service_is_left_alone(
    file: Path, data: Path, attempts: int, runs: int
) -> None:
    written(file, *(event(number) for number in range(3)))
    watcher, clock = Down(attempts), Clock()
    async with opened(data, OfflineChatModel(), clocks.Clock()) as agent:
        tally: Tally = await play(agent, list(steps(file)), clock, watcher)
    assert watcher.runs == runs
    assert [one["error"] for one in tally.failed.values()] == ["left alone"] * runs
