"""Compaction through the graph with any model behaviour: awake, asleep, previewed, held back."""

from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from graph.api import AsyncAgent
from graph.use_cases import nights
from memory.compaction.compaction import HEAD, MASK, Cut
from memory.errors import ContextOverflow, ModelError
from memory.messages import ORIGINS, mark_of
from memory.messages.convert import MARK
from memory.records import Usage
from memory.settings import Settings
from memory.state import fresh_state
from nodes.compaction import Replacement, history_after
from tests.support.agents import EXTRACTING, Opening, entries, opened, said
from tests.support.clock import Clock
from tests.support.scripted import ScriptedChatModel, call, calls, scripted

LIMIT = 8_000
SMALL = Settings(
    max_context_tokens=LIMIT,
    compact_preserve_window=4,
    memory_enabled=False,
    reflection_interval=0,
    max_failed_ticks=9,
)
NOTED = {"content": "Ada is allergic to nuts."}


def model_of(
    summary: Callable[[], Any] = lambda: "They spoke.",
    extraction: Callable[[int], Any] = lambda done: call("noop"),
) -> ScriptedChatModel:
    """A model with these answers to the summary and to the nth extraction call (from 0)."""

    def answer(messages: list[BaseMessage], tools: list[str]) -> Any:
        if tools == EXTRACTING:
            after = next(n for n, m in enumerate(messages) if "[pre-compaction]" in str(m.text))
            return extraction(sum(isinstance(one, AIMessage) for one in messages[after:]))
        return "I see." if tools else summary()

    return scripted(otherwise=answer)


def fails(error: Exception) -> Callable[..., Any]:
    def raising(*_: Any) -> Any:
        raise error

    return raising


WAYS: dict[str, tuple[Callable[[], Any], str]] = {
    "fails": (fails(ModelError("the service is down")), "the service is down"),
    "overflows": (fails(ContextOverflow("too long")), "too long"),
    "only calls tools": (lambda: calls(("noop", {})), "empty"),
    "goes on and on": (lambda: "word " * 20_000, "longer than"),
    "is cut off": (
        lambda: AIMessage("They", response_metadata={"finish_reason": "length"}),
        "cut off",
    ),
}


async def talk(agent: AsyncAgent, first: int, last: int) -> dict[str, Any]:
    """Send numbered messages of about 620 tokens; returns the last output."""
    for number in range(first, last):
        text = f"Number {number} is on 2026-03-{number + 1:02}. " + "word " * 490
        out = await agent.ainvoke(said(text, id=f"m{number}"), raise_on_failure=False)
    return out


async def history(agent: AsyncAgent) -> list[BaseMessage]:
    return list((await agent.aget_state()).values["messages"])


@pytest.mark.parametrize("way", WAYS)
async def test_an_extract_takes_the_place_of_a_summary_by_a_model_that(
    opening: Opening, way: str
) -> None:
    answer, why = WAYS[way]
    model = model_of(answer)
    async with opening(model, settings=SMALL) as agent:
        reports, told, number = list[Any](), list[Any](), 0
        while len(told) < 2:
            reports.append((await talk(agent, number, number := number + 1))["report"])
            told += [one for one in reports[-1]["ticks"] if "compaction" in one]
        messages = await history(agent)
        journal = await entries(agent)
    assert not any(report["failures"] for report in reports)
    for tick in told:
        assert tick["compaction"]["by"] == "extract"
        assert why in tick["compaction"]["error"]
        assert tick["compaction"]["tokens_after"] < 0.8 * LIMIT
    first = str(messages[0].text)
    assert first.startswith(f"{MARK}\n{HEAD}")
    assert first.count(HEAD) >= 2, "what the first extract said stands before the newer ones"
    assert "Number 0 is on 2026-03-01." in first
    archives = [one for one in journal if "compaction" in one["tags"]]
    assert [one["id"] for one in archives] == [one["compaction"]["archive"] for one in told]
    covered = messages[0].additional_kwargs["metadata"]["sources"]
    assert covered == [f"m{n}" for n in range(len(covered))]


async def test_a_failed_call_counts_and_an_answer_resets_the_count(opening: Opening) -> None:
    model = model_of(fails(ModelError("down")), fails(ModelError("down")))
    counts: list[int] = []
    async with opening(model, settings=SMALL) as agent:
        for number in range(13):
            out = await talk(agent, number, number + 1)
            if "compaction" in out["report"]["ticks"][0] or counts:
                counts.append((await agent.aget_state()).values["consecutive_errors"])
    assert counts[:2] == [2, 0]


async def test_at_night_a_failed_summary_is_reported_and_the_history_is_cut(
    opening: Opening,
) -> None:
    model = model_of(fails(ModelError("down")))
    async with opening(model, settings=SMALL) as agent:
        await talk(agent, 0, 9)
        night = (await agent.ainvoke({"request": "sleep"}))["report"]["night"]
        messages = await history(agent)
    assert night["errors"] == ["compact: down; an extract stands in its place"]
    assert night["compaction"]["by"] == "extract"
    assert str(messages[0].text).startswith(f"{MARK}\n{HEAD}")
    assert len(messages) == 5
    (archive,) = night["operations"]
    assert archive["after"]["content"].split("\n", 1)[1] == messages[0].text.split("\n", 1)[1]


ENDINGS: dict[str, tuple[Callable[[int], Any], str, int, int]] = {
    "by noop": (
        lambda done: call("noop") if done else call("add_journal_entry", **NOTED),
        "noop",
        1,
        2,
    ),
    "without a call": (lambda done: "That is all.", "no_tool_call", 0, 1),
    "by another tool": (
        lambda done: calls(("add_journal_entry", NOTED), ("store_memory", {"facts": []})),
        "other_tool",
        1,
        1,
    ),
    "at the most": (
        lambda done: call("add_journal_entry", content=f"Fact {done} of Ada."),
        "max_iterations",
        -1,
        -1,
    ),
    "by an error": (
        lambda done: fails(ModelError("down"))() if done else call("add_journal_entry", **NOTED),
        "error",
        1,
        1,
    ),
}


@pytest.mark.parametrize("asleep", [True, False], ids=["asleep", "in an emergency"])
@pytest.mark.parametrize("how", ENDINGS)
async def test_an_extraction_ends(opening: Opening, how: str, asleep: bool) -> None:
    answer, ended, facts, answers = ENDINGS[how]
    most = 5 if asleep else 3
    async with opening(model_of(extraction=answer), settings=SMALL) as agent:
        if asleep:
            await talk(agent, 0, 9)
            told = (await agent.ainvoke({"request": "sleep"}))["report"]["night"]
        else:
            told, number = {}, 0
            while "extraction" not in told:
                told = (await talk(agent, number, number := number + 1))["report"]["ticks"][0]
        journal = await entries(agent)
        messages = await history(agent)
    assert told["extraction"] == {
        "success": ended != "error",
        "facts_recorded": most if facts < 0 else facts,
        "iterations": most if answers < 0 else answers,
        "ended": ended,
    }
    assert told["compaction"]["success"] is True
    noted = [one for one in journal if one["source_type"] == "inference"]
    assert len(noted) == told["extraction"]["facts_recorded"]
    assert not any("[pre-compaction]" in str(one.text) for one in messages)


async def test_a_preview_cuts_the_history_only_when_applied(opening: Opening) -> None:
    model = model_of(extraction=ENDINGS["by noop"][0])
    async with opening(model, settings=SMALL) as agent:
        await talk(agent, 0, 9)
        before, journal = await history(agent), await entries(agent)
        tried = await nights.sleep(agent.context, dry_run=True)
        assert await history(agent) == before
        assert await entries(agent) == journal
        assert tried["compaction"]["compacted_count"] == 14
        paid = len(model.calls)
        await nights.apply_night(agent.context, str(tried["id"]))
        messages, after = await history(agent), await entries(agent)
    assert len(model.calls) == paid
    assert messages[0].text == f"{MARK}\nThey spoke."
    assert messages[1:] == before[14:]
    [archive] = [one for one in after if "compaction" in one["tags"]]
    assert archive["id"] == tried["compaction"]["archive"]
    assert archive["importance"] == 7
    assert {one["content"] for one in after} - {one["content"] for one in journal} == {
        NOTED["content"],
        "[CONTEXT SYNTHESIS]\nThey spoke.",
    }


async def test_a_held_night_cuts_nothing(opening: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = {"facts": 20, "leaving": 9, "probes": 0, "found_before": 0, "found_after": 0}
    monkeypatch.setattr(
        import_module("nodes.night.weigh_night"),
        "judged",
        lambda **_: {**verdict, "held": "too much goes"},
    )
    async with opening(model_of(), settings=SMALL) as agent:
        await talk(agent, 0, 9)
        before = await history(agent)
        night = (await agent.ainvoke({"request": "sleep"}))["report"]["night"]
        assert await history(agent) == before
        assert not any("compaction" in one["tags"] for one in await entries(agent))
        await nights.apply_night(agent.context, night["id"])
        assert (await history(agent))[0].text == f"{MARK}\nThey spoke."
        assert any("compaction" in one["tags"] for one in await entries(agent))


async def test_compact_model_and_compact_prompt_are_used(tmp_path: Path, clock: Clock) -> None:
    own = SMALL.model_copy(
        update={"compact_prompt": "Tell it in verse.", "pre_compact_extraction_enabled": False}
    )
    model = model_of()
    async with opened(tmp_path / "a", model, clock, settings=own) as agent:
        await talk(agent, 0, 9)
        await agent.ainvoke({"request": "sleep"})
    assert str(model.calls[-1].messages[0].text) == "Tell it in verse."
    assert not any(one.tools == EXTRACTING for one in model.calls)
    other = own.model_copy(update={"compact_model": "offline", "compact_prompt": None})
    model = model_of(fails(AssertionError("the main model is not asked")))
    async with opened(tmp_path / "b", model, clock, settings=other) as agent:
        await talk(agent, 0, 9)
        night = (await agent.ainvoke({"request": "sleep"}))["report"]["night"]
    assert night["compaction"]["by"] == "summary"


async def test_disabled_compaction_never_starts(opening: Opening) -> None:
    off = SMALL.model_copy(update={"compact_enabled": False})
    async with opening(model_of(), settings=off) as agent:
        out = await talk(agent, 0, 14)
        asleep = await agent.ainvoke({"request": "sleep"})
        messages = await history(agent)
    assert "compaction" not in out["report"]["ticks"][0]
    assert asleep["report"]["night"]["id"] is None
    assert len(messages) == 28


async def test_old_tool_outputs_are_hidden_from_the_summary_model(opening: Opening) -> None:
    model = model_of()
    async with opening(model, settings=SMALL) as agent:
        model.steps.append(call("get_system_status"))
        await talk(agent, 0, 9)
        await agent.ainvoke({"request": "sleep"})
    (shown,) = [one.text for one in model.calls if "Summarise" in one.text]
    assert f"tool (get_system_status): {MASK}" in shown
    assert "token_usage" not in shown
    assert "Number 0 is on" in shown


def test_a_summary_names_all_but_the_owners_whose_words_it_covers() -> None:
    told = '{"memories": [{"speaker": "cleo"}, {"speaker": "Dan"}]}'
    recalled = ToolMessage(told, id="t", name="recall_memories", tool_call_id="c")
    now, free = datetime(2026, 5, 2, tzinfo=UTC), Usage(llm_calls=0, tokens=0)
    made, state = Replacement("They spoke.", now, free, "summary"), fresh_state()
    state["messages"] = []
    [summary] = history_after(Cut([recalled], [], 0), made, state, SMALL, ["cleo"])
    assert mark_of(summary)[ORIGINS] == ["Dan"]
