"""What a person is told of a message: what was sent to others, why there is no answer, the stop."""

import asyncio
from pathlib import Path

import pytest

from graph.cli.run_view import sent_line, what_next
from memory.models.offline.model import OfflineChatModel
from memory.records.tick import FailureReport, SentMessage
from tests.support import launching
from tests.support.agents import opened, said
from tests.support.clock import Clock
from tests.support.commandline import Run
from tests.support.launching import asking
from tests.support.openai_server import Serve, error, text

Patch = pytest.MonkeyPatch
BEN = {"to": "Ben", "text": "Dinner is at seven.", "channel": "kitchen"}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: Patch) -> Path:
    launching.set_up(monkeypatch, tmp_path)
    return tmp_path / "data"


def test_a_message_to_somebody_else_is_a_line(run: Run, serve: Serve) -> None:
    serve(asking(("send_message", BEN)))
    done = run("send", "Tell Ben when dinner is")
    *lines, footer = done.out.splitlines()
    assert (done.status, done.err) == (0, "")
    assert lines == ["  ✓ send_message", "→ Ben (#kitchen): Dinner is at seven."]
    assert footer.startswith("tick 1 · 1 call · ")


def test_words_beside_a_sent_message_are_the_reply(run: Run, serve: Serve) -> None:
    told = asking(("send_message", BEN), said="I told him.")
    serve(told, told)
    done = run("send", "Tell Ben")
    document = run("send", "Tell Ben", "--json").document
    assert done.out.splitlines()[:3] == [
        *("I told him.", "  ✓ send_message", "→ Ben (#kitchen): Dinner is at seven.")
    ]
    assert document["reply"] == "I told him."
    assert [(one["to"], one["channel"]) for one in document["sent"]] == [("Ben", "kitchen")]


@pytest.mark.parametrize(
    ("channel", "line"),
    [
        (None, "→ Ben: Hello\nthere"),
        ("#kitchen", "→ Ben (#kitchen): Hello\nthere"),
        ("a\nb\x1b[2J", "→ Ben (#a b[2J): Hello\nthere"),
    ],
)
def test_a_sent_message_is_cleaned_of_control_characters(channel: str | None, line: str) -> None:
    sent: SentMessage = {
        "id": "sent_1",
        "to": "B\x1ben",
        "text": "Hello\nthere\x07",
        "channel": channel,
        "tick": 1,
        "at": "2026-03-02T09:00:00+00:00",
    }
    assert sent_line(sent).plain == line


def test_tick_shows_sent_messages(run: Run, serve: Serve) -> None:
    goal = asking(("add_goal", {"description": "Tell Ben when dinner is"}))
    serve(goal, text("Noted."), asking(("send_message", BEN)))
    run("send", "Tell Ben about dinner some day")
    done = run("tick")
    assert (done.status, "→ Ben (#kitchen): Dinner is at seven." in done.out) == (0, True)


def test_a_message_that_is_left_alone_says_why(run: Run) -> None:
    args = ("send", "Hello", "--from", "Circadian", "--model", "offline")
    done = run(*args, "--json")
    assert (done.status, done.out) == (1, "")
    assert done.err.splitlines()[-1] == (
        "circadian: the message is left alone: Circadian is the assistant itself (setting names)."
    )
    status = run("status", "--json").document
    assert (status["inbox"]["waiting"], status["memory"]["journal"]) == (0, 0)


def test_what_next_tells_what_becomes_of_a_failed_tick() -> None:
    def failure(event_id: str | None, attempts: int, *, aside: bool = False) -> FailureReport:
        return {"event_id": event_id, "error": "x", "attempts": attempts, "set_aside": aside}

    assert what_next(failure("e1", 1), 3) == "kept in the inbox, attempt 1 of 3"
    assert what_next(failure("e1", 0), 3) == "kept in the inbox"
    assert what_next(failure("e1", 3, aside=True), 3) == "set aside after 3 attempts"
    assert what_next(failure(None, 0), 3) == "that tick is dropped"


async def _failed_before(data: Path, clock: Clock, errors: int) -> None:
    async with opened(data, OfflineChatModel(), clock) as agent:
        await agent.ainvoke(said("Hello"))
        await agent.aupdate_state(None, {"consecutive_errors": errors})


def test_a_failure_that_sets_the_stop_says_so_and_how_to_clear_it(
    run: Run, serve: Serve, data: Path, clock: Clock
) -> None:
    asyncio.run(_failed_before(data, clock, 4))
    serve(error(400, "this request is wrong"))
    done = run("send", "Hello")
    assert (done.status, done.out) == (1, "")
    assert done.error.endswith(
        "this request is wrong (kept in the inbox, attempt 1 of 3); emergency stop (5 failures in "
        "a row): `circadian clear-stop` clears the stop"
    )
    assert done.err.count("this request is wrong") == 1
    seen = run("status").out
    assert "EMERGENCY STOP (circadian clear-stop)\nStopped  5 failures in a row, the last:" in seen


def test_the_reply_is_shown_even_if_its_tools_set_the_stop(run: Run, serve: Serve) -> None:
    serve(asking(*[("explode", {})] * 5), text("It broke five times."))
    done = run("send", "Explode")
    assert (done.status, done.out.splitlines()[:2]) == (1, ["  ✗ explode (failed)"] * 2)
    assert "It broke five times.\n" in done.out
    assert done.err.splitlines()[-1] == (
        "circadian: emergency stop (5 failures in a row): `circadian clear-stop` clears the stop"
    )


def test_a_tick_of_its_own_that_sets_the_stop_says_so(run: Run, serve: Serve) -> None:
    goal = asking(("add_goal", {"description": "Explode"}))
    broken = asking(*[("explode", {})] * 5)
    serve(goal, text("Noted."), broken, text("It broke five times."))
    run("send", "Explode some day")
    done = run("tick")
    assert done.status == 1
    assert done.err.splitlines()[-1].endswith("`circadian clear-stop` clears the stop")
    assert run("stop").status == 0


def test_a_stop_set_by_a_person_names_no_failure(run: Run) -> None:
    args = ("--model", "offline")
    run("stop", *args)
    done = run("send", "Hello", *args)
    assert (done.status, done.out) == (1, "")
    assert done.err.splitlines()[-1].endswith(
        "The message is kept in the inbox; `circadian clear-stop` clears the stop"
    )
    assert "Stopped  a person asked for it" in run("status", *args).out
    run("clear-stop", *args)
    assert "Stopped" not in run("status", *args).out


def test_a_reply_that_another_run_gave_is_shown_whole(
    run: Run, serve: Serve, monkeypatch: Patch
) -> None:
    """While this command waits for the agent, the run that holds it takes the message too."""
    from graph.use_cases import runs
    from graph.use_cases.context import AgentContext

    accept = runs.accept

    async def beaten_to_it(context: AgentContext, given: runs.Input) -> object:
        accepted = await accept(context, given)
        monkeypatch.setattr(runs, "accept", accept)
        await runs.run(context, {"request": "wake"})
        return accepted

    goal = ("add_goal", {"description": "Mend the fence"})
    serve(asking(goal), text("It is a goal now."))
    monkeypatch.setattr(runs, "accept", beaten_to_it)
    done = run("send", "Mend the fence")
    *lines, footer = done.out.splitlines()
    assert lines == ["  ✓ add_goal", "It is a goal now."]
    assert footer.startswith("tick 1 · 2 calls · ")
