"""Token counts: what is counted, and how the count is corrected."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately as as_langchain
from langchain_core.tools import tool

from memory.text.tokens import (
    advisory,
    approximate_tokens,
    calibrated,
    cut_to,
    recalibrate,
    utilisation,
)

PICTURE = "A" * 400_000


def _calling(content: str | list[str | dict[str, object]], note: str) -> AIMessage:
    arguments = {"name": "store", "args": {"note": note}, "id": "c1"}
    return AIMessage(content, tool_calls=[{**arguments, "type": "tool_call"}])


def test_a_text_counts_a_token_for_every_four_characters() -> None:
    assert approximate_tokens("") == 0
    assert approximate_tokens("abcd") == 1
    assert approximate_tokens("abcde") == 2


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("漢字" * 50, 100), ("かな한국" * 25, 100), ("😀" * 10, 10), ("при" * 20, 30), ("naïve", 2)],
)
def test_text_beyond_ascii_counts_more(text: str, tokens: int) -> None:
    assert approximate_tokens(text) == tokens


@pytest.mark.parametrize(
    "of",
    [
        lambda text: HumanMessage(text),
        lambda text: HumanMessage([{"type": "text", "text": text}]),
        lambda text: HumanMessage([text]),
        lambda text: HumanMessage("", name=text),
        lambda text: ToolMessage(text, tool_call_id="c"),
        lambda text: _calling("", text),
        lambda text: _calling([{"type": "text", "text": "I will."}], text),
        lambda text: HumanMessage([{"type": "poem", "lines": text}]),
    ],
)
def test_wherever_it_stands_in_a_message(of: Callable[[str], BaseMessage]) -> None:
    plain = of("x" * 400)
    assert approximate_tokens([of("漢" * 400)]) == approximate_tokens([plain]) + 300
    assert isinstance(plain.content, list) or approximate_tokens([plain]) == as_langchain([plain])


@given(st.text("ab 漢é", max_size=300), st.integers(0, 120), st.sampled_from([0.5, 1.0, 3.0]))
def test_a_text_is_cut_to_as_much_as_fits(text: str, tokens: int, calibration: float) -> None:
    shown = cut_to(text, tokens, calibration)
    assert calibrated(approximate_tokens(shown), calibration) <= tokens
    assert shown == text or shown == "" or text.startswith(shown.removesuffix(" ..."))


def test_a_cut_text_is_marked_and_fills_its_limit() -> None:
    shown = cut_to("x" * 1_000, 50, 1.0)
    assert shown == "x" * 196 + " ..."


@pytest.mark.parametrize("content", ["", [{"type": "text", "text": "I will store it."}]])
def test_tool_call_arguments_are_counted(content: str | list[str | dict[str, object]]) -> None:
    short, long = _calling(content, "x"), _calling(content, "x" * 4_000)
    assert approximate_tokens([long]) - approximate_tokens([short]) == pytest.approx(1_000, abs=2)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}},
        {"type": "image", "base64": PICTURE, "mime_type": "image/png"},
        {"type": "input_audio", "input_audio": {"data": PICTURE, "format": "wav"}},
        {"type": "file", "base64": PICTURE, "mime_type": "application/pdf"},
    ],
)
def test_the_bytes_of_a_medium_are_not_counted(block: dict[str, object]) -> None:
    message = HumanMessage([{"type": "text", "text": "What is this?"}, block])
    assert 50 < approximate_tokens([message]) < 200


def test_tool_schemas_are_counted_when_they_are_given() -> None:
    @tool
    def remember(what: str) -> str:
        """Remember something that the person has said, for a long time and in detail."""
        return what

    messages = [HumanMessage("hi")]
    assert approximate_tokens(messages, tools=[remember]) > approximate_tokens(messages) + 20


def test_calibration_follows_what_the_provider_reports() -> None:
    calibration = 1.0
    for _ in range(30):
        calibration = recalibrate(calibration, approximate=1_000, reported=1_300)
    assert calibration == pytest.approx(1.3, abs=0.01)
    assert calibrated(1_000, calibration) == pytest.approx(1_300, abs=10)


def test_one_odd_report_does_not_overturn_the_calibration() -> None:
    assert 1.0 < recalibrate(1.0, approximate=1_000, reported=2_000) < 1.5


@pytest.mark.parametrize(("approximate", "reported"), [(0, 100), (100, 0), (0, 0)])
def test_a_count_of_zero_does_not_change_the_calibration(approximate: int, reported: int) -> None:
    assert recalibrate(1.2, approximate, reported) == 1.2


def test_the_calibration_stays_within_its_bounds() -> None:
    high = low = 1.0
    for _ in range(50):
        high, low = recalibrate(high, 1, 1_000_000), recalibrate(low, 1_000_000, 1)
    assert high == pytest.approx(4.0)
    assert low == pytest.approx(0.25)
    assert recalibrate(100.0, 1_000, 1_000) == 4.0


def test_utilisation_is_the_pages_example() -> None:
    assert utilisation(45_000, 128_000) == 35.2


@pytest.mark.parametrize(
    ("below", "level", "threshold", "advice"),
    [
        ((0, 59.9), "normal", 60, "Sufficient context available"),
        ((60, 79.9), "warning", 80, "wrapping up"),
        ((80, 120), "critical", 80, "respond immediately"),
    ],
)
def test_the_advice_changes_at_60_and_80(
    below: tuple[float, float], level: str, threshold: int, advice: str
) -> None:
    for found in map(advisory, below):
        assert (found["level"], found["threshold"]) == (level, threshold)
        assert advice in found["message"]
