"""The tool that changes the assistant's own prompt, and never the user's (ruling 16).

An owner sets it off, a person confirms the shown difference, or it does not happen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from pydantic import Field

from memory import assistant_prompt as rules
from memory.errors import Refusal
from memory.owners import owners_of, set_off_by_owner
from memory.resources import resources_of, settings_of
from memory.settings import Settings
from memory.state import State
from memory.tick import Decision, Loop, Question
from tools.answers import Answer, Reasoning, Runtime, answer, now_of, refusals_answered

OWNERS_ONLY = "Leave the prompt as it is. An owner can ask for the change."
ASK_AGAIN = "Leave the prompt as it is; it can be asked for again in a later tick."


@tool
@refusals_answered
async def update_system_prompt(
    new_prompt: Annotated[
        str, Field(description="What replaces your own prompt, whole; at most 8,000 characters.")
    ],
    runtime: Runtime,
    reasoning: Reasoning = None,
) -> Answer:
    """Replace your own guidelines, when an owner asks for it; a person is shown the change first.
    The user's prompt stands above yours and stays as it is.
    """
    state, before = runtime.state, runtime.state["assistant_prompt"]
    settings, args = settings_of(runtime.context), {"new_prompt": new_prompt}
    if refusal := why_not(state, runtime.config, settings, args):
        raise refusal
    decision = _confirmed(state, runtime.tool_call_id, new_prompt)
    after = rules.changed(
        before,
        rules.accepted(before, new_prompt),
        at=now_of(runtime),
        reason=reasoning or "No reason was given",
        by=f"{state['event']['sender']}, approved by {decision['by']}",
    )
    result = {
        "version": after["version"],
        "previous_version": before["version"],
        "note": "It holds from the next tick on. The user's prompt still stands above it.",
    }
    return answer(runtime, result, assistant_prompt=after)


def why_not(
    state: State, config: RunnableConfig, settings: Settings, args: Mapping[str, Any]
) -> Refusal | None:
    """Why the tick in hand may not change the prompt to what `args` say; None: it may.

    For whoever asks a person: nobody is asked about what is refused all the same.
    """
    resources = resources_of(config)
    owners = owners_of(settings, user=resources.user, served=resources.served)
    context, event = state["context"], state["event"]
    if context is None or context["context_type"] != "tick_event" or event is None:
        return Refusal("Your prompt is changed in answer to an owner only", OWNERS_ONLY)
    if not set_off_by_owner(event, owners=owners, served=resources.served):
        return Refusal(f"{event['sender']} is no owner of this assistant", OWNERS_ONLY)
    try:
        rules.accepted(state["assistant_prompt"], str(args.get("new_prompt", "")))
    except Refusal as refusal:
        return refusal
    return None


def difference_of(state: State, args: Mapping[str, Any]) -> str:
    """What the call would change, as a person is shown it."""
    before = state["assistant_prompt"]
    try:
        text = rules.accepted(before, str(args.get("new_prompt", "")))
    except Refusal as refusal:
        return refusal.error
    return rules.difference(before, text)


def _confirmed(state: State, call_id: str | None, text: str) -> Decision:
    """The answer that allows this call: to this question, for this text, on the prompt as it is.

    Raises:
        Refusal: nobody was asked, or about something else.
    """
    loop: Loop | None = state["loop"]
    decision = loop["decision"] if loop is not None and loop["dangerous"] == call_id else None
    asked = [one["question"] for one in state["parked"]]
    question = next((one for one in asked if one["id"] == state["resuming"]), None)
    if decision is None or question is None or decision["decision"] == "refuse":
        raise Refusal("No person has confirmed the change", ASK_AGAIN)
    args = decision["args"] if decision["decision"] == "edit" else question["args"]
    if (args or {}).get("new_prompt") != text or not _still_shown(state, question):
        raise Refusal("The change is not the one that was confirmed", ASK_AGAIN)
    return decision


def _still_shown(state: State, question: Question) -> bool:
    """Whether the prompt is what it was when the person was asked."""
    return question["difference"] == difference_of(state, question["args"])


update_system_prompt.metadata = {
    "difference": difference_of,
    "why_not": why_not,
    # Done again after a crash it is not done twice: what it changes is in the state alone.
    "in_state": True,
}
