"""Reading answers as models give them: thinking, refusals, broken calls, JSON among words."""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.messages.tool import invalid_tool_call

from memory.models.answers import (
    MALFORMED,
    as_read,
    ended_by,
    forms_in,
    printed_call,
    refusal_of,
    sure_words,
    without_thinking,
)
from tests.support.scripted import call

TOOLS = ["add_goal", "noop"]


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("<think>\nWhat now?\n</think>\n\nIt is noon.", "It is noon."),
        ("<think></think>It is noon.", "It is noon."),
        ("<thinking>a</thinking> It is <think>b</think>noon.", "It is noon."),
        ("<THINK>a</THINK>noon", "noon"),
        ("Okay, the user asks.\nSo:\n</think>\n\nIt is noon.", "It is noon."),
        ("So I say noon.</think>\nIt is noon.", "It is noon."),
        ("<think>I never came to an end", ""),
        ("<think>a</think>", ""),
        ("Only thoughts.\n</think>", ""),
        # No thinking: code, mentions, and tags of other kinds.
        ("Write `<think>` and `</think>` around it.", None),
        ("```xml\n<think>\nx\n</think>\n```", None),
        ("A tag <think> that stands open", None),
        ("a < b and c > d", None),
        ("<b>It is noon.</b>", None),
        ("  It is noon.\n", None),
    ],
)
def test_thinking_is_left_out_of_the_text(given: str, read: str | None) -> None:
    assert without_thinking(given) == (given if read is None else read)


def test_blocks_of_reasoning_are_no_text_and_stay_for_the_provider() -> None:
    blocks: list[Any] = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "<think>hm</think>Noon."},
    ]
    read = as_read(AIMessage(blocks))
    assert read.text == "Noon."
    assert read.content[0] == blocks[0]


@pytest.mark.parametrize(
    "whole",
    [
        "<think>a\nb</think>\n\nIt is noon. Really.",
        "It is `noon` now, [a link](x) and 1 < 2.",
        "Noon.\n<think>Was that right?</think>\nYes.",
        "```json\n{}\n```",
        '{"name": "add_goal", "arguments": {}}',
        'I do. <tool_call>{"name": "noop"}</tool_call>',
        "Sure:\n\n{1, 2} is a set.",
    ],
)
def test_words_that_are_sure_only_grow_and_hold_no_thinking_and_no_call(whole: str) -> None:
    shown = ""
    for at in range(len(whole) + 1):
        words = sure_words(whole[:at])
        longer, shorter = sorted((words, shown), key=len, reverse=True)
        assert longer.startswith(shorter)
        shown = longer
    assert without_thinking(whole).startswith(shown.rstrip())
    for hidden in ("think", "a\nb", "Was that", '"name"', "tool_call"):
        assert hidden not in shown


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (AIMessage("", additional_kwargs={"refusal": "I can\nnot."}), "I can not."),
        (AIMessage([{"type": "refusal", "refusal": "I cannot."}]), "I cannot."),
        (AIMessage("", response_metadata={"finish_reason": "content_filter"}), "it gave no reason"),
        (AIMessage("", response_metadata={"stop_reason": "refusal"}), "it gave no reason"),
        (AIMessage("", response_metadata={"finish_reason": "SAFETY"}), "it gave no reason"),
        (AIMessage("", additional_kwargs={"refusal": None}), None),
        (AIMessage(""), None),
        (AIMessage("Noon.", additional_kwargs={"refusal": "no"}), None),
        (call("noop"), None),
    ],
)
def test_a_refusal_is_told_with_its_reason(message: AIMessage, why: str | None) -> None:
    assert refusal_of(message) == why


@pytest.mark.parametrize(
    "told",
    [
        {"finish_reason": "length"},
        {"stop_reason": "max_tokens"},
        {"finish_reason": "MAX_TOKENS"},
        {"done_reason": "length"},
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
    ],
)
def test_a_cut_off_answer_is_recognised_in_every_providers_terms(told: dict[str, Any]) -> None:
    assert ended_by(AIMessage("half", response_metadata=told)) == "length"
    whole = call("add_goal", description="Mend").model_copy(update={"response_metadata": told})
    [cut] = as_read(whole).tool_calls
    assert "cut this call off" in cut["args"][MALFORMED]


def test_a_whole_answer_is_left_as_it_is() -> None:
    message = call("add_goal", description="Mend the fence")
    message.response_metadata = {"finish_reason": "stop"}
    assert as_read(message) == message
    assert ended_by(message) is None


def test_a_call_without_a_name_or_arguments_is_told_all_the_same() -> None:
    bad = invalid_tool_call(name=None, args=None, id=None, error=None)
    [made] = as_read(AIMessage("", invalid_tool_calls=[bad])).tool_calls
    assert (made["name"], list(made["args"])) == ("unnamed", [MALFORMED])


ADD = {"name": "add_goal", "arguments": {"description": "Mend"}}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ADD),
        f"```json\n{json.dumps(ADD, indent=2)}\n```",
        f"I will add that.\n\n```\n{json.dumps(ADD)}\n```\nDone!",
        f"<tool_call>\n{json.dumps(ADD)}\n</tool_call>",
        "<tool_call>add_goal\n<arg_key>description</arg_key></tool_call>",
        "<function=add_goal>{}</function>",
        '[TOOL_CALLS] [{"name": "add_goal"}]',
        '{"tool": "add_goal", "parameters": {"description": "Mend"}}',
        '{"action": "add_goal", "action_input": "{}"}',
        '{"type": "function", "function": {"name": "add_goal", "arguments": "{}"}}',
        '{"tool_calls": [{"function": {"name": "noop", "arguments": "{}"}}]}',
        json.dumps([ADD]),
        '{"name": "noop"}',
    ],
)
def test_a_call_printed_as_text_is_known(text: str) -> None:
    assert printed_call(text, TOOLS)
    assert printed_call(text, []) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I added the goal.",
        "I used add_goal for that.",
        'The file has {"name": "Ada", "input": 3} in it.',
        '{"name": "noop", "colour": "red"}',
        "The tag is `<tool_call>`.",
        "[1] and {2} and [[",
        "[" * 5_000,
        '{"a":' * 3_000,
    ],
    ids=lambda text: str(text)[:30],
)
def test_words_are_no_call(text: str) -> None:
    assert printed_call(text, TOOLS) is None


FACTS = {"facts": ["the sky is blue"]}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(FACTS),
        f"```json\n{json.dumps(FACTS, indent=2)}\n```",
        f"Here is what I found:\n\n{json.dumps(FACTS)}\n\nI hope that {{this}} helps.",
        json.dumps({"name": "Facts", "arguments": FACTS}),
        json.dumps({"name": "Facts", "arguments": json.dumps(FACTS)}),
        json.dumps({"Facts": FACTS}),
        json.dumps(FACTS["facts"]),
        f"{json.dumps(FACTS)}\nAgain: {json.dumps(FACTS)}",
        '{"facts": ["the sky\nis blue"]}'.replace("\n", " "),
    ],
)
def test_a_form_is_found_among_words(text: str) -> None:
    assert forms_in(text, "Facts", ["facts"]) == [FACTS]


def test_json_of_another_kind_is_no_form() -> None:
    assert forms_in('I saw {"id": 3} and {"score": 1}.', "Facts", ["facts"]) == []
    assert forms_in("[1, 2]", "Pair", ["one", "other"]) == []
