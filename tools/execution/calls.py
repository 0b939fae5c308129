"""The tool calls of a model answer: which tools are offered, and who takes the next call. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError

from memory.errors import explained
from memory.messages import open_calls
from memory.models import MALFORMED
from memory.records import Loop, PatternState
from memory.runtime import resources_of
from memory.settings import Settings
from memory.state import State, held
from memory.text import encodable
from tools.builtin import assistant, planning
from tools.origins import ASKED_FOR, foreign_words
from tools.policy import CONTEXTS
from tools.registry import ToolKind, kind_of, tools_for

Fate = Literal["run", "ask", "delegate", "surplus", "second", "misfit", "barred", "foreign"]
"""What becomes of a call: the tool runs, a person is asked first, or a sub-agent takes it.

The other calls are refused. surplus: the single action of the tick is another call. second: the
tick has a dangerous call already. misfit: arguments cannot be read, or do not fit a dangerous tool
or a sub-agent's task. barred: the tool itself refuses. foreign: the call rests on words of others
than owners, and the settings refuse that.
"""


def storable(message: AIMessage, place: str, used: Collection[str] = ()) -> AIMessage:
    """`message` as it can be stored: a unique id for each call, and calls of `use_tool` replaced.

    Models leave ids out, repeat them, or begin with `call_0` in every answer. A call of `use_tool`
    becomes a call of the tool that it names, so that this tool's rules, approval and log apply to
    it. New ids are made from `place`, which is unique to the answer; `used`: ids of earlier calls.
    Goals are completed last: a call that they rest on, such as a reminder, may wait for a person.
    """
    message = _direct(message)
    message = message.model_copy(
        update={
            "content": encodable(message.content),
            "tool_calls": encodable(message.tool_calls),
            "additional_kwargs": encodable(message.additional_kwargs),
        }
    )
    seen = set(used)
    calls: list[ToolCall] = []
    for number, call in enumerate(sorted(message.tool_calls, key=_completes)):
        known = call["id"]
        name = known if known and known not in seen else f"call_{place}_{number}"
        seen.add(name)
        calls.append(ToolCall(name=call["name"], args=call["args"], id=name, type="tool_call"))
    if calls == message.tool_calls:
        return message
    return message.model_copy(update={"tool_calls": calls})


def _direct(message: AIMessage) -> AIMessage:
    """`message` with each call of `use_tool` replaced by the call that it stands for."""
    meant = [_meant(call) for call in message.tool_calls]
    return message if meant == message.tool_calls else with_calls(message, meant)


def with_calls(message: AIMessage, calls: Sequence[ToolCall]) -> AIMessage:
    """`message` with these calls, without the provider's own form of the earlier calls."""
    content = message.content
    if isinstance(content, list):
        content = [one for one in content if not isinstance(one, dict) or one.get("type") in _SAID]
    extra = {key: one for key, one in message.additional_kwargs.items() if key != "tool_calls"}
    return message.model_copy(
        update={"tool_calls": [*calls], "content": content, "additional_kwargs": extra}
    )


_SAID = ("text", "thinking", "redacted_thinking")
"""Content blocks that stay when calls change: words, and thoughts that a provider wants back."""


def _completes(call: ToolCall) -> bool:
    """Sorts calls that complete a goal last."""
    done = call["args"].get("status") == "completed" or call["args"].get("progress") == 100
    return done and call["name"] == planning.update_goal.name


def _meant(call: ToolCall) -> ToolCall:
    """The call that a `use_tool` call stands for; arguments beside `arguments` count, too."""
    name = call["args"].get("name")
    if (
        call["name"] != assistant.use_tool.name
        or not isinstance(name, str)
        or name == assistant.use_tool.name
    ):
        return call
    beside = {key: one for key, one in call["args"].items() if key not in ("name", "arguments")}
    args = call["args"].get("arguments")
    if isinstance(args, str):
        with suppress(ValueError):
            args = json.loads(args)
    if not isinstance(args, dict | None):
        return call
    return ToolCall(
        name=name.strip(), args={**beside, **(args or {})}, id=call["id"], type="tool_call"
    )


def what_becomes_of(
    call: ToolCall,
    first: ToolCall,
    loop: Loop,
    pattern: PatternState,
    tools: Mapping[str, OfferedTool],
) -> Fate:
    """What becomes of `call`. `first`: the first call of the same answer."""
    single = pattern["mode"] == "single_action" or not pattern["multi_tool_enabled"]
    if single and call["id"] != first["id"]:
        return "surplus"
    offered_tool = tools.get(call["name"])
    if offered_tool is None:
        return "run"
    if MALFORMED in call["args"]:
        return "misfit"
    if call["name"] == assistant.delegate_task.name:
        return "delegate" if misfit(offered_tool.tool, call["args"]) is None else "misfit"
    foreign = bool(offered_tool.foreign(call["args"]))
    if not offered_tool.kind.dangerous and not foreign:
        return "run"
    return _asked_or_not(call, offered_tool, loop, pattern, foreign=foreign)


def _asked_or_not(
    call: ToolCall, offered_tool: OfferedTool, loop: Loop, pattern: PatternState, *, foreign: bool
) -> Fate:
    """What becomes of a call that a person may have to be asked about."""
    if loop["dangerous"] not in (None, call["id"]):
        return "second"
    if misfit(offered_tool.tool, call["args"]) is not None:
        return "misfit"
    if offered_tool.refuses(call["args"]):
        return "barred"
    if loop["dangerous"] == call["id"] and loop["decision"] is not None:
        return "run"
    if foreign and offered_tool.settings.foreign_words == "refuse":
        return "foreign"
    return "ask" if foreign or offered_tool.asks(pattern) else "run"


@dataclass(frozen=True)
class OfferedTool:
    """A tool that is offered to the model, and what holds for its calls now."""

    tool: BaseTool
    state: State
    config: RunnableConfig
    settings: Settings

    @property
    def kind(self) -> ToolKind:
        """The kind, read at use: most offered tools are not called."""
        return kind_of(self.tool)

    def refuses(self, args: Mapping[str, Any]) -> bool:
        """Whether the tool will refuse these arguments, so that nobody is asked about the call."""
        why_not = (self.tool.metadata or {}).get("why_not")
        if why_not is None:
            return False
        return why_not(self.state, self.config, self.settings, args) is not None

    def foreign(self, args: Mapping[str, Any]) -> list[str]:
        """People other than owners on whose words a call rests, if a person has to approve that."""
        if not self.kind.dangerous and self.tool.name not in ASKED_FOR:
            return []
        return foreign_words(self.tool.name, args, self.state, self.settings, self.config)

    @property
    def in_state(self) -> bool:
        """Whether the tool changes the state only: without a checkpoint nothing happened."""
        return bool((self.tool.metadata or {}).get("in_state"))

    def difference(self, args: Mapping[str, Any]) -> str | None:
        """The change that a call would make, as a diff, if the tool can tell."""
        shown = (self.tool.metadata or {}).get("difference")
        return None if shown is None else str(shown(self.state, args))

    def asks(self, pattern: PatternState) -> bool:
        """Whether a person is asked before it runs."""
        return self.kind.always_ask or pattern["dangerous_requires_confirm"]


def misfit(tool: BaseTool, args: Mapping[str, object]) -> str | None:
    """What is wrong with the arguments, on one line; None when they fit."""
    if MALFORMED in args:
        return str(args[MALFORMED])
    form: Any = tool.tool_call_schema
    whole = tool.args_schema
    if isinstance(whole, type) and issubclass(whole, BaseModel):
        # The whole schema has the validators. Use it unless it has injected fields.
        form = form if set(whole.model_fields) - set(form.model_fields) else whole
    if not isinstance(form, type) or not issubclass(form, BaseModel):
        return None
    try:
        form.model_validate(dict(args))
    except ValidationError as error:
        return "; ".join(explained(error.errors(include_url=False, include_input=False)))
    return None


def routed(
    messages: Sequence[AnyMessage],
    loop: Loop,
    pattern: PatternState,
    tools: Mapping[str, OfferedTool],
    settings: Settings,
    state: State,
) -> Loop:
    """`loop` with the node to run next, and with the calls for sub-agents, up to the budget.

    If too many questions wait already, `use_tools` refuses the call.
    """
    calls = open_calls(messages)
    if not calls:
        return {**loop, "next": "record" if loop["ended"] else "act", "delegating": []}
    first = next(m for m in reversed(messages) if isinstance(m, AIMessage)).tool_calls[0]
    fates = [(call, what_becomes_of(call, first, loop, pattern, tools)) for call in calls]
    done, full = state["delegated"], len(state["parked"]) >= settings.max_questions
    waiting = [str(c["id"]) for c, fate in fates if fate == "delegate" and c["id"] not in done]
    match fates[0][1]:
        case "delegate" if calls[0]["id"] in waiting:
            return {**loop, "next": "delegate", "delegating": waiting[: settings.sub_agent_budget]}
        case "ask" if not full:
            return {**loop, "next": "park", "delegating": []}
        case _:
            return {**loop, "next": "use_tools", "delegating": []}


def offered(state: State, config: RunnableConfig, settings: Settings) -> dict[str, OfferedTool]:
    """The tools of the current model call by name: from context, pattern and the user's own."""
    context, pattern = held(state["context"]), held(state["pattern"])
    tools = tools_for(CONTEXTS[context["context_type"]], pattern, resources_of(config).tools)
    return {tool.name: OfferedTool(tool, state, config, settings) for tool in tools}
