"""Assemble the prompt: stable blocks, and the blocks in front of the event."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict, cast

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, GetOp

from memory import entities, journal, night, pages
from memory.compaction import visible_events
from memory.events import set_off_by_owner
from memory.facts import SemanticMemory
from memory.guards import repeats, rests_on
from memory.journal import Listeners, Told
from memory.messages import (
    AUDIENCE,
    EVENT_KEY,
    OWNER,
    as_data,
    mark_of,
    marked,
    merge_messages,
    message_of,
    prompt_lines,
)
from memory.pages import ShownLine, ShownPage
from memory.prompt import ENTITY_CONTEXT, PAGES, SEMANTIC_MEMORIES, Material, assembly, rendering
from memory.recall import IN_PROMPT, episodes, fit_for, recall
from memory.records import (
    OWN_PREFIX,
    AssembledContext,
    EntityProfile,
    Fact,
    RecallHit,
    Scope,
    SessionMemory,
    is_reflection,
)
from memory.runtime import resources_of, scope_of, settings_of, store_of
from memory.settings import Settings
from memory.state import State, checked
from memory.storage import read_ahead
from memory.text import one_line, shortened, shown_time
from nodes.tick.assess_task import assessed
from tools.policy import CONTEXTS, as_heard, context_type_for, history, listeners_of, material

RECENT_CALLS = 30
"""Tool calls that a reflection shows, the newest."""

MOST_PAGES = 3
"""People whose pages a prompt shows, the nearest."""

MOST_DISPUTES = 3
"""Open contradictions and doubts that an owner's prompt shows, the newest."""

LONGEST_CALL = 200
"""Characters of a failed call's answer."""


@checked
async def assemble_context(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Render the components, put the event in hand into the history, and assess the task.

    Every model call of the tick sends this prompt unchanged, and the loop only appends messages, so
    that the provider's prompt cache holds. The system message is the same from tick to tick. What
    changes between ticks stands in front of the event, and is not kept in the history.

    Raises InputError if a user's component cannot be rendered.
    """
    settings, resources = settings_of(runtime.context), resources_of(config)
    context_type, now = context_type_for(state["event"]), resources.clock()
    listeners = listeners_of(state, settings, resources)
    owners = listeners.owners
    by_owner = set_off_by_owner(state["event"], owners=owners, served=resources.served)
    scope = scope_of(config)
    heard = as_heard(state, listeners.audience, owners)
    memory = _PromptMemory(
        heard,
        settings,
        scope,
        await _read_ahead(heard, store_of(runtime), scope),
        resources.semantic,
        listeners,
    )
    remembered, found = await memory.shown(context_type, by_owner=by_owner, now=now)
    at = now.isoformat()
    contents = material(state, settings, resources, context_type, now=at, **remembered)
    same, changing = assembly.parted(contents)
    recent = _recent_work(state) if is_reflection(state["event"]) else {}
    front = assembly.front(contents, {**changing, **recent})
    on_pages = (id_ for page in found for line in page.lines for id_ in line.ids)
    assembled: AssembledContext = {
        "context_type": context_type,
        "now": at,
        "system": assembly.system_message(same),
        "front": front,
        "after": assembly.after(contents),
        "tokens": _sizes(contents, [same, {**changing, **recent}]),
        "origins": _origins(heard, remembered, found, owners),
        "recalled": {hit["id"]: hit["text"] for hit in contents.memories if hit["kind"] == "fact"},
        "shown": list(dict.fromkeys([*(hit["id"] for hit in contents.memories), *on_pages])),
    }
    message = _message(state, settings, at, {OWNER: by_owner, AUDIENCE: listeners.audience})
    update = {"context": assembled, "messages": [message], **({"owned": True} if by_owner else {})}
    messages = merge_messages(state["messages"], [message])
    updated = cast(State, {**state, "context": assembled, "messages": messages})
    return {**update, **assessed(updated, settings)}


async def _read_ahead(state: State, store: BaseStore, scope: Scope) -> BaseStore:
    """The store with names, and the profiles and pages of the people who talk, read ahead."""
    talking = entities.talking(state["event"], state["conversations"])
    near, others = (entities.ids_of(some) for some in (talking[:MOST_PAGES], talking[MOST_PAGES:]))
    active = state["projects"]["active"]
    projects = [pages.project_id(active)] if active else []
    gets = [GetOp(scope.namespace(entities.ENTITIES), id_) for id_ in (*near, *others)]
    gets += [
        GetOp(scope.namespace(pages.PAGES), id_)
        for id_ in (pages.DISPUTES, pages.DOUBTS, *near, *projects)
    ]
    # Two lookups need the names: that of people and that of recall.
    names = [scope.namespace(label) for label in (entities.NAMES, episodes.SPEAKERS)]
    return await read_ahead(store, names, gets)


def _origins(
    state: State, remembered: _Shown, found: Sequence[ShownPage], owners: Collection[str]
) -> list[str]:
    """Everybody but the owners whose words the assembled prompt may hold, in order."""
    goals_and_projects = [*state["goals"].values(), *state["projects"]["slots"].values()]
    lines = [line for one in found for line in one.lines]
    people = remembered["people"]
    session_speakers = state["session_memory"].get("said_by", {})
    session_origins = state["session_memory"].get("origins", {})
    buffered = [one["sender"] for one in state["context_buffer"]]
    named: list[Iterable[str]] = [
        *(rests_on(hit["speaker"], hit, owners) for hit in remembered["memories"]),
        *(rests_on(line.speaker, {"origins": line.origins}, owners) for line in lines),
        *(rests_on(one["speaker"], one, owners) for who in people for one in who["observations"]),
        *(rests_on(None, one, owners) for who in people for one in who["attributes"].values()),
        *(rests_on(one.get("by"), one, owners) for one in goals_and_projects),
        *(rests_on(one, {}, owners) for one in (*session_speakers.values(), *buffered)),
        *(rests_on(None, {"origins": names}, owners) for names in session_origins.values()),
    ]
    return list(dict.fromkeys(name for names in named for name in names))


@dataclass(frozen=True)
class _PromptMemory:
    """Long-term memory in a tick's prompt, as far as the listeners may know it."""

    state: State
    settings: Settings
    scope: Scope
    store: BaseStore
    semantic: SemanticMemory
    listeners: Listeners

    async def shown(
        self, context_type: str, *, by_owner: bool, now: datetime
    ) -> tuple[_Shown, list[ShownPage]]:
        """(memories, people and pages, each thing once; all pages). Only owners see disputes."""
        components = CONTEXTS[context_type].enabled_components
        people = await self.people() if ENTITY_CONTEXT in components else []
        found = await self.pages(people) if PAGES in components else []
        disputes = await self.disputes() if PAGES in components and by_owner else []
        fitting, texts = self.fitting_pages(found, disputes)
        profiles = [without_lines(who, fitting) for who in people]
        recalls = SEMANTIC_MEMORIES in components
        shown: _Shown = {
            "memories": await self.recalled(context_type, fitting, now) if recalls else [],
            "people": await entities.as_of_now(self.store, self.semantic, self.scope, profiles),
            "pages": texts,
        }
        return shown, [*found, *disputes]

    def fitting_pages(
        self, found: Sequence[ShownPage], disputes: Sequence[ShownPage]
    ) -> tuple[list[ShownPage], list[str]]:
        """(the pages that the prompt has room for; the texts of all, the disputes first).

        A dispute that does not fit takes no line from a page: the line would appear nowhere.
        """
        first = disputes[: len(self._fitting(self._texts(disputes)))]
        once = each_once([*first, *found], self.state["session_memory"])
        shown = [*first, *(page for page in once if page.id != pages.DISPUTES)]
        texts = self._texts(shown)
        return shown[: len(self._fitting(texts))], texts

    def _texts(self, shown: Sequence[ShownPage]) -> list[str]:
        return [pages.text_of(page, self.settings.zone) for page in shown]

    def _fitting(self, texts: Sequence[str]) -> list[str]:
        room = self.settings.page_tokens, self.state["calibration"]
        return rendering.fitting(texts, lambda text, _: f"{text}\n", *room)[0]

    async def people(self) -> list[EntityProfile]:
        """The nearest people; for a public audience the sender and the people mentioned.

        A public audience sees attributes on pages only, and aliases only of people whom it knows.
        """
        public = self.listeners.audience == "public"
        talks = {} if public else self.state["conversations"]
        found = await entities.in_conversation(self.store, self.scope, self.state["event"], talks)
        if not public:
            return found
        noticed = [one for profile in found for one in profile["observations"]]
        private = await self._private([Told(one["speaker"], one["sources"]) for one in noticed])
        hidden = {one["id"] for one, is_private in zip(noticed, private, strict=True) if is_private}
        people = list[EntityProfile]()
        for who in found:
            kept = [one for one in who["observations"] if one["id"] not in hidden]
            names = who["aliases"] if kept or who["senders"] else []
            people.append({**who, "attributes": {}, "observations": kept, "aliases": names})
        return people

    async def pages(self, people: Sequence[EntityProfile]) -> list[ShownPage]:
        """What holds now of the nearest people and of the active project."""
        near, active = people[:MOST_PAGES], self.state["projects"]["active"]
        shown = await pages.shown(self.store, self.semantic, self.scope, near, active)
        lines = [line for page in shown for line in page.lines]
        private = await self._private([Told(line.speaker, line.sources) for line in lines])
        hidden = {line for line, is_private in zip(lines, private, strict=True) if is_private}
        return [
            page._replace(lines=tuple(line for line in page.lines if line not in hidden))
            for page in shown
        ]

    async def disputes(self) -> list[ShownPage]:
        """What an owner may settle: contradictions and doubts both sides of which may be known."""
        found = await pages.open_questions(self.store, self.semantic, self.scope)
        disputes, doubts = [await self._known(pairs) for pairs in found]
        left = MOST_DISPUTES - len(disputes[:MOST_DISPUTES])
        return pages.of_disputes(disputes[:MOST_DISPUTES], doubts[:left])

    async def _known(self, found: Sequence[tuple[Fact, Fact]]) -> list[tuple[Fact, Fact]]:
        claims = [Told(fact["speaker"], fact["source_entries"]) for pair in found for fact in pair]
        private = await self._private(claims)
        sides = zip(found, private[::2], private[1::2], strict=True)
        return [pair for pair, one, other in sides if not (one or other)]

    async def recalled(
        self, context_type: str, seen: Sequence[ShownPage], now: datetime
    ) -> list[RecallHit]:
        """Memories near the event, or else near the active goals, that the prompt does not show."""
        state, settings, event = self.state, self.settings, self.state["event"]
        where: Any = {"scope": self.scope, "semantic": self.semantic, "store": self.store}
        active = (g["description"] for g in state["goals"].values() if g["status"] == "active")
        query = event["text"] if event else " ".join(active)
        if not query.strip():
            return []
        overheard = rendering.in_buffer(
            state["context_buffer"],
            tokens=settings.context_buffer_tokens,
            calibration=state["calibration"],
            zone=settings.zone,
        )
        [hits] = await recall(
            [query],
            **where,
            settings=settings,
            now=now,
            limit=IN_PROMPT,
            max_tokens=settings.recall_tokens,
            heard=event is not None,
            visible=[
                # After a crash the event may be in the journal already.
                *([event["id"]] if event else []),
                *visible_events(history(state, settings, context_type)),
                *(heard["id"] for heard in overheard),
                *(id_ for page in seen for line in page.lines for id_ in line.whole),
            ],
        )
        hits = beside(hits, seen, state["session_memory"])
        hits = await fit_for(self.listeners, hits, **where, settings=settings)
        most = settings.probes_kept
        await night.keep_probe(query, hits, store=self.store, scope=self.scope, now=now, most=most)
        return hits

    async def _private(self, told: Sequence[Told]) -> list[bool]:
        return await journal.private_ones(
            self.store, self.scope, told, listeners=self.listeners, settings=self.settings
        )


class _Shown(TypedDict):
    memories: list[RecallHit]
    people: list[EntityProfile]
    pages: list[str]


def each_once(shown: Sequence[ShownPage], memory: SessionMemory) -> list[ShownPage]:
    """The pages without lines that repeat an earlier page, or an item of `memory` word for word."""
    texts = {_bare(text) for text in (*memory["key_facts"], *memory["learned_patterns"])}
    told, kept = list[ShownLine](), list[ShownPage]()
    for page in shown:
        new = [line for line in page.lines if not _is_told(line, told)]
        told += new
        lines = tuple(line for line in new if _bare(line.text) not in texts)
        if lines:
            kept.append(page._replace(lines=lines))
    return kept


def _is_told(line: ShownLine, told: Sequence[ShownLine]) -> bool:
    """Whether earlier lines on its facts repeat it: pages may show different parts of a fact."""
    others = [one.text for one in told if not {*one.ids}.isdisjoint(line.ids)]
    return bool(others) and repeats(line.text, others, [line.attribute or ""])


def _bare(text: str) -> str:
    return one_line(text).casefold().rstrip(" .")


def beside(
    memories: Sequence[RecallHit], shown: Sequence[ShownPage], memory: SessionMemory
) -> list[RecallHit]:
    """The memories without those that a page or `memory` shows already.

    A page covers the facts that it shows whole, and the entries from which they were made. It does
    not cover the facts that they superseded, which may have details that nothing replaced.
    """
    lines = [line for page in shown for line in page.lines]
    facts = {id_ for line in lines for id_ in line.whole}
    sources = {source for line in lines if line.whole == line.ids for source in line.sources}
    texts = {_bare(text) for text in (*memory["key_facts"], *memory["learned_patterns"])}
    return [
        hit
        for hit in memories
        if (hit["id"] not in facts or "earlier" in hit)
        and _bare(hit["text"]) not in texts
        and not (hit["kind"] == "episode" and {hit["id"], *hit["sources"]} <= sources)
    ]


def without_lines(profile: EntityProfile, shown: Sequence[ShownPage]) -> EntityProfile:
    """The profile without attributes that pages show, and observations that its own page covers."""
    lines = [line for page in shown if page.id == profile["id"] for line in page.lines]
    shown_names = {line.attribute for line in lines}
    sources = {id_ for one in lines if one.whole == one.ids for id_ in one.sources}
    texts = {_bare(line.text) for page in shown for line in page.lines}
    return {
        **profile,
        "attributes": {
            name: attribute
            for name, attribute in profile["attributes"].items()
            if name not in shown_names and _bare(attribute["value"]) not in texts
        },
        "observations": [
            noticed
            for noticed in profile["observations"]
            if not noticed["sources"] or not sources.issuperset(noticed["sources"])
        ],
    }


def _sizes(contents: Material, parts: Sequence[Mapping[str, str]]) -> dict[str, int]:
    sizes = {one.key: 0 for one in contents.shown}
    for key, text in (row for part in parts for row in part.items()):
        sizes[key] = sizes.get(key, 0) + contents.size(text)
    return {key: size for key, size in sizes.items() if size}


def _recent_work(state: State) -> dict[str, str]:
    """The block of a reflection: the newest tool calls, and how each ended."""
    answers = [one for one in state["messages"] if isinstance(one, ToolMessage)][-RECENT_CALLS:]
    lines = [
        f"- tick {mark_of(call).get('tick', '?')}, {call.name}: "
        + (shortened(one_line(str(call.text)), LONGEST_CALL) if call.status == "error" else "done")
        for call in answers
    ]
    told = "Your newest tool calls, oldest first:\n" + "\n".join(lines)
    return {"recent_work": as_data("recent_work", told)} if lines else {}


def _message(state: State, settings: Settings, now: str, mark: Mapping[str, Any]) -> HumanMessage:
    event, tick = state["event"], state["tick"]
    if event is None:
        own = {EVENT_KEY: {"event": None, "tick": tick}}
        text = f"{prompt_lines.TICK} {shown_time(now, settings.zone)}"
        return HumanMessage(text, id=f"{OWN_PREFIX}autonomous_{tick}", additional_kwargs=own)
    return marked(message_of(event, tick=tick), **mark)
