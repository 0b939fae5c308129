"""The benchmarks of load and growth: that they measure the real thing, and see what goes wrong."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from benchmarks import growth, load, pages
from benchmarks.load import KINDS, Load, answered
from benchmarks.models import NamingModel
from graph.agent import open_agents


@pytest.mark.slow
def test_a_worker_is_killed_half_way_and_nothing_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    kill = load.Worker.kill

    def told(self: load.Worker) -> None:
        killed.append(len(self.lines()) - 1)
        kill(self)

    monkeypatch.setattr(load.Worker, "kill", told)
    out = tmp_path / "results" / "load.json"
    assert load.run(Load(users=4, ticks=3, delay=0.3), out, KINDS[2:]) == 0
    [figures] = json.loads(out.read_text())
    assert (figures["lost"], figures["doubled"], figures["crossed"]) == (0, 0, 0)
    assert figures["per_second"] > 0
    assert figures["p95"] >= figures["p50"]
    assert figures["cpu_ms"] > 0
    [done] = killed
    assert 3 <= done < 6, "of the six events of its two users"
    assert "2, 1 killed" in capsys.readouterr().out


def test_lost_doubled_and_crossed_events_are_counted(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIRCADIAN_DATABASE_URL", postgres_url)
    tiny = Load(users=2, ticks=1)

    async def live() -> list[tuple[int, int, int]]:
        await load._post(tiny)
        looks = [await load._look(tiny)]
        model = NamingModel(names=load.NAMES)
        async with open_agents(model=model, embedder="offline") as agents:
            first = agents.agent(load.AGENT, user="user0000")
            await first.ainvoke()
            looks.append(await load._look(tiny))
            again = "The number of user0000 is 0, is it not?"
            await first.ainvoke({"events": [{"id": "again", "text": again}]})
            other = agents.agent(load.AGENT, user="user0001")
            await other.ainvoke({"events": [{"id": "x", "text": again, "sender": "user0000"}]})
            looks.append(await load._look(tiny))
        return looks

    before, between, after = asyncio.run(live())
    assert before == (2, 0, 0)
    assert between == (1, 0, 0)
    assert after[:2] == (0, 1)
    assert after[2] >= 2, "an entry and a prompt"


def test_an_answer_counts_for_the_event_before_it_and_only_with_its_users_name() -> None:
    messages: list[AnyMessage] = [
        HumanMessage("How many?", id="user0001-0"),
        AIMessage("user0001"),
        HumanMessage("How many?", id="user0001-1"),
        AIMessage("user0001"),
        AIMessage("user0001"),
        HumanMessage("How many?", id="user0001-2"),
        AIMessage("user0001 user0007"),
    ]
    assert answered(messages) == {"user0001-0": 1, "user0001-1": 2, "user0001 user0007": 1}


def test_a_failed_worker_is_an_error_and_not_a_figure(tmp_path: Path) -> None:
    worker = load.Worker("postgresql:///", 0, 1, Load(users=1, ticks=1), tmp_path / "out")
    with pytest.raises(RuntimeError, match="ended with status"):
        worker.wait()


@pytest.mark.slow
def test_growth_is_what_each_part_gained_between_the_marks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "growth.json"
    assert growth.main(["--ticks", "2", "6", "--json", str(out)]) == 0
    rows: list[dict[str, Any]] = json.loads(out.read_text())
    assert [(row["home"], row["part"]) for row in rows] == [
        (home, part) for home in (growth.FOLDER, growth.DATABASE) for part in growth.PARTS
    ]
    for row in rows:
        assert row["rows"] > 0
        assert row["bytes"] > 0
        # Of each tick at least what was said is kept.
        assert row["rows"] > row["more_rows"] >= 4
    assert "PostgreSQL" in capsys.readouterr().out


@pytest.mark.slow
def test_every_page_answers_and_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages.run(20, 1, tmp_path / "pages.json")
    found = json.loads((tmp_path / "pages.json").read_text())
    assert found["memories"] >= 20
    names = [one["page"] for one in found["pages"]]
    assert {"today", "memory, a search", "a tick", "undo a night", "log"} <= {*names}
    assert all(one["p95"] >= one["p50"] > 0 for one in found["pages"])
    assert "Own time of a page" in capsys.readouterr().out
