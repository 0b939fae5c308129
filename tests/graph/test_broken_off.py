"""A process that dies while it takes note of a failure: the next run goes on."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from memory.errors import CircuitOpen, ModelError
from tests.support.agents import Opening, said
from tests.support.scripted import scripted


@pytest.mark.parametrize(
    ("error", "attempts"), [(ModelError("no answer"), 1), (CircuitOpen("left alone"), 0)]
)
async def test_a_failure_is_noted_though_the_process_died_meanwhile(
    opening: Opening,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    attempts: int,
) -> None:
    """LangGraph gives the error again as its `repr`."""

    async with opening(scripted(error)) as agent:
        with monkeypatch.context() as patched:
            patched.setattr(import_module("nodes.tick.return_event"), "describe", dies_at_once)
            with pytest.raises(RuntimeError, match="killed"):
                await agent.ainvoke(said("Hello", id="e1"))
    async with opening(scripted("Hi.")) as agent:
        output = await agent.ainvoke({}, raise_on_failure=False)
        [failure] = output["report"]["failures"]
        assert (failure["event_id"], failure["attempts"]) == ("e1", attempts)
        assert failure["error"] == f"{type(error).__name__}('{error}')"
        output = await agent.ainvoke({})
    assert [one["reply"] for one in output["report"]["ticks"]] == ["Hi."]


def dies_at_once(error: Any) -> str:
    raise RuntimeError("killed")
