"""Origins: whose words a call was shown, and on whose its writes and messages rest.

Owners' words need no origin. What a model writes may rest on anything in its prompt, so a write
keeps the names of all others whose words were there, unless it says only what it cites. No words
are searched for tricks.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableConfig

from memory import entities
from memory.compaction import MASK
from memory.errors import Refusal
from memory.events import owners_of, set_off_by_owner
from memory.guards import (
    Source,
    repeats,
    rests_on,
    rewords,
    stands_near,
    ungrounded,
    without_reminder,
)
from memory.journal import Listeners, audience_of
from memory.messages import ORIGINS, OWNER, REFUSED, mark_of, of_tick
from memory.operations import Collector
from memory.planning import lines_of
from memory.records import OWN_PREFIX, FactDraft, Goal, JournalEntry, Marks, Project, is_reflection
from memory.runtime import resources_of, scope_of, settings_of, store_of
from memory.settings import Settings
from memory.state import State, held
from memory.text import asks_nothing
from tools.answers import Runtime, event_of
from tools.policy import listeners_of

HEARSAY_TRUST = 0.3
"""Trust (0..1) of a fact, at most, that may rest on words of others than those that it cites."""

MOST_BEFORE = 20
"""Most known facts that are searched for what the speakers said before."""

THE_OWNER = "owner user I ich Nutzer Nutzerin Benutzer Besitzer usuario usuaria utilisateur"
"""Words for the owner who writes to the assistant."""

OWN_TOOLS = frozenset(
    {
        *("add_goal", "add_journal_entry", "add_session_memory", "compact_session_memory"),
        *("create_project", "decompose_goal", "delegate_task", "forget_memory"),
        *("get_system_status", "go_to_sleep", "list_projects", "noop", "recall_memories"),
        *("review_journal", "send_message", "settle_dispute", "store_memory", "swap_project"),
        *("update_entity_observation", "update_goal", "update_project", "update_system_prompt"),
        "use_tool",
    }
)
"""The built-in tools: they answer from the assistant's own state and memory, all others look at the
world. Listed by name, as the registry imports this module."""

Change = Literal["goal", "project"]


def owners_in(runtime: Runtime) -> tuple[str, ...]:
    """The ids of the owners."""
    return _owners(settings_of(runtime.context), runtime.config)


def _owners(settings: Settings, config: RunnableConfig) -> tuple[str, ...]:
    resources = resources_of(config)
    return owners_of(settings, user=resources.user, served=resources.served)


def others_shown(state: Mapping[str, Any], owners: Collection[str]) -> list[str]:
    """Everybody but the owners whose words a tick's prompt holds, in order.

    Tools that look at the world are named, too: nobody answers for what they return.
    """
    context = state.get("context") or {}
    shown = [*state["messages"], *(state.get("exchange") or [])]
    return list(dict.fromkeys([*context.get("origins", ()), *origins_of(shown, owners)]))


def origins_of(messages: Iterable[AnyMessage], owners: Collection[str]) -> list[str]:
    """Everybody but the owners whose words these messages hold, in order."""
    return list(dict.fromkeys(name for one in messages for name in _of_message(one, owners)))


def _of_message(message: AnyMessage, owners: Collection[str]) -> Iterator[str]:
    mark = mark_of(message)
    if isinstance(message, SystemMessage):
        yield from mark.get(ORIGINS, ())
    elif isinstance(message, HumanMessage):
        said = message.name is not None and not str(message.id).startswith(OWN_PREFIX)
        if said and not mark.get(OWNER, message.name in owners):
            yield str(message.name)
    elif isinstance(message, ToolMessage) and message.content != MASK and not mark.get(REFUSED):
        yield from _of_answer(message, owners)


def _of_answer(message: ToolMessage, owners: Collection[str]) -> Iterator[str]:
    if message.name not in OWN_TOOLS:
        yield f"the tool {message.name}"
        return
    if message.name not in _SHOWING or not str(message.text).startswith("{"):
        return
    told = json.loads(str(message.text))
    for row in (*told.get("memories", ()), *told.get("entries", ())):
        yield from rests_on(row.get("speaker") or row.get("source_entity"), row, owners)
    for name in told.get("tools_used", ()):
        if name not in OWN_TOOLS:
            yield f"the tool {name}"


_SHOWING = ("delegate_task", "recall_memories", "review_journal")
"""Own tools whose answers hold other people's words."""


def others_beside(
    runtime: Runtime, collector: Collector, cited: Iterable[JournalEntry] = ()
) -> list[str]:
    """People whose words the call was shown, without owners and the people cited."""
    owners = owners_in(runtime)
    if collector.shown:
        entries = collector.shown.values()
        found = [name for one in entries for name in of_entry(one, owners)]
    else:
        found = others_shown(runtime.state, owners)
    own = {name for one in cited for name in of_entry(one, owners)}
    return [one for one in dict.fromkeys(found) if one not in own]


def of_entry(entry: JournalEntry, owners: Collection[str]) -> list[str]:
    """People other than owners on whose words an entry rests."""
    return rests_on(entry["source_entity"], entry, owners)


async def may_be_of_others(
    text: str,
    cited: Sequence[JournalEntry],
    runtime: Runtime,
    collector: Collector,
    *,
    checked: bool = False,
) -> list[str]:
    """People whose words a text may hold beside the cited words; [] if it holds only these.

    Awake, the text has to repeat cited words, or to reword the event in hand and add nothing. A
    night shows the words of owners by themselves, so that a fair rewording is enough there, and a
    fact may name what the same people spoke of before.

    `checked`: the text is a fact, whose dates and numbers were compared with what it cites.
    """
    others = others_beside(runtime, collector, cited)
    said = [one["content"] for one in cited]
    names = [one["source_entity"] or "" for one in cited]
    if checked and collector.shown is None:
        others = _without_small_talk(others, runtime.state)
    if not others:
        return []
    if collector.shown is None:
        only_cited = repeats(text, said, names) or await _rewords(text, cited, runtime, checked)
        return [] if only_cited else others
    beside = [one["content"] for one in collector.shown.values() if one not in cited]
    only_cited = stands_near(text, said, names, others=beside)
    if not only_cited and checked and collector.shown:
        only_cited = stands_near(text, said, names, await _known_of(names, text, runtime), beside)
    return [] if only_cited else others


def _without_small_talk(names: Sequence[str], state: Mapping[str, Any]) -> list[str]:
    """The names without people of whom a tick shows nothing but small talk, which is no source."""
    shown = [*state["messages"], *(state.get("exchange") or [])]
    # Senders choose their names: beyond the first two words a name may hold the claim itself.
    said = [one for one in shown if not asks_nothing(str(one.text), (one.name or "").split()[:2])]
    told = [*(state.get("context") or {}).get("origins", ()), *origins_of(said, ())]
    return [one for one in names if one in told]


async def _rewords(
    text: str, cited: Sequence[JournalEntry], runtime: Runtime, checked: bool
) -> bool:
    """Whether a text rewords the event in hand, which must be its only source."""
    event = event_of(runtime)
    if event is None or any(event["id"] not in one["sources"] for one in cited):
        return False
    store, scope = store_of(runtime), scope_of(runtime.config)
    profile = (await entities.look_up(store, scope, senders=[event["sender"]]))[0][0].profile
    names = [event["sender"], *((profile["name"], *profile["aliases"]) if profile else ())]
    names += [THE_OWNER] if other_sender(runtime) is None else []
    people = [event["sender"], *owners_in(runtime)]
    heard = [one for one in runtime.state["messages"] if isinstance(one, HumanMessage)]
    said = [str(one.text) for one in heard if one.name in people]
    earlier = [*said, *await _known_of(people, text, runtime)]
    return rewords(text, event["text"], names, earlier, dated=checked)


async def _known_of(people: Collection[str], text: str, runtime: Runtime) -> list[str]:
    """The facts nearest to a text, by words, that rest on these people's words alone."""
    known = await resources_of(runtime.config).semantic.keywords(
        scope_of(runtime.config), text, MOST_BEFORE, include_superseded=True
    )
    return [one["text"] for one, _ in known if one["speaker"] in people and "origins" not in one]


def kept_origins(
    draft: FactDraft, cited: Sequence[JournalEntry], others: Sequence[str], owners: Collection[str]
) -> FactDraft:
    """The draft with its origins; without a speaker if one of `others` may have said it."""
    inherited = [name for one in cited for name in one.get("origins", ())]
    whose = [name for one in cited for name in of_entry(one, owners)]
    named = whose if others or draft["speaker"] is None else inherited
    origins = list(dict.fromkeys([*named, *others]))
    if not origins:
        return draft
    kept: FactDraft = {**draft, "origins": origins}
    if others:
        kept = {**kept, "speaker": None, "trust": min(kept["trust"], HEARSAY_TRUST)}
    return kept


def other_sender(runtime: Runtime) -> str | None:
    """The sender of the tick's event, if that is not an owner; else None."""
    event = event_of(runtime)
    if event is None or is_reflection(event):
        return None
    served = resources_of(runtime.config).served
    by_owner = set_off_by_owner(event, owners=owners_in(runtime), served=served)
    return None if by_owner else event["sender"]


def not_of_owner(state: State, config: RunnableConfig, settings: Settings) -> str | None:
    """Why the tick does not answer an owner; None if it does."""
    context, event = state["context"], state["event"]
    if context is None or context["context_type"] != "tick_event" or event is None:
        return "This is done in answer to an owner only"
    owners, served = _owners(settings, config), resources_of(config).served
    if set_off_by_owner(event, owners=owners, served=served):
        return None
    return f"{event['sender']} is not an owner of this assistant"


async def given_by(text: str, runtime: Runtime) -> list[str]:
    """People other than owners on whose words a text rests, which the tick writes into the state.

    The text is an owner's own if it repeats or rewords what an owner said in the tick.
    """
    event, others = event_of(runtime), others_shown(runtime.state, owners_in(runtime))
    if not others or event is None or is_reflection(event) or other_sender(runtime) is not None:
        return others
    own = repeats(text, [event["text"]]) or await _rewords(text, (), runtime, checked=False)
    return [] if own else others


def listeners_in(runtime: Runtime) -> Listeners:
    """Who reads the tick's answer."""
    settings, resources = settings_of(runtime.context), resources_of(runtime.config)
    return listeners_of(runtime.state, settings, resources)


def in_public(runtime: Runtime) -> bool:
    """Whether others than owners read the tick's answer."""
    return listeners_in(runtime).audience == "public"


async def marks_of(
    text: str, runtime: Runtime, inherited: Sequence[str] = (), *, told: Sequence[str] = ()
) -> Marks:
    """To whom a new goal or project belongs, on whose words it rests, and who may know it.

    `told`: its further texts, such as subtasks.
    """
    who, others = other_sender(runtime), await given_by(text, runtime)
    lines = lines_of("\n".join([text, *told])) if in_public(runtime) else ()
    marks: Marks = {"public": sorted(lines)}
    if who is not None:
        marks["by"] = who
    if origins := list(dict.fromkeys([*inherited, *others])):
        marks["origins"] = origins
    return marks


def _has_owners(state: Mapping[str, Any], config: RunnableConfig) -> bool:
    """Whether an owner has ever written: until then no goal or project is an owner's."""
    return resources_of(config).served or bool(state.get("owned"))


def check_owner(runtime: Runtime, instead: str) -> None:
    """Raise a Refusal if somebody who is not an owner set the tick off, once there are owners."""
    who = other_sender(runtime)
    if who is not None and _has_owners(runtime.state, runtime.config):
        raise Refusal(f"{who} is not an owner of this assistant", instead)


def check_change(runtime: Runtime, what: Change, item: Goal | Project | None) -> None:
    """Raise a Refusal if the tick's sender may not change this goal or project.

    People who are not owners may change only their own.
    """
    if item is not None and item.get("by") != other_sender(runtime):
        instead = f"Leave the {what} as it is: it is not theirs. An owner can ask for the change."
        check_owner(runtime, instead)


CHANGES = frozenset(
    {"create_project", "go_to_sleep", "swap_project", "update_goal", "update_project"}
)
"""Tools that change what owners want done."""

ASKED_FOR = CHANGES | {"send_message"}
"""Built-in tools, besides the dangerous ones, whose calls a person has to approve if they rest on
words of people other than owners."""


def foreign_words(
    name: str, args: Mapping[str, Any], state: State, settings: Settings, config: RunnableConfig
) -> list[str]:
    """People other than owners on whose words a call rests, so that a person has to approve it.

    The call is dangerous, a message, or a change of owners' goals that no person asked for; the
    caller decides which calls these are. A call whose arguments are an owner's own words rests on
    these words alone.
    """
    owners, event = _owners(settings, config), state["event"]
    served = resources_of(config).served
    own = event is not None and set_off_by_owner(event, owners=owners, served=served)
    if name == "send_message" and event is not None and args.get("to") == event["sender"]:
        return []
    if name == "send_message" and event is None and _reminds(args, state, settings, owners):
        return []
    if name not in CHANGES:
        others = others_shown(state, owners)
        said = [event["text"]] if own and event is not None else []
        return [] if others and said and _is_said(args, said) else others
    if not _has_owners(state, config):
        return []
    if event is not None and not is_reflection(event):
        # The tool refuses other senders itself; an owner's tick may have read others' words.
        mine = of_tick(state["messages"], state["tick"])
        return origins_of(mine, owners) if own else []
    others = others_shown(state, owners)
    return [one for one in others if one not in _origins_of_target(name, args, state)]


def _reminds(
    args: Mapping[str, Any], state: State, settings: Settings, owners: Collection[str]
) -> bool:
    """Whether a message reminds an owner of an active goal, where nobody but owners reads it."""
    to, channel = args.get("to"), args.get("channel")
    text = without_reminder(str(args.get("text", "")))
    talks = [one["channel"] for one in state["conversations"].values() if one["entity"] == to]
    now, shared = held(state["context"])["now"], state.get("shared_channels") or {}
    heard_by = audience_of(channel, now, shared, by_owner=to in owners, settings=settings)
    if heard_by != "private" or channel not in (None, *talks):
        return False
    active = [one for one in state["goals"].values() if one["status"] == "active"]
    told = [one for one in active if rewords(text, one["description"], owners, (), dated=False)]
    return any(_is_owners(one, state, settings, owners) for one in told)


def _is_owners(goal: Goal, state: State, settings: Settings, owners: Collection[str]) -> bool:
    """Whether a goal rests on owners' words alone, or the history has an owner say it.

    A goal whose date the model worked out has origins, even if an owner's message bears it out.
    """
    if not rests_on(goal.get("by"), goal, owners):
        return True
    text, zone = goal["description"], settings.zone
    marks = ((one, mark_of(one)) for one in state["messages"] if isinstance(one, HumanMessage))
    said = (
        Source(str(message.text), message.name, mark["at"])
        for message, mark in marks
        if message.name and mark.get(OWNER) and mark.get("at")
    )
    return "by" not in goal and any(
        rewords(text, source.text, [str(source.speaker), THE_OWNER], (), dated=True)
        and ungrounded(text, None, [source], zone=zone) is None
        for source in said
    )


def _is_said(args: Mapping[str, Any], said: Sequence[str]) -> bool:
    given = [one for key, one in args.items() if key != "reasoning" and one is not None]
    texts = [one for one in given if isinstance(one, str)]
    return len(texts) == len(given) and all(
        repeats(text, said) or text.casefold() in said[0].casefold() for text in texts
    )


def _origins_of_target(name: str, args: Mapping[str, Any], state: State) -> Sequence[str]:
    if name == "update_goal":
        goal = state["goals"].get(str(args.get("goal_id")))
        return goal.get("origins", ()) if goal else ()
    active = state["projects"]["slots"].get(str(state["projects"]["active"]))
    return active.get("origins", ()) if active else ()
