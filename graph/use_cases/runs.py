"""Running the graph: input goes to the inbox first, then unfinished work is done, then the run."""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage

from graph.use_cases.context import AgentContext, Standing, is_needless, naming
from graph.use_cases.forgetting import forget_begun
from memory import telemetry
from memory.errors import BusyError, CircadianError, InputError, StateError, accepting, failed
from memory.events import ask_for_stop, inbox
from memory.messages import as_messages, event_of, message_of, ticks_of, valid_event, with_kind
from memory.records import (
    Event,
    FailureReport,
    InboxItem,
    Report,
    TickReport,
    empty_report,
    is_reflection,
)
from memory.runtime import RESUMED, UNDONE, checked_settings
from memory.state import at_rest
from memory.storage import HELD, HeldCheckpoints

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.types import Command, StateSnapshot

log = logging.getLogger("circadian")
Input: TypeAlias = "Mapping[str, Any] | Command[Any] | None"

MOST_STEPS = 200_000
"""Super-steps of a run, of which an event takes two: a guard against endless loops only."""

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
) -> dict[str, Any] | Any:
    """Run until nothing is pending; return `messages`, `mode`, `report` and `reply`.

    New input is in the inbox before anything else happens. Work that an earlier run left
    unfinished is done first; the report covers it. `reply` answers this input, also where another
    run took it; None where nothing does. The last of `messages` is that answer, or what was said
    and is not answered. `options` go to LangGraph; `version="v2"` gives its `GraphOutput`.

    Args:
        raise_on_failure: False returns the report of a run in which a tick or a night failed.

    Raises:
        InputError: the input, or the settings in `context`, are malformed; nothing was taken.
        BusyError: another process holds the agent; the input waits in the inbox.
        ModelError: a tick failed; its event waits in the inbox, and the error has the `report`.
        CircadianError: the run reached its recursion limit; the next run resumes it.
    """
    options = _graph_options(context, options)
    with accepting():
        accepted = await accept(context, input)
    try:
        async with prepare(context, config, options) as run_config:
            now = await context.standing(run_config)
            output = await _output_of_another_run(context, accepted, now)
            if output is None:
                async with aclosing(_resume(context, run_config, options, now)) as earlier:
                    async for _ in earlier:
                        pass
                with telemetry.invoke_agent(context.scope.thread):
                    output = await context.graph.ainvoke(accepted.input, run_config, **options)
    except BusyError:
        now = await context.standing(context.config())
        if (output := await _output_of_another_run(context, accepted, now)) is None:
            raise
    given, report = await _replying(context, accepted, output, options)
    if raise_on_failure:
        check_failures(report, accepted.asked)
    return given


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

    At the top level `messages` gives the words of the reply to this input alone, and `values` keeps
    the messages that wait. A failure is raised at the end, after everything was yielded.
    """
    options = _graph_options(context, options)
    with accepting():
        accepted = await accept(context, input)
    shown = CallerStream(options, accepted.asked)
    options = shown.options
    # Closed here and not by the garbage collector: no step may outlive the lock.
    try:
        async with prepare(context, config, options) as run_config:
            now = await context.standing(run_config)
            output = await _output_of_another_run(context, accepted, now)
            if output is None:
                parts = _run_parts(context, accepted, run_config, options, now)
                async with aclosing(parts):
                    async for part in parts:
                        for own in shown.of(part):
                            yield own
                if raise_on_failure:
                    values = (await context.graph.aget_state(run_config)).values
                    check_failures(values.get("report"), accepted.asked)
    except BusyError:
        now = await context.standing(context.config())
        if (output := await _output_of_another_run(context, accepted, now)) is None:
            raise
    if output is not None:
        for own in shown.late(await _with_reply(context, accepted, output)):
            yield own


async def _run_parts(
    context: AgentContext,
    accepted: PostedInput,
    run_config: RunnableConfig,
    options: Mapping[str, Any],
    now: Standing,
) -> AsyncGenerator[Any]:
    async with aclosing(_resume(context, run_config, options, now)) as earlier:
        async for part in earlier:
            yield part
    async with aclosing(_parts(context, accepted.input, run_config, options)) as parts:
        async for part in parts:
            yield part


def check_failures(report: Report | None, asked: Collection[str] = ()) -> None:
    """Raise the error of a run in which something failed, with the report.

    The failure of another caller's event is not raised to one whose own events (`asked`) all have
    their ticks.
    """
    failures = report["failures"] if report else []
    if report and asked and {*asked} <= {tick["event_id"] for tick in report["ticks"]}:
        failures = [one for one in failures if one["event_id"] is None or one["event_id"] in asked]
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


async def _output_of_another_run(
    context: AgentContext, accepted: PostedInput, now: Standing
) -> dict[str, Any] | None:
    """The output where another run handled all of this input and nothing else waits, else None."""
    if not accepted.fresh or accepted.fresh != accepted.asked.keys() or accepted.request:
        return None
    found = [await _tick_in(now.values, context, id_) for id_ in accepted.asked]
    if not all(found) or any(not task.interrupts for task in now.tasks):
        return None
    if await inbox.waiting(context.store, context.scope, now.values["handled"]):
        return None
    return {**now.values, "report": empty_report()}


async def _replying(
    context: AgentContext, accepted: PostedInput, output: Any, options: Mapping[str, Any]
) -> tuple[Any, Report | None]:
    """The output with the reply, in LangGraph's form, and the report.

    With a `stream_mode` or `output_keys` of the caller's it is what they asked for.
    """
    from langgraph.types import GraphOutput

    wrapped = isinstance(output, GraphOutput)
    value = output.value if wrapped else output
    if not isinstance(value, Mapping) or not {"messages", "report"} <= value.keys():
        return output, (await context.snapshot()).values.get("report")
    value = await _with_reply(context, accepted, value)
    if options.get("version") == "v2":
        return GraphOutput(value, output.interrupts if wrapped else ()), value["report"]
    return value, value["report"]


async def _with_reply(
    context: AgentContext, accepted: PostedInput, output: Mapping[str, Any]
) -> dict[str, Any]:
    """The output with the reply to this input, and with no other answer as its last message.

    The report has the ticks on this input, also where another run handled it.
    """
    messages, asked = list(output.get("messages") or []), accepted.asked
    if not asked:
        return {**output, "reply": None}
    report: Report = output["report"]
    # Of some events the report says nothing: other runs had their ticks.
    settled = {one["event_id"] for one in (*report["failures"], *report["questions"])}
    settled |= {one["event_id"] for one in (*report["ticks"], *report["ignored"])}
    settled.update(report["context_only"])
    missing = [await tick_of(context, id_) for id_ in asked if id_ not in settled]
    found = [tick for tick in missing if tick is not None]
    ticks = {one["event_id"]: one for one in (*found, *report["ticks"])}
    added = [one for one in found if one["event_id"] in accepted.fresh]
    others = {one["event_id"] for one in added}
    report = {
        **report,
        "ticks": [*added, *report["ticks"]],
        "skipped": [id_ for id_ in report["skipped"] if id_ not in others],
    }
    last = next((ticks[id_] for id_ in reversed(asked) if id_ in ticks), None)
    told_in = ticks_of(messages)
    if last is None or last["tick"] not in told_in:
        known = {message.id for message in messages}
        messages += [one for id_, one in asked.items() if id_ not in known]
        return {**output, "report": report, "messages": messages, "reply": None}
    end = len(messages) - told_in[::-1].index(last["tick"])
    return {**output, "report": report, "messages": messages[:end], "reply": last["reply"]}


async def tick_of(context: AgentContext, event_id: str) -> TickReport | None:
    """The tick on an event, of whatever run; None if it has none, or none that is kept still."""
    return await _tick_in(await context.values(), context, event_id)


async def _tick_in(
    values: Mapping[str, Any], context: AgentContext, event_id: str
) -> TickReport | None:
    report: Report = values.get("report") or empty_report()
    for tick in reversed(report["ticks"]):
        if tick["event_id"] == event_id:
            return cast(TickReport, tick)
    return await inbox.report_on(context.store, context.scope, event_id)


class PostedInput(NamedTuple):
    """A caller's input, checked and in the inbox."""

    input: Any
    """For the graph."""
    asked: dict[str, BaseMessage]
    """The messages and events in it, by event id."""
    fresh: frozenset[str]
    """Ids among them that were not known before."""
    request: str | None


async def accept(context: AgentContext, input: Input) -> PostedInput:
    """Check the input and put it into the inbox, before any lock is taken."""
    from langgraph.types import Command

    if isinstance(input, Command):
        answer = _answer_to_current(input, await context.snapshot())
        return PostedInput(answer, {}, frozenset(), None)
    given = _checked(input)
    messages = await _messages(context, given.get("messages") or [])
    now = context.now()
    said = [
        with_kind(valid_event(event), message)
        for message in messages
        if (event := event_of(message, owner=context.owner, now=now))["text"].strip()
    ]
    events = [_event(context, raw) for raw in given.get("events") or []]
    also = naming(context.scope, context.name)
    posted = await inbox.post(context.store, context.scope, [*said, *events], now=now, also=also)
    request = given.get("request")
    if request == "stop":
        await ask_for_stop(context.store, context.scope, at=now, by=context.scope.user)
    asked = {str(one.id): cast(BaseMessage, one) for one in messages}
    asked |= {one["id"]: message_of(one, tick=0) for one in events}
    prepared = {"messages": messages, "events": events, "request": request}
    return PostedInput(prepared, asked, frozenset(posted.accepted), request)


async def post(
    context: AgentContext, events: Mapping[str, Any] | Sequence[Mapping[str, Any]]
) -> inbox.Posted:
    """Put events into the inbox; takes no lock, so it works while a run holds the agent.

    Each has `text`, and may have `id`, `at` (ISO 8601), `sender`, `channel`, `addressed`.

    Raises:
        InputError: an event is malformed; none was taken.
    """
    given = [events] if isinstance(events, Mapping) else list(events)
    complete = [_event(context, raw) for raw in given]
    now, also = context.now(), naming(context.scope, context.name)
    return await inbox.post(context.store, context.scope, complete, now=now, also=also)


async def stop_answer(context: AgentContext, event_id: str) -> None:
    """Take back an event whose tick was stopped: it waits no longer, and its run does not go on."""
    async with context.held():
        values = (await context.snapshot()).values
        if values:
            await context.replace_state(at_rest(values))
        tick, at = int(values.get("tick", 0)), context.now().isoformat()
        await inbox.settle(context.store, context.scope, [{"id": event_id, "tick": tick, "at": at}])


async def withdraw(context: AgentContext, event_id: str) -> InboxItem:
    """Take an event that waits, or was set aside, out of the inbox; returns it.

    Raises:
        NotFoundError: no such event waits; one whose tick the state contains does not.
        InputError: its tick waits for an answer, and would go on all the same.
        BusyError: another process holds the agent.
    """
    async with context.held():
        values = (await context.snapshot()).values
        await inbox.settle(context.store, context.scope, values.get("handled") or [])
        for one in values.get("parked") or []:
            if one["event"] and one["event"]["id"] == event_id:
                raise InputError(f"{one['question']['id']} is about {event_id!r}: refuse it first")
        return await inbox.withdraw(context.store, context.scope, event_id)


@asynccontextmanager
async def prepare(
    context: AgentContext, config: RunnableConfig | None, options: Mapping[str, Any]
) -> AsyncIterator[RunnableConfig]:
    """Hold the agent for one run; yields the run's config."""
    from langgraph.errors import GraphRecursionError

    async with context.held() as undone:
        run_config = context.config(config)
        run_config["configurable"][UNDONE] = undone
        run_config.setdefault("recursion_limit", MOST_STEPS)
        held = HeldCheckpoints(is_needless)
        if options["durability"] == "sync":
            run_config["configurable"][HELD] = held
        try:
            yield run_config
        except GraphRecursionError as error:
            raise CircadianError(
                f"the run ended at its limit of {run_config['recursion_limit']} steps; nothing is "
                "lost: run again, and it goes on"
            ) from error
        if held.stored:
            await inbox.settled(context.store, context.scope, held.stored, held.stored["handled"])
        await forget_begun(context)


async def _resume(
    context: AgentContext, run_config: RunnableConfig, options: Mapping[str, Any], now: Standing
) -> AsyncGenerator[Any]:
    """Finish an unfinished run. It has tasks; its `next` can be empty while work waits.

    Its report goes into `run_config`, so that the run that follows extends it.
    """
    tasks = now.tasks
    if not tasks or any(task.interrupts for task in tasks):
        return
    log.info("resuming the unfinished run at %s", ", ".join(task.name for task in tasks))
    try:
        async with aclosing(_parts(context, None, run_config, options)) as parts:
            async for part in parts:
                yield part
    except StateError:
        raise
    except InputError as error:
        log.warning("an earlier input was malformed and is dropped: %s", error)
    else:
        done = await context.graph.aget_state(run_config)
        run_config["configurable"][RESUMED] = done.values.get("report")


def _parts(
    context: AgentContext, input: Any, run_config: RunnableConfig, options: Mapping[str, Any]
) -> AsyncGenerator[Any]:
    """LangGraph's stream, typed as what it is: a generator, which can be closed."""
    parts = cast(AsyncGenerator[Any], context.graph.astream(input, run_config, **options))
    return telemetry.invoke_agent_stream(context.scope.thread, parts)


def _graph_options(context: AgentContext, options: Mapping[str, Any]) -> dict[str, Any]:
    settings = checked_settings(options.get("context") or context.settings)
    return {"durability": "sync", **options, "context": settings}


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
    inbox.check_request(taken.get("request"))
    if isinstance(taken.get("messages"), str) and not taken["messages"].strip():
        raise InputError("the message is empty")
    events = taken.get("events") or []
    if not isinstance(events, list | tuple):
        raise InputError(f"events must be a list of objects with a text; got {events!r:.80}")
    return taken


def _answer_to_current(command: Command[Any], now: StateSnapshot) -> Command[Any]:
    """Bind an answer to the question that waits now, so that no later question takes it."""
    if command.resume is None:
        if not command.update and not command.goto:
            raise InputError("the command is empty: give it a `resume`, an `update` or a `goto`")
        return command
    waiting = [interrupt.id for task in now.tasks for interrupt in task.interrupts]
    if not waiting:
        raise InputError("no question stands to be answered; approve or refuse it by id")
    if isinstance(command.resume, dict) and command.resume.keys() & set(waiting):
        return command
    return replace(command, resume={waiting[0]: command.resume})


async def _messages(context: AgentContext, given: Any) -> list[HumanMessage]:
    """The input's messages, each with an id. Raises InputError for the id of an answer."""
    messages = cast(list[HumanMessage], as_messages(given))
    for message in messages:
        if not isinstance(message, HumanMessage):
            raise InputError(f"messages must be human messages; got one of type {message.type!r}")
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


def _event(context: AgentContext, raw: Any) -> Event:
    if not isinstance(raw, Mapping):
        raise InputError(f"an event must be an object with a text; got {raw!r:.80}")
    now = context.now()
    return valid_event(inbox.completed(raw, id_=str(uuid.uuid4()), owner=context.owner, now=now))


DEFAULT = "updates"
"""LangGraph's stream mode for a graph with a state."""


class CallerStream:
    """Chooses and shapes the parts of a run's stream for its caller."""

    def __init__(self, options: Mapping[str, Any], asked: Mapping[str, BaseMessage]) -> None:
        """`options`: of the caller, for LangGraph. `asked`: their input, by event id."""
        given = options.get("stream_mode") or DEFAULT
        self._modes = [given] if isinstance(given, str) else list(given)
        self._single = isinstance(given, str)
        self._version = options.get("version", "v1")
        self._options, self._asked = dict(options), asked
        self._nested = bool(options.get("subgraphs"))
        self._words = "messages" in self._modes and not self._nested
        self._mine = not asked
        """Whether the tick in hand is on the caller's input."""

    @property
    def options(self) -> dict[str, Any]:
        """The options with which LangGraph has to be called."""
        if not self._words:
            return self._options
        modes = list(dict.fromkeys([*self._modes, "updates"]))
        return {**self._options, "stream_mode": modes, "subgraphs": True}

    def of(self, part: Any) -> Iterator[Any]:
        """The part as the caller gets it; nothing if it is not for them."""
        namespace, mode, data = self._read(part)
        more = part if self._version == "v2" else {}
        if not self._words:
            yield self._shaped(namespace, mode, data, more)
            return
        if mode == "updates" and not namespace:
            self._follow(data)
        if mode == "messages":
            if self._mine and _is_reply(namespace, *data):
                yield self._shaped((), mode, data, more)
        elif not namespace and mode in self._modes:
            yield self._shaped((), mode, data, more)

    def late(self, output: Mapping[str, Any]) -> Iterator[Any]:
        """The parts of a run that another caller's run made needless."""
        if self._nested:
            return
        ticks: Sequence[TickReport] = output["report"]["ticks"]
        for mode in self._modes:
            if mode == "messages":
                for tick in (one for one in ticks if one["reply"]):
                    said = AIMessageChunk(content=tick["reply"], id=f"reply_{tick['tick']}")
                    yield self._shaped((), mode, (said, {"langgraph_node": "act"}), {})
            elif mode == "values":
                yield self._shaped((), mode, dict(output), {})

    def _follow(self, update: Any) -> None:
        taken = update.get("intake") if isinstance(update, Mapping) else None
        if not isinstance(taken, Mapping) or taken.get("turn") != "tick":
            return
        event = taken.get("event")
        if self._asked:
            self._mine = event is not None and event["id"] in self._asked
        else:
            self._mine = event is None or not is_reflection(event)

    def _read(self, part: Any) -> tuple[tuple[str, ...], str, Any]:
        if self._version == "v2":
            return tuple(part["ns"]), part["type"], part["data"]
        if self._words:
            namespace, mode, data = part
            return namespace, mode, data
        namespace = part[0] if self._nested else ()
        rest = part[1:] if self._nested else (part,) if self._single else part
        mode, data = (self._modes[0], *rest) if self._single else rest
        return namespace, mode, data

    def _shaped(
        self, namespace: tuple[str, ...], mode: str, data: Any, more: Mapping[str, Any]
    ) -> Any:
        if self._version == "v2":
            return {**more, "type": mode, "ns": namespace, "data": data}
        shaped = (data,) if self._single else (mode, data)
        if self._nested:
            return (namespace, *shaped)
        return data if self._single else shaped


def _is_reply(namespace: Sequence[str], message: Any, metadata: Mapping[str, Any]) -> bool:
    in_tick = len(namespace) == 1 and namespace[0].startswith("awake:")
    if not in_tick or metadata.get("langgraph_node") != "act":
        return False
    if not isinstance(message, AIMessage) or message.tool_calls:
        return False
    return bool(str(message.text)) and not getattr(message, "tool_call_chunks", None)
