"""The demo: three days, two nights, a restart; what it shows is found in the agent."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from graph.cli.commands import replay as demo
from graph.cli.commands.replay import ROOT, STORY, steps
from graph.use_cases import AgentContext
from tests.support.commandline import circadian
from tests.support.forked import forked_python

Capture = pytest.CaptureFixture[str]


_TOLD = ("step ", "score", "make ")
"""How the rows of a night's table begin in the README's excerpt."""


@pytest.fixture(autouse=True)
def _parts_are_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part of the demo is a process of its own, but imports nothing anew."""
    monkeypatch.setattr(sys, "executable", forked_python())


def test_the_demo_reads_like_a_conversation_and_leaves_a_dangerous_call_to_approve(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = circadian(capfd, "demo", "--data", tmp_path / "data").out
    assert "\x1b" not in out
    in_order = [
        *(
            "Saturday 2 May 2026 (UTC) ─",
            "Amina      Ben, my daughter Lila",
            "Night of Saturday 2 May",
        ),
        *("Sunday 3 May 2026 (UTC) ─", "✓ swap_project", "Night of Sunday 3 May"),
        *("has ended; a new one goes on", "Monday 4 May 2026 (UTC) ─", "Recalled ─"),
        *("Source    event sat-03, told by Amina on 2 May 2026", "Survived the restart ─"),
        *("● rain_barrels (active)", "60 % Rain barrels", f"--data {tmp_path / 'data'}"),
    ]
    places = [out.find(part) for part in in_order]
    assert -1 not in places, in_order[places.index(-1)]
    assert places == sorted(places)
    printed = [line.split()[:-1] for line in out.splitlines()]  # the time is the machine's
    told = [one for one in (ROOT / "README.md").read_text().splitlines() if one[:5] in _TOLD]
    assert [one for one in told if one.split()[:-1] not in printed] == []
    assert len(told) == len(_TOLD)
    files = tmp_path / "data-files"
    assert f"CIRCADIAN_FOLDER={files}" in out
    assert list(files.iterdir()) == []
    monkeypatch.setenv("CIRCADIAN_FOLDER", str(files))
    assert circadian(capfd, "approve", "--data", tmp_path / "data").status == 0
    (written,) = files.iterdir()
    assert "down pipe" in written.read_text()


def test_the_story_is_played_with_several_people_two_nights_and_a_restart() -> None:
    parts = [list(steps(part)) for part in sorted(STORY.glob("*.jsonl"))]
    found = [step for part in parts for step in part]
    events = [event for step in found for event in step.events]
    assert len(parts) == 2
    assert [step.request for step in found].count("sleep") == 2
    assert len({event["at"][:10] for event in events}) == 3
    assert len({event["sender"] for event in events}) >= 4
    assert {event["addressed"] for event in events} == {True, False}


def test_nothing_in_the_code_knows_the_story() -> None:
    lines = [line for part in STORY.glob("*.jsonl") for line in part.read_text().splitlines()]
    names = {json.loads(line).get("sender") for line in lines} - {None}
    source = "".join(file.read_text() for file in (ROOT / "graph").glob("*.py"))
    assert [name for name in (*names, "strawberr", "barrel", "garden") if name in source] == []


def test_a_folder_in_use_is_left_alone(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    done = circadian(capsys, "demo", "--data", tmp_path)
    assert (done.status, done.out) == (2, "")
    assert "not an empty folder" in done.error
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_without_the_story_there_is_one_line(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "STORY", tmp_path / "nowhere")
    done = circadian(capsys, "demo", "--data", tmp_path / "data")
    assert (done.status, done.out) == (2, "")
    assert "the story is missing" in done.error


def test_a_failed_part_ends_the_demo(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = tmp_path / "story"
    story.mkdir()
    (story / "1.jsonl").write_text("{broken\n")
    monkeypatch.setattr(demo, "STORY", story)
    done = circadian(capsys, "demo", "--data", tmp_path / "data")
    assert done.status == 1
    assert "1.jsonl was not played to its end" in done.err


def test_the_demo_ends_in_the_inspector_on_its_memory(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, list[str], int]] = []

    async def serve(agent: AgentContext, port: int, started: Callable[[str], None]) -> None:
        facts = await agent.semantic.all(agent.scope)
        seen.append((str(agent.name), [tool.name for tool in agent.resources.tools], len(facts)))
        started("http://127.0.0.1:1/?token=t")

    monkeypatch.setattr("graph.inspector.serve", serve)
    done = circadian(capfd, "demo", "--inspect", "--data", tmp_path / "data")
    assert done.status == 0
    assert "http://127.0.0.1:1/?token=t" in done.out
    [(name, tools, facts)] = seen
    assert (name, facts > 5) == ("default", True)
    assert "write_file" in tools, "what it asks can be approved there"
