"""Running the graph: input goes to the inbox first, then unfinished work is done, then the run."""

from __future__ import annotations

import logging
import math
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any, cast

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.messages.utils import convert_to_messages
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphRecursionError
from langgraph.types import Command, StateSnapshot

from graph.use_cases.context import AgentContext
from memory import journal, telemetry
from memory.errors import CircadianError, InputError, StateError, accepting, failed
from memory.events import Posted, ask_for_stop, check_request, completed, inbox
from memory.messages import event_of, mark_of, message_of, valid_event, with_kind
from memory.records import Event, FailureReport, InboxItem, Report, TickReport, empty_report
from memory.runtime import KEY, RESUMED, UNDONE
from memory.storage import count_items

log = logging.getLogger("circadian")
Input = Mapping[str, Any] | Command[Any] | None

STEPS = 10_000
"""Super-steps of a run beside those for the work at hand."""

EXAMPLE = (
    'an input is an object with messages, events or a request, as {"messages": "Hello"} or '
    '{"request": "sleep"}'
)


async def run(
    context: AgentContext,
    /,
    input: Input = None,
    config: RunnableConfig | None = None,
    *,
    raise_on_failure: bool = True,
    **options: Any,
) -> dict[str, Any]:
    """Run until nothing is pending; return `messages`, `mode`, `report` and `reply`.

    New input is in the inbox before anything else happens. Work that an earlier run left
    unfinished is done first; the report covers it. `reply` answers this input, also where another
    run took it; None where nothing does. The last of `messages` is that answer, or what was said
    and is not answered. `options` go to LangGraph.

    Args:
        raise_on_failure: False returns the report of a run in which a tick or a night failed.

    Raises:
        InputError: the input is malformed; nothing was taken.
        BusyError: another process holds the agent; the input waits in the inbox.
        ModelError: a tick failed; its event waits in the inbox, and the error has the `report`.
        CircadianError: the run reached its recursion limit; the next run resumes it.
    """
    with accepting():
        prepared = await accept(context, input)
    passed = _passed(context, options)
    async with prepare(context, config, passed) as bound:
        async with aclosing(_resume(context, bound, passed)) as earlier:
            async for _ in earlier:
                pass
        with telemetry.invoke_agent(context.scope.thread):
            output = await context.graph.ainvoke(prepared, bound, **passed)
    if raise_on_failure:
        check_failures(output.get("report"))
    return await _with_reply(context, prepared, output)


async def stream(
    context: AgentContext,
    /,
    input: Input = None,
    config: RunnableConfig | None = None,
    *,
    raise_on_failure: bool = True,
    **options: Any,
) -> AsyncGenerator[Any]:
    """As `run`, yielding LangGraph's stream. The next run resumes one that was left early.

    A failure is raised at the end, after everything was yielded.
    """
    with accepting():
        prepared = await accept(context, input)
    passed = _passed(context, options)
    # Closed here and not by the garbage collector: no step may outlive the lock.
    async with prepare(context, config, passed) as bound:
        async with aclosing(_resume(context, bound, passed)) as earlier:
            async for part in earlier:
                yield part
        async with aclosing(_parts(context, prepared, bound, passed)) as parts:
            async for part in parts:
                yield part
        if raise_on_failure:
            check_failures((await context.graph.aget_state(bound)).values.get("report"))


def check_failures(report: Report | None) -> None:
    """Raise the error of a run in which something failed, with the report."""
    failures = report["failures"] if report else []
    if not failures:
        return
    error = failed(failures[0].get("kind", ""), "; ".join(_told(one) for one in failures))
    error.report = report
    raise error


def _told(failure: FailureReport) -> str:
    if failure["event_id"] is None:
        return failure["error"]
    waits = "was set aside" if failure["set_aside"] else "waits in the inbox"
    return f"{failure['error']} (event {failure['event_id']} {waits})"


async def _with_reply(
    context: AgentContext, prepared: Any, output: Mapping[str, Any]
) -> dict[str, Any]:
    """The output with the reply to this input, and with no other answer as its last message."""
    messages = list(output.get("messages") or [])
    asked = _asked(prepared)
    if not asked:
        return {**output, "reply": None}
    report: Report = output["report"]
    ticks = {tick["event_id"]: tick for tick in report["ticks"] if tick["event_id"] in asked}
    settled = {*ticks, *(one["event_id"] for one in report["failures"]), *report["context_only"]}
    settled |= {one["event_id"] for one in report["ignored"]}
    settled |= {one["event_id"] for one in report["questions"]}
    for id_ in [id_ for id_ in asked if id_ not in settled]:
        if tick := await tick_of(context, id_):
            ticks[id_] = tick
    last = next((ticks[id_] for id_ in reversed(asked) if id_ in ticks), None)
    ticks_of = [mark_of(message).get("tick") for message in messages]
    if last is None or last["tick"] not in ticks_of:
        known = {message.id for message in messages}
        unanswered = [one for id_, one in asked.items() if id_ not in known]
        return {**output, "messages": [*messages, *unanswered], "reply": None}
    end = len(messages) - ticks_of[::-1].index(last["tick"])
    return {**output, "messages": messages[:end], "reply": last["reply"]}


def _asked(prepared: Any) -> dict[str, BaseMessage]:
    if not isinstance(prepared, Mapping):
        return {}
    said = {str(one.id): one for one in prepared["messages"]}
    return said | {one["id"]: message_of(one, tick=0) for one in prepared["events"]}


async def tick_of(context: AgentContext, event_id: str) -> TickReport | None:
    """The tick on an event, of whatever run; None if it has none, or none that is kept still."""
    now = await context.snapshot()
    handled = now.values.get("handled", [])
    waiting = await inbox.waiting(context.store, context.scope, handled)
    aside = await inbox.set_aside(context.store, context.scope)
    if event_id in {item["event"]["id"] for item in [*waiting, *aside]}:
        return None
    async for snapshot in context.graph.aget_state_history(context.config()):
        earlier: Report = snapshot.values.get("report", empty_report())
        found = [tick for tick in earlier["ticks"] if tick["event_id"] == event_id]
        if found:
            return found[-1]
    return None


async def accept(context: AgentContext, input: Input) -> Any:
    """Check the input and put it into the inbox, before any lock is taken."""
    if isinstance(input, Command):
        return _answer_to_current(input, await context.snapshot())
    given = _checked(input)
    messages = await _messages(context, given.get("messages") or [])
    now = context.now()
    spoken = [event_of(message, owner=context.owner, now=now) for message in messages]
    said = [
        with_kind(valid_event(event), message)
        for event, message in zip(spoken, messages, strict=True)
        if event["text"].strip()
    ]
    events = [_event(context, raw) for raw in given.get("events") or []]
    await inbox.post(context.store, context.scope, [*said, *events], now=context.now())
    if given.get("request") == "stop":
        await ask_for_stop(context.store, context.scope, at=now, by=context.scope.user)
    return {"messages": messages, "events": events, "request": given.get("request")}


async def post(
    context: AgentContext, events: Mapping[str, Any] | Sequence[Mapping[str, Any]]
) -> Posted:
    """Put events into the inbox; takes no lock, so it works while a run holds the agent.

    Each has `text`, and may have `id`, `at` (ISO 8601), `sender`, `channel`, `addressed`.

    Raises:
        InputError: an event is malformed; none was taken.
    """
    given = [events] if isinstance(events, Mapping) else list(events)
    complete = [_event(context, raw) for raw in given]
    return await inbox.post(context.store, context.scope, complete, now=context.now())


async def withdraw(context: AgentContext, event_id: str) -> InboxItem:
    """Take an event that waits, or was set aside, out of the inbox; returns it.

    Raises:
        NotFoundError: no such event waits; one whose tick the state contains does not.
        BusyError: another process holds the agent.
    """
    async with context.held():
        marks = (await context.snapshot()).values.get("handled") or []
        await inbox.settle(context.store, context.scope, marks)
        return await inbox.withdraw(context.store, context.scope, event_id)


@asynccontextmanager
async def prepare(
    context: AgentContext, config: RunnableConfig | None, passed: Mapping[str, Any]
) -> AsyncIterator[RunnableConfig]:
    """Hold the agent for one run; yields the run's config."""
    async with context.held() as undone:
        bound = context.config(config)
        bound["configurable"][UNDONE] = undone
        bound.setdefault("recursion_limit", await _recursion_limit(context))
        if passed["durability"] != "sync":
            bound["configurable"][KEY] = replace(context.resources, synced=False)
        try:
            yield bound
        except GraphRecursionError as error:
            raise CircadianError(
                f"the run ended at its limit of {bound['recursion_limit']} steps; nothing is "
                "lost: run again, and it goes on"
            ) from error


async def _resume(
    context: AgentContext, bound: RunnableConfig, passed: Mapping[str, Any]
) -> AsyncGenerator[Any]:
    """Finish an unfinished run, told by its tasks: `next` can be empty while work waits.

    Puts that run's report into `bound`, so that the run that follows continues it.
    """
    tasks = (await context.graph.aget_state(bound)).tasks
    if not tasks or any(task.interrupts for task in tasks):
        return
    log.info("resuming the unfinished run at %s", ", ".join(task.name for task in tasks))
    try:
        async with aclosing(_parts(context, None, bound, passed)) as parts:
            async for part in parts:
                yield part
    except StateError:
        raise
    except InputError as error:
        log.warning("an earlier input was malformed and is dropped: %s", error)
    else:
        done = await context.graph.aget_state(bound)
        bound["configurable"][RESUMED] = done.values.get("report")


def _parts(
    context: AgentContext, input: Any, bound: RunnableConfig, passed: Mapping[str, Any]
) -> AsyncGenerator[Any]:
    """LangGraph's stream, typed as what it is: a generator, which can be closed."""
    parts = cast(AsyncGenerator[Any], context.graph.astream(input, bound, **passed))
    return telemetry.invoke_agent_stream(context.scope.thread, parts)


def _passed(context: AgentContext, options: Mapping[str, Any]) -> dict[str, Any]:
    return {"context": context.settings, "durability": "sync", **options}


async def _recursion_limit(context: AgentContext) -> int:
    """A guard against endless loops only, as events may arrive during the run.

    LangGraph counts super-steps per graph level; an event takes two.
    """
    store, scope, settings = context.store, context.scope, context.settings
    events = await count_items(store, scope.namespace(inbox.INBOX))
    entries = await count_items(store, scope.namespace(journal.PENDING)) + events
    batches = math.ceil(entries / settings.score_batch_size)
    batches += math.ceil(entries / settings.consolidate_batch_size) * (
        settings.max_iterations_sleep + 1
    )
    return STEPS + 2 * events + batches


def _checked(given: Any) -> dict[str, Any]:
    """The input as an object of known keys. Raises InputError with an example."""
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"{EXAMPLE}; got {given!r:.80}")
    taken = dict(given or {})
    unknown = set(taken) - {"messages", "events", "request"}
    if unknown:
        raise InputError(
            f"unknown input: {', '.join(sorted(unknown))}; known are messages, events, request"
        )
    check_request(taken.get("request"))
    if isinstance(taken.get("messages"), str) and not taken["messages"].strip():
        raise InputError("the message is empty")
    events = taken.get("events") or []
    if not isinstance(events, list | tuple):
        raise InputError(f"events must be a list of objects with a text; got {events!r:.80}")
    return taken


def _answer_to_current(command: Command[Any], now: StateSnapshot) -> Command[Any]:
    """Bind an answer to the question that waits now, so that no later question takes it."""
    if command.resume is None:
        return command
    waiting = [interrupt.id for task in now.tasks for interrupt in task.interrupts]
    if not waiting:
        raise InputError("no question stands to be answered; approve or refuse it by id")
    if isinstance(command.resume, dict) and command.resume.keys() & set(waiting):
        return command
    return replace(command, resume={waiting[0]: command.resume})


async def _messages(context: AgentContext, given: Any) -> list[HumanMessage]:
    """The input's messages, each with an id. Raises InputError for the id of an answer."""
    messages = _human_messages(given)
    if any(message.id for message in messages):
        known = (await context.snapshot()).values.get("messages", [])
        answers = {one.id for one in known if not isinstance(one, HumanMessage)}
        for message in messages:
            if message.id in answers:
                raise InputError(
                    f"messages: the id {message.id!r:.80} is that of an answer; leave the id out"
                )
    return [
        message if message.id else message.model_copy(update={"id": str(uuid.uuid4())})
        for message in messages
    ]


def _human_messages(messages: Any) -> list[HumanMessage]:
    given = [messages] if isinstance(messages, str | dict | tuple | BaseMessage) else messages
    try:
        converted = convert_to_messages(given)
    except (ValueError, NotImplementedError, TypeError) as error:
        raise InputError(f"messages: {error}") from None
    for message in converted:
        if not isinstance(message, HumanMessage):
            raise InputError(f"messages must be human messages; got one of type {message.type!r}")
    return cast(list[HumanMessage], converted)


def _event(context: AgentContext, raw: Any) -> Event:
    if not isinstance(raw, Mapping):
        raise InputError(f"an event must be an object with a text; got {raw!r:.80}")
    now = context.now()
    return valid_event(completed(raw, id_=str(uuid.uuid4()), owner=context.owner, now=now))
