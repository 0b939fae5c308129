"""The tool that does nothing, so that the model can say that nothing is to be done."""

from __future__ import annotations

from langchain_core.tools import tool

from tools.answers import Answer, Reasoning, Runtime, answer


@tool
async def noop(runtime: Runtime, reasoning: Reasoning = None) -> Answer:
    """Do nothing: no action is needed, or nothing more is worth keeping."""
    return answer(runtime, {"message": "Nothing was done"})
