"""Structured answers: validated, shown to the model when they do not fit, and paid for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from pydantic import BaseModel, Field

from memory.errors import ModelError
from memory.models.client import ask, ask_for
from memory.settings import Settings
from tests.support.scripted import Waits, call, calls, logged_calls, scripted

PROMPT: list[AnyMessage] = [HumanMessage("What did you find?")]


class Facts(BaseModel):
    """What was found."""

    facts: list[str] = Field(min_length=1)


async def test_a_structured_answer_is_validated_and_its_usage_kept() -> None:
    model = scripted(call("Facts", facts=["the sky is blue"]))
    found, usage = await ask_for(model, PROMPT, Facts, Settings())
    assert found == Facts(facts=["the sky is blue"])
    assert usage["llm_calls"] == 1
    assert usage["tokens"] > 0
    assert model.calls[0].tools == ["Facts"]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (call("Facts", facts=[]), "facts: List should have at least 1 item"),
        (call("Facts"), "facts: Field required"),
        (call("Other", facts=["x"]), "arguments: Input should be"),
        ("The sky is blue.", "arguments: Input should be"),
    ],
    ids=["empty", "missing", "other tool", "text"],
)
async def test_an_answer_that_does_not_fit_is_shown_to_the_model(
    wrong: AIMessage | str, told: str
) -> None:
    model = scripted(wrong, call("Facts", facts=["the sky is blue"]))
    found, usage = await ask_for(model, PROMPT, Facts, Settings())
    assert found.facts == ["the sky is blue"]
    assert usage["llm_calls"] == 2
    correction = model.calls[1].messages[-1]
    assert told in str(correction.text)


async def test_every_call_of_an_answer_that_does_not_fit_gets_an_answer() -> None:
    wrong = calls(("Facts", {"facts": []}), ("Facts", {"facts": 3}))
    model = scripted(wrong, call("Facts", facts=["the sky is blue"]))
    await ask_for(model, PROMPT, Facts, Settings())
    asked, *answers = model.calls[1].messages[len(PROMPT) :]
    assert isinstance(asked, AIMessage)
    ids = [one.tool_call_id for one in answers if isinstance(one, ToolMessage)]
    assert ids == [one["id"] for one in asked.tool_calls]


async def test_a_model_that_never_fits_is_shown_it_twice_and_no_more() -> None:
    model = scripted(*[call("Facts", facts=[])] * 3)
    with pytest.raises(ModelError, match="Facts does not fit: facts: List"):
        await ask_for(model, PROMPT, Facts, Settings())
    assert len(model.calls) == 3


async def test_a_structured_answer_is_tried_again_as_any_other() -> None:
    waits = Waits()
    model = scripted(ConnectionResetError(), "", call("Facts", facts=["x"]))
    _, usage = await ask_for(model, PROMPT, Facts, Settings(), sleep=waits)
    assert usage["llm_calls"] == 2
    assert len(waits.seconds) == 1


@pytest.mark.parametrize("build", [lambda: call("a", x=1), lambda: calls(("a", {}), ("a", {}))])
async def test_a_script_gives_every_tool_call_an_id_of_its_own(
    build: Callable[[], AIMessage],
) -> None:
    model = scripted(build(), build())
    first, second = [(await ask(model, PROMPT, Settings())).message for _ in range(2)]
    ids = [one["id"] for message in (first, second) for one in message.tool_calls]
    assert len(set(ids)) == len(ids)


async def test_calls_are_counted_across_processes_by_their_log(tmp_path: Path) -> None:
    for text in ("one", "two"):
        await ask(scripted(text, log_path=tmp_path / "log"), [HumanMessage(text)], Settings())
    assert [one["last"] for one in logged_calls(tmp_path / "log")] == ["one", "two"]
