"""Validation of the state: what a node may return, what `intake` may find; stopping between nodes.

LangGraph Server shuts down by cancelling its runs wherever they are, so that the answer a model is
giving is paid for and lost. A server therefore stops the steps first: running ones finish, and new
ones wait until their run is cancelled. The run is then at a checkpoint, and the thread's next run,
such as the server's own at its next start, resumes it.
"""

from __future__ import annotations

import asyncio
import functools
import json
import math
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast, get_type_hints

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, messages_from_dict
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from memory.errors import StateError, explained
from memory.messages import mark_of, open_calls
from memory.planning import recompute
from memory.records import ParkedTick, Report, empty_report
from memory.state.schema import REDUCED_KEYS, SCHEMA_VERSION, State
from memory.text import error_without_secrets

PAUSE = 0.05
"""Seconds between two checks for running steps."""

SETTLE = 2.0
"""Longest wait, in seconds, for the checkpoint of a run's last step."""


class Steps:
    """The running steps of a process, which may have several threads, each with an event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_hand: dict[str, int] = {}
        """Running steps per thread id. While stopping, 0 until the last step is checkpointed."""
        self._stopping = False

    @asynccontextmanager
    async def step(self) -> AsyncIterator[None]:
        """Encloses a node's work. Once the process stops, waits to be cancelled instead."""
        thread = _thread()
        with self._lock:
            steps, begins = self._in_hand.get(thread, 0), not self._stopping
            if begins:
                self._in_hand[thread] = steps + 1
            elif not steps:
                self._in_hand.pop(thread, None)
        if not begins:
            await asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            with self._lock:
                steps = self._in_hand.get(thread, 1) - 1
                if steps or self._stopping:
                    self._in_hand[thread] = steps
                else:
                    self._in_hand.pop(thread, None)

    async def stop(self, seconds: float) -> int:
        """Let no step begin, wait for running ones; return how many runs still have one."""
        with self._lock:
            self._stopping = True
        await _until(lambda: not self._left(), seconds)
        left = self._left()
        # LangGraph checkpoints a step before it begins the next.
        await _until(lambda: self._in_hand.keys() <= left, SETTLE)
        return len(left)

    @property
    def stopping(self) -> bool:
        """Whether no step begins any more."""
        with self._lock:
            return self._stopping

    def start(self) -> None:
        """Let steps begin."""
        with self._lock:
            self._stopping = False
            self._in_hand.clear()

    def _left(self) -> set[str]:
        with self._lock:
            return {thread for thread, steps in self._in_hand.items() if steps}


STEPS = Steps()


async def _until(reached: Callable[[], bool], seconds: float) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not reached():
        if loop.time() >= end:
            return
        await asyncio.sleep(PAUSE)


def _thread() -> str:
    """The run's thread id; empty for a node that is called by hand."""
    from langgraph.config import get_config  # not loaded where a state is only read

    try:
        return str(get_config().get("configurable", {}).get("thread_id", ""))
    except RuntimeError:
        return ""


_MESSAGE_KEYS = ("messages", "exchange")
"""Validated by LangGraph's message reducer; message classes are no plain JSON."""

_INPUT_KEYS = ("events", "request")
"""Validated when input is taken in; gone in the next step."""

_SET_BY_EACH_RUN = ("turn", "report")
"""Set by every run; an earlier value is never used, so it need not be valid."""


@functools.cache
def _form(schema: type) -> tuple[frozenset[str], TypeAdapter[dict[str, Any]]]:
    """The keys of a state, and the form of their values: one look at many costs less than many."""
    # Channels mean nothing to a type: LangGraph's are not loaded for it.
    hints = get_type_hints(schema, localns={"ephemeral": lambda: None})
    kept = {key: Any if key in _MESSAGE_KEYS else hint for key, hint in hints.items()}
    form: Any = TypedDict(schema.__name__, kept, total=False)  # type: ignore[misc]
    adapter: TypeAdapter[Any] = TypeAdapter(form)
    return frozenset(hints), adapter


def checked(node: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Decorate a node: an unknown key or a wrong type in its output is an error.

    The valid keys are those of the type of its argument `state`. No node starts while the process
    is stopping (`Steps`). What a node raises has no secrets, since LangGraph keeps it.
    """
    from langgraph.errors import GraphBubbleUp
    from langgraph.types import Command, Overwrite  # not loaded where a state is only read

    schema = get_type_hints(node).get("state", State)
    keys, _ = _form(schema)

    @functools.wraps(node)
    async def run(*args: Any, **kwargs: Any) -> Any:
        async with STEPS.step():
            try:
                output = await node(*args, **kwargs)
            except GraphBubbleUp:  # no error: an interrupt
                raise
            except Exception as error:
                if (masked := error_without_secrets(error)) is error:
                    raise
                raise masked from None
        update = dict((output.update if isinstance(output, Command) else output) or {})
        name = getattr(node, "__name__", "node")
        if not update.keys() <= keys:
            unknown = next(key for key in update if key not in keys)
            raise StateError(f"node {name} returned the unknown key {unknown!r}")
        values = {key: one for key, one in update.items() if not isinstance(one, Overwrite)}
        if problem := _problem(values, schema):
            raise StateError(f"node {name} returned a wrong {problem}")
        return output

    return run


def state_problem(state: Mapping[str, Any]) -> str | None:
    """What is wrong with the checkpointed state, with the key; None if it is valid."""
    version = state.get("schema_version", SCHEMA_VERSION)
    if isinstance(version, int) and version > SCHEMA_VERSION:
        return (
            f"the thread was written by a newer Circadian (state schema {version}, this one knows "
            f"{SCHEMA_VERSION}); update Circadian"
        )
    # LangGraph initialises a key with a reducer as {}, which is no value of ours.
    values = {
        key: value
        for key, value in state.items()
        if not (key in _INPUT_KEYS or (key in REDUCED_KEYS and value == {}))
    }
    problem = _problem(values) or next(filter(None, map(_out_of_range, values.items())), None)
    if problem:
        return f"the thread's state has a wrong {problem}. Mend it with update_state and run again"
    try:
        recompute(state.get("goals", {}))
    except StateError as error:
        return f"{error}. Mend it with update_state and run again"
    return None


def kept_problem(state: Mapping[str, Any]) -> str | None:
    """As `state_problem`, without the keys that every run sets anew."""
    return state_problem(
        {key: value for key, value in state.items() if key not in _SET_BY_EACH_RUN}
    )


def report_so_far(report: Any) -> Report:
    """The report to continue with; an empty one if `report` is invalid."""
    sound = report is not None and _problem({"report": report}) is None
    return cast(Report, report) if sound else empty_report()


def _problem(values: Mapping[str, Any], schema: type = State) -> str | None:
    try:
        _form(schema)[1].validate_python(values, strict=True)
    except ValidationError as error:
        return explained(error.errors())[0]
    return None


def _out_of_range(item: tuple[str, Any]) -> str | None:
    """Check ranges and references of a key's value, which has the right type."""
    key, value = item
    match key:
        case "tick" | "goal_index" if value < 0:
            return f"{key}: must not be below 0, is {value}"
        case "calibration" if not (math.isfinite(value) and value > 0):
            return f"{key}: must be a finite number above 0, is {value}"
        case "projects" if value["active"] is not None and value["active"] not in value["slots"]:
            return f"projects.active: no slot is named {value['active']!r}"
        case "parked":  # a person approves only what was shown
            for place, tick in enumerate(value):
                problem = _not_as_parked(tick)
                if problem:
                    return f"parked.{place}.{problem}"
    return None


def _not_as_parked(parked: ParkedTick) -> str | None:
    """Why a tick cannot resume with the answer to its question."""
    try:
        messages = messages_from_dict(parked["messages"])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return f"messages: one cannot be read ({type(error).__name__})"
    written = HumanMessage | AIMessage | ToolMessage
    if not all(isinstance(one, written) and mark_of(one) for one in messages):
        return "messages: one is no message of a tick, or lacks its mark"
    question, loop, calls = parked["question"], parked["loop"], open_calls(messages)
    if not calls:
        return "messages: no tool call is open"
    if (calls[0]["name"], _json(calls[0]["args"])) != (question["tool"], _json(question["args"])):
        return "question: its tool and args are not those of the call that waits in messages"
    if (loop["next"], loop["dangerous"]) != ("confirm", calls[0]["id"]):
        return "loop: next and dangerous do not stand at the call that waits in messages"
    return None


def _json(value: Any) -> str:
    """JSON, in which NaN from a model equals itself."""
    return json.dumps(value, sort_keys=True, default=str)
