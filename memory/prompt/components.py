"""Prompt components: the building blocks of a prompt, in id order (architecture-context-system, 2).

The built-in ids are 1000 apart (1500 aside), which leaves room for a user's own between them:
`component(1001, "house_rules", "Speak to {sender} politely.")`.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, TypeGuard

from langchain_core.tools import BaseTool

from memory.errors import InputError
from memory.messages import TRUST_NOTE
from memory.prompt.health import TOOLS
from memory.settings import Settings
from memory.text import check_template

SYSTEM_PROMPT = 0
CHARACTER_CONTEXT = 1000
ENTITY_CONTEXT = 1500
SEMANTIC_MEMORIES = 2000
CONTEXT_BUFFER = 3000
GOALS = 4000
CONVERSATION_HISTORY = 5000
PENDING_EVENT = 6000
TOOL_RESULT = 7000

RESERVED = (TOOLS,)
"""Keys of what is counted beside the components."""

FIRST_FREE, LAST_FREE = 1, 7999
"""Between which ids a user's components stand."""

Role = Literal["system", "user", "assistant", "tool", "mixed"]
Content = str | Callable[[Mapping[str, Any]], str]

SHOWN_IN = ("tick_event", "tick_autonomous", "reflection", "reflection_cont")
"""The contexts that show a user's components: the others are loops over their own material."""

PLACEHOLDERS = {
    "agent": "what the assistant is called",
    "owners": "the ids of its owners",
    "tick": "the number of the tick",
    "now_date": "the tick's date (UTC), YYYY-MM-DD",
    "sender": "who sent the event; empty in an autonomous tick",
    "channel": "where it was said; empty where there is none",
    "context_type": "the kind of model call, such as tick_event",
    "reflection_interval": "ticks between two looks at its own work",
    "max_iterations": "model answers per tick that may ask for tools",
}
"""What every component's template may hold."""

DATA = {
    "system_prompt": (),
    "character_context": ("persona", "projects", "session_memory"),
    "entity_context": ("people",),
    "semantic_memories": ("memories",),
    "context_buffer": ("events",),
    "goals": ("goals",),
    "conversation_history": ("messages",),
    "pending_event": ("event",),
    "tool_result": ("result",),
}
"""What the template of each built-in component, and one that overrides it, may hold besides."""

GUIDE = f"""What to keep, and where:
- a person's preference, a fact that matters in every talk -> session memory (fact)
- how people behave, what works with them -> session memory (pattern)
- a fact about the world, useful for months -> long-term facts (store_memory)
- what happened, a thought across projects -> journal (add_journal_entry)
- what someone is like, how they stand to you or others -> profile (update_entity_observation)
- the conversation in hand -> nothing: working memory holds it
Session memory and goals are always in sight; recall_memories finds facts, review_journal the rest.
Write into memory about the world and its people, never about yourself.

Project or goal:
- work over several sessions whose context must not be lost -> project; swap it when the work does
- an outcome with progress or steps -> goal; decompose it when it is large, update it as it moves
- long work with steps -> both: the project keeps the context, the goal the progress
- a simple one-off request -> neither: do it

From 60 % context use (get_system_status) wrap up; from 80 % answer at once, without more tools.
Use tools where they help, one thing at a time. When you rely on a memory, say where it comes from;
when you do not know, say so.
Your owners: {{owners}}.
{TRUST_NOTE}"""
"""The decision tables (architecture-self-management, 6; original-system, 10), for every tick."""

DEFAULT_PROMPT = f"""{GUIDE}

Answer the newest message."""


@dataclass(frozen=True)
class PromptComponent:
    """One block of a prompt."""

    id: int
    """Its place: blocks stand in id order."""
    key: str
    name: str
    description: str
    content: Content
    """What stands in the block: a template with {placeholders}; or a function of the state that
    gives text, for live data. It is pure and quick, and leaves the state as it is."""
    is_static: bool
    """True for the built-in ones."""
    enabled: bool
    role: Role
    token_budget: tuple[str, ...] | int | None = None
    """At most this many tokens, or the settings that say so; None: no bound."""
    contexts: tuple[str, ...] = ()
    """Of a user's component: the contexts that show it. The built-in ones: `tools/policy/contexts.py`."""

    @property
    def bounded_by(self) -> tuple[str, ...]:
        """The settings that bound it, in the order of what it shows."""
        return self.token_budget if isinstance(self.token_budget, tuple) else ()

    def budget(self, settings: Settings) -> int | None:
        """Tokens at most; None: no bound."""
        if not isinstance(self.token_budget, tuple):
            return self.token_budget
        given = [getattr(settings, name) for name in self.token_budget]
        return None if None in given else sum(given)


def _static(
    id_: int, key: str, role: Role, description: str, content: str, *budget: str
) -> PromptComponent:
    name = key.replace("_", " ").title()
    return PromptComponent(
        id_, key, name, description, content, True, True, role, token_budget=budget or None
    )


STATIC: tuple[PromptComponent, ...] = (
    _static(SYSTEM_PROMPT, "system_prompt", "system", "Core instructions", DEFAULT_PROMPT),
    _static(
        CHARACTER_CONTEXT,
        "character_context",
        "system",
        "Persona, active project, session memory",
        "{persona}\n{projects}\n{session_memory}",
        "project_tokens",
        "session_memory_tokens",
    ),
    _static(
        ENTITY_CONTEXT,
        "entity_context",
        "system",
        "People in the conversation, and open conversations",
        "{people}",
        "entity_tokens",
    ),
    _static(
        SEMANTIC_MEMORIES,
        "semantic_memories",
        "system",
        "Recalled facts",
        "Recalled, the nearest first, as [id] date speaker: text\n{memories}",
        "recall_tokens",
    ),
    _static(
        CONTEXT_BUFFER,
        "context_buffer",
        "system",
        "Unaddressed events",
        "Said around you and not to you, oldest first:\n{events}",
        "context_buffer_tokens",
    ),
    _static(
        GOALS,
        "goals",
        "system",
        "Active goals with their subtasks",
        "Open goals, each above its subtasks:\n{goals}",
        "goals_tokens",
    ),
    _static(
        CONVERSATION_HISTORY,
        "conversation_history",
        "mixed",
        "Recent messages",
        "{messages}",
        "conversation_history_tokens",
    ),
    _static(PENDING_EVENT, "pending_event", "user", "What set this call off", "{event}"),
    _static(TOOL_RESULT, "tool_result", "tool", "Answers of the tools so far", "{result}"),
)
"""The nine built-in components, in id order."""

COMPONENTS: dict[int, PromptComponent] = {one.id: one for one in STATIC}
"""The same by id."""


def component(
    id: int,
    key: str,
    content: Content,
    *,
    name: str | None = None,
    description: str = "",
    token_budget: int = 500,
    role: Role | None = None,
    contexts: tuple[str, ...] = ("tick_event", "tick_autonomous"),
) -> PromptComponent:
    """A component of the user's own, between the built-in ones.

    Before 5000 it is a block of the system message. Above, it is a message of its own: before the
    event (5001..5999), after it (6001..6999) or at the very end (7001..7999).

    Raises:
        InputError: an id or key that is taken or out of range, an unknown placeholder, ...
    """
    _check_place(id, key)
    made = PromptComponent(
        id=id,
        key=key,
        name=name or key.replace("_", " ").capitalize(),
        description=description,
        content=content,
        is_static=False,
        enabled=True,
        role=role or ("system" if id < CONVERSATION_HISTORY else "user"),
        token_budget=token_budget,
        contexts=contexts,
    )
    return registered([made])[id]


def registered(extra: Iterable[PromptComponent]) -> dict[int, PromptComponent]:
    """The built-in components and the user's, by id, in id order.

    Raises:
        InputError: two share an id or a key, or one breaks a rule; names them, and ids that are
            free.
    """
    found = dict(COMPONENTS)
    for one in extra:
        if not isinstance(one, PromptComponent):
            raise InputError(f"{one!r:.80} is no prompt component; make one with component(...)")
        _check(one)
        same = [other for other in found.values() if one.key == other.key]
        if one.id in found:
            raise InputError(
                f"the prompt components {found[one.id].key!r} and {one.key!r} both have the id "
                f"{one.id}; free near it: {_free_near(one.id, found)}"
            )
        if same:
            raise InputError(
                f"the prompt components {same[0].id} and {one.id} both have the key {one.key!r}; "
                "rename one"
            )
        found[one.id] = one
    return dict(sorted(found.items()))


def _check(one: PromptComponent) -> None:
    """What one component has to keep to by itself."""
    where = f"the prompt component {one.key!r}"
    _check_place(one.id, one.key)
    if isinstance(one.content, str):
        check_template(one.content, PLACEHOLDERS, where)
    elif not callable(one.content):
        raise InputError(f"{where}: content is a text or a function of the state")
    if not _is_whole(one.token_budget) or one.token_budget < 1:
        raise InputError(f"{where}: token_budget must be a whole number from 1")
    wanted = "system" if one.id < CONVERSATION_HISTORY else "user"
    if one.role != wanted:
        raise InputError(f"{where}: its role must be {wanted!r}, by its place {one.id}")
    if not one.contexts or set(one.contexts) - set(SHOWN_IN):
        raise InputError(f"{where}: contexts must be some of {', '.join(SHOWN_IN)}")


def _check_place(id_: Any, key: Any) -> None:
    """Whether `id_` and `key` are such as a component of the user's can have."""
    where = f"the prompt component {key!r:.80}"
    if not _is_whole(id_):
        raise InputError(f"{where} has the id {id_!r:.80}; it must be a whole number, such as 1001")
    if not FIRST_FREE <= id_ <= LAST_FREE:
        raise InputError(
            f"{where} has the id {id_}; it must be within {FIRST_FREE}..{LAST_FREE}, such as "
            f"{_free_near(id_, COMPONENTS)}"
        )
    if not isinstance(key, str) or not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", key):
        raise InputError(f"{where}: a key is letters a-z, digits and _, and begins with a letter")
    if key in RESERVED:
        raise InputError(f"{where}: reports use this key for something else; choose another")


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _free_near(id_: int, taken: Mapping[int, PromptComponent]) -> str:
    """The three free ids nearest to `id_`."""
    near = min(max(id_, FIRST_FREE), LAST_FREE)
    free = (one for one in range(FIRST_FREE, LAST_FREE + 1) if one not in taken)
    return ", ".join(str(one) for one in sorted(free, key=lambda one: abs(one - near))[:3])


# A user's own tools and prompt components, from the module that `CIRCADIAN_EXTENSIONS` names.


_VARIABLE = "CIRCADIAN_EXTENSIONS"


@dataclass(frozen=True)
class Extensions:
    """Tools and prompt components added to the built-in ones."""

    tools: tuple[BaseTool, ...] = ()
    components: tuple[PromptComponent, ...] = ()


def load_extensions(name: str) -> Extensions:
    """Load the lists `tools` and `components` of the module `name`; either may be missing.

    The module is searched on Python's path and in the current folder.

    Raises:
        InputError: there is no such module, its import fails, or a list has a wrong element.
    """
    module = _imported(name)
    found = Extensions(
        tools=_listed(module, "tools", BaseTool, "a LangChain tool: wrap it, registered(it, ...)"),
        components=_listed(module, "components", PromptComponent, "made with component(...)"),
    )
    if found == Extensions():
        raise InputError(f"{_VARIABLE}: the module {name} holds neither tools nor components")
    return found


def _imported(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise InputError(f"{_VARIABLE}: {name!r} is no module's name, such as my_agent.tools")
    if (here := os.getcwd()) not in sys.path and "" not in sys.path:
        sys.path.append(here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        needed = (
            "" if name == missing or name.startswith(f"{missing}.") else f", which {name} needs"
        )
        raise InputError(f"{_VARIABLE}: there is no module {missing}{needed}") from error
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise InputError(f"{_VARIABLE}: the module {name} fails: {told}") from error


def _listed(module: ModuleType, name: str, kind: type, form: str) -> tuple[Any, ...]:
    """The module's list `name`, validated; empty if there is none."""
    where = f"{_VARIABLE}: {module.__name__}.{name}"
    given = getattr(module, name, ())
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"{where} must be a list, and is a {type(given).__name__}")
    found = tuple(given)
    for at, one in enumerate(found):
        if not isinstance(one, kind):
            raise InputError(f"{where}[{at}] is a {type(one).__name__}; it must be {form}")
    return found


# Token budgets of a prompt: which part is shortened first. Pure.


GIVES_WAY_FIRST = (
    # Nobody spoke to the agent there; what matters of it is in the journal too.
    "context_buffer_tokens",
    # Whoever speaks now stands in the message itself, and what they said in journal and facts.
    "entity_tokens",
    # A tool finds them again: recall_memories.
    "recall_tokens",
    # No tool lists them, but each is one line, and the next tick shows it again.
    "goals_tokens",
    # What people asked for once and expect ever after.
    "session_memory_tokens",
    # What is being worked on: without it a long task starts anew.
    "project_tokens",
)
"""The settings that bound the lists of a prompt, in the order in which the lists are shortened.

When the components fill more than their share of the context, the first list shrinks to nothing
before the next is touched. A user's own components come after all of them. The system prompt and
the persona are the user's, and stay whole."""

SHARE = 0.5
"""The share of the context limit for all components of the system message."""


def give_way(
    texts: Mapping[str, str],
    order: Sequence[str],
    render: Callable[[str, int], str],
    over: Callable[[Mapping[str, str]], int],
    size: Callable[[str], int],
) -> dict[str, str]:
    """The texts by name, shortened in `order` until all fit.

    Args:
        texts: By name.
        order: Names, the first to shorten first.
        render: Gives the text of a name in at most so many tokens.
        over: Gives the tokens by which all texts exceed their share.
        size: Gives the tokens of a text.
    """
    shorter = dict(texts)
    for name in order:
        tokens = size(shorter[name])
        while tokens > 0 and (excess := over(shorter)) > 0:
            tokens = max(0, min(tokens, size(shorter[name])) - excess)
            shorter[name] = render(name, tokens)
    return shorter
