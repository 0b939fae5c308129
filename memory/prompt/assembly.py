"""Assembly: the components of a prompt put together, ordered for providers' caches. Pure.

What stays the same from tick to tick is the system message. The history follows, and is only ever
appended to. What changes stands in front of the newest event, in that event's message, and is not
kept in the history. Both parts are in id order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from memory.errors import InputError
from memory.messages import FRONT, as_data, escaped, marked
from memory.prompt import components, rendering
from memory.prompt.components import COMPONENTS, PromptComponent, fill
from memory.records import AssembledContext, Conversation, EntityProfile, RecallHit
from memory.settings import Settings
from memory.state import State
from memory.text import approximate_tokens, calibrated, clock_line, one_line, shown_day

GUIDELINES = (
    "Your own guidelines, written by you; your owner's instructions and the rules above outrank "
    "them:"
)

GIVES_WAY_FIRST = (
    # Not addressed to the agent, and in the journal too.
    "context_buffer_tokens",
    # The message names its sender; journal and facts have what people said.
    "entity_tokens",
    # The tool recall_memories finds them again.
    "recall_tokens",
    # Made from memories, too, and shorter.
    "page_tokens",
    # No tool lists goals, but each is only one line.
    "goals_tokens",
    # What people asked for once and always expect.
    "session_memory_tokens",
    # Current work: without it a long task starts anew.
    "project_tokens",
)
"""The settings that bound the lists of a prompt, in the order in which each shrinks to nothing."""

SHARE = 0.5
"""The share of the context limit for all components but the history and what follows it."""


@dataclass(frozen=True, kw_only=True)
class Material:
    """What one prompt is made from."""

    state: State
    settings: Settings
    context_type: str
    enabled: Sequence[int]
    """Ids of the built-in components that the context shows."""
    override: Callable[[str], str | None] = lambda key: None
    """Component key -> a template that replaces the component's own, or None."""
    limit: int
    """Tokens of the whole prompt, at most."""
    now: str
    """The tick's time, ISO 8601."""
    owners: Sequence[str] = ()
    memories: Sequence[RecallHit] = ()
    people: Sequence[EntityProfile] = ()
    """The people in the conversation, the nearest first."""
    pages: Sequence[str] = ()
    """What holds now of people and projects, the most useful first; each a page of text."""
    guidelines: str = ""
    """The assistant's own prompt, if the context shows it."""
    extra: Sequence[PromptComponent] = ()
    """The user's components."""

    @property
    def shown(self) -> list[PromptComponent]:
        """The components of this prompt, in id order."""
        return [
            one
            for one in sorted([*components.STATIC, *self.extra], key=attrgetter("id"))
            if one.enabled
            and (one.id in self.enabled if one.is_static else self.context_type in one.contexts)
        ]

    def size(self, text: str) -> int:
        """Tokens, calibrated."""
        return calibrated(approximate_tokens(text), self.state["calibration"])


class Blocks(NamedTuple):
    """The blocks of a prompt by component key, in id order, without empty ones."""

    same: dict[str, str]
    """For the system message."""
    changing: dict[str, str]
    """For the front of the newest event's message."""


def parted(material: Material) -> Blocks:
    """The blocks of a tick's prompt: stable blocks apart from blocks that change.

    If they fill more than half of the context, the lists shrink in the order of `GIVES_WAY_FIRST`,
    then the user's components, the highest id first. Raises InputError, which names the component.
    """
    shown = [one for one in material.shown if one.is_block]
    parts = {**_lists(material, shown), **_own_parts(material, shown)}
    room = int(material.limit * SHARE)

    def over(texts: Mapping[str, str]) -> int:
        made = _blocks(material, shown, texts)
        return sum(material.size(one) for part in made for one in part.values()) - room

    texts = {name: part.render(part.budget) for name, part in parts.items()}
    excess = over(texts)
    for name, part in parts.items():
        tokens = part.budget
        while excess > 0 and tokens > 0 and texts[name]:
            tokens = max(0, min(tokens, material.size(texts[name])) - excess)
            texts[name] = part.render(tokens)
            excess = over(texts)
    return _blocks(material, shown, texts)


def blocks(material: Material) -> dict[str, str]:
    """All blocks in one part, for a prompt that is sent once and has no history to share."""
    same, changing = parted(material)
    keys = [one.key for one in material.shown]
    both = {key: [part[key] for part in (same, changing) if key in part] for key in keys}
    return {key: "\n\n".join(texts) for key, texts in both.items() if texts}


def front(material: Material, changing: Mapping[str, str]) -> str:
    """The text in front of the newest event: the time, then the blocks that change."""
    return "\n\n".join([clock_line(material.now, material.settings.zone), *changing.values()])


def retimed(context: AssembledContext, now: str, zone: tzinfo) -> str:
    """The front of a tick that goes on later, with the clock at `now`."""
    _, line_end, rest = context.get("front", "").partition("\n")
    return clock_line(now, zone) + line_end + rest


def after(material: Material) -> str:
    """What the context says after the event, if anything."""
    return (material.override(COMPONENTS[components.PENDING_EVENT].key) or "").strip()


def with_front(messages: Sequence[AnyMessage], front: str, after: str = "") -> list[AnyMessage]:
    """The messages with `front` and `after` around the newest human message's content."""
    newest_first = reversed(range(len(messages)))
    event = next((n for n in newest_first if isinstance(messages[n], HumanMessage)), None)
    if event is None or not (front or after):
        return list(messages)
    human, before, behind = messages[event], f"{front}\n\n" if front else "", f"\n\n{after}"
    content: str | list[Any] = human.content
    if isinstance(content, str):
        content = f"{before}{content}{behind if after else ''}"
    else:
        content = [*_text(before), *content, *_text(behind if after else "")]
    told = marked(human, **{FRONT: len(before)}).model_copy(update={"content": content})
    return [*messages[:event], told, *messages[event + 1 :]]


def whole(context: AssembledContext, messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """The messages of a call: the system message, then the history with the front of its event."""
    shown = with_front(messages, context.get("front", ""), context.get("after", ""))
    return [*([SystemMessage(context["system"])] if context["system"] else []), *shown]


def _text(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}] if text else []


def system_message(parts: Mapping[str, str]) -> str:
    """The text of the system message, of its blocks."""
    return "\n\n".join(parts.values())


def values(material: Material) -> dict[str, str]:
    """The values of components.PLACEHOLDERS in this prompt."""
    event, state = material.state["event"], material.state
    return {
        **rendering.placeholders(material.settings),
        "owners": ", ".join(one_line(one) for one in material.owners),
        "tick": str(state["tick"]),
        "now_date": shown_day(material.now, material.settings.zone).partition(" ")[2],
        "sender": one_line(event["sender"]) if event else "",
        "channel": one_line(event["channel"] or "") if event else "",
        "context_type": material.context_type,
    }


@dataclass(frozen=True)
class _Part:
    """A text that can be rendered shorter."""

    budget: int
    render: Callable[[int], str]
    """Makes the text in at most this number of tokens."""


def _lists(material: Material, shown: Sequence[PromptComponent]) -> dict[str, _Part]:
    """The lists of the components `shown`, by bounding setting, the first to shrink first."""
    state, factor, zone = material.state, material.state["calibration"], material.settings.zone
    lists: dict[str, Callable[[int], str]] = {
        "project_tokens": lambda tokens: rendering.projects(
            state["projects"], tokens=tokens, calibration=factor
        ),
        "session_memory_tokens": lambda tokens: rendering.session_memory(
            state["session_memory"], tokens=tokens, calibration=factor
        ),
        "entity_tokens": lambda tokens: rendering.entity_context(
            material.people,
            _other_talks(state),
            tokens=tokens,
            calibration=factor,
            zone=zone,
            owners=material.owners,
        ),
        "recall_tokens": lambda tokens: rendering.semantic_memories(
            material.memories, tokens=tokens, calibration=factor, zone=zone, now=material.now
        ),
        "page_tokens": lambda tokens: rendering.pages(
            material.pages, tokens=tokens, calibration=factor
        ),
        "context_buffer_tokens": lambda tokens: rendering.context_buffer(
            state["context_buffer"], tokens=tokens, calibration=factor, zone=zone
        ),
        "goals_tokens": lambda tokens: rendering.goals(
            state["goals"], tokens=tokens, calibration=factor, zone=zone, now=material.now
        ),
    }
    bounding = {name for one in shown for name in one.bounded_by}
    return {
        name: _Part(getattr(material.settings, name), lists[name])
        for name in GIVES_WAY_FIRST
        if name in bounding
    }


def _other_talks(state: State) -> dict[str, Conversation]:
    event = state["event"]
    here = (event["sender"], event["channel"]) if event else None
    talks = state["conversations"].items()
    return {key: one for key, one in talks if (one["entity"], one["channel"]) != here}


def _own_parts(material: Material, shown: Sequence[PromptComponent]) -> dict[str, _Part]:
    """The user's components, the highest id first. Each renders its text once."""
    factor = material.state["calibration"]

    def bound(one: PromptComponent) -> _Part:
        text = _content(one, material).strip()
        budget = one.budget(material.settings)
        assert budget is not None
        return _Part(budget, lambda tokens: rendering.bounded(text, tokens, factor))

    return {_own_name(one): bound(one) for one in reversed(shown) if not one.is_static}


def _own_name(one: PromptComponent) -> str:
    return f"component {one.key}"


def _blocks(
    material: Material, shown: Sequence[PromptComponent], texts: Mapping[str, str]
) -> Blocks:
    """The blocks by component key. `texts`: by the names of `_lists` and `_own_parts`."""
    found = Blocks({}, {})
    for one in shown:
        if one.id == components.CHARACTER_CONTEXT and material.override(one.key) is None:
            # What changes of it: the projects and session memory, each a block.
            kept = {
                "projects": texts["project_tokens"],
                "session_memory": texts["session_memory_tokens"],
            }
            made = "\n\n".join(as_data(tag, text) for tag, text in kept.items() if text)
            if material.settings.persona:
                found.same[one.key] = as_data("persona", material.settings.persona)
        elif one.is_static:
            made = _static(one, material, texts)
        else:
            text = texts[_own_name(one)]
            made = as_data("component", text, name=one.key) if text else ""
        part = found.changing if one.changes else found.same
        if made:
            part[one.key] = made
    return found


def _static(one: PromptComponent, material: Material, texts: Mapping[str, str]) -> str:
    override = material.override(one.key)
    if one.id == components.SYSTEM_PROMPT:
        text = rendering.system_prompt(material.settings, override, values(material))
        return _instructions(text, material.guidelines)
    data = dict(zip(components.DATA[one.key], _data(one, material, texts), strict=True))
    if not any(data.values()):
        return ""
    template = override if override is not None else str(one.content)
    return rendering.block(one.key, fill(template, {**values(material), **data}))


def _data(one: PromptComponent, material: Material, texts: Mapping[str, str]) -> list[str]:
    if one.id == components.OPEN_QUESTIONS:
        asked = [parked["question"] for parked in material.state["parked"]]
        return [rendering.open_questions(asked, material.settings.zone)]
    persona = [material.settings.persona] if one.id == components.CHARACTER_CONTEXT else []
    return [*persona, *(texts[name] for name in one.bounded_by)]


def _instructions(text: str, guidelines: str) -> str:
    """Component 0, with the assistant's guidelines as a block inside."""
    if not guidelines:
        return as_data("system_prompt", text)
    own = as_data("own_guidelines", guidelines)
    return f"<system_prompt>\n{escaped(text)}\n\n{GUIDELINES}\n{own}\n</system_prompt>"


def _content(one: PromptComponent, material: Material) -> str:
    if isinstance(one.content, str):
        return fill(one.content, values(material))
    try:
        text = one.content(MappingProxyType(material.state))
    except Exception as error:
        raise InputError(
            f"the prompt component {one.key!r} could not be rendered: "
            f"{type(error).__name__}: {error}; mend its function, or leave it out"
        ) from error
    if not isinstance(text, str):
        raise InputError(
            f"the prompt component {one.key!r} gave {type(text).__name__} where text is wanted"
        )
    return text
