"""Validation of the state: what a node may return, and what `intake` may find."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, cast, get_type_hints

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, messages_from_dict
from pydantic import TypeAdapter, ValidationError

from memory.errors import StateError
from memory.messages import EVENT_KEY, open_calls
from memory.planning import recompute
from memory.records import ParkedTick, Report, empty_report
from memory.state.schema import REDUCED_KEYS, SCHEMA_VERSION, State
from memory.state.stopping import STEPS


class Node(Protocol):
    """A node as the graph calls it; LangGraph injects `runtime` and `config` by name."""

    def __call__(self, state: State) -> Any:
        """Return a partial state."""


_MESSAGE_KEYS = ("messages", "exchange")
"""Validated by LangGraph's message reducer; message classes are no plain JSON."""

_INPUT_KEYS = ("events", "request")
"""Validated when input is taken in; gone in the next step."""

_SET_BY_EACH_RUN = ("turn", "report")
"""Set by every run; an earlier value is never used, so it need not be valid."""


@functools.cache
def _rules(schema: type) -> dict[str, TypeAdapter[Any] | None]:
    """Type adapter of each key of a state; None: unchecked."""
    # Channels mean nothing to a type: LangGraph's are not loaded for it.
    hints = get_type_hints(schema, localns={"ephemeral": lambda: None})
    return {key: None if key in _MESSAGE_KEYS else TypeAdapter(hint) for key, hint in hints.items()}


def checked(node: Callable[..., Awaitable[Any]]) -> Node:
    """Decorate a node: an unknown key or a wrong type in its output is an error.

    The valid keys are those of the type of its argument `state`. No node starts while the process
    is stopping (`memory.state.stopping`).
    """
    from langgraph.types import Command, Overwrite  # not loaded where a state is only read

    rules = _rules(get_type_hints(node).get("state", State))

    @functools.wraps(node)
    async def run(*args: Any, **kwargs: Any) -> Any:
        async with STEPS.step():
            output = await node(*args, **kwargs)
        update = output.update if isinstance(output, Command) else output
        name = getattr(node, "__name__", "node")
        for key, value in _items(update):
            if key not in rules:
                raise StateError(f"node {name} returned the unknown key {key!r}")
            if not isinstance(value, Overwrite):
                problem = _problem(key, value, rules)
                if problem:
                    raise StateError(f"node {name} returned a wrong {problem}")
        return output

    return cast(Node, run)


def state_problem(state: Mapping[str, Any]) -> str | None:
    """What is wrong with the checkpointed state, with the key; None if it is valid."""
    version = state.get("schema_version", SCHEMA_VERSION)
    if isinstance(version, int) and version > SCHEMA_VERSION:
        return (
            f"the thread was written by a newer Circadian (state schema {version}, this one knows "
            f"{SCHEMA_VERSION}); update Circadian"
        )
    rules = _rules(State)
    for key, value in state.items():
        # LangGraph initialises a key with a reducer as {}, which is no value of ours.
        unset = key in _INPUT_KEYS or (key in REDUCED_KEYS and value == {})
        problem = None if unset else _problem(key, value, rules) or _out_of_range(key, value)
        if problem:
            return (
                f"the thread's state has a wrong {problem}. Mend it with update_state and run again"
            )
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
    sound = report is not None and _problem("report", report, _rules(State)) is None
    return cast(Report, report) if sound else empty_report()


def _items(update: Any) -> list[tuple[str, Any]]:
    if update is None:
        return []
    return list(update.items()) if isinstance(update, Mapping) else list(update)


def _problem(key: str, value: Any, rules: Mapping[str, TypeAdapter[Any] | None]) -> str | None:
    rule = rules.get(key)
    if rule is None:
        return None
    try:
        rule.validate_python(value, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in (key, *first["loc"]))
        return f"{where}: {first['msg']}"
    return None


def _out_of_range(key: str, value: Any) -> str | None:
    """Check ranges and references; `value` has the right type."""
    match key:
        case "tick" | "goal_index" if value < 0:
            return f"{key}: must not be below 0, is {value}"
        case "calibration" if not (math.isfinite(value) and value > 0):
            return f"{key}: must be a finite number above 0, is {value}"
        case "projects" if value["active"] is not None and value["active"] not in value["slots"]:
            return f"projects.active: no slot is named {value['active']!r}"
        case "parked":
            return _misparked(value)
    return None


def _misparked(parked: Sequence[ParkedTick]) -> str | None:
    """Problem of the first invalid parked tick: a person approves only what was shown."""
    for place, tick in enumerate(parked):
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
    for message in messages:
        if not isinstance(message, HumanMessage | AIMessage | ToolMessage):
            return f"messages: one is of type {message.type}, which no tick writes"
        if not isinstance(message.additional_kwargs.get(EVENT_KEY), dict):
            return f"messages: the {message.type} message lacks the mark {EVENT_KEY!r} of its tick"
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
