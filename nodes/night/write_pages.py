"""Rewrite the pages that show what holds now of people, things and projects, without a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import entities, journal, pages
from memory.journal import names_project
from memory.night import EVERY, NightContext, Thought, assistant_names, night_in_hand, plan, proceed
from memory.operations import facts_after, undreamed_facts
from memory.records import (
    Attribute,
    EntityProfile,
    Fact,
    JournalEntry,
    Operation,
    Page,
    Project,
    change_entity,
    end_doubts,
    write_page,
)
from memory.settings import Settings
from memory.state import State, checked
from memory.text import DATE_WORDS, content_stems, says

NEWEST = 500
"""Newest facts that may belong to a project, or replace a superseded fact with a day."""

LATELY = timedelta(days=7)
"""How recently a profile must have changed, in a large memory, for its page to be checked."""

SHARED_WORDS = 2
"""Fewest words of a project's key and summary that make a fact one of the project."""


@checked
async def write_pages(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Drop attributes whose facts fell and doubts whose cause is gone, then renew changed pages."""
    context = await night_in_hand(state, runtime, config)
    await plan(context, "write_pages", [], partial(_think, context))
    return {"night": await proceed(context)}


async def _think(context: NightContext) -> Thought:
    view, assistant = context.pending_view(), assistant_names(context.settings)
    profiles = await view.everyone()
    evidence = await view.with_heirs(entities.cited_by(profiles.values()))
    changes = (tended_to(profile, evidence) for profile in profiles.values())
    tended = [change for change in changes if change]
    profiles = entities.after(profiles, {}, tended)[0]
    written = await pages.everything(context.store, context.scope)
    if await view.reads_all():
        facts, ids = await view.holding(), {*profiles}
    else:  # To read all facts would take too long.
        facts = await _new(context)
        ids = {*(await view.about(facts.values(), assistant)).values()}
        ids |= await _moved(context, profiles, written)
    subjects = await view.subjects(assistant, ids)
    senders = {who: profile for profile in profiles.values() for who in profile["senders"]}
    marked = await _marked(context, facts)
    ended = end_doubts(marked, [], "what it rests on holds, and is contradicted no more")
    marked = facts_after(marked, ended)
    wanted = dict[str, Page | None]()
    for id_ in subjects.keys() & profiles.keys():
        about, profile = subjects[id_].facts, profiles[id_]
        borne_out = pages.borne_out(about, profile, senders, context.owners, known=marked)
        wanted[id_] = pages.page_of(id_, profile["attributes"], borne_out)
    wanted |= await _of_projects(context, senders, marked)
    wanted[pages.DISPUTES] = pages.page_of_disputes(marked.values())
    wanted[pages.DOUBTS] = pages.page_of_doubts(marked.values())
    wanted[pages.DATED] = await _dated(context, written.get(pages.DATED), marked)
    kept = profiles.keys() - ids
    changed = [
        write_page(id_, written.get(id_), wanted.get(id_), "what holds now")
        for id_ in sorted({*wanted, *written} - kept)
        if wanted.get(id_) != written.get(id_)
    ]
    return Thought(operations=[*tended, *ended, *changed])


async def _new(context: NightContext) -> dict[str, Fact]:
    """The facts that are new, and those that tonight changes, by operation id."""
    kinds, operations = ("add_fact", "change_fact"), context.plans.operations()
    new = {*context.record.get("facts", []), *await undreamed_facts(context.store, context.scope)}
    changed = (one["target"] for one in operations if one["kind"] in kinds)
    return await context.pending_view().facts([*new, *changed])


async def _moved(
    context: NightContext, profiles: Mapping[str, EntityProfile], standing: Mapping[str, Page]
) -> set[str]:
    """The ids of profiles that changed of late, and of pages with a fact that fell."""
    since = (datetime.fromisoformat(context.now) - LATELY).isoformat()
    found = {one["target"] for one in context.plans.operations() if one["kind"] in entities.KINDS}
    found |= {id_ for id_, one in profiles.items() if one["updated"] >= since}
    shown = {
        id_: {op for line in page["lines"] for op in line["facts"]}
        for id_, page in standing.items()
    }
    facts = await context.pending_view().facts(sorted(set().union(*shown.values())))
    holding = {op for op, fact in facts.items() if fact["invalid_at"] is None}
    return found | {id_ for id_, ops in shown.items() if ops - holding}


async def _marked(context: NightContext, touched: Mapping[str, Fact]) -> dict[str, Fact]:
    """Facts that are contradicted or in doubt, facts that their marks name, and `touched`.

    `touched`: the facts that are new or changed.
    """
    view = context.pending_view()
    found = await view.facts(touched)  # without those that go tonight
    for name in ("disputed", "doubtful"):
        found |= await view.holding(EVERY._replace(has=name))
    facts = found.values()
    named = {op for one in facts for op in (*one.get("disputed", ()), *one.get("doubtful", ()))}
    return found | await view.with_heirs(named - found.keys())


async def _dated(
    context: NightContext, page: Page | None, touched: Mapping[str, Fact]
) -> Page | None:
    """The page of days. `page`: its last version; `touched`: the facts that are new or changed."""
    view = context.pending_view()
    ops = [op for line in (page["lines"] if page else []) for op in line["facts"]]
    named = await view.facts(ops)
    fallen = any(fact["invalid_at"] for fact in named.values())
    outdated = not ops or len(named) < len(ops) or fallen
    newest = await view.holding(EVERY._replace(limit=NEWEST)) if outdated else {}
    return pages.page_of_dated({**touched, **named, **newest}.values())


def tended_to(profile: EntityProfile, facts: Mapping[str, Fact]) -> Operation | None:
    """The change after which all attributes rest on facts that hold; None if they do already.

    `facts`: those behind the attributes, and their heirs, by operation id.
    """
    observed = {one["id"] for one in profile["observations"]}
    changed: dict[str, Attribute | None] = {}
    for name, attribute in profile["attributes"].items():
        evidence = entities.evidence_now(attribute, observed, facts)
        if evidence != attribute["evidence"]:
            changed[name] = {**attribute, "evidence": evidence} if evidence else None
    if not changed:
        return None
    reason = "the facts behind it changed"
    return change_entity(profile, changed, [], [], [], reason, place="tended:")


async def _of_projects(
    context: NightContext, senders: Mapping[str, EntityProfile], known: Mapping[str, Fact]
) -> dict[str, Page | None]:
    """The pages of the projects that are not completed, by id. `known`: see `borne_out`."""
    slots = context.state["projects"]["slots"]
    wanted = {key: slot for key, slot in slots.items() if slot["status"] != "completed"}
    if not wanted:
        return {}
    listing = EVERY._replace(order="valid_from", limit=NEWEST)
    holding = (await context.pending_view().holding(listing)).values()
    newest = sorted(holding, key=lambda fact: (fact["valid_from"], fact["op"]))[-NEWEST:]
    ids = {id_ for fact in newest for id_ in fact["source_entries"]}
    entries = await journal.read_many(context.store, context.scope, sorted(ids))
    found = dict[str, Page | None]()
    for key, slot in wanted.items():
        mine = [fact for fact in newest if belongs(fact, key, slot, entries, context.owners)]
        if context.state.get("owned"):
            mine = pages.borne_out(mine, None, senders, context.owners, known=known)
        found[pages.project_id(key)] = pages.page_of(pages.project_id(key), {}, mine)
    return found


def belongs(
    fact: Fact,
    key: str,
    project: Project,
    entries: Mapping[str, JournalEntry],
    owners: Collection[str] = (),
) -> bool:
    """Whether a fact is about a project.

    It is if it or its entry names the project, if the project's summary names one of its entities,
    owners and its speaker aside, or if it shares two words with the project's key and summary,
    numbers and dates aside.
    """
    about = f"{key.replace('_', ' ').replace('-', ' ')} {project['summary']}"
    sources = [entries[id_] for id_ in fact["source_entries"] if id_ in entries]
    if names_project(fact["text"], key) or any(key in one["related_projects"] for one in sources):
        return True
    people = {fact["speaker"], *owners}
    if any(says(about, name) for name in fact["entities"] if name not in people):
        return True
    shared = set(content_stems(about)) & set(content_stems(fact["text"]))
    return len([one for one in shared - DATE_WORDS if not one.isdigit()]) >= SHARED_WORDS
