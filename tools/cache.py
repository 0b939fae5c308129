"""Answers of tools that are given again without running them (original-system, sections 8, 19).

Pure. An entry's key holds what the answer depends on, so a write to that drops it by itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from memory.tick import CachedAnswer
from tools.registry import ToolKind

MOST = 50
"""Answers kept, the newest."""
LONGEST = 20_000
"""Characters of an answer that is kept."""


def cache_key(name: str, args: Mapping[str, Any], kind: ToolKind, state: Mapping[str, Any]) -> str:
    """A digest of the tool, its arguments but for the reasoning, and the state keys it reads."""
    asked = {key: value for key, value in args.items() if key != "reasoning"}
    read = {key: state.get(key) for key in kind.reads}
    text = json.dumps([name, asked, read], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def cached(
    cache: Mapping[str, CachedAnswer], key: str, *, tick: int, now: datetime
) -> CachedAnswer | None:
    """The answer under `key`, where it still holds in this tick and at this time (UTC)."""
    entry = cache.get(key)
    return entry if entry is not None and _holds(entry, tick, now) else None


def with_answer(
    cache: Mapping[str, CachedAnswer],
    key: str,
    content: str,
    kind: ToolKind,
    *,
    tick: int,
    now: datetime,
) -> dict[str, CachedAnswer]:
    """`cache` with one more answer, as its newest, and without those that no longer hold."""
    assert kind.cache is not None
    entry: CachedAnswer = {
        "content": content,
        "scope": kind.cache,
        "tick": tick,
        "expires": None if kind.ttl is None else (now + timedelta(seconds=kind.ttl)).isoformat(),
    }
    kept = {k: one for k, one in cache.items() if k != key and _holds(one, tick, now)}
    newest = list(kept.items())[-(MOST - 1) :]
    return {**dict(newest), key: entry}


def _holds(entry: CachedAnswer, tick: int, now: datetime) -> bool:
    if entry["scope"] == "tick" and entry["tick"] != tick:
        return False
    return entry["expires"] is None or now < datetime.fromisoformat(entry["expires"])
