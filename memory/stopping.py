"""Stopping between steps: each step in hand is finished, and none is begun any more.

LangGraph Server ends by cancelling its runs, wherever they are: what a model has been asked is
paid for and not heard. A server that is told to end therefore says so here first. A step that would
begin after that waits until its run is cancelled; the run then stands at a checkpoint, and whoever
runs the thread next, the server's next start itself, goes on from there.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from langgraph.config import get_config

PAUSE = 0.05
"""Seconds between two looks at what is still in hand."""
SETTLE = 2.0
"""Seconds in which what a run's last step gave is written down."""


class Steps:
    """The steps of all runs of a process. Its runs may be in several threads, each with a loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_hand: dict[str, int] = {}
        """Of each thread of a run how many. None, while stopping: it has yet to be written down."""
        self._stopping = False

    @asynccontextmanager
    async def step(self) -> AsyncIterator[None]:
        """A node's work. Never entered once the process stops: waits to be cancelled."""
        thread = _thread()
        if not self._begun(thread):
            await asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            self._ended(thread)

    async def stop(self, seconds: float) -> int:
        """Let no further step begin, and wait for those in hand; of how many runs one is left."""
        with self._lock:
            self._stopping = True
        await _until(lambda: not self._left(), seconds)
        left = self._left()
        # What a step gave is written before the next would begin.
        await _until(lambda: self._in_hand.keys() <= left, SETTLE)
        return len(left)

    def start(self) -> None:
        """Let steps begin."""
        with self._lock:
            self._stopping = False
            self._in_hand.clear()

    def _left(self) -> set[str]:
        with self._lock:
            return {thread for thread, steps in self._in_hand.items() if steps}

    def _begun(self, thread: str) -> bool:
        with self._lock:
            steps = self._in_hand.get(thread, 0)
            if not self._stopping:
                self._in_hand[thread] = steps + 1
            elif not steps:
                self._in_hand.pop(thread, None)
            return not self._stopping

    def _ended(self, thread: str) -> None:
        with self._lock:
            steps = self._in_hand.get(thread, 1) - 1
            if steps or self._stopping:
                self._in_hand[thread] = steps
            else:
                self._in_hand.pop(thread, None)


STEPS = Steps()
"""This process's."""


async def _until(reached: Callable[[], bool], seconds: float) -> None:
    """Wait for it, but no longer than that."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not reached():
        if loop.time() >= end:
            return
        await asyncio.sleep(PAUSE)


def _thread() -> str:
    """The thread of the run; a node that is called by hand has none."""
    try:
        return str(get_config().get("configurable", {}).get("thread_id", ""))
    except RuntimeError:
        return ""
