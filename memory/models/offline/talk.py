"""How the offline model answers a prompt: which kind of call it is, and what follows. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage

from memory.messages import prompt_lines
from memory.models.offline import night, reflection
from memory.models.offline.dreaming import attributes, dream
from memory.models.offline.prompt import Call, Prompt, read_prompt
from memory.models.offline.replies import answer, next_step, told
from memory.models.offline.requests import Wishes, read_wishes
from memory.models.offline.sentences import is_thanks, states_something
from memory.text import shortened

_STRUCTURED: Mapping[str, Callable[[Prompt], dict[str, Any]]] = {
    "Scores": night.scores,
    "TaskAssessment": night.task_assessment,
    "Subtasks": night.subtasks,
    "Dream": dream,
    "Attributes": attributes,
    "Questions": reflection.questions,
    "Insights": reflection.insights,
}
"""What gives the arguments of a structured answer, by the name of its form."""
_PROJECT_TOOLS = {"create_project", "swap_project", "update_project"}
_WHAT_NEXT = re.compile(r"what(?:'s| is| should \w+(?: \w+)?| comes)? next\b", re.IGNORECASE)


@dataclass(frozen=True)
class Decision:
    """What the model says and calls."""

    text: str
    calls: tuple[Call, ...] = ()


def decide(messages: Sequence[BaseMessage], tools: Collection[str]) -> Decision:
    """The answer to a prompt, given the names of the bound tools. The same in, the same out."""
    prompt = read_prompt(messages)
    names = sorted(tools)
    for form, answered in _STRUCTURED.items():
        if form in tools:
            return _called(Call(form, answered(prompt)))
    if prompt.system.startswith(prompt_lines.SUMMARISE):
        return Decision(night.summary(prompt.human))
    if "store_memory" in tools and prompt_lines.ENTRIES in prompt.human.splitlines():
        calls = night.consolidation(prompt, names)
        return _called(*calls) if calls else Decision("The batch is settled.")
    if reflection.is_asked(prompt, tools):
        calls = reflection.calls(messages, tools)
        return _called(*calls) if calls else Decision(reflection.reply(messages))
    if prompt.human.startswith(prompt_lines.EXTRACTION):
        calls = night.extraction(prompt, names)
        return _called(*calls) if calls else Decision("Nothing more is worth keeping.")
    if prompt.human.startswith(prompt_lines.TICK):
        return _tick(prompt, tools)
    return _conversation(prompt, tools)


def _called(*calls: Call) -> Decision:
    return Decision("", calls)


def _tick(prompt: Prompt, tools: Collection[str]) -> Decision:
    """A tick of its own: the next open goal in a sentence; it has no hands to work on it."""
    said = next_step(prompt.goals)
    if "noop" in tools and not prompt.done:
        return _called(Call("noop", {"reasoning": said}))
    return Decision(said)


def _conversation(prompt: Prompt, tools: Collection[str]) -> Decision:
    wishes = read_wishes(prompt, tools)
    made = [(done.name, done.args) for done in prompt.done]
    left = [call for call in wishes.calls if (call.tool, call.args) not in made]
    left = _one_project_call(left)
    return _called(*left) if left else Decision(_reply(prompt, wishes))


def _one_project_call(calls: Sequence[Call]) -> list[Call]:
    """Calls up to a second one that changes projects: it builds on the first one's result."""
    kept: list[Call] = []
    for call in calls:
        if call.tool in _PROJECT_TOOLS and any(one.tool in _PROJECT_TOOLS for one in kept):
            break
        kept.append(call)
    return kept


def _reply(prompt: Prompt, wishes: Wishes) -> str:
    """Results first, then what was unclear, then answers; small talk only when nothing else."""
    lines = [line for done in prompt.done if (line := told(done))]
    carried_out = {done.name for done in prompt.done}
    lines += wishes.unclear
    lines += [
        f"I cannot do that now: {tool} is not at hand."
        for tool in dict.fromkeys(wishes.impossible)
        if tool not in carried_out
    ]
    lines += [_answered(question, prompt) for question in wishes.questions]
    return "\n".join(lines) or _acknowledged(prompt, wishes)


def _answered(question: str, prompt: Prompt) -> str:
    if _WHAT_NEXT.search(question) and prompt.goals:
        return next_step(prompt.goals)
    return answer(question, prompt)


def _acknowledged(prompt: Prompt, wishes: Wishes) -> str:
    telling = [one for one in wishes.remarks if states_something(one)] or wishes.remarks
    if telling:
        return f"Noted: {shortened(telling[0].rstrip('.!'), 160)}."
    if any(is_thanks(one) for one in wishes.small_talk):
        return "You are welcome."
    if wishes.small_talk:
        name = prompt.sender.replace("_", " ")
        return "Hello." if name == "the user" else f"Hello, {name}."
    return "There is no text in this message that I can read."
