import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import BaseTool

from benchmarks import beside, locomo, run
from benchmarks.agents import CIRCADIAN, DEFAULT, SUMMARISING, SYSTEMS, convert, look_up, opening
from benchmarks.models import OneToolModel, Sent
from benchmarks.prompts import added, repeated, tokens, wire


def sample() -> dict[str, Any]:
    """A conversation in LoCoMo's format, made up."""
    return {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ada", "dia_id": "D1:1", "text": "I keep three bees in Lisbon."},
                {
                    "speaker": "Ben",
                    "dia_id": "D1:2",
                    "text": "My brother Tomas repairs violins in Prague.",
                    "blip_caption": "a violin on a bench",
                },
            ],
            "session_2_date_time": "10:05 am on 9 May, 2023",
            "session_2": [
                {"speaker": "Ada", "dia_id": "D2:1", "text": "I sold the bees to Marta in June."}
            ],
        },
        "qa": [
            {"question": "Who repairs violins?", "evidence": ["D1:2"], "category": 4},
            {"question": "What about the bees?", "evidence": ["D1:1; D2:1"], "category": 1},
            {"question": "Nobody knows", "evidence": [], "category": 5},
        ],
    }


def test_recall_is_the_fraction_of_gold_among_ten_distinct_sources() -> None:
    sources = ["a", "a", *[f"x{n}" for n in range(8)], "b", "c"]
    assert locomo.evidence_recall(sources, ["a", "b"]) == 1.0
    assert locomo.evidence_recall(sources, ["a", "c"]) == 0.5


def test_times_and_captions_are_read() -> None:
    start = locomo.session_time("1:56 pm on 8 May, 2023")
    assert start.isoformat() == "2023-05-08T13:56:00+00:00"
    turns = sample()["conversation"]["session_1"]
    assert locomo.events_of(turns, start)[1]["text"].endswith("[image: a violin on a bench]")


def test_a_conversation_is_lived_through_and_questioned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = tmp_path / "data.json", tmp_path / "out.json"
    data.write_text(json.dumps([sample()]))
    assert locomo.main(["--data", str(data), "--json", str(out)]) == 0
    figures = json.loads(out.read_text())["summary"]
    assert figures["turns"] == 3
    assert figures["questions"] == {"1": 1, "4": 1}
    assert figures["recall@10"] == {"1": 1.0, "4": 1.0}
    assert figures["calls"]["score_importance"] == 2
    assert "single-hop" in capsys.readouterr().out


def test_absent_data_is_said_plainly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert locomo.main(["--data", str(tmp_path / "none.json")]) == 2
    assert "absent" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content", [b"no JSON", b"\xff\xfe", b"{}", b"[1]", b'[{"sample_id": "a"}]', b"[" * 100_000]
)
def test_data_in_another_format_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    data = tmp_path / "data.json"
    data.write_bytes(content)
    assert locomo.main(["--data", str(data)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "data.json is not in LoCoMo's format: " in line


def test_the_budgets_are_measured_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "budgets.json"
    small = ["--ticks", "45", "--facts", "20", "--agents", "2", "--json", str(out)]
    assert run.main([*small, "--beside", "1"]) == 0
    names = [figure["name"] for figure in json.loads(out.read_text())]
    assert "add a fact at 20" in names
    assert len(names) == 6
    assert len(json.loads((tmp_path / "beside.json").read_text())["rows"]) == len(DEFAULT)
    assert "add a fact at 20" in capsys.readouterr().out


def test_the_budgets_can_be_measured_alone(tmp_path: Path) -> None:
    small = ["--ticks", "10", "--facts", "20", "--agents", "1", "--beside"]
    assert run.main([*small, "--json", str(tmp_path / "budgets.json")]) == 0
    assert not (tmp_path / "beside.json").exists()


def test_the_agents_stand_beside_each_other_in_figures_and_ratios(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results" / "beside.json"
    assert beside.main(["--marks", "2", "3", "--summarising", "--json", str(out)]) == 0
    figures = json.loads(out.read_text())
    order = [*DEFAULT, SUMMARISING]
    assert figures["systems"] == {name: SYSTEMS[name] for name in order}
    rows = figures["rows"]
    assert [(row["mark"], row["system"]) for row in rows] == [
        (mark, name) for mark in (2, 3) for name in order
    ]
    compared = {"own_ms", "checkpoint_bytes", "disk_bytes", "prompt_messages", "prompt_tokens"}
    for row in rows:
        ours = rows[0] if row["mark"] == 2 else rows[4]
        assert row["ratio"] == {key: pytest.approx(row[key] / ours[key]) for key in compared}
        assert row["disk_bytes"] >= row["checkpoint_bytes"] > 0
        assert row["own_ms"] > 0
        for key in ("same_prefix", "same_prefix_in_tick", "same_prefix_between_ticks"):
            assert 0 < row[key] < 1
        if row["system"] != CIRCADIAN:
            assert row["prompt_messages"] == 4 * row["mark"]
            assert row["disk_bytes"] == row["checkpoint_bytes"]
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


async def test_the_model_calls_its_tool_once_for_each_thing_said() -> None:
    tools: list[BaseTool] = [look_up, convert]
    model = OneToolModel(tool="look_up")
    bound = model.bind_tools(tools)
    said = [HumanMessage("Saffron?")]
    first, second = await bound.ainvoke(said), await bound.ainvoke(said)
    assert [call["name"] for call in first.tool_calls] == ["look_up"]
    assert first.tool_calls[0]["id"] != second.tool_calls[0]["id"]
    assert (await bound.ainvoke([*said, AIMessage("So.")])).tool_calls == []
    assert (await model.ainvoke(said)).tool_calls == []
    assert len(model.taken()) == 4


def test_a_prompt_is_read_in_the_order_system_tools_messages() -> None:
    messages = [SystemMessage("Be exact."), HumanMessage("Grüße")]
    sent = Sent(messages, [{"name": "look_up"}])
    lines = wire(sent).splitlines()
    assert [json.loads(line).get("role", "tool") for line in lines] == ["system", "tool", "user"]
    assert wire(sent).isascii()
    assert tokens(sent) > tokens(Sent(messages, [])) > 0


def test_what_repeats_is_the_common_beginning_alone() -> None:
    assert repeated("abc", "abcd") == (3, 4)
    assert repeated("abcd", "abXd") == (2, 4)
    assert repeated("", "abcd") == (0, 0)
    assert added([repeated("abcd", "abXd"), repeated("", "ab")]).share == 0.5
    assert added([]).share == 0
