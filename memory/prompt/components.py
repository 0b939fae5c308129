"""Prompt components: the building blocks of a prompt.

What stays the same from tick to tick stands in the system message, in id order; what changes stands
in front of the newest event, in id order. A provider's cache then holds up to that event.

The built-in ids are 1000 apart (1500 aside), which leaves room for a user's own between them:
`component(1001, "house_rules", "Speak to {sender} politely.")`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

from typing_extensions import TypedDict

from memory.errors import InputError
from memory.messages import TRUST
from memory.records import ContextUse
from memory.settings import Settings
from memory.text import advisory, utilisation

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

SYSTEM_PROMPT = 0
CHARACTER_CONTEXT = 1000
ENTITY_CONTEXT = 1500
PAGES = 1750
SEMANTIC_MEMORIES = 2000
CONTEXT_BUFFER = 3000
GOALS = 4000
OPEN_QUESTIONS = 4500
CONVERSATION_HISTORY = 5000
PENDING_EVENT = 6000
TOOL_RESULT = 7000

HISTORY, TOOLS = "conversation_history", "tools"
"""Parts of a prompt beside the blocks of its system message."""

FIRST_FREE, LAST_FREE = 1, 7999
"""Range of ids for a user's components."""

Role = Literal["system", "user", "assistant", "tool", "mixed"]
Content = str | Callable[[Mapping[str, Any]], str]

SHOWN_IN = ("tick_event", "tick_autonomous", "reflection", "reflection_cont")
"""Contexts that may show a user's components. The others are loops over their own material."""

PLACEHOLDERS = {
    "agent": "what the assistant is called",
    "owners": "the ids of its owners",
    "tick": "the number of the tick",
    "now_date": "the tick's date in the time zone, YYYY-MM-DD",
    "sender": "who sent the event; empty in an autonomous tick",
    "channel": "where it was said; empty where there is none",
    "context_type": "the kind of model call, such as tick_event",
    "reflection_interval": "ticks between two looks at its own work",
    "max_iterations": "model answers per tick that may ask for tools",
}
"""Placeholders of every component's template, with their meaning."""

CHANGING = ("tick", "now_date", "sender", "channel", "context_type")
"""Those whose value differs from tick to tick."""

DATA = {
    "system_prompt": (),
    "character_context": ("persona", "projects", "session_memory"),
    "entity_context": ("people",),
    "pages": ("pages",),
    "semantic_memories": ("memories",),
    "context_buffer": ("events",),
    "goals": ("goals",),
    "open_questions": ("questions",),
    "conversation_history": ("messages",),
    "pending_event": ("event",),
    "tool_result": ("result",),
}
"""Further placeholders of each built-in component's template and its overrides."""

GUIDE = f"""You work for the people who write to you. Each message is an event. Its block
says who wrote it, whether that is an owner, who reads your answer (audience), and when it came.
Just before the newest event you see what you know about it; memory has been searched.

Answer the newest event, in its language. Use tools where they help. Independent calls may go
together; text beside calls is delivered with send_message alone. When you rely on a memory, say
who said it and when; when you do not know, say so.

{TRUST}

What to keep, and where:
- what matters in every conversation, such as a preference -> session memory (fact)
- what works with people -> session memory (pattern)
- a fact about the world, useful for months -> long-term facts (store_memory)
- what happened, a thought across projects -> journal (add_journal_entry)
- what someone is like, how they stand to you or others -> profile (update_entity_observation)
- the rest of a conversation -> nothing: nights make facts of it
Session memory, goals and projects are always shown; recall_memories finds everything else.
Write into memory about the world and its people, never about yourself; dates in full.
Asked to forget, remove what stands in session memory, goals and projects. The rest is erased by
forget_memory alone, once a person has approved it: never claim it before.

Project or goal:
- work over several sessions -> project: it keeps the context; swap when the work changes
- an outcome with progress or steps -> goal; decompose it when it is large, update it as it moves
- long work with steps -> both
- a reminder -> goal with its day; say that you keep no set hour
- a simple one-off request -> neither: do it"""
"""The instructions of every tick, always the same, so that a provider's cache holds."""


@dataclass(frozen=True)
class PromptComponent:
    """One block of a prompt."""

    id: int
    """Its place among the stable blocks, or among the blocks that change."""
    key: str
    name: str
    description: str
    content: Content
    """A template with {placeholders}, or a quick function that makes text from the state."""
    is_static: bool
    """True for the built-in ones."""
    enabled: bool
    role: Role
    token_budget: tuple[str, ...] | int | None = None
    """Tokens at most, or the names of the settings that bound it. None: no bound."""
    contexts: tuple[str, ...] = ()
    """Contexts that show a user's component. `tools/policy.py` lists the built-in ones."""

    @property
    def is_block(self) -> bool:
        """Whether it is a block of text; the history and what follows it are messages."""
        return not self.is_static or self.id < CONVERSATION_HISTORY

    @property
    def changes(self) -> bool:
        """Whether its text may differ from tick to tick. Of CHARACTER_CONTEXT the persona stays."""
        if self.is_static:
            return self.id != SYSTEM_PROMPT
        return not isinstance(self.content, str) or any(
            f"{{{name}}}" in self.content for name in CHANGING
        )

    @property
    def bounded_by(self) -> tuple[str, ...]:
        """The settings that bound its lists, in their order."""
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
    _static(SYSTEM_PROMPT, "system_prompt", "system", "Core instructions", GUIDE),
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
        "user",
        "People in the conversation, and open conversations",
        "{people}",
        "entity_tokens",
    ),
    _static(
        PAGES,
        "pages",
        "user",
        "What holds now of people and projects",
        "What holds now:\n{pages}",
        "page_tokens",
    ),
    _static(
        SEMANTIC_MEMORIES,
        "semantic_memories",
        "user",
        "Recalled memories",
        'You remember, best match first. time speaker: text; "-" is unknown\n{memories}',
        "recall_tokens",
    ),
    _static(
        CONTEXT_BUFFER,
        "context_buffer",
        "user",
        "Unaddressed events",
        "Said around you and not to you, oldest first:\n{events}",
        "context_buffer_tokens",
    ),
    _static(
        GOALS,
        "goals",
        "user",
        "Active goals with their subtasks",
        "Open goals, each above its subtasks:\n{goals}",
        "goals_tokens",
    ),
    _static(
        OPEN_QUESTIONS,
        "open_questions",
        "user",
        "What a person has yet to allow",
        "You have asked for these, and a person has yet to answer:\n{questions}",
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
"""The built-in components, in id order."""

COMPONENTS: dict[int, PromptComponent] = {one.id: one for one in STATIC}


def component(
    id: int,
    key: str,
    content: Content,
    *,
    name: str | None = None,
    description: str = "",
    token_budget: int = 500,
    contexts: tuple[str, ...] = ("tick_event", "tick_autonomous"),
) -> PromptComponent:
    """A user's component, placed among the blocks by its id.

    It is a block of the system message if it is a text whose placeholders do not change, else one
    in front of the newest event. Raises InputError for an id, a key or a placeholder that is wrong.
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
        role="system",
        token_budget=token_budget,
        contexts=contexts,
    )
    return registered([made])[id]


def registered(extra: Iterable[PromptComponent]) -> dict[int, PromptComponent]:
    """The built-in components and the user's, by id, in id order.

    Raises:
        InputError: two share an id or a key, or one breaks a rule; names them and free ids.
    """
    found = dict(COMPONENTS)
    for one in extra:
        if not isinstance(one, PromptComponent):
            raise InputError(f"{one!r:.80} is not a prompt component; make one with component(...)")
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
    where = f"the prompt component {one.key!r}"
    _check_place(one.id, one.key)
    if isinstance(one.content, str):
        check_template(one.content, PLACEHOLDERS, where)
    elif not callable(one.content):
        raise InputError(f"{where}: content is a text or a function of the state")
    if not _is_whole(one.token_budget) or one.token_budget < 1:
        raise InputError(f"{where}: token_budget must be a whole number from 1")
    if not one.contexts or set(one.contexts) - set(SHOWN_IN):
        raise InputError(f"{where}: contexts must be some of {', '.join(SHOWN_IN)}")


def _check_place(id_: Any, key: Any) -> None:
    """Raise InputError unless a user's component may have this id and key."""
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
    if key == TOOLS:
        raise InputError(f"{where}: reports use this key for something else; choose another")


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _free_near(id_: int, taken: Mapping[int, PromptComponent]) -> str:
    near = min(max(id_, FIRST_FREE), LAST_FREE)
    free = (one for one in range(FIRST_FREE, LAST_FREE + 1) if one not in taken)
    return ", ".join(str(one) for one in sorted(free, key=lambda one: abs(one - near))[:3])


@dataclass(frozen=True)
class Extensions:
    """Tools and prompt components added to the built-in ones."""

    tools: tuple[BaseTool, ...] = ()
    components: tuple[PromptComponent, ...] = ()


# The health of a prompt: the cost of each part, and problems with it.

ACTIONS = {
    "normal": "Proceed normally",
    "warning": "Consider wrapping up",
    "critical": "Respond immediately",
}
"""The recommended action at each level."""

FULL_AT = 90.0
"""Percent of a component's budget; from here on the next line would not fit."""

LARGE_AT = 40.0
"""Percent of the context that one component should stay below; not so the history."""

TOOLS_AT = 20.0
"""Percent of the context that tool schemas should stay below."""


class ComponentHealth(TypedDict):
    """One part of the prompt."""

    key: str
    tokens: int
    share: float
    """Percent of the context limit."""
    budget: int | None
    """Tokens; None: no bound."""
    at_budget: bool
    """It fills its budget and leaves something out."""


class PromptHealth(TypedDict):
    """The parts of a prompt, and what a person might mend."""

    components: list[ComponentHealth]
    problems: list[str]
    """One sentence each."""


def context_use(tokens: Mapping[str, int], limit: int) -> ContextUse:
    """The use of the context by parts of these sizes. `limit`: tokens, at least 1."""
    used = sum(tokens.values())
    percentage = utilisation(used, limit)
    return {
        "used": used,
        "limit": limit,
        "percentage": percentage,
        "level": advisory(percentage)["level"],
    }


def recommended_action(percentage: float) -> str:
    """The advice at this use of the context (percent)."""
    return ACTIONS[advisory(percentage)["level"]]


def prompt_health(
    tokens: Mapping[str, int], budgets: Mapping[str, int | None], limit: int
) -> PromptHealth:
    """Cost and problems of a prompt. `tokens`: by part, in the prompt's order."""
    parts = [_health(key, used, budgets.get(key), limit) for key, used in tokens.items()]
    use = context_use(tokens, limit)
    problems = [sentence for part in parts for sentence in _problems(part)]
    if use["level"] != "normal":
        action = recommended_action(use["percentage"])
        problems.append(f"The prompt fills {use['percentage']} % of the context: {action.lower()}.")
    return {"components": parts, "problems": problems}


def _health(key: str, used: int, budget: int | None, limit: int) -> ComponentHealth:
    return {
        "key": key,
        "tokens": used,
        "share": utilisation(used, limit),
        "budget": budget,
        "at_budget": budget is not None and used > 0 and used * 100 >= budget * FULL_AT,
    }


def _problems(part: ComponentHealth) -> list[str]:
    key, share = part["key"], part["share"]
    found = []
    if part["at_budget"]:
        found.append(
            f"{key} fills its budget of {part['budget']:,} tokens: what does not fit is left out."
        )
    if key == TOOLS and share > TOOLS_AT:
        found.append(f"The tools' schemas take {share} % of the context; offer fewer tools.")
    elif key not in (TOOLS, HISTORY) and share > LARGE_AT:
        found.append(f"{key} takes {share} % of the context; shorten it or lower its budget.")
    return found


# Templates: texts with {placeholders}, checked when they are registered, filled later.


def placeholders(template: str, where: str) -> list[str]:
    """The names in braces, in order; a doubled brace is a literal brace.

    Raises InputError, which `where` begins: a brace is unbalanced, or encloses more than a name.
    """
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise InputError(f"{where}: {error}; write {{{{ or }}}} for a brace") from None
    names: list[str] = []
    for _, name, form, conversion in parts:
        if name is None:
            continue
        if form or conversion or not name.isidentifier():
            raise InputError(
                f"{where}: {{{name}}} is not a placeholder; write {{{{ or }}}} for a brace"
            )
        names.append(name)
    return names


def check_template(template: str, known: Collection[str], where: str) -> None:
    """Raise InputError, beginning with `where`, for a placeholder that is not `known`."""
    for name in placeholders(template, where):
        if name not in known:
            raise InputError(
                f"{where}: unknown placeholder {{{name}}}; known are "
                f"{', '.join(f'{{{one}}}' for one in known)}; write {{{{ or }}}} for a brace"
            )


def fill(template: str, values: Mapping[str, str]) -> str:
    """Fill the placeholders of `template`. A line goes if it has some and all are empty."""
    lines = []
    for line in template.split("\n"):
        names = placeholders(line, "template")
        if not names or any(values[name] for name in names):
            lines.append(line.format_map(values))
    return "\n".join(lines)
