"""Hand a sub-agent's result to its requester; a long one is shortened first."""

from __future__ import annotations

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory.errors import ModelError
from memory.models import total
from memory.runtime import resources_of, settings_of
from memory.settings import Settings
from memory.state import checked
from tools.delegation import LONGEST_RESULT, DelegateState, shortened, succeeded, to_summarise


@checked
async def report_result(
    state: DelegateState, runtime: Runtime[Settings], config: RunnableConfig
) -> DelegateState:
    """Return the result. A long one costs one more model call, and is cut if that does not help."""
    settings, resources = settings_of(runtime.context), resources_of(config)
    text, usage = str(state["messages"][-1].text).strip(), state["usage"]
    long = len(text) > LONGEST_RESULT
    if not long or not settings.result_summarization:
        return succeeded(state, text, summarised=False, usage=usage, now=resources.clock())
    try:
        prompt = to_summarise(state["args"]["task"], text)
        answer = await resources.ask(prompt, settings, config)
    except ModelError:
        summary = None
    else:
        usage, summary = total(usage, answer.usage), str(answer.message.text).strip()
    text, summarised = shortened(text, summary)
    return succeeded(state, text, summarised=summarised, usage=usage, now=resources.clock())
