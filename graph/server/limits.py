"""Limits of one user on a server: requests a minute, and records kept."""

from __future__ import annotations

from functools import lru_cache

from limits import RateLimitItemPerMinute
from limits.aio.storage import Storage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.storage import storage_from_string

from graph.server.settings import Serving, own_namespace
from memory.errors import InputError
from memory.facts import user_filters
from memory.records import Scope
from memory.runtime import process_now
from memory.storage import count_items


async def allowed(user: str, serving: Serving) -> bool:
    """Count one request of the user; whether it is within the limit."""
    if serving.requests_per_minute is None:
        return True
    limit = RateLimitItemPerMinute(serving.requests_per_minute)
    return await _limiter(serving.limits_storage).hit(limit, user)


def check(serving: Serving) -> None:
    """Raise InputError if the storage of the counts cannot be used."""
    _limiter(serving.limits_storage)


async def full(user: str, serving: Serving, *, more: int = 1) -> str | None:
    """Why `more` records of the user cannot be kept; None if they can."""
    most = serving.memories_per_user
    if most is None or (now := await _kept(user)) + more <= most:
        return None
    return f"{now:,} of {most:,} memories are kept: forget, or ask for more"


async def _kept(user: str) -> int:
    """Number of records kept of the user: journal entries, facts, profiles and all else."""
    process = process_now()
    semantic, filters = process.resources.semantic, user_filters(Scope(user, ""))
    rows = await semantic.run(lambda: semantic.open_table().count(filters))
    return rows + await count_items(process.served_store, own_namespace(user))


@lru_cache(maxsize=1)
def _limiter(address: str) -> MovingWindowRateLimiter:
    """Counts per process by default; several replicas need a storage that they share."""
    try:
        storage = storage_from_string(f"async+{address}")
    except Exception as error:
        raise InputError(
            f"CIRCADIAN_LIMITS_STORAGE: {address!r:.60} cannot be used: {error}"
        ) from error
    assert isinstance(storage, Storage)
    return MovingWindowRateLimiter(storage)
