"""Tools about the assistant itself: doing nothing, sleep, status, its prompt, what it forgets.

Last come the tools that address somebody else: a message to another person, a task for a sub-agent.
A message does not leave the process: it is put into the run's output and stream, for whoever runs
the agent to deliver. After a crash it has the same id again. A task is carried out by the graph's
node `delegate`.

The status is computed when the tool is called, and so includes what earlier calls of the same
answer did. Its answer is never cached. The prompt changes only when an owner asks and a person
confirms the shown difference; the user's prompt never changes. Erasing a memory needs both, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from pydantic import Field

from memory import events, forgetting
from memory.errors import Refusal
from memory.events import by_verdict, inbox, parked_events
from memory.messages import data_in, is_history, of_tick, prompt_lines
from memory.operations import collector_of
from memory.prompt import assembly, assistant_prompt, recommended_action
from memory.records import AssembledContext, Decision, Event, Loop, SentMessage, operation_id
from memory.runtime import resources_of, scope_of, settings_of, store_of
from memory.settings import Settings
from memory.state import SessionMetrics, SleepWish, State
from memory.text import advisory, approximate_tokens, calibrated, one_line, shortened, utilisation
from tools.answers import (
    Absent,
    Answer,
    Reasoning,
    Runtime,
    answer,
    built_in,
    event_of,
    now_of,
)
from tools.builtin.facts import hits_in
from tools.evidence import origin_of
from tools.origins import check_owner, not_of_owner, owners_in


@built_in
async def noop(runtime: Runtime, reasoning: Reasoning = None) -> Answer:
    """Do nothing: no action is needed, or nothing more is worth keeping."""
    return answer(runtime, {"message": "Nothing was done"})


@built_in
async def use_tool(
    name: Annotated[str, Field(description="The tool's name.")],
    runtime: Runtime,
    arguments: Annotated[
        dict[str, Any] | Absent, Field(description="Its arguments by name.")
    ] = None,
) -> Answer:
    """Call one of these rarer tools with its arguments; those with `?` may be left out."""
    raise Refusal(
        f"There is no tool {shortened(name, 64)!r} to call in this way",
        "Give the name of a tool that stands in the description of use_tool, and its arguments.",
    )


@built_in
async def go_to_sleep(
    reasoning: Annotated[str, Field(description="Why you go to sleep now, in one sentence.")],
    runtime: Runtime,
) -> Answer:
    """Go to sleep when nothing is left to do; a message wakes you. What happened is made into
    long-term memory. It ends your work for now: write your answer, if any, beside this call.
    """
    state = runtime.state
    if state["mode"] == "sleep":
        raise Refusal("Already in sleep mode", "Nothing needs to be done: a message wakes you.")
    check_owner(runtime, "Stay awake; an owner can ask for it.")
    if state["sleep_wish"] is not None:
        raise Refusal("You go to sleep already, after this tick", "End your work.")
    store, scope = store_of(runtime), scope_of(runtime.config)
    stop_asked = await events.stop_asked_by(store, scope) is not None
    if state["emergency_stop"] or stop_asked:
        raise Refusal("The emergency stop is set", "End your work: a person has to clear it first.")
    waiting = await _waiting_events(runtime)
    if waiting:
        are = "direct event waits" if waiting == 1 else "direct events wait"
        raise Refusal(
            f"{waiting} {are} for you",
            "End this tick; it is answered next. Go to sleep after that.",
            pending=waiting,
        )
    wish: SleepWish = {"at": now_of(runtime).isoformat(), "reasoning": reasoning.strip()}
    told = {"mode": "sleep", "message": "You fall asleep when this tick has ended"}
    return answer(runtime, told, sleep_wish=wish)


async def _waiting_events(runtime: Runtime) -> int:
    """Number of waiting events that people want answered, without the event in hand."""
    state, scope = runtime.state, scope_of(runtime.config)
    items = await inbox.waiting(store_of(runtime), scope, state.get("handled", []))
    in_hand = event_of(runtime)
    past = parked_events(state) | ({in_hand["id"]} if in_hand else set())
    settings = settings_of(runtime.context)
    return len(by_verdict(items, settings, owners_in(runtime), past=past).people)


@built_in
async def get_system_status(runtime: Runtime) -> Answer:
    """See how full the context is (from 60 % wrap up, from 80 % just answer) and what was done."""
    usage = _token_usage(runtime)
    full = usage["usage_percentage"]
    # A chain begins with the second model answer that asks for tools.
    depth = max(0, runtime.state["loop"]["iteration"] - 1)
    result = {
        "timestamp": now_of(runtime).isoformat(),
        "token_usage": usage,
        "token_advisory": {**advisory(full), "recommended_action": recommended_action(full)},
        "loop_state": _loop_state(runtime),
        "session_metrics": _session_metrics(runtime),
        "chain_state": {
            "in_chain": depth > 0,
            "chain_depth": depth,
            "pending_tools": _pending(runtime),
        },
    }
    return answer(runtime, result)


def _token_usage(runtime: Runtime) -> dict[str, Any]:
    state = runtime.state
    context = state.get("context")
    shown = _messages(runtime)
    prompt = assembly.whole(context, shown) if context else shown
    used = calibrated(approximate_tokens(prompt, tools=runtime.tools), state["calibration"])
    limit = settings_of(runtime.context).max_context_tokens
    return {
        "estimated_used": used,
        "model_limit": limit,
        "available": max(0, limit - used),
        "usage_percentage": utilisation(used, limit),
    }


def _loop_state(runtime: Runtime) -> dict[str, Any]:
    loop, pattern = runtime.state["loop"], runtime.state["pattern"]
    names = [outcome["name"] for outcome in loop["tools"]]
    return {
        "iteration": loop["iteration"],
        "max_iterations": pattern["max_iterations"],
        "tools_this_cycle": names,
        "tool_count_this_cycle": len(names),
    }


def _session_metrics(runtime: Runtime) -> SessionMetrics:
    """The session's counters, plus the calls whose answers are not in the history yet."""
    metrics: SessionMetrics = runtime.state["metrics"]
    new = [m for m in _messages(runtime) if isinstance(m, ToolMessage) and not is_history(m)]
    failed = sum(message.status == "error" for message in new)
    return {
        "session_start": metrics["session_start"],
        "total_tool_calls": metrics["total_tool_calls"] + len(new),
        "successful_calls": metrics["successful_calls"] + len(new) - failed,
        "failed_calls": metrics["failed_calls"] + failed,
    }


def _pending(runtime: Runtime) -> list[str]:
    asked = next((m for m in reversed(_messages(runtime)) if isinstance(m, AIMessage)), None)
    calls = asked.tool_calls if asked is not None else []
    ids = [call["id"] for call in calls]
    if runtime.tool_call_id not in ids:
        return []
    return [call["name"] for call in calls[ids.index(runtime.tool_call_id) + 1 :]]


def _messages(runtime: Runtime) -> list[AnyMessage]:
    """The history and this tick's messages, without the copy of this call that `execute` adds."""
    return list(runtime.state["messages"][:-1])


OWNERS_ONLY = "Leave the prompt as it is. An owner can ask for the change."
ASK_AGAIN = "Leave the prompt as it is; it can be asked for again in a later tick."


@built_in
async def update_system_prompt(
    new_prompt: Annotated[
        str, Field(description="What replaces your own prompt, whole; at most 8,000 characters.")
    ],
    runtime: Runtime,
    reasoning: Reasoning = None,
) -> Answer:
    """Replace your own guidelines when an owner asks for it; a person is shown the change first.
    The user's instructions stand above them and stay.
    """
    state, before = runtime.state, runtime.state["assistant_prompt"]
    settings, args = settings_of(runtime.context), {"new_prompt": new_prompt}
    if refusal := why_not(state, runtime.config, settings, args):
        raise refusal
    decision = _confirmed(state, runtime.tool_call_id, new_prompt)
    after = assistant_prompt.changed(
        before,
        assistant_prompt.accepted(before, new_prompt),
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
    """Why the current tick may not change the prompt to what `args` say, or None.

    Checked before a person is asked, so that nobody is asked about a call that is refused anyway.
    """
    if not_owners := not_of_owner(state, config, settings):
        return Refusal(not_owners, OWNERS_ONLY)
    try:
        assistant_prompt.accepted(state["assistant_prompt"], str(args.get("new_prompt", "")))
    except Refusal as refusal:
        return refusal
    return None


def difference_of(state: State, args: Mapping[str, Any]) -> str:
    """The change that a person is asked to confirm, as a diff."""
    before = state["assistant_prompt"]
    try:
        text = assistant_prompt.accepted(before, str(args.get("new_prompt", "")))
    except Refusal as refusal:
        return refusal.error
    return assistant_prompt.difference(before, text)


def _confirmed(state: State, call_id: str | None, text: str) -> Decision:
    """The person's answer that allows this call, for exactly this text and the current prompt.

    Raises a Refusal if nobody was asked, or was asked about something else.
    """
    loop: Loop | None = state["loop"]
    decision = loop["decision"] if loop is not None and loop["dangerous"] == call_id else None
    asked = [one["question"] for one in state["parked"]]
    question = next((one for one in asked if one["id"] == state["resuming"]), None)
    if decision is None or question is None or decision["decision"] == "refuse":
        raise Refusal("No person has confirmed the change", ASK_AGAIN)
    args = decision["args"] if decision["decision"] == "edit" else question["args"]
    still_shown = question["difference"] == difference_of(state, question["args"])
    if (args or {}).get("new_prompt") != text or not still_shown:
        raise Refusal("The change is not the one that was confirmed", ASK_AGAIN)
    return decision


update_system_prompt.metadata = {
    "difference": difference_of,
    "why_not": why_not,
    # It changes only the state, so repeating the call after a crash changes nothing twice.
    "in_state": True,
}


WITH_IT = "(and what was made of it: facts, goals, notes)"
LOOK = "Find it with recall_memories, and give the id that this shows."
BY_HAND = "Say that a person can erase it: `circadian forget --fact ID`, or in the inspector."


@built_in
async def forget_memory(
    memory_id: Annotated[str, Field(description="Its id, from recall_memories or a page.")],
    runtime: Runtime,
) -> Answer:
    """Erase what an owner wants gone."""
    state, store, scope = runtime.state, store_of(runtime), scope_of(runtime.config)
    settings, given = settings_of(runtime.context), {"memory_id": memory_id}
    if refusal := why_not_erased(state, runtime.config, settings, given):
        raise refusal
    hit = _named_memory(state, given)
    earlier, _ = await forgetting.left_over(store, scope)
    if earlier is not None and earlier["entity"] != hit["id"]:
        raise Refusal("Something else is erased first", "Ask for it again in a later tick.")
    begun: forgetting.Begun = {
        "entity": hit["id"],
        "kind": "fact" if hit["kind"] == "fact" else "entry",
        "events": [],
        "memories": [],
        "informed": [],
    }
    if earlier is None:  # else an earlier try of the tick has begun it
        await forgetting.begin(store, scope, begun, [])
    return answer(runtime, {"memory_id": hit["id"], "message": "It is erased after this tick"})


def why_not_erased(
    state: State, config: RunnableConfig, settings: Settings, args: Mapping[str, Any]
) -> Refusal | None:
    """Why the current tick may not have a memory erased, or None; see `why_not`."""
    if resources_of(config).served:  # no use case ends a run there, so nothing would erase it
        return Refusal("Nothing is erased from a conversation here", BY_HAND)
    if not_owners := not_of_owner(state, config, settings):
        return Refusal(not_owners, BY_HAND)
    shown = _named_memory(state, args)
    return None if shown else Refusal("This tick was shown no such memory", LOOK)


def _named_memory(state: State, args: Mapping[str, Any]) -> dict[str, Any]:
    """The memory that a page of the prompt or a recall showed under the given id; {} if none."""
    hits = hits_in(of_tick(state["messages"], state["tick"]))
    told = {one["id"]: one for one in (*_on_pages(state["context"]), *hits)}
    return told.get(prompt_lines.cited(str(args.get("memory_id", "")), told) or "", {})


def _on_pages(context: AssembledContext | None) -> list[dict[str, Any]]:
    """The facts on the prompt's pages, which show the beginnings of their ids."""
    pages = data_in(context.get("front", ""), "pages") if context else None
    ids = context.get("shown", []) if context else []
    lines = filter(None, map(prompt_lines.read_shown, (pages or "").splitlines()))
    named = [(prompt_lines.cited(id_, ids), line) for line in lines for id_ in line.id.split(", ")]
    return [{"id": id_, "kind": "fact", "text": line.text} for id_, line in named if id_]


forget_memory.metadata = {
    "difference": lambda state, args: f"- {one_line(_named_memory(state, args)['text'])} {WITH_IT}",
    "why_not": why_not_erased,
}


LONGEST_NAME, LONGEST_TEXT = 200, 20_000
"""Characters of a recipient or channel, and of a message."""


@built_in
async def send_message(
    to: Annotated[str, Field(description="The name of whom it is for.")],
    text: Annotated[str, Field(description="The whole message.")],
    runtime: Runtime,
    channel: Annotated[
        str | Absent, Field(description="Where to say it; left out: a direct message.")
    ] = None,
) -> Answer:
    """Message somebody else; may wait for a person. Ends your work: answer beside it."""
    to, text, channel = to.strip(), text.strip(), (channel or "").strip() or None
    _check(event_of(runtime), to, text, channel)
    done = runtime.state["loop"]["tools"]
    earlier = sum(one["ok"] for one in done if one["name"] == "send_message")
    origin = origin_of(runtime, collector_of(runtime.config, runtime.store))
    message: SentMessage = {
        "id": f"sent_{operation_id(origin, 'send_message', str(earlier))[:16]}",
        "to": to,
        "text": text,
        "channel": channel,
        "tick": runtime.state["tick"],
        "at": now_of(runtime).isoformat(),
    }
    runtime.stream_writer({"type": "message", **message})
    result = {"message_id": message["id"], "to": to, "channel": channel, "message": "Sent"}
    return answer(runtime, result, artifact={"sent": [message]})


def _check(event: Event | None, to: str, text: str, channel: str | None) -> None:
    if not to:
        raise Refusal("Nobody is named", "Say in `to` whom the message is for.")
    if not text:
        raise Refusal("The message is empty", "Give its text, or call noop.")
    for name, value, most in (
        ("to", to, LONGEST_NAME),
        ("channel", channel or "", LONGEST_NAME),
        ("text", text, LONGEST_TEXT),
    ):
        if len(value) > most:
            raise Refusal(f"`{name}` is longer than {most:,} characters", "Make it shorter.")
    if event is not None and _place(event["sender"], event["channel"]) == _place(to, channel):
        raise Refusal(
            f"{to} is the one you answer now, in the same place",
            "Just answer: what you write without a tool call reaches them.",
        )


def _place(name: str, channel: str | None) -> tuple[str, str]:
    return name.strip().casefold(), (channel or "").strip().casefold()


@built_in
async def delegate_task(
    task: Annotated[
        str,
        Field(
            min_length=1,
            max_length=4_000,
            pattern=r"\S",
            description="The task and the form of its result: all that the sub-agent sees.",
        ),
    ],
    runtime: Runtime,
    context: Annotated[
        str | Absent, Field(max_length=20_000, description="Facts and texts that it needs.")
    ] = None,
) -> Answer:
    """Give a task to a sub-agent that looks things up, thinks and reports; several work at once."""
    raise RuntimeError("delegate_task is carried out by the node delegate")
