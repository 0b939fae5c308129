"""Ask the model for the next step of the tick: tool calls, which run, or the reply."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, cast

from langchain_core.messages import AIMessage, ToolCall, ToolMessage, messages_from_dict
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphInterrupt
from langgraph.runtime import Runtime
from langgraph.types import Send

from memory import audit
from memory.audit import AuditEntry
from memory.errors import ContextOverflow, ModelError, ModelRefused
from memory.events import approvals
from memory.messages import as_model_sees, marked, open_calls
from memory.models import CUT_OFF, Answer, charged, in_vain
from memory.prompt import assembly
from memory.records import CallRecord, Loop
from memory.runtime import resources_of, scope_of, settings_of, store_of
from memory.settings import Settings
from memory.state import State, checked, held
from memory.telemetry import called
from memory.text import approximate_tokens, calibrated, encodable, recalibrate
from nodes.delegate import fan_out
from tools.execution import (
    Executed,
    OfferedTool,
    as_answered,
    execute,
    misfit,
    offered,
    refuse,
    routed,
    storable,
    what_becomes_of,
)
from tools.policy import continued, history, pattern_of
from tools.registry import ToolCategory, shown_tools


async def onward(
    state: State,
) -> Literal["act", "use_tools", "park", "confirm", "extract_facts", "record"] | list[Send]:
    """Where the tick goes on, as the node that ran last decided; first a compaction that is due."""
    loop = held(state.get("loop"))
    if loop["compaction"] == "forced":
        return "extract_facts"
    if loop["next"] == "delegate":
        return fan_out(state)
    return loop["next"]


@checked
async def act(state: State, runtime: Runtime[Settings], config: RunnableConfig) -> dict[str, Any]:
    """One model call. At the pattern's cap no tool can be called, and it gives the answer.

    Raises ModelError without a usable answer: the tick fails and its event goes back.
    """
    context, pattern, loop = held(state["context"]), held(state["pattern"]), held(state["loop"])
    resources, settings = resources_of(config), settings_of(runtime.context)
    capped, known = _capped(state, settings), offered(state, config, settings)
    tools = shown_tools([one.tool for one in known.values()])
    messages = history(state, settings, context["context_type"])
    prompt = assembly.whole(context, as_model_sees(messages, settings.zone))
    try:
        answer = await resources.ask(
            prompt, settings, config, tools=tools, calls=not capped, names=list(known)
        )
    except ContextOverflow:
        if loop["overflowed"]:
            raise
        return {"loop": {**loop, "overflowed": True, "compaction": "forced"}}
    except ModelRefused as error:
        # Asked again unchanged it would refuse again: what it says is the answer.
        answer = Answer(AIMessage(str(error)), in_vain(error))
    message = _taken(state, answer, capped=capped or not known)
    told, schemas = approximate_tokens(prompt), approximate_tokens([], tools=tools)
    calibration = state["calibration"]
    beside = calibrated(told, calibration) - sum(context["tokens"].values())
    sizes = {"conversation_history": max(0, beside), "tools": calibrated(schemas, calibration)}
    going: Loop = {
        **charged(loop, answer.usage),
        "prompt": sizes,  # beside the components of the system message
        "iteration": loop["iteration"] + bool(message.tool_calls),
        "reply": None if message.tool_calls else str(message.text).strip(),
    }
    if message.tool_calls:
        messages = [*state["messages"], message]
        going = routed(messages, going, pattern, known, settings, state)
    else:
        going = {**going, "next": "record"}
        if answer.cut_off:
            going["truncated"] = True
    reported = answer.message.usage_metadata
    counted = int(reported["input_tokens"]) if reported else 0
    calibration = recalibrate(calibration, told + schemas, counted)
    return {"messages": [message], "loop": going, "calibration": calibration}


def _capped(state: State, settings: Settings) -> bool:
    """Whether the call is to give the answer: the iterations are used, or too much failed."""
    pattern, loop = held(state["pattern"]), held(state["loop"])
    failing = loop["raised"] > 0 and state["consecutive_errors"] >= settings.max_consecutive_errors
    # Answers that may ask for tools; single_action means one.
    most = 1 if pattern["mode"] == "single_action" else pattern["max_iterations"]
    return failing or loop["iteration"] >= most


def _taken(state: State, answer: Answer, *, capped: bool) -> AIMessage:
    used: set[str] = set()
    if answer.message.tool_calls:
        waiting = [m for one in state["parked"] for m in messages_from_dict(one["messages"])]
        known = [*state["messages"], *waiting]
        used = {str(c["id"]) for m in known if isinstance(m, AIMessage) for c in m.tool_calls}
    message = storable(answer.message, f"{state['tick']}_{len(state['messages'])}", used)
    if capped and message.tool_calls:
        message = message.model_copy(update={"tool_calls": [], "invalid_tool_calls": []})
    if not str(message.text).strip() and not message.tool_calls:
        raise ModelError("the model gave no answer at the end of the tick")
    if answer.cut_off and not message.tool_calls:
        message = message.model_copy(update={"content": f"{str(message.text).strip()} {CUT_OFF}"})
    return marked(message, tick=state["tick"])


@checked
async def use_tools(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Answer the open calls of the last model answer; a failing tool answers the model.

    Stops before a call that a person is asked about, and before one that sub-agents take.
    """
    round_ = _Round(state, runtime, config)
    await round_.run()
    await round_.write_log()
    return round_.update()


class _Round:
    """One visit: the state as the calls change it, and what they answered."""

    def __init__(self, state: State, runtime: Runtime[Settings], config: RunnableConfig) -> None:
        self.before = self.state = state
        self.runtime, self.config = runtime, config
        self.settings = settings_of(runtime.context)
        self.tools = offered(state, config, self.settings)
        self.loop_before = self.loop
        self.answers: list[ToolMessage] = []
        self.changed: dict[str, Any] = {}
        self.calls: list[CallRecord] = []
        self.logged = 0
        """How many of the calls are in the log."""
        self.errors = state["consecutive_errors"]
        """Failures in a row."""

    @property
    def loop(self) -> Loop:
        return held(self.state["loop"])

    async def run(self) -> None:
        """Take the open calls one after the other."""
        pattern = held(self.state["pattern"])
        asked = next(m for m in reversed(self.state["messages"]) if isinstance(m, AIMessage))
        for call in open_calls(self.state["messages"]):
            match what_becomes_of(call, asked.tool_calls[0], self.loop, pattern, self.tools):
                case "run":
                    await self._run(call)
                case "delegate" if call["id"] in self.state["delegated"]:
                    result = self.state["delegated"][str(call["id"])]
                    answer = as_answered(call, result["content"], ok=result["ok"])
                    self._take(replace(answer, usage=result["usage"], calls=result["calls"]))
                case "ask" if len(self.state["parked"]) < self.settings.max_questions:
                    return
                case "delegate":
                    return
                case "misfit":
                    wrong = misfit(self.tools[call["name"]].tool, call["args"]) or ""
                    self._take(refuse([call], wrong, "Call it again with these mended."))
                case "barred":
                    self._take(await self._execute(call))
                case refused:
                    self._take(refuse([call], *_WHY[refused]))

    async def _run(self, call: ToolCall) -> None:
        known = self.tools.get(call["name"])
        if known is not None and known.kind.dangerous:
            await self._once(call, known)
        else:
            self._take(await self._execute(call))
        answer = self.answers[-1]
        spoke = known is not None and known.kind.category == ToolCategory.TERMINAL
        pattern = self.state["pattern"]
        if spoke and answer.status != "error" and pattern and pattern["terminal_ends_loop"]:
            self._set_loop(ended=True)

    async def _execute(self, call: ToolCall) -> Executed:
        return await execute(
            [call],
            [known.tool for known in self.tools.values()],
            self.state,
            self.config,
            seconds=self.settings.tool_timeout,
        )

    async def _once(self, call: ToolCall, known: OfferedTool) -> None:
        """A dangerous call, once: what an earlier try of this tick began is not done again.

        Its outcome and its line in the log are written together, so that both are there once.
        """
        store, scope = store_of(self.runtime), scope_of(self.config)
        self._set_loop(dangerous=str(call["id"]))
        if known.in_state:
            return self._take(await self._execute(call))
        event, question = self.state["event"], self.state["resuming"]
        key = approvals.deed_key(event, question, self.state["tick"])
        earlier = await approvals.deed(store, scope, key)
        if earlier is not None:
            return self._take(_as_before(call, earlier))
        deed: approvals.Deed = {
            "tool": call["name"],
            "args": dict(call["args"]),
            "begun": resources_of(self.config).clock().isoformat(),
            "outcome": None,
            "ok": False,
        }
        await approvals.write_deed(store, scope, key, deed)
        try:
            self._take(await self._execute(call))
        except GraphInterrupt:
            await approvals.drop_deed(store, scope, key)
            raise
        answer = self.answers[-1]
        ended: approvals.Deed = {
            **deed,
            "outcome": str(answer.content),
            "ok": answer.status != "error",
        }
        await audit.write(
            store,
            scope,
            self._called(),
            visit=audit.visit_of(self.loop_before, "use_tools"),
            also=[approvals.put_deed(scope, key, ended)],
        )

    def _take(self, more: Executed) -> None:
        self.answers += more.messages
        self.changed |= more.update
        self.calls += more.calls
        told = [one.artifact for one in more.messages if isinstance(one.artifact, dict)]
        for outcome in more.outcomes:
            self.errors = 0 if outcome["ok"] else self.errors
        self.errors += more.raised
        loop: Loop = {
            **charged(self.loop, more.usage),
            "tools": [*self.loop["tools"], *more.outcomes],
            "written": [*self.loop["written"], *more.written],
            "raised": self.loop["raised"] + more.raised,
            "sent": [*self.loop["sent"], *(sent for one in told for sent in one.get("sent", []))],
        }
        messages = [*self.state["messages"], *more.messages]
        self.state = cast(State, {**self.state, **more.update, "messages": messages, "loop": loop})

    def _set_loop(self, **values: Any) -> None:
        self.state = cast(State, {**self.state, "loop": {**self.loop, **values}})

    @property
    def _place(self) -> dict[str, Any]:
        """Tick and event, for the audit log."""
        event = self.state["event"]
        return {"tick": self.state["tick"], "origin": event["id"] if event else None}

    def _called(self) -> list[AuditEntry]:
        """Lines for the calls that are not in the log yet."""
        resources = resources_of(self.config)
        model = called(resources.chat_model)
        lines = audit.of_calls(self.calls, at=resources.clock(), model=model, **self._place)
        lines, self.logged = lines[self.logged :], len(self.calls)
        return lines

    async def write_log(self) -> None:
        """What was called, and which goals and which prompt changed."""
        calls = self._called()
        old, new, at = self.before, self.state, resources_of(self.config).clock()
        prompts = old["assistant_prompt"], new["assistant_prompt"]
        entries = [
            *calls,  # First: the log is in the order of time.
            *audit.of_goals(old["goals"], new["goals"], at=at, **self._place),
            *audit.of_prompt(*prompts, **self._place),
        ]
        if entries:
            visit = audit.visit_of(self.loop_before, "use_tools")
            store, scope = store_of(self.runtime), scope_of(self.config)
            await audit.write(store, scope, entries, visit=visit)

    def update(self) -> dict[str, Any]:
        """The change of the state."""
        metrics, tick = self.state["metrics"], self.state["tick"]
        outcomes = self.loop["tools"][len(self.loop_before["tools"]) :]
        ok = sum(outcome["ok"] for outcome in outcomes)
        messages, settings = self.state["messages"], self.settings
        pattern = held(self.state["pattern"])
        loop = routed(messages, self.loop, pattern, self.tools, settings, self.state)
        return {
            **self.changed,
            **self._continued(loop),
            "messages": [
                marked(answer.model_copy(update={"content": encodable(answer.content)}), tick=tick)
                for answer in self.answers
            ],
            "consecutive_errors": self.errors,
            "metrics": {
                **metrics,
                "total_tool_calls": metrics["total_tool_calls"] + len(outcomes),
                "successful_calls": metrics["successful_calls"] + ok,
                "failed_calls": metrics["failed_calls"] + len(outcomes) - ok,
            },
        }

    def _continued(self, loop: Loop) -> dict[str, Any]:
        """The loop; and with its answers read, the context that goes on from them, if another."""
        context = held(self.state["context"])
        then = continued(context["context_type"])
        if then == context["context_type"] or loop["next"] != "act":
            return {"loop": loop}
        return {
            "loop": {**loop, "iteration": 0},
            "context": {**context, "context_type": then},
            "pattern": pattern_of(then, held(self.state["assessment"]), self.settings),
        }


_WHY = {
    "surplus": ("one tool call only in this tick", "Answer now; ask again later."),
    "second": (
        "one dangerous tool a tick, and this tick has asked for one already",
        "Go on without it, or do it in a later tick.",
    ),
    "foreign": (
        "it rests on words of somebody who is not an owner, and the settings refuse that",
        "Say so, and go on without it.",
    ),
    "ask": (
        "too many questions wait for a person",
        "Say that they must be answered first (status shows them), and go on without it.",
    ),
}


def _as_before(call: ToolCall, deed: approvals.Deed) -> Executed:
    same = (deed["tool"], deed["args"]) == (call["name"], dict(call["args"]))
    if not same:
        began = f"this tick ran {deed['tool']} already, in an earlier try"
        return refuse([call], began, "It is not run twice. Go on without it.")
    if deed["outcome"] is None:
        unknown = f"{call['name']} began at {deed['begun']}, and nobody knows how it ended"
        return refuse([call], unknown, "It is not run again. Look whether it was done.")
    return as_answered(call, deed["outcome"], ok=deed["ok"])
