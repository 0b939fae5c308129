"""Nights on the command line: listed, shown, tried out, applied, let go, taken back."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from graph.cli.access import Session, go_to_sleep
from graph.cli.program import COMMON, _options
from graph.console import Screen
from tests.graph.test_held_nights import GATED, a_day_with_a_rule, ruler
from tests.support.agents import opened
from tests.support.clock import Clock
from tests.support.commandline import Run
from tests.support.dreamers import SATURDAY, SETTINGS, SUNDAY, day, dreamer

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data, clock = tmp_path_factory.mktemp("lived") / "data", Clock()

    async def live() -> None:
        async with opened(data, dreamer(), clock, settings=SETTINGS) as agent:
            await day(agent, clock, SATURDAY)
            await agent.sleep()
            clock.advance(days=1)
            await day(agent, clock, SUNDAY, first=20)

    asyncio.run(live())
    return data


@pytest.fixture
def data(lived: Path, tmp_path: Path) -> Path:
    shutil.copytree(lived, tmp_path / "data")
    return tmp_path / "data"


FIRST = "night_20260302_192500"


def test_a_dry_run_is_told_changes_nothing_and_is_applied_by_its_shortened_id(
    run: Run, data: Path
) -> None:
    before = run("recall", "--all", "--json").document
    tried = run("sleep", "--dry-run")
    assert tried.status == 0
    assert run("recall", "--all", "--json").document == before
    name = run("nights", "--json").document[-1]["id"]
    assert f"{name}, a preview\n" in tried.out
    made = run("night", name, "--json").document["operations"]
    learned = sum(one["kind"] == "add_fact" for one in made)
    assert learned > 1
    assert f"Learned {learned} facts" in tried.out
    assert "Scored 6 journal entries\n" in tried.out
    assert "Nothing of it is applied.\n" in tried.out
    assert f"apply it:   circadian sleep --apply {name} --data {data}\n" in tried.out
    assert f"discard it: circadian night {name} --discard --data {data}\n" in tried.out
    done = run("sleep", "--apply", name.removeprefix("night_")[:8])
    assert (done.status, done.err) == (0, "")
    assert f"{name}, complete\n" in done.out
    after = run("recall", "--all", "--json").document
    known = [sum(one["kind"] == "fact" for one in told) for told in (before, after)]
    assert known[1] - known[0] == learned


def test_nights_are_listed_with_what_became_of_them(run: Run) -> None:
    run("sleep", "--dry-run")
    name = run("nights", "--json").document[-1]["id"]
    gone = run("night", name, "--discard")
    assert gone.out == f"{name} is discarded: it is never applied.\n"
    run("sleep")
    undone = run("undo", "last")
    last = run("nights", "--json").document[-1]["id"]
    assert undone.out.startswith(
        f"{last} is undone: memory is as it was before it, and its journal"
    )
    assert "\nUndone: the night had learned" in undone.out
    again = run("undo", last).out
    assert again == f"{last} was undone before: nothing changed.\n"
    told = run("nights").out.splitlines()
    assert [line.split()[0] for line in told[2:]] == [FIRST, name, last]
    assert told[2].split()[1:5] == ["2", "Mar", "19:25", "applied"]
    assert "discarded" in told[3]
    assert "undone" in told[4]
    assert f"{last}, undone\n" in run("night", "last").out


def test_a_night_with_all_shows_lists_at_full_length(run: Run) -> None:
    short = run("night", FIRST).out
    whole = run("night", FIRST, "--all").out
    assert len(whole.splitlines()) >= len(short.splitlines())
    assert "The glass arrives on Friday. (Ben, 2 Mar 2026, said-0)" in whole
    assert "--all" not in whole


REFUSED: list[tuple[list[str], int, str]] = [
    (["night", "nonsense"], 2, "there is no night 'nonsense'; `circadian nights` lists them"),
    (["undo", "night_1"], 2, "there is no night 'night_1'; `circadian nights` lists them"),
    (["sleep", "--apply", FIRST], 2, f"{FIRST} is applied: there is nothing to apply"),
    (["night", FIRST, "--discard"], 2, f"{FIRST} is applied: it cannot be discarded"),
]


@pytest.mark.parametrize(("args", "status", "line"), REFUSED)
def test_an_impossible_night_command_is_one_line(
    run: Run, args: list[str], status: int, line: str
) -> None:
    done = run(*args)
    assert (done.status, done.out) == (status, "")
    assert done.error.startswith(f"circadian: {line}")


def test_without_any_night_there_is_none_to_show(run: Run, tmp_path: Path) -> None:
    async def make() -> None:
        async with opened(tmp_path / "new", dreamer(), Clock()) as agent:
            await agent.ainvoke({"request": "wake"})

    asyncio.run(make())
    done = run("nights", data=tmp_path / "new")
    assert done.out.startswith("There has been no night yet")
    assert run("nights", "--json", data=tmp_path / "new").document == []
    assert "there has been no night yet" in run("night", "last", data=tmp_path / "new").error


def test_log_tells_dry_runs_and_decisions_apart(run: Run) -> None:
    names = []
    for deed in (["night", "last", "--discard"], ["sleep", "--apply", "last"]):
        run("sleep", "--dry-run")
        names.append(run("nights", "--json").document[-1]["id"])
        assert run(*deed).status == 0
    run("night", names[0], "--discard")
    lines = run("log").out.splitlines()
    told = [line.split(" ", 2)[2] for line in lines if any(name in line for name in names)]
    said = [line.partition(" · ")[0] for line in told]
    assert said == [
        f"agent tried out {names[0]}",
        f"local discarded {names[0]}",
        f"agent tried out {names[1]}",
        f"local decided to apply {names[1]}",
        f"agent slept {names[1]}",
    ]
    assert all("none applied" in line for line in told if "tried out" in line)


async def held(data: Path, *, as_json: bool) -> int:
    """A day on which a rule ends six of twenty facts, and the command of the night after."""
    given = {**dict.fromkeys(COMMON), "data": data, "json": as_json}
    clock, options = Clock(), _options(given, reads_file=True)
    async with opened(data, ruler(6), clock, settings=GATED) as agent:
        await a_day_with_a_rule(agent, clock, 19)
        return await go_to_sleep(Session(options, Screen(json=as_json), agent))


def test_a_night_that_is_held_back_is_shown_with_both_ways_to_go_on(
    run: Run, capsys: Capture, tmp_path: Path
) -> None:
    status = asyncio.run(held(tmp_path / "held", as_json=False))
    said = capsys.readouterr()
    name = run("nights", "--json", data=tmp_path / "held").document[-1]["id"]
    (line,) = said.err.splitlines()
    assert status == 1
    assert line.startswith(f"circadian: {name} is held back: 6 of 20 facts would no longer hold; `")
    assert f"circadian sleep --apply {name}" in line
    assert f"circadian night {name} --discard" in line
    assert f"{name}, held back\n" in said.out
    told = run("night", "last", data=tmp_path / "held").out
    assert f"{name}, held back\n" in told
    assert "Held back for you to decide: 6 of 20 facts would no longer hold\n" in told
    assert f"apply it:   circadian sleep --apply {name}" in told
    assert f"discard it: circadian night {name} --discard" in told
    done = run("sleep", "--apply", "last", data=tmp_path / "held")
    assert (done.status, done.err) == (0, "")
    assert "Changed 6 facts" in done.out


def test_as_json_a_night_that_is_held_back_is_the_document_and_one_line_on_stderr(
    capsys: Capture, tmp_path: Path
) -> None:
    status = asyncio.run(held(tmp_path / "held", as_json=True))
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert (status, document["status"], document["complete"]) == (1, "held", False)
    assert document["gate"]["held"] == "6 of 20 facts would no longer hold"
    assert len(said.err.splitlines()) == 1
