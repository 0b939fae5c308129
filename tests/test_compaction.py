import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from memory import compaction
from memory.chat import MARK
from memory.errors import ModelError
from memory.tokens import approximate_tokens
from tests.clock import Clock


def human(number: int, text: str = "hello") -> HumanMessage:
    mark = {MARK: {"event": f"e{number}", "tick": number}}
    return HumanMessage(text, id=f"h{number}", additional_kwargs=mark)


def call(number: int) -> list[AnyMessage]:
    calls = [{"name": "noop", "args": {}, "id": f"c{number}", "type": "tool_call"}]
    return [
        AIMessage("", id=f"a{number}", tool_calls=calls),
        ToolMessage("x" * 400, id=f"t{number}", tool_call_id=f"c{number}"),
    ]


def test_the_pages_example_fifty_messages_leave_twenty() -> None:
    messages: list[AnyMessage] = [human(n) for n in range(50)]
    old, kept = compaction.split(messages, 20)
    assert (len(old), len(kept)) == (30, 20)
    assert old + kept == messages


def test_a_history_within_the_window_is_left_alone() -> None:
    messages: list[AnyMessage] = [human(n) for n in range(20)]
    assert compaction.split(messages, 20) == ([], messages)


@given(st.lists(st.sampled_from(["human", "call"]), max_size=30), st.integers(0, 12))
def test_a_call_is_never_parted_from_its_answer(kinds: list[str], window: int) -> None:
    messages: list[AnyMessage] = []
    for number, kind in enumerate(kinds):
        messages += call(number) if kind == "call" else [human(number)]
    old, kept = compaction.split(messages, window)
    assert old + kept == messages
    assert len(kept) >= min(window, len(messages))
    assert not (kept and isinstance(kept[0], ToolMessage))


def test_forced_the_window_gives_way_where_it_alone_is_over_the_threshold() -> None:
    messages: list[AnyMessage] = [human(n, "word " * 200) for n in range(20)]
    fits = approximate_tokens(messages) // 4
    old, kept = compaction.split_forced(messages, 20, fits=fits, calibration=1.0)
    assert approximate_tokens(kept) <= fits
    assert kept[-1] == messages[-1]
    assert old + kept == messages


def test_forced_tool_outputs_are_masked_before_the_window_shrinks() -> None:
    messages = [human(0), *call(1), *call(2), human(3)]
    fits = approximate_tokens(messages) - 50
    old, kept = compaction.split_forced(messages, 20, fits=fits, calibration=1.0)
    assert old == []
    assert [m.content for m in kept if isinstance(m, ToolMessage)] == [compaction.MASK, "x" * 400]


def test_forced_never_cuts_past_the_newest_human_message() -> None:
    messages: list[AnyMessage] = [human(n, "word " * 400) for n in range(5)]
    _, kept = compaction.split_forced(messages, 5, fits=10, calibration=1.0)
    assert kept == messages[-1:]


def test_the_marker_says_what_it_stands_for(clock: Clock) -> None:
    old: list[AnyMessage] = [human(1), *call(2), human(3)]
    mark = compaction.marker("Ada grows beans.", compacted=old, now=clock())
    assert isinstance(mark, SystemMessage)
    assert mark.content == "[CONTEXT SUMMARY]\nAda grows beans."
    assert mark.additional_kwargs["metadata"]["type"] == "compaction"
    assert mark.additional_kwargs["metadata"]["compacted_count"] == 4
    assert compaction.covered_events([mark, human(7)]) == ["e1", "e3", "e7"]


@pytest.mark.parametrize("summary", ["", "  \n", "much longer than what it summarises"])
def test_an_empty_or_longer_summary_is_refused(summary: str) -> None:
    with pytest.raises(ModelError):
        compaction.checked_summary(summary, "short source")
