"""Long-term memory: recall it, list all of it, correct a fact, embed it anew, take it elsewhere.

An export is a whole memory out of any agent; an import takes it into an empty one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.embeddings import Embeddings
from typing_extensions import TypedDict

from graph.use_cases.context import AgentContext, match_id
from memory import journal, night, transfer
from memory.errors import FolderError, InputError, NotFoundError
from memory.facts import SemanticMemory
from memory.guards import of_oneself, speaks_of_oneself, violation
from memory.installation import open_installation
from memory.operations import begin_correction, correction_id
from memory.recall import index_entries
from memory.recall import recall as recall_memories
from memory.records import LONGEST_FACT, SELF, Fact, JournalEntry, RecallHit, Scope
from memory.settings import Deployment, configured
from memory.state import at_rest
from memory.text import name_key, shortened, terms

QUOTED = 80
"""Characters of a text that an error quotes."""

_SHOWN_AT = "`circadian recall --all` shows the facts with their ids"


async def recall(
    context: AgentContext,
    query: str,
    limit: int | None = None,
    *,
    include_superseded: bool = False,
    max_tokens: int | None = None,
) -> list[RecallHit]:
    """What long-term memory holds about `query`, best first, each hit with its score parts.

    `limit`: default the setting recall_limit. `max_tokens`: as many short lines as fit, as a
    prompt shows them.
    """
    [hits] = await recall_memories(
        [query],
        scope=context.scope,
        now=context.now(),
        semantic=context.semantic,
        store=context.store,
        settings=context.settings,
        limit=context.settings.recall_limit if limit is None else limit,
        max_tokens=max_tokens,
        include_superseded=include_superseded,
    )
    return hits


async def list_memories(context: AgentContext, query: str | None = None) -> list[dict[str, Any]]:
    """All that recall can find, newest first: facts, superseded ones included, and entries.

    An entry that a fact made from it repeats is left out: recall shows the fact instead.

    With a `query`, only memories that have all its words, in the text or in the names of speaker
    and entities. A memory is `{id, kind, text, score, sources, at}` as from recall (`score` is
    None: nothing is ranked), plus the other fields of its record. Nothing counts as an access.

    Raises:
        MemoryStoreError: semantic memory cannot be read.
    """
    facts = await context.semantic.all(context.scope)
    entries = await journal.since(context.store, context.scope, None)
    said = {one["id"]: set(terms(one["content"])) for one in entries}
    # Entries of which a fact made from them has every word.
    repeated = {
        source
        for fact in facts
        for source in fact["source_entries"]
        if source in said and said[source] <= set(terms(fact["text"]))
    }
    found = (one for one in entries if SELF not in one["tags"] and one["id"] not in repeated)
    rows = [*map(_of_fact, facts), *map(_of_entry, found)]
    wanted = set(terms(query or ""))
    kept = [row for row in rows if wanted <= _words(row)] if wanted else rows
    # Facts of one message are of one time: their operations order them, as ids are random.
    by_op = sorted(
        kept, key=lambda row: (row["kind"] == "fact", row.get("op", row["id"])), reverse=True
    )
    return sorted(by_op, key=lambda row: row["at"], reverse=True)


def _words(row: dict[str, Any]) -> set[str]:
    names = " ".join(filter(None, [row["speaker"], *row["entities"]]))
    return {*terms(row["text"]), *terms(names)}


def _of_fact(fact: Fact) -> dict[str, Any]:
    told = _row(fact["id"], "fact", fact["text"], fact["source_events"], fact["valid_from"])
    return {**told, "access_count": 0, "last_access": None, **fact}


def _of_entry(entry: JournalEntry) -> dict[str, Any]:
    told = _row(entry["id"], "episode", entry["content"], entry["sources"], entry["timestamp"])
    return {**told, "speaker": entry["source_entity"], "entities": [], **entry}


def _row(id_: str, kind: str, text: str, sources: list[str], at: str) -> dict[str, Any]:
    shown = {"id": id_, "kind": kind, "text": text, "score": None}
    return {**shown, "sources": list(sources), "at": at}


async def correct(context: AgentContext, fact_id: str, text: str, by: str | None = None) -> Fact:
    """Supersede a fact with `text`, as said by `by` (default the owner); returns the new fact.

    The old fact keeps its record. What was said goes into the journal, and the new fact cites it.
    The agent is held, as by a run. Whoever holds it next finishes an interrupted correction.
    Idempotent: the same correction is made once, and a text that holds already changes nothing.

    Args:
        fact_id: the fact's id, or an unambiguous beginning of it.
        text: what is true, as `by` would say it: "I moved to Oslo".

    Raises:
        InputError: no such fact, a superseded fact (the error names its successor), no text, a
            text about the assistant, or one in the first person for a fact of somebody else.
        BusyError: another process holds the agent.
        ModelError: the embedder gave no vector.
    """
    async with context.held():
        old = await find_fact(context, fact_id)
        said, who = checked_correction(old, text, context.owner if by is None else by)
        op = correction_id(old, said, who)
        earlier = await _made_earlier(context, old, op)
        if old["text"] == said and earlier is None:
            return old
        at = earlier["created"] if earlier else context.now().isoformat()
        store, semantic, scope = context.store, context.semantic, context.scope
        begun = await begin_correction(
            old, said, who, at, store=store, semantic=semantic, scope=scope
        )
        return await context.carry_out(begun)


def checked_correction(old: Fact, text: str, by: str) -> tuple[str, str]:
    """What a correction of `old` says and who says it, on one line each.

    Raises:
        InputError: nobody says it; the text is no fact: empty, too long, or about the assistant;
            or it would make what one person said of themselves a fact of another.
    """
    said, who, other = " ".join(text.split()), " ".join(by.split()), old["speaker"]
    who = other if other and name_key(who) == name_key(other) else who
    if not who:
        raise InputError("who says it needs a name")
    if not any(map(str.isalnum, said)):
        raise InputError("there is nothing to correct it to: the text has no words")
    if len(said) > LONGEST_FACT:
        raise InputError(f"a fact has at most {LONGEST_FACT:,} characters, and not {len(said):,}")
    if wrong := violation(said, who):
        raise InputError(f"facts are about the world and its people, not the assistant: {wrong}")
    if said != old["text"] and _own_words_of_another(old, said, who):
        raise InputError(
            f"{other} says this of themselves, and {who} is not {other}: write it about "
            f'{other}, as in "{other}\'s ...", or name {other} as who says it'
        )
    return said, who


def likely_speaker(old: Fact, said: str, owner: str) -> str:
    """Who says a correction if nobody is named: the fact's speaker, of themselves, or `owner`."""
    return (old["speaker"] or owner) if _own_words_of_another(old, said, owner) else owner


def _own_words_of_another(old: Fact, said: str, who: str) -> bool:
    return old["speaker"] not in (None, who) and of_oneself(old) and speaks_of_oneself(said)


async def find_fact(context: AgentContext, given: str) -> Fact:
    """The fact with the id `given`, or the only one whose id begins with it."""
    wanted = given.strip().rstrip("…").lower()
    if not wanted:
        raise InputError(f"no fact is named; {_SHOWN_AT}")
    semantic, scope = context.semantic, context.scope
    if exact := await semantic.get(scope, wanted):
        return exact
    facts = {fact["id"]: fact for fact in await semantic.all(scope)}
    if found := match_id(wanted, facts, "facts"):
        return facts[found]
    entries = await journal.since(context.store, scope, None)
    if match_id(given, (one["id"] for one in entries), "entries"):
        raise NotFoundError(
            f"{given.strip()} is an entry of the journal and no fact; tell the agent what is true "
            "(`circadian send`), or erase it with `circadian forget --entry`"
        )
    raise NotFoundError(f"there is no fact {given.strip()!r:.80}; {_SHOWN_AT}")


async def find_entry(context: AgentContext, given: str) -> str:
    """The id of the journal entry `given`, or of the only one whose id begins with it."""
    wanted = given.strip()
    if await journal.read(context.store, context.scope, wanted):
        return wanted
    ids = [one["id"] for one in await journal.since(context.store, context.scope, None)]
    if found := match_id(wanted, ids, "entries"):
        return found
    shown_at = _SHOWN_AT.replace("facts", "entries")
    raise NotFoundError(f"there is no entry {wanted!r:.80}; {shown_at}")


async def _made_earlier(context: AgentContext, old: Fact, op: str) -> Fact | None:
    """The fact that this same correction made earlier; None if it was not made yet.

    Raises:
        InputError: the old fact no longer holds, and this correction is not the reason.
    """
    made = (await context.semantic.by_op(context.scope, [op])).get(op)
    if old["invalid_at"] is None or (made is not None and made["invalid_at"] is None):
        return made
    now = [old, *await successors(context, old)][-1]
    if now["invalid_at"] is not None:
        raise InputError(f"fact {old['id']} no longer holds since {old['invalid_at']}")
    raise InputError(
        f"fact {old['id']} is superseded; what holds now is {now['id']}: "
        f"{shortened(now['text'], QUOTED)!r}; correct that one"
    )


async def successors(context: AgentContext, fact: Fact) -> list[Fact]:
    """What superseded a fact, step by step, up to what holds now."""
    found: dict[str, Fact] = {}
    now: Fact | None = fact
    while now is not None and (by := now["superseded_by"]) and by not in {*found, fact["id"]}:
        now = await context.semantic.get(context.scope, by)
        if now is not None:
            found[now["id"]] = now
    return list(found.values())


# Reindexing: changing the embedder, and embedding every memory without a vector


BATCH = 128
"""Texts per embedder call and per write."""


async def embed_in_batches(
    memory: SemanticMemory,
    progress: Callable[[int, int], object] = lambda done, total: None,
    scope: Scope | None = None,
) -> tuple[int, int]:
    """Embed all memories without a vector of the current embedder, of one agent or of all.

    Returns how many got a vector, and how many still have none because others wrote meanwhile.
    """
    done, left = 0, await memory.count_unembedded(scope)
    progress(done, left)
    while embedded := await memory.embed_waiting(BATCH, scope):
        done += embedded
        left = await memory.count_unembedded(scope)
        progress(done, done + left)
    return done, left


class Reindexing(NamedTuple):
    """The result of a reindexing."""

    embedder: str
    dimension: int
    """Numbers per vector."""
    was: str | None
    """The embedder recorded before; None if it could not be loaded."""
    embedded: int
    """Memories that got a vector now."""
    left: int
    """Memories still without a vector, because others wrote them meanwhile."""


async def reindex(
    data: Path | None = None,
    embedder: str | Embeddings | None = None,
    *,
    deployment: Deployment | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Reindexing:
    """Record another embedder if one is given, and embed every memory that has no vector of it.

    For all agents of the data folder or database; none of them runs meanwhile. After an
    interruption, the next call continues. CIRCADIAN_EMBEDDER and CIRCADIAN_OFFLINE are ignored.
    `deployment`: where; by default as it is configured. `progress` is called with the numbers of
    memories done and to do.

    Raises:
        BusyError: another process runs an agent, or a server does.
        InputError: the embedder is unknown or lacks its key; nothing was changed.
        ModelError: the embedder failed; what is done stays done.
    """
    if deployment is None:
        deployment = (await asyncio.to_thread(configured, data)).deployment
    undecided = deployment.model_copy(update={"embedder": None, "offline": False})
    open_as_recorded = partial(open_installation, undecided, data=data)
    open_changed = partial(
        open_as_recorded,
        embedder=embedder if isinstance(embedder, str) else None,
        embeddings=embedder if isinstance(embedder, Embeddings) else None,
        change=embedder is not None,
    )
    try:
        recorded = await asyncio.to_thread(open_as_recorded)
        was: str | None = recorded.embedder
    except FolderError:  # The recorded embedder was an object: no name can load it again.
        recorded, was = await asyncio.to_thread(open_changed), None
    try:
        async with recorded.server_lock(timeout=deployment.lock_timeout, alone=True):
            home = await asyncio.to_thread(open_changed)
            try:
                embedded, left = await embed_in_batches(home.semantic, progress)
            finally:
                await asyncio.to_thread(home.close)
    finally:
        await asyncio.to_thread(recorded.close)
    return Reindexing(home.embedder, home.dimension, was, embedded, left)


# Export and import


Progress = Callable[[str, int, int], object]
"""Called with what is being done, how much is done, and the total."""


class Imported(TypedDict):
    """The result of an import."""

    records: int
    counts: dict[str, int]
    """Lines of the file by kind."""
    already: bool
    """The same file was imported before: nothing was changed."""


class FileLines:
    """A file's lines; each iteration reads the file again."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[str]:
        try:
            with self._path.open(encoding="utf-8") as file:
                yield from file
        except UnicodeDecodeError:
            raise InputError(f"{self._path} is not UTF-8 text") from None
        except OSError as error:
            raise InputError(f"{self._path}: {error.strerror or error}") from None


async def export_memory(
    context: AgentContext, *, name: str | None = None, embedder: str | None = None
) -> AsyncIterator[dict[str, Any]]:
    """The agent's whole memory, one record at a time; takes no lock.

    `name` and `embedder` go into the first record, for people. `memory.transfer.line_of` makes a
    line of a record. `memory.transfer.transfer` says what is exported while a run is under way.

    Raises:
        InputError: a forget was interrupted and has to be finished first.
    """
    source = transfer.AgentMemory(context.store, context.semantic, context.scope)
    waiting, aside = await transfer.waiting_in(source)
    values = dict((await context.snapshot()).values)
    at = context.now().isoformat()
    who = name or context.scope.thread
    yield await transfer.header(source, agent=who, embedder=embedder, at=at)
    async for record in transfer.records(source, transfer.Taken(waiting, aside, values)):
        yield record


async def import_memory(
    context: AgentContext,
    lines: Iterable[str],
    *,
    progress: Progress = lambda what, done, of: None,
    admit: Callable[[Mapping[str, int]], object] = lambda counts: None,
) -> Imported:
    """Import an exported memory into this agent, which must be empty.

    Every line is checked before anything is written. The same lines a second time change nothing,
    or finish an import of them that was interrupted; until then nothing runs.
    `lines` are read several times: a list, or `FileLines`. Before an import begins, `admit` gets
    the number of lines of each kind, and may refuse the import with an error of its own.

    Raises:
        InputError: a line is wrong (with its number), the file is cut, the agent is not empty,
            another agent here has the same facts, or an import of another file was interrupted.
        BusyError: another process holds the agent.
    """
    lines = lines if not isinstance(lines, Iterator) else list(lines)
    checked = await asyncio.to_thread(transfer.check, lines)
    total = sum(checked.counts.values())
    imported: Imported = {"records": total, "counts": checked.counts, "already": False}
    async with context.lock():
        store, scope, semantic = context.store, context.scope, context.semantic
        done_before = await transfer.begun(store, scope, checked.digest)
        if done_before:
            return {**imported, "already": True}
        if done_before is None:  # False: the import was interrupted, and goes on
            admit(checked.counts)
            if at_rest((await context.snapshot()).values):
                raise InputError(transfer.NOT_EMPTY)
            await transfer.check_target(store, semantic, scope, checked.facts)
            await transfer.mark(store, scope, checked.digest, done=False)
        source = transfer.AgentMemory(store, semantic, scope)
        await transfer.write(lines, source, on_batch=lambda done: progress("records", done, total))
        if checked.state:  # last: an agent without a state has never run
            await context.replace_state(transfer.state_of(checked.state))
        await transfer.mark(store, scope, checked.digest, done=True)
        await night.finish(store, semantic, scope)
        await index_entries(store, semantic, scope)
        # Until a fact is embedded, recall finds it by its words alone; `reindex` can finish this.
        await embed_in_batches(semantic, partial(progress, "vectors"), scope)
    return imported
