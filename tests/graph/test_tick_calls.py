"""What a tick asks of its store, its checkpoints and its threads: counts, which no machine changes.

The limits follow what is reached; a change may lower one.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langgraph.pregel import Pregel

from memory.storage.sqlite import CircadianSqliteStore, OpenedFile
from memory.storage.sqlite.saver import SqliteCheckpoints
from tests.support.agents import Opening, said
from tests.support.scripted import scripted

COUNTED: dict[type, dict[str, str]] = {
    CircadianSqliteStore: dict.fromkeys(
        ("abatch", "aput_new", "alook", "alist", "acount", "acount_named"), "store"
    ),
    SqliteCheckpoints: {"aget_tuple": "load", "aput": "checkpoint", "aput_writes": "writes"},
    OpenedFile: {"_submit": "file"},
    ThreadPoolExecutor: {"submit": "thread"},
    Pregel: {"aget_state": "preparing tasks"},
}
LIMITS = {"store": 22, "load": 1, "checkpoint": 1, "file": 8, "thread": 13}
"""Most calls of a tick without tools; `file` and `thread` are hand-offs to another thread."""


async def test_a_tick_makes_few_calls_and_hand_offs(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Counter[str]()

    def counting(owner: type, name: str, what: str) -> None:
        call = getattr(owner, name)

        def counted(*args: Any, **more: Any) -> Any:
            seen[what] += 1
            return call(*args, **more)

        monkeypatch.setattr(owner, name, counted)

    async with opening(scripted(otherwise=lambda *_: "Noted.")) as agent:
        for number in range(3):
            await agent.ainvoke(said(f"Pear tree {number} has blossoms.", sender="Ada"))
        for owner, names in COUNTED.items():
            for name, what in names.items():
                counting(owner, name, what)
        await agent.ainvoke(said("Pear tree 3 has blossoms.", sender="Ada"))
    assert {what: count for what, count in seen.items() if count > LIMITS.get(what, 0)} == {}
