"""Rewrite the pages that show what holds now of people, things and projects, without a model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from memory import entities, journal, pages
from memory.journal import names_project
from memory.night import NightContext, Thought, assistant_names, night_in_hand, plan, proceed
from memory.records import (
    Attribute,
    EntityProfile,
    Fact,
    JournalEntry,
    Operation,
    Page,
    Project,
    change_entity,
    write_page,
)
from memory.settings import Settings
from memory.state import State, checked
from memory.text import MONTHS, WEEKDAYS, content_stems, says, stem

NEWEST = 500
"""Newest facts that may belong to a project."""

SHARED_WORDS = 2
"""Words that a fact of a project shares with the project's key and summary, at least."""

_OF_DATES = frozenset(stem(name.lower()) for name in (*MONTHS, *WEEKDAYS))


@checked
async def write_pages(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Let attributes go whose facts fell, then write the pages that differ from what stands."""
    context = await night_in_hand(state, runtime, config)
    await plan(context, "write_pages", [], partial(_think, context))
    return {"night": await proceed(context)}


async def _think(context: NightContext) -> Thought:
    view = context.pending_view()
    facts, profiles = await view.all_facts(), await view.everyone()
    tended = [one for profile in profiles.values() if (one := tended_to(profile, facts))]
    profiles = entities.after(profiles, {}, tended)[0]
    subjects = await view.subjects(assistant_names(context.settings))
    senders = {who: profile for profile in profiles.values() for who in profile["senders"]}
    wanted = dict[str, Page | None]()
    for id_, profile in profiles.items():
        if id_ in subjects:
            mine = pages.borne_out(subjects[id_].facts, profile, senders, context.owners)
            wanted[id_] = pages.made(id_, profile["attributes"], mine)
    wanted |= await _of_projects(context, facts, senders)
    wanted[pages.DISPUTES] = pages.disputes_made(facts.values())
    wanted[pages.DOUBTS] = pages.doubts_made(facts.values())
    wanted[pages.DATED] = pages.dated_made(facts.values())
    standing = await pages.everything(context.store, context.scope)
    changed = [
        write_page(id_, standing.get(id_), wanted.get(id_), "what holds now")
        for id_ in sorted({*wanted, *standing})
        if wanted.get(id_) != standing.get(id_)
    ]
    return Thought(operations=[*tended, *changed])


def tended_to(profile: EntityProfile, facts: Mapping[str, Fact]) -> Operation | None:
    """The change by which attributes stand on facts that hold; None if they all do.

    `facts`: every fact, by operation id.
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
    context: NightContext, facts: Mapping[str, Fact], senders: Mapping[str, EntityProfile]
) -> dict[str, Page | None]:
    """The pages of the projects that are not completed, by id."""
    slots = context.state["projects"]["slots"]
    wanted = {key: slot for key, slot in slots.items() if slot["status"] != "completed"}
    if not wanted:
        return {}
    holding = [fact for fact in facts.values() if fact["invalid_at"] is None]
    newest = sorted(holding, key=lambda fact: (fact["valid_from"], fact["op"]))[-NEWEST:]
    ids = {id_ for fact in newest for id_ in fact["source_entries"]}
    entries = await journal.read_many(context.store, context.scope, sorted(ids))
    found = dict[str, Page | None]()
    for key, slot in wanted.items():
        mine = [fact for fact in newest if belongs(fact, key, slot, entries)]
        if context.state.get("owned"):
            mine = pages.borne_out(mine, None, senders, context.owners)
        found[pages.project_id(key)] = pages.made(pages.project_id(key), {}, mine)
    return found


def belongs(fact: Fact, key: str, project: Project, entries: Mapping[str, JournalEntry]) -> bool:
    """Whether a fact is about a project.

    It is if it or an entry that it was made from names the project, if the project's summary names
    one of its entities, or if it shares two words with the project's key and summary, numbers and
    dates aside.
    """
    about = f"{key.replace('_', ' ').replace('-', ' ')} {project['summary']}"
    sources = [entries[id_] for id_ in fact["source_entries"] if id_ in entries]
    if names_project(fact["text"], key) or any(key in one["related_projects"] for one in sources):
        return True
    people = {fact["speaker"]}
    if any(says(about, name) for name in fact["entities"] if name not in people):
        return True
    shared = set(content_stems(about)) & set(content_stems(fact["text"]))
    return len([one for one in shared - _OF_DATES if not one.isdigit()]) >= SHARED_WORDS
