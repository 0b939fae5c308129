import json
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from benchmarks import beside, compaction, growth, load, memory, night, run, walk
from benchmarks.agents import SYSTEMS, WITH_MEM0, opening
from benchmarks.models import Sent
from benchmarks.prompts import added, repeated, tokens, wire
from benchmarks.tables import CIRCADIAN


@pytest.mark.slow
def test_all_are_measured_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[list[int], Path]] = []
    monkeypatch.setattr(memory, "run", lambda marks, path: compared.append((marks, path)))
    slept: list[tuple[Path | None, list[int], Path]] = []
    monkeypatch.setattr(
        night, "run", lambda data, _, marks, path: slept.append((data, marks, path))
    )
    borne: list[tuple[object, Path]] = []

    def lost(given: load.Load, path: Path) -> int:
        borne.append((given, path))
        return 1

    monkeypatch.setattr(load, "run", lost)
    monkeypatch.setattr(growth, "run", lambda marks, path: borne.append((marks, path)))
    monkeypatch.setattr(walk, "run", lambda path: borne.append((None, path)))
    data = tmp_path / "none.json"
    small = ["--folder", str(tmp_path), "--beside", "1", "--agents", "0", "--memory", "2"]
    others = ["--night", "3", "--load", "4", "--pages", "0", "--locomo", str(data)]
    assert run.main([*small, *others]) == 2
    assert len(json.loads((tmp_path / "beside.json").read_text())["rows"]) == len(SYSTEMS)
    assert compared == [([2], tmp_path / "memory.json")]
    assert slept == [(data, [3], tmp_path / "night.json")]
    assert borne == [
        (load.Load(users=4, ticks=3), tmp_path / "load.json"),
        ((100, 200), tmp_path / "growth.json"),
        (None, tmp_path / "walk.json"),
    ]
    assert len(json.loads((tmp_path / "compaction.json").read_text())["measured"]) == 2
    said = capsys.readouterr()
    assert "The context before and after a compaction" in said.out
    assert said.err.splitlines()[-1] == f"{data} is absent: LoCoMo was not measured"


def test_every_benchmark_can_be_left_out(tmp_path: Path) -> None:
    without = ["--beside", "--memory", "--night", "--load", "0", "--pages", "0", "--locomo"]
    assert run.main(["--folder", str(tmp_path), *without]) == 0
    assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
def test_the_agents_stand_beside_each_other_in_figures_and_ratios(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results" / "beside.json"
    given = ["--marks", "2", "3", "--agents", "2", "--json", str(out)]
    assert beside.main(given) == 0
    figures = json.loads(out.read_text())
    order = [*SYSTEMS]
    assert figures["systems"] == SYSTEMS
    rows = figures["rows"]
    assert [(row["mark"], row["system"]) for row in rows] == [
        (mark, name) for mark in (2, 3) for name in order
    ]
    compared = {"own_ms", "checkpoint_bytes", "disk_bytes", "prompt_messages", "prompt_tokens"}
    for row in rows:
        ours = rows[0] if row["mark"] == 2 else rows[len(order)]
        assert row["ratio"] == {key: pytest.approx(row[key] / ours[key]) for key in compared}
        assert row["disk_bytes"] >= row["checkpoint_bytes"] > 0
        assert row["own_ms"] > 0
        for key in ("same_prefix", "same_prefix_in_tick", "same_prefix_between_ticks"):
            assert 0 < row[key] < 1
        if row["system"] != CIRCADIAN:
            assert row["prompt_messages"] == 4 * row["mark"]
            remembers = row["system"] == WITH_MEM0
            assert (row["disk_bytes"] > row["checkpoint_bytes"]) == remembers
    same_job = {(row["mark"], row["system"]): row["processor_ms"] for row in rows}
    for mark in (2, 3):
        ratio = same_job[mark, CIRCADIAN] / same_job[mark, WITH_MEM0]
        assert figures[f"ratio_tick_{mark}"] == pytest.approx(ratio)
    assert 0 < figures["prefix_between_ticks"] < 1
    assert figures["hundred_agents_s"] >= 1.0
    assert figures["hundred_agents_mb"] > max(figures["open_agent_mb"], figures["closed_agent_mb"])
    printed = capsys.readouterr().out
    assert all(name in printed for name in order)
    assert "1.00x" in printed


async def test_each_agent_hears_the_words_calls_the_tool_and_answers(tmp_path: Path) -> None:
    for name in SYSTEMS:
        async with opening(name, tmp_path / name) as system:
            await system.tick("Where is the saffron?", system.durability)
            first, second = system.model.taken()
            assert "Where is the saffron?" in wire(first)
            assert {"look_up", "convert"} <= {tool["function"]["name"] for tool in first.tools}
            assert "first printed in 1911" not in wire(first)
            assert "first printed in 1911" in wire(second)
            assert wire(second).startswith(wire(first)), system.name
            assert system.model.taken() == []


def test_a_prompt_is_read_in_the_order_system_tools_messages() -> None:
    messages = [SystemMessage("Be exact."), HumanMessage("Grüße")]
    sent = Sent(messages, [{"name": "look_up"}])
    lines = wire(sent).splitlines()
    assert [json.loads(line).get("role", "tool") for line in lines] == ["system", "tool", "user"]
    assert wire(sent).isascii()
    assert tokens(sent) > tokens(Sent(messages, [])) > 0


def test_only_the_common_beginning_of_prompts_counts_as_repeated() -> None:
    assert repeated("abc", "abcd") == (3, 4)
    assert repeated("abcd", "abXd") == (2, 4)
    assert repeated("", "abcd") == (0, 0)
    assert added([repeated("abcd", "abXd"), repeated("", "ab")]).share == 0.5
    assert added([]).share == 0


def test_the_way_through_is_counted_in_all_threads_and_without_what_the_first_use_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert walk.main(["--json", str(tmp_path / "walk.json")]) == 0
    shown = {row["operation"]: row for row in json.loads((tmp_path / "walk.json").read_text())}
    assert set(shown) == {"tick", "recall", "night", "forget"}
    assert shown["recall"]["files"] < shown["tick"]["files"] < shown["night"]["files"]
    assert all(row["functions"] >= row["files"] > 5 for row in shown.values())
    assert all(shown[name]["store"] for name in shown)
    assert shown["recall"]["checkpointer"] == 0
    assert all(shown[name]["writes"] and shown[name]["checkpointer"] for name in ("tick", "night"))
    assert shown["tick"]["goals"] == walk.GOALS["tick"]
    assert "The way through" in capsys.readouterr().out


def test_the_pages_example_comes_out_as_the_page_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results" / "compaction.json"
    assert compaction.main(["--json", str(out)]) == 0
    figures = json.loads(out.read_text())
    assert figures["page"]["tokens_after"] == 15_000
    assert [one["by"] for one in figures["measured"]] == ["summary", "extract"]
    for row in figures["measured"]:
        assert (row["messages_before"], row["messages_after"]) == (50, 21)
        assert row["tokens_before"] == pytest.approx(70_000, rel=0.05)
        assert row["tokens_after"] == pytest.approx(15_000, rel=0.1)
    assert "the page" in capsys.readouterr().out
