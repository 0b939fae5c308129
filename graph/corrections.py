"""Mending memory: what a person says is true takes the place of a fact."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from memory import audit, journal, night_undo, persona
from memory.apply import apply_operations
from memory.audit import AuditEntry
from memory.audit_memory import of_correction
from memory.errors import InputError
from memory.importance import TRUST
from memory.models.words import shortened
from memory.operations import add_entry, add_fact, link, operation_id, supersede_fact
from memory.records import Fact, FactDraft, JournalEntry, Operation

if TYPE_CHECKING:
    from graph.handle import AsyncAgent

IMPORTANCE = 7
"""Importance of what a person took the trouble to correct, at the least."""
LISTED = 5
"""Facts that an error names."""
QUOTED = 80
"""Characters of a text that an error quotes."""

_SHOWN_AT = "`circadian recall --all` shows the facts with their ids"


async def correct(agent: AsyncAgent, fact_id: str, text: str, by: str | None = None) -> Fact:
    """Put `text` in the place of a fact, as `by` says (default the owner); the fact that holds now.

    The old fact keeps its record and is superseded. What was said stands in the journal, and the
    new fact cites it. The same correction twice is one; a text that stands already changes nothing.

    Args:
        agent: an open agent; it is held meanwhile, as by a run.
        fact_id: the fact's id, or how it begins where no other does.
        text: what is true, as `by` would say it: "I moved to Oslo".
        by: who says so.

    Raises:
        InputError: no such fact, one that another has superseded (it is named), no text, or a text
            about the assistant itself.
        BusyError: another process holds the agent.
        ModelError: the embedder gave no vector.
    """
    said, who = " ".join(text.split()), _person(agent, by)
    if not said:
        raise InputError("there is nothing to correct it to: the text is empty")
    if wrong := persona.violation(said, who):
        raise InputError(f"facts are about the world and its people, not the assistant: {wrong}")
    async with agent._lock:
        await night_undo.finish(agent.store, agent.resources.semantic, agent.scope)
        old = await find_fact(agent, fact_id)
        op = operation_id("correction", old["id"], who, said)
        standing = await _standing(agent, old, op)
        if old["text"] == said and standing is None:
            return old
        at = standing["created"] if standing else agent.resources.clock().isoformat()
        operations = _operations(old, said, who, op, at)
        store, scope, semantic = agent.store, agent.scope, agent.resources.semantic
        await apply_operations(operations, store=store, semantic=semantic, scope=scope)
        new = (await semantic.by_op(scope, [op]))[op]
        await audit.write(store, scope, [_told(old, new, who)])
        return new


async def find_fact(agent: AsyncAgent, given: str) -> Fact:
    """The fact with the id `given`, or the only one whose id begins so.

    Raises:
        InputError: there is none, or there are several.
    """
    wanted = given.strip().rstrip("…").lower()
    if not wanted:
        raise InputError(f"no fact is named; {_SHOWN_AT}")
    semantic, scope = agent.resources.semantic, agent.scope
    if exact := await semantic.get(scope, wanted):
        return exact
    fits = [fact for fact in await semantic.all(scope) if fact["id"].startswith(wanted)]
    if len(fits) == 1:
        return fits[0]
    if fits:
        some = ", ".join(fact["id"] for fact in fits[:LISTED])
        more = ", ..." if len(fits) > LISTED else ""
        raise InputError(f"{len(fits)} facts have ids that begin with {wanted}: {some}{more}")
    if await journal.read(agent.store, scope, given.strip()):
        raise InputError(
            f"{given.strip()} is an entry of the journal and no fact; tell the agent what is true "
            "(`circadian send`)"
        )
    raise InputError(f"there is no fact {given.strip()!r:.80}; {_SHOWN_AT}")


def _person(agent: AsyncAgent, by: str | None) -> str:
    """Who says it. Raises InputError for a name that is empty."""
    who = agent._owner() if by is None else " ".join(by.split())
    if not who:
        raise InputError("--by needs a name")
    return who


async def _standing(agent: AsyncAgent, old: Fact, op: str) -> Fact | None:
    """The fact that this very correction made before, where it still holds; None: not made yet.

    Raises:
        InputError: the old fact no longer holds, and it is another one that does.
    """
    made = (await agent.resources.semantic.by_op(agent.scope, [op])).get(op)
    if old["invalid_at"] is None or (made is not None and made["invalid_at"] is None):
        return made
    now = await _now_held(agent, old)
    if now["invalid_at"] is not None:
        raise InputError(f"fact {old['id']} no longer holds since {old['invalid_at']}")
    raise InputError(
        f"fact {old['id']} is superseded; what holds now is {now['id']}: "
        f"{shortened(now['text'], QUOTED)!r}; correct that one"
    )


async def _now_held(agent: AsyncAgent, old: Fact) -> Fact:
    """What stands at the end of the chain that superseded `old`."""
    seen, now = {old["id"]}, old
    while now["superseded_by"] and now["superseded_by"] not in seen:
        after = await agent.resources.semantic.get(agent.scope, now["superseded_by"])
        if after is None:
            break
        seen.add(after["id"])
        now = after
    return now


def _told(old: Fact, new: Fact, who: str) -> AuditEntry:
    """The line in the audit log; the same at every try."""
    at, origin = datetime.fromisoformat(new["created"]), new["source_events"][0]
    return of_correction(old["id"], new["id"], at=at, who=who, origin=origin)


def _operations(old: Fact, said: str, who: str, op: str, at: str) -> list[Operation]:
    """What a correction comes to; the same at every try, since `at` is that of the first."""
    entry = _entry(old, said, who, op, at)
    draft: FactDraft = {
        "op": op,
        "text": said,
        "source_entries": [entry["id"]],
        "source_events": entry["sources"],
        "speaker": who,
        "entities": old["entities"],
        "trust": entry["source_trust"],
        "importance": entry["importance"],
        "created": at,
        "valid_from": at,
    }
    reason = f"corrected by {who}"
    return [
        add_entry(entry, reason),
        add_fact(draft, reason),
        supersede_fact(old, op, at, [entry["id"], *entry["sources"]], reason),
        link(entry["id"], op, at, reason),
    ]


def _entry(old: Fact, said: str, who: str, op: str, at: str) -> JournalEntry:
    """What was said, as the journal keeps it: made into a fact already."""
    return {
        "id": f"correction_{datetime.fromisoformat(at):%Y%m%d}_{op[:16]}",
        "timestamp": at,
        "content": f"Correction: {said}",
        "source_type": "direct",
        "source_trust": TRUST["direct"],
        "source_entity": who,
        "importance": max(old["importance"], IMPORTANCE),
        "scoring_method": "manual",
        "tags": ["correction"],
        "related_projects": [],
        "sources": [f"correction_{op[:16]}"],
        "channel": None,
        "consolidation": "consolidated",
    }
