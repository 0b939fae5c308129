"""What users may keep and use, the tokens they used, tokens that are revoked, erasing a user.

Store namespaces, apart from those of users: a user's label never begins with `%o`.
`%operator/usage/DAY/USER` process/thread -> {llm_calls, tokens, in_ticks} ·
`%operator/revoked` USER -> {before} · `%operator/revoked_ids` token id -> {at}.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from secrets import token_hex
from sys import maxsize
from time import monotonic
from typing import Any
from urllib.parse import unquote
from weakref import WeakValueDictionary

from httpx import HTTPStatusError
from langgraph.config import get_config
from langgraph.store.base import BaseStore, PutOp
from langgraph_sdk.client import LangGraphClient
from pydantic import BaseModel, Field

from graph.documents import Listed
from graph.server.agents import erase_files, every_own
from graph.server.settings import ERASED, FULL, INVALID, User, serving
from memory import forgetting
from memory.errors import BusyError, CircadianError, ConfigurationError
from memory.events import inbox
from memory.facts import user_filters
from memory.records import Scope, Usage
from memory.runtime import Process, process_now, scope_of
from memory.storage import PAGE, count_items, list_items, namespaces_below, write_batch

SPACE = "%operator"

DAYS_KEPT = 31
"""Days whose use of tokens is kept."""

FRESH_SECONDS = 5.0
"""Seconds for which another replica may still accept a token that was revoked here."""

log = logging.getLogger("circadian")


class Ledger:
    """The model tokens of each agent, user and day, over all processes.

    Each process writes records of its own. Limits go by these records, because users can edit the
    spending in the state.
    """

    def __init__(self) -> None:
        self._process = token_hex(8)
        self._spent: dict[tuple[str, Scope], Counter[str]] = {}

    async def check(self) -> None:
        """Raise ConfigurationError if the user of the run has used up their day."""
        if (scope := _scope_of_run()) and (why := await self.why_spent(scope.user)):
            raise ConfigurationError(why)

    async def charge(self, usage: Usage) -> None:
        """Note what a model call of the run has cost."""
        if scope := _scope_of_run():
            today = _today()
            if (today, scope) not in self._spent:
                self._spent = {key: old for key, old in self._spent.items() if key[0] == today}
                await _drop_old_days(today)
            spent = self._spent.setdefault((today, scope), Counter())
            place = str(get_config()["configurable"].get("checkpoint_ns", ""))
            in_ticks = usage["tokens"] if place.startswith("awake:") else 0
            spent.update({**usage, "in_ticks": in_ticks})
            here, key = _usage_space(today, scope.user), f"{self._process}/{scope.thread}"
            # The whole day so far: a put replaces this process's record.
            put = PutOp(here, key, dict(spent), index=False)
            await write_batch(process_now().served_store, [put])

    async def in_ticks(self, scope: Scope) -> int:
        """The tokens that the ticks of an agent used today, without those of nights."""
        records = await _records(scope.user)
        mine = [one for key, one in records.items() if key.endswith(f"/{scope.thread}")]
        return sum(one["in_ticks"] for one in mine)

    async def why_spent(self, user: str) -> str | None:
        """Why the user's agents may make no model call today; None if they may."""
        most = serving().user_tokens_per_day
        if most is None or (used := (await used_today(user))["tokens"]) < most:
            return None
        return (
            f"{used:,} of {most:,} model tokens are used for today (UTC): what waits is answered "
            "tomorrow, or ask the operator for more"
        )


class UserLine(BaseModel):
    """A user who has memory here, with what they use."""

    user: str
    agents: int
    memories: int = Field(
        description="Journal entries, or facts if they are more, and events that wait."
    )
    llm_calls: int = Field(description="Model calls of today (UTC).")
    tokens: int = Field(description="Model tokens of today (UTC).")


UserPage = Listed[UserLine]
"""Made here: pydantic cannot find the class under the name by which the server loads it."""

LEDGER = Ledger()


async def used_today(user: str) -> Usage:
    """What a user's agents used on this day (UTC)."""
    records = (await _records(user)).values()
    return {
        "llm_calls": sum(one["llm_calls"] for one in records),
        "tokens": sum(one["tokens"] for one in records),
    }


async def _records(user: str) -> dict[str, dict[str, Any]]:
    items = await list_items(process_now().served_store, _usage_space(_today(), user))
    return {item.key: item.value for item in items}


def _scope_of_run() -> Scope | None:
    try:
        config = get_config()
    except RuntimeError:
        return None
    return scope_of(config) if "thread_id" in config.get("configurable", {}) else None


def _usage_space(day: str, user: str) -> tuple[str, ...]:
    return (SPACE, "usage", day, label_of(user))


def label_of(user: str) -> str:
    """A user's label in the store."""
    return Scope(user, "").namespace()[0]


def _today() -> str:
    return f"{process_now().resources.clock():%Y%m%d}"


async def _drop_old_days(today: str) -> None:
    store = process_now().served_store
    days = await namespaces_below(store, (SPACE, "usage"))
    for namespace in days:
        age = datetime.strptime(today, "%Y%m%d") - datetime.strptime(namespace[2], "%Y%m%d")  # noqa: DTZ007 - days alone
        if age.days > DAYS_KEPT:
            items = await list_items(store, namespace)
            await write_batch(store, [PutOp(namespace, item.key, None) for item in items])


# Limits on what is kept


def memories_in(records: Mapping[str, int]) -> int:
    """The number of memories, given the number of records of each kind; marks and logs are none.

    A night makes facts of entries that stay: so the larger of the two numbers counts.
    """
    lasting = max(records.get("journal", 0), records.get("fact", 0))
    return lasting + records.get(inbox.INBOX, 0) + records.get(inbox.SET_ASIDE, 0)


async def kept(user: str) -> int:
    """The number of a user's memories, for the limit."""
    process = process_now()
    semantic, store, own = process.resources.semantic, process.served_store, (label_of(user),)
    filters = {**user_filters(Scope(user, "")), "kind": "fact"}
    facts = await semantic.run(lambda: semantic.open_table().count(filters))
    found = Counter(fact=facts)
    for kind in await namespaces_below(store, own, 3):
        if kind[2:] in (("journal",), (inbox.SET_ASIDE,)):
            found[kind[2]] += await count_items(store, kind)
    found[inbox.INBOX], _ = await inbox.waiting_now(store, own)
    return memories_in(found)


async def memories_left(user: str) -> inbox.Room:
    """How many more memories of the user can be kept."""
    most = serving().memories_per_user
    if most is None:
        return inbox.Room(maxsize, "")
    now = await kept(user)
    why = f"{now:,} of {most:,} memories are kept: forget some, or ask the operator for more"
    return inbox.Room(most - now, why)


_QUEUES: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


def queue_of(user: str) -> asyncio.Lock:
    """The lock for which a user's posts queue, so that each counts what earlier posts stored."""
    return _QUEUES.setdefault(user, asyncio.Lock())


async def _bounds(scope: Scope) -> list[inbox.Room]:
    """What bounds the new events of an agent: the request, the inbox, the user's memory."""
    waiting, _ = await inbox.waiting_now(process_now().served_store, scope.namespace())
    at_once, most = serving().events_per_request, serving().events_waiting
    why = f"{waiting:,} of at most {most:,} events wait: let the agent run, then send them again"
    request = inbox.Room(at_once, f"at most {at_once:,} events in one request")
    return [request, inbox.Room(most - waiting, why), await memories_left(scope.user)]


async def room(scope: Scope) -> inbox.Room:
    """How many events a run may take in. `auth` does not see those in an edit of the state."""
    return min(await _bounds(scope))


async def why_too_many(scope: Scope, more: int) -> tuple[int, str] | None:
    """The status and the reason to refuse `more` events in one request; None to accept."""
    over = [one for one in await _bounds(scope) if more > one.events] if more else []
    status = INVALID if more > serving().events_per_request else FULL
    return (status, over[0].why) if over else None


# Revoked tokens


class Revocations:
    """The revoked tokens, read from the store again after FRESH_SECONDS."""

    def __init__(self) -> None:
        self._before: dict[str, float] = {}
        self._ids: set[str] = set()
        self._read = -FRESH_SECONDS

    async def cover(self, user: User) -> bool:
        """Whether a user's token is revoked."""
        if monotonic() - self._read >= FRESH_SECONDS:
            # While the store is down, the tokens known so far stay revoked.
            with suppress(CircadianError):
                await self.refresh()
        before = self._before.get(label_of(user.name))
        return user.id in self._ids or (before is not None and user.issued <= before)

    async def refresh(self) -> None:
        """Read the revocations of all replicas."""
        store = process_now().served_store
        users = await list_items(store, (SPACE, "revoked"))
        ids = await list_items(store, (SPACE, "revoked_ids"))
        self._before = {item.key: float(item.value["before"]) for item in users}
        self._ids = {item.key for item in ids}
        self._read = monotonic()


REVOKED = Revocations()


async def revoke(user: str, id_: str | None, now: datetime) -> None:
    """Revoke one token by its id, or all tokens of the user so far."""
    puts = (
        [PutOp((SPACE, "revoked"), label_of(user), {"before": now.timestamp()}, index=False)]
        if id_ is None
        else [PutOp((SPACE, "revoked_ids"), id_, {"at": now.isoformat()}, index=False)]
    )
    await write_batch(process_now().served_store, puts)
    await REVOKED.refresh()
    log.info("tokens of a user were revoked")


# Erasing a user


async def erase_user(user: str, client: LangGraphClient, process: Process) -> dict[str, int]:
    """Delete everything of a user, schedules first so that no run makes anything new.

    `client` reaches the resources of all users. Idempotent: after an interruption, call it again.
    Raises BusyError while the user is being erased already.
    """
    if user in ERASED:
        raise BusyError(f"{user!r:.80} is being erased already: ask again after it")
    ERASED.add(user)
    try:
        return await _erased(user, client, process)
    finally:
        ERASED.discard(user)


async def _erased(user: str, client: LangGraphClient, process: Process) -> dict[str, int]:
    store = process.served_store
    counted = {
        "schedules": await _schedules(user, client),
        "threads": await _threads(user, client),
        "assistants": await _assistants(user, client),
    }
    # A crash, or use from Python, leaves threads that the server does not list, but the store does.
    below = await namespaces_below(process.served_store, (label_of(user),))
    for thread in {unquote(namespace[1]) for namespace in below if len(namespace) > 1}:
        assert process.saver is not None
        await process.saver.adelete_thread(thread)
    counted["memories"] = await forgetting.erase_memories(
        process.resources.semantic, user_filters(Scope(user, ""))
    )
    counted["records"] = await _erase_records(store, user)
    await erase_files(process, Scope(user, ""))
    await forgetting.clean(store, forgetting.STORE_TABLES)
    await forgetting.clean(process.saver, forgetting.SAVER_TABLES)
    return counted


async def _schedules(user: str, client: LangGraphClient) -> int:
    found = await every_own(user, client.crons.search)
    for cron in found:
        await client.crons.delete(cron["cron_id"])
    return len(found)


async def _threads(user: str, client: LangGraphClient) -> int:
    """Delete threads with their runs and checkpoints; running ones are cancelled first."""
    found = await every_own(user, client.threads.search)
    for thread in found:
        id_ = thread["thread_id"]
        runs = await client.runs.list(id_, limit=PAGE)
        for run in (run for run in runs if run["status"] in ("pending", "running")):
            with _may_be_gone():
                await client.runs.cancel(id_, run["run_id"], wait=True)
        with _may_be_gone():
            await client.threads.delete(id_)
    return len(found)


@contextmanager
def _may_be_gone() -> Iterator[None]:
    """Ignore a 404: a run may end by itself, and a user may delete a thread meanwhile."""
    try:
        yield
    except HTTPStatusError as error:  # where it waits, the SDK raises httpx's own
        if error.response.status_code != 404:
            raise


async def _assistants(user: str, client: LangGraphClient) -> int:
    """Delete the assistants that the user made; the server's own stay."""
    found = await every_own(user, client.assistants.search)
    made = [one for one in found if (one.get("metadata") or {}).get("created_by") != "system"]
    for assistant in made:
        await client.assistants.delete(assistant["assistant_id"])
    return len(made)


async def _erase_records(store: BaseStore, user: str) -> int:
    deleted = 0
    for namespace in await namespaces_below(store, (label_of(user),)):
        items = await list_items(store, namespace)
        await write_batch(store, [PutOp(namespace, item.key, None) for item in items])
        deleted += len(items)
    return deleted
