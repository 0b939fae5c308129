"""A night that has work for every step, and comparisons of what it leaves."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from graph.api import AsyncAgent
from memory.journal import links
from memory.night.record import STEPS, load, plans_of, records
from tests.support.crash_worker import Job, Points, running
from tests.support.kills import workers
from tests.support.night_memories import Memory

FIRST, EVENING = "2026-03-02T09:00:00+00:00", "2026-04-14T20:00:00+00:00"
NIGHT = "2026-04-15T02:00:00+00:00"
OLD = (
    "Ada lives in Bergen by the sea (8)",
    "Ben drinks tea in the morning (7)",
    "Carla paints boats at the weekend (6)",
    "The postman was late today (1)",
    "Somebody hummed a tune (2)",
    "The barn door creaks (1)",
    "A cat sat on the wall (2)",
)
NEW = (
    "Ada lives in Oslo now since Friday (8)",
    "Ben drinks tea in the evening too (6)",
    "Carla paints houses at the weekend (6)",
    "Ada plays chess with her brother (7)",
    "Ben drinks milk on Sundays (5)",
    "Dora keeps bees behind her house (7)",
    "Dora keeps bees behind the shed (6)",
    "Ben plays the cello on Fridays (7)",
    "It is raining (2)",
)
SLEEP = {"request": "sleep"}
SETTINGS: dict[str, Any] = {
    "score_batch_size": 3,
    "consolidate_batch_size": 3,
    "dream_batch_size": 3,
    "night_calls_per_100": 1_000,
    "reflection_threshold": 30,
    "max_context_tokens": 2_000,
    "compact_preserve_window": 6,
    "compact_sleep_threshold": 0.05,
}
AWAKE = {**SETTINGS, "max_context_tokens": 100_000, "compact_sleep_threshold": 0.7}
PASSING = {"handled", "inbox", "open_night", "runs", "audit"}
"""Kinds of records that tell which runs there were."""
TIMED = ("seconds", "duration_ms", "tokens", "llm_calls", "exchange", "wave")
"""What says how long something took and what it cost, or names calls by their place in one process.

What was asked for is counted where it is asked.
"""


def heard(texts: tuple[str, ...], at: str, name: str) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{name}{n:02d}",
            "text": text,
            "sender": text.split()[0] if text.split()[0] in ("Ada", "Ben", "Carla") else "Dora",
            "at": at,
            "channel": "hall",
            "addressed": False,
        }
        for n, text in enumerate(texts)
    ]


def asked(text: str, at: str) -> dict[str, Any]:
    return {"id": text.split()[0].lower(), "text": text, "sender": "Ben", "at": at}


def evening(data: Path, database: str | None = None) -> None:
    """Let an agent live there: a first night long ago, and a day with much in it."""
    job = Job(data=str(data), database=database, model="dreams", settings=AWAKE)
    old = [{"events": [*heard(OLD, FIRST, "o"), asked("Plan the barn", FIRST)]}, SLEEP]
    workers().done(replace(job, inputs=old, now=FIRST))
    asking = [asked("Notice what Ada likes", EVENING), asked("Recall Ada", EVENING)]
    new = [{"events": [*heard(NEW, EVENING, "n"), *asking]}]
    workers().done(replace(job, inputs=new, now=EVENING))
    job.log.unlink()
    asyncio.run(_with_an_orphan(job))


async def _with_an_orphan(job: Job) -> None:
    """Link an entry to a fact that is gone, as older versions may have left it."""
    entry, gone = f"event_{EVENING[:10].replace('-', '')}_n00", "gone"
    async with running(job, Points(job)) as (agent, _):
        there = {"linked_to": [gone], "created": FIRST, "relations": {}}
        back = {"linked_to": [entry], "created": FIRST, "relations": {}}
        for key, value in ((entry, there), (gone, back)):
            await agent.store.aput(agent.scope.namespace(links.LINKS), key, dict(value))


async def standing(job: Job) -> dict[str, Any]:
    async with running(job, Points(job)) as (agent, _):
        return await everything(agent)


async def everything(agent: AsyncAgent) -> dict[str, Any]:
    """Memory, records and working memory, with facts named by operation."""
    memory = Memory(agent.resources.semantic, agent.scope, agent.store)
    stored = {
        key: value
        for key, value in (await memory.everything()).items()
        if not PASSING.intersection(key.split(" ")[0].split("/"))
    }
    values = (await agent.aget_state()).values
    kept = ("conversations", "goals", "projects", "session_memory", "mode", "phase")
    state = {key: values[key] for key in kept}
    state["messages"] = [(one.type, one.text) for one in values["messages"]]
    found: dict[str, Any] = _timeless({**_ranked(stored), "state": state})
    return found


def _ranked(stored: dict[str, Any]) -> dict[str, Any]:
    """`stored` with each plan's rank in its night as its order, without plans that only settle.

    A kill between a batch and the facts that it passes over lets those come a batch later.
    """
    plans = [(key, value) for key, value in stored.items() if "/night/" in key]
    nights: dict[str, list[str]] = {}
    for key, plan in sorted(plans, key=lambda item: item[1]["order"]):
        if {operation["kind"] for operation in plan["operations"]} != {"settle_fact"}:
            nights.setdefault(key.split(" ")[0], []).append(key)
    ranks = {key: rank for keys in nights.values() for rank, key in enumerate(keys)}
    return {**stored, **{key: {**plan, "order": ranks.get(key)} for key, plan in plans}}


def _timeless(value: Any) -> Any:
    """`value` without durations and costs, with links sorted, since fact ids are random."""
    if isinstance(value, Mapping):
        kept = {key: _timeless(one) for key, one in value.items() if key not in TIMED}
        if kept.get("kind") == "link" and (kept.get("after") or {}).get("of") == "memories":
            del kept["id"]  # made of an id by chance, that of the fact
        return {**kept, "linked_to": sorted(kept["linked_to"])} if "linked_to" in kept else kept
    return [_timeless(one) for one in value] if isinstance(value, list) else value


def differences(found: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    lines = []
    for key in sorted({*found, *expected}):
        one, other = found.get(key), expected.get(key)
        if one == other:
            continue
        if isinstance(one, dict) and isinstance(other, dict):
            names = [name for name in {*one, *other} if one.get(name) != other.get(name)]
            lines += [f"{key} {name}: {one.get(name)} != {other.get(name)}" for name in names]
        else:
            lines.append(f"{key}: {one} != {other}")
    return lines


async def steps_done(agent: AsyncAgent) -> set[str]:
    """The steps of the newest night that made operations."""
    name = (await records(agent.store, agent.scope))[-1]["id"]
    assert await load(agent.store, agent.scope, name) is not None
    plans = await plans_of(agent.store, agent.scope, name)
    return {plan["step"] for plan in plans if plan["operations"]} & {*STEPS}
