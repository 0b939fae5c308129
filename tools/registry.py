"""The registry of tools: all tools, the kind of each, and the tools for a model call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Any, Literal

from langchain_core.tools import BaseTool
from langchain_core.tools import tool as make_tool
from pydantic import Field, TypeAdapter, ValidationError

from memory.errors import InputError
from memory.records import PatternState
from memory.state import State
from memory.text import approximate_tokens, regex, sentences, shortened
from tools.builtin import assistant, facts, notes, planning
from tools.policy import ContextConfig

NAME = regex(r"[a-zA-Z0-9_-]{1,64}")
"""What providers take for a tool's name."""

READABLE = frozenset(State.__annotations__) - {"messages", "exchange", "tool_cache"}
"""State keys that a cached answer may depend on: plain JSON."""

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ToolCategory(StrEnum):
    """How freely a tool may be used."""

    SAFE_CHAIN = "safe_chain"
    """Low risk: chains freely."""
    TERMINAL = "terminal"
    """Speaks to someone, or goes to sleep: ends the loop, to wait for what comes."""
    DANGEROUS = "dangerous"
    """Changes what cannot easily be changed back: one a tick, may need confirmation."""
    ASYNC_REQUIRED = "async_required"
    """Calls a model or an outside store: awaited as long as it takes."""


@dataclass(frozen=True, kw_only=True)
class ToolKind:
    """The kind of a tool; each field is stored in the tool's metadata under its name."""

    category: ToolCategory = ToolCategory.SAFE_CHAIN
    cache: Literal["tick", "session"] | None = None
    """How long an answer is reused for the same arguments. None: the tool always runs."""
    ttl: Seconds | None = None
    """Seconds that a cached answer is valid, within `cache`. None: as long as `cache`."""
    reads: tuple[str, ...] = ()
    """State keys that the answer depends on; a change of one drops the cached answer."""
    timeout: Seconds | None = None
    """Time limit of a call in seconds. None: the setting tool_timeout."""
    always_ask: bool = False
    """Ask a person before it runs, whatever dangerous_requires_confirm says."""

    @property
    def dangerous(self) -> bool:
        """Whether a tick makes only one such call."""
        return self.category == ToolCategory.DANGEROUS or self.always_ask


_KIND = TypeAdapter(ToolKind)
_FIELDS = [one.name for one in fields(ToolKind)]


def registered(
    tool: BaseTool | Callable[..., Any],
    category: ToolCategory | str,
    *,
    cache: Literal["tick", "session"] | None = None,
    ttl: float | None = None,
    reads: Sequence[str] = (),
    timeout: float | None = None,
    always_ask: bool = False,
) -> BaseTool:
    """A copy of `tool` with its kind in the metadata; see `ToolKind` for the arguments.

    For `open_agent(tools=[registered(my_tool, "dangerous")])`. A function, async or not, with a
    docstring and annotated arguments is made a LangChain tool.

    Raises:
        InputError: it cannot be made a tool, or the kind is wrong.
    """
    made = tool if isinstance(tool, BaseTool) else _made(tool)
    said = {
        "category": str(category),
        "cache": cache,
        "ttl": ttl,
        "reads": [reads] if isinstance(reads, str) else list(reads),
        "timeout": timeout,
        "always_ask": always_ask,
    }
    copy = made.model_copy(update={"metadata": {**(made.metadata or {}), **said}})
    kind_of(copy)
    return copy


def as_tools(given: Sequence[BaseTool | Callable[..., Any]]) -> list[BaseTool]:
    """The tools that a user gave; a plain function becomes a DANGEROUS one, so a person is asked.

    Raises InputError for an element that is neither a tool nor a function.
    """
    return [
        tool if isinstance(tool, BaseTool) else registered(tool, ToolCategory.DANGEROUS)
        for tool in given
    ]


def kind_of(tool: BaseTool) -> ToolKind:
    """The kind in the tool's metadata; SAFE_CHAIN if there is none. Raises InputError if wrong."""
    metadata = tool.metadata or {}
    given = {name: metadata[name] for name in _FIELDS if name in metadata}
    try:
        kind = _KIND.validate_python(given)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        told = f"one of {', '.join(ToolCategory)}" if field == "category" else first["msg"]
        said = f"the tool {tool.name!r} has the {field} {given[field]!r}: {told}"
        raise InputError(said) from None
    if wrong := _contradiction(kind):
        raise InputError(f"the tool {tool.name!r} {wrong}")
    return kind


def _made(function: Callable[..., Any]) -> BaseTool:
    name = getattr(function, "__name__", repr(function))
    if isinstance(function, type) or not callable(function):
        raise InputError(f"{name} is neither a tool nor a function; give one of the two")
    try:
        made = make_tool(function)
    except (ValueError, TypeError, NameError) as error:
        raise InputError(f"no tool can be made of {name}: {error}") from error
    assert isinstance(made, BaseTool)
    return made


def _contradiction(kind: ToolKind) -> str | None:
    acts = kind.category in (ToolCategory.DANGEROUS, ToolCategory.TERMINAL)
    if kind.cache and (acts or kind.always_ask):
        return f"is {kind.category} and cannot be cached: what it does has to be done each time"
    if kind.cache is None and (kind.ttl is not None or kind.reads):
        return "has `ttl` or `reads` without `cache`"
    unknown = sorted(set(kind.reads) - READABLE)
    return f"reads {unknown[0]!r}, which is no state key it can read" if unknown else None


_OTHER_FIELDS: dict[str, dict[str, Any]] = {
    "list_projects": {"cache": "session", "reads": ["projects", "event", "shared_channels"]},
    "forget_memory": {"always_ask": True},
    "update_system_prompt": {"always_ask": True},
}
"""The other fields of a built-in tool's kind."""

BUILT_IN: dict[str, tuple[BaseTool, ToolCategory]] = {
    tool.name: (registered(tool, category, **_OTHER_FIELDS.get(tool.name, {})), category)
    for category, tools in {
        ToolCategory.SAFE_CHAIN: (
            planning.create_project,
            planning.list_projects,
            planning.swap_project,
            planning.update_project,
            planning.add_goal,
            planning.update_goal,
            planning.add_session_memory,
            planning.compact_session_memory,
            notes.add_journal_entry,
            notes.update_entity_observation,
            notes.review_journal,
            facts.recall_memories,
            facts.settle_dispute,
            assistant.get_system_status,
            assistant.noop,
            assistant.use_tool,
        ),
        ToolCategory.TERMINAL: (assistant.send_message, assistant.go_to_sleep),
        ToolCategory.DANGEROUS: (assistant.forget_memory, assistant.update_system_prompt),
        ToolCategory.ASYNC_REQUIRED: (
            planning.decompose_goal,
            facts.store_memory,
            assistant.delegate_task,
        ),
    }.items()
    for tool in tools
}
"""The built-in tools by name, each with its category."""

CORE = frozenset(
    {
        "add_goal",
        "add_journal_entry",
        "add_session_memory",
        "create_project",
        "delegate_task",
        "noop",
        "recall_memories",
        "send_message",
        "store_memory",
        "update_entity_observation",
        "update_goal",
        "update_project",
    }
)
"""The built-in tools whose schemas every tick shows. `use_tool` calls the others."""

EXTRA_TOKENS = 1_500
"""Tokens of schemas of the user's own tools that every tick shows; `use_tool` calls the rest."""

LONGEST_LINE = 120
"""Characters of a tool's description in that of `use_tool`."""


def shown_tools(tools: Sequence[BaseTool]) -> list[BaseTool]:
    """The tools whose schemas a call shows, of those that it offers.

    If `use_tool` is among them: the core, the first of the user's tools within EXTRA_TOKENS, and
    `use_tool`, whose description lists the others. The same tools give the same schemas, so that a
    provider's cache holds.
    """
    if not any(one.name == assistant.use_tool.name for one in tools):
        return list(tools)
    shown: list[BaseTool] = []
    rare: list[BaseTool] = []
    room = EXTRA_TOKENS
    for offered in tools:
        if offered.name == assistant.use_tool.name:
            continue
        if offered.name not in BUILT_IN:
            room -= approximate_tokens([], tools=[offered])
        fits = offered.name in CORE if offered.name in BUILT_IN else room >= 0
        (shown if fits else rare).append(offered)
    if not rare:
        return shown
    return [*shown, _use_tool("\n".join([assistant.use_tool.description, *map(_line, rare)]))]


@lru_cache(maxsize=8)
def _use_tool(description: str) -> BaseTool:
    """`use_tool` with this description; kept, because LangChain makes a schema for each copy."""
    return assistant.use_tool.model_copy(update={"description": description})


def _line(tool: BaseTool) -> str:
    own, _ = BUILT_IN.get(tool.name, (None, None))
    return _built_in_line(tool.name) if own is tool else _signature(tool)


@lru_cache(maxsize=64)
def _built_in_line(name: str) -> str:
    """The line is kept: built-in tools do not change, and a line reads the tool's schema."""
    return _signature(BUILT_IN[name][0])


def _signature(tool: BaseTool) -> str:
    """`- name(argument, other?): the first sentence of what it does`."""
    given = ", ".join(
        name if "default" not in schema else f"{name}?" for name, schema in tool.args.items()
    )
    told = next(iter(sentences(" ".join(tool.description.split()))), "")
    return f"- {tool.name}({given}): {shortened(told, LONGEST_LINE)}"


def tools_for(
    context: ContextConfig, pattern: PatternState, extra: Sequence[BaseTool]
) -> list[BaseTool]:
    """The tools of one call: built-in ones and the user's, through the context's two filters."""
    categories = pattern["allowed_categories"]
    return [
        tool
        for name, (tool, category) in {**BUILT_IN, **checked_tools(extra)}.items()
        if (context.tool_filter is None or name in context.tool_filter)
        and (categories is None or category in categories)
        and (pattern["sub_agents_enabled"] or name != assistant.delegate_task.name)
    ]


def checked_tools(extra: Sequence[BaseTool]) -> dict[str, tuple[BaseTool, ToolCategory]]:
    """The user's tools by name, each with its category.

    Raises InputError for what is no tool, has a name that is taken or refused, or wrong metadata.
    """
    found: dict[str, tuple[BaseTool, ToolCategory]] = {}
    for tool in extra:
        if not isinstance(tool, BaseTool):
            raise InputError(f"{tool!r} is no LangChain tool; wrap it: registered(it, category)")
        if not NAME.fullmatch(tool.name):
            raise InputError(
                f"the tool name {tool.name!r} will not do; "
                "rename it: 1 to 64 letters, digits, _ and -, nothing else"
            )
        if tool.name in BUILT_IN:
            raise InputError(f"the tool {tool.name!r} has the name of a built-in tool; rename it")
        if tool.name in found:
            raise InputError(f"two tools are named {tool.name!r}; rename one")
        found[tool.name] = (tool, kind_of(tool).category)
    return found
