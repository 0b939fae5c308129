from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from memory.compaction.compaction import (
    MASK,
    checked_summary,
    covered_events,
    cut,
    history_limit,
    marker,
    replaced,
    slightly_too_long,
    visible_events,
)
from memory.errors import ContextOverflow, ModelError
from memory.messages.convert import EVENT_KEY, MARK
from memory.settings import Settings
from memory.text.tokens import approximate_tokens
from nodes.compaction import instruction
from tests.support.agents import EXTRACTING, opened, result_of, said
from tests.support.clock import Clock
from tests.support.scripted import calls, scripted


def human(number: int, text: str = "hello") -> HumanMessage:
    mark = {EVENT_KEY: {"event": f"e{number}", "tick": number}}
    return HumanMessage(text, id=f"h{number}", additional_kwargs=mark)


def call(number: int) -> list[AnyMessage]:
    calls = [{"name": "noop", "args": {}, "id": f"c{number}", "type": "tool_call"}]
    return [
        AIMessage("", id=f"a{number}", tool_calls=calls),
        ToolMessage("x" * 400, id=f"t{number}", tool_call_id=f"c{number}"),
    ]


def forced(
    messages: list[AnyMessage], window: int, *, fits: int, calibration: float
) -> tuple[list[AnyMessage], list[AnyMessage]]:
    """(messages that go, messages that stay)."""
    parts = cut(messages, window, fits=fits, calibration=calibration)
    return parts.old, replaced(parts, SystemMessage(""), fits=fits, calibration=calibration)[1:]


def test_the_pages_example_fifty_messages_leave_twenty() -> None:
    messages: list[AnyMessage] = [human(n) for n in range(50)]
    parts = cut(messages, 20, fits=9_999, calibration=1.0)
    assert (parts.old, parts.kept) == (messages[:30], messages[30:])
    within = cut(messages[:20], 20, fits=9_999, calibration=1.0)
    assert (within.old, within.kept) == ([], messages[:20])


def test_forced_compaction_masks_tool_outputs_before_shrinking_the_window() -> None:
    messages = [human(0), *call(1), *call(2), human(3)]
    fits = approximate_tokens(messages) - 50
    old, kept = forced(messages, 20, fits=fits, calibration=1.0)
    assert old == []
    assert [m.content for m in kept if isinstance(m, ToolMessage)] == [MASK, "x" * 400]


def test_the_summary_message_lists_what_it_covers(clock: Clock) -> None:
    old: list[AnyMessage] = [human(1), *call(2), human(3)]
    mark = marker("Ada grows beans.", compacted=old, now=clock())
    assert isinstance(mark, SystemMessage)
    assert mark.content == "[CONTEXT SUMMARY]\nAda grows beans."
    assert mark.additional_kwargs["metadata"]["type"] == "compaction"
    assert mark.additional_kwargs["metadata"]["compacted_count"] == 4
    assert covered_events([mark, human(7)]) == ["e1", "e3", "e7"]
    assert visible_events([mark, human(7)]) == ["e7"]


def test_after_an_overflow_half_of_the_history_must_go_whatever_the_limit() -> None:
    messages: list[AnyMessage] = [human(n, "word " * 100) for n in range(4)]
    sized = {"limit": 100_000, "share": 0.8, "calibration": 1.0}
    assert history_limit(messages, overflowed=False, **sized) == 79_999  # type: ignore[arg-type]
    assert history_limit(messages, overflowed=True, **sized) == (  # type: ignore[arg-type]
        approximate_tokens(messages) // 2
    )


def overflowing(messages: list[BaseMessage], tools: list[str]) -> Any:
    """A model that calls 22 tools, then overflows until the history is compacted."""
    if tools == EXTRACTING:
        return "Nothing more."
    if not tools:
        return "They greeted."
    answered = [one for one in messages if isinstance(one, ToolMessage)]
    if answered and not any(MASK in str(one.content) for one in answered):
        raise ContextOverflow("too long")
    if "How are you?" not in str(messages[-1].text) and not answered:
        return "Hello."
    return "I am well." if answered else calls(*[("get_system_status", {})] * 22)


@pytest.mark.parametrize("window", [0, 1, 20])
async def test_an_overflow_keeps_the_current_question(
    tmp_path: Path, clock: Clock, window: int
) -> None:
    settings = Settings(compact_preserve_window=window)
    model = scripted(otherwise=overflowing)
    async with opened(tmp_path / "data", model, clock, settings=settings) as agent:
        for number in range(3):
            await agent.ainvoke(said(f"Hi {number}, " + "word " * 30, id=f"e{number}"))
        out = await agent.ainvoke(said("How are you?", id="asked"))
    assert out["report"]["ticks"][0]["reply"] == "I am well."
    kept = out["messages"]
    assert kept[0].text.startswith(MARK)
    at = [one.id for one in kept].index("asked")
    types = [one.type for one in kept[at:]]
    assert types == ["human", "ai", *["tool"] * 22, "ai"]
    assert all(one.type in ("human", "ai") for one in kept[1:at])


async def test_the_first_tick_knows_when_its_session_began(tmp_path: Path, clock: Clock) -> None:
    model = scripted(calls(("get_system_status", {})), "Now.")
    began = clock().isoformat()
    async with opened(tmp_path / "data", model, clock) as agent:
        await agent.ainvoke(said("Since when?"))
        clock.advance(hours=1)
        model.steps.append("Still.")
        await agent.ainvoke(said("And now?"))
        metrics = (await agent.aget_state()).values["metrics"]
    shown = result_of(model.calls[1].messages[-1])
    assert shown["session_metrics"]["session_start"] == began
    assert metrics["session_start"] == began


def wordy(messages: list[BaseMessage], tools: list[str]) -> Any:
    return "I see." if tools else "word " * 5_000


FULL = Settings(
    max_context_tokens=1_000, compact_preserve_window=2, pre_compact_extraction_enabled=False
)


async def talked(agent: Any, count: int) -> dict[str, Any]:
    for number in range(count):
        out = await agent.ainvoke(said(f"Message {number}: " + "word " * 100, id=f"m{number}"))
    result: dict[str, Any] = out
    return result


async def test_a_refused_summary_is_counted_in_the_night(tmp_path: Path, clock: Clock) -> None:
    model = scripted(otherwise=wordy)
    settings = FULL.model_copy(update={"memory_enabled": False, "compact_sleep_threshold": 0.5})
    async with opened(tmp_path / "data", model, clock, settings=settings) as agent:
        await talked(agent, 5)
        out = await agent.ainvoke({"request": "sleep"})
    (step,) = [one for one in out["report"]["night"]["steps"] if one["step"] == "compact"]
    assert step["llm_calls"] == 1
    assert "longer than" in str(out["report"]["night"]["errors"])
    assert len(out["messages"]) == 3


def shortened_when_told(words: int) -> Any:
    """A summary a little too long, and `words` words when a shorter one is asked for."""

    def model(messages: list[BaseMessage], tools: list[str]) -> Any:
        if tools:
            return "I see."
        if isinstance(messages[-2], AIMessage):
            return "Ada wrote " + "word " * words
        return "Ada wrote " + "long " * 120

    return model


@pytest.mark.parametrize(("words", "by"), [(20, "summary"), (110, "extract")])
async def test_a_summary_slightly_too_long_is_asked_for_once_more(
    tmp_path: Path, clock: Clock, words: int, by: str
) -> None:
    model = scripted(otherwise=shortened_when_told(words))
    async with opened(tmp_path / "data", model, clock, settings=FULL) as agent:
        out = await talked(agent, 7)
    (tick,) = out["report"]["ticks"]
    asked = [one.messages for one in model.calls if not one.tools and len(one.messages) > 2]
    assert len(asked) == 1
    assert str(asked[0][-1].text).startswith("This is too long. Write it again in at most ")
    assert tick["compaction"]["by"] == by
    assert tick["llm_calls"] == 3


def test_an_extraction_is_told_the_time() -> None:
    told = instruction("2026-11-17T08:00:00+00:00", ZoneInfo("Europe/Vienna"))
    assert told.startswith("[pre-compaction] Now: Tuesday 2026-11-17 09:00 (Europe/Vienna). Record")


@pytest.mark.parametrize(
    "ended",
    [{"finish_reason": "length"}, {"stop_reason": "max_tokens"}, {"done_reason": "length"}],
    ids=str,
)
def test_a_summary_that_was_cut_off_is_refused_and_not_asked_for_shorter(
    ended: dict[str, Any],
) -> None:
    old, short, long = [HumanMessage("word " * 400)], "They talked.", "word " * 150
    assert checked_summary(AIMessage(short), old, 100, 1.0) == short
    with pytest.raises(ModelError, match="the summary is cut off"):
        checked_summary(AIMessage(short, response_metadata=ended), old, 100, 1.0)
    assert slightly_too_long(AIMessage(long), old, 100, 1.0)
    assert not slightly_too_long(AIMessage(long, response_metadata=ended), old, 100, 1.0)
