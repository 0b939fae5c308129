"""The tool that settles a contradiction, once an owner has said which of two facts holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from langchain_core.tools import tool
from pydantic import Field

from memory import pages
from memory.errors import Refusal
from memory.operations import collector_of, dependents_of
from memory.records import (
    Event,
    Fact,
    Operation,
    change_fact,
    doubt_fact,
    is_reflection,
    supersede_fact,
)
from memory.runtime import resources_of, scope_of, store_of
from tools.answers import Answer, Reasoning, Runtime, answer, event_of, refusals_answered
from tools.origins import stranger_in

MOST_ALIKE = 20
"""Facts looked through for one with a text that is given."""

OWNERS_ONLY = "Leave it open; an owner can settle it."


@tool
@refusals_answered
async def settle_dispute(
    holds: Annotated[str, Field(description="Id or text of the fact that an owner says is true.")],
    falls: Annotated[str, Field(description="Id or text of the fact that contradicts it.")],
    runtime: Runtime,
    reasoning: Reasoning = None,
) -> Answer:
    """Settle a contradiction that you were shown, when an owner has just said which fact holds."""
    event = _of_owner(runtime)
    semantic, scope = resources_of(runtime.config).semantic, scope_of(runtime.config)
    open_ = await pages.open_disputes(store_of(runtime), semantic, scope)
    doubts = await pages.open_doubts(store_of(runtime), semantic, scope)
    meant = _meant(holds, falls, [*open_, *doubts])
    meant = meant or _meant(holds, falls, await _told(holds, falls, runtime))
    if meant is None:
        raise Refusal(
            f"{holds!r:.80} and {falls!r:.80} are no contradiction that is open",
            "Give the two ids, or the two texts, of one contradiction as they were shown.",
        )
    keeps, goes = meant
    if goes["invalid_at"] is not None:
        operations = [confirmed(keeps, event)]
    else:
        store = store_of(runtime)
        beside = await dependents_of([goes], store=store, semantic=semantic, scope=scope)
        operations = settled(keeps, goes, event, beside)
    await collector_of(runtime.config, runtime.store).write(operations)
    return answer(runtime, {"holds": keeps["text"], "no_longer_holds": goes["text"]})


def settled(
    keeps: Fact, goes: Fact, event: Event, dependents: Sequence[Fact] = ()
) -> list[Operation]:
    """The fact that falls is superseded by the other one, which is disputed no more.

    `dependents`: the facts that depend on the one that falls, which are in doubt then.
    """
    sources, reason = [event["id"]], f"settled by {event['sender']}"
    left = [op for op in keeps.get("disputed", []) if op != goes["op"]]
    return [
        # It falls from the time at which it was said: it was never true.
        supersede_fact(goes, keeps["op"], goes["valid_from"], sources, reason),
        change_fact(keeps, {"disputed": left}, sources, reason, place=f"settled {goes['op']}"),
        *(doubt_fact(one, goes["op"], sources, reason) for one in dependents if one != keeps),
    ]


def confirmed(fact: Fact, event: Event) -> Operation:
    """A doubtful fact that an owner says still holds: it no longer depends on what fell."""
    left = [op for op in fact.get("depends_on", []) if op not in fact["doubtful"]]
    after = {"doubtful": [], "depends_on": left}
    reason = f"confirmed by {event['sender']}"
    return change_fact(fact, after, [event["id"]], reason, place=f"confirmed {event['id']}")


def _of_owner(runtime: Runtime) -> Event:
    event = event_of(runtime)
    if event is None or is_reflection(event):
        raise Refusal("A contradiction is settled in answer to an owner only", OWNERS_ONLY)
    if who := stranger_in(runtime):
        raise Refusal(f"{who} is not an owner of this assistant", OWNERS_ONLY)
    return event


async def _told(holds: str, falls: str, runtime: Runtime) -> list[tuple[Fact, Fact]]:
    """The contradictions among the facts that have these texts: not all stand on a page."""
    semantic, scope = resources_of(runtime.config).semantic, scope_of(runtime.config)
    found = {
        fact["op"]: fact
        for text in (holds, falls)
        for fact, _ in await semantic.keywords(scope, text, MOST_ALIKE)
        if _is(fact, text)
    }
    return [
        (one, found[other])
        for one in found.values()
        for other in one.get("disputed", ())
        if other in found
    ]


def _meant(holds: str, falls: str, pairs: Sequence[tuple[Fact, Fact]]) -> tuple[Fact, Fact] | None:
    """(the fact that holds, the fact that falls) of the open contradiction that is meant."""
    for fact, other in pairs:
        for keeps, goes in ((fact, other), (other, fact)):
            if _is(keeps, holds) and _is(goes, falls):
                return keeps, goes
    return None


def _is(fact: Fact, given: str) -> bool:
    bare = given.strip(" []()#.'\"").lower()
    named = len(bare) >= pages.LEAST_ID and fact["id"].startswith(bare)
    return named or bare == fact["text"].strip(" []()#.'\"").lower()
